"""From memory traces to a plan: which loads become shuffles, from which source, moved by how many lanes.

Every pair (source, N) here was proved in every flow by the emulator.  A load that is replaced is never itself a source
of a shuffle (section 5.2); so of L loads of one row L − 1 are replaced, and which one stays decides the deltas.  The
paper takes the first of the program; here loads of one basic block form a row, a row is cut into segments that one
source can serve, and among the possible sources the one with the least sum of |N| stays.  If that one stands later in
the block it is *hoisted* to the first of its segment, where nothing between them writes memory or its address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from metafork.ptx.emulation.execution import LoadVisit
from metafork.ptx.emulation.predicates import Flow
from metafork.ptx.text.cfg import Cfg
from metafork.ptx.text.opcodes import Effect, effect, read, written
from metafork.ptx.text.syntax import Instruction, Name

LONGEST_EXACT_ROW = 40
"""Rows longer than this are cut greedily, not by dynamic programming."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One load replaced: it takes the value that the load at ``source`` has ``delta`` lanes further."""

    position: int
    source: int
    delta: int
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a kernel's loads.

    Attributes:
        replacements: by position; those with delta 0 are register reuses, not shuffles.
        hoists: source position → the position before which it is moved.
        left_alone: position → why a load with a proved source stays.
    """

    replacements: tuple[Replacement, ...]
    hoists: Mapping[int, int]
    left_alone: Mapping[int, str]


@dataclass(slots=True)
class _Row:
    """Loads of one block whose addresses differ by whole lanes; ``offset[p]`` is the lane offset of position p."""

    offset: dict[int, int] = field(default_factory=dict)


def plan(cfg: Cfg, visits: Mapping[int, LoadVisit], flows: Mapping[int, Flow], max_delta: int, *, hoist: bool) -> Plan:
    """Choose replacements for a kernel.

    Args:
        cfg: its control flow.
        visits: one merged visit a load.
        flows: the worst flow of each branching block.
        max_delta: the largest |N| of a shuffle, 0 to 31.
        hoist: whether sources may be moved up within their block.
    """
    return _Planner(cfg, visits, flows, max_delta, hoist).plan()


class _Planner:
    def __init__(
        self, cfg: Cfg, visits: Mapping[int, LoadVisit], flows: Mapping[int, Flow], max_delta: int, hoist: bool
    ) -> None:
        self.cfg = cfg
        self.instructions = cfg.body.instructions
        self.visits = visits
        self.max_delta = max_delta
        self.hoist = hoist
        self.block_of = {p: n for n in cfg.order for p in range(cfg.blocks[n].start, cfg.blocks[n].end)}
        self.divergent = {n for n in cfg.order if any(flows.get(c) is Flow.DIVERGENT for c in cfg.controllers[n])}
        self.replacements: dict[int, Replacement] = {}
        self.hoists: dict[int, int] = {}
        self.left_alone: dict[int, str] = {}

    def plan(self) -> Plan:
        rows: dict[int, list[_Row]] = {}
        for position in sorted(self.visits):
            visit = self.visits[position]
            if visit.obstacle is not None or self.reuse(visit):
                continue
            if visit.size not in (4, 8):
                continue
            if self.block_of[position] in self.divergent:
                if visit.candidates:
                    self.left_alone[position] = "it stands in divergent control flow"
                continue
            self._into_row(visit, rows.setdefault(self.block_of[position], []))
        kept: list[tuple[int, list[int]]] = []
        for block in self.cfg.order:
            for row in rows.get(block, ()):
                for source, members in self._segments(row):
                    kept.append((source, members))
        self._serve(kept)
        for position, visit in self.visits.items():
            if visit.candidates and position not in self.replacements and self._is_needless(visit):
                self.left_alone.setdefault(position, f"no source within {self.max_delta} lanes")
        replaced = tuple(self.replacements[p] for p in sorted(self.replacements))
        return Plan(replaced, self.hoists, self.left_alone)

    def _is_needless(self, visit: LoadVisit) -> bool:
        """Tell whether a load that stays serves no other, though it has a source."""
        return all(r.source != visit.position for r in self.replacements.values())

    def reuse(self, visit: LoadVisit) -> bool:
        """Replace a load by the register of an earlier load of the same address (N = 0)."""
        equal = [p for p, lanes in visit.candidates.items() if lanes == 0 and self._same_type(p, visit.position)]
        if not equal:
            return False
        source = min(equal)
        self.replacements[visit.position] = Replacement(visit.position, source, 0, visit.size)
        return True

    def _same_type(self, one: int, other: int) -> bool:
        """Tell whether two loads give the same bits; below 32 bits the extension must be the same too."""
        if self.visits[one].size >= 4:
            return self._width(one) == self._width(other)
        first, second = self.instructions[one], self.instructions[other]
        return first.modifiers[-1] == second.modifiers[-1] and self._register(one) == self._register(other)

    def _register(self, position: int) -> str | None:
        target = self.instructions[position].operands[0]
        return self.cfg.body.registers.get(target.text) if isinstance(target, Name) else None

    def _width(self, position: int) -> str:
        return (self._register(position) or "?")[1:]

    def _replaceable(self, position: int) -> bool:
        """Tell whether the register is exactly as wide as the access, so that its bits can be shuffled."""
        return self._width(position) == str(8 * self.visits[position].size)

    def _into_row(self, visit: LoadVisit, rows: list[_Row]) -> None:
        if not self._replaceable(visit.position):
            return
        for row in rows:
            for source, lanes in visit.candidates.items():
                if source in row.offset:
                    row.offset[visit.position] = row.offset[source] + lanes
                    return
        rows.append(_Row({visit.position: 0}))

    # --- choosing sources ---------------------------------------------------------------------------------------

    def _segments(self, row: _Row) -> list[tuple[int, list[int]]]:
        """Cut a row into segments with one source each; the source is among the members."""
        members = sorted(row.offset, key=lambda p: (row.offset[p], p))
        if len(members) == 1:
            return [(members[0], members)]
        if len(members) > LONGEST_EXACT_ROW:
            return self._greedy(row, members)
        best: list[tuple[int, int, list[tuple[int, list[int]]]]] = [(0, 0, [])]
        for end in range(1, len(members) + 1):
            options = []
            for start in range(end - 1, -1, -1):
                segment = members[start:end]
                if row.offset[segment[-1]] - row.offset[segment[0]] > 2 * self.max_delta:
                    break
                choice = self._centre(row, segment)
                if choice is not None:
                    sources, distance, chosen = best[start]
                    options.append((sources + 1, distance + choice[0], [*chosen, (choice[1], segment)]))
            best.append(min(options, key=lambda option: option[:2]))
        return best[-1][2]

    def _greedy(self, row: _Row, members: list[int]) -> list[tuple[int, list[int]]]:
        segments: list[tuple[int, list[int]]] = []
        start = 0
        while start < len(members):
            end = start + 1
            reach = row.offset[members[start]] + 2 * self.max_delta
            while end < len(members) and row.offset[members[end]] <= reach:
                end += 1
            segment = members[start:end]
            while (choice := self._centre(row, segment)) is None:
                segment = segment[: max(1, len(segment) // 2)]
            segments.append((choice[1], segment))
            start += len(segment)
        return segments

    def _centre(self, row: _Row, segment: Sequence[int]) -> tuple[int, int] | None:
        """Return (sum of |N|, source) of the best source of a segment, ``None`` where no member can be it."""
        first = min(segment)
        middle = len(segment) // 2
        best: tuple[int, int] | None = None
        for source in sorted(segment, key=lambda p: (abs(segment.index(p) - middle), p)):
            at = row.offset[source]
            total = sum(abs(row.offset[member] - at) for member in segment)
            if (best is None or (total, source) < best) and self._serves(row, source, segment, first):
                best = (total, source)
                if len(segment) > LONGEST_EXACT_ROW // 2:
                    break
        return best

    def _serves(self, row: _Row, source: int, segment: Sequence[int], first: int) -> bool:
        at = row.offset[source]
        for member in segment:
            lanes = row.offset[member] - at
            if member == source:
                continue
            if abs(lanes) > self.max_delta:
                return False
            if member > source:
                if self.visits[member].candidates.get(source) != lanes:
                    return False
            elif self.visits[source].candidates.get(member) != -lanes:
                return False
        return first == source or self._movable(source, first)

    def _movable(self, source: int, before: int) -> bool:
        """Tell whether a load can be moved up: same scope, same address register, nothing written in between."""
        if not self.hoist or self.cfg.body.scopes[source] != self.cfg.body.scopes[before]:
            return False
        load = self.instructions[source]
        touched = {name.text for name in read(load)} | {name.text for name in written(load)}
        results = {name.text for name in written(load)}
        for position in range(before, source):
            instruction: Instruction = self.instructions[position]
            kind = effect(instruction)
            if kind in (Effect.STORE, Effect.ORDER, Effect.NEW_GRID, Effect.UNKNOWN):
                return False
            if any(name.text in touched for name in written(instruction)):
                return False
            if any(name.text in results for name in read(instruction)):
                return False
        return True

    def _serve(self, kept: list[tuple[int, list[int]]]) -> None:
        """Turn segments into replacements; a whole segment may be served by a source of an earlier block."""
        sources: set[int] = set()
        for source, members in sorted(kept, key=lambda item: min(item[1])):
            outside = self._outside(sources, members)
            if outside is None:
                sources.add(source)
                outside = source
                if min(members) != source:
                    self.hoists[source] = min(members)
            for member in members:
                if member != outside:
                    lanes = self._lanes(outside, member)
                    self.replacements[member] = Replacement(member, outside, lanes, self.visits[member].size)

    def _lanes(self, source: int, member: int) -> int:
        if source in self.visits[member].candidates:
            return self.visits[member].candidates[source]
        return -self.visits[source].candidates[member]

    def _outside(self, sources: set[int], members: Sequence[int]) -> int | None:
        options = []
        for source in self.visits[members[0]].candidates:
            if source not in sources or source in members:
                continue
            lanes = [self.visits[member].candidates.get(source, 99) for member in members]
            if max(map(abs, lanes)) <= self.max_delta:
                options.append((sum(map(abs, lanes)), source))
        return min(options)[1] if options else None
