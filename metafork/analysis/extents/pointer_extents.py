"""How many elements a program touches of an array without extents: one more than the greatest index that it has.

An extent is stated where it is proved, for all launches (``Start``): no access comes behind it, none is in front of
element 0, and the last element is touched in each launch, so that the caller's memory does not end before it, or none
is.  What differs from launch to launch is a choice: of two bounds of one index the lesser, of two accesses the one that
comes farther, and 0 where nothing is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, islice

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.accesses import Access, accesses_of
from metafork.analysis.extents.extent_expressions import Names, condition_of, expression_of
from metafork.analysis.extents.host_loops import WholeLoops, in_whole_loops
from metafork.analysis.extents.reached import NEVER, Reach, Region, Top
from metafork.analysis.extents.upper_bounds import upper_bounds
from metafork.analysis.facts import program_facts
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir.arithmetic.types import common_type
from metafork.ir.program import Conditional, Expr, IntConst, ParameterKind, Program
from metafork.printing.expressions import expression

CHOICES = 3
"""Choices one in the other."""
MOST_SPLITS = 6
"""Conditions that are tried for a choice."""
MOST_QUESTIONS = 80
"""Proofs of which Z3 looks for one, an array."""
MOST_REGIONS = 40
"""Parts of the launches that are looked at, of few accesses."""
MOST_LOOKED = 400
"""Accesses, in each part of the launches again, that are looked at."""
MOST_COMPARED = 3
"""Pairs of bounds of which one may be the least, or the largest."""


class Unknown(Struct, frozen=True):
    """Why an extent is not known, and, as C, what it is at most where that is; it may be known in ``other`` names."""

    why: str
    most: str = ""
    other: bool = False


class Extents(Struct, frozen=True):
    """Of each array either its extent, in parameters, or why there is none."""

    known: Mapping[str, Expr]
    unknown: Mapping[str, Unknown]


def extents_of(
    programs: Sequence[Program],
    arrays: Collection[str],
    names: Mapping[str, Expr],
    beside: Sequence[Collection[int]] | None = None,
    least: Mapping[str, int] | None = None,
    whole: Sequence[WholeLoops] = (),
) -> Extents:
    """Return the first extents of arrays that programs of one function share, in terms of some names, each
    given with what it stands for.

    ``beside`` are, for each program, those that run whenever it does: it does not matter which of them touches the last
    element.  Some arrays have ``least`` numbers of elements, touched or not.  ``whole`` are for each program serial
    loops around it, the innermost first, that run it in each of their iterations.
    """
    facts = [program_facts(_with_data(program)) for program in programs]
    ways = [
        [_Touched.of(*one) for one in _launches(program, facts[number], arrays, whole[number] if whole else ())]
        for number, program in enumerate(programs)
    ]
    known: dict[str, Expr] = {}
    unknown: dict[str, Unknown] = {}
    around = {one.name for program in programs for one in program.parameters if one.of_serial_loop}
    for array in arrays:
        told: dict[Expr, None] = {}
        for number, (program, (first, *more)) in enumerate(zip(programs, ways, strict=True)):
            if not any(one.array == array for one in first.accesses):
                continue
            found: Expr | Unknown = Unknown("")
            for way in (first, *more):
                region, accesses = way.region, [one for one in way.accesses if one.array == array]
                for other in beside[number] if beside else ():
                    touched = [one for one in ways[other][0].accesses if one.array == array]
                    foreign = (
                        _integers(programs[other]) - _integers(program) - {one.name for one in facts[other].derived}
                    )
                    if other == number or any(foreign & one.named for one in touched):
                        continue
                    joined = _joined(region, facts[other], programs[other])
                    if joined is not None:
                        region, accesses = joined, accesses + touched
                pointer = _Pointer(array, accesses, region, names, around, (least or {}).get(array, 0))
                extent = pointer.extent()
                found = found if isinstance(extent, Unknown) and way is not first else extent
                if not isinstance(found, Unknown):
                    break
            if isinstance(found, Unknown):
                unknown[array] = found
                break
            told[found] = None
        else:
            if len(told) == 1:
                known[array] = next(iter(told))
            else:
                unknown[array] = Unknown(f"schedules that need not all run touch more or less of `{array}`", other=True)
    return Extents(known, unknown)


def _integers(program: Program) -> set[str]:
    return {one.name for one in program.parameters}.union(one.name for one in program.derived)


class _Touched(Struct, frozen=True):
    """What a program touches in some of its launches, those of a ``region``."""

    region: Region
    accesses: list[Access]

    @staticmethod
    def of(facts: Facts, accesses: list[Access], quotients: Sequence[DerivedSymbol]) -> _Touched:
        """Return what is touched where facts hold."""
        symbols = tuple(dict.fromkeys((*facts.derived, *quotients)))
        premises = (*facts.constraints, *(one for symbol in quotients for one in symbol.constraints()))
        return _Touched(Region.of(premises, symbols, [one for each in accesses for one in each.conditions]), accesses)


def _launches(
    program: Program, facts: Facts, arrays: Collection[str], whole: WholeLoops
) -> Iterator[tuple[Facts, list[Access], Sequence[DerivedSymbol]]]:
    """Yield what one launch touches, and what all launches of loops around it touch together."""
    accesses, quotients = accesses_of(program, facts, arrays)
    yield facts, accesses, quotients
    for depth in range(1, len(whole) + 1):
        around = in_whole_loops(facts, accesses, whole[:depth])
        if around is not None:
            yield *around, quotients


def _with_data(program: Program) -> Program:
    """Return a program each of whose parameters may come to size an array, so that no serial loop is known to run."""
    data = tuple(replace(one, kind=ParameterKind.DATA) for one in program.parameters)
    return replace(program, parameters=data)


def _joined(region: Region, facts: Facts, program: Program) -> Region | None:
    """Return a region with the quotients of another program, if what this one asks of parameters is proved there.

    What it takes for granted is not asked for: assertions, which hold where it runs, and what keeps its kernel's
    numbers within their types, for its serial code touches the same elements.
    """
    scope = Scope.of(facts)
    granted = {*program.exactness, *(one for each in program.assumptions for one in meaning(scope, each).constraints)}
    for symbol in facts.derived:
        known = next((one for one in region.prover.quotients if one.name == symbol.name), None)
        if known is None and symbol.kind in ("floor", "ceiling"):
            dividend, divisor = symbol.operands
            if not region.prover.shows([at_most(0, dividend), at_most(1, divisor)]):
                return None
            region = region.narrowed(symbol.constraints(), symbol)
        elif known != symbol:
            return None
    asked = [one for one in facts.constraints if one not in granted]
    return region if region.prover.shows(asked) else None


class _Half(Struct, frozen=True):
    """A condition with the launches in which it holds, and does not, and the extent there if it needs no choice."""

    condition: Constraint
    sides: tuple[Region, Region]
    found: tuple[Expr | None, Expr | None]

    def choice(self, names: Names, then: Expr | None, rest: Expr | None) -> Expr:
        """Return the choice between what is found for both sides."""
        condition = condition_of(self.condition, names)
        assert then is not None
        assert rest is not None
        assert condition is not None
        return then if then == rest else Conditional(condition, then, rest, common_type(then.type, rest.type))


class _Pointer(Struct):
    """One array of a program, whose launches are a ``region``."""

    array: str
    accesses: Sequence[Access]
    region: Region
    names: Mapping[str, Expr]
    around: Collection[str]
    least: int
    tops: list[Top] = field(default_factory=list)
    symbols: Names = field(default_factory=Names)
    tried: int = 0

    def extent(self) -> Expr | Unknown:
        """Return the extent, or why it is not known."""
        either = self._join_cases()
        self.region = self.region.asking(MOST_QUESTIONS)
        quotients: dict[str, DerivedSymbol] = {one.name: one for one in self.region.prover.quotients}
        for access in self.accesses:
            prover = self.region.prover.with_premises((*access.known, *access.conditions), access.quotients)
            if prover.shows(NEVER):
                continue
            if access.index is None:
                return Unknown(f"the greatest index of `{self.array}` is not known in parameters")
            if not prover.shows(at_most(0, access.index)):
                if access.read & access.index.symbols:
                    return Unknown(f"the greatest index of `{self.array}` is not known in parameters")
                return Unknown(f"an index of `{self.array}` may be below 0, in front of where it points")
            bounds = upper_bounds(access, prover, self.region.prover)
            if not bounds.ways:
                return Unknown(f"the greatest index of `{self.array}` is not known in parameters")
            self.tops.append(Top(access, bounds))
            quotients |= {one.name: one for one in bounds.quotients if one.name not in quotients}
        for one in list(quotients.values())[len(self.region.prover.quotients) :]:
            self.region = self.region.narrowed(one.constraints(), one)
        self.symbols = Names(self.names, quotients, either)
        reach = Reach(self.tops)
        found = self._greatest(self.region, reach, CHOICES)
        if found is None and any(self._covering(self.region, reach, [Polynomial.constant(self.least - 1)])):
            return IntConst(self.least)
        return self._why(reach) if found is None else found

    def _join_cases(self) -> Mapping[str, Sequence[Sequence[Constraint]]]:
        """Make one access of many that differ in what holds of parameters only: it is made where one of them is.

        Return what holds in each case, by a symbol that is 1 where one of the cases holds.
        """
        alike: dict[Access, list[Access]] = {}
        for access in self.accesses:
            where = frozenset(access.where)
            inner = tuple(one for one in access.conditions if one not in where)
            known = tuple(one for one in access.known if one not in where)
            alike.setdefault(replace(access, conditions=inner, known=known), []).append(access)
        either: dict[str, Sequence[Sequence[Constraint]]] = {}
        joined: list[Access] = []
        for access, those in alike.items():
            common = [one for one in those[0].where if all(one in other.where for other in those[1:])]
            cases = [[one for one in other.where if one not in common] for other in those]
            if len(those) <= CHOICES or not all(cases):
                joined += those
                continue
            name = f"either'{len(either)}"
            either[name] = cases
            symbol = Polynomial.symbol(name)
            joined.append(replace(access, conditions=(*access.conditions, *common, at_most(1, symbol))))
            points = tuple(
                {**point, name: int(any(all(one.holds(point) for one in case) for case in cases))}
                for point in self.region.points
            )
            self.region = Region(self.region.prover.with_premises((at_most(symbol, 1),), (), points), points)
        self.accesses = joined
        return either

    def _greatest(self, region: Region, reach: Reach, choices: int) -> Expr | None:
        """Return the extent, split by conditions of which at least one side needs no other."""
        found = self._least_one(region, reach)
        if found is not None or not choices:
            return found
        halves: list[_Half] = []
        for condition in self._splits(region, [*reach.open]):
            sides = (region.narrowed((condition,)), region.narrowed((condition.negated(),)))
            half = _Half(condition, sides, (self._least_one(sides[0], reach), self._least_one(sides[1], reach)))
            if None not in half.found:
                return half.choice(self.symbols, *half.found)
            halves.append(half)
        halves.sort(key=lambda half: half.found == (None, None))
        for half in halves if choices > 1 else ():
            if half.found == (None, None) and choices < CHOICES:
                break
            then, rest = half.found
            then = self._greatest(half.sides[0], reach, choices - 1) if then is None else then
            rest = self._greatest(half.sides[1], reach, choices - 1) if rest is None and then is not None else rest
            if then is not None and rest is not None:
                return half.choice(self.symbols, then, rest)
        return None

    def _least_one(self, region: Region, reach: Reach) -> Expr | None:
        """Return the extent where it is one polynomial in all of a region."""
        self.tried += max(len(self.tops), MOST_LOOKED // MOST_REGIONS)
        if self.tried > MOST_LOOKED:
            return None
        reach.open.clear()
        for most in self._candidates(region, reach):
            extent = expression_of(most + 1, self.symbols)
            if extent is not None and reach.reaches(region, most):
                return extent
        return None if any(top.is_made(region) for top in self.tops) else IntConst(0)

    def _candidates(self, region: Region, reach: Reach) -> list[Polynomial]:
        """Return the bounds that no access goes beyond in a region, and comes up to in its points, or most of them."""
        short = self._short(region)
        exact = [*self._covering(region, reach, [bound for bound in short if not short[bound]])]
        rest = sorted((bound for bound in short if short[bound]), key=lambda bound: short[bound])
        return exact or [*islice(self._covering(region, reach, rest), 1)]

    def _short(self, region: Region) -> dict[Polynomial, int]:
        """Return the bounds that no access goes beyond in any point, and in how many points none comes up to them."""
        most = [(self._most(point), point) for point in region.points]
        short: dict[Polynomial, int] = {}
        for one in dict.fromkeys(bound for top in self.tops for bound in top.bounds.ways):
            room = [one.at(point) - value for value, point in most if value is not None]
            if min(room, default=0) >= 0:
                short[one] = sum(map(bool, room))
        return short

    def _covering(self, region: Region, reach: Reach, bounds: Iterable[Polynomial]) -> Iterator[Polynomial]:
        """Yield the bounds that are proved to cover all accesses in a region."""
        narrowed: dict[tuple[Constraint, ...], Region] = {(): region}

        def covers(top: Top, most: Polynomial) -> bool:
            if most in top.bounds.ways:
                return True
            where = top.access.where
            if where not in narrowed:
                narrowed[where] = region.narrowed(where)
            return any(reach.shows(narrowed[where], at_most(bound, most)) for bound in top.bounds.ways)

        return (one for one in bounds if all(covers(top, one) for top in self.tops))

    def _most(self, point: Mapping[str, int]) -> int | Fraction | None:
        """Return what the greatest index is at most in one launch, ``None`` where nothing is touched."""
        made = [top for top in self.tops if all(one.holds(point) for one in top.access.where)]
        most = [min(bound.at(point) for bound in top.bounds.ways) for top in made]
        return max((one for one in most if one >= 0), default=None)

    def _splits(self, region: Region, open_: Sequence[Constraint]) -> Iterator[Constraint]:
        """Yield conditions by which launches differ in what is the greatest index."""
        bounds = dict.fromkeys(bound for top in self.tops for bound in top.bounds.ways)
        conditions = [half for top in self.tops for one in top.access.where for half in _one_sided(one)]
        conditions += [at_most(1, one.trips) for top in self.tops for one in top.access.loops if one.trips is not None]
        most = [(self._most(point), point) for point in region.points]
        right = {one: {number for number, (value, at) in enumerate(most) if value == one.at(at)} for one in bounds}
        pairs = sorted(combinations(bounds, 2), key=lambda pair: -len(right[pair[0]] | right[pair[1]]))
        compared = [less_than(*pair) for pair in pairs[:MOST_COMPARED]]
        conditions += [*compared[:1], *_strongest(open_), *compared[1:]]
        left = MOST_SPLITS
        for one in dict.fromkeys(conditions):
            if one.symbols & {name for top in self.tops for name in top.access.own}:
                continue
            if condition_of(one, self.symbols) is None or region.proves(one) or region.proves(one.negated()):
                continue
            yield one
            left -= 1
            if not left:
                return

    def _why(self, reach: Reach) -> Unknown:
        """Return why no greatest index is proved."""
        covering = [*self._covering(self.region, Reach(self.tops), self._short(self.region))]
        extents = [(most, expression_of(most + 1, self.symbols)) for most in covering]
        said = min(
            ((most, extent) for most, extent in extents if extent is not None),
            key=lambda one: sum(one[0].evaluate(point) for point in self.region.points),
            default=None,
        )  # all of them are proved; the launches only say which is the least
        if said is None and covering:
            others = sorted({name for most in covering for name in self.symbols.others(most)})
            listed = ", ".join(f"`{name}`" for name in others)
            them = "it" if len(others) == 1 else "them"
            way_out = f"no parameter of the function; put the schedule into one that takes {them}"
            if {*others} & {*self.around}:
                way_out = "of a loop around the schedule; say how many there are in all"
            return Unknown(f"the greatest index of `{self.array}` depends on {listed}, {way_out}", other=True)
        other = any(expression_of(bound, self.symbols) is None for top in self.tops for bound in top.bounds.ways)
        if said is None:
            return Unknown(f"which index of `{self.array}` is the greatest is not known in parameters", other=other)
        most, extent = said
        missed = reach.missed or {}
        launch = ", ".join(f"{name} = {missed[name]}" for name in sorted(missed) if name in self.names)
        for_ = f" (it may not be for {launch})" if launch else ""
        last = expression_of(most, self.symbols)
        assert last is not None
        element = f"{self.array}[{expression(last)}]"
        return Unknown(
            f"nothing behind `{element}` is touched, but that it is touched itself is not proved{for_}",
            expression(extent),
            other,
        )


def _strongest(conditions: Iterable[Constraint]) -> list[Constraint]:
    """Return conditions without those that another one says more about: ``0 <= n`` where there is ``1 <= n``."""
    room = {half: half.difference + (half.relation == "<") for one in conditions for half in _one_sided(one)}

    def stronger(one: Constraint, other: Constraint) -> bool:
        more = room[one] - room[other]
        return more.is_constant and more.constant_value() > 0

    return [one for one in room if not any(stronger(other, one) for other in room)]


def _one_sided(condition: Constraint) -> tuple[Constraint, ...]:
    if condition.relation != "==":
        return (condition,)
    return at_most(condition.left, condition.right), at_most(condition.right, condition.left)
