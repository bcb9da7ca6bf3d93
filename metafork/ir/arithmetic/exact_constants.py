"""The value of a floating constant of C, rounded once from its text as a compiler does."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from metafork.ir.arithmetic.types import ScalarType

_DECIMAL = r"(?i)([0-9]*)\.?([0-9]*)(?:e([-+]?[0-9]+))?[fl]?"
_HEXADECIMAL = r"(?i)0x([0-9a-f]*)\.?([0-9a-f]*)p([-+]?[0-9]+)[fl]?"
NAMED = {
    "INFINITY": ScalarType.FLOAT,
    "NAN": ScalarType.FLOAT,
    "HUGE_VALF": ScalarType.FLOAT,
    "HUGE_VAL": ScalarType.DOUBLE,
}
"""Constants of ``math.h`` that have no digits, with their types."""

_MOST_DIGITS = 1200
"""More decimal digits than any number halfway between two doubles has; what follows them only says: a little more."""
_MANTISSA = {ScalarType.FLOAT: (24, -149, 127), ScalarType.DOUBLE: (53, -1074, 1023)}
"""Bits of the mantissa, exponent of the least subnormal, exponent of the largest number."""


def floating_value(text: str, type_: ScalarType) -> float:
    """Return the constant as a Python float that ``type_`` holds exactly; infinity where it is too large.

    ``INFINITY``, ``NAN``, ``HUGE_VAL`` and ``HUGE_VALF`` are those of ``math.h``.  Raises ``ValueError`` for text that
    is no floating constant.
    """
    sign = -1.0 if text.startswith("-") else 1.0
    digits = text.lstrip("+-")
    if digits in NAMED:
        return math.copysign(math.nan if digits == "NAN" else math.inf, sign)
    base, match = (
        (16, re.fullmatch(_HEXADECIMAL, digits)) if digits[:2].lower() == "0x" else (10, re.fullmatch(_DECIMAL, digits))
    )
    if match is None or not (match[1] or match[2]):
        raise ValueError(f"{text} is no floating constant")
    mantissa = (match[1] + match[2]).lstrip("0")
    if not mantissa:
        return math.copysign(0.0, sign)
    places = 4 if base == 16 else 1
    exponent = _exponent(match[3] or "0") - places * len(match[2])
    # The number lies between base^(size - 1) and base^size; far outside of every type no power need be computed.
    size = len(mantissa) * places + exponent
    if size > 2000:
        return math.copysign(math.inf, sign)
    if size < -2000:
        return math.copysign(0.0, sign)
    if base == 10 and len(mantissa) > _MOST_DIGITS:
        exponent += len(mantissa) - _MOST_DIGITS - 1
        mantissa = mantissa[:_MOST_DIGITS] + "1"
    exact = int(mantissa, base) * Fraction(2 if base == 16 else 10) ** exponent
    return math.copysign(nearest(exact, type_), sign)


def _exponent(text: str) -> int:
    """Return an exponent; one of more digits than any type needs is as good as a million millions."""
    digits = text.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) < 13 else 10**12
    return -value if text.startswith("-") else value


def nearest(exact: Fraction, type_: ScalarType) -> float:
    """Round a positive number to the nearest of a type, ties to even: rounding to double first would round twice."""
    bits, least, largest = _MANTISSA[type_]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > exact:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, least)
    rounded = round(exact / unit) * unit
    return float(rounded) if rounded < Fraction(2) ** (largest + 1) else math.inf
