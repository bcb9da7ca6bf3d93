"""Variables of the function that all threads add to, without a ``meta_reduction`` that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import Reporter

_REDUCED = ("+", "*", "&", "|", "^")


def sums_of_others(
    schedule: syntax.ScheduleStatement,
    places: Mapping[str, Sequence[syntax.Name]],
    visible: Mapping[str, Variable],
    reporter: Reporter,
) -> None:
    """Report parameters and variables of the file that all threads add to."""
    results = {name.name for name in syntax.results_of(schedule)}
    for name, writes in places.items():
        variable = visible.get(name)
        if variable is None or variable.type is None or variable.const or name in results:
            continue
        if (variable.is_parameter or variable.is_global) and is_added_up(name, writes, schedule.body):
            refuse_sum(schedule, variable, writes, reporter)


def _update(name: str, one: syntax.Statement) -> tuple[str, int] | None:
    """Return the operator of a statement that updates a variable, and how often it names the variable for that."""
    expression = one.expression if isinstance(one, syntax.ExpressionStatement) and not one.atomic else None
    match expression:
        case (
            syntax.Prefix(op="++", operand=syntax.Name(name=target))
            | syntax.Postfix(op="++", operand=syntax.Name(name=target))
        ) if target == name:
            return "+", 1
        case syntax.Assignment(op="+=" | "*=" | "&=" | "|=" | "^=" as op, target=syntax.Name(name=target)):
            return (op[0], 1) if target == name else None
        case syntax.Assignment(
            op="=", target=syntax.Name(name=target), value=syntax.Infix(op=op, left=left, right=right)
        ) if target == name and op in _REDUCED:
            return (
                (op, 2) if any(isinstance(part, syntax.Name) and part.name == name for part in (left, right)) else None
            )
        case _:
            return None


def is_added_up(name: str, writes: Sequence[syntax.Name], body: syntax.Statement) -> bool:
    """Say whether a variable is only updated, always by one operator, in a ``meta_for``."""
    updates = [found for one in syntax.walk_statements(body) if (found := _update(name, one)) is not None]
    uses = [part for part in syntax.expressions_in(body) if isinstance(part, syntax.Name) and part.name == name]
    expected = sum(named for _, named in updates)
    return len(updates) == len(writes) and expected == len(uses) and len({op for op, _ in updates}) == 1


def refuse_sum(
    schedule: syntax.ScheduleStatement, variable: Variable, writes: Sequence[syntax.Name], reporter: Reporter
) -> None:
    """Refuse what all threads add to, without a clause that says so."""
    every = tuple(syntax.walk_statements(schedule.body))
    op = next(found[0] for one in every if (found := _update(variable.name, one)) is not None)
    loop = next((one for one in every if isinstance(one, syntax.ForStatement) and one.meta), None)
    head = "meta_for (...)" if loop is None else " ".join(reporter.written(loop.head).split())
    name, allowed, before = variable.name, "", ""
    if variable.type is not None and variable.type.floating:
        allowed = ", and allow another order of additions: `--reassociate`"
    if variable.type is not None and (variable.is_parameter or variable.is_global):
        what = "parameter" if variable.is_parameter else "global variable"
        before = f"a {what} does not come back from the GPU: write `{variable.type.spelling} {name}_sum = {name};` in "
        before += f"front of the schedule, `{name} = {name}_sum;` behind it, and `{name}_sum` for `{name}` in it; then "
        name = f"{name}_sum"
    reporter.error(
        "MF0304",
        writes[0].span,
        f"all threads {'add to' if op == '+' else 'update'} `{variable.name}`, and the schedule does not say so",
        reason="without a clause each thread has a copy of its own, and no copy comes back.",
        way_out=f"{before}put a reduction in front of the loop{allowed}:\n  meta_reduction({op}: {name})\n  {head}",
        related=((variable.span, "declared here"),),
    )
