"""Concrete samples of symbolic values: what to ask Z3, and what need not be asked.

Two addresses that differ on one sample are different; so only pairs that agree on all samples, for some number of
lanes between them, are worth a proof.  Leaves get pseudo-random values (within the special registers' bounds),
uninterpreted functions values that depend on their arguments' only.
"""

from __future__ import annotations

import zlib

from metafork.ptx.emulation.terms import Poly, Terms, signed

SEEDS = (1, 2, 3)
_BIT_OPERATIONS = frozenset(
    {
        "and",
        "or",
        "xor",
        "shl",
        "lshr",
        "ashr",
        "select",
        "udiv",
        "sdiv",
        "urem",
        "srem",
        "umin",
        "umax",
        "smin",
        "smax",
    }
)


class Sampler:
    """Evaluates the values of one term table on a few fixed assignments."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._known: dict[tuple[int, int, int], int] = {}

    def is_opaque(self, poly: Poly) -> bool:
        """Tell whether a value contains bit operations, which have no normal form."""
        for monomial, _ in poly.terms:
            for number in monomial:
                atom = self.terms.atoms[number]
                if atom.kind in _BIT_OPERATIONS:
                    return True
                if atom.kind != "load" and any(isinstance(a, Poly) and self.is_opaque(a) for a in atom.args):
                    return True
        return False

    def agree(self, source: Poly, lanes: int, target: Poly) -> bool:
        """Tell whether source(%tid.x + lanes) = target(%tid.x) on every sample."""
        return all(self.value(source, seed, lanes) == self.value(target, seed, 0) for seed in SEEDS)

    def value(self, poly: Poly, seed: int, lanes: int) -> int:
        """Return the value on sample ``seed``, in the lane ``lanes`` further."""
        total = poly.constant
        for monomial, coefficient in poly.terms:
            for number in monomial:
                coefficient *= self._atom(number, seed, lanes)
            total += coefficient
        return total % (1 << poly.width)

    def _atom(self, number: int, seed: int, lanes: int) -> int:
        key = (number, seed, lanes if self.terms.atoms[number].varies else 0)
        if key not in self._known:
            self._known[key] = self._evaluate(*key)
        return self._known[key]

    def _evaluate(self, number: int, seed: int, lanes: int) -> int:
        atom = self.terms.atoms[number]
        size = 1 << atom.width
        first = atom.args[0] if atom.args else None
        if atom.kind in ("sreg", "wide"):
            moving = lanes if first in ("%tid.x", "%laneid") else 0
            return (_hash(seed, first) % (self.terms.limits[str(first)] + 1) + moving) % size
        values = [self.value(a, seed, lanes) if isinstance(a, Poly) else a for a in atom.args]
        widths = [a.width if isinstance(a, Poly) else 0 for a in atom.args]
        numbers = [value for value in values if isinstance(value, int)]
        if first is not None and all(widths):
            result = _operation(atom.kind, numbers, widths)
            if result is not None:
                return result % size
        private = lanes if atom.varies and not any(widths) else 0
        return _hash(seed, atom.kind, private, *values) % size


def _hash(*parts: object) -> int:
    text = repr(parts).encode()
    return zlib.crc32(text) << 32 | zlib.adler32(text + b"\x5a") ^ zlib.crc32(text[::-1])


def _operation(kind: str, values: list[int], widths: list[int]) -> int | None:
    first = values[0]
    if kind in ("zext", "trunc"):
        return first
    if kind == "sext":
        return signed(first, widths[0])
    if kind == "select":
        return values[1] if first else values[2]
    if len(values) != 2:
        return None
    second = values[1]
    plain = {"and": first & second, "or": first | second, "xor": first ^ second, "eq": int(first == second)}
    if kind in plain:
        return plain[kind]
    if kind in ("shl", "lshr", "ashr"):
        amount = min(second, widths[0])
        if kind == "shl":
            return first << amount
        return (signed(first, widths[0]) if kind == "ashr" else first) >> amount
    if kind[0] == "s":
        first, second = signed(first, widths[0]), signed(second, widths[1])
    if kind[1:] == "lt":
        return int(first < second)
    if kind[1:] in ("min", "max"):
        return min(first, second) if kind[1:] == "min" else max(first, second)
    if kind[1:] in ("div", "rem") and second:
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        return quotient if kind[1:] == "div" else first - quotient * second
    return None
