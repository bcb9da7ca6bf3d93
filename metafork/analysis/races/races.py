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

from metafork.algebra.prover import sample_points
from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.source_cfg import UniformPath, launch_paths, uniform_paths
from metafork.analysis.facts import program_facts
from metafork.analysis.memory.flat_rows import with_rows
from metafork.analysis.races.playing import Effort, certain, lengths, played, values_at, within
from metafork.analysis.races.proof import AccessPairs, RaceKind, Unproved
from metafork.analysis.reference_walk import references_and_quotients
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
    """The accesses of each path; what was proved of a pair once is not asked again."""

    facts: Facts
    deadline: float | None = None
    paths: dict[UniformPath, AccessPairs] = field(default_factory=dict)

    def on(self, path: UniformPath) -> AccessPairs:
        if path not in self.paths:
            self.paths[path] = AccessPairs(path, self.facts, self.deadline)
        return self.paths[path]


def _found_races(program: Program, facts: Facts, compared: _Compared) -> tuple[Race, ...]:
    found: dict[tuple[RaceKind, str], Race] = {}
    for path in launch_paths(program):
        doubtful = {pair.first.array for pair in compared.on(path).unproved(tuple(RaceKind), thorough=False)}
        accesses, quotients = references_and_quotients(path.program, facts)
        accesses = tuple(access for access in accesses if access.array in doubtful and certain(access))
        if not accesses:
            continue
        samples = sample_points((*facts.constraints, *facts.running), facts.derived)  # of launches whose loops run
        for point in sorted(samples, key=lambda p: sum(p.values())):
            values = values_at(path, facts, quotients, point)
            if values is not None:
                for race in _Play(path.program, accesses, values, lengths(path.program, facts, values)).races():
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
    compared = _Compared(facts, deadline)
    races = tuple(
        race
        for race in _found_races(program, facts, compared)
        if symbols_behind((race.first, race.second), program, facts).isdisjoint(computed)
    )
    refuted = {(race.kind, race.first.array) for race in races}
    unproved: dict[tuple[RaceKind, str, bool], Unproved] = {}
    for path, kinds in _paths_to_prove(program):
        for pair in compared.on(path).unproved(kinds, thorough=True, refuted=refuted, promises=promises):
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
    facts = program_facts(in_rows)
    compared = _Compared(facts, deadline)
    found = {(kind, array) for kind in RaceKind for array in changed}
    for path, kinds in _paths_to_prove(in_rows):
        for array in sorted(changed):
            for pair in compared.on(path).unproved(kinds, thorough=True, promises=promises, only=array):
                found.discard((pair.kind, array))
    return found


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
    compared = _Compared(facts, deadline)
    return not any(
        True
        for path, kinds in _paths_to_prove(program)
        for _ in compared.on(path).unproved(kinds, thorough=thorough, promises=promises, only=array)
    )


def _paths_to_prove(program: Program) -> Iterator[tuple[UniformPath, tuple[RaceKind, ...]]]:
    """Yield the paths on which each kind of race is to be excluded.

    Threads of one block take one path together; two blocks may take two where a condition reads a grid variable.
    """
    launch, block = launch_paths(program), uniform_paths(program)
    if launch == block:
        yield from ((path, tuple(RaceKind)) for path in launch)
        return
    yield from ((path, (RaceKind.GRID,)) for path in launch)
    yield from ((path, (RaceKind.THREADS,)) for path in block)


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
    """One access to an element: the iteration of the grid, of the block-level loops and of the threads."""

    access: Reference
    grid: tuple[int, ...]
    block: tuple[int, ...]
    threads: tuple[int, ...]
    values: dict[str, int]


class _Play:
    """Plays through all iterations at one point, and notes who touches what."""

    def __init__(
        self,
        program: Program,
        accesses: Sequence[Reference],
        point: Mapping[str, int],
        lengths: Mapping[str, tuple[int, ...]],
    ) -> None:
        self._accesses = accesses
        self._point = point
        self._lengths = lengths
        self._own = {array.name for array in program.arrays}

    def races(self) -> Iterator[Race]:
        """Yield the races at this point, one for each kind and array; none where an access is outside of its array."""
        found: list[Race] = []
        for race in self._conflicts():
            if race is None:
                return
            found.append(race)
        yield from found

    def _conflicts(self) -> Iterator[Race | None]:
        """Yield races, and ``None`` for an access outside of its array."""
        touches: dict[tuple[str, tuple[int, ...], tuple[int, ...]], list[_Touch]] = {}
        told: set[tuple[RaceKind, str]] = set()
        count = 0
        for access in self._accesses:
            for touch, element in self._touches(access):
                count += 1
                if count > MOST_ACCESSES:
                    return
                if not within(self._lengths.get(access.array), element):
                    yield None
                    return
                # An array of the block is another one in every block.
                home = () if access.array in self._own else touch.grid
                others = touches.setdefault((access.array, element, home), [])
                for other in others:
                    kind = _conflict(other, touch)
                    if kind is not None and (kind, access.array) not in told:
                        told.add((kind, access.array))
                        yield self._race(kind, other, touch, element)
                if len(others) < 8:
                    others.append(touch)

    def _touches(self, access: Reference) -> Iterator[tuple[_Touch, tuple[int, ...]]]:
        for values, element in played(access, self._point, Effort()):
            by_kind = {kind: tuple(values[loop.var] for loop in access.loops if loop.kind is kind) for kind in LoopKind}
            yield (
                _Touch(access, by_kind[LoopKind.GRID], by_kind[LoopKind.BLOCK], by_kind[LoopKind.THREAD], dict(values)),
                element,
            )

    def _race(self, kind: RaceKind, first: _Touch, second: _Touch, element: tuple[int, ...]) -> Race:
        def iteration(touch: _Touch) -> dict[str, int]:
            return {loop.var: int(loop.value.evaluate(touch.values)) for loop in touch.access.loops}

        parameters = {name: value for name, value in self._point.items() if name in self._point}
        return Race(kind, first.access, second.access, iteration(first), iteration(second), parameters, element)


def _conflict(first: _Touch, second: _Touch) -> RaceKind | None:
    if not (first.access.writes or second.access.writes) or first.access.commutes(second.access):
        return None
    if first.grid != second.grid:
        return RaceKind.GRID
    same_stretch = first.access.phase == second.access.phase and first.block == second.block
    return RaceKind.THREADS if same_stretch and first.threads != second.threads else None
