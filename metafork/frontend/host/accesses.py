"""What a piece of host code touches: elements, rows and whole arrays, or everything.

An access counts with the indices whose values are known before the piece is run, so that it can be announced there:
the same all the time, or sums over the iterations of counted loops (``linear_indices``).  Of any other index the whole
extent counts.  Calls touch what the bodies of the file's functions say, or what is known of a function of C, else
everything; so does what is reached through anything but an array, or a pointer that stands still.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from metafork.frontend.host.access_boxes import Element, Kind, boxes
from metafork.frontend.host.callees import RANGES, Callees, Place, element_type, elements_of
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.linear_indices import (
    Amount,
    Counted,
    Linear,
    Trips,
    changed,
    converted,
    counted,
    iteration,
    jumps,
    linear,
    loop_name,
    summed,
    zero,
)
from metafork.frontend.host.variables import Variable, rank_of
from metafork.frontend.text import syntax
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.translation_unit import HostAccess

_ZERO = "0"
_MOST_CALLS = 64
"""Of functions of the file, in one piece."""
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
        self,
        host: HostFunction,
        scopes: Scopes,
        piece: syntax.Statement | syntax.Expression,
        visible: Mapping[str, Variable],
        callees: Callees,
    ) -> None:
        self._host = host
        self._scopes = scopes
        self._visible = visible  # where accesses are announced
        self._callees = callees
        self.beside: syntax.Invocation | None = None
        self._within: list[str] = []  # the functions of the file whose bodies are looked at
        self._entered = 0
        self._places: dict[int, Place | None] = {}  # of their parameters, by identity
        self._inner: set[int] = set()
        self._found: list[Element] = []
        self._varying = _declared(piece)
        self._stores = False
        self._trips: dict[int, Trips] = {}
        self._around: list[int] = []  # the numbers of the counted loops around the place
        self._values: dict[int, Linear] = {}  # of their variables, by identity
        for expression in _expressions(piece):
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
                case syntax.Prefix(op="&", operand=syntax.Subscript()):
                    pass  # the address of an element moves nothing
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
                self._call(expression, scope, exact)
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

    def _leads_to(self, address: syntax.Expression, scope: Mapping[str, Variable]) -> Place | None:
        match address:
            case syntax.Name(name=name, uncertain=False):
                variable = scope.get(name)
                if variable is None or id(variable) in self._places:
                    return None if variable is None else self._places[id(variable)]
                array = variable.element is not None
                usable = (array or variable.fault in _POINTERS) and self._stands(variable)
                if not usable or id(variable) in self._inner or not self._announced(variable):
                    return None
                return Place(variable, (), None)
            case syntax.Prefix(op="&", operand=syntax.Subscript() as element):
                base, indices = _chain(element)
                return self._moved(base, indices[:-1], indices[-1], scope)
            case syntax.Subscript():
                base, indices = _chain(address)
                return self._moved(base, indices, None, scope)
            case syntax.Infix(op="+", left=base, right=index):
                return self._moved(base, (), index, scope)
            case _:
                return None

    def _moved(
        self,
        base: syntax.Expression,
        indices: tuple[syntax.Expression, ...],
        offset: syntax.Expression | None,
        scope: Mapping[str, Variable],
    ) -> Place | None:
        """Return ``&base[indices...][offset]``."""
        found = self._leads_to(base, scope)
        prefix = tuple(self._linear(index, scope) for index in indices)
        more = None if offset is None else self._linear(offset, scope)
        if found is None or (offset is not None and more is None) or found.variable.structure is not None:
            return None
        if found.offset is not None and (indices or more is None):
            return None
        known = tuple(one for one in prefix if one is not None)
        rank = rank_of(found.variable) if found.variable.element is not None else 1
        if len(known) < len(prefix) or len(found.prefix) + len(known) >= rank:
            return None
        return Place(
            found.variable, (*found.prefix, *known), more if found.offset is None else summed(found.offset, more)
        )

    def _freed(self, call: syntax.Invocation, scope: Mapping[str, Variable]) -> None:
        """Note that the memory at an address is given back: what is there is not read any more."""
        place = self._leads_to(call.arguments[0], scope) if len(call.arguments) == 1 else None
        if place is None or place.variable.element is not None or place.prefix or place.offset is not None:
            self._everything(True, True)
        else:
            self._found.append(Element(place.variable.name, "freed", (), False, True))

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

    def _range(
        self,
        start: syntax.Expression,
        length: tuple[syntax.Expression, ...],
        scope: Mapping[str, Variable],
        how: tuple[bool, bool, bool],
    ) -> None:
        reads, writes, exact = how
        place = self._leads_to(start, scope)
        type_ = None if place is None else element_type(place.variable)
        if place is None or type_ is None:
            local = scope.get(start.name) if isinstance(start, syntax.Name) else None
            if local is None or id(local) not in self._inner or local.element is None or local.is_global:
                self._everything(reads, writes)
            return

        def typed(element: syntax.Expression) -> ScalarType | None:
            starred = isinstance(element, syntax.Prefix) and element.op == "*"
            base = element.operand if isinstance(element, syntax.Prefix) else element
            rank = int(starred)
            while isinstance(base, syntax.Subscript):
                base, rank = base.base, rank + 1
            root = scope.get(base.name) if isinstance(base, syntax.Name) else None
            if root is None or (isinstance(element, syntax.Prefix) and not starred):
                return None
            return element_type(root) if rank == (rank_of(root) if root.element is not None else 1) else None

        factors = elements_of(length, type_, typed, self._host.typedefs)
        numbers = [self._linear(factor, scope) for factor in factors or ()]
        count = Amount.number(1)
        for one in numbers:
            count = count if one is None else count.times(one.start)
        if factors is None or any(one is None or one.terms for one in numbers):
            self._at(place, (None,), reads, writes, False)
            return
        number = len(self._trips)
        self._trips[number] = Trips(count, exact=True)
        self._around.append(number)
        self._at(place, (iteration(number),), reads, writes, exact)
        self._around.pop()

    def _at(self, place: Place, indices: tuple[Linear | None, ...], reads: bool, writes: bool, exact: bool) -> None:
        """Note elements of what an address leads to."""
        variable = place.variable
        rank = rank_of(variable) if variable.element is not None else 1
        first = indices[0]
        if first is not None and place.offset is not None:
            first = summed(first, place.offset)
        all_indices = (*place.prefix, first, *indices[1:])
        missing = rank - len(all_indices)
        # An address into the first row may lead through all of them.
        all_indices = (*place.prefix, *(zero() for _ in range(missing)), first, *indices[1:])
        if any(one is None for one in all_indices) and (missing or place.prefix):
            all_indices = ()
        self._elements(variable, all_indices, reads, writes, exact)

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
        elif not self._announced(variable):
            self._everything(reads, writes)
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
        found = tuple(self._linear(index, scope) for index in indices)
        if id(variable) in self._places:
            place = self._places[id(variable)]
            if place is None or len(indices) != rank:
                self._everything(reads, writes)
            else:
                self._at(place, found, reads, writes, exact)
            return
        if not (array or variable.fault in _POINTERS) or len(indices) != rank or not self._stands(variable):
            self._everything(reads, writes)
            return
        self._elements(variable, found, reads, writes, exact)

    def _elements(
        self, variable: Variable, indices: tuple[Linear | None, ...], reads: bool, writes: bool, exact: bool
    ) -> None:
        """Note elements of a variable that stands still."""
        array = variable.element is not None
        whole = bool(indices) and all(one is not None for one in indices)
        if not self._announced(variable) or (not array and not whole):
            self._everything(reads, writes)
            return
        kind: Kind = "object" if array else "pointer"
        if array and variable.is_parameter:
            kind = "parameter"
        once = exact and whole
        # What is overwritten is so in every iteration of the loops around: of one without any, nothing is.
        around = tuple(self._around) if once else ()
        self._add(variable.name, kind, indices, reads or (writes and not once), writes, around)

    def _announced(self, variable: Variable) -> bool:
        """Return whether a name means the variable where accesses are announced."""
        return not self._within or self._visible.get(variable.name) is variable

    def _stands(self, variable: Variable) -> bool:
        """Return whether a variable has one value in the piece; an array object always has one place."""
        if variable.name in self._varying or (self._within and not variable.is_global):
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


def _is_plain(variable: Variable | None) -> bool:
    """Return whether a variable of the function is neither an array nor a pointer."""
    if variable is None or variable.is_global or variable.element is not None:
        return False
    return variable.type is not None or variable.fault == "MF0205"


def _chain(subscript: syntax.Subscript) -> tuple[syntax.Expression, tuple[syntax.Expression, ...]]:
    """Return the base of ``base[i][j]`` and the indices, outermost first."""
    indices: list[syntax.Expression] = []
    base: syntax.Expression = subscript
    while isinstance(base, syntax.Subscript):
        indices.append(base.index)
        base = base.base
    return base, tuple(reversed(indices))
