"""The ``math.h`` functions that kernels may call: their parameter and result types in C.

C converts the arguments of ``sqrt`` to ``double`` whatever they are; C++ picks an overload by their types instead.
Whoever prints or lowers a call therefore converts to the types given here.
"""

from __future__ import annotations

from msgspec import Struct

from metafork.ir.arithmetic.types import ScalarType

INT, LONG, LONG_LONG = ScalarType.INT, ScalarType.LONG, ScalarType.LONG_LONG
FLOAT, DOUBLE = ScalarType.FLOAT, ScalarType.DOUBLE


class Signature(Struct, frozen=True):
    """Parameter types, left to right, and the type of the result."""

    parameters: tuple[ScalarType, ...]
    result: ScalarType


_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 fabs floor lgamma log log10 "
    "log1p log2 logb nearbyint rint round rsqrt sin sinh sqrt tan tanh tgamma trunc"
)
_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_TO_INTEGER = {"ilogb": INT, "lrint": LONG, "lround": LONG, "llrint": LONG_LONG, "llround": LONG_LONG}
_WITH_INTEGER = {"ldexp": INT, "scalbn": INT, "scalbln": LONG}


_BITS = {
    "__float_as_uint": Signature((FLOAT,), ScalarType.UNSIGNED_INT),
    "__uint_as_float": Signature((ScalarType.UNSIGNED_INT,), FLOAT),
    "__double_as_longlong": Signature((DOUBLE,), LONG_LONG),
    "__longlong_as_double": Signature((LONG_LONG,), DOUBLE),
}
AS_BITS = {next(iter(one.parameters)): (name, one.result) for name, one in _BITS.items()}
"""The functions that take the bits of a number for those of another one, with their results, by what they take."""

SMALL_FLOATS = {
    ScalarType.HALF: ("metafork_from_half", "metafork_to_half"),
    ScalarType.BFLOAT16: ("metafork_from_bfloat16", "metafork_to_bfloat16"),
}
"""The functions that make a ``float`` of the bits of a small one, exactly, and the nearest small one of a ``float``."""

_FROM_BITS, _TO_BITS = Signature((ScalarType.UNSIGNED_SHORT,), FLOAT), Signature((FLOAT,), ScalarType.UNSIGNED_SHORT)
OF_SMALL = {
    name: signature
    for pair in SMALL_FLOATS.values()
    for name, signature in zip(pair, (_FROM_BITS, _TO_BITS), strict=True)
}


def _signatures() -> dict[str, Signature]:
    table = {
        "abs": Signature((INT,), INT),
        "labs": Signature((LONG,), LONG),
        "llabs": Signature((LONG_LONG,), LONG_LONG),
    }
    for suffix, real in (("", DOUBLE), ("f", FLOAT)):
        table |= {name + suffix: Signature((real,), real) for name in _ONE.split()}
        table |= {name + suffix: Signature((real, real), real) for name in _TWO.split()}
        table |= {name + suffix: Signature((real,), result) for name, result in _TO_INTEGER.items()}
        table |= {name + suffix: Signature((real, second), real) for name, second in _WITH_INTEGER.items()}
        table["fma" + suffix] = Signature((real, real, real), real)
    return table | _BITS | OF_SMALL


SIGNATURES = _signatures()
"""Every function that CUDA has with C's meaning, by name."""

_EXACT = (
    "ceil copysign fabs fdim floor fma fmax fmin fmod logb nearbyint nextafter remainder rint round sqrt trunc ldexp "
    "scalbn scalbln ilogb lrint lround llrint llround"
)
INEXACT = (
    frozenset(SIGNATURES)
    - {"abs", "labs", "llabs", *_BITS, *OF_SMALL}
    - {name + end for name in _EXACT.split() for end in ("", "f")}
)
"""The functions of which C leaves the last bits open: a compiler that computes one itself may differ from a library."""
