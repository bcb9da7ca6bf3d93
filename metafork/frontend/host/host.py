"""What the host code around a schedule says: variables in scope, where they are written, what their values are.

A scalar is *derived* where one assignment, which stands on every way to the schedule, gives it an expression in
variables that are not written between there and the schedule.  Everything else that the schedule reads is a parameter,
whatever computed it.  All of this is conservative: a statement that is not understood counts as a write to every
name that it may write by the look of its tokens, and as a call of something unknown; a name that is not known, which
may be a macro, counts as a write to everything.

Places are counted in the order in which the statements stand once macros are expanded (``order``): what one use of a
macro gives has one span, but an order all the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from metafork.frontend.host.known_names import KnownNames
from metafork.frontend.host.variables import (
    Assertion,
    Change,
    Site,
    Stretch,
    Variable,
    Write,
    declare_under_condition,
    declared,
    define_type,
)
from metafork.frontend.text import syntax
from metafork.frontend.text.structures import TypeNames, note_structure
from metafork.frontend.text.tokens import Token, TokenKind, addressed, perhaps_written
from metafork.ir.messages.source import Span


class HostFunction:
    """The host side of one function.

    ``globals_`` and ``parameters`` are in scope from the start.  ``uncertain`` are stretches of text under an undecided
    ``#if``, whose statements count as writes but define nothing; ``doubtful`` are places of text of which it is not
    known what it does; the text is not ``structured`` where what belongs to which statement depends on an undecided
    ``#if``.
    """

    def __init__(
        self,
        typedefs: TypeNames,
        globals_: dict[str, Variable],
        parameters: dict[str, Variable],
        body: syntax.Block,
        known: KnownNames,
        uncertain: tuple[tuple[int, int], ...] = (),
        doubtful: Sequence[Span] = (),
        structured: bool = True,
    ) -> None:
        self.typedefs = typedefs.copy()
        self.known = known
        self.file_scope = globals_
        self._uncertain = uncertain
        self._doubtful = sorted(doubtful, key=lambda span: span.start)
        self._starts = [span.start for span in self._doubtful]
        self._passed = 0
        self._order = 0
        self._calls: list[tuple[int, Span]] = []
        self._unknown: list[tuple[int, Span]] = []
        self._loops: list[Stretch] = []
        self._unstructured = not structured
        self._conditions = 0  # under which the walk is, within the innermost `switch`
        self.sites: list[Site] = []
        self.assertions: list[Assertion] = []
        self.mistakes: list[tuple[str, Span]] = []
        self.body = body
        self.faults: dict[str, str] = {}  # macros that cannot be expanded, with the reason
        self.in_pragmas: frozenset[str] = frozenset()  # words of pragmas, which may use variables
        self.outer = {**globals_, **parameters}
        self.variables: list[Variable] = [*globals_.values(), *parameters.values()]
        whole = Stretch(0)
        self._visit_items(body, {**globals_, **parameters}, (), whole)
        self._leave(body.span)
        whole.last = self._order

    @cached_property
    def declared(self) -> tuple[syntax.Declarator, ...]:
        """What the function declares, schedules included."""
        return tuple(syntax.declarators_in(self.body))

    @property
    def is_certain(self) -> bool:
        """Whether it is known what every statement does, and in which order they run."""
        return not (self._unstructured or self._unknown or self._uncertain)

    def has_unknown(self, span: Span) -> bool:
        """Return whether something in a stretch of the text is not known."""
        return any(span.start <= place.start < span.end for _, place in self._unknown)

    def within_condition(self, span: Span) -> bool:
        """Return whether a stretch of the text begins or ends under an undecided ``#if`` that does not cover it."""
        return any(
            start < at < end and not (start <= span.start and span.end <= end)
            for start, end in self._uncertain
            for at in (span.start, span.end - 1)
        )

    def holds_condition(self, span: Span) -> bool:
        """Return whether an undecided ``#if`` stands in a stretch of the text."""
        return any(span.start < start < span.end for start, _ in self._uncertain)

    # --- the walk ---------------------------------------------------------------------------------------------

    def _visit_items(
        self,
        block: syntax.Block,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
        place: Stretch | None,
    ) -> None:
        inner = dict(scope)
        for item in block.items:
            self._visit(item, inner, loops, place)

    def _visit(
        self,
        statement: syntax.Statement,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
        place: Stretch | None,
    ) -> None:
        match statement:
            case syntax.Block():
                inside = Stretch(self._next())
                self._visit_items(statement, scope, loops, inside)
                inside.last = self._next()
            case syntax.Declaration():
                self._declare(statement, scope, place)
            case syntax.ExpressionStatement(expression=expression, span=span):
                self._effect(expression, scope, span, place)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise, span=span):
                asked = self._next()
                self._effects(condition, scope, span)
                self._visit_where(condition, asked, then, dict(scope), loops)
                if otherwise is not None:
                    self._visit(otherwise, dict(scope), loops, None)
            case syntax.ForStatement():
                self._for(statement, dict(scope), loops)
            case syntax.WhileStatement(condition=condition, body=body, span=span):
                around, asked = self._loop(), self._next()
                self._effects(condition, scope, span)
                self._visit_where(None if statement.is_do else condition, asked, body, dict(scope), (*loops, statement))
                around.last = self._next()
            case syntax.SwitchStatement(value=value, body=body, span=span):
                self._effects(value, scope, span)
                inner = dict(scope)
                outside, self._conditions = self._conditions, 0
                if isinstance(body, syntax.Block):
                    for item in body.items:
                        self._visit(item, inner, loops, None)
                else:
                    self._visit(body, inner, loops, None)
                self._conditions = outside
            case syntax.LabelledStatement(label=label, body=body):
                past = label not in ("case", "default") or self._conditions > 0  # a way in that asks no condition
                self._unstructured = self._unstructured or past
                self._visit(body, scope, loops, None)
            case syntax.Jump(word=word, value=value, span=span):
                self._unstructured = self._unstructured or word == "goto"
                if value is not None:
                    self._effects(value, scope, span)
            case syntax.Opaque():
                self._opaque(statement, scope)
            case syntax.ScheduleStatement(span=span):
                self._enter(span)
                self._passed = bisect_left(self._starts, span.end)
                self.sites.append(Site(statement, dict(scope), loops, self._next()))
                for name in syntax.results_of(statement):
                    if name.name in scope and scope[name.name].type is not None:
                        self._write(scope[name.name], name.span, None, None, scope)
            case syntax.Empty():
                pass

    def _for(
        self,
        loop: syntax.ForStatement,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
    ) -> None:
        around = self._loop()
        if isinstance(loop.init, syntax.Declaration):
            self._declare(loop.init, scope, None)
        elif loop.init is not None:
            self._effect(loop.init, scope, loop.init.span, None)
        asked = self._next()
        if loop.condition is not None:
            self._effects(loop.condition, scope, loop.span)
        self._visit_where(loop.condition, asked, loop.body, scope, (*loops, loop))
        if loop.step is not None:
            self._effect(loop.step, scope, loop.step.span, None)
        around.last = self._next()

    def _visit_where(
        self,
        condition: syntax.Expression | None,
        asked: int,
        body: syntax.Statement,
        scope: dict[str, Variable],
        loops: tuple[syntax.ForStatement | syntax.WhileStatement, ...],
    ) -> None:
        """Visit what runs only where a condition was found to hold: as good as an ``assert`` where it was ``asked``.

        What the condition itself changes, it changes after that.
        """
        inside = Stretch(self._next())
        if condition is not None and self._certain(condition.span):
            self.assertions.append(Assertion(condition, asked, inside, dict(scope)))
        self._conditions += 1
        self._visit(body, scope, loops, None)
        self._conditions -= 1
        inside.last = self._next()

    def _opaque(self, statement: syntax.Opaque, scope: dict[str, Variable]) -> None:
        tokens, span = statement.tokens, statement.span
        self._enter(span)
        names = {token.text for token in tokens}
        self._unstructured = self._unstructured or bool(names & {"goto", "setjmp"})
        self._calls.append((self._next(), span))
        self._forget(perhaps_written(tokens), scope, span, supposed=True)
        for name in addressed(tokens) & scope.keys():
            scope[name].escapes = min(scope[name].escapes, self._order)
        strange = self.known.first_unknown(tokens, scope)
        if strange is not None:
            self._unknown.append((self._next(), strange.span))
        elif statement.mistake is not None and _is_plain(tokens) and self._certain(span):
            self.mistakes.append(statement.mistake)
        self._leave(span)

    def _loop(self) -> Stretch:
        self._loops.append(Stretch(self._next()))
        return self._loops[-1]

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _enter(self, span: Span) -> None:
        """Note what is doubtful in front of a piece of text, or in it."""
        while self._passed < len(self._doubtful) and self._starts[self._passed] < span.end:
            self._unknown.append((self._next(), self._doubtful[self._passed]))
            self._passed += 1

    def _leave(self, span: Span) -> None:
        """Note what is doubtful in a piece of text behind it as well: where in it that stands is not known."""
        self._enter(span)
        first = bisect_left(self._starts, span.start)
        if first < len(self._doubtful) and self._starts[first] < span.end:
            self._unknown.append((self._next(), self._doubtful[first]))

    def _declare(self, declaration: syntax.Declaration, scope: dict[str, Variable], place: Stretch | None) -> None:
        for type_ in (declaration.structure, *(declarator.type for declarator in declaration.declarators[:1])):
            if type_ is not None:
                note_structure(type_, self.typedefs)
        for declarator in declaration.declarators:
            for extent in declarator.type.extents:
                if extent is not None:
                    self._effects(extent, scope, declaration.span)
            if "typedef" in declarator.type.storage:
                define_type(declarator, self.typedefs, self._certain(declaration.span))
                continue
            variable = declared(declarator, self.typedefs, self._next())
            variable.scope = dict(scope)
            if not self._certain(declaration.span):
                declare_under_condition(variable, scope.get(declarator.name))
            scope[declarator.name] = variable
            self.variables.append(variable)
            if declarator.value is not None:
                # The name is known there: `p = malloc(n * sizeof *p)`.
                self._effects(declarator.value, scope, declarator.span)
            static = bool(declarator.type.storage & {"static", "extern", "_Thread_local"})
            if static and not variable.const:
                variable.is_global = True
            if declarator.value is not None:
                value = None if static and not variable.const else declarator.value
                self._write(variable, declarator.span, value, place, scope)
        self._leave(declaration.span)

    def _effect(
        self, expression: syntax.Expression, scope: dict[str, Variable], span: Span, place: Stretch | None
    ) -> None:
        """Note what an expression statement does."""
        if (
            isinstance(expression, syntax.Invocation)
            and isinstance(expression.callee, syntax.Name)
            and expression.callee.name == "assert"
            and len(expression.arguments) == 1
        ):
            block = place if self._certain(span) else None
            self.assertions.append(Assertion(expression.arguments[0], self._next(), block, dict(scope)))
        elif (
            isinstance(expression, syntax.Assignment)
            and expression.op == "="
            and isinstance(expression.target, syntax.Name)
            and not expression.target.uncertain
            and expression.target.name in scope
        ):
            self._effects(expression.value, scope, span)
            self._write(scope[expression.target.name], span, expression.value, place, scope)
            self._leave(span)
            return
        elif isinstance(expression, syntax.Comma):
            for item in expression.items:
                self._effect(item, scope, span, place)
            return
        self._effects(expression, scope, span)

    def _effects(self, expression: syntax.Expression, scope: dict[str, Variable], span: Span) -> None:
        """Note every write that the evaluation of an expression can make."""
        self._enter(expression.span)
        here = self._next()
        harmless: set[int] = set()
        for node in syntax.walk(expression):
            match node:
                case syntax.Name(name=name, uncertain=False) if name not in scope and not self.known.knows(name):
                    self._unknown.append((here, node.span))
                case (
                    syntax.Assignment(target=target)
                    | syntax.Postfix(operand=target)
                    | syntax.Prefix(op="++" | "--", operand=target)
                ):
                    if isinstance(target, syntax.Name):
                        self._forget({target.name}, scope, span)
                    elif not _is_element(target, scope):
                        self._calls.append((here, span))  # a store through a pointer reaches what a call reaches
                case syntax.Prefix(op="&", operand=target):
                    names = _behind_address(target, scope)
                    self._forget(names, scope, span)
                    if id(node) not in harmless:
                        for name in names & scope.keys():
                            scope[name].escapes = min(scope[name].escapes, here)
                case syntax.Invocation(callee=callee, arguments=arguments):
                    name = callee.name if isinstance(callee, syntax.Name) and callee.name not in scope else ""
                    value = isinstance(callee, syntax.Name) and callee.uncertain  # or it is doubtful
                    if self.known.scans(name):
                        harmless.update(id(one) for one in arguments)
                    elif not self.known.harmless(name) and not value:
                        self._calls.append((here, span))
                case syntax.Unsupported(written=written, tokens=tokens):
                    self._calls.append((here, span))
                    self._forget(set(written), scope, span, supposed=True)
                    for name in written & scope.keys():
                        scope[name].escapes = min(scope[name].escapes, here)
                    if (strange := self.known.first_unknown(tokens, scope)) is not None:
                        self._unknown.append((here, strange.span))
                case _:
                    pass
        self._leave(expression.span)

    def _forget(self, names: set[str], scope: dict[str, Variable], span: Span, supposed: bool = False) -> None:
        for name in sorted(names & scope.keys()):
            self._write(scope[name], span, None, None, scope, supposed)

    def _write(
        self,
        variable: Variable,
        span: Span,
        value: syntax.Expression | None,
        place: Stretch | None,
        scope: dict[str, Variable],
        supposed: bool = False,
    ) -> None:
        block = place if self._certain(span) else None
        variable.writes.append(Write(span, self._next(), value, block, dict(scope), supposed))

    def _certain(self, span: Span) -> bool:
        return not any(start < span.end and span.start < end for start, end in self._uncertain)

    # --- questions --------------------------------------------------------------------------------------------

    def changes(self, variable: Variable, since: int, site: Site) -> Iterator[Change]:
        """Yield what may change a variable between a place and a schedule: what is seen, then what is not known."""
        around = [one for one in self._loops if one.covers(site.order) and since < one.first]
        seen = [(write.order, Change(write.span, False, write)) for write in variable.writes]
        if not variable.const:
            for order, call in self._calls:
                if variable.escapes <= order or (variable.is_global and variable.element is None):
                    seen.append((order, Change(call, False)))
        hidden = [(order, Change(span, True)) for order, span in self._unknown]
        for order, change in (*seen, *hidden):
            if (
                since < order < site.order
                or any(one.covers(order) for one in around)
                or (self._unstructured and order > since)
            ):
                yield change

    def stable(self, variable: Variable, since: int, site: Site) -> Change | None:
        """Return ``None`` where a variable keeps its value from a place to a schedule, else what may change it."""
        return next(self.changes(variable, since, site), None)

    def definition(self, variable: Variable, site: Site) -> Write | None:
        """Return the one assignment that gives a scalar its value at a schedule, ``None`` where there is no such."""
        if self._unstructured or (variable.is_global and not variable.const):
            return None
        before = [write for write in variable.writes if write.order < site.order]
        if not before:
            return None
        last = max(before, key=lambda write: write.order)
        if last.value is None or not self._dominates(last.block, last.order, site):
            return None
        return last if self.stable(variable, last.order, site) is None else None

    def _dominates(self, block: Stretch | None, order: int, site: Site) -> bool:
        return block is not None and block.covers(site.order) and order < site.order

    def assumptions(self, site: Site) -> Iterator[tuple[syntax.Expression, Assertion]]:
        """Yield the conjuncts of the assertions that hold at a schedule."""
        for assertion in self.assertions:
            if not self._unstructured and self._dominates(assertion.block, assertion.order, site):
                for conjunct in syntax.conjuncts(assertion.condition):
                    yield conjunct, assertion


_EXTENSIONS = frozenset({"{", "}", "..."})
_STATEMENT_WORDS = frozenset(
    {"if", "else", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue", "return"}
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}|(?=\.?[0-9])[0-9]*\.?[0-9]*([eE][-+]?[0-9]+)?[fFlL]?")


def _is_plain(tokens: Sequence[Token]) -> bool:
    """Return whether a text has nothing in it but what C99 has too, so that it is wrong where it is not understood."""
    before = "("
    for token in tokens:
        text = token.text
        if token.kind is TokenKind.NAME:
            plain = not text.startswith("_") and text not in _STATEMENT_WORDS and text not in ("asm", "typeof", "bool")
        elif token.kind is TokenKind.NUMBER:
            plain = _NUMBER.fullmatch(text) is not None
        elif token.kind is TokenKind.PUNCTUATOR:
            extension = (before, text) in (("?", ":"), ("[", "[")) or (text == "&&" and before in _BEFORE_OPERANDS)
            plain = text not in _EXTENSIONS and not extension
        else:
            plain = token.kind in (TokenKind.STRING, TokenKind.CHARACTER)
        if not plain:
            return False
        before = text
    return True


_BEFORE_OPERANDS = frozenset({*"(,=?:+-*/%&|^!~<>", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>"})


def _behind_address(target: syntax.Expression, scope: Mapping[str, Variable]) -> set[str]:
    """Return the names of the variables that ``&target`` gives away; an element of an array moves no array."""
    element = False
    while isinstance(target, syntax.Subscript) or (isinstance(target, syntax.Member) and not target.arrow):
        element = element or isinstance(target, syntax.Subscript)
        target = target.base
    match target:
        case syntax.Name(name=name):
            return set() if element and name in scope and scope[name].element is not None else {name}
        case syntax.Member() | syntax.Prefix(op="*"):
            return set()
        case _:
            return syntax.names_in(target)


def _is_element(target: syntax.Expression, scope: dict[str, Variable]) -> bool:
    """Whether a target is an element of an array, not something behind a pointer."""
    while isinstance(target, syntax.Subscript) or (isinstance(target, syntax.Member) and not target.arrow):
        target = target.base
    return isinstance(target, syntax.Name) and target.name in scope and scope[target.name].element is not None
