"""Does a program keep the promise of its ``meta_for``s?  Races of the input, refuted by two iterations or proved away.

Iterations of the grid conflict when they touch one element anywhere in a launch, one of them writing; iterations of
the threads only between two barriers, which stand between phases and between iterations of a block-level loop
(LANGUAGE, "Refused").

*Refutation*: at a few small parameter values that Start allows, every iteration is played through and its accesses are
noted; a conflict is a race with its two iterations as witness.  Accesses under conditions that read memory, or in loops
of unknown shape, take no part: they may not happen.  Values at which some access lies outside of its array show
nothing: no caller may give them.

*Proof*: ``metafork.analysis.races.proof``, pair by pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.source_cfg import UniformPath, launch_paths, uniform_paths
from metafork.analysis.facts import program_facts
from metafork.analysis.memory.flat_rows import with_rows
from metafork.analysis.races.playing import Effort, Launch, played, small_points, within
from metafork.analysis.races.proof import AccessPairs, RaceKind, Unproved
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.analysis.values.scope import Facts
from metafork.ir.program import Program
from metafork.ir.rewriting import variables
from metafork.ir.translation_unit import Promise

MOST_ACCESSES = 4000
"""Accesses that are played through at one parameter point; larger points are skipped."""


class Race(Struct, frozen=True):
    """Two iterations that touch one element, at parameter values that Start allows."""

    kind: RaceKind
    first: Reference
    second: Reference
    first_iteration: Mapping[str, int]
    second_iteration: Mapping[str, int]
    parameters: Mapping[str, int]
    element: tuple[int, ...]


class RaceReport(Struct, frozen=True):
    """``races`` are certain; ``unproved`` pairs are neither proved nor refuted.  Both empty: proved free of races."""

    races: tuple[Race, ...]
    unproved: tuple[Unproved, ...]


class _Compared(Struct):
    """The accesses of each path of a program; what was proved of a pair once is not asked again."""

    program: Program
    facts: Facts
    promises: Collection[Promise] = ()
    deadline: float | None = None
    paths: dict[UniformPath, AccessPairs] = field(default_factory=dict)

    def on(self, path: UniformPath) -> AccessPairs:
        if path not in self.paths:
            self.paths[path] = AccessPairs(path, self.facts, self.deadline)
        return self.paths[path]

    def unproved(
        self, *, thorough: bool = True, refuted: Collection[tuple[RaceKind, str]] = (), only: str | None = None
    ) -> Iterator[Unproved]:
        """Yield the pairs of all paths that are not proved apart; threads of one block take one path together.

        Two blocks may take two if a condition reads a grid variable.
        """
        launch, block = launch_paths(self.program), uniform_paths(self.program)
        ways = (
            [(launch, tuple(RaceKind))]
            if launch == block
            else [(launch, (RaceKind.GRID,)), (block, (RaceKind.THREADS,))]
        )
        for paths, kinds in ways:
            for path in paths:
                pairs = self.on(path)
                yield from pairs.unproved(kinds, thorough=thorough, refuted=refuted, promises=self.promises, only=only)


def _found_races(program: Program, facts: Facts, compared: _Compared) -> tuple[Race, ...]:
    found: dict[tuple[RaceKind, str], Race] = {}
    own = {array.name for array in program.arrays}
    for path in launch_paths(program):
        doubtful = {pair.first.array for pair in compared.on(path).unproved(tuple(RaceKind), thorough=False)}
        launch = Launch.of(path, facts, doubtful)
        for _, values, extents in launch.at(small_points(facts)) if launch.accesses else ():
            for race in _races_at(launch.accesses, values, extents, own):
                found.setdefault((race.kind, race.first.array), race)
    return tuple(found.values())


def race_report(
    program: Program,
    deadline: float | None = None,
    promises: Collection[Promise] = (),
    computed: Collection[str] = (),
) -> RaceReport:
    """Return the races of a program, and the pairs of accesses of which nothing is known.

    After ``deadline`` (of ``time.monotonic``) the solver is asked nothing more: what that leaves open is unproved.
    ``promises`` are taken on trust where no race is found.  ``computed`` are parameters that the host computes, nobody
    knows how: elements that they lead to may never meet.
    """
    facts = program_facts(program)
    compared = _Compared(program, facts, promises, deadline)
    races = tuple(
        race
        for race in _found_races(program, facts, compared)
        if symbols_behind((race.first, race.second), program, facts).isdisjoint(computed)
    )
    refuted = {(race.kind, race.first.array) for race in races}
    unproved: dict[tuple[RaceKind, str, bool], Unproved] = {}
    for pair in compared.unproved(refuted=refuted):
        unproved.setdefault((pair.kind, pair.first.array, pair.compared), pair)
    doubtful = {array for _, array, _ in unproved}
    apart = _apart_in_rows(program, doubtful, promises, deadline) if doubtful else set()
    return RaceReport(races, tuple(pair for pair in unproved.values() if (pair.kind, pair.first.array) not in apart))


def _apart_in_rows(
    program: Program, arrays: Collection[str], promises: Collection[Promise], deadline: float | None
) -> set[tuple[RaceKind, str]]:
    """Return of which flat arrays it is proved that no iterations conflict, given their elements' rows and columns."""
    in_rows = with_rows(program, Analyses())
    if in_rows is program:
        return set()
    shapes = {array.name: len(array.extents) for array in program.arrays}
    changed = {array.name for array in in_rows.arrays if len(array.extents) != shapes[array.name]} & {*arrays}
    compared = _Compared(in_rows, program_facts(in_rows), promises, deadline)
    doubtful = {(pair.kind, array) for array in sorted(changed) for pair in compared.unproved(only=array)}
    return {(kind, array) for kind in RaceKind for array in changed} - doubtful


def proved_free(
    program: Program,
    facts: Facts,
    array: str,
    promises: Collection[Promise] = (),
    deadline: float | None = None,
    *,
    thorough: bool = True,
) -> bool:
    """Say whether no iterations conflict on one array, as far as accesses are not vouched for.

    Without ``thorough`` no solver is asked.
    """
    compared = _Compared(program, facts, promises, deadline)
    return not any(True for _ in compared.unproved(thorough=thorough, only=array))


def symbols_behind(accesses: Iterable[Reference], program: Program, facts: Facts) -> set[str]:
    """Return the parameters that the elements of accesses depend on."""
    indices = (index for access in accesses for index in access.indices if index is not None)
    asked = [name for index in indices for name in index.symbols]
    quotients = {one.name: one for one in facts.derived}
    definitions = {one.name: one.definition for one in program.derived}
    found: set[str] = set()
    while asked:
        name = asked.pop()
        if name in found:
            continue
        found.add(name)
        if name in quotients:
            asked += [symbol for operand in quotients[name].operands for symbol in operand.symbols]
        elif name in definitions:
            asked += variables(definitions[name])
    return found


class _Touch(Struct):
    """One access to an element, in one iteration of its loops, ``at`` those of each kind."""

    access: Reference
    values: dict[str, int]
    at: dict[LoopKind, tuple[int, ...]]

    @property
    def iteration(self) -> dict[str, int]:
        """The variables of its loops."""
        return {loop.var: int(loop.value.evaluate(self.values)) for loop in self.access.loops}


def _races_at(
    accesses: Sequence[Reference],
    point: Mapping[str, int],
    extents: Mapping[str, tuple[int, ...]],
    shared: Collection[str],
) -> list[Race]:
    """Return the races at a point, one for each kind and array; none where an access is outside of its array.

    Arrays that are not ``shared`` are a block's own, and others in every block.
    """
    found: dict[tuple[RaceKind, str], Race] = {}
    touches: dict[tuple[str, tuple[int, ...], tuple[int, ...]], list[_Touch]] = {}
    count = 0
    for access in accesses:
        for values, element in played(access, point, Effort()):
            count += 1
            if count > MOST_ACCESSES:
                return list(found.values())
            if not within(extents.get(access.array), element):
                return []
            at = {kind: tuple(values[loop.var] for loop in access.loops if loop.kind is kind) for kind in LoopKind}
            touch = _Touch(access, dict(values), at)
            home = () if access.array in shared else at[LoopKind.GRID]
            others = touches.setdefault((access.array, element, home), [])
            for other in others:
                kind = _conflict(other, touch)
                if kind is not None and (kind, access.array) not in found:
                    iterations = other.iteration, touch.iteration
                    race = Race(kind, other.access, access, *iterations, dict(point), element)
                    found[kind, access.array] = race
            if len(others) < 8:
                others.append(touch)
    return list(found.values())


def _conflict(first: _Touch, second: _Touch) -> RaceKind | None:
    if not (first.access.writes or second.access.writes) or first.access.commutes(second.access):
        return None
    if first.at[LoopKind.GRID] != second.at[LoopKind.GRID]:
        return RaceKind.GRID
    same_stretch = first.access.phase == second.access.phase and first.at[LoopKind.BLOCK] == second.at[LoopKind.BLOCK]
    return RaceKind.THREADS if same_stretch and first.at[LoopKind.THREAD] != second.at[LoopKind.THREAD] else None
