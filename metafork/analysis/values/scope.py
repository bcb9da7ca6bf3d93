"""The symbolic evaluator: C integer expressions as polynomials in parameters and loop symbols, exactly or not at all.

Signed arithmetic is taken not to overflow, as C demands; a value of unsigned type, or one that is converted to a type
that does not hold all values of its own, is a polynomial only where it is shown to stay within its type
(``metafork.analysis.values.ranges``), at the least for the parameters for which ``Program.exactness`` holds.

A quotient of two polynomials in parameters is a *derived symbol* with its defining constraints: the scalar it was
assigned to where there is one (``dim0 = n/B0``), a fresh name made from its operands otherwise, so that equal quotients
have equal names in every version of a program.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from math import ceil, floor
from typing import Protocol, TypeVar

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most
from metafork.algebra.symbols import UNKNOWN, DerivedKind, DerivedSymbol, Value
from metafork.analysis.values.ranges import ValueRanges, ordinary
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type

T = TypeVar("T")


class Facts(Struct, frozen=True):
    """``values``: every parameter and derived scalar as a polynomial; ``constraints`` hold whenever the nest runs.

    ``opaque`` are derived scalars whose definition is no polynomial and no quotient; of these symbols it is only
    required that they are not negative, and what assertions say.  ``limits`` are what the types of parameters and
    derived scalars, and signed arithmetic without overflow before the schedule, say besides.  ``running`` say that the
    other loops of threads run at all: no premise of what must be right, but one of what is compared by its cost.
    """

    values: Mapping[str, Polynomial]
    derived: tuple[DerivedSymbol, ...]
    constraints: tuple[Constraint, ...]
    opaque: frozenset[str]
    limits: tuple[Constraint, ...] = ()
    running: tuple[Constraint, ...] = ()

    def __hash__(self) -> int:
        return hash((self.derived, self.constraints, self.opaque, self.limits))


def fresh_name(kind: DerivedKind, operands: Iterable[Polynomial]) -> str:
    """Return the canonical name of a derived symbol: a function of its definition alone, and a C identifier."""
    texts = [operand.text() for operand in operands]
    joiner = {"floor": "_over_", "ceiling": "_ceil_over_", "maximum": "_max_", "minimum": "_min_"}[kind]
    plain = joiner.join(texts)
    name = plain
    for pattern, replacement in ((" + ", "_plus_"), (" - ", "_minus_"), ("*", "_"), ("-", "minus_")):
        name = name.replace(pattern, replacement)
    name = re.sub(r"\W", "_", name)
    if name[0].isdigit():
        name = f"v_{name}"
    if all(re.fullmatch(r"[A-Za-z0-9]+", text) for text in texts):
        return name
    # Symbols may hold underscores of their own: the digest keeps different definitions apart.
    ambiguous = any(joiner in text for text in texts)
    digest = hashlib.sha256((repr(texts) if ambiguous else plain).encode()).hexdigest()[:6]
    return f"{name if len(name) <= 24 else kind}_{digest}"


class ValuesBeyond(Protocol):
    """Gives values that are no polynomials in parameters and loop symbols symbols of their own."""

    def value(self, scope: Scope, expr: ir.Expr) -> Polynomial | None:
        """Return the value of an expression whose operands are known, ``None`` where it cannot."""
        ...

    def constraints(self, value: Polynomial) -> tuple[Constraint, ...]:
        """Return what is known of such symbols in a value."""
        ...


class Scope:
    """Evaluates C integer expressions symbolically.

    ``values`` binds names to polynomials; a name without a binding (or bound to ``None``) is not known.  ``constants``
    are the symbols that may stand in a quotient: parameters and derived symbols, never loop variables.  ``derived``
    grows by the quotients met.  A ``closed`` scope takes up only new quotients that need no fact to be defined (by a
    positive number, of a polynomial that cannot be negative); those of an open one become facts.

    ``ranges`` are what is known of the symbols, of constants at first the ``premises``; a symbol that is neither a
    constant nor a loop symbol there may have any value.  Where ``demands`` is a list, conditions on parameters that
    keep values within their types join it; where it is ``None``, such values are not known.
    """

    def __init__(
        self,
        values: Mapping[str, Polynomial | None],
        constants: Iterable[str],
        derived: Iterable[DerivedSymbol] = (),
        closed: bool = False,
        premises: Iterable[Constraint] = (),
        demands: list[Constraint] | None = None,
    ) -> None:
        self.values: dict[str, Polynomial | None] = dict(values)
        self.constants = set(constants)
        self.derived: list[DerivedSymbol] = list(derived)
        self.divisors: list[Polynomial] = [s.operands[1] for s in derived if s.kind in ("floor", "ceiling")]
        self.closed = closed
        self.ranges = ValueRanges(premises, self.derived, len(self.derived) if closed else None)
        self.demands = demands
        self.beyond: ValuesBeyond | None = None
        self.evaluated = True
        """Whether what is read now is evaluated for certain where it is used: not the right side of an ``||``."""
        self.kept: dict[tuple[int, ScalarType], tuple[ir.Expr, bool]] | None = None
        """Of expressions that may leave a type, by identity: whether they were shown not to, wherever they were met."""
        self.choices: dict[str, Value] = {}
        """What is known of scalars without a polynomial."""

    @staticmethod
    def of(facts: Facts, demands: list[Constraint] | None = None) -> Scope:
        """Return a scope in which the parameters and derived scalars of a program are bound."""
        constants = {name for value in facts.values.values() for name in value.symbols}
        constants |= {symbol.name for symbol in facts.derived}
        premises = (*facts.constraints, *facts.limits)
        return Scope(facts.values, constants, facts.derived, closed=True, premises=premises, demands=demands)

    def copy(self) -> Scope:
        """Return an independent scope with the same bindings, which shares the lists of derived symbols and demands."""
        other = copy(self)
        other.values, other.choices, other.ranges = dict(self.values), dict(self.choices), self.ranges.copy()
        return other

    def bind(self, name: str, value: Polynomial | None, choice: Value = UNKNOWN) -> None:
        """Give a scalar a value: a polynomial, or else what is known of it."""
        self.values[name] = value
        self.choices[name] = choice if value is None else UNKNOWN

    def bound(self, name: str) -> Value:
        """Return the value of a scalar."""
        value = self.values.get(name)
        return self.choices.get(name, UNKNOWN) if value is None else Value.of(value)

    def polynomial(self, expr: ir.Expr) -> Polynomial | None:
        """Return the polynomial that the expression equals, ``None`` where it is not known to be one."""
        return self._or_nothing(self._value, expr)

    def converted(self, expr: ir.Expr, type_: ScalarType) -> Polynomial | None:
        """Return the value of an expression converted to an integer type, ``None`` where that may change it."""
        return self._or_nothing(self._converted, expr, type_)

    def compared(self, left: ir.Expr, right: ir.Expr) -> tuple[Polynomial, Polynomial] | None:
        """Return both sides of a comparison as C compares them, ``None`` where they are no polynomials then."""
        return self._or_nothing(self._compared, left, right)

    def congruent(self, expr: ir.Expr) -> Polynomial | None:
        """Return a polynomial that is congruent to the expression modulo the size of its unsigned type.

        It equals an expression of signed type.  Symbols may have any values here.
        """
        type_ = expr.type
        if type_.signed:
            return self.polynomial(expr)
        match expr:
            case ir.Unary(op="-", operand=operand) if operand.type is type_:
                inner = self.congruent(operand)
                return None if inner is None else -inner
            case ir.Cast(operand=operand) if type_ is not ScalarType.BOOL and operand.type.integer:
                return self.polynomial(operand)
            case ir.Binary(op=("+" | "-" | "*") as op, left=left, right=right):
                sides = [
                    self.congruent(side) if side.type is type_ else self.polynomial(side) for side in (left, right)
                ]
                return None if sides[0] is None or sides[1] is None else self._arithmetic(op, sides[0], sides[1])
            case _:
                return self.polynomial(expr)

    def _or_nothing(self, read: Callable[..., T | None], *what: object) -> T | None:
        """Read something; what is not known demands nothing."""
        before = 0 if self.demands is None else len(self.demands)
        value = read(*what)
        if value is None and self.demands is not None:
            del self.demands[before:]
        return value

    def _value(self, expr: ir.Expr) -> Polynomial | None:
        value = self._known_value(expr)
        return self.beyond.value(self, expr) if value is None and self.beyond is not None else value

    def _known_value(self, expr: ir.Expr) -> Polynomial | None:
        match expr:
            case ir.IntConst(value=number):
                return Polynomial.constant(number)
            case ir.Var(name=name, type=type_):
                return self.values.get(name) if type_.integer else None
            case ir.Unary(op="+" | "-" as op, operand=operand):
                plain = self._converted(operand, expr.type)
                if plain is None or op == "+":
                    return plain
                return self.noted(expr, expr.type, self._within(-plain, expr.type, low=not expr.type.signed))
            case ir.Cast(type=type_, operand=operand):
                return self._converted(operand, type_)
            case ir.Binary(op=op, left=left, right=right) if op in ("+", "-", "*", "/", "%", "<<"):
                if not expr.type.integer:
                    return None
                first = self._converted(left, expr.type)
                second = self._value(right) if op == "<<" else self._converted(right, expr.type)
                if first is None or second is None:
                    return None
                value = self._arithmetic(op, first, second)
                if value is None or expr.type.signed:
                    return value
                stays = self._within(value, expr.type, low=op == "-", high=op in ("+", "*", "<<"))
                return self.noted(expr, expr.type, stays)
            case ir.Conditional() | ir.Call() | ir.Element() | ir.FloatConst() | ir.Binary() | ir.Unary():
                return None

    def _converted(self, expr: ir.Expr, type_: ScalarType) -> Polynomial | None:
        if not (type_.integer and expr.type.integer):
            return None
        value = self._value(expr)
        return None if value is None else self.noted(expr, type_, self.stored(value, expr.type, type_))

    def noted(self, expr: ir.Expr, type_: ScalarType, value: Polynomial | None) -> Polynomial | None:
        """Take note, where that is wanted, of whether an expression was shown to stay within a type."""
        if self.kept is not None:
            key = (id(expr), type_)
            self.kept[key] = (expr, value is not None and self.kept.get(key, (expr, True))[1])
        return value

    def stored(self, value: Polynomial, given: ScalarType, type_: ScalarType) -> Polynomial | None:
        """Return a value of one type as a variable of another one keeps it, ``None`` where that may change it."""
        return self._within(value, type_, low=given.least < type_.least, high=given.greatest > type_.greatest)

    def bounded(self, value: Polynomial, low: int | None = 0, high: int | None = None) -> bool:
        """Say whether ``low <= value <= high`` is shown wherever this scope is; a bound may be ``None``."""
        if self.ranges.needed(value, low, high) == ():
            return True
        known = () if self.beyond is None else self.beyond.constraints(value)
        slacks = [] if low is None else [value - low]
        slacks += [] if high is None else [high - value]
        return bool(known) and all(self.ranges.never_negative(slack, known) for slack in slacks)

    def within(self, value: Polynomial, type_: ScalarType, *, low: bool = False, high: bool = False) -> bool:
        """Say whether a value stays within a type, as far as that is in question."""
        return self._or_nothing(self._within, value, type_, low, high) is not None

    def _compared(self, left: ir.Expr, right: ir.Expr) -> tuple[Polynomial, Polynomial] | None:
        type_ = common_type(left.type, right.type)
        first = self._converted(left, type_)
        second = None if first is None else self._converted(right, type_)
        return None if first is None or second is None else (first, second)

    def _within(self, value: Polynomial, type_: ScalarType, low: bool = False, high: bool = False) -> Polynomial | None:
        """Return a value that stays within a type, as far as that is in question; ``None`` where it may not."""
        if not (low or high):
            return value
        if value.is_constant:
            number = value.constant_value()
            return value if type_.least <= number <= type_.greatest else None
        if not value.symbols <= self.constants | self.ranges.loops.keys():
            return None
        needed = self.ranges.needed(value, type_.least if low else None, type_.greatest if high else None)
        if needed:
            # Values of narrow types wrap at sizes that occur: better a value that is not known than a refused size.
            joins = self.demands is not None and type_.size >= 4
            if not joins or not all(
                self.ranges.lasts(c) and c.symbols <= self.constants and ordinary(c) for c in needed
            ):
                return None
            assert self.demands is not None
            self.demands += needed
        return None if needed is None else value

    def _arithmetic(self, op: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "<<":
                if right.is_constant and 0 <= right.constant_value() < 31:
                    return left * (1 << int(right.constant_value()))
                return None
            case "/":
                return self.quotient("floor", left, right)
            case _:
                quotient = self.quotient("floor", left, right)
                return None if quotient is None else left - right * quotient

    def quotient(self, kind: DerivedKind, left: Polynomial, right: Polynomial, name: str = "") -> Polynomial | None:
        """Return ``floor(left/right)`` or its ceiling; a derived symbol (called ``name``) where it is not exact."""
        if not right or not (left.symbols | right.symbols) <= self.constants:
            return None
        if left.is_constant and right.is_constant:
            if left.constant_value() < 0 or right.constant_value() < 0:
                return None
            number = left.constant_value() / right.constant_value()
            return Polynomial.constant(floor(number) if kind == "floor" else ceil(number))
        exact = left.divide_exactly(right)
        if exact is not None and exact.whole and (right.is_constant or right.whole):
            return exact if self._require_divisor(right) else None
        if not any(known.kind == kind and known.operands == (left, right) for known in self.derived):
            if (-left).only_adds:
                return None  # C rounds it upwards, and a dividend that is not negative would have to be 0
            if self.closed and not (right.is_constant and left.only_adds and right.constant_value() >= 1):
                return None
        return self._derived(kind, (left, right), name)

    def _require_divisor(self, divisor: Polynomial) -> bool:
        """Keep the condition that an exact division still needs, its divisor >= 1; say whether it can be kept."""
        if divisor.is_constant:
            return divisor.constant_value() >= 1
        if divisor not in self.divisors:
            if self.closed:
                return self.ranges.implied(at_most(ONE, divisor))
            self.divisors.append(divisor)
        return True

    def extremum(self, kind: DerivedKind, operands: tuple[Polynomial, ...]) -> Polynomial:
        """Return the maximum or minimum of polynomials in constants as a derived symbol."""
        ordered = tuple(sorted(set(operands), key=lambda p: p.text()))
        if len(ordered) == 1:
            return ordered[0]
        return self._derived(kind, ordered)

    def _derived(self, kind: DerivedKind, operands: tuple[Polynomial, ...], name: str = "") -> Polynomial:
        """Return a derived symbol, one for equal definitions."""
        for known in self.derived:
            if known.kind == kind and known.operands == operands:
                return Polynomial.symbol(known.name)
        symbol = DerivedSymbol(name or fresh_name(kind, operands), kind, operands)
        self.derived.append(symbol)
        self.constants.add(symbol.name)
        return Polynomial.symbol(symbol.name)
