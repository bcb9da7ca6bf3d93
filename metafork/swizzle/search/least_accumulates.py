"""A lower bound on accumulation statements below a state of the search, for branch and bound.

A reduction that must hold ``N`` terms needs ``N`` cells that are not zero.  A condition hole brings it at most as many
as its most generous remaining option keeps there, so from the capacities of the holes that feed a reduction follows
how many of them cannot be constantly false.  Reductions that share no hole add up (Swizzle Inventor, section 4.3, has
the objective; the bound is ours).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from metafork.swizzle.model.factors import Bools, Ints
from metafork.swizzle.search.network import Network
from metafork.swizzle.search.propagation import State


class _Feed(Struct):
    """What a condition stage may bring to the groups of one reduction."""

    stage: int
    # Locals and groups of the cells that the stage makes.
    locals_: Ints
    groups: Ints


class _Reduction(Struct):
    needed: Ints
    # Cells of each group that no condition stage makes: they may all hold terms.
    free: Ints
    feeds: list[_Feed]


@dataclass(slots=True)
class LeastAccumulates:
    """The bound; ``reached`` is the fewest found so far, and states that cannot do better are dropped."""

    reached: int | None = None
    _network: Network | None = field(init=False, default=None)
    _reductions: list[_Reduction] = field(init=False, default_factory=list)
    _conditions: list[int] = field(init=False, default_factory=list)

    def hopeless(self, network: Network, state: State) -> bool:
        """Say whether nothing below the state has fewer accumulations than were reached."""
        return self.reached is not None and self.least(network, state) >= self.reached

    def least(self, network: Network, state: State) -> int:
        """Return how many accumulations every solution below the state has at least."""
        if self._network is not network:
            self._prepare(network)
        kept = {number: self._kept(network, state, number) for number in self._conditions}
        certain = {number for number, tables in kept.items() if bool(tables.any(axis=1).all())}
        # Components of reductions joined by holes; of each the most demanding group counts.
        total, joined = 0, _components([{feed.stage for feed in one.feeds} for one in self._reductions])
        outside = certain - {feed.stage for one in self._reductions for feed in one.feeds}
        for members in joined:
            stages = {feed.stage for one in members for feed in self._reductions[one].feeds}
            asked = max(self._asked(self._reductions[one], kept, certain) for one in members)
            total += max(asked, len(stages & certain))
        return total + len(outside)

    def _prepare(self, network: Network) -> None:
        self._network = network
        self._conditions = [number for number, stage in enumerate(network.stages) if stage.holes[0].kind == "keep"]
        self._reductions = []
        for fold in network.exact:
            makers = network.makers[fold.level][fold.groups]
            # Groups of one hole set are one reduction; accumulators of a lane are different ones.
            keys: dict[tuple[int, ...], list[int]] = {}
            for group, row in enumerate(makers):
                keys.setdefault(tuple(sorted({int(one) for one in row} & set(self._conditions))), []).append(group)
            for stages, groups in keys.items():
                self._reductions.append(
                    self._reduction(network, fold.groups[groups], makers[groups], fold.sizes[groups], stages)
                )

    def _reduction(
        self, network: Network, cells: Ints, makers: Ints, needed: Ints, stages: tuple[int, ...]
    ) -> _Reduction:
        feeds = []
        for number in stages:
            stage = network.stages[number]
            place = {int(variable): int(local) for variable, local in zip(stage.outputs, stage.locals_, strict=True)}
            groups, at = np.nonzero(makers == number)
            locals_ = np.array([place[int(one)] for one in cells[groups, at]])
            feeds.append(_Feed(number, locals_, groups))
        free = (~np.isin(makers, stages)).sum(axis=1)
        return _Reduction(needed, free, feeds)

    @staticmethod
    def _kept(network: Network, state: State, number: int) -> Bools:
        """Return which locals each remaining option of a condition stage keeps."""
        candidates = state.candidates[number]
        if candidates is None:
            return np.ones((1, network.stages[number].local_count), dtype=bool)
        return candidates.tables[candidates.rows] >= 0

    @staticmethod
    def _asked(reduction: _Reduction, kept: dict[int, Bools], certain: set[int]) -> int:
        """Return how many holes the most demanding group needs."""
        count = reduction.needed.size
        capacities = np.zeros((len(reduction.feeds), count), dtype=np.int64)
        sure = np.zeros(len(reduction.feeds), dtype=bool)
        for row, feed in enumerate(reduction.feeds):
            cells = kept[feed.stage][:, feed.locals_].astype(np.int64)
            where = np.zeros((feed.groups.size, count), dtype=np.int64)
            where[np.arange(feed.groups.size), feed.groups] = 1
            capacities[row] = (cells @ where).max(axis=0)
            sure[row] = feed.stage in certain
        short = reduction.needed - reduction.free - capacities[sure].sum(axis=0)
        others = -np.sort(-capacities[~sure], axis=0)
        more = np.zeros(count, dtype=np.int64)
        for row in others:
            more += short > 0
            short = short - row
        return int(sure.sum()) + int(more.max(initial=0))


def _components(sets: list[set[int]]) -> list[list[int]]:
    """Group the positions of sets that share a member, directly or through others."""
    groups: list[tuple[set[int], list[int]]] = []
    for position, members in enumerate(sets):
        apart, own, places = [], set(members), [position]
        for stages, positions in groups:
            if stages & own:
                own, places = own | stages, positions + places
            else:
                apart.append((stages, positions))
        groups = [*apart, (own, places)]
    return [places for _, places in groups]
