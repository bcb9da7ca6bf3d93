"""Whether an element is touched in every launch: proved, case by case, with iterations that touch it as witnesses.

The launches of a program are a ``Region``: what holds of its parameters.  A witness serves those launches in which its
conditions hold.  Where these are not proved, the launches in which one of them does not hold are a smaller region, for
which there may be another witness; or nothing at all is touched there.  A few launches are gone through before
anything is asked for, to find conditions that do not hold in one of them: that never proves anything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from random import Random

from msgspec import Struct, field

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most, equal
from metafork.algebra.prover import Answers, Prover, sample_points
from metafork.algebra.ranges import Box
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.accesses import Access
from metafork.analysis.extents.upper_bounds import Bounds
from metafork.analysis.extents.witnesses import Witness, witnesses

DEPTH = 3
"""Conditions that are left open one in the other."""
MOST_POINTS = 48
"""Launches that are gone through."""
MOST_WITNESSES = 24
"""Witnesses of an access that are looked at."""
MOST_ENDS = 16
"""Launches, and of each first and last iterations of an access, that are looked at."""
MOST_TRIED = 4
"""Witnesses whose conditions are proved, a region."""
MOST_PROVED = 12
"""Witnesses whose conditions are proved, an index."""
MOST_PLAYED = 30_000
"""Witnesses that are gone through, in each launch again, an array: what is proved takes a tenth of it."""
MOST_ASKED = 500
"""Proofs that are looked for, an array."""
EFFORT = 100_000
"""Z3's ``rlimit`` of one question."""
NEVER = at_most(ONE, 0)
FAR = 1_000_003
"""What parameters are in some of the launches that are gone through."""


ANY = 3
"""A value of parameters that no condition names."""


class Region(Struct, frozen=True):
    """Launches: those whose parameters ``prover`` knows; ``points`` are some of them."""

    prover: Prover
    points: tuple[Mapping[str, int], ...]

    @staticmethod
    def of(premises: Iterable[Constraint], quotients: Iterable[DerivedSymbol], near: Iterable[Constraint]) -> Region:
        """Return a region, with points on either side of conditions of the program."""
        prover = _with_factors(Prover(premises, quotients, EFFORT))
        constants = {int(abs(c)) for one in near for c in one.difference.terms().values() if abs(c) > 1}
        numbers = sorted({one + by for one in constants for by in (-1, 0, 1)} | {FAR})
        first = sample_points(prover.premises, prover.quotients)
        derived = {one.name for one in prover.quotients}
        names = sorted({name for point in first for name in point} - derived)
        changes = [*product(first, names, numbers)]
        some = [*product(first[:2], names, (0, 1, 2)), *Random(0).sample(changes, min(len(changes), 2 * MOST_POINTS))]
        tried = chain(first, ({**point, name: number} for point, name, number in some))
        points = list(islice((point for one in tried for point in _evaluated(one, prover)), MOST_POINTS))
        return Region(prover.with_premises((), (), points), tuple(points))

    def narrowed(self, more: Iterable[Constraint], symbol: DerivedSymbol | None = None) -> Region:
        """Return the launches in which more holds; or all of them, which have a ``symbol`` more, defined in them."""
        more = tuple(more)
        if symbol is not None:
            # A parameter of which nothing is known yet may have any value.
            free = dict.fromkeys({name for operand in symbol.operands for name in operand.symbols}, ANY)
            each = ({**free, **point} for point in self.points)
            known = tuple({**point, symbol.name: symbol.evaluate(point)} for point in each)
            return Region(self.prover.with_premises(more, (symbol,), known), known)
        points = tuple(point for point in self.points if all(one.holds(point) for one in more))
        if self.points and not points:
            points = tuple(sample_points((*self.prover.premises, *more), self.prover.quotients))
        return Region(self.prover.with_premises(more, (), points), points)

    def asking(self, most: int) -> Region:
        """Return the same launches, about which Z3 is asked a few questions at most."""
        prover = self.prover
        answers = Answers(most)
        return Region(Prover(prover.premises, prover.quotients, EFFORT, answers, self.points), self.points)

    def proves(self, goal: Constraint) -> bool:
        """Say whether something is proved for all launches."""
        return self.prover.shows(goal)

    def is_empty(self) -> bool:
        """Say whether there is no such launch, as far as is proved."""
        return not self.points and self.prover.shows(NEVER)


def _with_factors(prover: Prover) -> Prover:
    """Return what knows, too, that dividends and all factors of a product are positive where these are."""
    one = [symbol for symbol in prover.quotients if prover.shows(at_most(1, Polynomial.symbol(symbol.name)))]
    least = {"floor": 0, "ceiling": 1}
    pairs = [(least[each.kind] or each.operands[1], each.operands[0]) for each in one if each.kind in least]
    more = [at_most(low - high, 0) for low, high in pairs]
    box = Box((*prover.premises, *more))
    more += [at_most(int(bound), Polynomial.symbol(name)) for name, bound in box.least.items() if bound >= 1]
    return prover.with_premises(more)


def _evaluated(point: dict[str, int], prover: Prover) -> Iterator[Mapping[str, int]]:
    """Yield a point with the values of its quotients, if it is one of a region."""
    try:
        for quotient in prover.quotients:
            point[quotient.name] = quotient.evaluate(point)
    except ZeroDivisionError:
        return
    if all(one.holds(point) for one in prover.premises):
        yield point


class Top(Struct, frozen=True):
    """An access with what its index is at most."""

    access: Access
    bounds: Bounds

    def is_made(self, region: Region) -> bool:
        """Say whether the access may be made in some launch of a region."""
        if any(self._is_made_at(point) for point in region.points[:MOST_ENDS]):
            return True
        more = (*self.access.conditions, *self.access.known)
        return not region.prover.with_premises(more, self.access.quotients, ()).shows(NEVER)

    def _is_made_at(self, point: Mapping[str, int]) -> bool:
        """Say whether the access is made in a first or last iteration of its loops in a launch, not in too many."""
        for last in islice(product((True, False), repeat=len(self.access.loops)), MOST_ENDS):
            values = dict(point)
            for loop, end in zip(self.access.loops, last, strict=True):
                if loop.trips is not None and not loop.trips.symbols <= values.keys():
                    return False
                values[loop.var] = 0 if loop.trips is None or not end else int(loop.trips.evaluate(values)) - 1
            steps: list[Constraint | DerivedSymbol] = [*self.access.quotients, *self.access.conditions]
            if all(value >= 0 for value in values.values()) and not any(_AtPoints.of([values]).failing(steps)):
                return True
        return False


class Reach(Struct):
    """Looks for proofs that an index is reached; ``missed`` is a launch in which it may not be.

    ``open`` are conditions that were not proved, of witnesses that serve some launches.
    """

    tops: Sequence[Top]
    missed: Mapping[str, int] | None = None
    open: dict[Constraint, None] = field(default_factory=dict)
    known: dict[tuple[Polynomial, bool], list[Witness]] = field(default_factory=dict)
    left: int = MOST_PROVED
    to_play: int = MOST_PLAYED
    to_ask: int = MOST_ASKED

    def reaches(self, region: Region, index: Polynomial, used: tuple[Witness, ...] = ()) -> bool:
        """Say whether in each launch of a region an index is proved to be touched, or nothing with one from 0 on.

        Those that were ``used`` serve no launch of it.
        """
        if self.to_play < 0 or self.to_ask < 0:
            return False
        self.left = self.left if used else MOST_PROVED
        found = dict.fromkeys(one for one in self._witnesses(index, True) if one not in used)
        tried: list[Witness] = []
        at_points = _AtPoints.of(region.points)
        for one in found:
            if len(tried) < MOST_TRIED and not any(at_points.failing(one.steps)):
                tried.append(one)
                if self._serves(one, region, index, used):
                    return True
        found |= dict.fromkeys(one for one in self._witnesses(index, False) if one not in used)
        self.to_play -= len(found) * len(region.points)
        failing = {one: at_points.failing(one.steps) for one in found}
        ranked = sorted(found, key=lambda one: sum(map(bool, failing[one])))
        for number, point in enumerate(region.points):
            steps = [failing[one][number] for one in ranked]
            if index.at(point) >= 0 and all(steps):
                self.missed = point if self.missed is None else self.missed
                counted = Counter(step for some in steps for step in dict.fromkeys(some))
                likely = sorted(counted, key=lambda step: (-counted[step], len(step.symbols)))
                self.open |= dict.fromkeys(likely[:MOST_TRIED])
                return False
        for one in ranked[:MOST_TRIED]:
            serves = not region.points or [] in failing[one]
            if serves and one not in tried and self._serves(one, region, index, used):
                return True
        return not any(top.is_made(region) for top in self.tops) and region.proves(equal(index + 1, 0))

    def shows(self, region: Region, goal: Constraint) -> bool:
        """Say whether something is proved for all launches of a region, as long as there are proofs to look for."""
        self.to_ask -= 1
        return self.to_ask >= 0 and region.proves(goal)

    def _witnesses(self, index: Polynomial, bound: bool) -> list[Witness]:
        """Return witnesses for an index, of accesses that it bounds or of others."""
        if (index, bound) not in self.known:
            tops = [top for top in self.tops if top.access.exact and (index in top.bounds.ways) == bound]
            ways = [(top, way) for top in tops for way in top.bounds.ways.get(index, [()])]
            each = [witnesses(top.access, way, index, top.bounds.ends) for top, way in ways]
            found = [one for some in each for one in islice(some, MOST_WITNESSES)]
            self.known[index, bound] = list(dict.fromkeys(found))
        return self.known[index, bound]

    def _serves(self, witness: Witness, region: Region, index: Polynomial, used: tuple[Witness, ...]) -> bool:
        """Say whether a witness serves a region, and others the launches in which its conditions do not hold."""
        self.left -= 1
        if self.left < 0:
            return False
        here = region
        open_: list[Region] = []
        for step in witness.steps:
            if isinstance(step, DerivedSymbol):
                here = here.narrowed(step.constraints(), step)
            elif not self.shows(here, step):
                if len(open_) + len(used) == DEPTH:
                    return False
                self.open |= {} if used else {step: None}
                open_ += [here.narrowed((one.negated(),)) for one in _halves(step)]
                here = here.narrowed((step,))
        for condition, loop, end in witness.lasting:
            before = Polynomial.symbol(f"{loop} before")
            earlier = here.prover.with_premises((at_most(before + ONE, end),))
            if not earlier.shows(condition.substitute({loop: before})):
                return False
        return all(one.is_empty() or self.reaches(one, index, (*used, witness)) for one in open_)


def _halves(condition: Constraint) -> tuple[Constraint, ...]:
    if condition.relation != "==":
        return (condition,)
    return at_most(condition.left, condition.right), at_most(condition.right, condition.left)


class _AtPoints(Struct):
    """Conditions at points: in which of these one fails is found once, for many witnesses ask for the same ones.

    Quotients are named by what they divide, so that one name has one value at a point.
    """

    values: list[defaultdict[str, int]]
    failed: dict[Constraint | DerivedSymbol, list[int]] = field(default_factory=dict)

    @staticmethod
    def of(points: Iterable[Mapping[str, int]]) -> _AtPoints:
        return _AtPoints([defaultdict[str, int](int, point) for point in points])

    def failing(self, steps: Iterable[Constraint | DerivedSymbol]) -> list[list[Constraint]]:
        """Return the conditions that do not hold, for each point; what follows a quotient by zero is not asked."""
        result: list[list[Constraint]] = [[] for _ in self.values]
        ended: set[int] = set()
        for step in steps:
            for number in self._failed(step):
                if number in ended:
                    continue
                if isinstance(step, DerivedSymbol):
                    ended.add(number)
                    result[number].append(NEVER)
                else:
                    result[number].append(step)
        return result

    def _failed(self, step: Constraint | DerivedSymbol) -> list[int]:
        """Return the numbers of the points at which a condition does not hold, or a quotient has no value."""
        if step not in self.failed:
            self.failed[step] = [number for number, point in enumerate(self.values) if not _holds(step, point)]
        return self.failed[step]


def _holds(step: Constraint | DerivedSymbol, values: dict[str, int]) -> bool:
    """Say whether a condition holds at a point, or a quotient has a value, which the point has from then on."""
    if not isinstance(step, DerivedSymbol):
        return step.holds(values)
    if not step.operands[-1].evaluate(values):
        return False
    values[step.name] = step.evaluate(values)
    return True
