"""C text by which the host announces what it is about to touch, and the arrays that end with a block.

``metafork_touch(start, offset, bytes, how)`` (``metafork/host.h``) stands in front of a statement, or by a comma in
front of an expression.  Offsets are computed in integers, so that no pointer leaves its array in code that is not
reached.
"""

from __future__ import annotations

from metafork.ir.program import Array, Var, walk_expression
from metafork.ir.translation_unit import Function, HostAccess, HostAccesses
from metafork.lazy_dataclass import dataclass
from metafork.printing.expressions import Spelling, expression


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def touches(function: Function, accesses: HostAccesses, prefix: str) -> list[Edit]:
    """Return the edits that announce the accesses of a function; ``prefix`` begins names that hide none of the text."""
    edits: list[Edit] = []
    sized = _sized(function)
    for place in accesses.places:
        calls = [_call(access, sized, prefix) for access in place.accesses]
        if place.kind == "expression":
            edits.append(Edit(place.start, place.start, f"({', '.join(calls)}, "))
            edits.append(Edit(place.end, place.end, ")"))
        else:
            opening, closing = ("{ ", " }") if place.kind == "alone" else ("", "")
            edits.append(Edit(place.start, place.start, f"{opening}{' '.join(f'{call};' for call in calls)} "))
            edits.append(Edit(place.end, place.end, closing))
    for number, array in enumerate(accesses.arrays):
        text = (
            f" const struct metafork_local {prefix}local{number} __attribute__((cleanup(metafork_forget))) = "
            f"{{(const void *){array.name}, sizeof({array.name})}};"
        )
        edits.append(Edit(array.declared, array.declared, text))
    return edits


def entry_sizes(function: Function, accesses: HostAccesses, prefix: str) -> str:
    """Return declarations that keep the sizes of arrays as they are when a function begins: C forgets them."""
    sized = _sized(function)
    names = {
        access.name
        for place in accesses.places
        for access in place.accesses
        if access.kind == "parameter" and not access.indices and access.name in sized
    }
    return "".join(f" const long long {prefix}size_{name} = {byte_size(sized[name])};" for name in sorted(names))


def byte_size(array: Array) -> str:
    """Return the size of an array in bytes, computed in 64 bits from its declared extents."""
    names = {p.name for extent in array.extents for p in walk_expression(extent) if isinstance(p, Var)}
    wide = Spelling({name: f"(long long){name}" for name in names})
    extents = "".join(f" * (long long)({expression(extent, wide)})" for extent in array.extents)
    return f"(long long){array.element.size}{extents}"


def _sized(function: Function) -> dict[str, Array]:
    return {one.name: one.array for one in function.parameters if one.array is not None}


def _call(access: HostAccess, sized: dict[str, Array], prefix: str) -> str:
    how = access.reads + 2 * access.writes
    if access.kind == "everything" or (access.kind == "parameter" and not access.indices and access.name not in sized):
        return f"metafork_touch_all({how})"
    start = f"(const void *){'&' if access.kind == 'object' else ''}{access.name}"
    if not access.indices:
        size = f"{prefix}size_{access.name}" if access.kind == "parameter" else f"(long long)sizeof({access.name})"
        return f"metafork_touch({start}, 0, {size}, {how})"
    sizes = [f"(long long)sizeof({access.name}{'[0]' * rank})" for rank in range(1, len(access.indices) + 1)]
    offset = " + ".join(f"(long long){_operand(i)} * {size}" for i, size in zip(access.indices, sizes, strict=True))
    return f"metafork_touch({start}, {offset}, {sizes[-1]}, {how})"


def _operand(text: str) -> str:
    return text if text.startswith("(") else f"({text})"
