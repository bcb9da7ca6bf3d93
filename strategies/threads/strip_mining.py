"""strip_mining: a thread's loop over elements that all threads of a block read, in strips through shared memory.

``before --> after``, for a block of ``B`` threads::

    meta_for (int u = 0; u < B; u++) {         float sums[B];
      float sum = 0;                           meta_for (int u = 0; u < B; u++) {
      for (int j = 0; j < n; j++)                float sum = 0;
        sum += f(x[j], u);                       sums[u] = sum;
      y[u] = sum;                              }
    }                                  -->     for (int t = 0; t < (n - 1) / B + 1; t++)    // a window of x: B elements
                                                 meta_for (int u = 0; u < B; u++) {
                                                   float sum = sums[u];
                                                   int past = n - t * B < B ? n : t * B + B;
                                                   for (int j = t * B; j < past; j++)
                                                     sum += f(x[j], u);
                                                   sums[u] = sum;
                                                 }
                                               meta_for (int u = 0; u < B; u++)
                                                 y[u] = sums[u];

Each warp of a block reads all of ``x`` from global memory, however many blocks' windows that is, since a window that
grows with the data has no place in shared memory; a strip of it has.  A block then reads ``x`` once.  A strip has as
many elements as the block has threads, so that each thread copies one.  What a thread keeps from strip to strip lies in
arrays of the block: an element each.

Legal always: every thread does what it did, in the same order, and more barriers than before stand where all threads
come to them, since the ends of the loop are the same for all; no array that goes through shared memory is written.  It
is done where everything that another iteration of the loop finds elsewhere is the same element for all threads (other
bodies, the terms of a transform), and has some ``work`` for each of these: what neighbours read of their own in each
iteration, and short sums, are served by the columns of ``register_tile``, whose threads share a load between results.
It makes a variant of a leaf, for where a block fills a warp and shared memory and registers are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import SEVERAL_NESTS, only_phase
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.rewriting import (
    assigned_variables,
    fresh_name,
    names_in,
    names_of,
    private_arrays,
    substitute_body,
    variables,
)
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Strategy
from metafork.strategies.threads.needs import FULL_WARP, not_untouched
from metafork.strategies.threads.steady_loops import Nest, nests, not_known, read_in, why_no_room

Body = tuple[ir.Stmt, ...]
INT = ScalarType.INT


class StripMining(Strategy, frozen=True):
    """Let a block walk a thread's loop in strips of what all its threads read."""

    name: str = "strip_mining"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    caches: ClassVar[bool] = True
    work: int = 4

    def __post_init__(self) -> None:
        if not 0 <= self.work <= 64:
            raise ValueError(f"work is from 0 to 64, not {self.work}")

    def apply(self, version: ir.Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose blocks walk in strips, or why there is none."""
        program = version.program
        if (split := not_untouched(version)) is not None:
            return split
        phase = only_phase(program)
        if phase is None:
            return NotApplied(SEVERAL_NESTS)
        if any(loop.type is not INT or loop.extent.type is not INT for loop in phase.threads):
            return NotApplied("thread loops do not all count int")
        mined, found, loops = program, dict[str, dict[str, ir.Element]](), list[ir.For]()
        while not isinstance(step := _first(mined, analyses), str):
            last, nest, common = step
            if any(program.array(name).whole for name in common):
                return NotApplied("structures of several types stay in global memory")
            if already := set(common) & set(program.mapping.cached):
                return NotApplied(f"{min(already)} goes through shared memory already")
            found.setdefault(nest.view.variable.name, {}).update(common)
            loops.append(nest.loop)
            strips = _Strips(last, nest, set(names_of(mined))).body()
            cached = tuple(array.name for array in mined.arrays if array.name in {*mined.mapping.cached, *common})
            mined = replace(mined, body=(*mined.body[:-1], *strips)).mapped(cached=cached)
        unfit = self._too_little_work(loops, mined) or why_no_room(mined, analyses) if found else step
        if unfit is not None:
            return NotApplied(unfit)
        names, arrays = " and ".join(found), ", ".join(mined.mapping.cached)
        note = f"a block walks the loop over {names} in strips, of which {arrays} go through shared memory"
        effect, remarks = Effect(f"loop over {names} in strips"), tuple(_remarks(program, found))
        return Applied(replace(version, program=mined), note, effect, remarks, (FULL_WARP,))

    def _too_little_work(self, loops: Sequence[ir.For], mined: ir.Program) -> str | None:
        elements, operations = set[ir.Element](), 0
        for stmt in (inner for loop in loops for inner in ir.walk_statements(loop.body)):
            operations += isinstance(stmt, ir.If) + (isinstance(stmt, ir.Assign) and bool(stmt.op))
            for expr in ir.expressions_of(stmt):
                operations += _operations(expr)
                elements |= {part for part in ir.walk_expression(expr) if isinstance(part, ir.Element)}
        read = sum(one.array in mined.mapping.cached for one in elements)
        if operations >= self.work * read:
            return None
        return f"{operations} operations for {read} elements are too few for an access of shared memory to cost little"


SLOW = 8
"""As many operations are counted for a division or a function of ``math.h``."""


def _operations(expr: ir.Expr) -> int:
    """Return the operations of an expression, those of indices left out."""
    if isinstance(expr, ir.Element):
        return 0
    slow = isinstance(expr, ir.Call) or (isinstance(expr, ir.Binary) and expr.op in ("/", "%"))
    own = SLOW if slow else isinstance(expr, ir.Binary | ir.Unary | ir.Conditional)
    return own + sum(map(_operations, ir.subexpressions(expr)))


def _first(program: ir.Program, analyses: Analyses) -> tuple[ir.Phase, Nest, dict[str, ir.Element]] | str:
    """Return a block's last phase, its first loop to walk in strips and what it reads there, or why there is none."""
    phase, reason = program.body[-1], "a thread has no loop whose ends are the same for all threads"
    if not isinstance(phase, ir.Phase):
        return reason
    facts = analyses.facts(program)
    scope, prover = Scope.of(facts), analyses.prover(facts.constraints, facts.derived)
    for nest in nests(phase):
        common = _common(phase, nest, analyses.references(program, facts))
        ending = common if isinstance(common, str) else nest.ending(scope, prover)
        if isinstance(ending, str):
            reason = ending
        elif isinstance(common, dict):
            return phase, ending, common
    return reason


def _common(phase: ir.Phase, nest: Nest, references: Sequence[Reference]) -> dict[str, ir.Element] | str:
    """Return the arrays of which all threads read the same elements in the loop, each with a read, or why not."""
    variable = nest.view.variable.name
    if private_arrays((*nest.before, *(one for scalars, _ in nest.guards for one in scalars))):
        return "a thread has arrays of its own outside of the loop"
    changing = assigned_variables((nest.loop,))
    changing |= {stmt.name for stmt in ir.walk_statements((nest.loop,)) if isinstance(stmt, ir.Declare)}
    written = {one.array for one in references if one.writes}
    threads = {loop.var for loop in phase.threads}
    accesses = read_in(nest, references)
    if isinstance(accesses, str):
        return accesses
    found: dict[str, ir.Element] = {}
    for one in accesses:
        if not variables(one.element) & changing:
            continue
        symbols = {name for index in one.indices if index is not None for name in index.symbols}
        if (unknown := not_known(one, variable)) is not None:
            return unknown
        if variable not in symbols:
            continue
        if symbols & threads or one.array in written:
            return f"threads come to elements of {one.array} of their own in the loop over {variable}"
        found.setdefault(one.array, one.element)
    return found or f"the loop over {variable} reads nothing that all threads read"


def _remarks(program: ir.Program, found: Mapping[str, Mapping[str, ir.Element]]) -> Iterator[Remark]:
    for variable, common in found.items():
        for name, read in common.items():
            reason = f"all threads of a block read its elements in the loop over {variable}, which they walk in strips"
            yield Remark("shared memory", name, True, reason, program.array(name).span, read.span)


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


STRATEGY = StripMining()
