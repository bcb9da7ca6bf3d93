"""unroll_and_jam: several iterations of a serial loop per thread, so that what loops in it load serves all of them.

``before --> after``::

    for (int w = 0; w < s; w++) {              for (int w = 0; w < s / 4 * 4; w += 4) {
      float t = c[p][w];                         float t = c[p][w];  ...  float t_4 = c[p][w + 3];
      for (int z = 0; z < K; z++)                for (int z = 0; z < K; z++) {
        t += a[p][z] * b[z][w];        -->         t += a[p][z] * b[z][w];  ...  t_4 += a[p][z] * b[z][w + 3];
      c[p][w] = t;                               }
    }                                            ...

The directive ``unroll_and_jam`` marks the loops and says what is proved (``metafork.transform.unroll_and_jam``).  Loops
in which loops inside load what does not depend on them are taken, two nested ones too (``s0`` by ``s1`` results).
What a thread reads element after element is then read by one access, from shared memory or from a row of its own in
global memory (``metafork.unrolling``), also where no loop is jammed.  It spends registers to save loads, and makes a
variant of its leaf for where they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.evaluators.kernels import differ, read_by_vectors
from metafork.evaluators.multiple import Multiple
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import VECTOR_BYTES, VECTORS
from metafork.ir.mapping import FORM_OF, Layout
from metafork.ir.marks import jammed_loops, phases, results_of
from metafork.ir.polynomial_code import whole_code_of
from metafork.ir.program import Program, Version
from metafork.strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from metafork.strategies.threads.needs import PTX
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.placement import LayOut, Vectorize
from metafork.transform.unroll_and_jam import UnrollAndJam as Directive

MOST_RESULTS = 16
"""Most iterations that nested loops run together."""


class UnrollAndJam(Strategy, frozen=True):
    """Run ``most`` iterations of a loop together where that shares loads; no counter counts those in shared memory.

    ``pads``: tiles whose rows threads walk are padded by whole vectors.
    """

    name: str = "unroll_and_jam"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    most: int = 4
    pads: bool = True

    def __post_init__(self) -> None:
        if not 2 <= self.most <= 16:
            raise ValueError(f"most is from 2 to 16, not {self.most}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with jammed loops, or that there is none to jam."""
        program = version.program
        if version.ir_strategies:
            return PTX
        if jammed_loops(program) or program.mapping.wide:
            return NotApplied("loops run several iterations together already")
        tiled = program
        for phase in phases(program):
            tiled, _ = self._jammed(tiled, phase.body, analyses)
        schedule: Schedule = tuple(Directive(name, factor) for name, factor in jammed_loops(tiled).items())
        padded: tuple[_Padded, ...] = ()
        if differ(tiled.mapped(wide=True), tiled, analyses):
            tiled, schedule = tiled.mapped(wide=True), (*schedule, Vectorize())
            for one in _padded(tiled, analyses) if self.pads else ():
                longer = applied(tiled, (one.directive,), analyses)
                if not isinstance(longer, Refused) and read_by_vectors(longer, analyses) > read_by_vectors(
                    tiled, analyses
                ):
                    tiled, schedule, padded = longer, (*schedule, one.directive), (*padded, one)
        if tiled is program:
            return NotApplied("no loop of a thread is proved to have independent iterations that share loads")
        note, effect = (
            f"{self.most} iterations of a loop run together, and share what loops in it load",
            "unroll-and-jam",
        )
        if not jammed_loops(tiled):
            note, effect = "a thread reads elements that it needs one after the other by one access", "vectors"
        if padded:
            note, effect = f"{note}, from tiles of whole vectors", f"{effect}, padded by one"
        otherwise = replace(self, pads=False) if padded else None
        needs = tuple(one.need for one in padded)
        return Applied(Version(tiled, version.ir_strategies), note, Effect(effect), (), needs, otherwise, schedule)

    def _jammed(self, program: Program, body: Sequence[ir.Stmt], analyses: Analyses) -> tuple[Program, int]:
        """Return a program with loops of a thread's code jammed, and how many iterations of nested ones that makes."""
        most = 1
        for stmt in body:
            inside = 1
            match stmt:
                case ir.For(init=ir.Declare(name=name), body=inner):
                    program, inside = self._jammed(program, inner, analyses)
                    factor = self._factor(program, name, inner, inside, analyses)
                    result = None if factor is None else Directive(name, factor).apply(program, analyses)
                    if factor is not None and not (result is None or isinstance(result, Refused)):
                        program, inside = result, inside * factor
                case ir.If(then=then, otherwise=otherwise):
                    program, inside = self._jammed(program, (*then, *otherwise), analyses)
                case ir.For(body=inner) | ir.While(body=inner):
                    program, inside = self._jammed(program, inner, analyses)
                case _:
                    pass
            most = max(most, inside)
        return program, most

    def _factor(
        self, program: Program, variable: str, body: Sequence[ir.Stmt], inside: int, analyses: Analyses
    ) -> int | None:
        """Return how many iterations of a loop are to run together; ``None`` where they share no loads, or are few."""
        written = {
            stmt.target.array
            for stmt in ir.walk_statements(tuple(body))
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
        }
        trips = None
        shares = False
        for one in analyses.references(program, analyses.facts(program)):
            place = next((at for at, loop in enumerate(one.loops) if loop.var == variable), None)
            if place is None or one.loops[place].kind is not LoopKind.SERIAL:
                continue
            trips = one.loops[place].trips
            indices = [index for index in one.indices if index is not None]
            shares |= (
                one.array not in written
                and place + 1 < len(one.loops)
                and len(indices) == len(one.indices)
                and not any(variable in index.symbols for index in indices)
            )
        if not shares:
            return None
        together = inside * prod(results_of(program))
        if trips is not None and trips.is_constant:
            count = int(trips.constant_value())
            if count >= 2 and count * together <= MOST_RESULTS:
                return count
            if count < self.most:
                return None
        return self.most if self.most * together <= MOST_RESULTS else None


class _Padded(Struct, frozen=True):
    """A tile padded by a vector, and the columns for which neighbouring rows then begin in banks of their own."""

    directive: LayOut
    need: Need[Version]


def _padded(program: Program, analyses: Analyses) -> Iterator[_Padded]:
    """Yield tiles that are padded by one element, so that threads walk its rows, as ones of whole vectors.

    Eight lanes read their vectors of 16 bytes at once.  They find all banks where rows are an odd number of vectors
    apart: with an even number of vectors in a row.
    """
    for path in block_memory(program, analyses).paths:
        for window in (held.window for held in path.windows if held.window.layout == Layout(padding=1)):
            lanes = VECTOR_BYTES // window.array.element.size
            if window.array.element in VECTORS and Layout(padding=lanes) in FORM_OF:
                columns = window.extents[-1]
                code = whole_code_of(columns, {name: ir.Var(name, ScalarType.INT) for name in columns.symbols})
                directive = LayOut.of(window.array.name, Layout(padding=lanes))
                yield _Padded(directive, Need(Multiple(code, 2 * lanes), 1))


STRATEGY = UnrollAndJam()
