"""Names that C programs take from headers: types, functions of ``math.h`` that CUDA has too, constants.

Types are those of an LP64 host, which the device shares.
"""

from __future__ import annotations

from metafork.ir.arithmetic.exact_constants import NAMED
from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType as T

HEADER_TYPES: dict[str, T] = {
    "int8_t": T.SIGNED_CHAR,
    "uint8_t": T.UNSIGNED_CHAR,
    "int16_t": T.SHORT,
    "uint16_t": T.UNSIGNED_SHORT,
    "int32_t": T.INT,
    "uint32_t": T.UNSIGNED_INT,
    "int64_t": T.LONG,
    "uint64_t": T.UNSIGNED_LONG,
    "intptr_t": T.LONG,
    "uintptr_t": T.UNSIGNED_LONG,
    "intmax_t": T.LONG,
    "uintmax_t": T.UNSIGNED_LONG,
    "size_t": T.UNSIGNED_LONG,
    "ssize_t": T.LONG,
    "ptrdiff_t": T.LONG,
}
"""Typedef names of the standard headers that are scalars of the language."""

SMALL_FLOATS = {
    **dict.fromkeys(("_Float16", "__fp16", "__half", "half"), T.HALF),
    **dict.fromkeys(("__bf16", "__nv_bfloat16", "nv_bfloat16", "bfloat16"), T.BFLOAT16),
}
"""Names of floating types of 16 bits, of compilers and of CUDA, in files that have no other use for them."""

CONVERSIONS = {
    **dict.fromkeys(("__half2float", "__bfloat162float"), T.FLOAT),
    **dict.fromkeys(("__float2half", "__float2half_rn"), T.HALF),
    **dict.fromkeys(("__float2bfloat16", "__float2bfloat16_rn"), T.BFLOAT16),
}
"""Functions of CUDA that convert to a type, as a cast does."""

OTHER_TYPES = frozenset(
    {"FILE", "time_t", "clock_t", "va_list", "fpos_t", "wchar_t", "off_t", "pid_t", "clockid_t", "div_t", "ldiv_t"}
)
"""Typedef names that host code is likely to use; no schedule can."""

_WORDS: dict[tuple[str, ...], T] = {
    ("_Bool",): T.BOOL,
    ("char",): T.CHAR,
    ("char", "signed"): T.SIGNED_CHAR,
    ("char", "unsigned"): T.UNSIGNED_CHAR,
    ("short",): T.SHORT,
    ("int", "short"): T.SHORT,
    ("short", "signed"): T.SHORT,
    ("int", "short", "signed"): T.SHORT,
    ("short", "unsigned"): T.UNSIGNED_SHORT,
    ("int", "short", "unsigned"): T.UNSIGNED_SHORT,
    ("int",): T.INT,
    ("signed",): T.INT,
    ("int", "signed"): T.INT,
    ("unsigned",): T.UNSIGNED_INT,
    ("int", "unsigned"): T.UNSIGNED_INT,
    ("long",): T.LONG,
    ("int", "long"): T.LONG,
    ("long", "signed"): T.LONG,
    ("int", "long", "signed"): T.LONG,
    ("long", "unsigned"): T.UNSIGNED_LONG,
    ("int", "long", "unsigned"): T.UNSIGNED_LONG,
    ("long", "long"): T.LONG_LONG,
    ("int", "long", "long"): T.LONG_LONG,
    ("long", "long", "signed"): T.LONG_LONG,
    ("int", "long", "long", "signed"): T.LONG_LONG,
    ("long", "long", "unsigned"): T.UNSIGNED_LONG_LONG,
    ("int", "long", "long", "unsigned"): T.UNSIGNED_LONG_LONG,
    ("float",): T.FLOAT,
    ("double",): T.DOUBLE,
}


def scalar_type(words: tuple[str, ...], typedefs: dict[str, T]) -> T | None:
    """Return the type that specifiers name, in whatever order they stand; ``None`` for any other type."""
    if len(words) == 1 and words[0] in typedefs:
        return typedefs[words[0]]
    return _WORDS.get(tuple(sorted(words)))


_NOT_IN_C = frozenset({"exp10", "exp10f", "rsqrt", "rsqrtf"}) | {name for name in SIGNATURES if name.startswith("__")}

MATH_FUNCTIONS = {name: signature for name, signature in SIGNATURES.items() if name not in _NOT_IN_C}
"""Functions that may be called in a schedule: those of ``math.h``, and ``abs`` and its kin, that CUDA has too."""

PRINTING_FUNCTIONS = frozenset({"printf", "fprintf", "puts", "putchar", "fputs", "fflush", "perror", "assert"})
"""Functions of the host that read their arguments and touch no array."""

SCANNING_FUNCTIONS = frozenset({"scanf", "fscanf", "sscanf"})
"""Functions of the host that write through pointers and keep none of them."""

_PROPERTIES = {
    "DIG": ("6", "15"),
    "DECIMAL_DIG": ("9", "17"),
    "MANT_DIG": ("24", "53"),
    "MAX_EXP": ("128", "1024"),
    "MIN_EXP": ("-125", "-1021"),
    "MAX_10_EXP": ("38", "308"),
    "MIN_10_EXP": ("-37", "-307"),
    "MAX": ("3.40282347e+38f", "1.7976931348623157e+308"),
    "MIN": ("1.17549435e-38f", "2.2250738585072014e-308"),
    "TRUE_MIN": ("1.40129846432481707092e-45f", "4.94065645841246544177e-324"),
    "EPSILON": ("1.19209290e-7f", "2.2204460492503131e-16"),
}
"""Of ``float`` and of ``double``."""

_GREATEST = {
    "127": ("CHAR", "SCHAR", "INT8"),
    "32767": ("SHRT", "INT16"),
    "2147483647": ("INT", "INT32"),
    "9223372036854775807l": ("LONG", "INT64", "INTMAX", "INTPTR", "PTRDIFF"),
    "9223372036854775807ll": ("LLONG",),
}
_GREATEST_UNSIGNED = {
    "255": ("UCHAR", "UINT8"),
    "65535": ("USHRT", "UINT16"),
    "4294967295u": ("UINT", "UINT32"),
    "18446744073709551615ul": ("ULONG", "UINT64", "UINTMAX", "UINTPTR", "SIZE"),
    "18446744073709551615ull": ("ULLONG",),
}
"""Integers by the types that have them as limits; limits of what is narrower than ``int`` are of type ``int``."""

CONSTANTS: dict[str, str] = {
    **{name: name for name in NAMED},
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_E": "2.71828182845904523536",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_LOG2E": "1.44269504088896340736",
    "M_LOG10E": "0.43429448190325182765",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
    **{f"FLT_{name}": value for name, (value, _) in _PROPERTIES.items()},
    **{f"DBL_{name}": value for name, (_, value) in _PROPERTIES.items()},
    "FLT_RADIX": "2",
    "CHAR_BIT": "8",
    **{f"{name}_MAX": value for value, names in (_GREATEST | _GREATEST_UNSIGNED).items() for name in names},
    **{f"{name}_MIN": f"-{value} - 1" for value, names in _GREATEST.items() for name in names},
    "true": "1",
    "false": "0",
}
"""Macros of the standard headers that may be used in a schedule, as the constants they stand for.

Signs stand before them; the least of a signed type is ``-2147483647 - 1``, as ``2147483648`` is no ``int``.
"""

BUILTIN_CONSTANTS = (
    "__builtin_nanf(text)=NAN",
    "__builtin_inff()=INFINITY",
    "__builtin_huge_valf()=HUGE_VALF",
    "__builtin_huge_val()=HUGE_VAL",
)
"""What ``gcc -E`` makes of constants without digits, as macros for those."""

SIZED_CONSTANTS = tuple(
    f"{sign}INT{bits}_C(c)={f'c##{suffix}' if suffix else 'c'}"
    for bits, ending in (("8", ""), ("16", ""), ("32", ""), ("64", "l"), ("MAX", "l"))
    for sign, suffix in (("", ending), ("U", f"u{ending}" if bits not in ("8", "16") else ""))
)
"""The macros of ``stdint.h`` that give a constant a type."""

DEVICE_WORDS = frozenset(
    {
        *("alignas", "alignof", "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char16_t", "char32_t"),
        *("class", "compl", "concept", "consteval", "constexpr", "constinit", "const_cast", "co_await", "co_return"),
        *("co_yield", "decltype", "delete", "dynamic_cast", "explicit", "export", "false", "friend", "mutable"),
        *("namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private"),
        *("protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast", "template", "this"),
        *("thread_local", "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq"),
        *("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"),
    }
)
"""Words that C leaves to programs and that CUDA C++ does not."""
