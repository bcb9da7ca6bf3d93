"""Local pointers into arrays, ``const float *row = x + i * m;``: what they lead to is written out.

A pointer that is initialised with a place in an array, and never changed, is that place: ``row[k]`` is read as
``x[i * m + k]``, ``*row`` as ``x[i * m]``, ``body->mass`` as ``p[i].mass``.  What the place depends on keeps its value
as long as the pointer lives; an offset that may not is kept in a scalar.  Other pointers stay, and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.linear_indices import changed
from metafork.frontend.host.variables import Variable, declared
from metafork.frontend.nests.shape import fresh
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.structures import StructureType, TypeNames
from metafork.frontend.text.syntax_changes import with_expressions, with_operands, with_statements
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


class _Place(Struct, frozen=True):
    """``base + offset`` in an array; ``base`` is the array, or rows of it."""

    base: syntax.Expression
    offset: syntax.Expression | None = None

    def moved(self, op: str, by: syntax.Expression) -> _Place:
        """Return the place that is ``by`` elements further, or less far."""
        if self.offset is None and op == "+":
            return replace(self, offset=by)
        first = syntax.Constant("0", by.span) if self.offset is None else self.offset
        return replace(self, offset=syntax.Infix(op, first, by, by.span))

    def element(self, span: Span) -> syntax.Expression:
        """Return the element at this place."""
        index = syntax.Constant("0", span) if self.offset is None else self.offset
        return syntax.Subscript(self.base, index, span)

    def pointer(self, span: Span) -> syntax.Expression:
        """Return a pointer to it."""
        return self.base if self.offset is None else syntax.Infix("+", self.base, self.offset, span)


def with_places(statement: syntax.Statement, visible: Mapping[str, Variable], typedefs: TypeNames) -> syntax.Statement:
    """Return a statement in which local pointers to places in arrays that are ``visible`` are written out."""
    if not any(declarator.type.pointers for declarator in syntax.declarators_in(statement)):
        return statement
    own = {one.name for one in syntax.declarators_in(statement)}
    return _Rewriting(typedefs, free_names(statement) | visible.keys() | own).statement(statement, dict(visible))


class _Rewriting:
    def __init__(self, typedefs: TypeNames, taken: set[str]) -> None:
        self._typedefs = typedefs
        self._taken = taken

    def statement(self, statement: syntax.Statement, scope: dict[str, Variable]) -> syntax.Statement:
        """Return a statement with its pointers written out; ``scope`` are the variables that are visible in front."""
        if not isinstance(statement, syntax.Block):
            if isinstance(statement, syntax.ForStatement) and isinstance(statement.init, syntax.Declaration):
                scope = dict(scope)
                self._enter(statement.init, scope)
            return with_statements(statement, lambda one: self.statement(one, dict(scope)))
        scope = dict(scope)
        found: list[syntax.Statement] = []
        rest = list(statement.items)
        while rest:
            item = rest.pop(0)
            if not isinstance(item, syntax.Declaration):
                found.append(self.statement(item, scope))
                continue
            kept: list[syntax.Declarator] = []
            left = list(item.declarators)
            while left:
                declarator = left.pop(0)
                follows = syntax.Block((replace(item, declarators=tuple(left)), *rest), statement.span)
                place = self._place_of(declarator, scope, follows)
                if place is None:
                    kept.append(declarator)
                else:
                    if place.offset is not None and not self._lasts(place.offset, follows):
                        kept.append(self._scalar(declarator, place.offset))
                        place = replace(place, offset=syntax.Name(kept[-1].name, declarator.span))
                    first, *rest = (self._written_out(one, declarator.name, place) for one in follows.items)
                    assert isinstance(first, syntax.Declaration)
                    left = list(first.declarators)
                for one in kept[-1:]:
                    scope[one.name] = declared(one, self._typedefs, 0)
            if kept or not item.declarators:
                found.append(replace(item, declarators=tuple(kept)))
        return replace(statement, items=tuple(found))

    def _enter(self, declaration: syntax.Declaration, scope: dict[str, Variable]) -> None:
        for declarator in declaration.declarators:
            scope[declarator.name] = declared(declarator, self._typedefs, 0)

    def _scalar(self, declarator: syntax.Declarator, offset: syntax.Expression) -> syntax.Declarator:
        """Return the declaration of a scalar for the offset of a pointer."""
        name = fresh(f"{declarator.name}_first", self._taken)
        self._taken.add(name)
        type_ = syntax.TypeName(("long",), frozenset(), frozenset(), (), 0, False, declarator.type.span)
        return replace(declarator, name=name, type=type_, value=offset)

    # --- places -----------------------------------------------------------------------------------------------

    def _place_of(
        self, declarator: syntax.Declarator, scope: Mapping[str, Variable], rest: syntax.Block
    ) -> _Place | None:
        """Return the place that a pointer leads to as long as it lives, ``None`` where it may be another one."""
        type_ = declarator.type
        if type_.pointers != 1 or type_.extents or type_.rows or type_.function or declarator.value is None:
            return None
        if type_.storage or "volatile" in type_.qualifiers:
            return None
        found = _place(declarator.value, scope)
        if found is None:
            return None
        place, array = found
        if place.offset is not None and _may_wrap(place.offset, scope):
            return None
        own = _element(declared(declarator, self._typedefs, 0))
        if own is None or own != _element(array):
            return None
        names, held = syntax.names_in(place.pointer(type_.span)), syntax.names_in(place.base)
        changing = _changed(rest)
        hidden = {one.name for one in syntax.declarators_in(rest)}
        if declarator.name in changing | hidden or held & changing or names & hidden:
            return None
        if not self._row_lasts(place.base, rest) or _has_mention(rest, declarator.name):
            return None
        return place

    def _row_lasts(self, base: syntax.Expression, rest: syntax.Statement) -> bool:
        """Return whether an array, or a row of it, stays the same one."""
        while isinstance(base, syntax.Subscript):
            if not self._lasts(base.index, rest):
                return False
            base = base.base
        return self._lasts(base, rest)

    def _lasts(self, expression: syntax.Expression, rest: syntax.Statement) -> bool:
        """Return whether an expression keeps its value: it is made of scalars that nothing changes, not of memory."""
        of_scalars = all(
            isinstance(one, _OF_SCALARS) and not (isinstance(one, syntax.Prefix) and one.op in ("++", "--", "*", "&"))
            for one in syntax.walk(expression)
        )
        return of_scalars and syntax.names_in(expression).isdisjoint(_changed(rest))

    def _written_out(self, statement: syntax.Statement, name: str, place: _Place) -> syntax.Statement:
        statement = with_expressions(statement, lambda one: _with_place(one, name, place))
        return with_statements(statement, lambda one: self._written_out(one, name, place))


_OF_SCALARS = (syntax.Name, syntax.Constant, syntax.Infix, syntax.Prefix, syntax.Conversion, syntax.Ternary)
"""Expressions whose values depend on those of variables alone."""


def _place(expression: syntax.Expression, scope: Mapping[str, Variable]) -> tuple[_Place, Variable] | None:
    """Return the place in an array that an expression is a pointer to, and the array."""
    match expression:
        case syntax.Prefix(op="&", operand=syntax.Subscript(base=base, index=index)):
            array = _array(base, scope)
            return None if array is None else (_Place(base, index), array)
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            found = _place(left, scope)
            if found is not None:
                return found[0].moved(op, right), found[1]
            found = _place(right, scope) if op == "+" else None
            return None if found is None else (found[0].moved(op, left), found[1])
        case _:
            array = _array(expression, scope)
            return None if array is None else (_Place(expression), array)


def _changed(statement: syntax.Statement) -> set[str]:
    """Return the names that a statement may give another value."""
    return changed(part for one in syntax.walk_statements(statement) for part in syntax.direct_expressions(one))


def _may_wrap(offset: syntax.Expression, scope: Mapping[str, Variable]) -> bool:
    """Return whether an offset has a difference in a narrow unsigned type: pointers go back there, numbers wrap."""
    nodes = list(syntax.walk(offset))
    names = [scope.get(one.name) for one in nodes if isinstance(one, syntax.Name)]
    unsigned = any(one is not None and one.type is not None and not one.type.signed for one in names)
    return unsigned and any(isinstance(one, syntax.Infix | syntax.Prefix) and one.op == "-" for one in nodes)


def _array(expression: syntax.Expression, scope: Mapping[str, Variable]) -> Variable | None:
    """Return the array of which an expression is a part."""
    while isinstance(expression, syntax.Subscript):
        expression = expression.base
    if not isinstance(expression, syntax.Name) or expression.uncertain:
        return None
    variable = scope.get(expression.name)
    return variable if variable is not None and _element(variable) is not None else None


def _element(variable: Variable) -> ScalarType | StructureType | None:
    """Return the type of the elements of an array, or of what a pointer leads to."""
    return variable.structure or variable.element or variable.pointed


def _with_place(expression: syntax.Expression, name: str, place: _Place) -> syntax.Expression:
    """Return an expression in which a pointer is written out."""

    def led_to(part: syntax.Expression) -> _Place | None:
        match part:
            case syntax.Name(name=found) if found == name:
                return place
            case syntax.Infix(op="+" | "-" as op, left=left, right=right):
                inner = led_to(left)
                if inner is not None:
                    return inner.moved(op, _with_place(right, name, place))
                inner = led_to(right) if op == "+" else None
                return None if inner is None else inner.moved(op, _with_place(left, name, place))
            case _:
                return None

    match expression:
        case syntax.Subscript(base=base, index=index) if (found := led_to(base)) is not None:
            return found.moved("+", _with_place(index, name, place)).element(expression.span)
        case syntax.Prefix(op="*", operand=operand) if (found := led_to(operand)) is not None:
            return found.element(expression.span)
        case syntax.Member(base=base, arrow=True) if (found := led_to(base)) is not None:
            return replace(expression, base=found.element(base.span), arrow=False)
        case syntax.Name() | syntax.Infix() if (found := led_to(expression)) is not None:
            return found.pointer(expression.span)
        case _:
            return with_operands(expression, lambda one: _with_place(one, name, place))


def _has_mention(statement: syntax.Statement, name: str) -> bool:
    """Return whether a name stands in text that is not understood, or where the size of the pointer may be meant."""
    statements = syntax.walk_statements(statement)
    if any(isinstance(one, syntax.Opaque) and any(token.text == name for token in one.tokens) for one in statements):
        return True
    braced = {id(one.value) for one in syntax.declarators_in(statement) if one.braces is not None}
    for part in syntax.expressions_in(statement):
        if id(part) in braced:
            continue  # its values are among the expressions
        if isinstance(part, syntax.Unsupported) and any(token.text == name for token in part.tokens):
            return True
        if isinstance(part, syntax.Prefix) and part.op == "sizeof" and name in syntax.names_in(part.operand):
            return True
    return False
