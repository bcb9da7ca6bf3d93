"""Tiles that begin at a multiple, where the columns that they are for begin anywhere.

``before --> after``, for multiples of 4 and the first column ``k + 1``::

                                                   int start = (k + 1) / 4 * 4, past = n + B;
    meta_for (int p = 0; p < (rest + B - 1) / B; p++)    meta_for (int p = 0; p < (past - 1 - start) / B; p++)
      meta_for (int q = 0; q < B; q++) {                   meta_for (int q = 0; q < B; q++) {
        int j = k + 1 + p * B + q;                 -->       int j = start + p * B + q;
        if (j < n)                                           if (j >= k + 1 && j < n)
          S(j);                                                S(j);
      }                                                    }

with ``rest = n - (k + 1)``.  What is left of a matrix begins at another column in each step of an elimination, and
vector accesses need multiples.

Legality.  The program depends on p and q through ``c = p*B + q`` alone: each integer in which they occur is c plus what
does not depend on them.  One condition is around all that reads, writes, calls or divides, and does not hold from
``c = rest`` on (polynomials, equal).  The blocks there were had each c below that, for they were as many as ``rest`` or
more columns need; and so have the new ones, as many as from ``start`` to ``k + 1 + rest``.  Columns that are new, below
``k + 1``, fail the new test.

Overflow.  ``start`` is not negative, for its terms are not, and what is computed outside the condition stays below
``past``, which the host computes: where that leaves its type, it takes another leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial, reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import conjuncts
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.marks import phases
from metafork.ir.polynomial_code import code_of, may_be_negative
from metafork.ir.rewriting import (
    assigned_variables,
    fresh_name,
    map_body,
    map_expression,
    names_in,
    names_of,
    variables,
)
from metafork.transform.directive import Refused

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]


class Align(Struct, frozen=True):
    """Let the tiles of the innermost loops that can begin at a ``multiple``.

    align(4)::

        int j = k + 1 + p * B + q;           -->   int j = (k + 1) / 4 * 4 + p * B + q;
        if (j < n)                                 if (j >= k + 1 && j < n)
          S(j);                                      S(j);
    """

    multiple: int

    def __post_init__(self) -> None:
        if self.multiple not in (2, 4, 8):
            raise ValueError(f"multiple is 2, 4 or 8, not {self.multiple}")

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program whose tiles begin at multiples."""
        aligned = with_aligned_start(program, self.multiple, analyses.facts(program))
        if aligned is None:
            return Refused(
                f"no loops are proved to begin elsewhere than at a multiple of {self.multiple}", program.span
            )
        return aligned


def with_aligned_start(program: ir.Program, multiple: int, facts: Facts) -> ir.Program | None:
    """Return the program whose innermost loops begin at a multiple; ``None`` where that is not proved, or is so."""
    for position in reversed(range(len(program.grid))):
        nest = _nest(program, position, facts)
        end = None if nest is None else nest.end()
        if nest is None or end is None or may_be_negative(nest.covered - end.column):
            continue
        for first in (end.first, nest.first_stored()):
            if first is None or (first.is_constant and first.constant_value() % multiple == 0):
                continue
            if not may_be_negative(first):
                try:
                    return nest.moved(first, end.column, multiple)
                except _NoColumnError:
                    pass
    return None


class _End(Struct, frozen=True):
    """A condition does not hold from this ``column`` on, counted from 0; ``first`` is what it adds to that number."""

    first: Polynomial
    column: Polynomial


class _NoColumnError(Exception):
    """The grid loop or the thread loop occurs otherwise than in the number of a column."""


class _Nest(Struct, frozen=True):
    """A grid loop and the innermost thread loop that number columns, and the one condition around all work.

    A block has ``size`` of them; there are as many blocks as take ``covered`` columns, rounded up.  ``before`` are
    declarations in front of the condition; ``scope`` has their values, ``scalars`` is what the host knows.
    """

    program: ir.Program
    position: int
    phase: ir.Phase
    size: Polynomial
    covered: Polynomial
    before: tuple[ir.Declare, ...]
    work: ir.If
    scope: Scope
    scalars: Mapping[str, ir.Var]

    @property
    def names(self) -> tuple[str, str]:
        """The variables of both loops."""
        return self.program.grid[self.position].var, self.phase.threads[-1].var

    def beside(self, value: Polynomial | None) -> Polynomial | None:
        """Return what a value adds to the number of a column; ``None`` where it is no such sum."""
        if value is None:
            return None
        block, thread = self.names
        rest = value - Polynomial.symbol(block) * self.size - Polynomial.symbol(thread)
        return None if rest.symbols & {block, thread} else rest

    def first_stored(self) -> Polynomial | None:
        """Return what the index of a store adds to the number of a column, where the host knows it."""
        for stmt in ir.walk_statements(self.work.then):
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element):
                first = self.beside(self.scope.congruent(stmt.target.indices[-1]))
                if first is not None and first.symbols <= self.scalars.keys():
                    return first
        return None

    def end(self) -> _End | None:
        """Return where the condition ends, as the host knows it."""
        for test in conjuncts(self.work.condition):
            match test:
                case ir.Binary(op="<" | "<=" as op, left=less, right=more):
                    pass
                case ir.Binary(op=">" | ">=" as op, left=more, right=less):
                    pass
                case _:
                    continue
            first, limit = self.beside(self.scope.congruent(less)), self.scope.congruent(more)
            if first is not None and limit is not None:
                column = limit - first + (1 if op in ("<=", ">=") else 0)
                if (first.symbols | column.symbols) <= self.scalars.keys():
                    return _End(first, column)
        return None

    def moved(self, first: Polynomial, end: Polynomial, multiple: int) -> ir.Program:
        """Return the program from the multiple at or below ``first`` on; raises ``_NoColumnError``."""
        ahead = max([0, *(self._ahead(value, first) for value in self._outside())])
        names = {name: fresh_name(name, names_of(self.program)) for name in ("start", "past")}
        symbols: dict[str, ir.Expr] = {**self.scalars}
        symbols |= {name: ir.Var(name, INT) for name in (*self.names, *names.values())}
        past, start = Polynomial.symbol(names["past"]), Polynomial.symbol(names["start"])
        definitions = [ir.Derived(names["past"], INT, code_of(first + end + self.size + ahead, symbols))]
        if first.is_constant:
            start = Polynomial.constant(first.constant_value() // multiple * multiple)
        else:
            groups = ir.binary("/", code_of(first, symbols), ir.IntConst(multiple))
            definitions.insert(0, ir.Derived(names["start"], INT, ir.binary("*", groups, ir.IntConst(multiple))))

        def changed(expr: ir.Expr) -> ir.Expr | None:
            value = self.scope.congruent(expr) if expr.type is INT and variables(expr) & {*self.names} else None
            if value is None:
                return None
            self._ahead(value, first)
            return code_of(value - first + start, symbols)

        named = [one.name for one in self.before if self.scope.values[one.name] == self._column(first)]
        column = ir.Var(named[0], INT) if named else code_of(self._column(start), symbols)
        tests: list[ir.Expr] = [ir.binary(">=", column, code_of(first, symbols))]
        tests += conjuncts(map_expression(self.work.condition, changed))
        work = ir.If(reduce(partial(ir.binary, "&&"), tests), map_body(self.work.then, changed), (), self.work.span)
        phase = replace(self.phase, body=(*map_body(self.before, changed), work))
        grid = list(self.program.grid)
        blocks = ir.binary("/", code_of(past - 1 - ahead - start, symbols), self.phase.threads[-1].extent)
        grid[self.position] = replace(grid[self.position], extent=blocks)
        return replace(
            self.program,
            derived=(*self.program.derived, *definitions),
            grid=tuple(grid),
            body=tuple(phase if one is self.phase else one for one in self.program.body),
        )

    def _column(self, first: Polynomial) -> Polynomial:
        block, thread = self.names
        return first + Polynomial.symbol(block) * self.size + Polynomial.symbol(thread)

    def _ahead(self, value: Polynomial, first: Polynomial) -> int:
        """Return by how much a column that begins at ``first`` is exceeded; raises ``_NoColumnError`` for no column."""
        if not value.symbols & {*self.names}:
            return 0
        beside = self.beside(value)
        for apart in () if beside is None else (beside - first, beside):
            if apart.is_constant and apart.constant_value().denominator == 1:
                return int(apart.constant_value())
        raise _NoColumnError

    def _outside(self) -> Iterator[Polynomial]:
        """Yield what is computed outside the condition; raises ``_NoColumnError`` where a value is not known."""
        tests = [self.work.condition]
        values = [self.scope.values[one.name] for one in self.before]
        while tests:
            match tests.pop():
                case ir.Binary(op=op, left=left, right=right) if op in ir.LOGICAL:
                    tests += [left, right]
                case ir.Binary(op=op, left=left, right=right) if op in ir.COMPARISONS:
                    values += [self.scope.congruent(left), self.scope.congruent(right)]
                case _:
                    raise _NoColumnError
        for value in values:
            if value is None:
                raise _NoColumnError
            yield value


def _nest(program: ir.Program, position: int, facts: Facts) -> _Nest | None:
    """Return the nest of a grid loop, ``None`` where the program is not of this kind."""
    loop, found = program.grid[position], phases(program)
    if len(found) != 1 or not any(one is found[0] for one in program.body):
        return None
    (phase,) = found
    scope = Scope.of(facts)
    extent = phase.threads[-1].extent
    size, blocks = scope.polynomial(extent), scope.polynomial(loop.extent)
    covered = None if size is None or blocks is None else _rounded_up(blocks, size, facts)
    of_int = all(one is INT for one in (loop.type, loop.extent.type, phase.threads[-1].type, extent.type))
    *before, work = phase.body or (None,)
    if size is None or covered is None or not of_int or not isinstance(work, ir.If) or work.otherwise:
        return None
    around = tuple(one for one in program.body if one is not phase)
    if loop.var in names_in(around):
        return None
    for one in (*program.grid, *phase.threads):
        scope.values[one.var] = Polynomial.symbol(one.var)
    declared: list[ir.Declare] = []
    assigned = assigned_variables(phase.body)
    for stmt in before:
        if not isinstance(stmt, ir.Declare) or stmt.type is not INT or stmt.value is None or stmt.name in assigned:
            return None
        scope.values[stmt.name] = scope.congruent(stmt.value)
        declared.append(stmt)
    scalars = {one.name: ir.Var(one.name, INT) for one in program.parameters if one.type is INT}
    scalars |= {one.name: ir.Var(one.name, INT) for one in program.derived if one.type is INT}
    return _Nest(program, position, phase, size, covered, tuple(declared), work, scope, scalars)


def _rounded_up(blocks: Polynomial, size: Polynomial, facts: Facts) -> Polynomial | None:
    """Return x where the number of blocks is x divided by their size, rounded up."""
    for symbol in facts.derived:
        if symbol.name == blocks.only_symbol and symbol.kind in ("floor", "ceiling") and symbol.operands[1] == size:
            return symbol.operands[0] - (size - 1 if symbol.kind == "floor" else 0)
    return None
