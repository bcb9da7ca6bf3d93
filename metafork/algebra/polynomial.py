"""Exact polynomials over the rationals in named symbols, and polynomial constraints.

Symbols are plain names, so that ``N``, ``E`` or ``S`` mean nothing special.  Values are immutable and hashable;
equality is mathematical.  The arithmetic is done here on sparse terms: the polynomials of a case discussion are small,
and a computer algebra system would spend its time on finding common rings; ``to_sympy`` is the border to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sympy import Poly

Monomial = tuple[tuple[str, int], ...]
"""A product of powers: (symbol, exponent) pairs sorted by symbol; the empty tuple is 1."""

_Terms = dict[Monomial, int | Fraction]
"""Nonzero coefficients; an ``int`` wherever the coefficient is one, which is far quicker than a ``Fraction``."""


def product_of(left: Monomial, right: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not left or not right:
        return left or right
    if left[-1][0] < right[0][0]:
        return left + right
    if right[-1][0] < left[0][0]:
        return right + left
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


def _plain(value: int | Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


class Polynomial:
    """An element of Q[symbols]; combine with ``+ - *`` and ``**``, also with integers and ``Fraction``s."""

    __slots__ = ("_coefficients", "_hash", "_symbols", "_terms")

    def __init__(self, terms: Mapping[Monomial, Fraction | int] | None = None) -> None:
        coefficients: _Terms = {}
        for mono, coefficient in (terms or {}).items():
            if coefficient:
                canonical = mono if _is_canonical(mono) else _canonical(mono)
                coefficients[canonical] = coefficients.get(canonical, 0) + _plain(coefficient)
        self._set({mono: value for mono, value in coefficients.items() if value})

    def _set(self, coefficients: _Terms) -> None:
        self._coefficients = coefficients
        self._hash: int | None = None
        self._symbols: frozenset[str] | None = None
        self._terms: dict[Monomial, Fraction] | None = None

    @staticmethod
    def _of(coefficients: Mapping[Monomial, int | Fraction]) -> Polynomial:
        """Wrap coefficients of canonical monomials, dropping zeros."""
        return Polynomial._made(
            {mono: value if type(value) is int else _plain(value) for mono, value in coefficients.items() if value}
        )

    @staticmethod
    def _made(coefficients: _Terms) -> Polynomial:
        """Wrap coefficients as they are kept."""
        result = Polynomial.__new__(Polynomial)
        result._coefficients = coefficients
        result._hash = result._symbols = result._terms = None
        return result

    @staticmethod
    def of_coefficients(coefficients: Mapping[Monomial, int | Fraction]) -> Polynomial:
        """Return the polynomial of ``coefficients``, which may be zero, of monomials sorted as they are in others."""
        return Polynomial._of(coefficients)

    @staticmethod
    def symbol(name: str) -> Polynomial:
        """Return the polynomial that is one symbol."""
        return Polynomial._made({((name, 1),): 1})

    @staticmethod
    def constant(value: Fraction | int) -> Polynomial:
        """Return a constant polynomial."""
        return Polynomial._made({(): _plain(value)} if value else {})

    @property
    def symbols(self) -> frozenset[str]:
        """The names that occur."""
        if self._symbols is None:
            self._symbols = frozenset([name for mono in self._coefficients for name, _ in mono])
        return self._symbols

    @property
    def coefficients(self) -> Mapping[Monomial, int | Fraction]:
        """The nonzero coefficients by monomial, each an ``int`` where it is one."""
        return self._coefficients

    def terms(self) -> Mapping[Monomial, Fraction]:
        """Return the monomials with their (nonzero) coefficients."""
        if self._terms is None:
            self._terms = {mono: Fraction(value) for mono, value in self._coefficients.items()}
        return self._terms

    @property
    def only_symbol(self) -> str:
        """The name of the symbol that the polynomial is; empty where it is anything else."""
        if len(self._coefficients) != 1:
            return ""
        ((mono, coefficient),) = self._coefficients.items()
        return mono[0][0] if coefficient == 1 and len(mono) == 1 and mono[0][1] == 1 else ""

    @property
    def degree(self) -> int:
        """How many symbols a term has at most, each as often as it stands in it."""
        return max((sum(exponent for _, exponent in mono) for mono in self._coefficients), default=0)

    @property
    def whole(self) -> bool:
        """Whether all coefficients are integers."""
        return Fraction not in map(type, self._coefficients.values())

    @property
    def only_adds(self) -> bool:
        """Whether no coefficient is negative: then no value is, for symbols that are not."""
        return all(coefficient >= 0 for coefficient in self._coefficients.values())

    @property
    def is_constant(self) -> bool:
        """Whether no symbol occurs."""
        return not self.symbols

    def constant_value(self) -> Fraction:
        """Return the value of a constant polynomial; raises ``ValueError`` for any other."""
        if self.symbols:
            raise ValueError(f"{self} is not constant")
        return Fraction(self._coefficients.get((), 0))

    def coefficient(self, name: str) -> Polynomial | None:
        """Return c where ``self = c*name + rest`` and neither contains ``name``; ``None`` where it is not linear."""
        if name not in self.symbols:
            return ZERO
        found: _Terms = {}
        for mono, value in self._coefficients.items():
            exponent = next((e for n, e in mono if n == name), 0)
            if exponent > 1:
                return None
            if exponent == 1:
                found[tuple((n, e) for n, e in mono if n != name)] = value
        return Polynomial._of(found)

    def without(self, names: Iterable[str]) -> Polynomial:
        """Return the sum of the terms in which none of ``names`` occurs."""
        dropped = frozenset(names)
        if not dropped & self.symbols:
            return self
        return Polynomial._of({m: c for m, c in self._coefficients.items() if not any(n in dropped for n, _ in m)})

    def substitute(self, values: Mapping[str, Polynomial | Fraction | int]) -> Polynomial:
        """Return the polynomial with symbols replaced."""
        if self.symbols.isdisjoint(values):
            return self
        total: _Terms = {}
        for mono, value in self._coefficients.items():
            kept = tuple([power for power in mono if power[0] not in values])
            if len(kept) == len(mono):
                total[mono] = total.get(mono, 0) + value
                continue
            term: _Terms = {kept: value}
            for name, exponent in mono:
                if name in values:
                    factor = as_polynomial(values[name])._coefficients
                    for _ in range(exponent):
                        term = _product(term, factor)
            for product, coefficient in term.items():
                total[product] = total.get(product, 0) + coefficient
        return Polynomial._of(total)

    def evaluate(self, values: Mapping[str, int | Fraction]) -> Fraction:
        """Return the value at a point; raises ``KeyError`` for a symbol without a value."""
        return Fraction(self.at(values))

    def at(self, values: Mapping[str, int | Fraction]) -> int | Fraction:
        """Return the value at a point, an ``int`` where all that it is computed from is."""
        total: int | Fraction = 0
        for mono, product in self._coefficients.items():
            for name, exponent in mono:
                product *= values[name] if exponent == 1 else values[name] ** exponent
            total += product
        return total

    def divide_exactly(self, divisor: Polynomial) -> Polynomial | None:
        """Return the quotient where ``divisor`` divides this polynomial over Q, else ``None``."""
        if not divisor:
            return None
        if len(divisor._coefficients) > 1:
            quotient, remainder = self.divide(divisor)
            return None if remainder else quotient
        ((lead, scale),) = divisor._coefficients.items()
        terms: _Terms = {}
        for mono, value in self._coefficients.items():
            factor = _cofactor(mono, lead) if lead else mono
            if factor is None:
                return None
            terms[factor] = _plain(Fraction(value) / scale) if value % scale else int(value // scale)
        return Polynomial._made(terms)

    def divide(self, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return quotient and remainder of the division with respect to the lexicographic order of the symbols.

        Raises ``ZeroDivisionError`` for the divisor 0.
        """
        if not divisor:
            raise ZeroDivisionError("division of a polynomial by zero")
        names = sorted(self.symbols | divisor.symbols)

        def rank(mono: Monomial) -> tuple[int, ...]:
            exponents = dict(mono)
            return tuple(exponents.get(name, 0) for name in names)

        lead = max(divisor._coefficients, key=rank)
        scale = Fraction(divisor._coefficients[lead])
        rest = dict(self._coefficients)
        quotient: _Terms = {}
        remainder: _Terms = {}
        while rest:
            top = max(rest, key=rank)
            factor = _cofactor(top, lead)
            if factor is None:
                remainder[top] = rest.pop(top)
                continue
            value = rest[top] / scale
            quotient[factor] = value
            for mono, coefficient in divisor._coefficients.items():
                product = product_of(mono, factor)
                left = rest.get(product, 0) - value * coefficient
                if left:
                    rest[product] = left
                else:
                    rest.pop(product, None)
        return Polynomial._of(quotient), Polynomial._of(remainder)

    def __add__(self, other: Polynomial | Fraction | int) -> Polynomial:
        added = as_polynomial(other)._coefficients
        if not added:
            return self
        total = dict(self._coefficients)
        for mono, value in added.items():
            total[mono] = total.get(mono, 0) + value
        return Polynomial._of(total)

    def __sub__(self, other: Polynomial | Fraction | int) -> Polynomial:
        taken = as_polynomial(other)._coefficients
        if not taken:
            return self
        total = dict(self._coefficients)
        for mono, value in taken.items():
            total[mono] = total.get(mono, 0) - value
        return Polynomial._of(total)

    def __mul__(self, other: Polynomial | Fraction | int) -> Polynomial:
        return Polynomial._of(_product(self._coefficients, as_polynomial(other)._coefficients))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Fraction | int) -> Polynomial:
        return -self + other

    def __neg__(self) -> Polynomial:
        return Polynomial._made({mono: -value for mono, value in self._coefficients.items()})

    def __pow__(self, exponent: int) -> Polynomial:
        result = ONE
        for _ in range(exponent):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Polynomial):
            return self._coefficients == other._coefficients
        if isinstance(other, (int, Fraction)):
            return self._coefficients == Polynomial.constant(other)._coefficients
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._coefficients.items()))
        return self._hash

    def __bool__(self) -> bool:
        return bool(self._coefficients)

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
            ((product(mono), coeff) for mono, coeff in self._coefficients.items()),
            key=lambda entry: (-len(entry[0]), [key(name) for name in entry[0]]),
        )
        leading = next((i for i, (_, coeff) in enumerate(entries) if coeff > 0), 0)
        if entries:
            entries.insert(0, entries.pop(leading))
        parts: list[str] = []
        for factors, coeff in entries:
            sign = "-" if coeff < 0 else "+"
            size = -coeff if coeff < 0 else coeff
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
        from sympy import QQ, Poly, Symbol  # slow to import, and needed here only

        names = sorted(self.symbols) or ["_"]
        place = {name: index for index, name in enumerate(names)}
        terms = {}
        for mono, value in self.terms().items():
            exponents = [0] * len(names)
            for name, exponent in mono:
                exponents[place[name]] = exponent
            terms[tuple(exponents)] = QQ(value.numerator, value.denominator)
        return Poly.from_dict(terms or {(0,) * len(names): QQ(0)}, *map(Symbol, names), domain=QQ)


def _is_canonical(mono: Monomial) -> bool:
    return all(exponent > 0 for _, exponent in mono) and all(mono[i][0] < mono[i + 1][0] for i in range(len(mono) - 1))


def _canonical(mono: Monomial) -> Monomial:
    result: Monomial = ()
    for name, exponent in mono:
        if exponent:
            result = product_of(result, ((name, exponent),))
    return result


def _cofactor(mono: Monomial, divisor: Monomial) -> Monomial | None:
    """Return the monomial by which ``divisor`` must be multiplied to give ``mono``."""
    exponents = dict(mono)
    for name, exponent in divisor:
        left = exponents.get(name, 0) - exponent
        if left < 0:
            return None
        exponents[name] = left
    return tuple((name, exponent) for name, exponent in sorted(exponents.items()) if exponent)


def _product(left: _Terms, right: _Terms) -> _Terms:
    if len(right) == 1:  # as most factors have: different monomials stay different then
        ((other, coefficient),) = right.items()
        if not other:
            return {mono: value * coefficient for mono, value in left.items()}
        return {product_of(mono, other): value * coefficient for mono, value in left.items()}
    total: _Terms = {}
    for mono, value in left.items():
        for other, coefficient in right.items():
            product = product_of(mono, other)
            total[product] = total.get(product, 0) + value * coefficient
    return total


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
    _hash: int | None = field(default=None, init=False, repr=False)

    @property
    def difference(self) -> Polynomial:
        """``left - right``: the constraint says that this is ``<= 0``, ``< 0`` or ``== 0``."""
        if self._difference is None:  # every comparison and every look-up in a table needs it
            object.__setattr__(self, "_difference", self.left - self.right)
        assert self._difference is not None
        return self._difference

    @property
    def room(self) -> Polynomial:
        """What is not negative where the constraint holds between integers."""
        return self.right - self.left - 1 if self.relation == "<" else self.right - self.left

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
        value = self.difference.at(values)
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

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Constraint) or self.relation != other.relation or hash(self) != hash(other):
            return False
        if self.difference == other.difference:
            return True
        return self.relation == "==" and self.difference == -other.difference

    def __hash__(self) -> int:
        if self._hash is None:
            sides = {self.difference, -self.difference} if self.relation == "==" else {self.difference}
            object.__setattr__(self, "_hash", hash((self.relation, frozenset(sides))))
        assert self._hash is not None
        return self._hash

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


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """Return the product of polynomials."""
    return reduce(Polynomial.__mul__, factors, ONE)
