"""What cells and their sources may both hold, and what sources hold together: the inner loops of propagation.

Small stages compare all their domains word by word.  In large ones most domains have one bit, or equal many others:
each such comparison is made once, on one word where that is enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.model.factors import Bools, Ints
from metafork.swizzle.model.options import classes

Bits = NDArray[np.uint64]
# Words that are compared at once.
_AT_ONCE = 1 << 18


def overlapping(domain: Bits, outputs: Ints, sources: Ints, values: Bools) -> Bools:
    """Say of each cell and each of its ``values`` whether the cell and that source may hold the same."""
    if sources.size * domain.shape[1] <= _AT_ONCE:
        result: Bools = (domain[sources] & domain[outputs][:, None, :]).any(axis=2) & values
        return result
    result = values.copy()
    cells, columns = np.nonzero(values)
    result[cells, columns] = _meet(domain, outputs[cells], sources[cells, columns])
    return result


def united(domain: Bits, sources: Ints, chosen: Bools) -> Bits:
    """Return what the chosen sources of each cell, one at least, may hold together."""
    if sources.size * domain.shape[1] <= _AT_ONCE:
        result: Bits = np.bitwise_or.reduce(np.where(chosen[:, :, None], domain[sources], np.uint64(0)), axis=1)
        return result
    _, kind = _kinds(domain)
    first, place = classes(np.where(chosen, kind[sources], -1))
    rows, columns = np.nonzero(chosen[first])
    held = sources[first[rows], columns]
    starts = np.searchsorted(rows, np.arange(first.size))
    words = [np.bitwise_or.reduceat(word[held], starts) for word in domain.T]
    return np.stack(words, axis=1)[place]


def _meet(domain: Bits, one: Ints, two: Ints) -> Bools:
    """Say of pairs of variables whether both may hold the same."""
    # Of a domain of one bit, one word of the other one is looked at.
    single = np.bitwise_count(domain).sum(axis=1) == 1
    word = (domain != 0).argmax(axis=1)
    bit = np.where(single, domain[np.arange(word.size), word], np.uint64(0))
    result: Bools = (domain[one, word[two]] & bit[two]) != 0
    swapped = np.flatnonzero(single[one] & ~single[two])
    result[swapped] = (domain[two[swapped], word[one[swapped]]] & bit[one[swapped]]) != 0
    rest = np.flatnonzero(~single[one] & ~single[two])
    if rest.size:
        different, kind = _kinds(domain)
        pairs, place = np.unique(kind[one[rest]] * different.size + kind[two[rest]], return_inverse=True)
        first, second = np.divmod(pairs, different.size)
        met = np.zeros(pairs.size, dtype=bool)
        step = max(1, _AT_ONCE // domain.shape[1])
        for start in range(0, pairs.size, step):
            some = slice(start, start + step)
            met[some] = (domain[different[first[some]]] & domain[different[second[some]]]).any(axis=1)
        result[rest] = met[place]
    return result


def _kinds(domain: Bits) -> tuple[Ints, Ints]:
    """Return the first variable of each kind of domain, and the kind of every variable."""
    weights = np.random.Generator(np.random.PCG64(1)).integers(1 << 63, size=domain.shape[1], dtype=np.uint64)
    return classes(domain, (domain * (2 * weights + 1)).sum(axis=1))
