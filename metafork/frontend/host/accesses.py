"""What a piece of host code touches: elements, rows and whole arrays, or everything.

An access counts with the indices whose values are known before the piece is run, so that it can be announced there:
the same all the time, or sums over the iterations of counted loops (``linear_indices``).  Of any other index the whole
extent counts.  Calls touch everything, but for those that are known to read their arguments alone; so does what is
reached through anything but an array, or a pointer that stands still.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from metafork.frontend.host.access_boxes import Element, Kind, boxes
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.linear_indices import (
    Amount,
    Counted,
    Linear,
    Trips,
    changed,
    counted,
    jumps,
    linear,
    loop_name,
)
from metafork.frontend.host.variables import Variable, rank_of
from metafork.frontend.text import syntax
from metafork.ir.translation_unit import HostAccess

_ZERO = "0"
_POINTERS = ("MF0201", "MF0208")  # a pointer, and an array without an extent


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
        simple = isinstance(piece, syntax.ExpressionStatement | syntax.ForStatement)
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
        self._found: list[Element] = []
        self._varying = declared
        self._stores = False
        self._trips: dict[int, Trips] = {}
        self._around: list[int] = []  # the numbers of the counted loops around the place
        self._values: dict[int, Linear] = {}  # of their variables, by identity
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
        return boxes(self._found, self._trips)

    # --- statements -------------------------------------------------------------------------------------------

    def statement(self, statement: syntax.Statement, scope: dict[str, Variable], exact: bool = False) -> None:
        """Note what a statement touches; its writes are ``exact`` where it surely makes them, once."""
        inner = dict(scope) if isinstance(statement, syntax.Block | syntax.ForStatement) else scope
        if isinstance(statement, syntax.Opaque | syntax.ScheduleStatement):
            self._everything(True, True)
        first = statement.init if isinstance(statement, syntax.ForStatement) else statement
        if isinstance(first, syntax.Declaration):
            self._inner |= {id(one) for one in self._scopes.declare(first, inner)}
        if isinstance(statement, syntax.ForStatement):
            self._loop(statement, inner, exact)
            return
        for expression in syntax.direct_expressions(statement):
            self.expression(expression, inner, reads=True, writes=False, exact=exact)
        for child in syntax.direct_statements(statement):
            self.statement(child, inner, exact=exact and isinstance(statement, syntax.Block))

    def _loop(self, loop: syntax.ForStatement, scope: dict[str, Variable], exact: bool) -> None:
        """Note what a loop touches, whose variables are in the scope."""
        number = len(self._trips)
        name = loop_name(loop)
        variable = None if name is None else scope.get(name.name)
        found = None if variable is None else self._counted(loop, number, variable, scope)
        first = loop.init
        for start in syntax.direct_expressions(first) if isinstance(first, syntax.Declaration) else (first,):
            if start is not None:
                self.expression(start, scope, reads=True, writes=False, exact=exact)
        if found is not None:
            self._trips[number] = found.trips
            self._around.append(number)
            self._values[id(variable)] = found.value
        for part in (loop.condition, loop.step):
            if part is not None:
                self._value(part, scope)
        once = exact and found is not None and found.trips.exact and not jumps(loop.body)
        self.statement(loop.body, scope, exact=once)
        if found is not None:
            self._around.pop()
            del self._values[id(variable)]

    def _counted(
        self, loop: syntax.ForStatement, number: int, variable: Variable, scope: Mapping[str, Variable]
    ) -> Counted | None:
        """Return what is known of a loop over a variable that nothing else writes."""
        body = list(syntax.walk_statements(loop.body))
        known = not any(isinstance(one, syntax.Opaque) for one in body) and not _entered(loop.body)
        expressions = [part for one in body for part in syntax.direct_expressions(one)]
        conditions = [] if loop.condition is None else [loop.condition]
        kept = variable.name not in changed(iter([*expressions, *conditions]))
        if variable.type is None or not variable.type.integer or variable.is_global or variable.escapes < math.inf:
            return None
        if not known or not kept or id(variable) in self._values:
            return None
        return counted(loop, number, variable.type, variable.name, self._trips, lambda one: self._linear(one, scope))

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
                match operand:
                    case syntax.Name():
                        self._element(operand, (syntax.Constant(_ZERO, operand.span),), scope, reads, writes, exact)
                    case syntax.Infix(op="+", left=syntax.Name() as first, right=index):
                        self._value(index, scope, exact)
                        self._element(first, (index,), scope, reads, writes, exact)
                    case _:
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
        self._found.append(Element("", "everything", (), reads or writes, writes))

    def _add(
        self,
        name: str,
        kind: Kind,
        indices: tuple[Linear | None, ...],
        reads: bool,
        writes: bool,
        around: tuple[int, ...] = (),
    ) -> None:
        self._found.append(Element(name, kind, indices, reads, writes, around))

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
        found = tuple(self._linear(index, scope) for index in indices)
        whole = all(one is not None for one in found)
        if not array and not whole:
            self._everything(reads, writes)
            return
        kind: Kind = "object" if array else "pointer"
        if array and variable.is_parameter:
            kind = "parameter"
        once = exact and whole
        # What is overwritten is so in every iteration of the loops around: of one without any, nothing is.
        around = tuple(self._around) if once else ()
        self._add(base.name, kind, found, reads or (writes and not once), writes, around)

    def _stands(self, variable: Variable) -> bool:
        """Return whether a variable has one value in the piece; an array object always has one place."""
        if variable.name in self._varying:
            return False
        reachable = (variable.is_global and not variable.const) or variable.escapes < math.inf
        moving = variable.element is None or variable.is_parameter
        return not (reachable and moving and self._stores)

    def _linear(self, index: syntax.Expression, scope: Mapping[str, Variable]) -> Linear | None:
        """Return an index as it is known in front of the piece."""

        def named(name: syntax.Name) -> Linear | None:
            variable = scope.get(name.name)
            if variable is None or variable.type is None or not variable.type.integer:
                return None
            if id(variable) in self._values:
                return self._values[id(variable)]
            return Linear(Amount.of(f"(long long){name.name}"), (), variable.type) if self._stands(variable) else None

        return linear(index, named, self._host.typedefs)


def _entered(statement: syntax.Statement) -> bool:
    """Return whether a jump from elsewhere may lead into a statement."""
    if isinstance(statement, syntax.SwitchStatement):
        return False
    inside = any(_entered(one) for one in syntax.direct_statements(statement))
    return inside or isinstance(statement, syntax.LabelledStatement)


def _chain(subscript: syntax.Subscript) -> tuple[syntax.Expression, tuple[syntax.Expression, ...]]:
    """Return the base of ``base[i][j]`` and the indices, outermost first."""
    indices: list[syntax.Expression] = []
    base: syntax.Expression = subscript
    while isinstance(base, syntax.Subscript):
        indices.append(base.index)
        base = base.base
    return base, tuple(reversed(indices))
