"""Integer operations of PTX that NumPy has no single function for; arrays of the operands' own type in and out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def unsigned(values: Array) -> Array:
    """Return the same bits as unsigned integers."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def signed(values: Array) -> Array:
    """Return the same bits as signed integers."""
    return values.view(np.dtype(f"i{values.dtype.itemsize}"))


def widen(values: Array) -> Array:
    """Return the values in twice the width, with the same signedness."""
    result: Array = values.astype(np.dtype(f"{values.dtype.kind}{2 * values.dtype.itemsize}"))
    return result


def multiply_high(a: Array, b: Array) -> Array:
    """Return the upper half of the double-width product."""
    size = a.dtype.itemsize
    if size < 8:
        product: Array = (widen(a) * widen(b) >> (8 * size)).astype(a.dtype)
        return product
    ua, ub = unsigned(a), unsigned(b)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    low = (ua & mask) * (ub & mask)
    cross = (ua >> half) * (ub & mask) + (low >> half)
    other = (ua & mask) * (ub >> half) + (cross & mask)
    high = (ua >> half) * (ub >> half) + (cross >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    result: Array = high.view(a.dtype)
    return result


def divide(a: Array, b: Array) -> Array:
    """Return the quotient towards zero; division by zero gives all ones."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        # The magnitude of the least integer is itself when read unsigned.
        magnitude = unsigned(np.abs(a)) // unsigned(np.abs(safe))
        quotient = magnitude.view(a.dtype)
        quotient = np.where((a < 0) != (safe < 0), -quotient, quotient)
    return np.where(b == 0, a.dtype.type(-1) if a.dtype.kind == "i" else ~a.dtype.type(0), quotient)


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the dividend's sign; modulo zero gives the dividend."""
    result: Array = np.where(b == 0, a, a - divide(a, b) * b)
    return result


def shift_left(a: Array, amount: Array) -> Array:
    """Return a << amount; amounts of the width and more give 0."""
    bits = 8 * a.dtype.itemsize
    result: Array = np.where(amount >= bits, a.dtype.type(0), a << np.minimum(amount, bits - 1).astype(a.dtype))
    return result


def shift_right(a: Array, amount: Array) -> Array:
    """Return a >> amount, filled by the sign for a signed type; amounts are clamped to the width."""
    bits = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(amount, bits - 1).astype(a.dtype)
    result: Array = shifted if a.dtype.kind == "i" else np.where(amount >= bits, a.dtype.type(0), shifted)
    return result


def funnel(low: Array, high: Array, amount: Array, *, left: bool, wrap: bool) -> Array:
    """``shf``: shift the 64 bits high:low and return the upper (left) or lower (right) 32."""
    count = (amount & 31) if wrap else np.minimum(amount, 32)
    both = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
    count = count.astype(np.uint64)
    moved = both << count >> np.uint64(32) if left else both >> count
    result: Array = (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return result


def extract_field(a: Array, start: Array, length: Array) -> Array:
    """``bfe``: ``length`` bits from ``start``, extended by the field's sign for a signed type."""
    bits = 8 * a.dtype.itemsize
    start, length = (start & 0xFF).astype(np.int64), (length & 0xFF).astype(np.int64)
    kept = np.minimum(length, np.maximum(bits - start, 0))
    raw = shift_right(unsigned(a), start)
    field = raw & _mask(a, kept)
    if a.dtype.kind == "u":
        return field
    sign_at = np.minimum(start + length - 1, bits - 1)
    negative = (shift_right(unsigned(a), np.maximum(sign_at, 0)) & 1 == 1) & (length > 0)
    result: Array = np.where(negative, field | ~_mask(a, kept), field).astype(unsigned(a).dtype).view(a.dtype)
    return result


def _mask(a: Array, length: Array) -> Array:
    """Return ``length`` low one-bits."""
    kind = unsigned(a).dtype
    ones = ~np.zeros(1, kind)
    bits = 8 * kind.itemsize
    shift = np.clip(bits - length, 0, bits - 1).astype(kind)
    result: Array = np.where(length <= 0, kind.type(0), ones >> shift)
    return result


def insert_field(field: Array, into: Array, start: Array, length: Array) -> Array:
    """``bfi``: replace ``length`` bits from ``start``."""
    start, length = (start & 0xFF).astype(np.int64), (length & 0xFF).astype(np.int64)
    mask = shift_left(_mask(into, length), start)
    return into & ~mask | shift_left(field, start) & mask


def permute(a: Array, b: Array, selector: Array) -> Array:
    """``prmt`` in its default mode: four bytes picked from b:a by the selector's nibbles."""
    both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), np.uint32)
    for byte in range(4):
        nibble = selector >> np.uint32(4 * byte) & np.uint32(0xF)
        value = (both >> (nibble & np.uint32(7)).astype(np.uint64) * np.uint64(8)).astype(np.uint32) & np.uint32(0xFF)
        sign = np.where(value & 0x80, np.uint32(0xFF), np.uint32(0))
        value = np.where(nibble & 8, sign, value)
        result |= value << np.uint32(8 * byte)
    return result


def count_ones(a: Array) -> Array:
    """``popc``."""
    result: Array = np.bitwise_count(a).astype(np.uint32)
    return result


def leading_zeros(a: Array) -> Array:
    """``clz``: zeros before the first one; the width for 0."""
    bits = 8 * a.dtype.itemsize
    filled = a.copy()
    step = 1
    while step < bits:
        filled |= filled >> a.dtype.type(step)
        step *= 2
    return (bits - np.bitwise_count(filled)).astype(np.uint32)


def reverse_bits(a: Array) -> Array:
    """``brev``."""
    bits = 8 * a.dtype.itemsize
    result = np.zeros_like(a)
    for bit in range(bits):
        result |= (a >> a.dtype.type(bit) & a.dtype.type(1)) << a.dtype.type(bits - 1 - bit)
    return result


def find_leading(a: Array, *, shift_amount: bool) -> Array:
    """``bfind``: the position of the leading non-sign bit, all ones where there is none."""
    raw = unsigned(np.where(a < 0, ~a, a)) if a.dtype.kind == "i" else a
    zeros = leading_zeros(raw)
    position = zeros if shift_amount else (8 * a.dtype.itemsize - 1 - zeros.astype(np.int64)).astype(np.uint32)
    return np.where(raw == 0, np.uint32(0xFFFFFFFF), position)


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """``lop3``: the Boolean function with truth table ``table``."""
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result
