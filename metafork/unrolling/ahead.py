"""Four iterations of a thread's loop at a time, where neighbours in x read one element that lies further on in each.

``before --> after``::

    for (int j = 0; j < n; j++)             for (int j = 0; j < n / 4 * 4; j += 4) {
      s += x[j] * y;                  -->     s += x[j] * y;  ...  s += x[j + 3] * y;
                                            }
                                            for (int j = n / 4 * 4; j < n; j++)
                                              s += x[j] * y;

Four loads of an element that a whole warp shares ask for four sectors, and one of four elements asks for one:
``unrolling.vectors`` makes it of them, since a multiple of 4 is where such an access may begin.

Legality.  Iterations keep their order and what each does; the limit of the loop is one that its body leaves as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.ir import program as ir
from metafork.ir.kernel import VECTORS
from metafork.ir.marks import counter_of
from metafork.unrolling.jam import copied
from metafork.unrolling.shared_loads import SIGNED, changing_scalars, exact_polynomial, read_always
from metafork.unrolling.vectors import THREAD, is_alike, stored_in, values_of, varies

TOGETHER = 4
FEW_TRIPS = 8
"""Of loops with no more the compiler leaves none."""
MOST_STATEMENTS = 400
"""Statements of four iterations together."""
Body = tuple[ir.Stmt, ...]


def four_at_a_time(body: Body, known: Mapping[str, Polynomial], arrays: Set[str], taken: set[str]) -> Body:
    """Return straight code whose innermost loops run four iterations at a time where they load shared neighbours.

    ``known`` are scalars around it as polynomials, with ``THREAD`` in those that differ from thread to thread; loads
    are those of ``arrays``.  ``taken`` grows by the names of scalars.
    """
    return _Ahead(changing_scalars(body), taken, arrays).body(body, known)


class LoopWalk(Struct, frozen=True):
    """Goes through the code of a thread, and puts something else in the place of its loops.

    ``changing`` are the scalars that something assigns; ``taken`` grows by the names of new ones.
    """

    changing: Set[str]
    taken: set[str]

    def instead(self, loop: ir.For, known: Mapping[str, Polynomial]) -> Body | None:
        """Return what takes the place of a loop; ``None``: it stays, and what is in it may not."""
        raise NotImplementedError

    def body(self, body: Body, known: Mapping[str, Polynomial]) -> Body:
        """Return a list of statements with its loops replaced; ``known`` are scalars around it as polynomials."""
        scalars = dict(known)
        result: list[ir.Stmt] = []
        for stmt in body:
            result += self._statement(stmt, scalars)
            if isinstance(stmt, ir.Declare):
                scalars[stmt.name] = Scalars(self.changing).value(stmt, scalars)
        return tuple(result)

    def _statement(self, stmt: ir.Stmt, scalars: Mapping[str, Polynomial]) -> Body:
        match stmt:
            case ir.If(then=then, otherwise=otherwise):
                return (replace(stmt, then=self.body(then, scalars), otherwise=self.body(otherwise, scalars)),)
            case ir.While(body=inner):
                return (replace(stmt, body=self.body(inner, scalars)),)
            case ir.For() if (new := self.instead(stmt, scalars)) is not None:
                return new
            case ir.For():
                around = dict(scalars)
                if isinstance(stmt.init, ir.Declare):
                    alike = is_alike(stmt.init.value, scalars, self.changing)
                    name = stmt.init.name if alike else f"{THREAD} {stmt.init.name}"
                    around[stmt.init.name] = Polynomial.symbol(name)
                return (replace(stmt, body=self.body(stmt.body, around)),)
            case _:
                return (stmt,)


class _Ahead(LoopWalk, frozen=True):
    arrays: Set[str]

    def instead(self, loop: ir.For, known: Mapping[str, Polynomial]) -> Body | None:
        """Return an innermost loop with four iterations in one, if these load shared neighbours."""
        variable = counter_of(loop)
        if variable is None or unrolls(loop) or any(isinstance(one, ir.For) for one in ir.walk_statements(loop.body)):
            return None
        return tuple(four_together(loop, self.taken)) if self._shares(loop.body, variable, known) else None

    def _shares(self, body: Body, variable: str, known: Mapping[str, Polynomial]) -> bool:
        """Say whether each iteration loads the next element of some array, the same one in all threads."""
        if len(list(ir.walk_statements(body))) * TOGETHER > MOST_STATEMENTS:
            return False
        found = Scalars(self.changing).read_next(body, variable, known, self.arrays)
        return not all(varies(offset) for _, offset in found)


class Scalars(Struct, frozen=True):
    """What is known of scalars in straight code; ``changing`` are those that something assigns."""

    changing: Set[str]

    def value(self, stmt: ir.Declare, known: Mapping[str, Polynomial]) -> Polynomial:
        """Return the value of a scalar, as one that differs from thread to thread where it is not known."""
        plain = stmt.value is not None and stmt.type in SIGNED and stmt.name not in self.changing
        value = exact_polynomial(stmt.value, known, self.changing) if plain and stmt.value is not None else None
        alike = plain and is_alike(stmt.value, known, self.changing)
        return Polynomial.symbol(stmt.name if alike else f"{THREAD} {stmt.name}") if value is None else value

    def read_next(
        self, body: Body, variable: str, known: Mapping[str, Polynomial], arrays: Set[str]
    ) -> Iterator[tuple[str, Polynomial]]:
        """Yield of which arrays each iteration of a loop over ``variable`` reads the next element, and its offset.

        Arrays that the body stores to are left out.
        """
        read = arrays - {name for stmt in body for name in stored_in(stmt)}
        scalars = {**known, variable: Polynomial.symbol(variable)}
        for stmt in body:
            for element in (one for expr in values_of(stmt) for one in read_always(expr)):
                offset = self._next(element, variable, scalars) if element.array in read else None
                if offset is not None:
                    yield element.array, offset
            if isinstance(stmt, ir.Declare):
                scalars[stmt.name] = self.value(stmt, scalars)

    def _next(self, element: ir.Element, variable: str, scalars: Mapping[str, Polynomial]) -> Polynomial | None:
        """Return the offset of an element if it grows by one in each iteration."""
        (index,) = element.indices
        offset = exact_polynomial(index, scalars, self.changing) if element.type in VECTORS else None
        if offset is None or offset.substitute({variable: Polynomial.symbol(variable) + 1}) - offset != ONE:
            return None
        return offset


def unrolls(loop: ir.For) -> bool:
    """Say whether a loop has so few iterations that it may be unrolled."""
    match loop.condition:
        case ir.Binary(right=ir.IntConst(value=limit)):
            return limit <= FEW_TRIPS
        case _:
            return False


def four_iterations(body: Body, counter: ir.Var, taken: set[str]) -> Body:
    """Return an iteration of a loop by ones, and the three behind it."""
    places: list[ir.Expr] = [counter, *(ir.binary("+", counter, ir.IntConst(one)) for one in range(1, TOGETHER))]
    return tuple(stmt for place in places for stmt in copied(body, {counter.name: place}, taken))


def four_together(loop: ir.For, taken: set[str]) -> Iterator[ir.Stmt]:
    """Yield a loop with four iterations in one, and the loop over those that are left."""
    init, condition, step = loop.init, loop.condition, loop.step
    assert isinstance(init, ir.Declare)
    assert isinstance(condition, ir.Binary)
    assert isinstance(step, ir.Assign)
    variable, several = ir.Var(init.name, init.type), ir.IntConst(TOGETHER)
    body = four_iterations(loop.body, variable, taken)
    limit = condition.right
    even: ir.Expr = ir.binary("*", ir.binary("/", limit, several), several)
    if isinstance(limit, ir.IntConst):
        even = ir.IntConst(limit.value // TOGETHER * TOGETHER)
    yield replace(loop, condition=ir.binary("<", variable, even), step=replace(step, value=several), body=body)
    if even != limit:
        yield replace(loop, init=replace(init, value=even), copies=ir.ROLLED)
