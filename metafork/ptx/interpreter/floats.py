"""Floating-point arithmetic of PTX on NumPy arrays, correctly rounded.

``add``, ``sub``, ``mul``, ``div.rn``, ``sqrt.rn`` are NumPy's own.  A fused multiply-add rounds once: in single
precision by double precision rounded to odd, in double precision by error-free transformations (Boldo and Melquiond),
and by exact rationals where those could over- or underflow.  Approximate instructions give the value computed in
double precision and rounded: better than hardware, and equal for original and transformed code.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_SPLITTER = 134217729.0  # 2^27 + 1


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum of doubles and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product of doubles and its exact error (Dekker), where nothing over- or underflows."""
    product = a * b
    scaled = _SPLITTER * a
    high_a = scaled - (scaled - a)
    low_a = a - high_a
    scaled = _SPLITTER * b
    high_b = scaled - (scaled - b)
    low_b = b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def odd_sum(a: Array, b: Array) -> Array:
    """Return a + b of doubles rounded to odd: inexact sums get an odd last bit, so that rounding again is exact."""
    total, error = two_sum(a, b)
    even = total.view(np.int64) & 1 == 0
    fix = np.isfinite(total) & (error != 0) & even
    # The error's sign says on which side of the rounded sum the true one lies.
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(fix, np.nextafter(total, towards), total)


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a · b + c rounded once, to nearest even, in the operands' precision."""
    if a.dtype == np.float32:
        exact = a.astype(np.float64) * b.astype(np.float64)
        result: Array = odd_sum(exact, c.astype(np.float64)).astype(np.float32)
        return result
    if a.dtype == np.float16:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        half: Array = wide.astype(np.float16)
        return half
    a, b, c = np.broadcast_arrays(a, b, c)
    product, product_error = two_product(a, b)
    upper, lower = two_sum(c, product_error)
    total, error = two_sum(product, upper)
    result = total + odd_sum(error, lower)
    plain = np.abs(np.stack([a, b, c, product]))
    usual = (((plain > 1e-140) & (plain < 1e140)) | (plain == 0)).all(axis=0)
    usual &= (product != 0) | (a == 0) | (b == 0)
    if not usual.all():
        result = result.copy()
        for index in np.flatnonzero(~usual):
            result[index] = _fma_exact(float(a[index]), float(b[index]), float(c[index]))
    # A zero result has the sign that the plain operations give.
    zero = usual & ((product == 0) | (c == 0))
    return np.where(zero, product + c, result)


def _fma_exact(a: float, b: float, c: float) -> float:
    if not all(map(np.isfinite, (a, b, c))):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def to_single(values: Array, mode: str) -> Array:
    """Round doubles to singles; ``mode`` is ``rn``, ``rz``, ``rm`` (down) or ``rp`` (up)."""
    nearest: Array = values.astype(np.float32)
    if mode in ("rn", "rna"):
        return nearest
    back = nearest.astype(np.float64)
    above, below = back > values, back < values
    infinity = np.float32(np.inf)
    down = above if mode == "rm" else above & (values > 0) if mode == "rz" else np.zeros_like(above)
    up = below if mode == "rp" else below & (values < 0) if mode == "rz" else np.zeros_like(below)
    nearest = np.where(down, np.nextafter(nearest, -infinity), nearest)
    return np.where(up, np.nextafter(nearest, infinity), nearest)


def flush(values: Array) -> Array:
    """Return values with subnormal singles replaced by zeros of their sign (``.ftz``)."""
    if values.dtype != np.float32:
        return values
    small = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), values), values)


def saturate(values: Array) -> Array:
    """Clamp to [0, 1], NaN to 0 (``.sat``)."""
    return np.where(np.isnan(values), values.dtype.type(0), np.clip(values, 0, 1)).astype(values.dtype)


def to_integer(values: Array, kind: npt.DTypeLike, mode: str) -> Array:
    """Convert floats to integers: rounded by ``rni``, ``rzi``, ``rmi`` or ``rpi``, clamped, NaN to 0."""
    rounding = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]
    whole = rounding(values.astype(np.float64))
    limits = np.iinfo(kind)
    low, high = float(limits.min), float(limits.max)
    inside = np.where(np.isnan(whole) | (whole >= high) | (whole <= low), 0.0, whole)
    result = inside.astype(kind)
    result = np.where(whole >= high, np.array(limits.max, kind), result)
    return np.where(whole <= low, np.array(limits.min, kind), result)


def minimum(a: Array, b: Array, *, nan: bool) -> Array:
    """Return the smaller, −0 < +0; a NaN loses unless ``nan`` is set."""
    smaller = np.where((a == b) & np.signbit(a), a, np.where(a < b, a, b))
    return _nan_rule(smaller, a, b, nan)


def maximum(a: Array, b: Array, *, nan: bool) -> Array:
    """Return the greater, −0 < +0; a NaN loses unless ``nan`` is set."""
    greater = np.where((a == b) & np.signbit(b), a, np.where(a > b, a, b))
    return _nan_rule(greater, a, b, nan)


def _nan_rule(result: Array, a: Array, b: Array, nan: bool) -> Array:
    if nan:
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), result)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))


def approximate(opcode: str, values: Array) -> Array:
    """Return ``sin``, ``cos``, ``ex2``, ``lg2``, ``rcp``, ``rsqrt``, ``sqrt`` or ``tanh``, by double precision."""
    wide = values.astype(np.float64)
    functions: dict[str, Callable[[Array], Array]] = {
        "sin": np.sin, "cos": np.cos, "ex2": np.exp2, "lg2": np.log2, "tanh": np.tanh, "sqrt": np.sqrt,
        "rcp": lambda x: 1.0 / x, "rsqrt": lambda x: 1.0 / np.sqrt(x),
    }  # fmt: skip
    result: Array = functions[opcode](wide).astype(values.dtype)
    return result
