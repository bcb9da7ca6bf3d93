"""Polynomials and constraints as tables for ``metafork/exact.h``: terms over a vector of 64-bit values.

The vector's slots are the parameters, the machine's fields, numerators and denominators of performance targets, and
derived integers; a name of the input occurs in comments only.  Rational coefficients are cleared by a common positive
factor, and a target n/d by multiplying every term with a power of d.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from msgspec import Struct, field

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.comprehensive.emit.identifiers import c_comment, c_string

MAX_DEGREE = 15
_RELATIONS = {"<=": "METAFORK_AT_MOST", "<": "METAFORK_LESS", "==": "METAFORK_EQUAL"}
_BASE = 2**62

Term = tuple[int, tuple[int, ...]]
"""An integer coefficient and the slots whose values multiply it."""


class TabulationError(Exception):
    """A polynomial is outside of what the runtime evaluates: too many symbols, too high a degree, an unknown symbol."""


class ConditionTables(Struct):
    """Collects the tables of one schedule.  ``prefix`` starts their names; ``order`` ranks symbols in comments.

    ``more`` are definitions that need the polynomials.
    """

    prefix: str
    order: tuple[str, ...] = ()
    slots: dict[str, int] = field(default_factory=dict)
    denominators: dict[str, int] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)
    _rows: list[str] = field(default_factory=list)
    _places: dict[tuple[Term, ...], int] = field(default_factory=dict)
    """Where the terms of a polynomial begin."""
    _base_slot: int | None = None
    size: int = 0

    def lines(self) -> list[str]:
        """Return the definitions: the terms of all polynomials, one a line, and what needs them."""
        terms = [f"static const metafork_term {self.prefix}_p[] = {{", *self._rows, "};"] if self._rows else []
        return [*terms, *self.more]

    def add_slot(self, name: str) -> int:
        """Give a symbol its place in the vector; the same place where it has one."""
        if name not in self.slots:
            self.slots[name] = self._new_slot()
        return self.slots[name]

    def add_target(self, name: str) -> tuple[int, int]:
        """Give a performance target its two places: numerator and denominator."""
        slot = self.add_slot(name)
        self.denominators[name] = self._new_slot()
        return slot, self.denominators[name]

    @property
    def base_slot(self) -> int | None:
        """The place of the constant 2^62, or ``None`` where no coefficient needs it."""
        return self._base_slot

    def _new_slot(self) -> int:
        self.size += 1
        if self.size > 256:
            raise TabulationError("more than 256 symbols in one schedule")
        return self.size - 1

    def polynomials(self, operands: Sequence[Polynomial]) -> tuple[list[str], int]:
        """Return initializers of ``metafork_polynomial`` for integer multiples of ``operands``, and the factor.

        All operands are multiplied by one positive factor; it is the returned constant where no target occurs.
        """
        factor = lcm(*(coefficient.denominator for operand in operands for coefficient in operand.terms().values()))
        powers = {
            name: max((dict(mono).get(name, 0) for operand in operands for mono in operand.terms()), default=0)
            for name in self.denominators
        }
        return [self._table(self._terms(operand, factor, powers), operand) for operand in operands], factor

    def condition(self, constraint: Constraint) -> str:
        """Return the initializer of a ``metafork_condition``."""
        (left, right), _ = self.polynomials((constraint.left, constraint.right))
        return f"{{{left}, {_RELATIONS[constraint.relation]}, {right}, {c_string(constraint.text(self.order))}}}"

    def _terms(self, polynomial: Polynomial, factor: int, powers: dict[str, int]) -> tuple[Term, ...]:
        terms: list[Term] = []
        for mono, coefficient in polynomial.terms().items():
            slots: list[int] = []
            exponents = dict(mono)
            for name, exponent in mono:
                if name not in self.slots:
                    raise TabulationError(f"{name} is neither a parameter, a machine symbol nor derived")
                slots.extend([self.slots[name]] * exponent)
            for name, power in powers.items():
                slots.extend([self.denominators[name]] * (power - exponents.get(name, 0)))
            value = coefficient * factor
            terms.extend(self._split(value.numerator, slots))
        for _, slots_of_term in terms:
            if len(slots_of_term) > MAX_DEGREE:
                raise TabulationError(f"{polynomial.text(self.order)} has a degree above {MAX_DEGREE}")
        return tuple(terms)

    def _split(self, coefficient: int, slots: list[int]) -> list[Term]:
        """Write a coefficient beyond 63 bits in base 2^62, with that base as a value of the vector."""
        sign, rest = (-1, -coefficient) if coefficient < 0 else (1, coefficient)
        if rest < 2**63:
            return [(coefficient, tuple(slots))]
        if self._base_slot is None:
            self._base_slot = self._new_slot()
        terms: list[Term] = []
        bases = 0
        while rest:
            rest, digit = divmod(rest, _BASE)
            if digit:
                terms.append((sign * digit, (*slots, *([self._base_slot] * bases))))
            bases += 1
        return terms

    def _table(self, terms: tuple[Term, ...], polynomial: Polynomial) -> str:
        if not terms:
            return "{NULL, 0}"
        if terms not in self._places:
            place = self._places[terms] = sum(map(len, self._places))
            rows = ", ".join(
                f"{{{coefficient}, {len(slots)}, {{{', '.join(map(str, slots)) or '0'}}}}}"
                for coefficient, slots in terms
            )
            self._rows.append(f"    {rows}, /* {place}: {c_comment(polynomial.text(self.order))} */")
        return f"{{{self.prefix}_p + {self._places[terms]}, {len(terms)}}}"
