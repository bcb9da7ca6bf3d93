"""What the host code around a schedule says: variables in scope, where they are written, what their values are.

A scalar is *derived* where one assignment, which stands on every way to the schedule, gives it an expression in
variables that are not written between there and the schedule.  Everything else that the schedule reads is a parameter,
whatever computed it.  All of this is conservative: a statement that is not understood counts as a write to every
name that it may write by the look of its tokens, and as a call of something unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from metafork.frontend import syntax
from metafork.frontend.tokens import TokenKind, addressed, perhaps_written
from metafork.frontend.vocabulary import MATH_FUNCTIONS, PRINTING_FUNCTIONS, SCANNING_FUNCTIONS, scalar_type
from metafork.ir.source import Span
from metafork.ir.types import ScalarType


@dataclass(eq=False)
class Variable:
    """A variable of the host.

    ``type`` is set for scalars, ``element`` and ``extents`` for arrays with extents; ``fault`` is the code of the
    diagnostic for any other variable.  ``since`` is the offset from which it has its declared extents, ``escapes`` the
    offset where its address is given away, after which every call may write it.
    """

    name: str
    span: Span
    since: int
    type: ScalarType | None = None
    element: ScalarType | None = None
    extents: tuple[syntax.Expression, ...] = ()
    const: bool = False
    fault: str = ""
    message: str = ""
    is_global: bool = False
    is_parameter: bool = False
    escapes: float = math.inf
    scope: dict[str, Variable] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Write:
    """A write to a variable: where, the expression where it is a plain one, the block that it stands directly in."""

    span: Span
    value: syntax.Expression | None
    block: Span | None
    scope: dict[str, Variable]

    @property
    def offset(self) -> int:
        """Where it starts."""
        return self.span.start


@dataclass(frozen=True, slots=True)
class Assertion:
    """An ``assert`` of the host."""

    condition: syntax.Expression
    offset: int
    block: Span | None
    scope: dict[str, Variable]


@dataclass(frozen=True, slots=True)
class Site:
    """A schedule with what surrounds it: visible variables and the loops around it, outermost first."""

    statement: syntax.ScheduleStatement
    visible: dict[str, Variable]
    loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...]


def declared(declarator: syntax.Declarator, typedefs: dict[str, ScalarType], since: int) -> Variable:
    """Return the variable that a declarator declares."""
    type_ = declarator.type
    name = declarator.name
    variable = Variable(name, declarator.name_span, since, const="const" in type_.qualifiers)
    scalar = scalar_type(type_.words, typedefs)
    if type_.function:
        variable.fault, variable.message = "MF0206", f"`{name}` is a function"
    elif type_.pointers:
        variable.fault, variable.message = "MF0201", f"`{name}` is a pointer"
    elif type_.words == ("struct",):
        variable.fault, variable.message = "MF0205", f"`{name}` is a structure, union or enumeration"
    elif scalar is None:
        variable.fault, variable.message = (
            "MF0315",
            f"`{name}` has type `{' '.join(type_.words)}`, which no schedule can use",
        )
    elif "volatile" in type_.qualifiers or "_Atomic" in type_.qualifiers:
        variable.fault, variable.message = "MF0217", f"`{name}` is volatile or atomic"
    elif not type_.extents:
        variable.type = scalar
    elif any(extent is None for extent in type_.extents):
        variable.fault, variable.message = "MF0208", f"the array `{name}` has no extent"
    elif scalar is ScalarType.BOOL:
        variable.fault, variable.message = "MF0216", f"the array `{name}` has elements of type `_Bool`"
    else:
        variable.element = scalar
        variable.extents = tuple(extent for extent in type_.extents if extent is not None)
    return variable


class HostFunction:
    """The host side of one function.

    ``globals_`` and ``parameters`` are in scope from the start; ``uncertain`` are stretches of text under an undecided
    ``#if``, whose statements count as writes but define nothing.
    """

    def __init__(
        self,
        typedefs: dict[str, ScalarType],
        globals_: dict[str, Variable],
        parameters: dict[str, Variable],
        body: syntax.Block,
        uncertain: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.typedefs = dict(typedefs)
        self._uncertain = uncertain
        self._calls: list[Span] = []
        self._loops: list[Span] = []
        self._unstructured = False
        self.sites: list[Site] = []
        self.assertions: list[Assertion] = []
        self.body = body
        self.faults: dict[str, str] = {}  # macros that cannot be expanded, with the reason
        self.variables: list[Variable] = [*globals_.values(), *parameters.values()]
        self._visit_items(body, {**globals_, **parameters}, (), body.span)

    # --- the walk ---------------------------------------------------------------------------------------------

    def _visit_items(
        self,
        block: syntax.Block,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
        place: Span | None,
    ) -> None:
        inner = dict(scope)
        for item in block.items:
            self._visit(item, inner, loops, place)

    def _visit(
        self,
        statement: syntax.Statement,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
        place: Span | None,
    ) -> None:
        match statement:
            case syntax.Block(span=span):
                self._visit_items(statement, scope, loops, span)
            case syntax.Declaration():
                self._declare(statement, scope, place)
            case syntax.ExpressionStatement(expression=expression, span=span):
                self._effect(expression, scope, span, place)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise, span=span):
                self._effects(condition, scope, span)
                self._visit(then, dict(scope), loops, None)
                if otherwise is not None:
                    self._visit(otherwise, dict(scope), loops, None)
            case syntax.ForStatement(init=init, condition=condition, step=step, body=body, span=span):
                self._loops.append(span)
                inner = dict(scope)
                if isinstance(init, syntax.Declaration):
                    self._declare(init, inner, None)
                elif init is not None:
                    self._effect(init, inner, init.span, None)
                if condition is not None:
                    self._effects(condition, inner, span)
                self._visit(body, inner, (*loops, statement), None)
                if step is not None:
                    self._effect(step, inner, step.span, None)
            case syntax.WhileStatement(condition=condition, body=body, span=span):
                self._loops.append(span)
                self._effects(condition, scope, span)
                self._visit(body, dict(scope), (*loops, statement), None)
            case syntax.SwitchStatement(value=value, body=body, span=span):
                self._effects(value, scope, span)
                inside = dict(scope)
                if isinstance(body, syntax.Block):
                    for item in body.items:
                        self._visit(item, inside, loops, None)
                else:
                    self._visit(body, inside, loops, None)
            case syntax.LabelledStatement(label=label, body=body):
                self._unstructured = self._unstructured or label not in ("case", "default")
                self._visit(body, scope, loops, None)
            case syntax.Jump(word=word, value=value, span=span):
                self._unstructured = self._unstructured or word == "goto"
                if value is not None:
                    self._effects(value, scope, span)
            case syntax.Opaque(tokens=tokens, span=span):
                names = {token.text for token in tokens if token.kind is TokenKind.NAME}
                self._unstructured = self._unstructured or bool(names & {"goto", "setjmp"})
                self._calls.append(span)
                self._forget(perhaps_written(tokens), scope, span)
                for name in addressed(tokens) & scope.keys():
                    scope[name].escapes = min(scope[name].escapes, span.start)
            case syntax.ScheduleStatement():
                self.sites.append(Site(statement, dict(scope), loops))
            case syntax.Empty():
                pass

    def _declare(self, declaration: syntax.Declaration, scope: dict[str, Variable], place: Span | None) -> None:
        for declarator in declaration.declarators:
            for extent in declarator.type.extents:
                if extent is not None:
                    self._effects(extent, scope, declaration.span)
            if "typedef" in declarator.type.storage:
                scalar = scalar_type(declarator.type.words, self.typedefs)
                if scalar is not None and not declarator.type.pointers and not declarator.type.extents:
                    self.typedefs[declarator.name] = scalar
                continue
            variable = declared(declarator, self.typedefs, declarator.span.start)
            variable.scope = dict(scope)
            if declarator.value is not None:
                self._effects(declarator.value, scope, declarator.span)
            scope[declarator.name] = variable
            self.variables.append(variable)
            static = bool(declarator.type.storage & {"static", "extern", "_Thread_local"})
            if static and not variable.const:
                variable.is_global = True
            if declarator.value is not None:
                value = None if static and not variable.const else declarator.value
                self._write(variable, declarator.span, value, place, scope)

    def _effect(
        self, expression: syntax.Expression, scope: dict[str, Variable], span: Span, place: Span | None
    ) -> None:
        """Note what an expression statement does."""
        if (
            isinstance(expression, syntax.Invocation)
            and isinstance(expression.callee, syntax.Name)
            and expression.callee.name == "assert"
            and len(expression.arguments) == 1
        ):
            self.assertions.append(
                Assertion(expression.arguments[0], span.start, self._certain(place, span), dict(scope))
            )
        elif (
            isinstance(expression, syntax.Assignment)
            and expression.op == "="
            and isinstance(expression.target, syntax.Name)
            and expression.target.name in scope
        ):
            self._effects(expression.value, scope, span)
            self._write(scope[expression.target.name], span, expression.value, place, scope)
            return
        elif isinstance(expression, syntax.Comma):
            for item in expression.items:
                self._effect(item, scope, span, place)
            return
        self._effects(expression, scope, span)

    def _effects(self, expression: syntax.Expression, scope: dict[str, Variable], span: Span) -> None:
        """Note every write that the evaluation of an expression can make."""
        harmless: set[int] = set()
        for node in syntax.walk(expression):
            match node:
                case (
                    syntax.Assignment(target=target)
                    | syntax.Postfix(operand=target)
                    | syntax.Prefix(op="++" | "--", operand=target)
                ):
                    if isinstance(target, syntax.Name):
                        self._forget({target.name}, scope, span)
                    elif not _is_element(target, scope):
                        self._calls.append(span)  # a store through a pointer reaches what a call reaches
                case syntax.Prefix(op="&", operand=target):
                    names = {one.name for one in syntax.walk(target) if isinstance(one, syntax.Name)}
                    self._forget(names, scope, span)
                    if id(node) not in harmless:
                        for name in names & scope.keys():
                            scope[name].escapes = min(scope[name].escapes, span.start)
                case syntax.Invocation(callee=callee, arguments=arguments):
                    name = callee.name if isinstance(callee, syntax.Name) else ""
                    if name in SCANNING_FUNCTIONS:
                        harmless.update(id(one) for one in arguments)
                    elif name not in MATH_FUNCTIONS and name not in PRINTING_FUNCTIONS:
                        self._calls.append(span)
                case syntax.Unsupported(written=written):
                    self._calls.append(span)
                    self._forget(set(written), scope, span)
                    for name in written & scope.keys():
                        scope[name].escapes = min(scope[name].escapes, span.start)
                case _:
                    pass

    def _forget(self, names: set[str], scope: dict[str, Variable], span: Span) -> None:
        for name in sorted(names & scope.keys()):
            self._write(scope[name], span, None, None, scope)

    def _write(
        self,
        variable: Variable,
        span: Span,
        value: syntax.Expression | None,
        place: Span | None,
        scope: dict[str, Variable],
    ) -> None:
        variable.writes.append(Write(span, value, self._certain(place, span), dict(scope)))

    def _certain(self, place: Span | None, span: Span) -> Span | None:
        if any(start < span.end and span.start < end for start, end in self._uncertain):
            return None
        return place

    # --- questions --------------------------------------------------------------------------------------------

    def stable(self, variable: Variable, since: int, site: Site) -> Span | None:
        """Return ``None`` where a variable keeps its value from an offset to a schedule, else where it may change."""
        schedule = site.statement.span
        around = [loop for loop in self._loops if loop.start < schedule.start < loop.end and not loop.start < since]
        changes = [write.span for write in variable.writes]
        if not variable.const:
            changes += [call for call in self._calls if variable.is_global or variable.escapes <= call.start]
        for change in changes:
            offset = change.start
            if since < offset < schedule.start or any(loop.start <= offset < loop.end for loop in around):
                return change
            if self._unstructured and offset > since:
                return change
        return None

    def definition(self, variable: Variable, site: Site) -> Write | None:
        """Return the one assignment that gives a scalar its value at a schedule, ``None`` where there is no such."""
        if self._unstructured or (variable.is_global and not variable.const):
            return None
        before = [write for write in variable.writes if write.offset < site.statement.span.start]
        if not before:
            return None
        last = max(before, key=lambda write: write.offset)
        if last.value is None or not self._dominates(last.block, last.offset, site):
            return None
        return last if self.stable(variable, last.offset, site) is None else None

    def _dominates(self, block: Span | None, offset: int, site: Site) -> bool:
        start = site.statement.span.start
        return block is not None and block.start <= start < block.end and offset < start

    def assumptions(self, site: Site) -> Iterator[tuple[syntax.Expression, Assertion]]:
        """Yield the conjuncts of the assertions that hold at a schedule."""
        for assertion in self.assertions:
            if not self._unstructured and self._dominates(assertion.block, assertion.offset, site):
                for conjunct in _conjuncts(assertion.condition):
                    yield conjunct, assertion


def _is_element(target: syntax.Expression, scope: dict[str, Variable]) -> bool:
    """Whether a target is an element of an array, not something behind a pointer."""
    while isinstance(target, syntax.Subscript):
        target = target.base
    return isinstance(target, syntax.Name) and target.name in scope and scope[target.name].element is not None


def _conjuncts(condition: syntax.Expression) -> Iterator[syntax.Expression]:
    if isinstance(condition, syntax.Infix) and condition.op == "&&":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition
