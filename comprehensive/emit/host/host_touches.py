"""C text by which the host announces what it is about to touch, and the arrays that end with a block.

``metafork_touch(start, offset, bytes, how)`` (``metafork/host.h``) stands in front of a statement, or by a comma in
front of an expression; ``metafork_touch_steps`` does for columns, and for what loops touch of a row.  Offsets are
computed in integers, so that no pointer leaves its array in code that is not reached.
"""

from __future__ import annotations

from msgspec import Struct

from metafork.ir.program import Array, Var, walk_expression
from metafork.ir.translation_unit import Function, HostAccess, HostAccesses
from metafork.printing.expressions import Spelling, expression


class Edit(Struct, frozen=True):
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def touches(function: Function, accesses: HostAccesses, prefix: str, text: str) -> list[Edit]:
    """Return the edits of ``text`` that announce the accesses of a function.

    ``prefix`` begins names that hide none of the text.
    """
    edits: list[Edit] = []
    sized = _sized(function)
    for place in accesses.places:
        calls = [_call(access, sized, prefix) for access in place.accesses]
        if place.kind == "expression":
            edits.append(Edit(place.start, place.start, f"({', '.join(calls)}, "))
            edits.append(Edit(place.end, place.end, ")"))
        else:
            opening, closing = ("{ ", " }") if place.kind == "alone" else ("", "")
            line = "\n" if text[place.start] == "#" else " "  # a directive has a line of its own
            edits.append(Edit(place.start, place.start, f"{opening}{' '.join(f'{call};' for call in calls)}{line}"))
            edits.append(Edit(place.end, place.end, closing))
    for number, array in enumerate(accesses.arrays):
        text = (
            f" const struct metafork_local {prefix}local{number} __attribute__((cleanup(metafork_forget))) = "
            f"{{(const void *){array.name}, sizeof({array.name})}};"
        )
        if array.fresh:
            text += f" metafork_fresh((const void *){array.name}, (long long)sizeof({array.name}));"
        edits.append(Edit(array.declared, array.declared, text))
    edits += [
        Edit(one.declared, one.declared, f" metafork_fresh((const void *){one.name}, -1);") for one in accesses.memory
    ]
    return edits


def entry_sizes(function: Function, accesses: HostAccesses, prefix: str) -> str:
    """Return declarations that keep the sizes of arrays as they are when a function begins: C forgets them."""
    sized = _sized(function)
    names = {
        access.name
        for place in accesses.places
        for access in place.accesses
        if access.kind == "parameter" and access.name in sized and access.indices[:1] in ((), (None,))
    }
    return "".join(f" const long long {prefix}size_{name} = {byte_size(sized[name])};" for name in sorted(names))


def byte_size(array: Array) -> str:
    """Return the size of an array in bytes, computed in 64 bits from its declared extents."""
    names = {p.name for extent in array.extents for p in walk_expression(extent) if isinstance(p, Var)}
    wide = Spelling({name: f"(long long){name}" for name in names})
    extents = "".join(f" * (long long)({expression(extent, wide)})" for extent in array.extents)
    return f"(long long){array.element.size}{extents}"


def _sized(function: Function) -> dict[str, Array]:
    return {one.name: one.array for one in function.values if one.array is not None and not one.array.endless}


def _call(access: HostAccess, sized: dict[str, Array], prefix: str) -> str:
    how = access.reads + 2 * access.writes
    if access.kind == "call":
        return "metafork_calls()"
    if access.kind == "freed":
        return f"metafork_freed((const void *){access.name})"
    whole = not access.indices or access.indices[0] is None
    if access.kind == "everything" or (access.kind == "parameter" and whole and access.name not in sized):
        return f"metafork_touch_all({how})"
    start = f"(const void *){'&' if access.kind == 'object' else ''}{access.name}"
    size = f"{prefix}size_{access.name}" if access.kind == "parameter" else f"(long long)sizeof({access.name})"
    if not access.indices:
        return f"metafork_touch({start}, 0, {size}, {how})"
    sizes = [f"(long long)sizeof({access.name}{'[0]' * rank})" for rank in range(1, len(access.indices) + 1)]
    starts: list[str] = []
    strides: dict[int, list[str]] = {number: [] for number in range(len(access.trips))}
    wholes: list[str] = []
    for index, element, around in zip(access.indices, sizes, [size, *sizes], strict=False):
        if index is None:
            wholes.append(f"{element}, {around} / {element}")
            continue
        starts.append(f"{index.start} * {element}")
        for loop, step in index.steps:
            strides[loop].append(f"{step} * {element}")
    steps = [f"{' + '.join(strides[loop]) or '0'}, {trips}" for loop, trips in enumerate(access.trips)] + wholes
    offset = " + ".join(starts) or "0"
    if not steps:
        return f"metafork_touch({start}, {offset}, {sizes[-1]}, {how})"
    all_steps = f"(const long long[]){{{', '.join(steps)}}}"
    return f"metafork_touch_steps({start}, {offset}, {sizes[-1]}, {how}, {len(steps)}, {all_steps})"
