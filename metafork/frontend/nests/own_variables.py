"""Variables that a schedule uses as its own, though the function declares them: ``int i, j, k;`` as in C89.

A scalar local of the function that a schedule writes is declared inside the schedule instead, where nobody can tell the
difference: its value is dead behind the schedule, and every iteration writes it before it reads it (*privatization*;
here by live variables).  It is declared in the heads of loops that start it, where it is dead behind the loop, and
otherwise at the beginning of the innermost ``meta_for`` that has all uses of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec.structs import replace

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.nests.liveness import Effect, Liveness
from metafork.frontend.nests.shape import written
from metafork.frontend.nests.unsaid_sums import is_added_up, refuse_sum, sums_of_others
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.syntax_changes import with_statements
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


def with_own_variables(host: HostFunction, site: Site, reporter: Reporter) -> syntax.ScheduleStatement:
    """Return a schedule in which the variables of the function that are its own are declared.

    Reports those that are not, and why; raises ``RefusedError`` where such a one is that of a ``meta_for``.
    """
    schedule = site.statement
    results = {name.name for name in syntax.results_of(schedule)}
    places: dict[str, list[syntax.Name]] = {}
    for place in written(schedule.body):
        places.setdefault(place.name, []).append(place)
    heads = {
        id(one.init.target): one
        for one in syntax.walk_statements(schedule.body)
        if isinstance(one, syntax.ForStatement) and one.meta and isinstance(one.init, syntax.Assignment)
    }
    for name, writes in places.items():
        variable = site.visible.get(name)
        head = next((place for place in writes if id(place) in heads), None)
        if head is not None and host.is_certain and name in free_names(schedule.body):
            _refuse_index(heads[id(head)], head, variable, reporter)
        pointer = variable is not None and _is_local_pointer(variable)
        if variable is None or name in results or not (pointer or _is_plain_local(variable)):
            continue
        if not host.is_certain or name in host.in_pragmas or name not in free_names(schedule.body):
            continue
        found = None
        reason = "its value is read behind the schedule, and no value comes back from the threads."
        way_out = "use an array of one element for a result, `meta_reduction` for a sum, else a variable of its own."
        if _is_dead_behind(host, site, variable):
            found = _Owner(variable).owned(schedule.body)
            reason = "an iteration may read it before it assigns it: a value of another iteration, or an older one."
            way_out = "assign it first in every iteration; what all of them add up is a `meta_reduction`."
        if found is not None:
            schedule = replace(schedule, body=found)
        if found is not None or pointer:
            continue
        if is_added_up(name, writes, schedule.body):
            refuse_sum(schedule, variable, writes, reporter)
            continue
        message = f"`{name}` is declared outside the schedule and written in it"
        related = ((variable.span, "declared here"),)
        if head is not None:
            if not _is_dead_behind(host, site, variable):
                raise _read_behind(host, heads[id(head)], head, site, reporter)
            raise reporter.refuse("MF0304", writes[0].span, message, reason=reason, way_out=way_out, related=related)
        if not _is_dead_behind(host, site, variable) and _set(schedule.body, writes):
            message = f"a thread writes `{name}`, and the host reads it after the schedule"
            read = _first_read(host, name, site)
            related = (*related, *(() if read is None else ((read, "it is read here"),)))
            reason = "threads write scalars of their own. Only arrays come back from the GPU."
            assert variable.type is not None
            way_out = (
                f"for the value of one thread, use an array of one element, `{variable.type.spelling} {name}[1];`. For "
                f"the greatest value of all threads, put `meta_reduction(max: {name})` in front of the `meta_for`, and "
                "assign the greater of two."
            )
        for place in writes:
            reporter.error("MF0304", place.span, message, reason=reason, way_out=way_out, related=related)
    sums_of_others(schedule, places, site.visible, reporter)
    return schedule


def _refuse_index(loop: syntax.ForStatement, index: syntax.Name, variable: Variable | None, reporter: Reporter) -> None:
    """Refuse the variable of a ``meta_for`` that nothing declares, or that is not one of the function alone."""
    way_out = f"declare it in the loop:\n{_with_declaration(loop, index, reporter)}"
    if variable is None:
        reason = "each iteration has a variable of its own."
        raise reporter.refuse("MF0301", index.span, f"`{index.name}` is not declared", reason=reason, way_out=way_out)
    if variable.is_global or variable.is_parameter:
        what = "global" if variable.is_global else "a parameter"
        raise reporter.refuse(
            "MF0103",
            index.span,
            f"the variable of a `meta_for` cannot be {what}",
            reason="each iteration has a variable of its own.",
            way_out=way_out,
            related=((variable.span, "declared here"),),
        )


def _read_behind(
    host: HostFunction, loop: syntax.ForStatement, index: syntax.Name, site: Site, reporter: Reporter
) -> RefusedError:
    """Refuse the variable of a ``meta_for`` that is read after the schedule."""
    name, read = index.name, _first_read(host, index.name, site)
    head = _with_declaration(loop, index, reporter)
    last = "use another variable after the schedule"
    if re.fullmatch(rf"meta_for \(int {name} = 0; {name} < [^;]+; ({name}\+\+|\+\+{name})\)", head):
        end = head.split(";")[1].partition("<")[2].strip()
        last = f"write `{end}` in place of `{name}` after the schedule"
    return reporter.refuse(
        "MF0304",
        index.span,
        f"`{name}` is the variable of a `meta_for`, and is read after the schedule",
        reason=f"iterations of a `meta_for` run at the same time, so `{name}` has no last value.",
        way_out=f"{last}, and declare it in the loop:\n{head}",
        related=() if read is None else ((read, "it is read here"),),
    )


def _first_read(host: HostFunction, name: str, site: Site) -> Span | None:
    """Return where a variable is named for the first time behind a schedule."""
    named = (
        part.span
        for one in syntax.expressions_in(host.body)
        for part in syntax.walk(one)
        if isinstance(part, syntax.Name) and part.name == name and part.span.start >= site.statement.span.end
    )
    return min(named, key=lambda span: span.start, default=None)


def _set(body: syntax.Statement, writes: Sequence[syntax.Name]) -> bool:
    """Say whether all writes are plain assignments."""
    places = {
        id(one.target) for one in syntax.expressions_in(body) if isinstance(one, syntax.Assignment) and one.op == "="
    }
    return all(id(place) in places for place in writes)


def _with_declaration(loop: syntax.ForStatement, index: syntax.Name, reporter: Reporter) -> str:
    before, behind = (
        reporter.text(*ends) for ends in ((loop.head.start, index.span.start), (index.span.start, loop.head.end))
    )
    return " ".join(f"{before}int {behind}".split())


def _is_plain_local(variable: Variable) -> bool:
    ours = not (variable.is_parameter or variable.is_global or variable.const or variable.fault)
    return ours and variable.type not in (None, ScalarType.BOOL) and variable.escapes == math.inf


def _is_local_pointer(variable: Variable) -> bool:
    """Say whether a variable is a pointer of the function to numbers."""
    ours = not (variable.is_parameter or variable.is_global) and variable.escapes == math.inf
    return ours and variable.pointed is not None and not variable.rows and variable.structure is None


def _is_dead_behind(host: HostFunction, site: Site, variable: Variable) -> bool:
    """Return whether nothing reads the value that a variable has behind a schedule."""
    liveness = Liveness(variable.name, variable.span)
    liveness.before(host.body, False)
    return not liveness.behind.get(id(site.statement), True)


class _Owner:
    """Declares one variable inside a schedule."""

    def __init__(self, variable: Variable) -> None:
        self._name = variable.name
        type_ = variable.type or variable.pointed
        assert type_ is not None
        words, stars = tuple(type_.spelling.split()), int(variable.type is None)
        const = frozenset({"const"} if stars and variable.const else ())
        self._type = syntax.TypeName(words, const, frozenset(), (), stars, False, variable.span)
        self._span = variable.span

    def owned(self, body: syntax.Statement) -> syntax.Statement | None:
        """Return the body of a schedule with the variable declared in it, ``None`` where it is not its own."""
        liveness = Liveness(self._name)
        if liveness.before(body, False):
            return None
        body = self._in_heads(body, liveness)
        liveness = Liveness(self._name)
        liveness.before(body, False)
        body = self._in_loops(body, liveness)
        return None if self._name in free_names(body) else body

    def _in_heads(self, statement: syntax.Statement, liveness: Liveness) -> syntax.Statement:
        """Declare the variable in the heads of loops that start it, where it is dead behind them."""
        if self._name not in free_names(statement):
            return statement
        if isinstance(statement, syntax.ForStatement) and not liveness.behind.get(id(statement), True):
            started = self._declared(statement.init, liveness)
            if started is not None:
                return replace(statement, init=started)
        return with_statements(statement, lambda one: self._in_heads(one, liveness))

    def _in_loops(self, statement: syntax.Statement, liveness: Liveness) -> syntax.Statement:
        """Declare the variable in the bodies of the outermost ``meta_for``s that it is dead around."""
        if self._name not in free_names(statement):
            return statement
        if isinstance(statement, syntax.ForStatement) and statement.meta:
            inside = Liveness(self._name)
            if liveness.behind.get(id(statement), True) or inside.before(statement.body, False):
                return statement
            body = with_statements(statement, lambda one: self._in_loops(one, inside))
            if self._name not in free_names(body):
                return body
            assert isinstance(body, syntax.ForStatement)
            return replace(statement, body=self._with_declaration(statement.body, inside))
        return with_statements(statement, lambda one: self._in_loops(one, liveness))

    def _with_declaration(self, body: syntax.Statement, liveness: Liveness) -> syntax.Statement:
        """Declare the variable in the innermost block that has all uses of it, where it is first assigned."""
        if not isinstance(body, syntax.Block):
            body = syntax.Block((body,), body.span)
        uses = [number for number, item in enumerate(body.items) if self._name in free_names(item)]
        first = uses[0]
        item = body.items[first]
        plain = item.expression if isinstance(item, syntax.ExpressionStatement) and not item.atomic else None
        assigned = self._declared(plain, liveness)
        declared: tuple[syntax.Statement, ...]
        if assigned is not None:
            declared = (assigned,)
        elif len(uses) == 1 and self._may_hold(item, liveness):
            declared = (with_statements(item, lambda one: self._further(one, liveness)),)
        else:
            declared = (self._declaration(None, self._span, self._span), item)
        return replace(body, items=(*body.items[:first], *declared, *body.items[first + 1 :]))

    def _may_hold(self, statement: syntax.Statement, liveness: Liveness) -> bool:
        """Return whether all uses are in statements below one, each of which can have a variable of its own."""
        own = syntax.direct_expressions(statement)
        below = syntax.direct_statements(statement)
        if not isinstance(statement, syntax.Block | syntax.IfStatement | syntax.ForStatement | syntax.WhileStatement):
            return False
        unused = all(liveness.effect(one) is Effect.NOTHING for one in own)
        return unused and not any(Liveness(self._name).before(one, False) for one in below)

    def _further(self, statement: syntax.Statement, liveness: Liveness) -> syntax.Statement:
        return self._with_declaration(statement, liveness) if self._name in free_names(statement) else statement

    def _declared(
        self, assignment: syntax.Expression | syntax.Declaration | None, liveness: Liveness
    ) -> syntax.Declaration | None:
        """Return the declaration for an assignment of the variable that does not read it."""
        match assignment:
            case syntax.Assignment(op="=", target=syntax.Name(name=name, span=place), value=value, span=span) if (
                name == self._name and liveness.effect(value) is Effect.NOTHING
            ):
                return self._declaration(value, place, span)
            case _:
                return None

    def _declaration(self, value: syntax.Expression | None, name: Span, span: Span) -> syntax.Declaration:
        type_ = replace(self._type, span=span)
        return syntax.Declaration((syntax.Declarator(self._name, type_, value, name, span),), span)
