"""Elements of arrays that a piece of host code names: where they are, as it can be said in front of the piece.

``accesses`` walks the piece; here is what it has noted, which variables keep their values meanwhile, and where
addresses lead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from metafork.frontend.host.access_boxes import Element, Kind, boxes
from metafork.frontend.host.callees import Callees, Place, element_type, elements_of
from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.linear_indices import (
    Amount,
    Linear,
    Trips,
    iteration,
    linear,
    summed,
    zero,
)
from metafork.frontend.host.variables import Variable, rank_of
from metafork.frontend.text import syntax
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.translation_unit import HostAccess

POINTERS = ("MF0201", "MF0208")  # a pointer, and an array without an extent


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


class Elements:
    """The elements of one piece that were named so far, and what is known where they are."""

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
                    self._varying |= syntax.names_in(target)
                case syntax.Invocation() | syntax.Unsupported():
                    self._stores = True
                case _:
                    pass

    def result(self) -> tuple[HostAccess, ...]:
        """Return the accesses, what is overwritten last: what else is read must have been fetched by then."""
        return boxes(self._found, self._trips)

    def _leads_to(self, address: syntax.Expression, scope: Mapping[str, Variable]) -> Place | None:
        match address:
            case syntax.Name(name=name, uncertain=False):
                variable = scope.get(name)
                if variable is None or id(variable) in self._places:
                    return None if variable is None else self._places[id(variable)]
                array = variable.element is not None
                usable = (array or variable.fault in POINTERS) and self._stands(variable)
                if not usable or id(variable) in self._inner or not self._announced(variable):
                    return None
                return Place(variable, (), None)
            case syntax.Prefix(op="&", operand=syntax.Subscript() as element):
                base, indices = chain(element)
                return self._moved(base, indices[:-1], indices[-1], scope)
            case syntax.Subscript():
                base, indices = chain(address)
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
        elif variable.fault not in ("", *POINTERS, "MF0206"):
            self._everything(reads, writes)

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


def chain(subscript: syntax.Subscript) -> tuple[syntax.Expression, tuple[syntax.Expression, ...]]:
    """Return the base of ``base[i][j]`` and the indices, outermost first."""
    indices: list[syntax.Expression] = []
    base: syntax.Expression = subscript
    while isinstance(base, syntax.Subscript):
        indices.append(base.index)
        base = base.base
    return base, tuple(reversed(indices))
