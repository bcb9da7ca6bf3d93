"""Pair reachability for two consecutive stages of which nothing is forced (Swizzleflow, section 3), in factors.

The papers ask of a pair of goal cells whether some choice for all remaining holes brings their two terms there, and
multiply Boolean matrices over pairs of locations, one a hole.  Here a stage is represented by which (local, value)
pairs occur together in one of its options; the terms at the first stage's sources and the domains of the second
stage's outputs select rows and columns of it.  The product over locations is never formed: a pair of the second
stage's reads is possible if the look-up in the first stage's factor says so, and then its own factor is looked up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.search.network import JUNK_BIT, ZERO_BIT, Network
from metafork.swizzle.search.propagation import State
from metafork.swizzle.search.stages import Bools, Candidates, Stage

# Both factors are square in the reads of a stage; larger stages keep enough coordinates for forced tables.
MOST_READS = 640
MOST_OPTIONS = 4096


def narrowed_by_pairs(network: Network, state: State, first: int, second: int) -> Candidates | None:
    """Return the options of stage ``second`` all of whose pairs of reads are possible behind stage ``first``.

    ``None`` where the two are not consecutive, not both open, or too large for the test.
    """
    before, after = network.stages[first], network.stages[second]
    one, two = state.candidates[first], state.candidates[second]
    if one is None or two is None or not (1 < len(one) <= MOST_OPTIONS and 1 < len(two) <= MOST_OPTIONS):
        return None
    width, cells = after.sources.shape[1], after.outputs.size
    inner = before.local_count * before.sources.shape[1]
    if before.level != after.level or cells * width > MOST_READS or inner > MOST_READS:
        return None
    made = np.full(network.levels[before.level].variables, -1, dtype=np.int64)
    made[before.outputs] = np.arange(before.outputs.size)
    if not bool((made[after.sources] >= 0).any()):
        return None
    domain = state.domains[before.level]
    # A cell that may hold junk asks for nothing: every read of it is possible.
    asks = (domain[after.outputs, 0] & (ZERO_BIT | JUNK_BIT)) == 0
    possible = _possible_reads(state, before, after, made, _together(before, one), asks)
    rows = two.rows
    reads = np.arange(cells)[None, :] * width + two.tables[rows][:, after.locals_] % width
    reads = reads[:, asks]
    kept = [bool(possible[np.ix_(row, row)].all()) for row in reads]
    return two.only(rows[np.array(kept, dtype=bool)])


def _together(stage: Stage, candidates: Candidates) -> NDArray[np.float32]:
    """Return which (local, value) pairs occur in one option, with a last row and column for reads of other arrays."""
    width = stage.sources.shape[1]
    tables = candidates.tables[candidates.rows].astype(np.int64) % width
    size = stage.local_count * width
    marks = np.zeros((tables.shape[0], size + 1), dtype=np.float32)
    marks[np.arange(tables.shape[0])[:, None], np.arange(stage.local_count) * width + tables] = 1
    marks[:, size] = 1
    return ((marks.T @ marks) > 0).astype(np.float32)


def _possible_reads(
    state: State,
    before: Stage,
    after: Stage,
    made: NDArray[np.int64],
    together: NDArray[np.float32],
    asks: Bools,
) -> Bools:  # fmt: skip
    """Return for each two (cell, value) reads of the second stage whether the first can serve both at once."""
    domain = state.domains[before.level]
    cells, width = after.sources.shape
    inner = before.sources.shape[1]
    reads = after.sources.ravel()
    wanted = np.repeat(domain[after.outputs], width, axis=0)
    serves = np.zeros((cells * width, together.shape[0]), dtype=np.float32)
    place = made[reads]
    outside = place < 0
    serves[outside, -1] = (domain[reads[outside]] & wanted[outside]).any(axis=1)
    through = np.flatnonzero(~outside)
    offered = domain[before.sources[place[through]]]
    good = (offered & wanted[through][:, None, :]).any(axis=2)
    columns = before.locals_[place[through]][:, None] * inner + np.arange(inner)[None, :]
    serves[through[:, None], columns] = good
    free = ~np.repeat(asks, width)
    served: Bools = ((serves @ together) @ serves.T) > 0
    served[free, :] = served[:, free] = True
    return served
