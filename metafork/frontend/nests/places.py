"""Places in arrays that pointers lead to, and expressions in which such pointers are written out.

A place is ``base + offset``, where the base is an array or rows of it; or one of two places by a condition, of which
the second one may be null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.variables import Variable
from metafork.frontend.nests.heads import same
from metafork.frontend.text import syntax
from metafork.frontend.text.structures import StructureType
from metafork.frontend.text.syntax_changes import with_operands
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


class Place(Struct, frozen=True):
    """``base + offset`` in an array; ``base`` is the array, or rows of it."""

    base: syntax.Expression
    offset: syntax.Expression | None = None

    def moved(self, op: str, by: syntax.Expression) -> Place:
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


class Choice(Struct, frozen=True):
    """One of two places; without the second one, a null pointer, which leads to no element."""

    condition: syntax.Expression
    then: Place | Choice
    otherwise: Place | Choice | None

    def moved(self, op: str, by: syntax.Expression) -> Choice:
        """Return the choice of the two places that are ``by`` elements further, or less far."""
        other = None if self.otherwise is None else self.otherwise.moved(op, by)
        return replace(self, then=self.then.moved(op, by), otherwise=other)

    def element(self, span: Span) -> syntax.Expression:
        """Return the element at the place that is chosen."""
        then = self.then.element(span)
        if self.otherwise is None:
            return then
        return syntax.Ternary(self.condition, then, self.otherwise.element(span), span)

    def pointer(self, span: Span) -> syntax.Expression:
        """Return a pointer to it."""
        null = syntax.Constant("0", span)
        other = null if self.otherwise is None else self.otherwise.pointer(span)
        return syntax.Ternary(self.condition, self.then.pointer(span), other, span)


Scope = Mapping[str, Variable]
"""The variables that are visible at some place, by name."""


def place_of(expression: syntax.Expression, scope: Scope) -> tuple[Place | Choice, Variable] | None:
    """Return the place in an array that an expression is a pointer to, and the array; of two, one of them."""
    match expression:
        case syntax.Prefix(op="&", operand=syntax.Subscript(base=base, index=index)):
            array = array_of(base, scope)
            return None if array is None else (Place(base, index), array)
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            found = place_of(left, scope)
            if found is not None:
                return found[0].moved(op, right), found[1]
            found = place_of(right, scope) if op == "+" else None
            return None if found is None else (found[0].moved(op, left), found[1])
        case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
            first, second = place_of(then, scope), place_of(otherwise, scope)
            if first is None or (second is None and not is_null(otherwise)):
                return None
            if second is not None and element_of(first[1]) != element_of(second[1]):
                return None
            return Choice(condition, first[0], None if second is None else second[0]), first[1]
        case _:
            array = array_of(expression, scope)
            return None if array is None else (Place(expression), array)


def is_null(expression: syntax.Expression) -> bool:
    """Say whether an expression is a null pointer."""
    match expression:
        case syntax.Constant(text=text) | syntax.Name(name=text):
            return text in ("0", "NULL")
        case syntax.Conversion(operand=operand):
            return is_null(operand)
        case _:
            return False


def array_of(expression: syntax.Expression, scope: Scope) -> Variable | None:
    """Return the array of which an expression is a part."""
    while isinstance(expression, syntax.Subscript):
        expression = expression.base
    if not isinstance(expression, syntax.Name) or expression.uncertain:
        return None
    variable = scope.get(expression.name)
    return variable if variable is not None and element_of(variable) is not None else None


def element_of(variable: Variable) -> ScalarType | StructureType | None:
    """Return the type of the elements of an array, or of what a pointer leads to."""
    return variable.structure or variable.element or variable.pointed


class Pointer(Protocol):
    """A pointer that is written out: what an expression that is made of it leads to."""

    def led_to(self, part: syntax.Expression) -> Place | Choice | None:
        """Return the place that a pointer leads to that is made of this one; ``None`` for any other expression."""


class Fixed(Struct, frozen=True):
    """A pointer that always leads to one place."""

    name: str
    place: Place | Choice

    def led_to(self, part: syntax.Expression) -> Place | Choice | None:
        """Return the place."""
        return self.place if isinstance(part, syntax.Name) and part.name == self.name else None


class Walking(Struct, frozen=True):
    """A pointer that walks through an array: an offset that is a variable."""

    name: str
    base: syntax.Expression
    offset: str

    def led_to(self, part: syntax.Expression) -> Place | None:
        """Return the place, with the step that the expression makes: ``p``, ``p++``, ``p += n``, ``p = a + n``."""
        match part:
            case syntax.Name(name=name, span=span) if name == self.name:
                return Place(self.base, syntax.Name(self.offset, span))
            case (
                syntax.Postfix(op="++" | "--", operand=syntax.Name(name=name) as at)
                | syntax.Prefix(op="++" | "--", operand=syntax.Name(name=name) as at)
            ) if name == self.name:
                return Place(self.base, replace(part, operand=replace(at, name=self.offset)))
            case syntax.Assignment(op=op, target=syntax.Name(name=name) as at, value=value) if name == self.name:
                given = written_out(value, self)
                by = offset_from(given, self.base) if op == "=" else given
                assert by is not None
                return Place(self.base, replace(part, target=replace(at, name=self.offset), value=by))
            case _:
                return None


class Table(Struct, frozen=True):
    """An array of pointers, each of which always leads to one place."""

    name: str
    places: tuple[Place | Choice, ...]

    def led_to(self, part: syntax.Expression) -> Place | Choice | None:
        """Return the place of one of them, chosen by the index where that is no number."""
        match part:
            case syntax.Subscript(base=syntax.Name(name=name), index=index) if name == self.name:
                if isinstance(index, syntax.Constant) and index.text.isdigit() and int(index.text) < len(self.places):
                    return self.places[int(index.text)]
                index = written_out(index, self)
                found = self.places[-1]
                for number, place in reversed([*enumerate(self.places[:-1])]):
                    at = syntax.Constant(str(number), index.span)
                    found = Choice(syntax.Infix("==", index, at, index.span), place, found)
                return found
            case _:
                return None


def written_out(expression: syntax.Expression, pointer: Pointer) -> syntax.Expression:
    """Return an expression in which a pointer is written out."""

    def led_to(part: syntax.Expression) -> Place | Choice | None:
        if (own := pointer.led_to(part)) is not None:
            return own
        match part:
            case syntax.Infix(op="+" | "-" as op, left=left, right=right):
                inner = led_to(left)
                if inner is not None and op == "-" and is_pointer(right, inner):
                    return None  # a difference is a number
                if inner is not None:
                    return inner.moved(op, written_out(right, pointer))
                inner = led_to(right) if op == "+" else None
                return None if inner is None else inner.moved(op, written_out(left, pointer))
            case _:
                return None

    def is_pointer(part: syntax.Expression, beside: Place | Choice) -> bool:
        of_array = isinstance(beside, Place) and offset_from(part, beside.base) is not None
        return of_array or led_to(part) is not None

    match expression:
        case syntax.Subscript(base=base, index=index) if (found := led_to(base)) is not None:
            return found.moved("+", written_out(index, pointer)).element(expression.span)
        case syntax.Prefix(op="*", operand=operand) if (found := led_to(operand)) is not None:
            return found.element(expression.span)
        case syntax.Member(base=base, arrow=True) if (found := led_to(base)) is not None:
            return replace(expression, base=found.element(base.span), arrow=False)
        case _ if (found := led_to(expression)) is not None:
            return found.pointer(expression.span)
        case _:
            return with_operands(expression, lambda one: written_out(one, pointer))


def offset_from(pointer: syntax.Expression, base: syntax.Expression) -> syntax.Expression | None:
    """Return how far a pointer is from the base of a place; ``None`` where it does not lead into the same rows."""
    if same(pointer, base):
        return syntax.Constant("0", pointer.span)
    match pointer:
        case syntax.Prefix(op="&", operand=syntax.Subscript(base=inner, index=index)) if same(inner, base):
            return index
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            if (first := offset_from(left, base)) is not None:
                zero = op == "+" and isinstance(first, syntax.Constant) and first.text == "0"
                return right if zero else syntax.Infix(op, first, right, pointer.span)
            second = offset_from(right, base) if op == "+" else None
            return None if second is None else syntax.Infix("+", second, left, pointer.span)
        case _:
            return None


def compared(expression: syntax.Expression, bases: Sequence[syntax.Expression]) -> syntax.Expression:
    """Return an expression in which places in one array are compared, or subtracted, by their offsets."""
    expression = with_operands(expression, lambda one: compared(one, bases))
    if not isinstance(expression, syntax.Infix) or expression.op not in ("<", "<=", ">", ">=", "==", "!=", "-"):
        return expression
    for base in bases:
        left, right = offset_from(expression.left, base), offset_from(expression.right, base)
        if left is not None and right is not None:
            return replace(expression, left=left, right=right)
    return expression
