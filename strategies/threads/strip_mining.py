"""strip_mining: a thread's loop over elements that all threads of a block read, in strips through shared memory.

Each warp of a block reads all of such an array from global memory, however many blocks' windows that is, since a window
that grows with the data has no place in shared memory; a strip of it has (``metafork.transform.strips``).  A block then
reads the array once.  A strip has as many elements as the block has threads, so that each thread copies one.

No array that goes through shared memory is written.  It is done where everything that another iteration of the loop
finds elsewhere is the same element for all threads (other bodies, the terms of a transform), and has some ``work`` for
each of these: what neighbours read of their own in each iteration, and short sums, are served by the columns of
``register_tile``, whose threads share a load between results.  It makes a variant of a leaf, for where a block fills a
warp and shared memory and registers are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import SEVERAL_NESTS, only_phase
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import (
    assigned_variables,
    variables,
)
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Strategy
from metafork.strategies.threads.needs import FULL_WARP, not_untouched
from metafork.strategies.threads.strips import not_known, read_in, why_no_room
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.nests.steady_loops import Nest, nests
from metafork.transform.placement import Cache
from metafork.transform.strips import Strips

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
        schedule: Schedule = ()
        while not isinstance(step := _first(mined, analyses), str):
            nest, common = step
            if any(program.array(name).whole for name in common):
                return NotApplied("structures of several types stay in global memory")
            if already := set(common) & set(program.mapping.cached):
                return NotApplied(f"{min(already)} goes through shared memory already")
            found.setdefault(nest.view.variable.name, {}).update(common)
            loops.append(nest.loop)
            directives: Schedule = (Strips(nest.view.variable.name), *(Cache(name) for name in common))
            strips = applied(mined, directives, analyses)
            if isinstance(strips, Refused):
                return NotApplied(strips.reason, strips.span)
            mined, schedule = strips, (*schedule, *directives)
        unfit = self._too_little_work(loops, mined) or why_no_room(mined, analyses) if found else step
        if unfit is not None:
            return NotApplied(unfit)
        names, arrays = " and ".join(found), ", ".join(mined.mapping.cached)
        note = f"a block walks the loop over {names} in strips, of which {arrays} go through shared memory"
        effect, remarks = Effect(f"loop over {names} in strips"), tuple(_remarks(program, found))
        return Applied(replace(version, program=mined), note, effect, remarks, (FULL_WARP,), schedule=schedule)

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


def _first(program: ir.Program, analyses: Analyses) -> tuple[Nest, dict[str, ir.Element]] | str:
    """Return the first loop of a block's last phase to walk in strips and what it reads there, or why there is none."""
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
            return ending, common
    return reason


def _common(phase: ir.Phase, nest: Nest, references: Sequence[Reference]) -> dict[str, ir.Element] | str:
    """Return the arrays of which all threads read the same elements in the loop, each with a read, or why not."""
    variable = nest.view.variable.name
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


STRATEGY = StripMining()
