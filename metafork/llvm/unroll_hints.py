"""Which loops nvcc unrolls although LLVM's own heuristics would leave them, seen in the PTX of both, and which not.

nvcc unrolls an innermost counted loop by four also where its trip count costs a division (the step is an argument of
the kernel or the extent of the block) or where the loop has a second condition.  A register count that is to follow
nvcc's has to see that.  A body of which four copies would be large is copied twice, and the largest are left alone.
Loops of which the text says how often are not unrolled: those that it keeps as they are (``METAFORK_ROLLED``: most that
copy windows), and those whose body is several iterations already (``METAFORK_UNROLLED_BY``), of which a further copy
takes the registers of the one before.
"""

from __future__ import annotations

from collections.abc import Collection

from metafork.ir import program as ir

# (factor, most operations and accesses in a body that is unrolled by it), found on the programs of bench/registers.
_FACTORS = ((4, 32), (2, 60))


def unroll_factor(loop: ir.For, arguments: Collection[str], depth: int) -> int:
    """Return by how much to expect that nvcc unrolls the loop; 1 is never, 0 where that is left to LLVM.

    ``arguments`` are the scalar arguments of the kernel, ``depth`` is the number of loops around the loop.  One that is
    unrolled is innermost, free of barriers and ``break``, touches memory, counts by a constant or by an argument, and
    runs to a bound that is no constant (a loop with constant bounds is unrolled whole by either compiler).  A loop that
    counts by the width of the block, as those that copy windows do, is unrolled where only the loop over blocks is
    around it, and never elsewhere.
    """
    if loop.copies > 0:
        return 1
    if loop.step is None or loop.condition is None or loop.step.op not in ("+", "-"):
        return 0
    match loop.step.value:
        case ir.IntConst():
            pass
        case ir.Var(name=name) if name in arguments:
            pass
        case ir.Cast(operand=ir.Var(name="blockDim.x" | "blockDim.y" | "blockDim.z")) if depth > 1:
            return 1
        case ir.Cast(operand=ir.Var(name="blockDim.x")):
            pass
        case _:
            return 0
    inside = list(ir.walk_statements(loop.body))
    if any(isinstance(stmt, (ir.For, ir.While, ir.Barrier, ir.Break)) for stmt in inside):
        return 0
    expressions = [expr for stmt in inside for expr in ir.expressions_of(stmt)]
    if not any(isinstance(part, ir.Element) for expr in expressions for part in ir.walk_expression(expr)):
        return 0
    operations = sum(map(_operations, expressions)) + sum(isinstance(stmt, ir.Assign) for stmt in inside)
    counter = loop.step.target
    bound_varies = any(
        isinstance(part, (ir.Var, ir.Element)) and part != counter for part in ir.walk_expression(loop.condition)
    )
    if not bound_varies:
        return 0
    return next((factor for factor, most in _FACTORS if operations <= most), 0)


def _operations(expr: ir.Expr) -> int:
    """Count binary operations and accesses; what computes an index is shared by the copies or folded into offsets."""
    if isinstance(expr, ir.Element):
        return 1
    return isinstance(expr, ir.Binary) + sum(map(_operations, ir.subexpressions(expr)))
