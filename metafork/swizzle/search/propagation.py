"""Propagation: from what is known of some cells to what must hold of others, until nothing changes.

*Forced tables.*  Where the goal needs every cell of a stage, each cell must hold a term that can still reach a place
where it is needed.  If exactly one source of a cell holds such a term, the stage's table is forced there; once it is
forced everywhere, the table is looked up among the options.  No coordinate is named for this: that a lane stage keeps
the register index shows in which sources a cell has.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.factors import Bools, Ints
from metafork.swizzle.search.failure import DeadEndError
from metafork.swizzle.search.network import JUNK_BIT, ZERO_BIT, Bits, ExactFold, LooseFold, Network, PairFold, Watched
from metafork.swizzle.search.overlaps import overlapping, united
from metafork.swizzle.search.stages import Candidates, Stage


class State(Struct):
    """Domains by level, remaining options by stage, and the values that these take at each local."""

    domains: list[Bits]
    candidates: list[Candidates | None]
    values: list[Bools]

    def copy(self) -> State:
        """Return an independent state; domains are copied, options are shared."""
        return State([one.copy() for one in self.domains], list(self.candidates), list(self.values))


def start(network: Network) -> State:
    """Return the state in which nothing is chosen."""
    everything = [stage.everything for stage in network.stages]
    return State([one.copy() for one in network.domains], list(everything), [stage.reads for stage in network.stages])


class _Clock:
    """When each variable last changed, so that a constraint runs again only for news about its own variables."""

    def __init__(self, network: Network) -> None:
        self.now = 0
        self._changed = [np.zeros(level.variables, dtype=np.int64) for level in network.levels]

    def mark(self, level: int, variables: Ints) -> None:
        self.now += 1
        self._changed[level][variables] = self.now

    def news(self, watched: Watched, since: int) -> bool:
        return any(int(self._changed[level][variables].max()) > since for level, variables in watched)


def propagate(network: Network, state: State, first: int | None = None) -> None:
    """Narrow domains and options until nothing changes; raises ``DeadEndError``.

    ``first`` is the one stage whose options changed since the state was last propagated (``None``: run everything).
    """
    clock = _Clock(network)
    folds: list[ExactFold | LooseFold | PairFold] = [*network.exact, *network.loose, *network.pairs]
    total = len(folds) + len(network.stages)
    last = [-1 if first is None else 0] * total
    if first is not None:
        last[len(folds) + first] = -1
    running = True
    while running:
        running = False
        for number, watched in enumerate(network.watched):
            if last[number] >= 0 and not clock.news(watched, last[number]):
                continue
            running = True
            if number < len(folds):
                _fold(state, folds[number], clock)
            else:
                _stage(state, number - len(folds), network.stages[number - len(folds)], clock)
            last[number] = clock.now


def _stage(state: State, number: int, stage: Stage, clock: _Clock) -> None:
    domain, values = state.domains[stage.level], state.values[number]
    wanted = domain[stage.outputs]
    fits = overlapping(domain, stage.outputs, stage.sources, values[stage.locals_])
    allowed = np.logical_and.reduceat(fits[stage.order], stage.starts, axis=0) & values
    if not allowed.any(axis=1).all():
        cell = _clashing_cell(stage, fits, int(np.flatnonzero(~allowed.any(axis=1))[0]))
        raise DeadEndError(stage.level, int(stage.outputs[cell]), wanted[cell])
    if not np.array_equal(allowed, values):
        remaining = stage.narrow(state.candidates[number], allowed)
        if remaining is not None and len(remaining) == 0:
            cell = _unmet_cell(stage, state.candidates[number], allowed)
            raise DeadEndError(stage.level, int(stage.outputs[cell]), wanted[cell])
        state.candidates[number] = remaining
        allowed = stage.values(remaining, allowed)
        state.values[number] = allowed
    chosen = allowed[stage.locals_]
    narrowed = wanted & united(domain, stage.sources, chosen)
    if not narrowed.any(axis=1).all():
        cell = int(np.flatnonzero(~narrowed.any(axis=1))[0])
        raise DeadEndError(stage.level, int(stage.outputs[cell]), wanted[cell])
    changed = (narrowed != wanted).any(axis=1)
    if changed.any():
        domain[stage.outputs] = narrowed
        clock.mark(stage.level, stage.outputs[changed])
    forced = np.flatnonzero(chosen.sum(axis=1) == 1)
    if forced.size:
        sources = stage.sources[forced, chosen[forced].argmax(axis=1)]
        fewer = (domain[sources] & ~narrowed[forced]).any(axis=1)
        if fewer.any():
            np.bitwise_and.at(domain, sources[fewer], narrowed[forced[fewer]])
            clock.mark(stage.level, sources[fewer])
            if not domain[sources].any(axis=1).all():
                empty = int(np.flatnonzero(~domain[sources].any(axis=1))[0])
                cell = int(forced[empty])
                raise DeadEndError(stage.level, int(stage.outputs[cell]), narrowed[cell])


def _clashing_cell(stage: Stage, fits: Bools, local: int) -> int:
    """Return the first cell of a local that leaves no value, alone or together with those before it."""
    left = np.ones(fits.shape[1], dtype=bool)
    cells = np.flatnonzero(stage.locals_ == local)
    for cell in cells.tolist():
        left &= fits[cell]
        if not left.any():
            return int(cell)
    return int(cells[0])


def _unmet_cell(stage: Stage, now: Candidates | None, allowed: Bools) -> int:
    """Return the first cell for which no option is left that does what is needed up to it."""
    if now is not None:
        rows = now.rows
        for local in range(stage.local_count):
            rows = rows[allowed[local][now.tables[rows, local]]]
            if rows.size == 0:
                return int(np.flatnonzero(stage.locals_ == local)[0])
    return 0


def _fold(state: State, fold: ExactFold | PairFold | LooseFold, clock: _Clock) -> None:
    if isinstance(fold, ExactFold):
        _exact_fold(state, fold, clock)
    elif isinstance(fold, PairFold):
        _pair_fold(state, fold, clock)
    else:
        domain = state.domains[fold.level]
        # A result that may be junk, or a product that may be zero, says nothing of its members.
        silent = JUNK_BIT | ZERO_BIT if fold.absorbing else JUNK_BIT
        hopeless = (state.domains[fold.outer][fold.outputs, 0] & silent) != 0
        before = domain[fold.groups]
        after = np.where(hopeless[:, None, None], before, before & fold.allowed)
        _write(state, fold.level, fold.groups, before, after, clock)


def _write(state: State, level: int, variables: Ints, before: Bits, after: Bits, clock: _Clock) -> None:
    changed = (before != after).any(axis=-1)
    if not changed.any():
        return
    domain = state.domains[level]
    # A variable may stand at several places: all of them narrow it.
    np.bitwise_and.at(domain, variables[changed], after[changed])
    empty = ~domain[variables[changed]].any(axis=-1)
    if empty.any():
        raise DeadEndError(level, int(variables[changed][empty][0]), before[changed][empty][0])
    clock.mark(level, variables[changed])


def _exact_fold(state: State, fold: ExactFold, clock: _Clock) -> None:
    domain = state.domains[fold.level]
    before = domain[fold.groups]
    allowed = fold.needed | fold.spare
    after = before & allowed[:, None, :]
    once = np.zeros_like(fold.needed)
    twice = np.zeros_like(fold.needed)
    for place in range(after.shape[1]):
        twice |= once & after[:, place]
        once |= after[:, place]
    missing = fold.needed & ~once
    if bool(missing.any()):
        group = int(np.flatnonzero(missing.any(axis=1))[0])
        raise DeadEndError(fold.level, int(fold.groups[group][-1]), missing[group])
    # A term with one supplier left takes that supplier for itself.
    only = fold.once & once & ~twice
    taken = after & only[:, None, :]
    after = np.where(np.expand_dims(taken.any(axis=2), 2), taken, after)
    _write(state, fold.level, fold.groups, before, after, clock)


def _pair_fold(state: State, fold: PairFold, clock: _Clock) -> None:
    inner, outer = state.domains[fold.inner], state.domains[fold.outer]
    left, right, result = (
        unpacked(domain[variables])
        for domain, variables in ((inner, fold.left), (inner, fold.right), (outer, fold.outputs))
    )
    possible = result[:, fold.result]
    straight = possible & left[:, fold.one] & right[:, fold.two]
    crossed = possible & left[:, fold.two] & right[:, fold.one]
    produced = _gathered(straight | crossed, fold.result, result.shape[1])
    if fold.absorbing:
        produced[:, 0] = result[:, 0] & (left[:, 0] | right[:, 0])
    else:
        produced[:, 0] = result[:, 0] & left[:, 0] & right[:, 0]
    produced[:, 1] = result[:, 1]
    settled = ~(produced[:, 0] | produced[:, 1])
    lefts = _gathered(straight, fold.one, left.shape[1]) | _gathered(crossed, fold.two, left.shape[1])
    rights = _gathered(straight, fold.two, left.shape[1]) | _gathered(crossed, fold.one, left.shape[1])
    lefts[~settled], rights[~settled] = left[~settled], right[~settled]
    _write(state, fold.outer, fold.outputs, outer[fold.outputs], packed(produced), clock)
    before = inner[fold.left]
    _write(state, fold.inner, fold.left, before, packed(lefts) & before, clock)
    before = inner[fold.right]
    _write(state, fold.inner, fold.right, before, packed(rights) & before, clock)


def _gathered(flags: Bools, columns: Ints, width: int) -> Bools:
    """Or the columns of ``flags`` into the columns they name."""
    where = np.zeros((columns.size, width), dtype=np.float32)
    where[np.arange(columns.size), columns] = 1
    return (flags.astype(np.float32) @ where) > 0


def unpacked(bits: Bits) -> Bools:
    """Return one boolean a bit."""
    rows = np.ascontiguousarray(bits).view(np.uint8).reshape(bits.shape[0], -1)
    return np.unpackbits(rows, axis=1, bitorder="little").astype(bool)


def packed(flags: Bools) -> Bits:
    """Return the bits of booleans, the inverse of ``unpacked``."""
    result: NDArray[np.uint64] = np.packbits(flags, axis=1, bitorder="little").view(np.uint64)
    return result
