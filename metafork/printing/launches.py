"""One text for two kernels: for launches whose grid is the program's, and for those whose blocks walk a larger one.

The kernel form walks the grid with a stride in each dimension.  The text spells such a loop with the macros of
``metafork/device.h``, by which it is one block and no loop in the first kernel; what only the next block of the same
thread-block needs, the last barrier, is left to the second.
"""

from __future__ import annotations

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Assign, Barrier, Binary, Call, Declare, For, If, Stmt, Var

LARGE = Var("METAFORK_LARGE", ScalarType.BOOL)
"""What the text of a kernel asks whether blocks walk the grid."""


def for_both(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the body of a kernel with its walk of the grid spelled for both kinds of launches."""
    return tuple(_spelled(stmt) if isinstance(stmt, For) else stmt for stmt in body)


def _spelled(loop: For) -> For:
    match loop:
        case For(
            init=Declare(value=Var() as first),
            condition=Binary(op="<", left=Var() as counter, right=extent),
            step=Assign(value=stride),
            body=body,
        ) if first.name.startswith("blockIdx."):
            inner = for_both(body)
            if inner == body and body and isinstance(body[-1], Barrier):
                inner = (*body[:-1], If(LARGE, (Barrier(),)))
            return For(
                Declare(counter.name, counter.type, Call("METAFORK_FIRST", (first, extent), counter.type)),
                loop.condition,
                Assign(counter, "", Call("METAFORK_NEXT", (counter, extent, stride), counter.type)),
                inner,
            )
    return loop
