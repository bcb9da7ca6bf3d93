"""The value of a floating constant of C, rounded once from its text as a compiler does."""

from __future__ import annotations

import math
from fractions import Fraction

from metafork.ir.types import ScalarType

_FLOAT_MAX = Fraction(2**24 - 1) * 2**104


def floating_value(text: str, type_: ScalarType) -> float:
    """Return the constant as a Python float that ``type_`` holds exactly; infinity where it is too large.

    Raises ``ValueError`` for text that is no floating constant.
    """
    digits = text.lower()
    hexadecimal = digits.lstrip("+-").startswith("0x")
    digits = digits.rstrip("l") if hexadecimal else digits.rstrip("fl")
    if hexadecimal and "p" in digits:
        digits = digits.rstrip("f")
    value = float.fromhex(digits) if hexadecimal else float(digits)
    return value if type_ is ScalarType.DOUBLE or hexadecimal else _nearest_float(Fraction(digits))


def _nearest_float(exact: Fraction) -> float:
    """Round to the nearest single-precision number, ties to even: rounding to double first would round twice."""
    sign = -1.0 if exact < 0 else 1.0
    size = abs(exact)
    if size == 0:
        return math.copysign(0.0, sign)
    # An ulp is 2^(exponent - 23), never below the least subnormal.
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 23, -149)
    rounded = round(size / unit) * unit
    return sign * (float(rounded) if rounded <= _FLOAT_MAX else math.inf)
