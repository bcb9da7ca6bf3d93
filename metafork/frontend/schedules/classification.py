"""The macros of ``math.h`` that ask what kind of number one is, as comparisons.

C says of ``isnan(x)`` that it is 0 or not, and libraries differ in what else: -1, 1 or the bit of the sign.  They are
therefore taken where only that matters, as a condition.  What they are written as has the argument once, where it can::

    isnan(x)     !(fabs(x) >= 0)
    isinf(x)     fabs(x) == INFINITY
    isfinite(x)  fabs(x) <= DBL_MAX
    isnormal(x)  fabs(x) >= DBL_MIN && fabs(x) <= DBL_MAX
    signbit(x)   copysign(1, x) < 0
"""

from __future__ import annotations

from collections.abc import Mapping

from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir import program as ir
from metafork.ir.arithmetic.exact_constants import NAMED
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span

_COMPARISONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "isnan": ((">=", "0"),),
    "isinf": (("==", "INFINITY"),),
    "isfinite": (("<=", "MAX"),),
    "isnormal": ((">=", "MIN"), ("<=", "MAX")),
    "signbit": (("<", "0"),),
}

CLASSIFICATIONS = frozenset(_COMPARISONS)
"""The macros, of one floating argument each."""


def classified(name: str, argument: ir.Expr, span: Span) -> ir.Expr:
    """Return what is not 0 where one of ``CLASSIFICATIONS`` is not, of a ``float`` or a ``double``."""
    type_ = argument.type
    assert type_.floating
    suffix, limits = ("f", "FLT") if type_ is ScalarType.FLOAT else ("", "DBL")
    if name == "signbit":
        measured = ir.Call(f"copysign{suffix}", (_number("1", limits, type_, span), argument), type_, span)
    else:
        measured = ir.Call(f"fabs{suffix}", (argument,), type_, span)
    first, *more = (
        ir.binary(op, measured, _number(limit, limits, type_, span), span) for op, limit in _COMPARISONS[name]
    )
    result = first
    for one in more:
        result = ir.binary("&&", result, one, span)
    return ir.unary("!", result, span) if name == "isnan" else result


def _number(text: str, limits: str, type_: ScalarType, span: Span) -> ir.Expr:
    if text in NAMED:
        return ir.FloatConst(text, NAMED[text], span)
    digits = CONSTANTS[f"{limits}_{text}"] if text.isupper() else f"{text}.0{'f' if limits == 'FLT' else ''}"
    return ir.FloatConst(digits, type_, span)
