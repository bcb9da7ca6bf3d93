"""Integers that no polynomial in parameters and loop symbols gives, as symbols of their own with what is known of them.

Whether two accesses meet often does not hang on what a value is, but on its being one value for both, or on its
remainder: ``h`` in ``if (t < h) s[t] += s[t + h]`` is the same for all threads, whatever halves it; ``(i + j) % 2`` is
``i + j - 2*q`` with some ``q``; ``t ^ j`` is different for different ``t``.  Such symbols stand in no condition of a
leaf and in no kernel: only proofs that accesses are disjoint know of them.

Every symbol is a non-negative integer; a value that may be negative is the difference of two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import rooms
from metafork.algebra.symbols import Value
from metafork.analysis.values.choices import chosen_wrap, value_of
from metafork.analysis.values.scope import Scope
from metafork.ir.program import Binary, Conditional, Expr, IntConst, Unary

_Known = tuple[Constraint, ...]
OpaqueKind = Literal["quotient", "truncated", "exclusive", "not", "unknown"]


class Opaque(Struct, frozen=True):
    """One value: its ``symbols``, and those that it is a function ``of``, parameters and derived scalars left out.

    A ``quotient`` is rounded down, a ``truncated`` one towards 0; ``exclusive`` is ``^``, and ``not`` is ``!``: 0 or 1,
    and another number than its operand.  ``once_a_block`` says that a block computes it once between two barriers, so
    that all its threads see one value.  ``constraints`` hold wherever it is used.  A ``bit`` is 0 or 1.
    """

    kind: OpaqueKind
    symbols: tuple[str, ...]
    operands: tuple[Polynomial, ...] = ()
    of: frozenset[str] = frozenset()
    constraints: _Known = ()
    once_a_block: bool = False
    bit: bool = False

    @property
    def value(self) -> Polynomial:
        """The value in its symbols: one that may be negative is the difference of two."""
        own, *below = map(Polynomial.symbol, self.symbols)
        return own - below[0] if below else own


class OpaqueSymbols:
    """The opaque values that one walk over a program met, in the order of their definitions."""

    def __init__(self) -> None:
        self._by_symbol: dict[str, Opaque] = {}
        self._made: dict[object, Polynomial] = {}
        self._divided: dict[str, tuple[Polynomial, Polynomial]] = {}
        """What is divided by what, for quotients of numbers that are not negative."""

    def behind(self, symbols: Iterable[str]) -> tuple[Opaque, ...]:
        """Return the opaque values among symbols, and those that they are functions of, in order of definition."""
        wanted: dict[str, Opaque] = {}
        rest = [name for name in symbols if name in self._by_symbol]
        while rest:
            one = self._by_symbol[rest.pop()]
            if one.symbols[0] not in wanted:
                wanted[one.symbols[0]] = one
                rest += [name for name in one.of if name in self._by_symbol]
        return tuple(one for name, one in self._by_symbol.items() if wanted.get(name) is one)

    def unknown(
        self,
        name: str,
        *,
        once_a_block: bool,
        low: int | None = None,
        high: int | None = None,
        most: Polynomial | None = None,
    ) -> Polynomial:
        """Return a new value of which only bounds are known, ``most`` in terms of what is known where it is made."""
        one = Opaque("unknown", self._symbols(name, signed=low is None or low < 0))
        bounds = [] if low is None else [at_most(low, one.value)]
        bounds += [] if high is None else [at_most(one.value, high)]
        bounds += [] if most is None else [at_most(one.value, most)]
        of = frozenset[str]() if most is None else most.symbols & self._by_symbol.keys()
        bit = (low, high) == (0, 1)
        return self._entered(replace(one, of=of, constraints=tuple(bounds), once_a_block=once_a_block, bit=bit))

    def constraints(self, value: Polynomial) -> _Known:
        """Return what is known of the opaque values in a polynomial."""
        return tuple(constraint for one in self.behind(value.symbols) for constraint in one.constraints)

    def numbers(self, symbols: Iterable[str], point: Mapping[str, int]) -> Mapping[str, int] | None:
        """Return a point with the numbers of opaque symbols; ``None`` where one is no quotient of what is known."""
        found = dict(point)
        for one in self.behind(symbols):
            if one.kind != "quotient" or (divisor := one.operands[1].evaluate(found)) < 1:
                return None
            quotient = floor(one.operands[0].evaluate(found) / divisor)
            found |= dict(zip(one.symbols, (max(quotient, 0), max(-quotient, 0)), strict=False))
        return found

    def value(self, scope: Scope, expr: Expr) -> Polynomial | None:
        """Return the value of a quotient, a remainder or an operation on bits of known integers, else ``None``."""
        match expr:
            case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
                sides = value_of(scope, then, type_), value_of(scope, otherwise, type_)
                found = chosen_wrap(scope, condition, *sides)
                return self.wrapped(scope, found) if found else None
            case Unary(op="!", operand=operand):
                one = scope.polynomial(operand) if operand.type.integer else None
                return None if one is None else self._negated(scope, one)
            case Binary(op="&", left=Binary(op="^", left=left, right=right), right=IntConst(value=1)):
                first, second = scope.converted(left, expr.type), scope.converted(right, expr.type)
                if first is None or second is None:
                    return None
                return first + second - 2 * self._floor(scope, first + second, 2)
            case Binary(op=("/" | "%" | "&" | "^" | ">>") as op, left=left, right=right) if expr.type.integer:
                first = scope.converted(left, expr.type)
                second = scope.polynomial(right) if op == ">>" else scope.converted(right, expr.type)
                if first is None or second is None:
                    return None
                match op, right:
                    case "/", _:
                        return self._quotient(scope, first, second)
                    case "%", _:
                        return first - second * self._quotient(scope, first, second)
                    case ">>", IntConst(value=bits) if 0 <= bits < 31:
                        return self._floor(scope, first, 1 << bits)
                    case "&", IntConst(value=mask) if mask > 0 and mask & (mask + 1) == 0:
                        return first - (mask + 1) * self._floor(scope, first, mask + 1)
                    case "^", IntConst(value=1):
                        return 1 - first + 4 * self._floor(scope, first, 2)
                    case "^", _:
                        signed = not (scope.bounded(first) and scope.bounded(second))
                        return self._made_of(scope, "exclusive", first, second, signed=signed)
        return None

    def wrapped(self, scope: Scope, modular: Value) -> Polynomial:
        """Return a value less as many periods as fit."""
        value, period = modular.operands
        return value - period * self._whole_part(scope, value, period)

    def _negated(self, scope: Scope, value: Polynomial) -> Polynomial | None:
        """Return ``!value``, of one that is not negative: 0 or 1, and another one than the value."""
        if not self._not_negative(scope, value):
            return None
        if scope.bounded(value, 0, 1) or at_most(value, 1) in self.constraints(value):
            return 1 - value
        return self._made_of(scope, "not", value)

    def _quotient(self, scope: Scope, value: Polynomial, divisor: Polynomial) -> Polynomial:
        """Return C's quotient, which is rounded towards 0; what is divided by 0 has no meaning."""
        if self._not_negative(scope, value) and scope.bounded(divisor, 0 if scope.evaluated else 1):
            return self._whole_part(scope, value, divisor)
        return self._made_of(scope, "truncated", value, divisor, signed=True)

    def _floor(self, scope: Scope, value: Polynomial, divisor: int) -> Polynomial:
        """Return the quotient rounded down: what shifting and masking two's complement gives."""
        return self._whole_part(scope, value, Polynomial.constant(divisor), signed=not self._not_negative(scope, value))

    def _whole_part(self, scope: Scope, value: Polynomial, divisor: Polynomial, *, signed: bool = False) -> Polynomial:
        """Return q with ``divisor*q <= value < divisor*q + divisor``."""
        below = _less_than_a_period(scope, value, divisor)  # where this is, perhaps nowhere else
        key = ("quotient", (value, divisor), signed, below)
        if key in self._made:
            return self._made[key]
        of = (value.symbols | divisor.symbols) - scope.constants
        if (digit := None if signed else self._digit(scope, value, divisor)) is not None:
            self._made[key] = digit
            return digit
        whole = key if signed else ("quotient", self._of_one_division(value, divisor), False, below)
        if whole in self._made:
            quotient = self._made[whole]
            self._learn(quotient, of, _rounded_down(value, divisor, quotient))
        else:
            quotient = self._made_of(scope, "quotient", value, divisor, signed=signed, more=below)
            if not signed:
                self._divided[quotient.only_symbol] = value, divisor
        self._made[key] = self._made[whole] = quotient
        return quotient

    def _of_one_division(self, value: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Return what is divided by what, for a quotient of quotients: ``p / w / h`` is ``p / (w*h)``, all positive."""
        inner = self._divided.get(value.only_symbol)
        if inner is None:
            return value, divisor
        return self._of_one_division(inner[0], inner[1] * divisor)

    def _digit(self, scope: Scope, value: Polynomial, divisor: Polynomial) -> Polynomial | None:
        """Return the quotient of a remainder by a factor of its divisor.

        ``p % (h*w) / w`` is ``p / w - h*(p / (h*w))``.
        """
        for name in sorted(value.symbols & self._divided.keys()):
            dividend, whole = self._divided[name]
            factor = whole.divide_exactly(divisor)
            outer = Polynomial.symbol(name)
            if factor is None or not factor.whole or whole == divisor or value != dividend - whole * outer:
                continue
            inner = self._whole_part(scope, dividend, divisor)
            if inner.only_symbol and inner != outer:
                self._learn(outer, inner.symbols, _rounded_down(inner, factor, outer))
                return inner - factor * outer
        return None

    def _learn(self, value: Polynomial, of: frozenset[str], more: Iterable[Constraint]) -> None:
        """Keep what else is known of a value, which is a symbol, and of which values it is a function besides."""
        known = self._by_symbol.pop(value.only_symbol)
        constraints = tuple(dict.fromkeys((*known.constraints, *more)))
        self._by_symbol[value.only_symbol] = replace(known, of=known.of | of, constraints=constraints)

    def _not_negative(self, scope: Scope, value: Polynomial) -> bool:
        """Say whether a value is known not to be negative: by ranges, or as a remainder and more."""
        rests = (value - room for room in rooms(self.constraints(value)))
        return scope.bounded(value) or any(scope.bounded(rest) for rest in rests)

    def _made_of(
        self, scope: Scope, kind: OpaqueKind, *operands: Polynomial, signed: bool = False, more: _Known = ()
    ) -> Polynomial:
        """Return the value of an operation; equal ones are one value."""
        key = (kind, operands, signed, more)
        if key not in self._made:
            of = frozenset[str]().union(*(one.symbols for one in operands)) - scope.constants
            one = Opaque(kind, self._symbols(kind, signed=signed), operands, of)
            self._made[key] = self._entered(replace(one, constraints=(*_definition(one), *more)))
        return self._made[key]

    def _symbols(self, name: str, *, signed: bool) -> tuple[str, ...]:
        """Return the symbols of a fresh value; no name of a program has a space."""
        own = f"{name} {len(self._by_symbol)}"
        return (own, f"{own} below") if signed else (own,)

    def _entered(self, opaque: Opaque) -> Polynomial:
        self._by_symbol |= dict.fromkeys(opaque.symbols, opaque)
        return opaque.value


def _definition(one: Opaque) -> _Known:
    """Return what an operation says of its value."""
    value, operands, signed = one.value, one.operands, len(one.symbols) > 1
    match one.kind:
        case "quotient":
            return _rounded_down(operands[0], operands[1], value)
        case "truncated" if operands[1].is_constant and operands[1].constant_value() >= 1:
            rest = operands[0] - operands[1] * value
            return at_most(rest, operands[1] - 1), at_most(1 - operands[1], rest)
        case "exclusive" if not signed:
            return (at_most(value, operands[0] + operands[1]),)  # x + y - 2*(x & y)
        case "not":
            return at_most(value, 1), at_most(1, operands[0] + value)
        case _:
            return ()


def _rounded_down(value: Polynomial, divisor: Polynomial, quotient: Polynomial) -> _Known:
    rest = value - divisor * quotient
    positive = () if divisor.is_constant else (at_most(1, divisor),)
    return at_most(0, rest), at_most(rest, divisor - 1), *positive


def _less_than_a_period(scope: Scope, value: Polynomial, divisor: Polynomial) -> _Known:
    """Say, where the ranges of loops show it, that what changes in a value stays below the divisor."""
    loops = scope.ranges.loops.keys()
    varying = Polynomial({mono: c for mono, c in value.terms().items() if any(name in loops for name, _ in mono)})
    return (at_most(varying, divisor - 1),) if varying and scope.bounded(divisor - 1 - varying) else ()
