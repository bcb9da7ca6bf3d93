"""Tests of many options at once, before any is branched on.

*Presence.*  A term that is needed somewhere must stand in one of the cells from which that place can be reached: the
papers' viability tests, on columns of option tables.  *Copy counts.*  Where a reduction needs as many terms as it has
cells, no more cells may be limited to some set of terms than the set has members.  *Forced successors.*  Where an
option makes known what every cell holds, and the next stage keeps enough coordinates that each of its cells has one
possible source, the table of that stage is computed and looked up; the option is dropped if there is no such table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from metafork.swizzle.model.factors import Bools, Ints, Presences, presences_on
from metafork.swizzle.model.options import Tables
from metafork.swizzle.search.network import JUNK_BIT, ZERO_BIT, Bits, Network, PairFold
from metafork.swizzle.search.propagation import State, unpacked
from metafork.swizzle.search.stages import Candidates, Stage

# Each row of the bits is one requirement on the same variables: one of them must hold one of the row's terms.
Requirement = tuple[Ints, Bits]
_CHUNK_ENTRIES = 2_000_000
_MOST_PRESENCES = 256
# Entries of tables of the first options that are tried against the stage after them, and locals that are tried before.
_TRIED_ENTRIES, _LOOKED_AT = 8_000_000, 8


class Requirements:
    """The requirements of a state by level, collected when first asked for; they stay true as the state narrows."""

    def __init__(self, network: Network, state: State) -> None:
        self._network, self._state = network, state
        self._known: dict[int, list[Requirement]] = {}

    def on(self, level: int) -> list[Requirement]:
        """Return what the variables of a level must hold."""
        if level not in self._known:
            self._known[level] = list(_requirements(self._network, self._state, level))
        return self._known[level]


def presences(network: Network, state: State, target: Stage, requirements: Requirements) -> list[Presences]:
    """Return what the outputs of ``target`` must contain.

    Requirements that every option meets are left out, and those that cells of other stages may meet.
    """
    position = np.full(network.levels[target.level].variables, -1, dtype=np.int64)
    position[target.outputs] = np.arange(target.outputs.size)
    number = next(index for index, stage in enumerate(network.stages) if stage is target)
    makers = network.makers[target.level]
    found: dict[bytes, tuple[Ints, dict[bytes, Bools]]] = {}
    domain = state.domains[target.level]
    offered = domain[target.sources]
    for variables, rows in requirements.on(target.level):
        if variables.size == 1 and position[variables[0]] >= 0:
            continue
        maker = int(makers[variables[0]])
        if maker != number and (maker < 0 or number not in network.ancestors[maker]):
            continue
        # What one cell needs says little beyond the stage before it.
        if variables.size == 1 and bool((position[network.stages[maker].sources[0]] < 0).all()):
            continue
        reached = variables
        if maker != number or bool((position[variables] < 0).any()):
            reached = _traced(network, state, target.level, variables, position)
        cells = position[reached[position[reached] >= 0]]
        others = domain[reached[position[reached] < 0]]
        if cells.size == 0:
            continue
        among = cells
        if variables.size == 1:
            # Of the cells that are read for this one; the neighbours' requirements are then on the same locals.
            place = network.stages[maker].outputs == variables[0]
            read = position[network.stages[maker].sources[place][0]]
            among = read if bool(np.isin(cells, read).all() and (read >= 0).all()) else cells
        absent = ~np.isin(among, cells)
        locals_ = target.locals_[among]
        for bits in rows:
            if others.size and bool((others & bits).any()):
                continue
            words = np.flatnonzero(bits)
            satisfying = (offered[among[:, None], :, words] & bits[words][None, :, None]).any(axis=1)
            satisfying[absent] = False
            if not bool(satisfying.all(axis=1).any()):
                _, known = found.setdefault(locals_.tobytes(), (locals_, {}))
                known.setdefault(satisfying.tobytes(), satisfying)
        if sum(len(known) for _, known in found.values()) >= _MOST_PRESENCES:
            break
    joined = [one for locals_, known in found.values() for one in presences_on(locals_, list(known.values()))]
    # The hardest to meet first: they leave the fewest rows to the others.
    return sorted(joined, key=lambda one: int(np.bitwise_count(one.bits).sum()) / int(np.bitwise_count(one.all)))


def _requirements(network: Network, state: State, level: int) -> Iterator[Requirement]:
    domain = state.domains[level]
    for stage in network.stages:
        if stage.level == level:
            rows = domain[stage.outputs]
            needed = np.flatnonzero((rows[:, 0] & (ZERO_BIT | JUNK_BIT)) == 0)
            for cell in needed.tolist():
                yield stage.outputs[cell : cell + 1], rows[cell : cell + 1]
    yield from _fold_requirements(network, level)
    for pair in network.pairs:
        if pair.inner == level:
            yield from _factor_requirements(network, state, pair)


def _fold_requirements(network: Network, level: int) -> Iterator[Requirement]:
    for fold in network.exact:
        if fold.level == level:
            for group, needs in zip(fold.groups, fold.needed, strict=True):
                yield np.unique(group), single_bits(needs)


def _factor_requirements(network: Network, state: State, pair: PairFold) -> Iterator[Requirement]:
    """A product that must be present needs its factors: one on the left, or one on the right."""
    inner = unpacked(state.domains[pair.inner])
    place = np.full(network.levels[pair.outer].variables, -1, dtype=np.int64)
    place[pair.outputs] = np.arange(pair.outputs.size)
    factors: dict[int, set[int]] = {}
    for one, two, result in zip(pair.one.tolist(), pair.two.tolist(), pair.result.tolist(), strict=True):
        # Of a term with several pairs, only the factors that all of them have are needed; zero and junk say nothing.
        both = {one, two} - {0, 1}
        factors[result] = factors.get(result, both) & both
    for variables, rows in _fold_requirements(network, pair.outer):
        reached = _traced(network, state, pair.outer, variables, place)
        if reached.size == 0 or bool((place[reached] < 0).any()):
            continue
        groups = place[reached]
        single = rows[np.bitwise_count(rows).sum(axis=1) == 1]
        wanted = {factor for bits in single for bit in set_positions(bits) for factor in factors.get(bit, ())}
        for side, other in ((pair.left, pair.right), (pair.right, pair.left)):
            here = set(np.flatnonzero(inner[side[groups]].any(axis=0)).tolist())
            there = set(np.flatnonzero(inner[other[groups]].any(axis=0)).tolist())
            mine = sorted((wanted & here) - there)
            if mine:
                yield np.unique(side[groups]), _bit_rows(mine, state.domains[pair.inner].shape[1])


def _traced(network: Network, state: State, level: int, variables: Ints, position: Ints) -> Ints:
    """Follow variables back through stages to those with a position, or to ones that no stage makes."""
    reached = np.zeros(position.size, dtype=bool)
    reached[variables] = True
    for stage, values in zip(reversed(network.stages), reversed(state.values), strict=True):
        if stage.level != level:
            continue
        hit = np.flatnonzero(reached[stage.outputs] & (position[stage.outputs] < 0))
        if hit.size:
            reached[stage.outputs[hit]] = False
            reached[stage.sources[hit][values[stage.locals_[hit]]]] = True
    reached[0] = False
    return np.flatnonzero(reached)


def is_exact(state: State, stage: Stage) -> bool:
    """Say whether every source of a stage holds one known term."""
    counts = np.bitwise_count(state.domains[stage.level][np.unique(stage.sources)]).sum(axis=1)
    return bool((counts == 1).all())


def with_forced_successor(network: Network, state: State, stage: Stage, now: Candidates) -> Candidates:
    """Keep the options after which the next stage has a table, where that table is forced."""
    if not is_exact(state, stage):
        return now
    position = np.full(network.levels[stage.level].variables, -1, dtype=np.int64)
    position[stage.outputs] = np.arange(stage.outputs.size)
    for number, follower in enumerate(network.stages):
        if follower is stage or follower.level != stage.level or bool((position[follower.sources] < 0).any()):
            continue
        held = unpacked(state.domains[stage.level])
        term = held.argmax(axis=1)[stage.sources]
        accepts, reads = held[follower.outputs], position[follower.sources]
        facts = term, accepts, reads
        some = np.unique(np.linspace(0, follower.local_count - 1, _LOOKED_AT).astype(np.int64))
        rows = now.rows
        partly = follower.membership_on(state.candidates[number], some)
        if partly is not None:
            rows = _with_followers(stage, follower, now.tables, rows, some, facts, partly)
        known = follower.membership(state.candidates[number])
        every = np.arange(follower.local_count)
        kept = []
        step = max(64, _TRIED_ENTRIES // reads.size)
        for start in range(0, rows.size, step):
            block = rows[start : start + step]
            left = _with_followers(stage, follower, now.tables, block, every, facts, known)
            kept.append(left)
            if 2 * left.size > block.size and 2 * rows.size > len(now):
                # The next stage is hardly ever forced: leave the rest to propagation.
                kept.append(rows[start + step :])
                break
        now = now.only(np.concatenate(kept) if kept else rows)
    return now


def _with_followers(
    stage: Stage,
    follower: Stage,
    tables: Tables,
    rows: Ints,
    locals_: Ints,
    facts: tuple[Ints, Bools, Ints],
    known: Callable[[Ints], Bools],
) -> Ints:
    """Keep the rows after which the follower has values at these locals that are ``known``, where they are forced.

    ``facts`` are the term of each source of the stage, the terms that each output of the follower may hold, and the
    outputs of the stage that it reads.
    """
    term, accepts, reads = facts
    ends = np.append(follower.starts[1:], follower.order.size)
    groups = [follower.order[follower.starts[local] : ends[local]] for local in locals_]
    cells, starts = np.concatenate(groups), np.cumsum([0, *(one.size for one in groups[:-1])])
    needed, place = np.unique(reads[cells], return_inverse=True)
    place = place.reshape(cells.size, -1)
    kept = [rows[:0]]
    step = max(1, _CHUNK_ENTRIES // place.size)
    for start in range(0, rows.size, step):
        block = rows[start : start + step]
        holds = term[needed[None], tables[block[:, None], stage.locals_[needed]]]
        fits = accepts[cells[None, :, None], holds[:, place]]
        kept.append(block[_has_table(np.logical_and.reduceat(fits, starts, axis=1), known)])
    return np.concatenate(kept)


def with_copy_counts(network: Network, state: State, stage: Stage, now: Candidates) -> Candidates:
    """Keep the options that leave every full reduction enough cells for every set of its terms."""
    position = np.full(network.levels[stage.level].variables, -1, dtype=np.int64)
    position[stage.outputs] = np.arange(stage.outputs.size)
    domain = state.domains[stage.level]
    for fold in network.exact:
        if fold.level != stage.level or bool(fold.spare.any()) or not np.array_equal(fold.needed, fold.once):
            continue
        cells = position[_through_decided(network, state, stage, fold.groups)]
        if bool((cells < 0).any()):
            continue
        offered = domain[stage.sources[cells]] & fold.needed[:, None, None, :]
        sets, inverse = np.unique(offered.reshape(-1, offered.shape[-1]), axis=0, return_inverse=True)
        kind = inverse.reshape(offered.shape[:3])
        room = np.bitwise_count(sets).sum(axis=1)
        groups, places = cells.shape
        step = max(1, _CHUNK_ENTRIES // (groups * max(places, len(room))))
        kept = []
        for start in range(0, len(now), step):
            block = now.rows[start : start + step]
            values = now.tables[block][:, stage.locals_[cells]]
            kinds = kind[np.arange(groups)[None, :, None], np.arange(places)[None, None, :], values]
            owner = np.arange(block.size)[:, None, None] * groups + np.arange(groups)[None, :, None]
            counts = np.bincount((owner * len(room) + kinds).ravel(), minlength=block.size * groups * len(room))
            enough = (counts.reshape(block.size, groups, -1) <= room).all(axis=(1, 2))
            kept.append(block[enough])
        now = now.only(np.concatenate(kept) if kept else now.rows)
    return now


def _through_decided(network: Network, state: State, target: Stage, variables: Ints) -> Ints:
    """Follow variables back through stages that have one value left, up to the target's outputs."""
    current = np.arange(network.levels[target.level].variables)
    for stage, values in zip(network.stages, state.values, strict=True):
        if stage is target or stage.level != target.level:
            continue
        chosen = values[stage.locals_]
        single = chosen.sum(axis=1) == 1
        read = stage.sources[np.arange(chosen.shape[0]), chosen.argmax(axis=1)]
        current[stage.outputs[single]] = current[read[single]]
    return current[variables]


def _has_table(allowed: Bools, known: Callable[[Ints], Bools]) -> Bools:
    """Say of each option whether the next stage has a table where one is forced (yes where none is)."""
    choices = allowed.sum(axis=2)
    possible: Bools = (choices > 0).all(axis=1)
    exact = np.flatnonzero(possible & (choices == 1).all(axis=1))
    if exact.size:
        possible[exact] = known(allowed[exact].argmax(axis=2))
    return possible


def set_positions(bits: Bits) -> list[int]:
    """Return the positions of the bits that are set."""
    flags = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little")
    return [int(one) for one in np.flatnonzero(flags)]


def single_bits(bits: Bits) -> Bits:
    """Return one row a bit that is set."""
    return _bit_rows(set_positions(bits), bits.size)


def _bit_rows(positions: list[int], words: int) -> Bits:
    rows = np.zeros((len(positions), words), dtype=np.uint64)
    for row, position in enumerate(positions):
        rows[row, position // 64] = np.uint64(1 << (position % 64))
    return rows
