"""Values as values of other types: converted, or with the same bits."""

from __future__ import annotations

from metafork.ir import program as ir
from metafork.ir.arithmetic.math_functions import AS_BITS, SMALL_FLOATS
from metafork.ir.arithmetic.types import ScalarType

BITS = {2: ScalarType.UNSIGNED_SHORT, 4: ScalarType.UNSIGNED_INT, 8: ScalarType.LONG_LONG}
"""The integers that bits of floating-point numbers are, by their bytes."""


def converted(value: ir.Expr, type_: ScalarType) -> ir.Expr:
    """Return a value as an assignment to a variable of a type leaves it."""
    return value if value.type is type_ else ir.Cast(type_, value, value.span)


def bits_of(value: ir.Expr) -> ir.Expr:
    """Return the bits of a number of 2, 4 or 8 bytes as an integer."""
    if not value.type.floating:
        return converted(value, BITS[value.type.size])
    if value.type.small:
        _, rounded = SMALL_FLOATS[value.type]
        return ir.Call(rounded, (value,), value.type.stored, value.span)
    name, result = AS_BITS[value.type]
    return ir.Call(name, (value,), result, value.span)


def taken_for(bits: ir.Expr, type_: ScalarType) -> ir.Expr:
    """Return the number of a type that has these bits."""
    if not type_.floating:
        return converted(bits, type_)
    if type_.small:
        read, _ = SMALL_FLOATS[type_]
        return ir.Call(read, (bits,), ScalarType.FLOAT, bits.span)
    name, result = AS_BITS[bits.type]
    return ir.Call(name, (bits,), result, bits.span)
