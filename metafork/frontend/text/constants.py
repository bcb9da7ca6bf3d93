"""Constants of C as expressions, and those that macros of the standard headers stand for."""

from __future__ import annotations

import math
import re

from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir import program as ir
from metafork.ir.arithmetic.exact_constants import NAMED, floating_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span

_INTEGER = re.compile(r"(?P<digits>0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(?P<suffix>[uUlL]*)\Z")
_FLOATING = (
    r"(?P<digits>(?=\.?[0-9])(?=[0-9]*[.eE])[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
    r"|0[xX](?=\.?[0-9a-fA-F])[0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][-+]?[0-9]+)(?P<suffix>[fFlL]?)\Z"
)
_NUMBERED_ESCAPE = r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hexadecimal>[0-9a-fA-F]{1,8}))\Z"
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}


def integer_constant(text: str) -> tuple[int, ScalarType] | None:
    """Return the value and the type of an integer constant (section 6.4.4.1 of C11), ``None`` where it is none."""
    match = _INTEGER.match(text)
    if match is None:
        return None
    digits, suffix = match["digits"], match["suffix"].lower()
    if suffix not in ("", "u", "l", "ul", "lu", "ll", "ull", "llu"):
        return None
    decimal = not digits.startswith("0") or digits == "0"
    try:
        value = int(digits, 10) if decimal else int(digits, 0 if digits[1:2] in "xXbB" else 8)
    except ValueError:
        return None
    unsigned, length = "u" in suffix, suffix.count("l")
    signed_types = (ScalarType.INT, ScalarType.LONG, ScalarType.LONG_LONG)
    unsigned_types = (ScalarType.UNSIGNED_INT, ScalarType.UNSIGNED_LONG, ScalarType.UNSIGNED_LONG_LONG)
    for rank in range(length, 3):
        if not unsigned and value < 1 << (8 * signed_types[rank].size - 1):
            return value, signed_types[rank]
        if (unsigned or not decimal) and value < 1 << (8 * unsigned_types[rank].size):
            return value, unsigned_types[rank]
    return None


def character_constant(text: str) -> int | None:
    """Return the value of a character constant with one plain character (section 6.4.4.4 of C11), else ``None``."""
    inside = text[1:-1]
    if len(inside) == 1 and inside.isascii():
        return ord(inside)
    if len(inside) == 2 and inside[0] == "\\" and inside[1] in _ESCAPES:
        return _ESCAPES[inside[1]]
    numbered = re.match(_NUMBERED_ESCAPE, inside)
    if numbered is None:
        return None
    value = int(numbered["octal"], 8) if numbered["octal"] else int(numbered["hexadecimal"], 16)
    return None if value > 255 else value - 256 if value > 127 else value


def constant(text: str, span: Span) -> ir.Expr | None:
    """Return a constant of C as an expression, ``None`` where it is none that is supported."""
    if text.startswith("'") and text.endswith("'"):
        value = character_constant(text)
        return None if value is None else ir.IntConst(value, ScalarType.INT, span)
    if text in NAMED:
        return ir.FloatConst(text, NAMED[text], span)
    found = integer_constant(text)
    if found is not None:
        return ir.IntConst(found[0], found[1], span)
    match = re.match(_FLOATING, text)
    if match is None or match["suffix"] in ("l", "L"):
        return None
    type_ = ScalarType.FLOAT if match["suffix"] else ScalarType.DOUBLE
    return None if math.isinf(floating_value(text, type_)) else ir.FloatConst(text, type_, span)


def named_constant(name: str, span: Span) -> ir.Expr:
    """Return what one of ``CONSTANTS`` stands for: a constant, its negative, or one less than that."""
    text = CONSTANTS[name]
    digits = text.removeprefix("-").removesuffix(" - 1")
    value = constant(digits, span)
    assert value is not None
    if text.startswith("-"):
        value = ir.unary("-", value, span)
    return ir.binary("-", value, ir.IntConst(1, ir.INT, span), span) if text.endswith(" - 1") else value


def why_no_constant(text: str) -> str:
    """Return what is wrong with the text of a constant that is not supported."""
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    match = re.match(_FLOATING, text)
    if match is not None and match["suffix"] not in ("l", "L"):
        return f"the constant `{shown}` is too large for `{'float' if match['suffix'] else 'double'}`"
    if _INTEGER.match(text) is not None:
        return f"the constant `{shown}` is too large for every integer type"
    return f"the constant `{shown}` is not supported"
