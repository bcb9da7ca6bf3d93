"""Elements that a piece of host code touches, put together to as few accesses as can be announced.

``x[i - 1] + x[i] + x[i + 1]`` in a loop is one access to a stretch of ``x``, not three: elements whose indices differ
in small constants alone become a box around them, which is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.linear_indices import Amount, Linear, Trips
from metafork.ir.translation_unit import HostAccess, HostIndex

Kind = Literal["parameter", "object", "pointer", "everything", "freed"]
_NEAR = 16
"""Constants in one box differ by less."""
_MOST_ACCESSES = 40


class Element(Struct, frozen=True):
    """What one expression touches.  ``around`` are loops without whose iterations nothing of it is overwritten."""

    name: str
    kind: Kind
    indices: tuple[Linear | None, ...]
    reads: bool
    writes: bool
    around: tuple[int, ...] = ()


Terms = tuple[tuple[int, Amount], ...]
Shape = tuple[tuple[Amount, Terms] | None, ...]


class _Form(Struct, frozen=True):
    """Elements that may be in one box: all but the constants of their indices."""

    name: str
    kind: Kind
    shape: Shape
    around: tuple[int, ...]


def boxes(elements: Iterable[Element], trips: Mapping[int, Trips]) -> tuple[HostAccess, ...]:
    """Return the accesses, those that overwrite last."""
    everything = [False, False]
    read: dict[_Form, set[tuple[int, ...]]] = {}
    overwritten: dict[_Form, set[tuple[int, ...]]] = {}
    updated: dict[_Form, set[tuple[int, ...]]] = {}
    freed: list[HostAccess] = []
    for one in elements:
        if one.kind == "freed":
            freed.append(HostAccess(one.name, one.kind, (), False, True))
        elif one.kind == "everything":
            everything = [everything[0] or one.reads, everything[1] or one.writes]
        else:
            form, constants = _split(one)
            into = overwritten if not one.reads else updated if one.writes else read
            into.setdefault(form, set()).add(constants)
    found: dict[HostAccess, list[bool]] = {}

    def note(form: _Form, least: tuple[int, ...], most: tuple[int, ...], reads: bool, writes: bool) -> None:
        how = found.setdefault(_access(form, least, most, trips), [False, False])
        how[0], how[1] = how[0] or reads, how[1] or writes

    for into, writes in ((read, False), (updated, True)):
        for form, constants_ in into.items():
            for group in _near(constants_):
                note(form, *_bounds(group), reads=True, writes=writes)
    for form, constants_ in overwritten.items():
        for group in _near(constants_):
            least, most = _bounds(group)
            full = len(group) == prod(high - low + 1 for low, high in zip(least, most, strict=True))
            note(form, least, most, reads=not full, writes=True)
    if everything == [True, True] or len(found) > _MOST_ACCESSES:
        return (HostAccess("", "everything", (), True, True),)
    if any(everything):
        found[HostAccess("", "everything", (), False, False)] = everything
    accesses = [replace(one, reads=reads, writes=writes) for one, (reads, writes) in found.items()]
    return (*sorted(accesses, key=lambda one: not one.reads), *dict.fromkeys(freed))


def _split(element: Element) -> tuple[_Form, tuple[int, ...]]:
    indices = list(element.indices)
    while indices and indices[-1] is None:
        indices.pop()
    shape: list[tuple[Amount, Terms] | None] = []
    constants: list[int] = []
    for one in indices:
        constant = 0 if one is None else one.start.constant
        shape.append(None if one is None else (one.start.plus(Amount.number(-constant)), one.terms))
        constants.append(constant)
    return _Form(element.name, element.kind, tuple(shape), element.around), tuple(constants)


def _near(constants: set[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield groups of constants that lie near each other."""
    group: list[tuple[int, ...]] = []
    for one in sorted(constants):
        if group and any(abs(a - b) >= _NEAR for other in group for a, b in zip(one, other, strict=True)):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _bounds(group: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    columns = list(zip(*group, strict=True))
    return tuple(min(one) for one in columns), tuple(max(one) for one in columns)


def _access(form: _Form, least: tuple[int, ...], most: tuple[int, ...], trips: Mapping[int, Trips]) -> HostAccess:
    """Return a box, neither read nor written yet."""
    used = list(form.around)
    for one in form.shape:
        used += [loop for loop, _ in (() if one is None else one[1]) if loop not in used]
    counts = [str(trips[loop].count) for loop in used]
    indices: list[HostIndex | None] = []
    for one, low, high in zip(form.shape, least, most, strict=True):
        if one is None:
            indices.append(None)
            continue
        steps = [(used.index(loop), str(amount)) for loop, amount in one[1]]
        if high > low:
            steps.append((len(counts), "1LL"))
            counts.append(f"{high - low + 1}LL")
        indices.append(HostIndex(str(one[0].plus(Amount.number(low))), tuple(steps)))
    return HostAccess(form.name, form.kind, tuple(indices), False, False, tuple(counts))
