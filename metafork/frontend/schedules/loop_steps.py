"""Several variables and steps of one loop: one of each makes the loop, the others stand around and in it.

for (int i = 0, j = n; i < j; i++, j--) S  -->  int j = n; for (int i = 0; i < j; i++) { S j--; }
"""

from __future__ import annotations

from collections.abc import Sequence

from metafork.ir import program as ir


def own_start(
    starts: Sequence[ir.Stmt], steps: Sequence[ir.Assign]
) -> tuple[tuple[ir.Stmt, ...], ir.Declare | ir.Assign | None]:
    """Return what stands in front of a loop, and its own start: that of a variable that it steps, or the last one."""
    stepped = {step.target.name for step in steps if isinstance(step.target, ir.Var)}
    for number, start in enumerate(starts):
        if isinstance(start, ir.Declare) and start.name in stepped:
            others = (*starts[:number], *starts[number + 1 :])
            if not any(start.name in _names(later) for later in starts[number + 1 :]):
                return others, start
    last = starts[-1] if starts else None
    return (tuple(starts[:-1]), last) if isinstance(last, ir.Declare | ir.Assign) else (tuple(starts), None)


def own_step(steps: Sequence[ir.Assign], variable: str) -> tuple[tuple[ir.Assign, ...], ir.Assign]:
    """Return the steps for the end of the body, and the loop's own: that of ``variable`` where their order is free."""
    own = next((step for step in steps if isinstance(step.target, ir.Var) and step.target.name == variable), None)
    if own is None or not _commute(steps):
        return tuple(steps[:-1]), steps[-1]
    return tuple(step for step in steps if step is not own), own


def _commute(steps: Sequence[ir.Assign]) -> bool:
    names = [_names(step) for step in steps]
    return all(
        isinstance(step.target, ir.Var)
        and not any(step.target.name in others for other, others in enumerate(names) if other != number)
        for number, step in enumerate(steps)
    )


def _names(stmt: ir.Stmt) -> set[str]:
    return {
        part.name
        for one in ir.walk_statements((stmt,))
        for expression in ir.expressions_of(one)
        for part in ir.walk_expression(expression)
        if isinstance(part, ir.Var)
    }
