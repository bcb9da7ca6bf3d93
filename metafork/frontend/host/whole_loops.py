"""Serial loops around a schedule that count from 0 to their end, and run it in each iteration.

``for (int s = 0; s < m; s++) { S t = t + 1; }`` is one for a schedule ``S``: nothing in it leaves it early or leaves
``S`` out, and neither ``s`` nor ``m`` nor an array of ``S`` changes place or value there.  Who knows what ``S`` does
for one ``s`` knows then what is done for the last one.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site
from metafork.frontend.text import syntax
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType


def whole_loops(host: HostFunction, site: Site, arrays: Collection[str]) -> tuple[tuple[str, ir.Expr], ...]:
    """Return the variables of such loops, the innermost first, and how many iterations there are."""
    found: list[tuple[str, ir.Expr]] = []
    inner: syntax.Statement = site.statement
    for loop in reversed(site.loops):
        counted = _counted(loop, site) if isinstance(loop, syntax.ForStatement) else None
        if counted is None:
            break
        variable, trips = counted
        named = {one.name for one in ir.walk_expression(trips) if isinstance(one, ir.Var)}
        if host.has_unknown(loop.span) or host.within_condition(loop.span) or host.holds_condition(loop.span):
            break
        if not all(_stays(site, name, loop) for name in {*named, variable, *arrays}):
            break
        if not _runs(loop.body, inner, host):
            break
        found.append((variable, trips))
        inner = loop
    return tuple(found)


def _counted(loop: syntax.ForStatement, site: Site) -> tuple[str, ir.Expr] | None:
    """Return the variable of a loop that counts from 0, or down to 0, by 1, and how often it runs."""
    match loop.init:
        case syntax.Declaration(declarators=(syntax.Declarator(name=name, value=start),)):
            pass
        case syntax.Assignment(op="=", target=syntax.Name(name=name), value=start):
            pass
        case _:
            return None
    match loop.step, start, loop.condition:
        case _, _, None:
            return None
        case (
            (
                syntax.Prefix(op="++" | "--" as step, operand=syntax.Name(name=stepped))
                | syntax.Postfix(op="++" | "--" as step, operand=syntax.Name(name=stepped))
            ),
            _,
            syntax.Infix(op=op, left=syntax.Name(name=compared), right=end),
        ) if name == stepped == compared:
            pass
        case _:
            return None
    match step, start, op, end:
        case "++", syntax.Constant(text="0"), "<", _:
            trips = _sum(end, site)
        case "++", syntax.Constant(text="0"), "<=", _:
            most = _sum(end, site)
            trips = None if most is None else ir.binary("+", most, ir.IntConst(1))
        case "--", syntax.Infix(op="-", left=number, right=syntax.Constant(text="1")), ">=", syntax.Constant(text="0"):
            trips = _sum(number, site)
        case _:
            return None
    type_ = site.visible[name].type if name in site.visible else None
    wraps = type_ is None or not type_.signed or type_.size < ScalarType.INT.size  # it may never come to the end
    return None if trips is None or wraps else (name, trips)


def _sum(value: syntax.Expression, site: Site) -> ir.Expr | None:
    """Return a sum of products of integers that the function is given."""
    match value:
        case syntax.Constant(text=text) if text.isdecimal() and not text.startswith("0"):
            return ir.IntConst(int(text))
        case syntax.Name(name=name) if name in site.visible and site.visible[name].is_parameter:
            type_ = site.visible[name].type
            return ir.Var(name, type_) if type_ is not None and type_.integer else None
        case syntax.Infix(op="+" | "-" | "*" as op, left=left, right=right):
            sides = _sum(left, site), _sum(right, site)
            return None if sides[0] is None or sides[1] is None else ir.binary(op, sides[0], sides[1])
        case _:
            return None


def _stays(site: Site, name: str, loop: syntax.ForStatement | syntax.WhileStatement) -> bool:
    """Say whether nothing in the body of a loop writes a variable that was there before."""
    variable = site.visible.get(name)
    body = loop.body.span
    if variable is None or variable.is_global or variable.escapes < math.inf:
        return False
    if body.start <= variable.span.start < body.end:
        return False
    return not any(body.start <= write.span.start < body.end for write in variable.writes)


def _runs(body: syntax.Statement, inner: syntax.Statement, host: HostFunction) -> bool:
    """Say whether a body runs a statement of it whenever it runs itself, and to its end."""
    items = body.items if isinstance(body, syntax.Block) else (body,)
    return any(item is inner or item == inner for item in items) and all(
        _goes_on(item, host) for item in items if item != inner
    )


def _goes_on(statement: syntax.Statement, host: HostFunction) -> bool:
    """Say whether the statement behind another one runs whenever that one does."""
    match statement:
        case syntax.ScheduleStatement() | syntax.Empty():
            return True
        case syntax.Opaque() | syntax.Jump() | syntax.LabelledStatement() | syntax.SwitchStatement():
            return False
        case syntax.WhileStatement(condition=syntax.Constant()) | syntax.ForStatement(condition=None):
            return False
        case _:
            pass
    calls = (one for direct in syntax.direct_expressions(statement) for one in syntax.walk(direct))
    if not all(_returns(one, host) for one in calls):
        return False
    first = statement.init if isinstance(statement, syntax.ForStatement) else None
    children = [*syntax.direct_statements(statement), *([first] if isinstance(first, syntax.Declaration) else [])]
    return all(_goes_on(child, host) for child in children)


def _returns(expression: syntax.Expression, host: HostFunction) -> bool:
    match expression:
        case syntax.Invocation(callee=syntax.Name(name=name)):
            return host.known.harmless(name)
        case syntax.Invocation() | syntax.Unsupported():
            return False
        case syntax.Name(uncertain=uncertain):
            return not uncertain
        case _:
            return True
