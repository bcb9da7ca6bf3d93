"""C text by which the host finds out, before a schedule runs, what it touches of arrays without extents."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.extents.host_walk import host_walk
from metafork.comprehensive.emit.host.host_touches import byte_size
from metafork.comprehensive.emit.host.stated_order import computed_as_written
from metafork.comprehensive.emit.signature import Signature
from metafork.ir import program as ir
from metafork.ir.translation_unit import StatedOrder
from metafork.printing.metafork_text import serial_text

LEAST, MOST = "-0x7fffffffffffffff - 1", "0x7fffffffffffffff"
"""The ends of ``long``."""


class WalkText(Struct, frozen=True):
    """Statements in front of a run and behind it, when it ``may_run``, and what it is given more."""

    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    may_run: tuple[str, ...] = ()
    argument: tuple[str, ...] = ()


def walk_text(signature: Signature, prefix: str) -> WalkText:
    """Return what finds out ``reach``, the first byte and the number of bytes of each array, and packs rows.

    ``prefix`` begins names that hide none of the text.
    """
    walk = host_walk(signature.program)
    if walk is None:
        return WalkText()
    arrays = {array.name: array for array in signature.moved}
    packed = {name: (arrays[name], handle) for name, handle in walk.tables.items()}
    asked = [*walk.least, *(array.table for array, _ in packed.values())]
    pointers = ", ".join(f"(const void *){name}" for name in asked)
    conditions = computed_as_written(_without_pitches(signature.program), StatedOrder((), ()))
    lines = [f"long long {prefix}reach[] = {{{', '.join(['0, -1'] * len(arrays))}}};"]
    for name, (array, handle) in packed.items():
        lines += _table(array, handle, written=name in signature.written)
    scalars = walk.scalars
    remembers = scalars is not None and bool(walk.read) and all(name and not arrays[name].endless for name in walk.read)
    kept = f"{prefix}read, {len(walk.read)}, {prefix}numbers, {len(scalars or ())}, {prefix}reach, {2 * len(arrays)}"
    if remembers and scalars is not None:
        parts = ", ".join(f"{{(const void *){one}, {byte_size(arrays[one])}}}" for one in walk.read)
        numbers = ", ".join(f"(long long){one}" for one in scalars)
        lines += [
            f"static __thread long long {prefix}walked[{1 + 2 * len(walk.read) + len(scalars) + 2 * len(arrays)}];",
            f"const struct metafork_local {prefix}read[] = {{{parts}}};",
            f"const long long {prefix}numbers[] = {{{numbers or 0}}};",
        ]
    lines += [
        f"const int {prefix}walks = metafork_untold((const void *const[]){{{pointers}}}, {len(asked)})"
        + "".join(f"\n  && {one}" for one in conditions)
        + ";",
        f"if ({prefix}walks{f' && !metafork_recall({prefix}walked, {kept})' if remembers else ''}) {{ "
        f"/* the indices of the schedule say how much there is of {', '.join(asked)} */",
    ]
    read = [arrays[name] for name in walk.read if name]
    if "" in walk.read or any(one.endless for one in read):
        lines.append("metafork_touch_all(1);")
    else:
        lines += [f"metafork_touch((const void *){one.name}, 0, {byte_size(one)}, 1);" for one in read]
    for name in walk.least:
        lines.append(f"long {walk.least[name]} = {MOST}, {walk.most[name]} = {LEAST};")
    views = tuple(one for one in walk.program.arrays if one.table or (one.whole or one.name) in walk.read)
    lines.append(serial_text(replace(walk.program, arrays=views), walk.program.body))
    for number, name in enumerate(arrays):
        if name in walk.least:
            ends = f"{walk.least[name]}, {walk.most[name]}, sizeof({name}[0])"
            lines.append(f"metafork_reached({prefix}reach + {2 * number}, {ends});")
    lines += [*([f"metafork_retain({prefix}walked, {kept});"] if remembers else []), "}"]
    for number, name in enumerate(arrays):
        if name in packed:
            lines += _packed(*packed[name], f"{prefix}walks", f"{prefix}reach[{2 * number + 1}]")
    return WalkText(
        tuple(lines),
        tuple(f"metafork_unpack_rows({handle});" for _, handle in packed.values()),
        tuple(f"{array.name} != 0" for array, _ in packed.values()),
        (f"{prefix}walks ? {prefix}reach : 0",),
    )


def _without_pitches(program: ir.Program) -> ir.Program:
    """Return a program whose trip counts are computed before the lengths of packed rows are known."""
    return replace(program, arrays=tuple(one for one in program.arrays if not one.table))


def _table(array: ir.Array, handle: str, *, written: bool) -> list[str]:
    rows = f".metafork_rows = (void *const *){array.table}, .metafork_size = sizeof({array.table}[0][0])"
    return [
        f"struct metafork_table {handle}_own __attribute__((cleanup(metafork_end_table))) = "
        f"{{{rows}, .metafork_written = {int(written)}}};",
        f"struct metafork_table *const {handle} = &{handle}_own;",
    ]


def _packed(array: ir.Array, handle: str, walks: str, reach: str) -> list[str]:
    """Return the declarations of an array of rows and of how long they are; its size, where nobody else says it."""
    pitch = array.extents[1]
    assert isinstance(pitch, ir.Var)
    size = "0" if array.endless else byte_size(array)
    lines = [
        f"const long {pitch.name} = metafork_pitch({handle});",
        f"{array.element.spelling} *const {array.name} = {walks} ? metafork_pack_rows({handle}, {size}) : 0;",
    ]
    return [*lines, f"if ({array.name} != 0) {reach} = {handle}->metafork_bytes;"]
