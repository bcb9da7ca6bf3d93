"""From memory traces to a plan: which loads become shuffles, from which source, moved by how many lanes.

Every pair (source, N) here was proved in every flow by the emulator.  A load that is replaced is never itself a source
of a shuffle (section 5.2); so of L loads of one row L − 1 are replaced, and which one stays decides the deltas.  The
paper takes the first of the program; here loads of one basic block form a row, a row is cut into segments that one
source can serve, and among the possible sources the one with the least sum of |N| stays.  If that one stands later in
the block it is *hoisted* to the first of its segment, where nothing between them writes memory or its address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ptx.emulation.borders import Check
from metafork.ptx.emulation.evaluate import instruction_types, type_width
from metafork.ptx.emulation.execution import LoadVisit
from metafork.ptx.emulation.predicates import Flow
from metafork.ptx.emulation.terms import MAXIMAL_TERMS
from metafork.ptx.emulation.traces import Match
from metafork.ptx.text.cfg import Cfg
from metafork.ptx.text.opcodes import Effect, effect, read, targets, written
from metafork.ptx.text.syntax import Instruction, Name

SHUFFLED_BYTES = 4
"""The bytes that one shuffle moves."""

LONGEST_EXACT_ROW = 40
"""Rows longer than this are cut greedily, not by dynamic programming."""

_DIVERGENT = {
    Flow.DIVERGENT: "it stands in divergent control flow",
    Flow.CUT: f"a condition around it has products of more than {MAXIMAL_TERMS} terms, which are not compared",
}


class Replacement(Struct, frozen=True):
    """One load replaced: it takes what the load at ``source`` has ``delta`` lanes further, from ``element`` on.

    ``part`` is the bytes of an element, ``elements`` their number.  ``checked`` where it may do so only if the lanes
    are in the same passes of the loops around; ``held`` where it may do so only if the source, which has a predicate,
    was executed; ``own`` are the checks of borders that this lane must pass, ``asked`` those of the source's lane.
    """

    position: int
    source: int
    element: int
    delta: int
    part: int
    elements: int
    checked: bool
    held: bool
    own: tuple[Check, ...]
    asked: tuple[Check, ...]

    @property
    def size(self) -> int:
        """The bytes of the whole access."""
        return self.part * self.elements

    @property
    def bordered(self) -> bool:
        """Whether lanes at borders make the original load."""
        return bool(self.own or self.asked)


class Plan(Struct, frozen=True):
    """What to do with a kernel's loads.

    Attributes:
        replacements: by position; those with delta 0 are register reuses, not shuffles.
        hoists: source position → the position before which it is moved.
        left_alone: position → why a load with a proved source stays.
        most_blocks: the blocks along x beyond which every lane makes its original loads, ``None`` for no such bound.
        matches: whether the target has ``match.all``, which compares the passes of two loops at once.
    """

    replacements: tuple[Replacement, ...]
    hoists: Mapping[int, int]
    left_alone: Mapping[int, str]
    most_blocks: int | None = None
    matches: bool = False


def _place(check: Check) -> tuple[int, str, int]:
    return check.position, check.what.value, check.number


class _Row(Struct):
    """Loads of one block whose addresses differ by whole lanes; ``offset[p]`` is the lane offset of position p."""

    offset: dict[int, int] = field(default_factory=dict)


def plan(
    cfg: Cfg,
    visits: Mapping[int, LoadVisit],
    flows: Mapping[int, Flow],
    max_delta: int,
    *,
    hoist: bool,
    matches: bool = False,
) -> Plan:
    """Choose replacements for a kernel.

    Args:
        cfg: its control flow.
        visits: one merged visit a load.
        flows: the worst flow of each branching block.
        max_delta: the largest |N| of a shuffle, 0 to 31.
        hoist: whether sources may be moved up within their block.
        matches: whether the target has ``match.all``.
    """
    return replace(_Planner(cfg, visits, flows, max_delta, hoist, matches).plan(), matches=matches)


class _Planner:
    def __init__(
        self,
        cfg: Cfg,
        visits: Mapping[int, LoadVisit],
        flows: Mapping[int, Flow],
        max_delta: int,
        hoist: bool,
        matches: bool,
    ) -> None:
        self.matches = matches
        self.cfg = cfg
        self.instructions = cfg.body.instructions
        self.visits = visits
        self.max_delta = max_delta
        self.hoist = hoist
        self.block_of = {p: n for n in cfg.order for p in range(cfg.blocks[n].start, cfg.blocks[n].end)}
        self.flow_of = {
            n: max((flows.get(c, Flow.UNIFORM) for c in cfg.controllers[n]), default=Flow.UNIFORM) for n in cfg.order
        }
        self.replacements: dict[int, Replacement] = {}
        self.hoists: dict[int, int] = {}
        self.left_alone: dict[int, str] = {}
        self.vectors: set[int] = set()

    def plan(self) -> Plan:
        waiting: dict[int, list[LoadVisit]] = {}
        for position in sorted(self.visits):
            visit = self.visits[position]
            if visit.obstacle is not None or self.reuse(visit) or not self._replaceable(visit):
                continue
            flow = self.flow_of[self.block_of[position]]
            if flow > Flow.BOUND:
                if visit.candidates:
                    self.left_alone[position] = _DIVERGENT[flow]
                continue
            waiting.setdefault(visit.elements, []).append(visit)
        # Long vectors first: an element of one that stays serves shorter loads, and no load that goes serves any.
        for elements in sorted(waiting, reverse=True):
            rows: dict[int, list[_Row]] = {}
            for visit in waiting[elements]:
                if not self._from_vector(visit):
                    self._into_row(visit, rows.setdefault(self.block_of[visit.position], []))
            in_order = (row for block in self.cfg.order for row in rows.get(block, ()))
            self._serve([segment for row in in_order for segment in self._segments(row)])
            self.vectors.update(visit.position for visit in waiting[elements])
        self._drop_dear_checks()
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
        equal = [p for p, match in visit.candidates.items() if match.lanes == 0 and self._same_type(p, visit.position)]
        if not equal:
            return False
        self._replace(visit, min(equal), visit.candidates[min(equal)])
        return True

    def _replace(self, visit: LoadVisit, source: int, match: Match) -> None:
        own, asked = tuple(sorted(match.own, key=_place)), tuple(sorted(match.asked, key=_place))
        checked = visit.apart and match.lanes != 0
        held = self._held(source, visit, match.lanes)
        self.replacements[visit.position] = Replacement(
            visit.position, source, match.element, match.lanes, visit.part, visit.elements, checked, held, own, asked
        )

    def _from_vector(self, visit: LoadVisit) -> bool:
        """Replace a load by elements of a longer vector that stays."""
        ways = [
            (len(match.asked), len(match.own), abs(match.lanes), source)
            for source, match in visit.candidates.items()
            if source in self.vectors and source not in self.replacements and 0 < abs(match.lanes) <= self.max_delta
        ]
        if ways:
            source = min(ways)[-1]
            self._replace(visit, source, visit.candidates[source])
        return bool(ways)

    def _held(self, source: int, visit: LoadVisit, lanes: int) -> bool:
        """Tell whether it must be checked that the source was executed: in another lane wherever it has a predicate."""
        return self.instructions[source].guard is not None and (lanes != 0 or source not in visit.sure)

    def _same_type(self, one: int, other: int) -> bool:
        """Tell whether two loads of one size leave the same bits in their registers.

        They do where the registers are equally wide and the loads extend to that width alike: where nothing is
        extended the types do not matter, else a signed type gives other bits than an unsigned or untyped one.
        """
        width = self._width(one)
        if width is None or width != self._width(other):
            return False
        return width == 8 * self.visits[one].part or self._signed(one) == self._signed(other)

    def _width(self, position: int) -> int | None:
        """Return the bits of the registers that a load writes, ``None`` where they differ or are not known."""
        names = [element.text for element in targets(self.instructions[position]) if isinstance(element, Name)]
        kinds = [self.cfg.body.registers.get(name) for name in names if name != "_"]
        widths = {None if kind is None else type_width(kind) for kind in kinds}
        return widths.pop() if len(widths) == 1 else None

    def _signed(self, position: int) -> bool:
        return instruction_types(self.instructions[position])[-1].startswith("s")

    def _replaceable(self, visit: LoadVisit) -> bool:
        """Tell whether registers take the whole value, and shuffles of 32 bits do not move less than they could."""
        width = self._width(visit.position)
        if width is None or width < 8 * visit.part:
            return False
        if visit.elements > 1 and visit.part < SHUFFLED_BYTES:
            if visit.candidates:
                self.left_alone[visit.position] = f"its elements of {8 * visit.part} bits take a shuffle each"
            return False
        return True

    def _into_row(self, visit: LoadVisit, rows: list[_Row]) -> None:
        for row in rows:
            for source, match in visit.candidates.items():
                if source in row.offset:
                    row.offset[visit.position] = row.offset[source] + match.lanes
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
        """Return (sum of |N|, source) of the best source of a segment, ``None`` where no member can be it.

        Of sources with one sum that one is better whose lanes need not be asked for borders.
        """
        first = min(segment)
        middle = len(segment) // 2
        best: tuple[int, int, int] | None = None
        for source in sorted(segment, key=lambda p: (abs(segment.index(p) - middle), p)):
            at = row.offset[source]
            total = sum(abs(row.offset[member] - at) for member in segment)
            asked = sum(bool(match.asked) for m in segment if m != source and (match := self._match(source, m)))
            if (best is None or (total, asked, source) < best) and self._serves(row, source, segment, first):
                best = (total, asked, source)
                if len(segment) > LONGEST_EXACT_ROW // 2:
                    break
        return None if best is None else (best[0], best[2])

    def _serves(self, row: _Row, source: int, segment: Sequence[int], first: int) -> bool:
        at = row.offset[source]
        for member in segment:
            lanes = row.offset[member] - at
            if member == source:
                continue
            if abs(lanes) > self.max_delta:
                return False
            match = self._match(source, member)
            if match is None or match.lanes != lanes:
                return False
            # Where the source is moved up, what its checks need must stand before that place.
            if any(first <= check.position < source for check in match.asked):
                return False
        return first == source or self._movable(source, first)

    def _match(self, source: int, member: int) -> Match | None:
        """Return how a load of a row finds its value in another lane's of another one, which may stand behind it."""
        known = self.visits[member].candidates.get(source)
        if known is None:
            other = self.visits[source].candidates.get(member)
            known = None if other is None else Match(-other.lanes, 0, other.asked, other.own)
        return known if known is not None and known.lanes else None

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
                    match = self._match(outside, member)
                    assert match is not None
                    self._replace(self.visits[member], outside, match)

    def _drop_dear_checks(self) -> None:
        """Leave the loads of a block alone that are not more than the comparisons of passes that they need."""
        by_block: dict[int, list[Replacement]] = {}
        for replacement in self.replacements.values():
            if replacement.checked:
                by_block.setdefault(self.block_of[replacement.position], []).append(replacement)
        for block, checked in by_block.items():
            loops = len(self.cfg.loops_around(block))
            if len(checked) > (-(-loops // 2) if self.matches else loops):
                continue
            for replacement in checked:
                del self.replacements[replacement.position]
                reason = f"comparing the lanes' passes of {loops} loops is dearer than {len(checked)} loads"
                self.left_alone[replacement.position] = reason
        used = {replacement.source for replacement in self.replacements.values()}
        self.hoists = {source: before for source, before in self.hoists.items() if source in used}

    def _outside(self, sources: set[int], members: Sequence[int]) -> int | None:
        options = []
        for source in self.visits[members[0]].candidates:
            if source not in sources or source in members:
                continue
            matches = [self._match(source, member) for member in members]
            lanes = [abs(match.lanes) for match in matches if match is not None]
            if len(lanes) == len(members) and max(lanes) <= self.max_delta:
                options.append((sum(lanes), source))
        return min(options)[1] if options else None
