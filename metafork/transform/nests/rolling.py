"""Rolling: statements that repeat with a constant shift become a loop (Figure 1's two halves).

Before and after::

    c[i][j] = a[i][j] + b[i][j];                     for (int k = 0; k < 2; k++)
    c[i][j + N/2] = a[i][j + N/2] + b[i][j + N/2];     c[i][j + k*(N/2)] = a[i][j + k*(N/2)] + b[i][j + k*(N/2)];

The statements that do the work, up to the end of their body, are split into groups of equal length.  The groups
must be equal but for the names that they declare, and for integer expressions in array indices or in declarations of
integer scalars; at each such place, group r must differ from group 0 by r times as much as group 1 does.  The loop
runs the same statements in the same order, so that rolling itself needs no proof of independence.

Overflow: an index is not negative, and neither is a rolled scalar (its polynomial has no negative coefficient), so that
``k*shift``, the difference of two such values, fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import (
    arrays_read,
    assigned_variables,
    declared_here,
    names_in,
    substitute,
    variables,
    with_operands,
    without_unread,
)
from metafork.transform.nests.simplification import factors, product, simplified, summands

Body = tuple[ir.Stmt, ...]
MAX_STATEMENTS = 64
"""Longer bodies are not searched for repetitions."""


class Place(Enum):
    """Whether a shift may stand at an expression: in an index, as the value of an integer scalar, or not."""

    NONE = auto()
    INDEX = auto()
    SCALAR = auto()


def rolled_bodies(body: Body, variable: str, facts: Facts, definitions: Mapping[str, ir.Expr]) -> Iterator[Body]:
    """Yield the ways to roll the end of ``body`` into one loop over ``variable``, a fresh name; most groups first.

    What stands before the loop are declarations.  ``definitions`` are values of integer scalars declared around the
    body.  Declarations of integer scalars between the groups (``cse`` makes such) are moved to the front where the body
    as it stands cannot be rolled.
    """
    if len(body) > MAX_STATEMENTS:
        return
    yield from _rolled_as_it_stands(body, variable, facts, definitions)
    assigned = assigned_variables(body)
    early = [stmt for stmt in body if isinstance(stmt, ir.Declare) and _movable(stmt, assigned)]
    moved = (*early, *(stmt for stmt in body if not any(stmt is other for other in early)))
    if moved != body:
        yield from _rolled_as_it_stands(moved, variable, facts, definitions)


def _movable(stmt: ir.Declare, assigned: frozenset[str]) -> bool:
    value = definition_of(stmt)
    return value is not None and not (variables(value) | {stmt.name}) & assigned


def definition_of(stmt: ir.Declare) -> ir.Expr | None:
    """Return the value of an integer scalar that its name stands for exactly, ``None`` where there is no such."""
    value = stmt.value
    if value is None or value.type != stmt.type or not stmt.type.integer or arrays_read(value):
        return None
    return value


def _without_unread(body: Body, read_before: frozenset[str]) -> Body:
    """Return ``body`` without the integer scalars before its loop that only what was rolled up has read."""
    scalars = {stmt.name for stmt in body if isinstance(stmt, ir.Declare) and definition_of(stmt) is not None}
    return without_unread(body, scalars & read_before)


def _rolled_as_it_stands(body: Body, variable: str, facts: Facts, definitions: Mapping[str, ir.Expr]) -> Iterator[Body]:
    assigned = assigned_variables(body)
    read_before = frozenset().union(
        *(variables(expr) for stmt in ir.walk_statements(body) for expr in ir.expressions_of(stmt))
    )
    known = dict(definitions)
    for start in range(len(body)):
        if start:
            before = body[start - 1]
            if not isinstance(before, ir.Declare):
                return
            value = definition_of(before)
            if value is not None and _movable(before, assigned):
                known[before.name] = value
        work = body[start:]
        if all(isinstance(stmt, ir.Declare) for stmt in work):
            return
        for size in range(1, len(work) // 2 + 1):
            if len(work) % size:
                continue
            groups = [work[position : position + size] for position in range(0, len(work), size)]
            loop = _rolled(groups, variable, facts, known)
            if loop is not None:
                yield _without_unread((*body[:start], loop), read_before)


def _rolled(groups: list[Body], variable: str, facts: Facts, definitions: Mapping[str, ir.Expr]) -> ir.For | None:
    for position, group in enumerate(groups):
        # What a group declares must not be wanted outside it.
        others = [stmt for other, stmts in enumerate(groups) if other != position for stmt in stmts]
        if declared_here(group) & frozenset().union(*(_free_names((stmt,)) for stmt in others)):
            return None
    index = ir.Var(variable)
    try:
        alignments = [_Alignment(groups[0], group, facts, definitions, index) for group in groups[1:]]
    except _DifferentError:
        return None
    shifts = alignments[0].differences
    for number, alignment in enumerate(alignments[1:], 2):
        if alignment.differences != {place: shift * number for place, shift in shifts.items()}:
            return None
    count = ir.binary("<", index, ir.IntConst(len(groups)))
    step = ir.Assign(index, "+", ir.IntConst(1))
    return ir.For(ir.Declare(variable, ScalarType.INT, ir.IntConst(0)), count, step, alignments[0].merged)


def _free_names(body: Body) -> frozenset[str]:
    declared = frozenset(stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare))
    return names_in(body) - declared


class _DifferentError(Exception):
    """Two groups are not equal up to a shift."""


class _Alignment:
    """A group next to group 0.

    ``differences`` says, for each place (numbered by the walk) where the two differ, by how much; ``merged`` is group 0
    with ``k*shift`` added at these places, the shift being that of this group.
    """

    def __init__(
        self, first: Body, other: Body, facts: Facts, definitions: Mapping[str, ir.Expr], index: ir.Var
    ) -> None:
        self._facts = facts
        self._definitions = definitions
        self._index = index
        self._assigned = assigned_variables((*first, *other))
        self._renamed: dict[str, ir.Expr] = {}
        self._place = 0
        self.differences: dict[int, Polynomial] = {}
        self.merged = self._bodies(first, other)

    def _bodies(self, first: Body, other: Body) -> Body:
        if len(first) != len(other):
            raise _DifferentError
        return tuple(self._statements(one, two) for one, two in zip(first, other, strict=True))

    def _statements(self, one: ir.Stmt, two: ir.Stmt) -> ir.Stmt:
        match one, two:
            case ir.Declare(), ir.Declare() if one.type == two.type:
                rollable = one.type.integer and not {one.name, two.name} & self._assigned
                value = self._optional(one.value, two.value, Place.SCALAR if rollable else Place.NONE)
                self._renamed[two.name] = ir.Var(one.name, one.type)
                return replace(one, value=value)
            case ir.Assign(), ir.Assign() if one.op == two.op and one.atomic == two.atomic:
                target = self._expressions(one.target, two.target)
                assert isinstance(target, ir.Var | ir.Element)
                return replace(one, target=target, value=self._expressions(one.value, two.value))
            case ir.If(), ir.If():
                condition = self._expressions(one.condition, two.condition)
                then, otherwise = self._bodies(one.then, two.then), self._bodies(one.otherwise, two.otherwise)
                return replace(one, condition=condition, then=then, otherwise=otherwise)
            case ir.For(), ir.For():
                init = self._clauses(one.init, two.init)
                test = self._optional(one.condition, two.condition, Place.NONE)
                step = self._clauses(one.step, two.step)
                assert init is None or isinstance(init, ir.Declare | ir.Assign)
                assert step is None or isinstance(step, ir.Assign)
                body = self._bodies(one.body, two.body)
                return ir.For(init, test, step, body, one.span)
            case ir.While(), ir.While():
                return ir.While(
                    self._expressions(one.condition, two.condition), self._bodies(one.body, two.body), one.span
                )
            case (ir.Break(), ir.Break()) | (ir.Continue(), ir.Continue()):
                return one
            case _:
                raise _DifferentError

    def _clauses(self, one: ir.Stmt | None, two: ir.Stmt | None) -> ir.Stmt | None:
        if one is None or two is None:
            if one is not two:
                raise _DifferentError
            return None
        return self._statements(one, two)

    def _optional(self, one: ir.Expr | None, two: ir.Expr | None, place: Place) -> ir.Expr | None:
        if one is None or two is None:
            if one is not two:
                raise _DifferentError
            return None
        return self._expressions(one, two, place)

    def _expressions(self, one: ir.Expr, two: ir.Expr, place: Place | None = None) -> ir.Expr:
        """Compare two expressions; ``place`` says whether a shift may stand here."""
        number = self._place
        self._place += 1
        renamed = substitute(two, self._renamed)
        if one == renamed:
            return one
        if place in (Place.INDEX, Place.SCALAR) and one.type == renamed.type and one.type.integer:
            return self._shifted(number, one, renamed, place)
        parts, others = ir.subexpressions(one), ir.subexpressions(two)
        if not parts or len(parts) != len(others) or _bare(one) != _bare(two):
            raise _DifferentError
        inner = Place.INDEX if isinstance(one, ir.Element) else Place.NONE
        merged = [self._expressions(part, other, inner) for part, other in zip(parts, others, strict=True)]
        return with_operands(one, merged)

    def _shifted(self, number: int, one: ir.Expr, two: ir.Expr, place: Place) -> ir.Expr:
        shift = None
        # Scalars give way to their definitions only where the shift does not show without: t of ``t = j + N/2``.
        for first_depth, second_depth in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)):
            first, second = self._unfolded(one, first_depth), self._unfolded(two, second_depth)
            shift = shift_between(first, second)
            if shift is not None:
                break
        if shift is None:
            raise _DifferentError
        values = (self._polynomial(first), self._polynomial(second))
        if values[0] is None or values[1] is None or values[0] == values[1]:
            raise _DifferentError
        if place is Place.SCALAR and any(c < 0 for value in values if value for c in value.terms().values()):
            raise _DifferentError
        self.differences[number] = self._fully(second) - self._fully(first)
        subtracted, size = shift
        return simplified(ir.binary("-" if subtracted else "+", one, ir.binary("*", self._index, size)))

    def _unfolded(self, expr: ir.Expr, depth: int) -> ir.Expr:
        for _ in range(depth):
            expr = substitute(expr, self._definitions)
        return expr

    def _fully(self, expr: ir.Expr) -> Polynomial:
        """Return the polynomial in terms of scalars without definition, so that equal shifts are equal."""
        value = self._polynomial(self._unfolded(expr, len(self._definitions)))
        if value is None:
            raise _DifferentError
        return value

    def _polynomial(self, expr: ir.Expr) -> Polynomial | None:
        scope = Scope.of(self._facts)
        for name in variables(expr):
            if name not in self._facts.values:
                scope.values[name] = Polynomial.symbol(name)
        # In unsigned arithmetic first + k*shift wraps as the statements do that it stands for.
        return scope.congruent(expr)


def _bare(expr: ir.Expr) -> tuple[object, ...]:
    """Return what two expressions must share whose operands are compared one by one."""
    match expr:
        case ir.Binary(op=op) | ir.Unary(op=op):
            mark = op
        case ir.Element(array=mark) | ir.Call(name=mark):
            pass
        case _:
            mark = ""
    return (type(expr), expr.type, mark)


def shift_between(first: ir.Expr, second: ir.Expr) -> tuple[bool, ir.Expr] | None:
    """Return ``second - first`` as (is it subtracted, size), from their terms: of ``j`` and ``j + N/2`` it is ``N/2``.

    The size is of the type of the two.  ``None`` where the rest is a sum with terms of both signs, or nothing.
    """
    type_ = first.type
    rest: list[tuple[ir.Expr, int]] = []
    constant = 0
    for negative, term in [*summands(second), *((not n, t) for n, t in summands(first))]:
        size, core = _times(term)
        change = -size if negative else size
        if core is None:
            constant += change
            continue
        known = next((place for place, (other, _) in enumerate(rest) if other == core), None)
        if known is None:
            rest.append((core, change))
        else:
            rest[known] = (core, rest[known][1] + change)
    parts = [(core, size) for core, size in rest if size]
    sizes = [size for _, size in parts] + ([constant] if constant else [])
    if not sizes or (min(sizes) < 0 < max(sizes)):
        return None
    cores = [(core if core.type is type_ else ir.Cast(type_, core), size) for core, size in parts]
    terms = [core if abs(size) == 1 else ir.binary("*", ir.IntConst(abs(size), type_), core) for core, size in cores]
    if constant:
        terms.append(ir.IntConst(abs(constant), type_))
    total = terms[0]
    for term in terms[1:]:
        total = ir.binary("+", total, term)
    return sizes[0] < 0, total


def _times(term: ir.Expr) -> tuple[int, ir.Expr | None]:
    """Return a product as its constant factor and the rest, ``None`` where it is a constant."""
    size = 1
    rest: list[ir.Expr] = []
    for factor in factors(term):
        if isinstance(factor, ir.IntConst):
            size *= factor.value
        else:
            rest.append(factor)
    return size, product(rest, term.type) if rest else None
