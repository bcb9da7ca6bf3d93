"""What is known of a program before it runs: its parameters and derived scalars as polynomials, and the constraints
under which a nest runs at all (DESIGN section 6, "Start", less the machine's part).

C integer expressions become polynomials exactly, or not at all.  A quotient of two polynomials in parameters is a
*derived symbol* with its defining constraints: the scalar it was assigned to where there is one (``dim0 = n/B0``),
a fresh name made from its operands otherwise, so that equal quotients have equal names in every version of a program.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedKind, DerivedSymbol
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Phase,
    Program,
    Stmt,
    Unary,
    Var,
    While,
    binary,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.ir.types import ScalarType, common_type


@dataclass(frozen=True, slots=True)
class Facts:
    """``values``: every parameter and derived scalar as a polynomial; ``constraints`` hold whenever the nest runs.

    ``opaque`` are derived scalars whose definition is no polynomial and no quotient; of these symbols it is only
    required that they are not negative, and what assertions say.
    """

    values: Mapping[str, Polynomial] = field(hash=False)
    derived: tuple[DerivedSymbol, ...]
    constraints: tuple[Constraint, ...]
    opaque: frozenset[str]


def _integral(value: Polynomial) -> bool:
    return all(coefficient.denominator == 1 for coefficient in value.terms().values())


def _never_negative(value: Polynomial) -> bool:
    """Say whether this is so because every symbol stands for a non-negative integer."""
    return all(coefficient >= 0 for coefficient in value.terms().values())


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


class Scope:
    """Evaluates C integer expressions symbolically.

    ``values`` binds names to polynomials; a name without a binding (or bound to ``None``) is not known.  ``constants``
    are the symbols that may stand in a quotient: parameters and derived symbols, never loop variables.  ``derived``
    grows by the quotients met.  A ``closed`` scope takes up only new quotients that need no fact to be defined (by a
    positive number, of a polynomial that cannot be negative); those of an open one become facts.
    """

    def __init__(
        self,
        values: Mapping[str, Polynomial | None],
        constants: Iterable[str],
        derived: Iterable[DerivedSymbol] = (),
        closed: bool = False,
    ) -> None:
        self.values: dict[str, Polynomial | None] = dict(values)
        self.constants = set(constants)
        self.derived: list[DerivedSymbol] = list(derived)
        self.divisors: list[Polynomial] = [s.operands[1] for s in derived if s.kind in ("floor", "ceiling")]
        self.closed = closed

    @staticmethod
    def of(facts: Facts) -> Scope:
        """Return a scope in which the parameters and derived scalars of a program are bound."""
        constants = {name for value in facts.values.values() for name in value.symbols}
        return Scope(facts.values, constants | {symbol.name for symbol in facts.derived}, facts.derived, closed=True)

    def copy(self) -> Scope:
        """Return an independent scope with the same bindings, which shares the list of derived symbols."""
        other = Scope(self.values, (), closed=self.closed)
        other.derived = self.derived
        other.constants = self.constants
        other.divisors = self.divisors
        return other

    def polynomial(self, expr: Expr) -> Polynomial | None:
        """Return the polynomial that the expression equals, ``None`` where it is not known to be one."""
        match expr:
            case IntConst(value=value):
                return Polynomial.constant(value)
            case Var(name=name, type=type_):
                return self.values.get(name) if type_.integer else None
            case Unary(op="+", operand=operand):
                return self.polynomial(operand)
            case Unary(op="-", operand=operand):
                inner = self.polynomial(operand)
                return None if inner is None else -inner
            case Cast(type=type_, operand=operand):
                return self.converted(operand, type_)
            case Binary(op=op, left=left, right=right) if op in ("+", "-", "*", "/", "%", "<<"):
                if op == "-" and not expr.type.signed:
                    return None  # it wraps at zero
                first, second = self.converted(left, expr.type), self.converted(right, expr.type)
                if first is None or second is None:
                    return None
                return self._arithmetic(op, first, second)
            case Conditional() | Call() | Element() | FloatConst() | Binary() | Unary():
                return None

    def converted(self, expr: Expr, type_: ScalarType) -> Polynomial | None:
        """Return the value of an expression converted to an integer type, ``None`` where that may change it.

        Types at least as wide as ``int`` are taken to hold the sizes and indices that a program computes in them; a
        narrower one may lose high bits, and an unsigned one turns what may be negative into something large.
        """
        value = self.polynomial(expr)
        if value is None or not type_.integer:
            return None
        if type_.size < 4 and type_.rank < expr.type.rank:
            return None
        return value if type_.signed or not expr.type.signed or _never_negative(value) else None

    def compared(self, left: Expr, right: Expr) -> tuple[Polynomial, Polynomial] | None:
        """Return both sides of a comparison as C compares them, ``None`` where they are no polynomials then."""
        type_ = common_type(left.type, right.type)
        first, second = self.converted(left, type_), self.converted(right, type_)
        return None if first is None or second is None else (first, second)

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
        if exact is not None and _integral(exact) and (right.is_constant or _integral(right)):
            return exact if self._require_divisor(right) else None
        for known in self.derived:
            if known.kind == kind and known.operands == (left, right):
                return Polynomial.symbol(known.name)
        if self.closed and not (right.is_constant and _never_negative(left) and right.constant_value() >= 1):
            return None
        symbol = DerivedSymbol(name or fresh_name(kind, (left, right)), kind, (left, right))
        self.derived.append(symbol)
        self.constants.add(symbol.name)
        return Polynomial.symbol(symbol.name)

    def _require_divisor(self, divisor: Polynomial) -> bool:
        """Keep the condition that an exact division still needs, its divisor >= 1; say whether it can be kept."""
        if divisor.is_constant:
            return divisor.constant_value() >= 1
        if divisor not in self.divisors:
            if self.closed:
                return False
            self.divisors.append(divisor)
        return True

    def extremum(self, kind: DerivedKind, operands: tuple[Polynomial, ...]) -> Polynomial:
        """Return the maximum or minimum of polynomials in constants as a derived symbol."""
        ordered = tuple(sorted(set(operands), key=lambda p: p.text()))
        if len(ordered) == 1:
            return ordered[0]
        for known in self.derived:
            if known.kind == kind and known.operands == ordered:
                return Polynomial.symbol(known.name)
        symbol = DerivedSymbol(fresh_name(kind, ordered), kind, ordered)
        self.derived.append(symbol)
        self.constants.add(symbol.name)
        return Polynomial.symbol(symbol.name)

    def constraints(self, condition: Expr, truth: bool = True) -> tuple[Constraint, ...] | None:
        """Return constraints whose conjunction is the condition (or its negation); ``None`` where it is not one."""
        match condition:
            case Unary(op="!", operand=operand):
                return self.constraints(operand, not truth)
            case Binary(op=op, left=left, right=right) if op == ("&&" if truth else "||"):
                first, second = self.constraints(left, truth), self.constraints(right, truth)
                return None if first is None or second is None else first + second
            case Binary(op=op, left=left, right=right):
                sides = self.compared(left, right)
                return None if sides is None else _comparison(op, *sides, truth)
            case _:
                return None

    def implied(self, condition: Expr, truth: bool = True) -> tuple[Constraint, ...]:
        """Return constraints that follow from the condition: those conjuncts of it that are constraints."""
        match condition:
            case Unary(op="!", operand=operand):
                return self.implied(operand, not truth)
            case Binary(op=op, left=left, right=right) if op == ("&&" if truth else "||"):
                return self.implied(left, truth) + self.implied(right, truth)
            case _:
                return self.constraints(condition, truth) or ()


_NEGATION = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


def _comparison(op: str, left: Polynomial, right: Polynomial, truth: bool) -> tuple[Constraint, ...] | None:
    match op if truth else _NEGATION.get(op, ""):
        case "<":
            return (less_than(left, right),)
        case "<=":
            return (at_most(left, right),)
        case ">":
            return (less_than(right, left),)
        case ">=":
            return (at_most(right, left),)
        case "==":
            return (equal(left, right),)
        case _:
            return None


def program_facts(program: Program) -> Facts:
    """Return what holds of the parameters and derived scalars whenever the nest of ``program`` runs.

    Parameters are non-negative, divisors at least 1, dividends non-negative, trip counts of ``meta_for``s and of
    counted serial loops of thread code at least 1, assertions and definitions of derived scalars hold.
    """
    values = {parameter.name: Polynomial.symbol(parameter.name) for parameter in program.parameters}
    constraints = [at_most(0, value) for value in values.values()]
    scope = Scope(values, values)
    opaque: set[str] = set()
    for derived in program.derived:
        value = _derived_value(scope, derived.name, derived.definition, derived.type)
        if value is None:
            value = Polynomial.symbol(derived.name)
            constraints.append(at_most(0, value))
            opaque.add(derived.name)
            scope.constants.add(derived.name)
        scope.values[derived.name] = value
    for assumption in program.assumptions:
        constraints.extend(scope.implied(assumption))
    for extent in _trip_counts(program):
        value = scope.polynomial(extent)
        if value is not None and not value.is_constant:
            constraints.append(at_most(ONE, value))
    for extent in _divisions(program):
        scope.polynomial(extent)
    for symbol in scope.derived:
        constraints.extend(symbol.constraints())
    constraints.extend(at_most(ONE, divisor) for divisor in scope.divisors)
    constraints = [c for c in dict.fromkeys(constraints) if not _always(c)]
    known = {name: value for name, value in scope.values.items() if value is not None}
    return Facts(known, tuple(scope.derived), tuple(constraints), frozenset(opaque))


def _always(constraint: Constraint) -> bool:
    return constraint.difference.is_constant and constraint.holds({})


def _derived_value(scope: Scope, name: str, definition: Expr, type_: ScalarType) -> Polynomial | None:
    """Return the value of a derived scalar; a plain quotient gives the scalar's own name to its symbol."""
    if isinstance(definition, Binary) and definition.op == "/":
        if type_.size < 4 and type_.rank < definition.type.rank:
            return None  # it may lose high bits
        left, right = scope.polynomial(definition.left), scope.polynomial(definition.right)
        if left is not None and right is not None:
            return scope.quotient("floor", left, right, name)
        return None
    return scope.converted(definition, type_)


def _trip_counts(program: Program) -> Iterator[Expr]:
    """Yield the trip counts of grid and thread loops, and of counted serial loops of thread code.

    The latter hold every granularity loop; a window that such a loop sweeps would otherwise have no element.
    """
    for loop in program.grid:
        yield loop.extent
    for stmt in walk_statements(program.body):
        if not isinstance(stmt, Phase):
            continue
        for thread in stmt.threads:
            yield thread.extent
        for inner in walk_statements(stmt.body):
            if isinstance(inner, For):
                count = trip_count(inner)
                if count is not None:
                    yield count


def trip_count(loop: For) -> Expr | None:
    """Return ``high - low`` of a loop ``for (int k = low; k < high; k++)`` whose body does not assign k, else ``None``.

    ``<=`` counts one more.
    """
    match loop:
        case For(
            init=Declare(name=name, value=low) | Assign(target=Var(name=name), op="", value=low),
            condition=Binary(op=("<" | "<=") as op, left=Var(name=tested), right=high),
            step=Assign(target=Var(name=stepped), op="+", value=IntConst(value=1)),
            body=body,
        ) if low is not None and name == tested == stepped and name not in assigned_scalars(body):
            count = high if low == IntConst(0) else binary("-", high, low)
            return count if op == "<" else binary("+", count, IntConst(1))
        case _:
            return None


def assigned_scalars(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the names of scalars that some statement of the body assigns; declarations do not count."""
    return frozenset(
        stmt.target.name
        for stmt in walk_statements(tuple(body))
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var)
    )


def _divisions(program: Program) -> Iterator[Expr]:
    """Yield the quotients and remainders of extents, bounds, indices and integer scalars.

    Those of conditions are left to whoever reads the condition: they need no symbol where only their truth counts.
    """

    def inside(expr: Expr) -> Iterator[Expr]:
        for part in reversed(tuple(walk_expression(expr))):
            if isinstance(part, Binary) and part.op in ("/", "%") and part.type.integer:
                yield part

    for array in program.arrays:
        for extent in array.extents:
            yield from inside(extent)
    for loop in program.grid:
        yield from inside(loop.extent)
    for stmt in walk_statements(program.body):
        if isinstance(stmt, If | While):
            continue
        for expr in expressions_of(stmt):
            yield from inside(expr)
