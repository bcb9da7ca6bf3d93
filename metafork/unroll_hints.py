"""Which loops nvcc unrolls although LLVM's own heuristics would leave them, seen in the PTX of both.

nvcc unrolls an innermost counted loop by four also where its trip count costs a division (the step is an argument of
the kernel) or where the loop has a second condition.  A register count that is to follow nvcc's has to see that.
"""

from __future__ import annotations

from collections.abc import Collection

from metafork.ir import (
    Barrier,
    Break,
    Element,
    For,
    IntConst,
    Var,
    While,
    expressions_of,
    walk_expression,
    walk_statements,
)


def unrolled_by_nvcc(loop: For, arguments: Collection[str]) -> bool:
    """Say whether to expect that nvcc unrolls the loop; ``arguments`` are the scalar arguments of the kernel.

    It is innermost, free of barriers and ``break``, touches memory, counts by a constant or by an argument, and runs
    to a bound that is no constant (a loop with constant bounds is unrolled whole by either compiler).
    """
    if loop.step is None or loop.condition is None or loop.step.op not in ("+", "-"):
        return False
    match loop.step.value:
        case IntConst():
            pass
        case Var(name=name) if name in arguments:
            pass
        case _:
            return False
    inside = list(walk_statements(loop.body))
    if any(isinstance(stmt, (For, While, Barrier, Break)) for stmt in inside):
        return False
    touches = any(
        isinstance(part, Element) for stmt in inside for expr in expressions_of(stmt) for part in walk_expression(expr)
    )
    counter = loop.step.target
    bound_varies = any(isinstance(part, (Var, Element)) and part != counter for part in walk_expression(loop.condition))
    return touches and bound_varies
