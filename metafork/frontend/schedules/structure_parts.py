"""Parts of structures: where members lie that indices lead to, and structures that are values.

The members of a structure are written out (``p[0].x``, ``p[0].y``, ``p[1].x``, ...), so that ``a[i].p[k].x`` is the
member ``p[0].x`` and what ``k`` elements of ``p`` add to its place, and ``a[i].p[k]`` all members that begin so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from metafork.frontend.schedules.symbols import ArraySymbol
from metafork.frontend.text import syntax
from metafork.ir import program as ir
from metafork.ir.messages.source import Span

Step = str | syntax.Expression
"""A member, or an index of one that is an array."""


class Whole(Struct, frozen=True):
    """A structure as a value: its members as they are written out, and what each of them is."""

    names: tuple[str, ...]
    values: tuple[ir.Expr, ...]

    def alike(self, other: Whole) -> bool:
        """Say whether these are structures of one type, as far as their members show it."""
        mine, theirs = ((one.names, [value.type for value in one.values]) for one in (self, other))
        return mine == theirs

    def part(self, steps: Sequence[Step], counted: Callable[[syntax.Expression], ir.Expr]) -> Whole | None:
        """Return what steps lead to, without members if it has no such element; ``None`` unless indices are numbers."""
        indices = [step if isinstance(step, str) else counted(step) for step in steps]
        if not all(isinstance(index, str | ir.IntConst) for index in indices):
            return None
        begin = tuple(index.value if isinstance(index, ir.IntConst) else index for index in indices)
        parts = map(components, self.names)
        found = [(own[len(begin) :], value) for own, value in zip(parts, self.values, strict=True)
                 if own[: len(begin)] == begin]  # fmt: skip
        return Whole(tuple(spelled(rest) for rest, _ in found), tuple(value for _, value in found))


def whole_of(structure: ArraySymbol, span: Span) -> Whole:
    """Return the members of one structure."""
    places = range(len(structure.members))
    return Whole(structure.members, tuple(structure.member(place, span) for place in places))


def path_of(expression: syntax.Expression) -> tuple[syntax.Expression, tuple[Step, ...]] | None:
    """Return the structure that an expression is a part of, and what leads from there to the part.

    ``None`` for what is no member and no element of one.
    """
    steps: list[Step] = []
    found: tuple[syntax.Expression, int] | None = None
    while True:
        match expression:
            case syntax.Member(base=base, field=field, arrow=arrow):
                steps.append(field)
                found = base, len(steps)
                if arrow:
                    first = syntax.Constant("0", base.span)
                    steps.append(first)
                    found = syntax.Subscript(base, first, base.span), len(steps) - 1
            case syntax.Subscript(base=base, index=index):
                steps.append(index)
            case _:
                break
        expression = base
    return None if found is None else (found[0], tuple(reversed(steps[: found[1]])))


def components(member: str) -> tuple[str | int, ...]:
    """Return the parts of the name of a member: ``p[0].x`` is ``p``, 0 and ``x``."""
    return tuple(int(part) if part.isdecimal() else part for part in re.findall(r"\w+", member))


def spelled(parts: Sequence[str | int]) -> str:
    """Return the name that such parts make up."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def members_at(members: Sequence[str], steps: Sequence[Step]) -> list[tuple[int, tuple[str | int, ...]]]:
    """Return the members that begin with some steps, whatever the indices are: their numbers and parts."""

    def leads(parts: Sequence[str | int]) -> bool:
        return len(parts) >= len(steps) and all(
            part == step if isinstance(step, str) else isinstance(part, int)
            for part, step in zip(parts, steps, strict=False)
        )

    found = ((number, components(name)) for number, name in enumerate(members))
    return [(number, parts) for number, parts in found if leads(parts)]


def located(
    structure: ArraySymbol, steps: Sequence[Step], counted: Callable[[syntax.Expression], ir.Expr], span: Span
) -> Whole:
    """Return what steps lead to in a structure that has such members; a scalar has one name, which is empty."""
    found = members_at(structure.members, steps)
    axes = [axis for axis, step in enumerate(steps) if not isinstance(step, str)]
    first = [(number, parts) for number, parts in found if not any(parts[axis] for axis in axes)]
    numbers = {parts: number for number, parts in found}
    start, begin = first[0]
    further: ir.Expr | None = None
    for axis in axes:
        step = steps[axis]
        assert not isinstance(step, str)
        index = counted(step)
        following = numbers.get((*begin[:axis], 1, *begin[axis + 1 :]))
        places = 0 if following is None else _apart(structure, start, following)
        if places:
            term = index if places == 1 else ir.binary("*", index, ir.IntConst(places), index.span)
            further = term if further is None else ir.binary("+", further, term, span)
    names = tuple(spelled(parts[len(steps) :]) for _, parts in first)
    return Whole(names, tuple(structure.member(number, span, further) for number, _ in first))


def _apart(structure: ArraySymbol, one: int, other: int) -> int:
    """Return how many elements of its type lie between a member and one of the same type behind it."""
    slots = structure.array.slots
    if not slots:
        return other - one
    if structure.of_block or structure.of_thread:  # views hold the members of their type alone
        return sum(slot.type is slots[one].type for slot in slots[one:other])
    return (slots[other].offset - slots[one].offset) // slots[one].type.size
