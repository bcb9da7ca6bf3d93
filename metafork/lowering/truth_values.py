"""Memories of truth values, ``_Bool x[n]``, as memories of bytes: OpenCL has no pointers to ``bool``.

What is stored there becomes 0 or 1 first, as C has it; what is read is promoted to ``int`` either way.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Kernel
from metafork.ir.program import Assign, Cast, Element, Stmt, binary
from metafork.ir.visitor import Body, Rewriter

_BYTE = ScalarType.UNSIGNED_CHAR


def as_bytes(kernel: Kernel) -> Kernel:
    """Return the kernel with bytes for truth values in memory; itself where it has none."""
    if all(memory.element is not ScalarType.BOOL for memory in kernel.memories):
        return kernel
    memories = tuple(
        replace(memory, element=_BYTE) if memory.element is ScalarType.BOOL else memory for memory in kernel.memories
    )
    return replace(kernel, memories=memories, body=_AsBytes().body(kernel.body))


class _AsBytes(Rewriter):
    def element(self, node: Element, number: int) -> Element:
        return replace(node, type=_BYTE) if node.type is ScalarType.BOOL else node

    def assign(self, node: Assign) -> Stmt | Body:
        target, value = node.target, node.value
        if isinstance(target, Element) and target.type is ScalarType.BOOL:
            result = binary(node.op, target, value) if node.op else value
            plain = not node.op and value.type is ScalarType.BOOL
            node = replace(node, op="", value=value if plain else Cast(ScalarType.BOOL, result))
        return super().assign(node)
