"""Exact polynomials over the rationals in named symbols, and polynomial constraints.

A thin border around SymPy's sparse polynomials (``sympy.polys.rings``): symbols are plain names, so that ``N``, ``E``
or ``S`` mean nothing special, and every operation finds the common ring itself.  Values are immutable and hashable;
equality is mathematical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from sympy import QQ, Poly, Symbol
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyRing

Monomial = tuple[tuple[str, int], ...]
"""A product of powers: (symbol, exponent) pairs sorted by symbol; the empty tuple is 1."""


@lru_cache(maxsize=4096)
def _ring(names: tuple[str, ...]) -> Any:
    return PolyRing(tuple(Symbol(name) for name in names), QQ, lex)


class Polynomial:
    """An element of Q[symbols]; combine with ``+ - *`` and ``**``, also with integers and ``Fraction``s."""

    __slots__ = ("_element", "_hash", "_names", "_terms")

    def __init__(self, terms: Mapping[Monomial, Fraction | int] | None = None) -> None:
        terms = {mono: coeff for mono, coeff in (terms or {}).items() if coeff}
        names = tuple(sorted({name for mono in terms for name, _ in mono}))
        position = {name: index for index, name in enumerate(names)}
        raw = {}
        for mono, coeff in terms.items():
            exponents = [0] * len(names)
            for name, exponent in mono:
                exponents[position[name]] += exponent
            value = Fraction(coeff)
            raw[tuple(exponents)] = QQ(value.numerator, value.denominator)
        self._names = names
        self._element = _ring(names).from_dict(raw)
        self._hash: int | None = None
        self._terms: dict[Monomial, Fraction] | None = None

    @staticmethod
    def _of(names: tuple[str, ...], element: Any) -> Polynomial:
        """Wrap a ring element, dropping symbols that do not occur."""
        used = [any(monom[i] for monom in element) for i in range(len(names))]
        result = Polynomial.__new__(Polynomial)
        if not all(used):
            kept = tuple(name for name, use in zip(names, used, strict=True) if use)
            element = _ring(kept).from_dict(
                {tuple(e for e, use in zip(monom, used, strict=True) if use): c for monom, c in element.items()}
            )
            names = kept
        result._names = names
        result._element = element
        result._hash = None
        result._terms = None
        return result

    @staticmethod
    def symbol(name: str) -> Polynomial:
        """Return the polynomial that is one symbol."""
        return Polynomial({((name, 1),): 1})

    @staticmethod
    def constant(value: Fraction | int) -> Polynomial:
        """Return a constant polynomial."""
        return Polynomial({(): value})

    @property
    def symbols(self) -> frozenset[str]:
        """The names that occur."""
        return frozenset(self._names)

    def terms(self) -> Mapping[Monomial, Fraction]:
        """Return the monomials with their (nonzero) coefficients."""
        if self._terms is None:
            self._terms = {
                tuple((n, e) for n, e in zip(self._names, monom, strict=True) if e): Fraction(
                    int(coeff.numerator), int(coeff.denominator)
                )
                for monom, coeff in self._element.items()
            }
        return self._terms

    @property
    def is_constant(self) -> bool:
        """Whether no symbol occurs."""
        return not self._names

    def constant_value(self) -> Fraction:
        """Return the value of a constant polynomial; raises ``ValueError`` for any other."""
        if self._names:
            raise ValueError(f"{self} is not constant")
        return self.terms().get((), Fraction(0))

    def coefficient(self, name: str) -> Polynomial | None:
        """Return c where ``self = c*name + rest`` and neither contains ``name``; ``None`` where it is not linear."""
        terms = {}
        for mono, coeff in self.terms().items():
            exponent = dict(mono).get(name, 0)
            if exponent > 1:
                return None
            if exponent == 1:
                terms[tuple((n, e) for n, e in mono if n != name)] = coeff
        return Polynomial(terms)

    def without(self, names: Iterable[str]) -> Polynomial:
        """Return the sum of the terms in which none of ``names`` occurs."""
        dropped = frozenset(names)
        return Polynomial({m: c for m, c in self.terms().items() if not any(n in dropped for n, _ in m)})

    def substitute(self, values: Mapping[str, Polynomial | Fraction | int]) -> Polynomial:
        """Return the polynomial with symbols replaced."""
        if not any(name in values for name in self._names):
            return self
        result = Polynomial()
        for mono, coeff in self.terms().items():
            term = Polynomial.constant(coeff)
            for name, exponent in mono:
                term = term * (as_polynomial(values[name]) if name in values else Polynomial.symbol(name)) ** exponent
            result = result + term
        return result

    def evaluate(self, values: Mapping[str, int | Fraction]) -> Fraction:
        """Return the value at a point; raises ``KeyError`` for a symbol without a value."""
        whole = 0
        total = Fraction(0)
        for mono, coeff in self.terms().items():
            product: int | Fraction = coeff.numerator if coeff.denominator == 1 else coeff
            for name, exponent in mono:
                product *= values[name] ** exponent
            if isinstance(product, int):
                whole += product
            else:
                total += product
        return total + whole

    def divide_exactly(self, divisor: Polynomial) -> Polynomial | None:
        """Return the quotient where ``divisor`` divides this polynomial over Q, else ``None``."""
        names, left, right = self._unified(divisor)
        if not right:
            return None
        quotient, remainder = divmod(left, right)
        return None if remainder else Polynomial._of(names, quotient)

    def divide(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return quotient and remainder of the division with respect to the lexicographic order of the symbols."""
        names, left, right = self._unified(divisor)
        quotient, remainder = divmod(left, right)
        return Polynomial._of(names, quotient), Polynomial._of(names, remainder)

    def _unified(self, other: Polynomial) -> tuple[tuple[str, ...], Any, Any]:
        if self._names == other._names:
            return self._names, self._element, other._element
        names = tuple(sorted({*self._names, *other._names}))
        ring = _ring(names)
        return names, self._element.set_ring(ring), other._element.set_ring(ring)

    def _combined(self, other: Polynomial | Fraction | int, combine: Callable[[Any, Any], Any]) -> Polynomial:
        names, left, right = self._unified(as_polynomial(other))
        return Polynomial._of(names, combine(left, right))

    def __add__(self, other: Polynomial | Fraction | int) -> Polynomial:
        return self._combined(other, lambda left, right: left + right)

    def __sub__(self, other: Polynomial | Fraction | int) -> Polynomial:
        return self._combined(other, lambda left, right: left - right)

    def __mul__(self, other: Polynomial | Fraction | int) -> Polynomial:
        return self._combined(other, lambda left, right: left * right)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Fraction | int) -> Polynomial:
        return -self + other

    def __neg__(self) -> Polynomial:
        return Polynomial._of(self._names, -self._element)

    def __pow__(self, exponent: int) -> Polynomial:
        result = ONE
        for _ in range(exponent):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, Fraction)):
            other = Polynomial.constant(other)
        if not isinstance(other, Polynomial):
            return NotImplemented
        return self._names == other._names and bool(self._element == other._element)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self._names, frozenset(self._element.items())))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self._element)

    def text(self, order: Sequence[str] = ()) -> str:
        """Print with ``* + -``, integers and ``/`` only; symbols of a product follow ``order``, then the alphabet.

        Terms of higher degree come first, the constant last; a term that starts with ``-`` is never first where
        another can be.
        """
        rank = {name: index for index, name in enumerate(order)}

        def key(name: str) -> tuple[int, str]:
            return (rank.get(name, len(rank)), name)

        def product(mono: Monomial) -> list[str]:
            return [name for name, exponent in sorted(mono, key=lambda p: key(p[0])) for _ in range(exponent)]

        entries = sorted(
            ((product(mono), coeff) for mono, coeff in self.terms().items()),
            key=lambda entry: (-len(entry[0]), [key(name) for name in entry[0]]),
        )
        leading = next((i for i, (_, coeff) in enumerate(entries) if coeff > 0), 0)
        if entries:
            entries.insert(0, entries.pop(leading))
        parts: list[str] = []
        for factors, coeff in entries:
            sign = "-" if coeff < 0 else "+"
            size = abs(coeff)
            number = [str(size.numerator)] if size.numerator != 1 or not factors else []
            text = "*".join(number + factors)
            if size.denominator != 1:
                text += f"/{size.denominator}"
            parts.append(f" {sign} {text}" if parts else ("-" if sign == "-" else "") + text)
        return "".join(parts) or "0"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Polynomial({self.text()!r})"

    def to_sympy(self) -> Poly:
        """Return the same polynomial as a SymPy ``Poly`` over QQ (symbols carry no assumptions)."""
        generators = [Symbol(name) for name in self._names] or [Symbol("_")]
        return Poly(self._element.as_expr(), *generators, domain=QQ)


def as_polynomial(value: Polynomial | Fraction | int) -> Polynomial:
    """Return ``value`` itself, or the constant polynomial of a number."""
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


ZERO = Polynomial()
ONE = Polynomial.constant(1)

Relation = Literal["<=", "<", "=="]


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """``left relation right``, a polynomial condition.  Equality and hash look at ``left - right`` up to sign."""

    left: Polynomial
    relation: Relation
    right: Polynomial
    _difference: Polynomial | None = field(default=None, init=False, repr=False)

    @property
    def difference(self) -> Polynomial:
        """``left - right``: the constraint says that this is ``<= 0``, ``< 0`` or ``== 0``."""
        if self._difference is None:  # every comparison and every look-up in a table needs it
            object.__setattr__(self, "_difference", self.left - self.right)
        assert self._difference is not None
        return self._difference

    @property
    def symbols(self) -> frozenset[str]:
        """The names that occur."""
        return self.left.symbols | self.right.symbols

    def negated(self) -> Constraint:
        """Return the opposite: ``a <= b`` becomes ``b < a``.  Raises ``ValueError`` for an equation."""
        match self.relation:
            case "<=":
                return Constraint(self.right, "<", self.left)
            case "<":
                return Constraint(self.right, "<=", self.left)
            case _:
                raise ValueError("the negation of an equation is not one constraint")

    def holds(self, values: Mapping[str, int | Fraction]) -> bool:
        """Say whether the constraint holds at a point; raises ``KeyError`` for a symbol without a value."""
        value = self.difference.evaluate(values)
        match self.relation:
            case "<=":
                return value <= 0
            case "<":
                return value < 0
            case _:
                return value == 0

    def substitute(self, values: Mapping[str, Polynomial | Fraction | int]) -> Constraint:
        """Return the constraint with symbols replaced."""
        return Constraint(self.left.substitute(values), self.relation, self.right.substitute(values))

    def text(self, order: Sequence[str] = ()) -> str:
        """Print as ``2*s*B + 2 <= Z``; ``order`` ranks the symbols within a product."""
        return f"{self.left.text(order)} {self.relation} {self.right.text(order)}"

    def _key(self) -> tuple[object, ...]:
        if self.relation == "==":
            return ("==", frozenset((self.difference, -self.difference)))
        return (self.relation, self.difference)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.text()


def at_most(left: Polynomial | int, right: Polynomial | int) -> Constraint:
    """Return ``left <= right``."""
    return Constraint(as_polynomial(left), "<=", as_polynomial(right))


def less_than(left: Polynomial | int, right: Polynomial | int) -> Constraint:
    """Return ``left < right``."""
    return Constraint(as_polynomial(left), "<", as_polynomial(right))


def equal(left: Polynomial | int, right: Polynomial | int) -> Constraint:
    """Return ``left == right``."""
    return Constraint(as_polynomial(left), "==", as_polynomial(right))
