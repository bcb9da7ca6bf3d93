"""The comment above a kernel: which one it is, what its schedule does, how it is launched, and when.

/* smooth_k0_leaf2: leaf 2 of smooth_k0.
 *   x in shared memory, s joined the grid
 *   grid (blocks * s), block (B), 4 * B + 8 bytes of shared memory
 *   if B <= 1024 && B + 2 <= Z
 *   with blocks = (n - 2) / (s * B)
 */
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from metafork.comprehensive.emit.identifiers import c_comment
from metafork.comprehensive.tree.document import ScheduleDocument
from metafork.comprehensive.tree.schedule_tree import Leaf, Variant, title_of, values_text
from metafork.ir.kernel import Kernel
from metafork.ir.program import Expr
from metafork.ir.rewriting import variables
from metafork.printing.expressions import expression

_WIDTHS = re.compile(r"\(long long\)|(?<=\d)LL\b")
"""What says only in which type something is computed."""


def kernel_comment(schedule: ScheduleDocument, leaf: Leaf, variant: Variant, kernel: Kernel) -> str:
    """Return the comment above the kernel of a variant."""
    many = len(leaf.variants)
    number = f", variant {variant.number} of {many}" if many > 1 else ""
    systems = [" && ".join(map(schedule.said, system)) for system in leaf.systems]
    shared = _plain(kernel.shared_bytes)
    parts = [
        f"{kernel.name}: leaf {leaf.id} of {schedule.name}{number}.",
        leaf.title if variant.values else title_of(variant.effects),
        f"grid ({_extents(kernel.grid)}), block ({_extents(kernel.block)})"
        + (f" or wider, up to {_plain(kernel.widest)} threads in x" if kernel.widest is not None else "")
        + (f", {shared} bytes of shared memory" if shared != "0" else "")
        + (f", {kernel.bounds[1]} or more of a multiprocessor" if kernel.bounds is not None else ""),
        f"for {values_text(variant.values)} alone" if variant.values else "",
        f"if {' || '.join(systems)}" if all(systems) and systems else "",
        f"where {' && '.join(map(schedule.said, variant.limits))}" if variant.limits else "",
        _definitions(schedule, leaf, variant, kernel),
    ]
    first, *others = map(c_comment, filter(None, parts))
    return "\n".join([f"/* {first}", *(f" *   {one}" for one in others), " */", ""])


def _plain(expr: Expr) -> str:
    return _WIDTHS.sub("", expression(expr))


def _extents(extents: Iterable[Expr]) -> str:
    texts = [_plain(one) for one in extents]
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    return ", ".join(texts)


def _definitions(schedule: ScheduleDocument, leaf: Leaf, variant: Variant, kernel: Kernel) -> str:
    """Return what the names in a comment are, those that others are made of first."""
    needed = {name for system in (variant.limits, *leaf.systems) for one in system for name in one.symbols}
    found: dict[str, str] = {}
    for one in reversed(schedule.derived):
        if one.name in needed:
            needed |= {name for operand in one.operands for name in operand.symbols}
            found[one.name] = one.definition(schedule.order)
    needed |= {name for one in (*kernel.grid, *kernel.block, kernel.shared_bytes) for name in variables(one)}
    for scalar in reversed(kernel.host_scalars):
        if scalar.name in needed:
            needed |= variables(scalar.definition)
            found.setdefault(scalar.name, _plain(scalar.definition))
    return f"with {', '.join(f'{name} = {value}' for name, value in reversed(found.items()))}" if found else ""
