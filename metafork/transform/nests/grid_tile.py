"""A granularity loop's variable ``k`` as part of a grid variable, with no division (``transform.nests.grid_index``).

``Tile`` tries one grid variable and one way, fine or coarse: it checks that every root of the program is a function of
the new index alone, and rewrites the program for it on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial, reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import Positivity
from metafork.analysis.counted_loops import conjuncts
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, promoted
from metafork.ir.rewriting import (
    assigned_variables,
    declared_here,
    joining_scope,
    names_of,
    substitute,
    substitute_body,
    variables,
)
from metafork.ir.visitor import Rewriter
from metafork.transform.nests.simplification import factors, product, simplified, summands

Body = tuple[ir.Stmt, ...]


class Joining(Struct, frozen=True):
    """A program whose granularity loop over ``k`` was taken away, while ``k`` still occurs: to be made part of ``i``.

    ``trips`` is the number of iterations, an expression in parameters and derived scalars.
    """

    program: ir.Program
    k: str
    k_type: ScalarType
    trips: ir.Expr

    @property
    def zero(self) -> ir.IntConst:
        """What ``k`` becomes: 0 of the type that ``k`` has in an expression, so that types around it stay."""
        return ir.IntConst(0, promoted(self.k_type))


def enlarged(loop: ir.MetaFor, trips: ir.Expr) -> ir.Expr:
    """Return the extent of a grid loop that takes up ``trips`` iterations for each of its own."""
    return simplified(ir.binary("*", loop.extent, trips))


class ExactQuotients:
    """Quotients that the facts make exact: with ``N == 2*B*dim``, ``N/2`` is ``B*dim``."""

    def __init__(self, facts: Facts) -> None:
        self._values: dict[str, Polynomial] = {}
        for constraint in facts.constraints:
            if constraint.relation != "==":
                continue
            for zero in (constraint.difference, -constraint.difference):
                for name in sorted(zero.symbols & facts.values.keys()):
                    if zero.coefficient(name) == 1 and name not in self._values:
                        value = Polynomial.symbol(name) - zero
                        if not value.symbols & self._values.keys():
                            self._values[name] = value
        for symbol in facts.derived:
            if symbol.kind != "floor" or not self._values:
                continue
            numerator, denominator = (operand.substitute(self._values) for operand in symbol.operands)
            quotient = numerator.divide_exactly(denominator)
            whole = quotient is not None and all(c.denominator == 1 for c in quotient.terms().values())
            if quotient is not None and whole and symbol.name not in quotient.symbols:
                self._values[symbol.name] = quotient

    def of(self, value: Polynomial) -> Polynomial:
        """Return a polynomial with those quotients replaced by what they are equal to."""
        return value.substitute(self._values)


class _NoFitError(Exception):
    """The program does not depend on i and k in this way."""


@dataclass
class Tile(Rewriter):
    """One attempt to make ``k`` part of a ``grid`` loop; a fresh object each time."""

    joining: Joining
    grid: ir.MetaFor
    coarse: bool
    facts: Facts
    exact: ExactQuotients
    scope: Scope = field(init=False)
    _ranges: list[tuple[str, Constraint]] = field(default_factory=list)
    _here: frozenset[str] = frozenset()
    """What the innermost scope declares."""
    _in_parts: bool = False
    """Whether some scalar is no function of the new index, and so takes values that it did not take before."""
    _subtracts: bool = False
    """Whether some root is no bound for the scalars in it, because something is subtracted from them."""

    def program(self, position: int) -> ir.Program | None:
        """Return the new program, or ``None`` where the roots do not fit."""
        scope = self.scope = Scope.of(self.facts)
        extent, trips = scope.polynomial(self.grid.extent), scope.polynomial(self.joining.trips)
        if extent is None or trips is None:
            return None
        self._extent, self._trips = extent, trips
        program = self.joining.program
        self._assigned = assigned_variables(program.body)
        self._taken = set(names_of(program))
        self._fact_symbols = {name for value in self.facts.values.values() for name in value.symbols}
        self._fact_symbols |= {symbol.name for symbol in self.facts.derived}
        for loop in program.grid:
            self.declared(loop.var, loop)
        scope.values[self.joining.k] = Polynomial.symbol(self.joining.k)
        scope.ranges.enter(self.joining.k, trips)
        try:
            body = self.body(program.body)
        except _NoFitError:
            return None
        if self._in_parts and self._subtracts:
            return None
        grid = list(program.grid)
        grid[position] = replace(self.grid, extent=enlarged(self.grid, self.joining.trips))
        body = substitute_body(body, {self.joining.k: self.joining.zero}, ())
        return replace(program, grid=tuple(grid), body=without_zeros(body))

    def declared(self, name: str, node: ir.Declare | ir.BlockArray | ir.PrivateArray | ir.MetaFor) -> None:
        """Enter the variable of a loop."""
        if isinstance(node, ir.MetaFor):
            limit = self.scope.polynomial(node.extent)
            self.scope.values[name] = Polynomial.symbol(name)
            self.scope.ranges.enter(name, limit)
            if limit is not None:
                self._ranges.append((name, at_most(Polynomial.symbol(name) + 1, limit)))

    def inner(self) -> Scope:
        """Return a scope in which further scalars are known."""
        return self.scope.copy()

    def body(self, body: Body) -> Body:
        """Return the statements of a scope for the new index."""
        around, self._here = self._here, declared_here(body)
        new = super().body(body)
        self._here = around
        return new

    def phase(self, node: ir.Phase) -> ir.Stmt | Body:
        """Return a phase for the new index."""
        ranges = len(self._ranges)
        new = super().phase(node)
        del self._ranges[ranges:]
        return new

    def target(self, node: ir.Var | ir.Element) -> ir.Var | ir.Element:
        """Return what is assigned for the new index; a scalar stays."""
        return node if isinstance(node, ir.Var) else super().target(node)

    def declare(self, node: ir.Declare) -> ir.Declare:
        """Return a declaration for the new index."""
        value = None
        wide = node.type.integer and node.type.signed and node.type.size >= 4
        if node.value is not None and wide and node.name not in self._assigned:
            value = self.scope.converted(node.value, node.type) if node.value.type.size <= node.type.size else None
        if value is None:
            new = node if node.value is None else replace(node, value=self.expression(node.value))
            self.scope.values[node.name] = Polynomial.symbol(node.name)
            return new
        self.scope.values[node.name] = value
        self._in_parts = self._in_parts or not self._function_of_index(value)
        assert node.value is not None
        return replace(node, value=self._rewritten(node.value))

    def branch(self, node: ir.If) -> ir.Stmt | Body:
        """Return an ``if`` for the new index; what it always runs alone, where its condition always holds."""
        kept: list[ir.Expr] = []
        for conjunct in conjuncts(node.condition):
            try:
                kept.append(self.expression(conjunct))
            except _NoFitError:
                if not self._always(conjunct):
                    raise
        then, otherwise = self.body(node.then), self.body(node.otherwise)
        if not kept:
            return joining_scope(then, self._here, self._taken)
        return replace(node, condition=reduce(partial(ir.binary, "&&"), kept), then=then, otherwise=otherwise)

    def _always(self, condition: ir.Expr) -> bool:
        """Say whether the facts and the ranges of the loops imply a condition."""
        constraints = meaning(self.scope, condition).conjunction
        # Only of these symbols is it known that they are not negative.
        known = {loop for loop, _ in self._ranges} | self._fact_symbols
        if constraints is None or any(not constraint.symbols <= known for constraint in constraints):
            return False
        premises = Positivity([*self.facts.constraints, *(range_ for _, range_ in self._ranges)], self.facts.derived)
        return all(
            constraint.relation != "=="
            and premises.non_negative(
                self.exact.of(constraint.right - constraint.left) - (1 if constraint.relation == "<" else 0),
                search=True,
            )
            for constraint in constraints
        )

    def expression(self, expr: ir.Expr) -> ir.Expr:
        """Return the expression for the new index; raises ``_NoFitError`` where an integer in it does not fit."""
        value = self.scope.polynomial(expr) if expr.type.integer else None
        if value is None:
            return super().expression(expr)
        if not self._function_of_index(value):
            raise _NoFitError
        of_index = {self.grid.var, self.joining.k} & value.symbols
        self._subtracts = self._subtracts or (bool(of_index) and not _only_last_constant_negative(expr, value))
        return self._rewritten(expr)

    def _function_of_index(self, value: Polynomial) -> bool:
        i, k = self.grid.var, self.joining.k
        of_i, of_k = value.coefficient(i), value.coefficient(k)
        if of_i is None or of_k is None or (of_i.symbols | of_k.symbols) & {i, k}:
            return False
        if self.coarse:
            return self.exact.of(of_k) == self.exact.of(of_i * self._extent)
        return of_k * self._trips == of_i

    def _rewritten(self, expr: ir.Expr) -> ir.Expr:
        """Return an integer polynomial expression with k = 0 and, in the fine way, i*e as the new i."""
        i, k = self.grid.var, self.joining.k
        names = variables(expr)
        if k not in names and (self.coarse or i not in names):
            return expr
        shallow = Scope.of(self.facts)
        shallow.values.update({name: Polynomial.symbol(name) for name in names if name not in self.facts.values})
        value = shallow.congruent(expr)
        if value is None or not _only_last_constant_negative(expr, value):
            raise _NoFitError
        start = value.substitute({k: 0})
        if self.coarse or i not in names:
            return simplified(substitute(expr, {k: self.joining.zero}))
        of_i = start.coefficient(i)
        quotient = None if of_i is None else of_i.divide_exactly(self._trips)
        if of_i is None or quotient is None:
            raise _NoFitError
        expected = start - of_i * Polynomial.symbol(i) + quotient * Polynomial.symbol(i)
        new = self._divided(simplified(substitute(expr, {k: self.joining.zero})), shallow)
        if shallow.congruent(new) != expected:
            raise _NoFitError
        return new

    def _divided(self, expr: ir.Expr, scope: Scope) -> ir.Expr:
        """Return the expression with the number of iterations taken out of every product that holds i."""
        if self.grid.var not in variables(expr):
            return expr
        match expr:
            case ir.Binary(op="+" | "-", left=left, right=right):
                return replace(expr, left=self._divided(left, scope), right=self._divided(right, scope))
            case ir.Binary(op="*"):
                return simplified(product(self._without_trips(factors(expr), scope), expr.type))
            case _:
                raise _NoFitError

    def _without_trips(self, parts: list[ir.Expr], scope: Scope) -> list[ir.Expr]:
        holder = next(n for n, part in enumerate(parts) if self.grid.var in variables(part))
        if isinstance(parts[holder], ir.Binary):
            return [*parts[:holder], self._divided(parts[holder], scope), *parts[holder + 1 :]]
        rest = self._trips
        kept: list[ir.Expr] = []
        for part in parts:
            value = scope.polynomial(part)
            if value is None:
                raise _NoFitError
            smaller = None if rest == 1 or value == 1 else rest.divide_exactly(value)
            larger = value.divide_exactly(rest) if value.is_constant and rest.is_constant and rest != 1 else None
            if larger is not None and larger.constant_value().denominator == 1:
                kept.append(ir.IntConst(int(larger.constant_value())))
                rest = Polynomial.constant(1)
            elif smaller is not None and all(c.denominator == 1 for c in smaller.terms().values()):
                rest = smaller
            else:
                kept.append(part)
        if rest != 1:
            raise _NoFitError
        return kept


def _only_last_constant_negative(expr: ir.Expr, value: Polynomial) -> bool:
    negative = [mono for mono, coeff in value.terms().items() if coeff < 0]
    if not negative:
        return True
    terms = summands(expr)
    last_negative, last = terms[-1]
    return negative == [()] and last_negative and isinstance(last, ir.IntConst) and not any(n for n, _ in terms[:-1])


def without_zeros(body: Body) -> Body:
    """Return ``body`` with integer scalars that are 0, or have become another scalar, put into their uses."""
    return _WithoutZeros(assigned_variables(body)).body(body)


class _WithoutZeros(Rewriter):
    def __init__(self, assigned: frozenset[str]) -> None:
        self._assigned = assigned

    def body(self, body: Body) -> Body:
        for position, stmt in enumerate(body):
            if isinstance(stmt, ir.Declare) and stmt.name not in self._assigned and stmt.value is not None:
                value = simplified(stmt.value)
                # ``int p1 = t1`` stays where it stood before; ``q + x`` that is now ``q`` need have no name.
                zero = isinstance(value, ir.IntConst) and value.value == 0
                copy = (
                    isinstance(value, ir.Var)
                    and not isinstance(stmt.value, ir.Var)
                    and value.name not in self._assigned
                )
                if (zero or copy) and value.type == stmt.type:
                    rest = substitute_body(body[position + 1 :], {stmt.name: value}, ())
                    return (*super().body(body[:position]), *self.body(rest))
        return super().body(body)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        return simplified(expr)

    def extent(self, expr: ir.Expr) -> ir.Expr:
        return expr
