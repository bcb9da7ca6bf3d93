"""granularity_groups: iterations of a granularity loop in groups of four, so that their results have registers.

``before --> after``, for matmul's ``w`` in registers across the block-level loop over ``k``::

                                                   int groups = dim * s / 4;
    meta_for (int j = 0; j < dim; j++)         meta_for (int j = 0; j < dim * s - 3 * groups; j++)
      for (int k = 0; k < n / B; k++)            if (j < groups) {
        meta_for (int u = 0; u < B; u++)           for (int k = 0; k < n / B; k++)
          for (int w = 0; w < s; w++)                meta_for (int u = 0; u < B; u++)
            S(k, j * s + w, u);           -->          for (int w = 0; w < 4; w++)
                                                         S(k, 4 * j + w, u);
                                                 } else
                                                   for (int k = 0; k < n / B; k++)
                                                     meta_for (int u = 0; u < B; u++)
                                                       S(k, 3 * groups + j, u);

A thread keeps elements across a block-level loop where their number is a constant
(``metafork.analysis.memory.private_windows``): where a loop over ``s`` says how many they are, each step of ``k`` reads
and writes them in global memory.  The loop joins the grid first (``strategies.granularity``, which proves that it may);
then a block takes four neighbours of the new grid loop, and a block for each of those that are left over takes one.
Two loops may do so (``s0`` rows by ``s1`` columns).  It is done where what a thread keeps has registers afterwards that
had none before.

Legal by what ``meta_for`` promises of the grid: blocks touch nothing of each other's that one of them writes, so
several may run as one, in any order that keeps that within each.  What stands at block level must be the same for all
of them: loops and conditions there may not depend on the grid variable; scalars that do are computed in each thread
(what they read is not written in the schedule: the language asks for that).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.loop_ranges import LoopKind
from metafork.analysis.memory.block_memory import BlockMemory, UnknownSizeError, block_memory
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.program import (
    Assign,
    BlockArray,
    Declare,
    Derived,
    For,
    If,
    IntConst,
    Phase,
    Program,
    Stmt,
    Var,
    Version,
    binary,
    expressions_of,
    walk_statements,
)
from metafork.ir.rewriting import (
    assigned_variables,
    fresh_name,
    names_in,
    names_of,
    private_arrays,
    substitute_body,
    variables,
)
from strategies.granularity import Step, reduced_once
from strategies.strategy import Applied, Effect, NotApplied, Strategy

Body = tuple[Stmt, ...]
INT = ScalarType.INT
MOST_LOOPS = 2
"""Granularity loops that are taken: rows and columns of a thread's results."""


class GranularityGroups(Strategy, frozen=True):
    """Let a block take ``most`` neighbouring iterations of a granularity loop."""

    name: str = "granularity_groups"
    improves: frozenset[str] = frozenset()
    at_leaf: ClassVar[bool] = True
    at_fork: ClassVar[bool] = True
    most: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.most <= 16:
            raise ValueError(f"most is from 2 to 16, not {self.most}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose blocks take groups of iterations, or why there is none."""
        program, mapping = version.program, version.program.mapping
        if version.ir_strategies:
            return NotApplied("registers are short: the leaf is PTX")
        if mapping.several_results or mapping.striding is not None or mapping.jammed is not None:
            return NotApplied("a thread runs several iterations together already")
        hidden = shadowed_name(program)
        if hidden is not None:
            return NotApplied(f"a local declaration hides another {hidden[0]}", hidden[1])
        try:
            if not _kept_in_global_memory(block_memory(program, analyses)):
                return NotApplied("no element that a thread updates across a block-level loop lacks a register")
        except UnknownSizeError as unknown:
            return NotApplied(str(unknown))
        joined, positions, names, reason = program, list[int](), list[str](), ""
        while len(names) < MOST_LOOPS:
            step = analyses.of(reduced_once, joined)
            if not isinstance(step, Step):
                return NotApplied(reason or f"no granularity loop joins the grid: {step.reason}", step.span)
            changed = [
                number
                for number, (old, new) in enumerate(zip(joined.grid, step.program.grid, strict=True))
                if old != new
            ]
            joined = step.program
            positions += [number for number in changed if number not in positions]
            names.append(step.extent)
            grouped: Program | None = joined
            for position in positions:
                grouped = None if grouped is None else self._grouped(grouped, position)
            if grouped is not None and self._in_registers(grouped, analyses):
                note = (
                    f"a thread computes {self.most} neighbours of {' and of '.join(names)}, and keeps them in registers"
                )
                return Applied(replace(version, program=grouped), note, Effect(f"{', '.join(names)} by {self.most}"))
            reason = f"with {self.most} neighbours of {' and of '.join(names)} a thread would keep no more in registers"
        return NotApplied(reason)

    def _in_registers(self, program: Program, analyses: Analyses) -> bool:
        try:
            return not _kept_in_global_memory(block_memory(program, analyses))
        except UnknownSizeError:
            return False

    def _grouped(self, program: Program, position: int) -> Program | None:
        """Return the program whose blocks take groups of iterations of a grid loop, ``None`` where they cannot."""
        loop = program.grid[position]
        if loop.type is not INT or loop.extent.type is not INT:
            return None
        taken = set(names_of(program))
        groups = Var(fresh_name(f"{loop.var}_groups", taken), INT)
        taken.add(groups.name)
        size, index = IntConst(self.most), Var(loop.var, INT)
        derived = Derived(groups.name, INT, binary("/", loop.extent, size))
        before_rest = binary("*", IntConst(self.most - 1), groups)
        together = _in_threads(program.body, loop.var, self.most, taken)
        if together is None:
            return None
        # Names are declared once in a program, so that the printed leaf is read as this one.
        rest = {loop.var: binary("+", before_rest, index)}
        alone = substitute_body(program.body, rest, taken, renaming=names_in(together))
        grid = list(program.grid)
        grid[position] = replace(loop, extent=binary("-", loop.extent, before_rest))
        body = (If(binary("<", index, groups), together, alone),)
        return replace(program, derived=(*program.derived, derived), grid=tuple(grid), body=body)


def _kept_in_global_memory(memory: BlockMemory) -> bool:
    """Say whether an array is updated across a block-level loop in global memory."""
    return any(
        one.writes and any(loop.kind is LoopKind.BLOCK for loop in one.loops)
        for path in memory.paths
        for one in path.references
        if not any(window.array.name == one.array for window in path.private)
        and not any(held.window.array.name == one.array for held in path.windows)
        and one.array in {array.name for array in path.program.arrays}
    )


def _in_threads(body: Body, variable: str, count: int, taken: set[str]) -> Body | None:
    """Return block-level code whose threads run ``count`` iterations of what ``variable`` numbers, one after the other.

    ``None`` where code at block level depends on the variable, or arrays of the block or of threads stand there.
    """
    if private_arrays(body) or any(isinstance(stmt, BlockArray) for stmt in walk_statements(body)):
        return None
    return _Moved(variable, count, taken, assigned_variables(body)).body(body, {})


class _Moved(Struct, frozen=True):
    variable: str
    count: int
    taken: set[str]
    assigned: frozenset[str]
    declared: set[str] = field(default_factory=set)

    def body(self, body: Body, around: Mapping[str, Declare]) -> Body | None:
        """Move scalars that depend on the variable into phases; ``around`` are those of the scopes around."""
        scalars = dict(around)
        result: list[Stmt] = []
        for stmt in body:
            new: Stmt | None = stmt
            match stmt:
                case Phase():
                    new = self._phase(stmt, tuple(scalars.values()))
                case Declare(name=name) if self._depends((stmt,), scalars):
                    if name in self.assigned:
                        return None
                    scalars[name] = stmt
                    continue
                case For(init=init, condition=condition, step=step, body=inner):
                    head = [one for one in (init, step) if one is not None]
                    if self._depends(head, scalars) or (
                        condition is not None and self._names(scalars) & variables(condition)
                    ):
                        return None
                    moved = self.body(inner, scalars)
                    new = None if moved is None else replace(stmt, body=moved)
                case If(condition=condition, then=then, otherwise=otherwise):
                    if self._names(scalars) & variables(condition):
                        return None
                    first, second = self.body(then, scalars), self.body(otherwise, scalars)
                    new = None if first is None or second is None else replace(stmt, then=first, otherwise=second)
                case _:
                    if self._depends((stmt,), scalars):
                        return None
            if new is None:
                return None
            result.append(new)
        return tuple(result)

    def _names(self, scalars: Mapping[str, Declare]) -> set[str]:
        return {self.variable, *scalars}

    def _depends(self, stmts: list[Declare | Assign] | tuple[Stmt, ...], scalars: Mapping[str, Declare]) -> bool:
        names = self._names(scalars)
        return any(
            names & variables(expr)
            for stmt in stmts
            for one in walk_statements((stmt,))
            for expr in expressions_of(one)
        )

    def _phase(self, phase: Phase, scalars: tuple[Declare, ...]) -> Phase | None:
        if any(variables(loop.extent) & {self.variable, *(one.name for one in scalars)} for loop in phase.threads):
            return None
        number = Var(fresh_name(f"{self.variable}_number", self.taken), INT)
        self.taken.add(number.name)
        count = IntConst(self.count)
        value = binary("+", binary("*", count, Var(self.variable, INT)), number)
        # Each phase has its own names: those that are declared twice would be read back as others.
        own = substitute_body((*scalars, *phase.body), {self.variable: value}, self.taken, renaming=self.declared)
        self.taken.update(names_in(own))
        self.declared.update(one.name for one in scalars)
        loop = For(
            Declare(number.name, INT, IntConst(0)), binary("<", number, count), Assign(number, "+", IntConst(1)), own
        )
        return replace(phase, body=(loop,))


STRATEGY = GranularityGroups()
