"""Strategy ``granularity``: less work per thread, by giving the iterations of a serial loop to blocks of their own.

Before and after (the paper's Figures 7 and 8, second cases)::

    meta_for (int i = 0; i < dim; i++)              meta_for (int i = 0; i < dim * s; i++)
      meta_for (int j = 0; j < B; j++)        -->     meta_for (int j = 0; j < B; j++) {
        for (int k = 0; k < s; k++) {                   int p = i * B + j;
          int p = i*s*B + k*B + j;                      ...
          ...

A *granularity loop* is a loop ``for (int k = 0; k < e; k++)`` on the program's spine (``strategies.loops.spine``), in
thread code or at block level, with e in parameters and derived scalars, whose iterations are proved independent
(``metafork.analysis.dependence.independence``).  Statements that repeat with a shift are rolled into one first
(``strategies.loops.rolling``).

Why this is legal.  Let (i, k) be a grid point and an iteration.  The new program runs, for every (i, k) in a block of
its own, what the old block i runs with all other iterations left out, in the old order.  What stands on the spine
outside the loop only computes scalars, the same in every copy, and no scalar is carried from one iteration to another;
a serial loop around (Figure 3's ``z`` around ``w``) does for each k all its iterations, in order.  So only the order
between accesses of different (i, k) changes.  For different i, ``meta_for`` promises that they touch nothing of each
other's that is written.  For one i and different k, this is what is proved; for the threads of one phase run, two
different threads need no proof, for that promise holds of them too until the next barrier, and of one phase run the new
program keeps, for each k, a part.  So every element that is written at all is touched by one (i, k) only, in the old
order: each floating-point operation has the operands it had.

The loop's variable joins the grid as ``strategies.loops.grid_index`` describes.  All granularity loops are taken, one
after the other, so that a second application finds none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.dependence.independence import iterations_independent
from metafork.analysis.references import left_early
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.rewriting import (
    assigned_variables,
    declared_here,
    fresh_name,
    joining_scope,
    names_in,
    names_of,
    private_arrays,
    substitute_body,
    variables,
)
from metafork.printing.expressions import expression
from metafork.strategies.hints import loop_hints, loop_name, loops_off_the_spine
from metafork.strategies.loops.grid_index import join
from metafork.strategies.loops.grid_tile import Joining
from metafork.strategies.loops.normal_form import from_zero
from metafork.strategies.loops.rolling import definition_of, rolled_bodies
from metafork.strategies.loops.spine import Body, Spine, counted_extent, replaced_on_spine, spine_of
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Sign, Strategy


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
        return Applied(replace(version, program=program), notes, effect, remarks)


class Step(Struct, frozen=True):
    """A program with one granularity loop less; ``extent`` names the iterations that are blocks now."""

    program: ir.Program
    origin: str
    extent: str
    remark: Remark


class _Candidate(Struct, frozen=True):
    """A program with a counted loop on its spine.

    ``origin`` names the loop in a sentence, ``subject`` by itself; it stands at ``span``.
    """

    program: ir.Program
    loop: ir.For
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
    for loop in spine.loops:
        yield _Candidate(program, loop, loop_name(loop), loop_name(loop), loop.span)
    scope = Scope.of(analyses.facts(program))
    for loop in spine.uncounted:
        normal = None if left_early(loop.body) else from_zero(loop, program, scope)
        if normal is not None:
            new = replace(program, body=replaced_on_spine(program.body, loop, partial(_put, normal)))
            yield _Candidate(new, normal, loop_name(loop), loop_name(loop), loop.span)
    yield from _rolled(program, spine, analyses)  # of block-level code nothing is rolled: phases are never alike


def _rolled(program: ir.Program, spine: Spine, analyses: Analyses) -> Iterator[_Candidate]:
    variable = fresh_name("k", names_of(program))
    steps = {loop.init.name for loop in spine.loops if isinstance(loop.init, ir.Declare)}
    changing = assigned_variables(program.body) - steps
    definitions: dict[str, ir.Expr] = {}
    for stmt in spine.declarations:
        value = definition_of(stmt)
        if value is not None and not (variables(value) | {stmt.name}) & changing:
            definitions[stmt.name] = value
    for body in rolled_bodies(spine.innermost, variable, analyses.facts(program), definitions):
        loop = body[-1]
        assert isinstance(loop, ir.For)
        first = spine.innermost[0]

        new = replace(program, body=replaced_on_spine(program.body, first, partial(_all, body)))
        origin = f"{_repetitions(loop)} statements that repeat with a shift, rolled into a loop over {variable},"
        subject = f"the repetition of {_repetitions(loop)} statements (rolled into a loop over {variable})"
        yield _Candidate(new, loop, origin, subject, spine.innermost[-1].span)


def _put(loop: ir.For, level: Body, position: int) -> Body:
    return (*level[:position], loop, *level[position + 1 :])


def _all(body: Body, level: Body, position: int) -> Body:
    del level, position
    return body


def _repetitions(loop: ir.For) -> str:
    extent = counted_extent(loop)
    return "" if extent is None else str(getattr(extent, "value", ""))


def _without_loop(candidate: _Candidate, analyses: Analyses) -> Step | NotApplied:
    """Return the program in which a loop of the spine is part of the grid."""
    program, loop = candidate.program, candidate.loop
    extent = counted_extent(loop)
    assert extent is not None
    assert isinstance(loop.init, ir.Declare)
    variable = loop.init.name
    uniform = {scalar.name for scalar in program.parameters} | {scalar.name for scalar in program.derived}
    if not variables(extent) <= uniform or Scope.of(analyses.facts(program)).polynomial(extent) is None:
        written = loop_hints(program, loop)
        hint = next((text for text, other in written if _joins(analyses, other, candidate.subject)), "")
        return _left(candidate, "its extent is no known quantity of parameters", extent.span, hint)
    carried = assigned_variables(loop.body) - _declared_below(loop.body)
    if carried:
        where = next(stmt.span for stmt in ir.walk_statements(loop.body) if _assigns(stmt, carried))
        return _left(candidate, f"{', '.join(sorted(carried))} is carried from one iteration to the next", where)
    threads = (private_arrays(program.body) - private_arrays(loop.body)) & names_in(loop.body)
    if threads:
        where = next(stmt.span for stmt in ir.walk_statements(loop.body) if names_in((stmt,)) & threads)
        names = ", ".join(sorted(threads))
        return _left(candidate, f"{names}, a thread's own, serves more than one iteration", where)
    private = frozenset(stmt.array.name for stmt in ir.walk_statements(loop.body) if isinstance(stmt, ir.BlockArray))
    proof = iterations_independent(program, variable, analyses, private)
    if not proof:
        return _left(candidate, proof.reason, NOWHERE if proof.access is None else proof.access.element.span)
    taken = set(names_of(program))
    inner = loop.body
    index = variable
    if variable in names_in(replace(program, body=replaced_on_spine(program.body, loop, _dropped)).body):
        # Another loop has a variable of this name, and this one is about to be declared for all of the block.
        index = fresh_name(variable, taken)
        taken.add(index)
        inner = substitute_body(inner, {variable: ir.Var(index, loop.init.type)}, taken)

    def opened(level: Body, position: int) -> Body:
        others: Body = (*level[:position], *level[position + 1 :])
        return (*level[:position], *joining_scope(inner, declared_here(others), taken), *level[position + 1 :])

    opened_program = replace(program, body=replaced_on_spine(program.body, loop, opened))
    joined, how = join(Joining(opened_program, index, loop.init.type, extent))
    reason = f"its iterations are proved independent, and {how}"
    remark = Remark("grid", candidate.subject, True, reason, candidate.span)
    return Step(joined, candidate.origin, candidate.extent, remark)


def _joins(analyses: Analyses, program: ir.Program, subject: str) -> bool:
    """Say whether a loop of a program becomes part of the grid."""
    candidates = (one for one in _candidates(program, analyses) if one.subject == subject)
    return any(isinstance(_without_loop(one, analyses), Step) for one in candidates)


def _left(candidate: _Candidate, reason: str, fault: Span, hint: str = "") -> NotApplied:
    remark = Remark("grid", candidate.subject, False, reason, candidate.span, fault, hint)
    return NotApplied(reason, fault, (remark,))


def _assigns(stmt: ir.Stmt, names: frozenset[str]) -> bool:
    return isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and stmt.target.name in names


def _dropped(level: Body, position: int) -> Body:
    return (*level[:position], *level[position + 1 :])


def _declared_below(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    return frozenset(stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare))


STRATEGY = Granularity()
