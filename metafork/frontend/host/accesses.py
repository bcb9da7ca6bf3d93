"""What a piece of host code touches: elements, rows and whole arrays, or everything.

An access counts with the indices whose values are the same before the piece is run, so that it can be announced there;
of what varies in the piece the whole extent counts.  Calls touch everything, but for those that are known to read
their arguments alone; so does what is reached through anything but an array, or a pointer that stands still.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Variable, rank_of
from metafork.frontend.text import syntax
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.translation_unit import HostAccess

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]{0,3}")
_ZERO = "0"
_POINTERS = ("MF0201", "MF0208")  # a pointer, and an array without an extent

Key = tuple[str, Literal["parameter", "object", "pointer", "everything"], tuple[str, ...]]


class Scopes:
    """Which variable a name means: scopes are dictionaries that declarations are added to."""

    def __init__(self, host: HostFunction) -> None:
        self._declared = {(one.span, one.name): one for one in host.variables}

    def declare(self, declaration: syntax.Declaration, scope: dict[str, Variable]) -> list[Variable]:
        """Add what a declaration declares to a scope, and return it."""
        found = []
        for one in declaration.declarators:
            variable = self._declared.get((one.name_span, one.name))
            if variable is None:
                scope.pop(one.name, None)  # a type
            else:
                scope[one.name] = variable
                found.append(variable)
        return found


def accesses(
    host: HostFunction, scopes: Scopes, piece: syntax.Statement | syntax.Expression, scope: Mapping[str, Variable]
) -> tuple[HostAccess, ...]:
    """Return what a statement without schedules, or an expression, touches, as it can be said in front of it."""
    collector = _Collector(host, scopes, _expressions(piece), _declared(piece))
    if isinstance(piece, syntax.Statement):
        simple = isinstance(piece, syntax.ExpressionStatement)
        collector.statement(piece, dict(scope), exact=simple)
    else:
        collector.expression(piece, scope, reads=True, writes=False, exact=True)
    return collector.result()


def _expressions(piece: syntax.Statement | syntax.Expression) -> Iterator[syntax.Expression]:
    if not isinstance(piece, syntax.Statement):
        yield piece
        return
    for statement in syntax.walk_statements(piece):
        yield from syntax.direct_expressions(statement)


def _declared(piece: syntax.Statement | syntax.Expression) -> set[str]:
    names: set[str] = set()
    for statement in syntax.walk_statements(piece) if isinstance(piece, syntax.Statement) else ():
        first = statement.init if isinstance(statement, syntax.ForStatement) else statement
        if isinstance(first, syntax.Declaration):
            names |= {one.name for one in first.declarators}
    return names


class _Collector:
    """The accesses of one piece.  ``varying`` are names that have no one value in it."""

    def __init__(
        self, host: HostFunction, scopes: Scopes, expressions: Iterator[syntax.Expression], declared: set[str]
    ) -> None:
        self._host = host
        self._scopes = scopes
        self._inner: set[int] = set()
        self._found: dict[Key, list[bool]] = {}
        self._varying = declared
        self._stores = False
        for expression in expressions:
            self._note_changes(expression)

    def _note_changes(self, expression: syntax.Expression) -> None:
        for node in syntax.walk(expression):
            match node:
                case (
                    syntax.Assignment(target=target)
                    | syntax.Postfix(operand=target)
                    | syntax.Prefix(op="++" | "--", operand=target)
                ):
                    if isinstance(target, syntax.Name):
                        self._varying.add(target.name)
                    else:
                        self._stores = True
                case syntax.Prefix(op="&", operand=target):
                    self._varying |= {one.name for one in syntax.walk(target) if isinstance(one, syntax.Name)}
                case syntax.Invocation() | syntax.Unsupported():
                    self._stores = True
                case _:
                    pass

    def result(self) -> tuple[HostAccess, ...]:
        """Return the accesses, what is overwritten last: what else is read must have been fetched by then."""
        everything = self._found.get(("", "everything", ()))
        if everything == [True, True]:
            return (HostAccess("", "everything", (), True, True),)
        found = [HostAccess(*key, *how) for key, how in self._found.items()]
        return tuple(sorted(found, key=lambda one: not one.reads))

    # --- statements -------------------------------------------------------------------------------------------

    def statement(self, statement: syntax.Statement, scope: dict[str, Variable], exact: bool = False) -> None:
        """Note what a statement touches; its writes are ``exact`` where it surely makes them, once."""
        inner = dict(scope) if isinstance(statement, syntax.Block | syntax.ForStatement) else scope
        if isinstance(statement, syntax.Opaque | syntax.ScheduleStatement):
            self._everything(True, True)
        first = statement.init if isinstance(statement, syntax.ForStatement) else statement
        if isinstance(first, syntax.Declaration):
            self._inner |= {id(one) for one in self._scopes.declare(first, inner)}
        for expression in syntax.direct_expressions(statement):
            self.expression(expression, inner, reads=True, writes=False, exact=exact)
        for child in syntax.direct_statements(statement):
            self.statement(child, inner)

    # --- expressions ------------------------------------------------------------------------------------------

    def expression(
        self, expression: syntax.Expression, scope: Mapping[str, Variable], reads: bool, writes: bool, exact: bool
    ) -> None:
        """Note what the evaluation of an expression touches, which is itself read or written."""
        match expression:
            case syntax.Constant() | syntax.String() | syntax.SizeOfType() | syntax.Prefix(op="sizeof"):
                pass
            case syntax.Name(name=name):
                self._name(scope.get(name), reads, writes, exact)
            case syntax.Prefix(op="&", operand=operand):
                self._address(operand, scope)
            case syntax.Prefix(op="++" | "--", operand=operand) | syntax.Postfix(operand=operand):
                self.expression(operand, scope, reads=True, writes=True, exact=exact)
            case syntax.Prefix(op="*", operand=operand):
                if isinstance(operand, syntax.Name):
                    self._element(operand, (syntax.Constant(_ZERO, operand.span),), scope, reads, writes, exact)
                else:
                    self._everything(reads, writes)
                    self._value(operand, scope)
            case syntax.Assignment(op=op, target=target, value=value):
                self._value(value, scope, exact)
                self.expression(target, scope, reads=op != "=", writes=True, exact=exact)
            case syntax.Subscript():
                base, indices = _chain(expression)
                for index in indices:
                    self._value(index, scope, exact)
                if isinstance(base, syntax.Name):
                    self._element(base, indices, scope, reads, writes, exact)
                else:
                    self._everything(reads, writes)
                    self._value(base, scope)
            case syntax.Member(base=base, arrow=arrow):
                if isinstance(base, syntax.Subscript) and not arrow and self._is_structure(base, scope):
                    self.expression(base, scope, reads=reads or writes, writes=writes, exact=exact)
                    return
                root = scope.get(base.name) if isinstance(base, syntax.Name) else None
                if arrow or root is None or root.is_global:
                    self._everything(reads, writes)
                if not isinstance(base, syntax.Name):
                    self._value(base, scope)
            case syntax.Invocation():
                self._call(expression, scope)
            case syntax.Unsupported():
                self._everything(True, True)
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
                self._value(condition, scope, exact)
                self._value(then, scope)
                self._value(otherwise, scope)
            case syntax.Infix(op="&&" | "||", left=left, right=right):
                self._value(left, scope, exact)
                self._value(right, scope)
            case _:
                for operand in syntax.operands(expression):
                    self._value(operand, scope, exact)

    def _is_structure(self, element: syntax.Subscript, scope: Mapping[str, Variable]) -> bool:
        """Say whether an expression is a whole structure, an element of an array of a variable."""
        base, indices = _chain(element)
        variable = scope.get(base.name) if isinstance(base, syntax.Name) else None
        return variable is not None and variable.structure is not None and len(indices) == rank_of(variable)

    def _value(self, expression: syntax.Expression, scope: Mapping[str, Variable], exact: bool = False) -> None:
        self.expression(expression, scope, reads=True, writes=False, exact=exact)

    def _address(self, operand: syntax.Expression, scope: Mapping[str, Variable]) -> None:
        """Note what is read to compute an address; what is there is not."""
        match operand:
            case syntax.Name():
                pass
            case syntax.Subscript():
                base, indices = _chain(operand)
                for index in indices:
                    self._value(index, scope)
                root = scope.get(base.name) if isinstance(base, syntax.Name) else None
                plain = root is not None and (len(indices) == 1 or len(indices) <= rank_of(root))
                if not plain:
                    self._everything(True, False)
            case _:
                self._value(operand, scope)

    def _call(self, call: syntax.Invocation, scope: Mapping[str, Variable]) -> None:
        callee = call.callee
        known = isinstance(callee, syntax.Name) and callee.name not in scope
        name = callee.name if isinstance(callee, syntax.Name) else ""
        value = isinstance(callee, syntax.Name) and callee.uncertain  # a macro that is one, or the function is unknown
        if not known or not (self._host.known.harmless(name) or self._host.known.silent(name) or value):
            self._everything(True, True)
        for argument in call.arguments:
            self._value(argument, scope)
            self._handed_over(argument, scope)

    def _handed_over(self, argument: syntax.Expression, scope: Mapping[str, Variable]) -> None:
        """Note what a function may reach through an argument that is an address."""
        match argument:
            case syntax.Name(name=name):
                variable = scope.get(name)
                if variable is None or variable.type is not None or variable.is_file:
                    return
                if variable.element is not None and not variable.is_parameter and not variable.is_global:
                    self._add(argument.name, "object", (), True, True)
                else:
                    self._everything(True, True)
            case syntax.Subscript():
                base, indices = _chain(argument)
                root = scope.get(base.name) if isinstance(base, syntax.Name) else None
                if root is None or root.element is None or len(indices) != rank_of(root):
                    self._everything(True, True)  # perhaps a row, or a pointer
            case syntax.Prefix(op="&" | "*") | syntax.Member():
                self._everything(True, True)
            case syntax.Assignment(target=target):
                self._handed_over(target, scope)
            case syntax.Invocation():
                pass
            case _:
                for operand in syntax.operands(argument):
                    self._handed_over(operand, scope)

    # --- what is found ----------------------------------------------------------------------------------------

    def _everything(self, reads: bool, writes: bool) -> None:
        self._add("", "everything", (), reads or writes, writes)

    def _add(
        self,
        name: str,
        kind: Literal["parameter", "object", "pointer", "everything"],
        indices: tuple[str, ...],
        reads: bool,
        writes: bool,
    ) -> None:
        how = self._found.setdefault((name, kind, indices), [False, False])
        how[0] = how[0] or reads
        how[1] = how[1] or writes

    def _name(self, variable: Variable | None, reads: bool, writes: bool, exact: bool) -> None:
        """Note a variable: one of the file may be what a caller passes as an array; others are nobody's arrays."""
        if variable is None or not variable.is_global or variable.const:
            return
        if id(variable) in self._inner:
            self._everything(reads, writes)  # a static one, which has no name in front of the piece
        elif variable.type is not None:
            self._add(variable.name, "object", (), reads or (writes and not exact), writes)
        elif variable.fault not in ("", *_POINTERS, "MF0206"):
            self._everything(reads, writes)

    def _element(
        self,
        base: syntax.Name,
        indices: tuple[syntax.Expression, ...],
        scope: Mapping[str, Variable],
        reads: bool,
        writes: bool,
        exact: bool,
    ) -> None:
        variable = scope.get(base.name)
        if variable is None or base.uncertain:
            self._everything(reads, writes)
            return
        array = variable.element is not None
        if array and len(indices) < rank_of(variable):
            return  # an address
        if array and id(variable) in self._inner and not variable.is_global:
            return  # no schedule stands in its life
        rank = rank_of(variable) if array else 1
        if not (array or variable.fault in _POINTERS) or len(indices) != rank or not self._stands(variable):
            self._everything(reads, writes)
            return
        texts: list[str] = []
        for index in indices:
            text = self._text(index, scope)
            if text is None:
                break
            texts.append(text)
        whole = len(texts) == rank
        if not array and not whole:
            self._everything(reads, writes)
            return
        kind: Literal["parameter", "object", "pointer"] = "object" if array else "pointer"
        if array and variable.is_parameter:
            kind = "parameter"
        self._add(base.name, kind, tuple(texts), reads or (writes and not (exact and whole)), writes)

    def _stands(self, variable: Variable) -> bool:
        """Return whether a variable has one value in the piece; an array object always has one place."""
        if variable.name in self._varying:
            return False
        reachable = (variable.is_global and not variable.const) or variable.escapes < math.inf
        moving = variable.element is None or variable.is_parameter
        return not (reachable and moving and self._stores)

    def _text(self, index: syntax.Expression, scope: Mapping[str, Variable]) -> str | None:
        """Return an integer expression that can be evaluated in front of the piece, without a trap, as C."""
        match index:
            case syntax.Constant(text=text) if _NUMBER.fullmatch(text):
                return text
            case syntax.Name(name=name, uncertain=False):
                variable = scope.get(name)
                if variable is None or variable.type is None or not variable.type.integer:
                    return None
                return name if self._stands(variable) else None
            case syntax.Prefix(op="+" | "-" as op, operand=operand):
                inner = self._text(operand, scope)
                return None if inner is None else f"({op}{inner})"
            case syntax.Infix(op="+" | "-" | "*" as op, left=left, right=right):
                first, second = self._text(left, scope), self._text(right, scope)
                return None if first is None or second is None else f"({first} {op} {second})"
            case syntax.Conversion(type=type_, operand=operand):
                to = scalar_type(type_.words, self._host.typedefs)
                plain = to is not None and to.integer and not (type_.pointers or type_.extents or type_.function)
                inner = self._text(operand, scope)
                return f"(({to.spelling}){inner})" if to is not None and plain and inner is not None else None
            case _:
                return None


def _chain(subscript: syntax.Subscript) -> tuple[syntax.Expression, tuple[syntax.Expression, ...]]:
    """Return the base of ``base[i][j]`` and the indices, outermost first."""
    indices: list[syntax.Expression] = []
    base: syntax.Expression = subscript
    while isinstance(base, syntax.Subscript):
        indices.append(base.index)
        base = base.base
    return base, tuple(reversed(indices))
