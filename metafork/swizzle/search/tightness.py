"""Copy counts: variables that cannot be wasted (Swizzleflow, section 4.1, turned round).

If the goal needs as many distinct terms through a set of variables as the set has members, each variable must hold
one of them: losing a term cannot be repaired.  If it needs more, there is no solution.  Reachability is followed
backwards through the values that options still take.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.search.network import JUNK_BIT, ZERO_BIT, Bits, Network
from metafork.swizzle.search.propagation import DeadEndError, State
from metafork.swizzle.search.stages import Ints


def tighten(network: Network, state: State) -> bool:
    """Remove junk and useless terms from the variables that cannot be wasted; says whether anything changed.

    Raises ``DeadEndError`` where more distinct terms are needed than there are variables to carry them.
    """
    changed = False
    for level in range(len(network.levels)):
        demands = _demands(network, state, level)
        if demands is None:
            continue
        cuts = [stage.outputs for stage in network.stages if stage.level == level]
        cuts += [pair.outputs for pair in network.pairs if pair.outer == level]
        cuts += [loose.outputs for loose in network.loose if loose.outer == level]
        for cut in cuts:
            if bool((np.bitwise_count(state.domains[level][cut]).sum(axis=1) > 1).any()):
                changed |= _tighten_cut(network, state, level, demands, np.unique(cut))
    return changed


def _demands(network: Network, state: State, level: int) -> tuple[list[Ints], Bits] | None:
    """Return groups of variables with the terms that each group must hold at least once."""
    groups: list[Ints] = []
    needed: list[Bits] = []
    for fold in network.exact:
        if fold.level == level:
            groups.extend(fold.groups)
            needed.extend(fold.needed)
    if network.level_of[network.problem.goal] == level:
        for variable in network.variables[network.problem.goal].tolist():
            row = state.domains[level][variable].copy()
            row[0] &= ~(ZERO_BIT | JUNK_BIT)
            if row.any():
                groups.append(np.array([variable]))
                needed.append(row)
    if not groups:
        return None
    return groups, np.stack(needed)


def _reach(network: Network, state: State, level: int, groups: list[Ints], cut: Ints) -> Bits | None:
    """Return which groups each variable can reach, stopping at the cut; ``None`` where something goes around it."""
    count = network.levels[level].variables
    reach = np.zeros((count, (len(groups) + 63) // 64), dtype=np.uint64)
    for number, group in enumerate(groups):
        reach[group, number // 64] |= np.uint64(1 << (number % 64))
    blocked, made = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    blocked[cut] = True
    for stage, values in zip(reversed(network.stages), reversed(state.values), strict=True):
        if stage.level != level:
            continue
        made[stage.outputs] = True
        chosen = values[stage.locals_] & ~blocked[stage.outputs][:, None]
        if not chosen.any():
            continue
        for column in range(stage.sources.shape[1]):
            rows = np.flatnonzero(chosen[:, column])
            np.bitwise_or.at(reach, stage.sources[rows, column], reach[stage.outputs[rows]])
    around = ~blocked & ~made
    around[:2] = False
    return None if bool(reach[around].any()) else reach


def _tighten_cut(network: Network, state: State, level: int, demands: tuple[list[Ints], Bits], cut: Ints) -> bool:
    groups, needed = demands
    reach = _reach(network, state, level, groups, cut)
    if reach is None:
        return False
    rows, inverse = np.unique(reach[cut], axis=0, return_inverse=True)
    reached = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : len(groups)].astype(bool)
    component = _components(reached)
    domain, changed = state.domains[level], False
    sizes = np.bincount(inverse.ravel(), minlength=rows.shape[0])
    for label in np.unique(component[reached.any(axis=1)]).tolist():
        members = np.flatnonzero(component == label)
        wanted = np.bitwise_or.reduce(needed[reached[members].any(axis=0)], axis=0)
        spare = int(sizes[members].sum()) - int(np.bitwise_count(wanted).sum())
        if spare < 0:
            raise DeadEndError
        if spare > 0:
            continue
        for member in members.tolist():
            useful = np.bitwise_or.reduce(needed[reached[member]], axis=0)
            variables = cut[inverse.ravel() == member]
            before = domain[variables]
            after = before & useful
            if not after.any(axis=1).all():
                raise DeadEndError
            domain[variables] = after
            changed |= not np.array_equal(before, after)
    return changed


def _components(reached: NDArray[np.bool_]) -> Ints:
    """Label rows so that rows with a column in common, directly or through others, have one label."""
    count = reached.shape[0]
    label = np.arange(count)
    while True:
        of_column = np.where(reached, label[:, None], count).min(axis=0)
        new = np.minimum(label, np.where(reached, of_column[None, :], count).min(axis=1))
        if np.array_equal(new, label):
            return label
        label = new
