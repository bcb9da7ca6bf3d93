"""Types in the heads of ``meta_for``s: do the comparisons of C say there what the numbers say?

Counting iterations takes variable, start and bounds for numbers.  C compares what is negative with what is unsigned
otherwise, and a start may lose bits where it becomes the value of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from metafork.frontend.nests.heads import Head
from metafork.frontend.text import syntax
from metafork.frontend.text.constants import character_constant, integer_constant
from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir.arithmetic.types import ScalarType

TypeOf = Callable[[str], ScalarType | None]
"""Says what type a variable has that a head names; ``None`` where it is no scalar, or not known."""

NamedType = Callable[[syntax.TypeName], ScalarType | None]
"""Says what scalar type a type name stands for."""

_NUMERIC = (syntax.Name, syntax.Constant, syntax.Infix, syntax.Prefix, syntax.Ternary, syntax.Conversion)


def counts_numbers(head: Head, own: ScalarType | None, type_of: TypeOf, named: NamedType) -> bool:
    """Say whether a head that runs from anywhere, by any step, has as many iterations as its numbers say."""
    if own is None or not own.integer or own is ScalarType.BOOL:
        return False

    def types(*expressions: syntax.Expression | None) -> list[ScalarType | None]:
        return [type_ for one in expressions if one is not None for type_ in _types(one, type_of, named)]

    offsets = [bound.offset for bound in head.bounds if bound.offset is not None]
    parts = (head.start, head.step, *(part for bound in head.bounds for part in bound.parts))
    if not all(isinstance(one, _NUMERIC) for part in parts for one in syntax.walk(part)):
        return False
    if any(one is None or not one.integer for one in types(*parts)):
        return False
    values = [one for one in types(head.start, head.step) if one is not None]
    if any(one.size > own.size for one in values):
        return False
    # What is taken away may go below 0, where what is unsigned goes on at its greatest value.
    grows = not any(
        isinstance(one, syntax.Infix | syntax.Prefix) and one.op == "-" for it in offsets for one in syntax.walk(it)
    )
    if not own.signed:
        return own.size >= ScalarType.INT.size and not head.down and grows
    if not all(one.signed for one in values):
        return False
    from_zero = isinstance(head.start, syntax.Constant) and not _is_negative(head.start) and not head.down and grows
    for bound in head.bounds:
        signs = {one.signed for one in types(*bound.parts) if one is not None}
        if False in signs and (True in signs or not from_zero):
            return False
    return True


def _is_negative(constant: syntax.Constant) -> bool:
    value = character_constant(constant.text) if constant.text.startswith("'") else None
    return value is not None and value < 0


def _types(expression: syntax.Expression, type_of: TypeOf, named: NamedType) -> Iterator[ScalarType | None]:
    """Yield the types of the variables in an expression, and of constants that are no plain numbers of type int.

    What is converted has the type that it is converted to; ``None`` stands for what is no scalar, or not known.
    """
    match expression:
        case syntax.Conversion(type=type_, operand=operand):
            plain = not (type_.pointers or type_.extents)
            converted = named(type_) if plain else None
            operands = list(_types(operand, type_of, named))
            yield converted if all(one is not None and one.integer for one in operands) else None
        case syntax.Name(name=text):
            known = type_of(text)
            if known is None and text in CONSTANTS:
                named_value = CONSTANTS[text].removeprefix("-").removesuffix(" - 1")
                yield from _types(syntax.Constant(named_value, expression.span), type_of, named)
            else:
                yield known
        case syntax.Constant(text=text) if text.startswith("'"):
            yield from () if character_constant(text) is not None else (None,)
        case syntax.Constant(text=text):
            constant = integer_constant(text)
            if constant is None:
                yield None
            elif not constant[1].signed or constant[1].size > ScalarType.INT.size:
                yield constant[1]
        case _:
            for operand in syntax.operands(expression):
                yield from _types(operand, type_of, named)
