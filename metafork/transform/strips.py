"""strips: a block walks a thread's loop in strips, with a barrier behind each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import common_type
from metafork.ir.rewriting import (
    assigned_variables,
    fresh_name,
    names_in,
    names_of,
    private_arrays,
    substitute_body,
)
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.nests.steady_loops import INT, Body, Nest, nest_over
from metafork.transform.nests.tile_strips import in_tile_strips


class Strips(Struct, frozen=True):
    """Let a block walk a loop of its threads in strips of ``size`` iterations; 0: of as many as it has threads.

    strips(j)::

        meta_for (int u = 0; u < B; u++) {         float sums[B];
          float sum = 0;                           meta_for (int u = 0; u < B; u++) {
          for (int j = 0; j < n; j++)                float sum = 0;
            sum += f(x[j], u);                       sums[u] = sum;
          y[u] = sum;                              }
        }                                  -->     for (int t = 0; t < (n - 1) / B + 1; t++)
                                                     meta_for (int u = 0; u < B; u++) {
                                                       float sum = sums[u];
                                                       int past = n - t * B < B ? n : t * B + B;
                                                       for (int j = t * B; j < past; j++)
                                                         sum += f(x[j], u);
                                                       sums[u] = sum;
                                                     }
                                                   meta_for (int u = 0; u < B; u++)
                                                     y[u] = sums[u];

    In a strip a block's window of ``x`` does not grow with ``n``: it may go through shared memory.  What a thread
    keeps from strip to strip lies in arrays of the block: an element each.  Strips of a constant ``size`` are for
    loops of sums in register tiles (``metafork.transform.nests.tile_strips``).

    Legal where the ends of the loop are the same for all threads of the block: every thread does what it did, in the
    same order, and more barriers than before stand where all threads come to them.
    """

    loop: str
    size: int = 0

    def __post_init__(self) -> None:
        if self.size and not 4 <= self.size <= 64:
            raise ValueError(f"size is from 4 to 64, not {self.size}")

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program with strips."""
        if refused := legality.distinct(program) or legality.unmarked(program):
            return refused
        phase = program.body[-1] if program.body else None
        if not isinstance(phase, ir.Phase) or any(
            one.type is not INT or one.extent.type is not INT for one in phase.threads
        ):
            return Refused("a block does not end with thread loops that count int", program.span)
        if self.size:
            return in_tile_strips(program, phase, self.loop, self.size, analyses)
        nest = nest_over(self.loop, phase, program, analyses)
        if isinstance(nest, Refused):
            return nest
        if (reason := why_not_in_parts(nest)) is not None:
            return Refused(reason, nest.loop.span)
        strips = _Strips(phase, nest, set(names_of(program))).body()
        return replace(program, body=(*program.body[:-1], *strips))


def why_not_in_parts(nest: Nest) -> str | None:
    """Say why what stands around a loop has no place while other threads come to a barrier."""
    if private_arrays((*nest.before, *(one for scalars, _ in nest.guards for one in scalars))):
        return "a thread has arrays of its own outside of the loop"
    needed = names_in((nest.loop, *nest.behind))
    if any(isinstance(one, ir.Declare) and one.value is None and one.name in needed for one in nest.before):
        return f"a scalar has no value before the loop over {nest.view.variable.name}"
    return None


class _Strips:
    """Makes of one phase three: up to the loop, the loop in strips, and what is behind it."""

    def __init__(self, phase: ir.Phase, nest: Nest, taken: set[str]) -> None:
        self.phase, self.nest, self.taken = phase, nest, taken
        self._used: frozenset[str] = frozenset()
        needed = names_in((nest.loop, *nest.behind))
        self.kept = {
            stmt.name: ir.Array(self._fresh(f"{stmt.name}_of_threads"), stmt.type, self._extents())
            for stmt in nest.before
            if isinstance(stmt, ir.Declare) and stmt.name not in nest.steady and stmt.name in needed
        }
        self._types = {stmt.name: stmt.type for stmt in nest.before if isinstance(stmt, ir.Declare)}

    def body(self) -> Body:
        """Return the code of the block."""
        nest, kept = self.nest, tuple(self.kept)
        variable = nest.view.variable
        strip = ir.Var(self._fresh(f"{variable.name}_strip"), variable.type)
        size = reduce(lambda left, right: ir.binary("*", left, right), self._extents())
        steady = tuple(stmt for stmt in nest.before if isinstance(stmt, ir.Declare) and stmt.name in nest.steady)
        result: list[ir.Stmt] = [ir.BlockArray(array) for array in self.kept.values()]
        before = (*nest.before, *self._stored(kept))
        if any(not isinstance(stmt, ir.Declare) for stmt in before):
            result.append(self._phase(before))
        result.append(
            ir.For(
                ir.Declare(strip.name, strip.type, ir.IntConst(0)),
                ir.binary("<", strip, nest.strips(size)),
                ir.Assign(strip, "+", ir.IntConst(1)),
                (self._phase((*steady, *self._strip(strip, size))),),
            )
        )
        if nest.behind:
            behind = [name for name in kept if name in names_in(nest.behind)]
            result.append(self._phase((*steady, *self._loaded(behind), *nest.behind)))
        return tuple(result)

    def _strip(self, strip: ir.Var, size: ir.Expr) -> Body:
        """Return what a thread does in a strip."""
        nest, variable = self.nest, self.nest.view.variable
        begin = nest.begin(strip, size)
        type_ = common_type(variable.type, nest.limit.type)
        past = ir.Var(self._fresh(f"past_{variable.name}"), type_)
        short = ir.binary("<", ir.binary("-", nest.limit, begin), size)
        init = ir.Declare(variable.name, variable.type, begin)
        loop = replace(nest.loop, init=init, condition=ir.binary("<", variable, past))
        kept = [name for name in self.kept if name in names_in((loop,))]
        return (
            *self._loaded(kept),
            ir.Declare(past.name, type_, ir.Conditional(short, nest.limit, ir.binary("+", begin, size), type_)),
            loop,
            *self._stored([name for name in kept if name in assigned_variables((loop,))]),
        )

    def _extents(self) -> tuple[ir.Expr, ...]:
        return tuple(loop.extent for loop in self.phase.threads)

    def _element(self, name: str) -> ir.Element:
        array = self.kept[name]
        return ir.Element(array.name, tuple(ir.Var(loop.var, loop.type) for loop in self.phase.threads), array.element)

    def _loaded(self, names: Sequence[str]) -> Body:
        return tuple(ir.Declare(name, self._types[name], self._element(name)) for name in names)

    def _stored(self, names: Sequence[str]) -> Body:
        return tuple(ir.Assign(self._element(name), "", ir.Var(name, self._types[name])) for name in names)

    def _fresh(self, name: str) -> str:
        new = fresh_name(name, self.taken)
        self.taken.add(new)
        return new

    def _phase(self, body: Body) -> ir.Phase:
        """Return a phase of some code under the guards; each has names of its own, as a printed program has."""
        phase = replace(self.phase, body=self.nest.guarded(body))
        (own,) = substitute_body((phase,), {}, self.taken, renaming=self._used)
        assert isinstance(own, ir.Phase)
        self.taken |= names_in((own,))
        self._used |= {stmt.name for stmt in ir.walk_statements(own.body) if isinstance(stmt, ir.Declare)}
        self._used |= {loop.var for loop in own.threads}
        return own
