"""Where host code announces what it is about to touch, so that arrays may stay on the device for a whole function.

In front of every statement between schedules stands what the statement touches; loops without a schedule are announced
as a whole, branches each for itself, and the conditions of loops around schedules whenever they are evaluated.  So no
way through the function, whatever jumps it takes, comes to an access that is not announced.

That takes a text in which something can be put in front of those places.  Where macros hide them, where something is
not known, where a jump may lead around the declaration of an array, and where other threads come to a schedule by a
pragma of OpenMP, or host code runs later than it stands, there is no such announcing:
``metafork.frontend.host.transfers`` says what stays during which loops instead.  What stands behind pragmas is
announced in front of them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from metafork.frontend.host.accesses import accesses
from metafork.frontend.host.callees import Callees, called_drop_ins, lone_call
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.named_elements import Scopes
from metafork.frontend.host.pointer_values import lead_to_arrays
from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax
from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.tokens import Token, first_from
from metafork.ir.messages.source import Span
from metafork.ir.translation_unit import HostAccess, HostAccesses, HostArray, HostPlace

_BEFORE_STATEMENTS = frozenset({"{", "}", ";", ":"})
_BEFORE_BRANCHES = frozenset({")", "else", "do", ":"})
_OF_THREADS = frozenset({"omp", "acc"})
_ALONE = frozenset({"barrier", "flush", "taskwait", "taskyield", "cancel", "wait"})
"""Directives of OpenMP and OpenACC that say nothing about the statement behind them."""
_PUT_OFF = frozenset({"task", "taskloop", "nowait", "async", "detach"})
_GIVES = frozenset({"malloc", "aligned_alloc"})
_HIDDEN_JUMPS = frozenset({"goto", "setjmp", "sigsetjmp", "_Pragma"})
_EVERYTHING = (HostAccess("", "everything", (), True, True),)


def host_accesses(
    host: HostFunction,
    tokens: Sequence[Token],
    directives: Iterable[Directive],
    callees: Callees,
    pointers: Sequence[Variable] = (),
) -> HostAccesses | None:
    """Return what the host code of a function touches and where, ``None`` where that cannot be followed.

    ``tokens`` are those of the file as it is written, ``callees`` the functions that it may call, ``pointers`` those of
    its variables that schedules use as arrays.
    """
    schedules = [site.statement.span for site in host.sites]
    pragmas = [(one.span, one.rest) for one in directives if one.word == "pragma"]
    pragmas = [
        (span, text)
        for span, text in [*pragmas, *host.body.pragmas]
        if _within(span, host.body.span) and not any(_within(span, schedule) for schedule in schedules)
    ]
    if host.has_unknown(host.body.span) or not lead_to_arrays(pointers):
        return None
    follower = _Follower(host, _Text(tokens, host.body, pragmas), callees, bool(pointers))
    try:
        follower.follow()
    except _CannotFollowError:
        return None
    return HostAccesses(tuple(follower.places), tuple(follower.arrays), tuple(follower.memory))


class _CannotFollowError(Exception):
    """The text has no place where an access could be announced."""


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


class _Text:
    """The tokens of a function's body as they are written, and which brackets they stand in."""

    def __init__(self, tokens: Sequence[Token], body: syntax.Block, pragmas: Sequence[tuple[Span, str]]) -> None:
        inner = tokens[first_from(tokens, body.span.start) : first_from(tokens, body.span.end)]
        if inner and inner[0].text == "{" and inner[0].span.start == body.span.start:
            inner = inner[1:-1]
        self._pragmas = sorted(pragmas)
        starts = [span.start for span, _ in self._pragmas]

        def in_pragma(token: Token) -> bool:
            before = bisect_right(starts, token.span.start) - 1
            return before >= 0 and token.span.start < self._pragmas[before][0].end

        self._tokens = [one for one in inner if not in_pragma(one)]
        self._starts = [one.span.start for one in self._tokens]
        self._depths: list[int] = []
        depth = 0
        for one in self._tokens:
            depth -= one.text == ")"
            self._depths.append(depth)
            depth += one.text == "("

    def pragmas(self, span: Span) -> list[tuple[Span, str]]:
        """Return the pragmas in front of a statement, behind what stands before it."""
        index = bisect_left(self._starts, span.start)
        before = self._tokens[index - 1].span.end if index > 0 else 0
        return [one for one in self._pragmas if before <= one[0].start < span.start]

    def front(self, span: Span) -> int:
        """Return where something can be put in front of a statement: in front of its pragmas too."""
        return min((pragma.start for pragma, _ in self.pragmas(span)), default=span.start)

    def is_statement(self, span: Span, before: frozenset[str]) -> bool:
        """Return whether a span is written out as a statement, behind one of some tokens or at the very beginning."""
        first = self._at(span.start)
        last = self._last(span)
        if first is None or last is None or self._depths[first] or self._depths[last]:
            return False
        return first == 0 or self._tokens[first - 1].text in before

    def parts(self, loop: syntax.ForStatement | syntax.WhileStatement) -> list[tuple[int, int]]:
        """Return the offsets of the expressions in the head of a loop; raises where a macro hides it."""
        open_, close = self._head(loop)
        parts: list[tuple[int, int]] = []
        first = open_ + 1
        for index in range(first, close + 1):
            splits = self._tokens[index].text == ";" and self._depths[index] == self._depths[open_] + 1
            if index == close or splits:
                ends = (self._tokens[first].span.start, self._tokens[index - 1].span.end) if first < index else (0, 0)
                parts.append(ends)
                first = index + 1
        if len(parts) != (3 if isinstance(loop, syntax.ForStatement) else 1):
            raise _CannotFollowError
        return parts

    def _head(self, loop: syntax.ForStatement | syntax.WhileStatement) -> tuple[int, int]:
        """Return the brackets of a loop's head."""
        if isinstance(loop, syntax.WhileStatement) and loop.is_do:
            close = self._last(loop.span)
            if close is not None and self._tokens[close].text == ";":
                close -= 1
            if close is None or self._tokens[close].text != ")":
                raise _CannotFollowError
            open_ = close - 1
            while open_ > 0 and not (self._tokens[open_].text == "(" and self._depths[open_] == self._depths[close]):
                open_ -= 1
            word, at = "while", open_ - 1
        else:
            found = self._at(loop.span.start)
            if found is None:
                raise _CannotFollowError
            word, at, open_ = "for" if isinstance(loop, syntax.ForStatement) else "while", found, found + 1
            close = open_ + 1
            while close < len(self._tokens) and self._depths[close] > self._depths[at]:
                close += 1
        plain = close < len(self._tokens) and self._tokens[close].text == ")" and self._tokens[open_].text == "("
        if not plain or self._depths[open_] or self._tokens[at].text != word:
            raise _CannotFollowError
        return open_, close

    def _at(self, offset: int) -> int | None:
        index = bisect_left(self._starts, offset)
        return index if index < len(self._starts) and self._starts[index] == offset else None

    def _last(self, span: Span) -> int | None:
        index = bisect_left(self._starts, span.end) - 1
        return index if index >= 0 and self._tokens[index].span.end == span.end else None


class _Follower:
    """Walks a function and collects the places of its accesses, in the order of the text."""

    def __init__(self, host: HostFunction, text: _Text, callees: Callees, pointers: bool) -> None:
        self._host = host
        self._callees = callees
        self._scopes = Scopes(host)
        body = host.body
        self._text = text
        self._labels = any(
            isinstance(one, syntax.LabelledStatement) and one.label not in ("case", "default")
            for one in syntax.walk_statements(body)
        )
        self._moving = frozenset(_moving(body, callees, pointers))
        # What a called function leaves on the device must be announced when it is read: scalars are not.
        self._lends = any(
            one.escapes < math.inf and not one.is_global and one.element is None for one in host.variables
        )
        self.places: list[HostPlace] = []
        self.arrays: list[HostArray] = []
        self.memory: list[HostArray] = []

    def follow(self) -> None:
        """Walk the body; raises ``_CannotFollowError``."""
        self._items(self._host.body, dict(self._host.outer), in_switch=False)

    def _items(self, block: syntax.Block, scope: dict[str, Variable], in_switch: bool) -> None:
        for group in _groups(block.items):
            if len(group) == 1:
                self._statement(group[0], scope, "statement", in_switch)
            else:
                self._group(group, scope)

    def _group(self, group: Sequence[syntax.Statement], scope: dict[str, Variable]) -> None:
        """Announce in front of the first what statements of one macro touch: all, for they come one after the other."""
        if any(self._is_open(one) for one in group):
            raise _CannotFollowError
        touched = False
        for one in group:
            touched = bool(self._touched(one, scope)) or touched
            if isinstance(one, syntax.Declaration):
                self._arrays(one, scope, in_switch=True)
        if touched:
            span = group[0].span
            if not self._text.is_statement(span, _BEFORE_STATEMENTS):
                raise _CannotFollowError
            front = self._text.front(span)
            self.places.append(HostPlace(front, front, "statement", _EVERYTHING))

    def _statement(
        self,
        statement: syntax.Statement,
        scope: dict[str, Variable],
        how: Literal["statement", "alone"],
        in_switch: bool = False,
    ) -> None:
        if any(self._is_of_threads(text, statement) for _, text in self._text.pragmas(statement.span)):
            raise _CannotFollowError
        match statement:
            case syntax.Block():
                self._items(statement, dict(scope), in_switch=False)
            case syntax.IfStatement(condition=condition, then=then, otherwise=otherwise):
                self._announce(statement, self._touched(condition, scope), how)
                self._statement(then, scope, "alone")
                if otherwise is not None:
                    self._statement(otherwise, scope, "alone")
            case syntax.SwitchStatement(value=value, body=body):
                self._announce(statement, self._touched(value, scope), how)
                if isinstance(body, syntax.Block):
                    self._items(body, dict(scope), in_switch=True)
                else:
                    self._statement(body, scope, "alone")
            case syntax.LabelledStatement(body=body):
                self._statement(body, scope, how, in_switch)
            case syntax.ForStatement() | syntax.WhileStatement() if self._is_open(statement):
                self._loop(statement, scope, how)
            case syntax.ScheduleStatement():
                self._announce(statement, self._scalars(statement), how)
            case _:
                if isinstance(statement, syntax.Opaque) and any(one.text in _HIDDEN_JUMPS for one in statement.tokens):
                    raise _CannotFollowError
                self._announce(statement, self._touched(statement, scope), how)
                if isinstance(statement, syntax.Declaration):
                    self._arrays(statement, scope, in_switch)
                if how == "statement":
                    self._memory(statement, scope)

    def _is_of_threads(self, pragma: str, statement: syntax.Statement) -> bool:
        """Say whether other threads may come to schedules of a statement by a pragma, or later than to what follows."""
        words = re.findall(r"\w+", pragma)
        if words[:1] == [] or words[0] not in _OF_THREADS or words[1:2] == [] or words[1] in _ALONE:
            return False
        return not _PUT_OFF.isdisjoint(words) or self._is_open(statement)

    def _touched(
        self, piece: syntax.Statement | syntax.Expression, scope: dict[str, Variable]
    ) -> tuple[HostAccess, ...]:
        """Return what a piece of code touches, and whether it ends in a call of a function with schedules."""
        call = lone_call(piece) if isinstance(piece, syntax.Statement) else None
        if call is None or not self._announces_itself(piece, call, scope):
            return accesses(self._host, self._scopes, piece, scope, self._callees)
        found = accesses(self._host, self._scopes, piece, scope, self._callees, beside=call)
        return (*found, HostAccess("", "call", (), False, False))

    def _announces_itself(
        self, piece: syntax.Statement | syntax.Expression, call: syntax.Invocation, scope: dict[str, Variable]
    ) -> bool:
        """Return whether a call is one of a function with schedules that takes nothing but scalars and arrays."""
        function = scope.get(call.callee.name) if isinstance(call.callee, syntax.Name) else None
        if function is None or function.fault != "MF0206" or not function.is_global or self._lends:
            return False
        if isinstance(piece, syntax.ExpressionStatement) and isinstance(piece.expression, syntax.Assignment):
            target = piece.expression.target
            result = scope.get(target.name) if isinstance(target, syntax.Name) else None
            if result is None or result.type is None or result.is_global:
                return False
        if function.name not in self._callees.drop_ins:
            return False
        return all(
            _is_lent(argument, scope) and not called_drop_ins(argument, self._callees) for argument in call.arguments
        )

    def _loop(
        self,
        loop: syntax.ForStatement | syntax.WhileStatement,
        scope: dict[str, Variable],
        how: Literal["statement", "alone"],
    ) -> None:
        inner = dict(scope)
        heads: list[syntax.Expression | None] = [loop.condition]
        if isinstance(loop, syntax.ForStatement):
            if isinstance(loop.init, syntax.Declaration):
                self._announce(loop, self._touched(loop.init, scope), how)
                if any(one.element is not None for one in self._scopes.declare(loop.init, inner)):
                    raise _CannotFollowError
            elif loop.init is not None:
                self._announce(loop, self._touched(loop.init, scope), how)
            heads = [None, loop.condition, loop.step]
        touched = [() if head is None else self._touched(head, inner) for head in heads]
        if any(touched):
            for (start, end), found in zip(self._text.parts(loop), touched, strict=True):
                if found:
                    self.places.append(HostPlace(start, end, "expression", found))
        self._statement(loop.body, inner, "alone")

    def _scalars(self, schedule: syntax.ScheduleStatement) -> tuple[HostAccess, ...]:
        """Return the variables of the file that a dispatch reads, and which a caller may have passed as arrays."""
        site = next(site for site in self._host.sites if site.statement is schedule)
        names = {
            node.name
            for statement in syntax.walk_statements(schedule)
            for expression in syntax.direct_expressions(statement)
            for node in syntax.walk(expression)
            if isinstance(node, syntax.Name)
        }
        found = (site.visible[name] for name in sorted(names & site.visible.keys()))
        return tuple(
            HostAccess(one.name, "object", (), True, False)
            for one in found
            if one.type is not None and one.is_global and not one.const
        )

    def _arrays(self, declaration: syntax.Declaration, scope: dict[str, Variable], in_switch: bool) -> None:
        for variable in self._scopes.declare(declaration, scope):
            if variable.element is None or variable.is_global or variable.is_parameter:
                continue
            if variable.name not in self._moving:
                continue
            names = (one for extent in variable.extents for one in syntax.walk(extent))
            fixed = not any(isinstance(one, syntax.Name) for one in names)
            # C forbids jumps into the life of an array whose size varies, not of others.
            if fixed and (in_switch or self._labels):
                raise _CannotFollowError
            if not self._text.is_statement(declaration.span, _BEFORE_STATEMENTS):
                raise _CannotFollowError
            fresh = all(one.value is None and one.braces is None for one in declaration.declarators)
            self.arrays.append(HostArray(variable.name, declaration.span.end, fresh))

    def _memory(self, statement: syntax.Statement, scope: dict[str, Variable]) -> None:
        """Take note of the pointers that a statement sets to memory which malloc gives."""
        match statement:
            case syntax.Declaration(declarators=declarators):
                found = [(one.name, one.value) for one in declarators]
            case syntax.ExpressionStatement(expression=syntax.Assignment(op="=", target=syntax.Name(name=name)) as one):
                found = [(name, one.value)]
            case _:
                return
        if self._host.holds_condition(statement.span) or not self._text.is_statement(
            statement.span, _BEFORE_STATEMENTS
        ):
            return
        for name, value in found:
            call = value
            while isinstance(call, syntax.Conversion):
                call = call.operand
            callee = call.callee if isinstance(call, syntax.Invocation) else None
            given = isinstance(callee, syntax.Name) and callee.name in _GIVES and callee.name not in scope
            if given and self._host.known.trusted:
                self.memory.append(HostArray(name, statement.span.end, fresh=True))

    def _announce(
        self, statement: syntax.Statement, found: tuple[HostAccess, ...], how: Literal["statement", "alone"]
    ) -> None:
        if not found:
            return
        before = _BEFORE_STATEMENTS if how == "statement" else _BEFORE_BRANCHES
        if not self._text.is_statement(statement.span, before):
            raise _CannotFollowError
        if self._host.holds_condition(statement.span):
            found = _EVERYTHING  # the names in it need not all be there
        self.places.append(HostPlace(self._text.front(statement.span), statement.span.end, how, found))

    def _is_open(self, statement: syntax.Statement) -> bool:
        """Return whether schedules stand in a statement, or labels that a jump from elsewhere may lead to."""
        match statement:
            case syntax.ScheduleStatement():
                return True
            case syntax.LabelledStatement():
                return True
            case _ if called_drop_ins(statement, self._callees):
                return True
            case syntax.SwitchStatement(body=body):
                return any(
                    isinstance(one, syntax.ScheduleStatement)
                    or (isinstance(one, syntax.LabelledStatement) and one.label not in ("case", "default"))
                    for one in syntax.walk_statements(body)
                )
            case _:
                return any(self._is_open(one) for one in syntax.direct_statements(statement))


def _is_lent(argument: syntax.Expression, scope: dict[str, Variable]) -> bool:
    """Return whether an argument is a number, an array, or a place in one."""
    match argument:
        case syntax.Prefix(op="&", operand=syntax.Subscript() as element):
            return _is_lent(element, scope)
        case syntax.Name(name=name):
            variable = scope.get(name)
            if variable is None:
                return False
            return variable.type is not None or variable.element is not None or variable.fault in ("MF0201", "MF0208")
        case (
            syntax.Prefix(op="&" | "*")
            | syntax.Member()
            | syntax.Unsupported()
            | syntax.Literal()
            | syntax.Invocation()
        ):
            return False
        case syntax.Assignment():
            return False
        case _:
            return all(_is_lent(one, scope) for one in syntax.operands(argument))


def _moving(body: syntax.Statement, callees: Callees, pointers: bool) -> Iterator[str]:
    """Yield the names of all that a schedule may take: what one mentions, and what a pointer may be set to.

    Where schedules use ``pointers`` of the function, these may lead to whatever it mentions.
    """
    for statement in syntax.walk_statements(body):
        inside = isinstance(statement, syntax.ScheduleStatement)
        if isinstance(statement, syntax.Opaque):
            yield from (one.text for one in statement.tokens)
        for one in syntax.walk_statements(statement) if inside else (statement,):
            for expression in syntax.direct_expressions(one):
                yield from _handled(expression, everything=inside or pointers or called_drop_ins(expression, callees))


def _handled(expression: syntax.Expression, everything: bool) -> Iterator[str]:
    match expression:
        case syntax.Name(name=name):
            yield name
        case syntax.Unsupported(tokens=tokens):
            yield from (one.text for one in tokens)
        case syntax.Conversion(type=type_) if type_.words == ("void",) and not type_.pointers:
            pass
        case syntax.Subscript(base=syntax.Name(), index=index) if not everything:
            yield from _handled(index, everything)
        case syntax.Invocation(arguments=arguments) if not everything:
            # What a function gives back is no array that a schedule takes (MF0316).
            for one in arguments:
                if not isinstance(one, syntax.Name):
                    yield from _handled(one, everything)
        case _:
            for one in syntax.operands(expression):
                yield from _handled(one, everything)


def _groups(items: Sequence[syntax.Statement]) -> list[list[syntax.Statement]]:
    """Return the statements of a block, together those whose text one macro gives."""
    groups: list[list[syntax.Statement]] = []
    end = 0
    for item in items:
        if groups and item.span.start < end:
            groups[-1].append(item)
        else:
            groups.append([item])
        end = max(end, item.span.end)
    return groups
