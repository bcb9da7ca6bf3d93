"""The proof of ``translation`` with isl: a bijection of writes that keeps the order of what touches one element.

Statement instances are points of isl's parameter space, in which each program's loop variables have their own names:
two instances of the source (``p``, ``q``) and two of the leaf (``P``, ``Q``) stand side by side.  A relation between a
leaf's statement and a source's is found by the elements that they touch, and then proved to be what is needed; a wrong
guess proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, combinations
from typing import Any

from metafork.analysis.values.loop_ranges import LoopKind
from metafork.comprehensive.verification.translation.dataflow import Access, Dataflow, Statement, Time

OUT_OF_TIME = "the time ran out"
"""The problem of a comparison that its deadline ended."""

Relation = Callable[[Statement, Statement], Any]
"""Gives, of an instance of a leaf's statement and one of a source's statement, the set where they correspond."""


class Comparison:
    """Two instances of each program: ``p`` and ``q`` of the source, ``P`` and ``Q`` of the leaf, numbered alike."""

    def __init__(self, p: Dataflow, q: Dataflow, first: Dataflow, second: Dataflow, deadline: float) -> None:
        self._p = p.statements
        self._q = q.statements
        self._first = first.statements
        self._second = second.statements
        self._context = p.context
        self._deadline = deadline
        self._found: dict[tuple[int, int], Relation] = {}

    def problem(self) -> str:
        """Return what is not proved; empty where all is."""
        every = [
            (a, b)
            for a, mine in enumerate(self._first)
            for b, theirs in enumerate(self._p)
            if mine.shape == theirs.shape and _comparable(mine, theirs)
        ]
        in_order = self._in_order(every)
        # Where a statement is written twice, the first most likely is the first; rolled ones have no such order.
        problem = self._with_pairs(in_order)
        return self._with_pairs(every) if problem and in_order != every else problem

    def _in_order(self, every: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the pairs in which both are the n-th of their shape in their program."""
        mine, theirs = ([statement.shape for statement in side] for side in (self._first, self._p))
        return [(a, b) for a, b in every if mine[:a].count(mine[a]) == theirs[:b].count(theirs[b])]

    def _with_pairs(self, pairs: Sequence[tuple[int, int]]) -> str:
        self._found = {}
        for a, b in pairs:
            relation = self._relation(a, b)
            if relation is None:
                return "it is not found which of the source's writes is which of the leaf's"
            self._found[a, b] = relation
        return self._locals() or self._bijection() or self._order()

    def _locals(self) -> str:
        """Shapes leave out which local is meant: each of the leaf's must stand for one of the source's throughout."""
        names = {
            (mine.array, theirs.array)
            for a, b in self._found
            for mine, theirs in zip(self._first[a].accesses, self._p[b].accesses, strict=True)
            if mine.local
        }
        if len({mine for mine, _ in names}) < len(names) or len({theirs for _, theirs in names}) < len(names):
            return "a local of the leaf stands for different ones of the source"
        return ""

    # 1: a bijection of instances

    def _relation(self, a: int, b: int) -> Relation | None:
        for candidate in chain((_equal_elements,), self._anchored(a, b), (_equal_names, _equal_places)):
            if self._is_injection(candidate, a, b):
                return candidate
        return None

    def _anchored(self, a: int, b: int) -> Iterator[Relation]:
        """Yield relations in which the loops around another statement correspond as its elements say."""
        mine, theirs = self._first[a], self._p[b]
        for c, other_mine in enumerate(self._first):
            for d, other_theirs in enumerate(self._p):
                outer = _shared(mine, other_mine), _shared(theirs, other_theirs)
                inner = len(mine.loops) - outer[0], len(theirs.loops) - outer[1]
                if (c, d) == (a, b) or inner[0] != inner[1] or not all(outer):
                    continue
                if other_mine.shape != other_theirs.shape or not _comparable(other_mine, other_theirs):
                    continue
                if self._is_injection(_equal_elements_in_range, c, d):
                    yield self._with_anchor(c, d, outer)

    def _with_anchor(self, c: int, d: int, outer: tuple[int, int]) -> Relation:
        def relation(mine: Statement, theirs: Statement) -> Any:
            mine_there = (self._first if any(one is mine for one in self._first) else self._second)[c]
            theirs_there = (self._p if any(one is theirs for one in self._p) else self._q)[d]
            away = [loop.symbol for loop in (*mine_there.loops[outer[0] :], *theirs_there.loops[outer[1] :])]
            anchor = _without(_equal_elements_in_range(mine_there, theirs_there), away)
            pairs = zip(mine.loops[outer[0] :], theirs.loops[outer[1] :], strict=True)
            equal = [_same(one.symbol, other.symbol) for one, other in pairs]
            return _all([_equal_elements(mine, theirs), anchor, *equal])

        return relation

    def _is_injection(self, relation: Relation, a: int, b: int) -> bool:
        """Say whether each instance of either side corresponds to at most one of the other."""
        here = relation(self._first[a], self._p[b])
        same_mine = here.intersect(relation(self._first[a], self._q[b]))
        if not same_mine.intersect(_different(self._p[b], self._q[b])).is_empty():
            return False
        same_theirs = here.intersect(relation(self._second[a], self._p[b]))
        return bool(same_theirs.intersect(_different(self._first[a], self._second[a])).is_empty())

    def _bijection(self) -> str:
        sides = ((self._first, self._p, 0, "leaf", "source"), (self._p, self._first, 1, "source", "leaf"))
        for own, others, side, name, other_name in sides:
            away = [loop.symbol for statement in others for loop in statement.loops]
            for number, statement in enumerate(own):
                covered = []
                for key, relation in self._found.items():
                    if key[side] == number:
                        pairs = relation(self._first[key[0]], self._p[key[1]])
                        covered.append(_without(pairs, away))
                if any(not one.is_disjoint(other) for one, other in combinations(covered, 2)):
                    return f"a write of the {name} corresponds to two of the {other_name}"
                whole = statement.domain.intersect(self._context)
                if not whole.is_subset(_any(covered, whole)):
                    return f"a write to {_target(statement)} of the {name} corresponds to none of the {other_name}"
        return ""

    # 2: the order of accesses that touch one element

    def _order(self) -> str:
        for (a, b), (c, d) in ((one, other) for one in self._found for other in self._found):
            if time.monotonic() > self._deadline:
                return OUT_OF_TIME
            both = self._found[a, b](self._first[a], self._p[b]).intersect(
                self._found[c, d](self._second[c], self._q[d])
            )
            if both.is_empty():
                continue
            quadruple = (self._first[a], self._second[c], self._p[b], self._q[d])
            for mine, mine_later, theirs, theirs_later in _pairs(*quadruple):
                together = both.intersect(_same_element(mine, mine_later))
                if mine.local:
                    apart = both.intersect(_same_element(theirs, theirs_later))
                    if not together.is_equal(apart):
                        return f"copies of {mine.array} are shared otherwise"
                if not (mine.writes or mine_later.writes) or together.is_empty():
                    continue
                for before in _before(theirs.time, theirs_later.time):
                    ordered = together.intersect(before)
                    if ordered.is_empty():
                        continue
                    for open_order in _not_before(mine.time, mine_later.time):
                        if not ordered.intersect(open_order).is_empty():
                            return f"two accesses to {mine.array} are not proved to keep their order"
        return ""


def _comparable(mine: Statement, theirs: Statement) -> bool:
    """Say whether two statements of one shape have elements of as many coordinates in equal places."""
    return len(mine.values) == len(theirs.values) and all(
        (one.local, one.writes, len(one.element)) == (other.local, other.writes, len(other.element))
        for one, other in zip(mine.accesses, theirs.accesses, strict=True)
    )


def _equal_elements(mine: Statement, theirs: Statement) -> Any:
    return _elements(mine, theirs).intersect(mine.domain).intersect(theirs.domain)


def _equal_elements_in_range(mine: Statement, theirs: Statement) -> Any:
    return _elements(mine, theirs).intersect(mine.ranges).intersect(theirs.ranges)


def _equal_names(mine: Statement, theirs: Statement) -> Any:
    """Equal elements, and equal values of loop variables of one name that are no part of the grid."""
    named = {loop.name: loop for loop in theirs.loops if loop.kind is not LoopKind.GRID}
    pairs = [(loop, named[loop.name]) for loop in mine.loops if loop.name in named and loop.kind is not LoopKind.GRID]
    return _all([_equal_elements(mine, theirs), *(_same(one.symbol, other.symbol) for one, other in pairs)])


def _equal_places(mine: Statement, theirs: Statement) -> Any:
    """Equal elements, and equal values of loop variables in equal places; empty where there are not as many."""
    pairs = list(zip(mine.loops, theirs.loops, strict=False))
    both = _equal_elements(mine, theirs)
    if len(mine.loops) != len(theirs.loops):
        return both.subtract(both)
    return _all([both, *(_same(one.symbol, other.symbol) for one, other in pairs)])


def _shared(statement: Statement, other: Statement) -> int:
    """Return how many loops stand around both statements."""
    pairs = zip(statement.loops, other.loops, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(statement.loops), len(other.loops)))


def _elements(mine: Statement, theirs: Statement) -> Any:
    equations = [one.eq_set(other) for one, other in zip(mine.values, theirs.values, strict=True)]
    for one, other in zip(mine.accesses, theirs.accesses, strict=True):
        equations += [left.eq_set(right) for left, right in zip(one.element, other.element, strict=True)]
    return _all([_universe(), *equations])


def _pairs(
    mine: Statement, mine_later: Statement, theirs: Statement, theirs_later: Statement
) -> Iterator[tuple[Access, Access, Access, Access]]:
    """Yield accesses of two instances to one array, with those of the source in the same places."""
    for first, source_first in zip(mine.accesses, theirs.accesses, strict=True):
        for second, source_second in zip(mine_later.accesses, theirs_later.accesses, strict=True):
            if first.array == second.array and len(first.element) == len(second.element):
                yield first, second, source_first, source_second


def _same_element(first: Access, second: Access) -> Any:
    pairs = zip((*first.copy, *first.element), (*second.copy, *second.element), strict=True)
    return _all([_universe(), *(one.eq_set(other) for one, other in pairs)])


def _before(first: Time, second: Time) -> Iterator[Any]:
    """Yield sets whose union says that the first stands before the second in serial order."""
    prefix = _universe()
    for one, other in zip(first, second, strict=False):
        if isinstance(one, int) or isinstance(other, int):
            if one == other:
                continue
            if isinstance(one, int) and isinstance(other, int) and one < other:
                yield prefix
            return
        yield prefix.intersect(_below(one.symbol, other.symbol))
        prefix = prefix.intersect(_same(one.symbol, other.symbol))


def _not_before(first: Time, second: Time) -> Iterator[Any]:
    """Yield sets whose union says that the first need not happen before the second: another block, another thread
    of the same run of a phase, or later in the order of one thread or block.
    """
    prefix = _universe()
    for one, other in zip(first, second, strict=False):
        if isinstance(one, int) or isinstance(other, int):
            if one == other:
                continue
            if not (isinstance(one, int) and isinstance(other, int) and one < other):
                yield prefix
            return
        yield prefix.intersect(_below(other.symbol, one.symbol))
        if one.kind in (LoopKind.GRID, LoopKind.THREAD):
            yield prefix.intersect(_below(one.symbol, other.symbol))
        prefix = prefix.intersect(_same(one.symbol, other.symbol))
    yield prefix


def _different(first: Statement, second: Statement) -> Any:
    """Two instances of one statement that differ in some loop variable."""
    same = _all([_universe(), *(_same(a.symbol, b.symbol) for a, b in zip(first.loops, second.loops, strict=True))])
    return same.complement()


def _without(pairs: Any, symbols: Iterable[str]) -> Any:
    import islpy as isl

    for symbol in symbols:
        place = pairs.find_dim_by_name(isl.dim_type.param, symbol)
        if place >= 0:
            pairs = pairs.project_out(isl.dim_type.param, place, 1)
    return pairs


def _universe() -> Any:
    import islpy as isl

    return isl.Set("{ : }")


def _same(first: str, second: str) -> Any:
    import islpy as isl

    return isl.Set(f"[{first}, {second}] -> {{ : {first} = {second} }}")


def _below(first: str, second: str) -> Any:
    import islpy as isl

    return isl.Set(f"[{first}, {second}] -> {{ : {first} < {second} }}")


def _all(sets: Sequence[Any]) -> Any:
    return reduce(lambda one, other: one.intersect(other), sets)


def _any(sets: Sequence[Any], whole: Any) -> Any:
    return reduce(lambda one, other: one.union(other), sets, whole.subtract(whole))


def _target(statement: Statement) -> str:
    return statement.accesses[-1].array
