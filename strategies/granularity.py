"""Strategy ``granularity``: less work per thread, by giving the iterations of serial loops to blocks of their own.

A *granularity loop* is a loop on the program's spine whose iterations are proved independent: ``to_grid`` says what it
becomes, and why that is legal (``metafork.transform.to_grid``).  Statements that repeat with a shift are rolled into
one first (``metafork.transform.reroll``).  All granularity loops are taken, one after the other, so that a second
application finds none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.messages.source import NOWHERE, Span
from metafork.printing.expressions import expression
from metafork.strategies.hints import loop_hints, loop_name, loops_off_the_spine
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Sign, Strategy
from metafork.transform.directive import Refused, Schedule
from metafork.transform.nests.spine import counted_extent, spine_of
from metafork.transform.reroll import Reroll, rolled_programs
from metafork.transform.to_grid import UNKNOWN_EXTENT, ToGrid, in_grid, with_normal_form


class Granularity(Strategy, frozen=True):
    """The strategy.  ``most_loops`` bounds how many loops join the grid."""

    name: str = "granularity"
    improves: frozenset[str] = frozenset({"registers_per_thread", "registers_per_block", "shared_memory", "occupancy"})
    sign: ClassVar[Sign] = Sign("3b", left_out="3a")
    most_loops: int = 8

    def __post_init__(self) -> None:
        if self.most_loops < 1:
            raise ValueError(f"most_loops is at least 1, not {self.most_loops}")

    def apply(self, version: ir.Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version in which no granularity loop is left, or why there is none."""
        hidden = shadowed_name(version.program)
        if hidden is not None:
            name, span = hidden
            return NotApplied(f"a local declaration hides another {name}", span)
        program = version.program
        taken: list[Step] = []
        refused: NotApplied | None = None
        while refused is None and len(taken) < self.most_loops:
            step = analyses.of(reduced_once, program)
            if isinstance(step, NotApplied):
                refused = step
            else:
                program = step.program
                taken.append(step)
        remarks = (*(step.remark for step in taken), *(() if refused is None else refused.remarks))
        if not taken:
            assert refused is not None
            return refused
        notes = "; ".join(f"{step.origin} joined the grid: {step.remark.reason}" for step in taken)
        effect = Effect(f"{', '.join(step.extent for step in taken)} joined the grid")
        schedule = tuple(directive for step in taken for directive in step.schedule)
        return Applied(replace(version, program=program), notes, effect, remarks, schedule=schedule)


class Step(Struct, frozen=True):
    """A program with one granularity loop less; ``extent`` names the iterations that are blocks now."""

    program: ir.Program
    schedule: Schedule
    origin: str
    extent: str
    remark: Remark


class _Candidate(Struct, frozen=True):
    """A program with a counted loop on its spine, and the directives that make it a part of the grid.

    ``origin`` names the loop in a sentence, ``subject`` by itself; it stands at ``span``.
    """

    program: ir.Program
    loop: ir.For
    schedule: Schedule
    origin: str
    subject: str
    span: Span

    @property
    def extent(self) -> str:
        """What the loop's iterations are called once they have joined the grid: ``s``, ``2 iterations``."""
        extent = counted_extent(self.loop)
        assert extent is not None
        return f"{extent.value} iterations" if isinstance(extent, ir.IntConst) else expression(extent)


def reduced_once(program: ir.Program, analyses: Analyses) -> Step | NotApplied:
    """Return the program with one granularity loop less, or why it has none."""
    reasons: list[str] = []
    remarks: list[Remark] = []
    for candidate in _candidates(program, analyses):
        result = _without_loop(candidate, analyses)
        if isinstance(result, Step):
            return result
        reasons.append(f"{candidate.origin}: {result.reason}")
        remarks += result.remarks
    remarks += loops_off_the_spine(program, Scope.of(analyses.facts(program)), partial(_joins, analyses))
    reason = "; ".join(dict.fromkeys(reasons)) or "no loop or repetition holds all the work of a block"
    faults = [place for remark in remarks for place in (remark.fault, remark.span) if place != NOWHERE]
    return NotApplied(reason, faults[0] if faults else NOWHERE, tuple(dict.fromkeys(remarks)))


def _candidates(program: ir.Program, analyses: Analyses) -> Iterator[_Candidate]:
    """Yield programs with a counted loop on their spine: those that stand there, then rolled repetitions."""
    spine = spine_of(program)
    for loop in (*spine.loops, *spine.uncounted):
        normal = with_normal_form(program, loop, analyses)
        if normal is not None:
            assert isinstance(loop.init, ir.Declare)
            yield _Candidate(*normal, (ToGrid(loop.init.name),), loop_name(loop), loop_name(loop), loop.span)
    # Of block-level code nothing is rolled: phases are never alike.
    for rolled, loop in rolled_programs(program, analyses):
        extent = counted_extent(loop)
        assert isinstance(extent, ir.IntConst)
        assert isinstance(loop.init, ir.Declare)
        variable = loop.init.name
        origin = f"{extent.value} statements that repeat with a shift, rolled into a loop over {variable},"
        subject = f"the repetition of {extent.value} statements (rolled into a loop over {variable})"
        schedule = (Reroll(extent.value), ToGrid(variable))
        yield _Candidate(rolled, loop, schedule, origin, subject, spine.innermost[-1].span)


def _without_loop(candidate: _Candidate, analyses: Analyses) -> Step | NotApplied:
    """Return the program in which a loop of the spine is part of the grid."""
    joined = in_grid(candidate.program, candidate.loop, analyses)
    if isinstance(joined, Refused):
        written = loop_hints(candidate.program, candidate.loop) if joined.reason == UNKNOWN_EXTENT else ()
        hint = next((text for text, other in written if _joins(analyses, other, candidate.subject)), "")
        remark = Remark("grid", candidate.subject, False, joined.reason, candidate.span, joined.span, hint)
        return NotApplied(joined.reason, joined.span, (remark,))
    reason = f"its iterations are proved independent, and {joined.how}"
    remark = Remark("grid", candidate.subject, True, reason, candidate.span)
    return Step(joined.program, candidate.schedule, candidate.origin, candidate.extent, remark)


def _joins(analyses: Analyses, program: ir.Program, subject: str) -> bool:
    """Say whether a loop of a program becomes part of the grid."""
    candidates = (one for one in _candidates(program, analyses) if one.subject == subject)
    return any(isinstance(_without_loop(one, analyses), Step) for one in candidates)


STRATEGY = Granularity()
