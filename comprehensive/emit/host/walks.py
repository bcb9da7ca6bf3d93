"""C text by which the host finds out, before a schedule runs, what it touches of arrays without extents."""

from __future__ import annotations

from msgspec.structs import replace

from metafork.analysis.extents.host_walk import HostWalk
from metafork.comprehensive.emit.host.host_touches import byte_size
from metafork.comprehensive.emit.host.stated_order import computed_as_written
from metafork.comprehensive.emit.signature import Signature
from metafork.ir.translation_unit import StatedOrder
from metafork.printing.metafork_text import serial_text

LEAST, MOST = "-0x7fffffffffffffff - 1", "0x7fffffffffffffff"
"""The ends of ``long``."""


def walked(walk: HostWalk, signature: Signature, prefix: str) -> list[str]:
    """Return statements that fill ``reach``, the first byte and the number of bytes of each array, where none told.

    ``prefix`` begins names that hide none of the text.
    """
    arrays = {array.name: array for array in signature.moved}
    numbers = {name: number for number, name in enumerate(arrays)}
    asked = ", ".join(f"(const void *){name}" for name in walk.least)
    unknown = ", ".join(["0, -1"] * len(arrays))
    lines = [
        f"long long {prefix}reach[] = {{{unknown}}};",
        f"const int {prefix}walks = metafork_untold((const void *const[]){{{asked}}}, {len(walk.least)})"
        + "".join(f"\n  && {one}" for one in computed_as_written(signature.program, StatedOrder((), ())))
        + ";",
        f"if ({prefix}walks) {{ /* the indices of the schedule say how much there is of {', '.join(walk.least)} */",
    ]
    read = [arrays[name] for name in walk.read]
    if any(one.endless for one in read):
        lines.append("metafork_touch_all(1);")
    else:
        lines += [f"metafork_touch((const void *){one.name}, 0, {byte_size(one)}, 1);" for one in read]
    for name in walk.least:
        lines.append(f"long {walk.least[name]} = {MOST}, {walk.most[name]} = {LEAST};")
    views = tuple(one for one in walk.program.arrays if (one.whole or one.name) in walk.read)
    lines.append(serial_text(replace(walk.program, arrays=views), walk.program.body))
    for name in walk.least:
        ends = f"{walk.least[name]}, {walk.most[name]}, sizeof({name}[0])"
        lines.append(f"metafork_reached({prefix}reach + {2 * numbers[name]}, {ends});")
    return [*lines, "}"]
