"""A granularity loop's variable ``k`` as part of a grid variable, with no division (``strategies.loops.grid_index``).

``Tile`` tries one grid variable and one way, fine or coarse: it checks that every root of the program is a function of
the new index alone, and rewrites the program for it on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import Positivity
from metafork.analysis.counted_loops import conjuncts
from metafork.analysis.facts import Facts, Scope
from metafork.ir.arithmetic.types import ScalarType, promoted
from metafork.ir.program import (
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Continue,
    Declare,
    Element,
    Expr,
    For,
    If,
    IntConst,
    MetaFor,
    Phase,
    PrivateArray,
    Program,
    Stmt,
    Var,
    While,
    binary,
    subexpressions,
)
from metafork.ir.rewriting import (
    assigned_variables,
    declared_here,
    joining_scope,
    names_of,
    substitute,
    substitute_body,
    variables,
    with_operands,
)
from strategies.loops.simplification import factors, product, simplified, summands

Body = tuple[Stmt, ...]


class Joining(Struct, frozen=True):
    """A program whose granularity loop over ``k`` was taken away, while ``k`` still occurs: to be made part of ``i``.

    ``trips`` is the number of iterations, an expression in parameters and derived scalars.
    """

    program: Program
    k: str
    k_type: ScalarType
    trips: Expr

    @property
    def zero(self) -> IntConst:
        """What ``k`` becomes: 0 of the type that ``k`` has in an expression, so that types around it stay."""
        return IntConst(0, promoted(self.k_type))


def enlarged(loop: MetaFor, trips: Expr) -> Expr:
    """Return the extent of a grid loop that takes up ``trips`` iterations for each of its own."""
    return simplified(binary("*", loop.extent, trips))


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
class Tile:
    """One attempt to make ``k`` part of ``loop``; a fresh object each time."""

    joining: Joining
    loop: MetaFor
    coarse: bool
    facts: Facts
    exact: ExactQuotients
    _ranges: list[tuple[str, Constraint]] = field(default_factory=list)
    _in_parts: bool = False
    """Whether some scalar is no function of the new index, and so takes values that it did not take before."""
    _subtracts: bool = False
    """Whether some root is no bound for the scalars in it, because something is subtracted from them."""

    def program(self, position: int) -> Program | None:
        """Return the new program, or ``None`` where the roots do not fit."""
        scope = Scope.of(self.facts)
        extent, trips = scope.polynomial(self.loop.extent), scope.polynomial(self.joining.trips)
        if extent is None or trips is None:
            return None
        self._extent, self._trips = extent, trips
        program = self.joining.program
        self._assigned = assigned_variables(program.body)
        self._taken = set(names_of(program))
        self._fact_symbols = {name for value in self.facts.values.values() for name in value.symbols}
        self._fact_symbols |= {symbol.name for symbol in self.facts.derived}
        for loop in program.grid:
            scope.values[loop.var] = Polynomial.symbol(loop.var)
            self._bind_range(scope, scope, loop)
        scope.values[self.joining.k] = Polynomial.symbol(self.joining.k)
        scope.ranges.enter(self.joining.k, trips)
        try:
            body = self._body(program.body, scope)
        except _NoFitError:
            return None
        if self._in_parts and self._subtracts:
            return None
        grid = list(program.grid)
        grid[position] = replace(self.loop, extent=enlarged(self.loop, self.joining.trips))
        body = substitute_body(body, {self.joining.k: self.joining.zero}, ())
        return replace(program, grid=tuple(grid), body=without_zeros(body))

    def _bind_range(self, scope: Scope, inner: Scope, loop: MetaFor) -> None:
        limit = scope.polynomial(loop.extent)
        inner.ranges.enter(loop.var, limit)
        if limit is not None:
            self._ranges.append((loop.var, at_most(Polynomial.symbol(loop.var) + 1, limit)))

    def _body(self, body: Body, outer: Scope) -> Body:
        scope = outer.copy()
        result: list[Stmt] = []
        for stmt in body:
            new = self._stmt(stmt, scope)
            if isinstance(stmt, If) and not (len(new) == 1 and isinstance(new[0], If)):
                new = joining_scope(new, declared_here(body), self._taken)
            result += new
        return tuple(result)

    def _stmt(self, stmt: Stmt, scope: Scope) -> Body:
        match stmt:
            case Declare():
                return (self._declare(stmt, scope),)
            case Assign(target=target, value=value):
                new_target = self._root(target, scope) if isinstance(target, Element) else target
                assert isinstance(new_target, Var | Element)
                return (replace(stmt, target=new_target, value=self._root(value, scope)),)
            case If():
                return self._if(stmt, scope)
            case For(init=init, condition=condition, step=step, body=body):
                inner = scope.copy()
                new_init = None
                if init is not None:
                    (new_init,) = self._stmt(init, inner)
                new_condition = None if condition is None else self._root(condition, inner)
                new_step = None
                if step is not None:
                    (new_step,) = self._stmt(step, inner)
                assert new_init is None or isinstance(new_init, Declare | Assign)
                assert new_step is None or isinstance(new_step, Assign)
                new_body = self._body(body, inner)
                return (replace(stmt, init=new_init, condition=new_condition, step=new_step, body=new_body),)
            case While(condition=condition, body=body):
                return (replace(stmt, condition=self._root(condition, scope), body=self._body(body, scope)),)
            case BlockArray(array=array) | PrivateArray(array=array):
                extents = tuple(self._root(extent, scope) for extent in array.extents)
                return (replace(stmt, array=replace(array, extents=extents)),)
            case Phase(threads=threads, body=body):
                inner = scope.copy()
                ranges = len(self._ranges)
                for loop in threads:
                    self._root(loop.extent, scope)
                    inner.values[loop.var] = Polynomial.symbol(loop.var)
                    self._bind_range(scope, inner, loop)
                new_body = self._body(body, inner)
                self._ranges = self._ranges[:ranges]
                return (replace(stmt, body=new_body),)
            case Break() | Continue() | Barrier():
                return (stmt,)
            case _:
                assert_never(stmt)

    def _declare(self, stmt: Declare, scope: Scope) -> Declare:
        value = None
        wide = stmt.type.integer and stmt.type.signed and stmt.type.size >= 4
        if stmt.value is not None and wide and stmt.name not in self._assigned:
            value = scope.converted(stmt.value, stmt.type) if stmt.value.type.size <= stmt.type.size else None
        if value is None:
            new = stmt if stmt.value is None else replace(stmt, value=self._root(stmt.value, scope))
            scope.values[stmt.name] = Polynomial.symbol(stmt.name)
            return new
        scope.values[stmt.name] = value
        self._in_parts = self._in_parts or not self._function_of_index(value)
        assert stmt.value is not None
        return replace(stmt, value=self._rewritten(stmt.value))

    def _if(self, stmt: If, scope: Scope) -> Body:
        kept: list[Expr] = []
        for conjunct in conjuncts(stmt.condition):
            try:
                kept.append(self._root(conjunct, scope))
            except _NoFitError:
                if not self._always(conjunct, scope):
                    raise
        then, otherwise = self._body(stmt.then, scope), self._body(stmt.otherwise, scope)
        if not kept:
            return then
        condition = kept[0]
        for conjunct in kept[1:]:
            condition = binary("&&", condition, conjunct)
        return (replace(stmt, condition=condition, then=then, otherwise=otherwise),)

    def _always(self, condition: Expr, scope: Scope) -> bool:
        """Say whether the facts and the ranges of the loops imply a condition."""
        constraints = scope.constraints(condition)
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

    def _root(self, expr: Expr, scope: Scope) -> Expr:
        """Return the expression for the new index; raises ``_NoFitError`` where an integer in it does not fit."""
        value = scope.polynomial(expr) if expr.type.integer else None
        if value is not None:
            if not self._function_of_index(value):
                raise _NoFitError
            of_index = {self.loop.var, self.joining.k} & value.symbols
            self._subtracts = self._subtracts or (bool(of_index) and not _only_last_constant_negative(expr, value))
            return self._rewritten(expr)
        operands = subexpressions(expr)
        if not operands:
            return expr
        return with_operands(expr, [self._root(operand, scope) for operand in operands])

    def _function_of_index(self, value: Polynomial) -> bool:
        i, k = self.loop.var, self.joining.k
        of_i, of_k = value.coefficient(i), value.coefficient(k)
        if of_i is None or of_k is None or (of_i.symbols | of_k.symbols) & {i, k}:
            return False
        if self.coarse:
            return self.exact.of(of_k) == self.exact.of(of_i * self._extent)
        return of_k * self._trips == of_i

    def _rewritten(self, expr: Expr) -> Expr:
        """Return an integer polynomial expression with k = 0 and, in the fine way, i*e as the new i."""
        i, k = self.loop.var, self.joining.k
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

    def _divided(self, expr: Expr, scope: Scope) -> Expr:
        """Return the expression with the number of iterations taken out of every product that holds i."""
        if self.loop.var not in variables(expr):
            return expr
        match expr:
            case Binary(op="+" | "-", left=left, right=right):
                return replace(expr, left=self._divided(left, scope), right=self._divided(right, scope))
            case Binary(op="*"):
                return simplified(product(self._without_trips(factors(expr), scope), expr.type))
            case _:
                raise _NoFitError

    def _without_trips(self, parts: list[Expr], scope: Scope) -> list[Expr]:
        holder = next(n for n, part in enumerate(parts) if self.loop.var in variables(part))
        if isinstance(parts[holder], Binary):
            return [*parts[:holder], self._divided(parts[holder], scope), *parts[holder + 1 :]]
        rest = self._trips
        kept: list[Expr] = []
        for part in parts:
            value = scope.polynomial(part)
            if value is None:
                raise _NoFitError
            smaller = None if rest == 1 or value == 1 else rest.divide_exactly(value)
            larger = value.divide_exactly(rest) if value.is_constant and rest.is_constant and rest != 1 else None
            if larger is not None and larger.constant_value().denominator == 1:
                kept.append(IntConst(int(larger.constant_value())))
                rest = Polynomial.constant(1)
            elif smaller is not None and all(c.denominator == 1 for c in smaller.terms().values()):
                rest = smaller
            else:
                kept.append(part)
        if rest != 1:
            raise _NoFitError
        return kept


def _only_last_constant_negative(expr: Expr, value: Polynomial) -> bool:
    negative = [mono for mono, coeff in value.terms().items() if coeff < 0]
    if not negative:
        return True
    terms = summands(expr)
    last_negative, last = terms[-1]
    return negative == [()] and last_negative and isinstance(last, IntConst) and not any(n for n, _ in terms[:-1])


def without_zeros(body: Body) -> Body:
    """Return ``body`` with integer scalars that are 0, or have become another scalar, put into their uses."""
    assigned = assigned_variables(body)
    return tuple(_without_zeros(body, assigned))


def _without_zeros(body: Body, assigned: frozenset[str]) -> Iterator[Stmt]:
    for position, stmt in enumerate(body):
        if isinstance(stmt, Declare) and stmt.name not in assigned and stmt.value is not None:
            value = simplified(stmt.value)
            # ``int p1 = t1`` stays where it stood before; ``q + x`` that is now ``q`` need have no name.
            zero = isinstance(value, IntConst) and value.value == 0
            copy = isinstance(value, Var) and not isinstance(stmt.value, Var) and value.name not in assigned
            if (zero or copy) and value.type == stmt.type:
                rest = substitute_body(body[position + 1 :], {stmt.name: value}, ())
                yield from _without_zeros(rest, assigned)
                return
        yield _simplified_statement(stmt, assigned)


def _simplified_statement(stmt: Stmt, assigned: frozenset[str]) -> Stmt:
    match stmt:
        case Declare(value=value):
            return stmt if value is None else replace(stmt, value=simplified(value))
        case Assign(target=target, value=value):
            new = simplified(target)
            assert isinstance(new, Var | Element)
            return replace(stmt, target=new, value=simplified(value))
        case If(condition=condition, then=then, otherwise=otherwise):
            return replace(
                stmt,
                condition=simplified(condition),
                then=tuple(_without_zeros(then, assigned)),
                otherwise=tuple(_without_zeros(otherwise, assigned)),
            )
        case For(body=body) | Phase(body=body):
            return replace(stmt, body=tuple(_without_zeros(body, assigned)))
        case While(condition=condition, body=body):
            return replace(stmt, condition=simplified(condition), body=tuple(_without_zeros(body, assigned)))
        case BlockArray() | PrivateArray() | Break() | Continue() | Barrier():
            return stmt
        case _:
            assert_never(stmt)
