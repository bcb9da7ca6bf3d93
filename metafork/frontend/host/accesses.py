"""What a piece of host code touches: elements, rows and whole arrays, or everything.

An access counts with the indices whose values are known before the piece is run, so that it can be announced there:
the same all the time, or sums over the iterations of counted loops (``linear_indices``).  Of any other index the whole
extent counts.  Calls touch what the bodies of the file's functions say, or what is known of a function of C, else
everything; so does what is reached through anything but an array, or a pointer that stands still.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from metafork.frontend.host.callees import RANGES, Callees, Place, element_type
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.linear_indices import (
    Amount,
    Counted,
    Linear,
    changed,
    converted,
    counted,
    jumps,
    linear,
    loop_name,
)
from metafork.frontend.host.named_elements import POINTERS, Elements, Scopes, chain
from metafork.frontend.host.variables import Variable, rank_of
from metafork.frontend.text import syntax
from metafork.ir.translation_unit import HostAccess

_ZERO = "0"
_MOST_CALLS = 64
"""Of functions of the file, in one piece."""


def accesses(
    host: HostFunction,
    scopes: Scopes,
    piece: syntax.Statement | syntax.Expression,
    scope: Mapping[str, Variable],
    callees: Callees,
    beside: syntax.Invocation | None = None,
) -> tuple[HostAccess, ...]:
    """Return what a statement without schedules, or an expression, touches, as it can be said in front of it.

    Of the call ``beside`` only the arguments count.
    """
    collector = _Collector(host, scopes, piece, dict(scope), callees)
    collector.beside = beside
    if isinstance(piece, syntax.Statement):
        simple = isinstance(piece, syntax.ExpressionStatement | syntax.ForStatement)
        collector.statement(piece, dict(scope), exact=simple)
    else:
        collector.expression(piece, scope, reads=True, writes=False, exact=True)
    return collector.result()


class _Collector(Elements):
    """Walks one piece."""

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
        declarators = statement.declarators if isinstance(statement, syntax.Declaration) else ()
        braced = [one.value for one in declarators if one.braces is not None]  # whose items are expressions too
        for expression in syntax.direct_expressions(statement):
            if not any(expression is one for one in braced):
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
                base, indices = chain(expression)
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
                self._call(expression, scope, exact)
            case syntax.Unsupported() | syntax.Literal():
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
        base, indices = chain(element)
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
                base, indices = chain(operand)
                for index in indices:
                    self._value(index, scope)
                root = scope.get(base.name) if isinstance(base, syntax.Name) else None
                plain = root is not None and (len(indices) == 1 or len(indices) <= rank_of(root))
                if not plain:
                    self._everything(True, False)
            case _:
                self._value(operand, scope)

    def _call(self, call: syntax.Invocation, scope: Mapping[str, Variable], exact: bool) -> None:
        callee = call.callee
        name = callee.name if isinstance(callee, syntax.Name) else ""
        value = isinstance(callee, syntax.Name) and callee.uncertain  # a macro that is one, or the function is unknown
        own = scope.get(name)
        for argument in call.arguments:
            self._value(argument, scope)
        if call is self.beside:
            return
        if own is not None and own.fault == "MF0206" and own.is_global:
            if not self._enter(name, call, scope, exact):
                self._everything(True, True)
            return
        if name and own is None and name in RANGES and self._host.known.trusted:
            self._ranges(name, call, scope, exact)
            return
        if name == "free" and own is None and self._host.known.trusted and exact and not self._around:
            self._freed(call, scope)
            return
        harmless = self._host.known.harmless(name) or self._host.known.silent(name) or value
        if not name or own is not None or not harmless:
            self._everything(True, True)
        for argument in call.arguments:
            self._handed_over(argument, scope)

    # --- calls of functions that are known ---------------------------------------------------------------------

    def _enter(self, name: str, call: syntax.Invocation, scope: Mapping[str, Variable], exact: bool) -> bool:
        """Note what a function of the file touches when it is called so; returns whether that is known."""
        self._entered += 1
        if name in self._callees.drop_ins or name in self._within or self._entered > _MOST_CALLS:
            return False
        callee = self._callees.find(name)
        if callee is None or len(callee.parameters) != len(call.arguments):
            return False
        body = callee.host.body
        written = changed(part for one in syntax.walk_statements(body) for part in syntax.direct_expressions(one))
        values: dict[int, Linear] = {}
        places: dict[int, Place | None] = {}
        kept = [
            (parameter, argument)
            for parameter, argument in zip(callee.parameters, call.arguments, strict=True)
            if parameter.name not in written
        ]
        for parameter, argument in kept:
            number = None if parameter.type is None else self._linear(argument, scope)
            number = None if parameter.type is None or number is None else converted(number, parameter.type)
            if number is not None:
                values[id(parameter)] = number
        for parameter, argument in kept:
            if parameter.type is None:
                places[id(parameter)] = self._place(argument, parameter, scope, values)
        outside = self._host, self._scopes, self._values, self._places
        self._host, self._scopes = callee.host, Scopes(callee.host)
        self._values, self._places = {**self._values, **values}, {**self._places, **places}
        self._within.append(name)
        self.statement(body, dict(callee.host.outer), exact=exact and not jumps(body))
        self._within.pop()
        self._host, self._scopes, self._values, self._places = outside
        return True

    def _place(
        self,
        argument: syntax.Expression,
        parameter: Variable,
        scope: Mapping[str, Variable],
        values: Mapping[int, Linear],
    ) -> Place | None:
        """Return what an address that is handed over leads to; ``None`` where that is not known."""
        found = self._leads_to(argument, scope)
        if found is None:
            return None
        variable, left = found.variable, rank_of(found.variable) - len(found.prefix)
        rank = rank_of(parameter) if parameter.element is not None else 1
        type_ = element_type(parameter)
        if type_ is None or type_ is not element_type(variable):
            return None
        if variable.element is None:
            return found if rank == 1 else None
        if rank == left and (rank == 1 or self._same_rows(variable, parameter, values)):
            return found
        return None

    def _same_rows(self, variable: Variable, parameter: Variable, values: Mapping[int, Linear]) -> bool:
        """Return whether rows of an array are surely as long as those of the parameter that it becomes."""

        def ours(name: syntax.Name) -> Linear | None:
            one = variable.scope.get(name.name)
            usable = one is not None and one.type is not None and one.type.integer and self._announced(one)
            if one is None or one.type is None or not usable or self._within or one.writes or one.is_global:
                return None
            return Linear(Amount.of(f"(long long){one.name}"), (), one.type) if self._stands(one) else None

        def theirs(name: syntax.Name) -> Linear | None:
            one = parameter.scope.get(name.name)
            return None if one is None else values.get(id(one))

        extents = variable.extents[len(variable.extents) - len(parameter.extents) + 1 :]
        for own, other in zip(extents, parameter.extents[1:], strict=True):
            left = linear(own, ours, self._host.typedefs)
            right = linear(other, theirs, self._host.typedefs)
            if left is None or right is None or (left.start, left.terms) != (right.start, right.terms):
                return False
        return True

    def _ranges(self, name: str, call: syntax.Invocation, scope: Mapping[str, Variable], exact: bool) -> None:
        """Note the ranges of bytes that a function of C touches."""
        for one in RANGES[name]:
            if max(one.start, *one.length) >= len(call.arguments):
                self._everything(True, True)
                continue
            argument = call.arguments[one.start]
            while isinstance(argument, syntax.Conversion):
                argument = argument.operand
            self._range(argument, tuple(call.arguments[k] for k in one.length), scope, (one.reads, one.writes, exact))

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
                base, indices = chain(argument)
                root = scope.get(base.name) if isinstance(base, syntax.Name) else None
                if root is None or root.element is None or len(indices) != rank_of(root):
                    self._everything(True, True)  # perhaps a row, or a pointer
            case syntax.Prefix(op="sizeof"):
                pass
            case syntax.Prefix(op="&", operand=syntax.Name(name=name)) if _is_plain(scope.get(name)):
                pass
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
        found = tuple(self._linear(index, scope) for index in indices)
        if id(variable) in self._places:
            place = self._places[id(variable)]
            if place is None or len(indices) != rank:
                self._everything(reads, writes)
            else:
                self._at(place, found, reads, writes, exact)
            return
        if not (array or variable.fault in POINTERS) or len(indices) != rank or not self._stands(variable):
            self._everything(reads, writes)
            return
        self._elements(variable, found, reads, writes, exact)


def _entered(statement: syntax.Statement) -> bool:
    """Return whether a jump from elsewhere may lead into a statement."""
    if isinstance(statement, syntax.SwitchStatement):
        return False
    inside = any(_entered(one) for one in syntax.direct_statements(statement))
    return inside or isinstance(statement, syntax.LabelledStatement)


def _is_plain(variable: Variable | None) -> bool:
    """Return whether a variable of the function is neither an array nor a pointer."""
    if variable is None or variable.is_global or variable.element is not None:
        return False
    return variable.type is not None or variable.fault == "MF0205"
