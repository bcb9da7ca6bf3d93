"""Variables of the function that all threads add to, without a ``meta_reduction`` that says so."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import Reporter

_REDUCED = {"+=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}


def _updates(name: str, body: syntax.Statement) -> list[syntax.Assignment | syntax.Prefix | syntax.Postfix]:
    """Return the updates of a variable by an operator that may be a reduction's."""
    found: list[syntax.Assignment | syntax.Prefix | syntax.Postfix] = []
    for one in syntax.walk_statements(body):
        part = one.expression if isinstance(one, syntax.ExpressionStatement) and not one.atomic else None
        match part:
            case (
                syntax.Assignment(op="+=" | "*=" | "&=" | "|=" | "^=", target=syntax.Name(name=target))
                | syntax.Prefix(op="++", operand=syntax.Name(name=target))
                | syntax.Postfix(op="++", operand=syntax.Name(name=target))
            ) if target == name:
                found.append(part)
            case _:
                pass
    return found


def is_added_up(name: str, writes: Sequence[syntax.Name], body: syntax.Statement) -> bool:
    """Say whether a variable is only updated, always by one operator, in a ``meta_for``."""
    updates = _updates(name, body)
    uses = [part for part in syntax.expressions_in(body) if isinstance(part, syntax.Name) and part.name == name]
    operators = {_REDUCED[one.op] if isinstance(one, syntax.Assignment) else "+" for one in updates}
    return len(updates) == len(writes) == len(uses) and len(operators) == 1


def refuse_sum(
    schedule: syntax.ScheduleStatement, variable: Variable, writes: Sequence[syntax.Name], reporter: Reporter
) -> None:
    """Refuse what all threads add to, without a clause that says so."""
    update = _updates(variable.name, schedule.body)[0]
    op = _REDUCED[update.op] if isinstance(update, syntax.Assignment) else "+"
    loops = (one for one in syntax.walk_statements(schedule.body) if isinstance(one, syntax.ForStatement) and one.meta)
    loop = next(loops, None)
    head = "meta_for (...)" if loop is None else " ".join(reporter.written(loop.head).split())
    allowed = ""
    if variable.type is not None and variable.type.floating:
        allowed = ", and allow another order of additions: `--reassociate`"
    reporter.error(
        "MF0304",
        writes[0].span,
        f"all threads {'add to' if op == '+' else 'update'} `{variable.name}`, and the schedule does not say so",
        reason="without a clause each thread has a copy of its own, and no copy comes back.",
        way_out=f"put a reduction in front of the loop{allowed}:\n  meta_reduction({op}: {variable.name})\n  {head}",
        related=((variable.span, "declared here"),),
    )
