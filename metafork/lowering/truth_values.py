"""Memories of truth values, ``_Bool x[n]``, as memories of bytes: OpenCL has no pointers to ``bool``.

What is stored there becomes 0 or 1 first, as C has it; what is read is promoted to ``int`` either way.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Kernel
from metafork.ir.program import Assign, Cast, Element, Expr, For, If, Stmt, While, binary
from metafork.ir.rewriting import map_body, map_expression

_BYTE = ScalarType.UNSIGNED_CHAR


def as_bytes(kernel: Kernel) -> Kernel:
    """Return the kernel with bytes for truth values in memory; itself where it has none."""
    if all(memory.element is not ScalarType.BOOL for memory in kernel.memories):
        return kernel
    memories = tuple(
        replace(memory, element=_BYTE) if memory.element is ScalarType.BOOL else memory for memory in kernel.memories
    )
    return replace(kernel, memories=memories, body=map_body(tuple(map(_stored, kernel.body)), _read))


def _read(expr: Expr) -> Expr | None:
    if isinstance(expr, Element) and expr.type is ScalarType.BOOL:
        indices = tuple(map_expression(index, _read) for index in expr.indices)
        return Element(expr.array, indices, _BYTE, expr.span, expr.part)
    return None


def _stored(stmt: Stmt) -> Stmt:
    """Return a statement that stores 0 or 1 where it stores a truth value."""
    match stmt:
        case Assign(target=Element(type=ScalarType.BOOL) as target, op=op, value=value):
            result = binary(op, target, value) if op else value
            plain = not op and value.type is ScalarType.BOOL
            return replace(stmt, op="", value=value if plain else Cast(ScalarType.BOOL, result))
        case If(then=then, otherwise=otherwise):
            return replace(stmt, then=tuple(map(_stored, then)), otherwise=tuple(map(_stored, otherwise)))
        case For(body=body) | While(body=body):
            return replace(stmt, body=tuple(map(_stored, body)))
        case _:
            return stmt
