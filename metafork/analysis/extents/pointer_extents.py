"""How many elements a program touches of an array without extents: one more than the greatest index that it can have.

The greatest value of an index is looked for by eliminating loop symbols from it, the innermost first: at the end of
the symbol's range, or by a condition around the access (``p < n``), which is added as often as makes the symbol vanish.
Every way ends in an upper bound in parameters.  Of several accesses the bound that is proved to be the largest is
taken, of one access the least in some launches that are tried, in which it must be touched indeed (``reached``): the
caller's memory may end behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import rooms, whole
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.index_cases import with_cases
from metafork.analysis.extents.launches import Launch, launches
from metafork.analysis.extents.reached import is_below_zero, is_reached, least
from metafork.analysis.facts import Facts, program_facts
from metafork.analysis.hidden_references import references_with_hidden
from metafork.analysis.hidden_values import HiddenValues
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.references import Guard, Reference, references_and_quotients
from metafork.ir.program import Array, Element, Expr, Program
from metafork.ir.rewriting import map_body, map_expression

Bounds = tuple[Polynomial, ...]
"""Numbers of which the least is meant."""

MOST_UNEVEN = 4
"""By how much the least multiple of a divisor behind a dividend may be looked for."""

WAYS = 64
"""Steps of the search for bounds, an access."""


class Extents(Struct, frozen=True):
    """Of each array either the text of its extent, in C and in parameters, or why there is none."""

    known: Mapping[str, str]
    unknown: Mapping[str, str]


def extents_of(
    programs: Sequence[Program], arrays: Iterable[str], names: Iterable[str], *, within: bool = False
) -> Extents:
    """Return the first extents of arrays that programs of one function share, in terms of some names.

    Where pointers may lead ``within`` something larger, an index below 0 is an element too: it is asked for a proof
    that there is none.
    Whoever touches an element touches its whole row; of arrays of structures, a member its whole structure.  Indices
    are taken case by case, and where that does not tell, with symbols for quotients: ``(p / w) * w + p % w`` is ``p``.
    """
    arrays = list(arrays)
    programs = [_with_whole_rows(_with_whole_structures(program, arrays), arrays) for program in programs]
    found = _found([with_cases(program, arrays) for program in programs], arrays, names, _case_by_case, within)
    asked = [name for name in arrays if name in found.unknown or name in found.vague]
    if not asked:
        return Extents(found.known, found.unknown)
    again = _found(programs, asked, names, _with_symbols, within)
    known = {name: text for name, text in found.known.items() if name not in again.untouched} | dict(again.known)
    why = {**again.unknown, **found.unknown}
    return Extents(known, {name: why[name] for name in arrays if name not in known})


class _Found(Struct, frozen=True):
    """What one way to look at indices tells: as in ``Extents``, and where it may be wrong or another way may tell more.

    ``untouched`` are arrays of which not all elements are touched that loops and conditions allow; ``vague`` are those
    that are accessed under conditions which are not known, or not wholly.
    """

    known: Mapping[str, str]
    unknown: Mapping[str, str]
    untouched: Set[str]
    vague: Set[str]


class _Accesses(Struct, frozen=True):
    """Those of a program, quotients that the facts do not define, and what other symbols of conditions stand for."""

    found: tuple[Reference, ...]
    quotients: tuple[DerivedSymbol, ...]
    hidden: HiddenValues


def _case_by_case(program: Program, facts: Facts) -> _Accesses:
    return _Accesses(*references_and_quotients(program, facts), HiddenValues())


def _with_symbols(program: Program, facts: Facts) -> _Accesses:
    """Return the accesses with indices that are known once quotients have symbols.

    Of those that are clamped or wrapped no more is known than a range.
    """
    accesses, quotients, hidden = references_with_hidden(program, facts)
    known: list[Reference] = []
    for access in accesses:
        around = {name for loop in access.loops for one in loop.constraints() for name in one.symbols}
        if access.clamped or access.wrapped or hidden.behind(around) or not _of_quotients(access, hidden):
            access = replace(access, indices=(None,) * len(access.indices))
        known.append(access)
    return _Accesses(tuple(known), quotients, hidden)


def _of_quotients(access: Reference, hidden: HiddenValues) -> bool:
    """Say whether all symbols in the indices of an access are loops, parameters or quotients."""
    names = {name for index in access.indices if index is not None for name in index.symbols}
    return all(one.dividend is not None for one in hidden.behind(names))


def _found(
    programs: Sequence[Program],
    arrays: Sequence[str],
    names: Iterable[str],
    walk: Callable[[Program, Facts], _Accesses],
    within: bool,
) -> _Found:
    facts = [program_facts(program) for program in programs]
    found: list[tuple[Reference, ...]] = []
    hidden: list[HiddenValues] = []
    for number, program in enumerate(programs):
        accesses = walk(program, facts[number])
        found.append(accesses.found)
        hidden.append(accesses.hidden)
        facts[number] = replace(facts[number], derived=(*facts[number].derived, *accesses.quotients))
    points = launches(facts)
    symbols = {symbol.name: symbol for one in facts for symbol in one.derived}
    together = Prover({c: None for one in facts for c in one.constraints}, tuple(symbols.values()))
    known: dict[str, str] = {}
    unknown: dict[str, str] = {}
    untouched: set[str] = set()
    for array in arrays:
        tops_of: list[list[_Top]] = []
        own = [[access for access in accesses if access.array == array] for accesses in found]
        for number, one in enumerate(facts):
            prover = Prover(one.constraints, one.derived)
            at = [point[number] for point in points]
            tops_of.append([_Top.of(access, prover, at, hidden[number]) for access in own[number]])
        tops = [top for each in tops_of for top in each]
        if not all(top.bounds for top in tops):
            unknown[array] = f"the greatest index of `{array}` is not known in parameters"
            continue
        early = [[top.access for top in each if not top.starts] for each in tops_of]
        if any(early) and (within or is_below_zero(early, points, hidden)):
            unknown[array] = f"an index of `{array}` may be below 0, in front of where it points"
            continue
        most = _largest(tops, together)
        touched = bool(most) and is_reached(most, own, points, hidden)
        if not touched and len(made := [one for one in tops if one.prover.consistent() is not False]) < len(tops):
            most = _largest(made, together)  # without accesses that are never made
            touched = bool(most) and is_reached(most, own, points, hidden)
        if most and not touched:
            end = " or ".join(map(str, most))
            unknown[array] = f"the elements of `{array}` up to index {end} are not all touched"
            untouched.add(array)
            continue
        text = _least_text([one + 1 for one in most], symbols, frozenset(names))
        others = _others(most, symbols, frozenset(names))
        if text is None and others:
            listed = ", ".join(f"`{name}`" for name in others)
            around = {one.name for program in programs for one in program.parameters if one.of_serial_loop}
            taken = "it" if len(others) == 1 else "them"
            way_out = f"no parameter of the function; put the schedule into one that takes {taken}"
            if around & {*others}:
                way_out = "of a loop around the schedule; say how many there are in all"
            unknown[array] = f"the greatest index of `{array}` depends on {listed}, {way_out}"
        elif text is None:
            unknown[array] = f"which index of `{array}` is the greatest is not known in parameters"
        else:
            known[array] = text
    guarded = [(access.array, guard) for accesses in found for access in accesses for guard in access.guards]
    vague = {array for array, guard in guarded if not guard.meaning.exact}
    return _Found(known, unknown, untouched, vague)


def _with_whole_structures(program: Program, arrays: Sequence[str]) -> Program:
    """Return a program to which the structures of some arrays are one element each, whatever views they have."""
    names = {one.name: one.whole or one.name for one in program.arrays if one.members}
    names = {name: whole for name, whole in names.items() if whole in arrays}

    def whole(expr: Expr) -> Expr | None:
        if not isinstance(expr, Element) or expr.array not in names:
            return None
        indices = tuple(map_expression(index, whole) for index in expr.indices[:-1])
        return replace(expr, array=names[expr.array], indices=indices)

    found: dict[str, Array] = {}
    for array in program.arrays:
        one = array
        if array.name in names:
            one = replace(array, name=names[array.name], extents=array.extents[:-1])
        found.setdefault(one.name, one)
    return replace(program, arrays=tuple(found.values()), body=map_body(program.body, whole)) if names else program


def _with_whole_rows(program: Program, arrays: Sequence[str]) -> Program:
    """Return a program to which the rows of some arrays are one element each."""
    names = {one.name for one in program.arrays if len(one.extents) > 1 and one.name in arrays}

    def whole(expr: Expr) -> Expr | None:
        if not isinstance(expr, Element) or expr.array not in names:
            return None
        return replace(expr, indices=(map_expression(expr.indices[0], whole),))

    found = tuple(replace(one, extents=one.extents[:1]) if one.name in names else one for one in program.arrays)
    return replace(program, arrays=found, body=map_body(program.body, whole)) if names else program


class _Top(Struct, frozen=True):
    """What an access touches at most, what holds of parameters ``where`` it is made, and what knows all that holds.

    It ``starts`` at 0 or behind it where that is proved.
    """

    bounds: Bounds
    where: tuple[Constraint, ...]
    prover: Prover
    access: Reference

    @staticmethod
    def of(access: Reference, prover: Prover, points: Sequence[Launch], hidden: HiddenValues) -> _Top:
        loops = {loop.var for loop in access.loops}
        index = frozenset[str]() if access.indices[0] is None else access.indices[0].symbols
        known = [c for guard in access.guards for c in guard.constraints]
        known += [c for one in hidden.behind({*index, *(n for c in known for n in c.symbols)}) for c in one.constraints]
        where = tuple(one for one in known if not one.symbols & loops and not hidden.behind(one.symbols))
        inner = prover.with_premises(access.constraints())
        return _Top(_greatest(access, inner, points, hidden), where, inner, access)

    @property
    def starts(self) -> bool:
        """Whether no index is below 0, as far as is proved."""
        (index,) = self.access.indices
        return index is not None and bool(self.prover.proves(at_most(0, index)))


def _greatest(access: Reference, prover: Prover, points: Sequence[Launch], hidden: HiddenValues) -> Bounds:
    """Return bounds of which the least is the greatest index of an access, none where that is not known."""
    (index,) = access.indices
    if index is None:
        return ()
    conditions = [one for guard in access.guards for one in guard.constraints]
    conditions += [one for loop in access.loops for one in loop.inside]
    conditions += [one for guard in access.guards for one in _left_over(guard, prover)]
    room = [-one.difference - (1 if one.relation == "<" else 0) for one in conditions if one.relation in ("<", "<=")]
    quotients, slacks = _quotients(access, room, prover, points, hidden)
    orders = [(access.loops, False)]
    if quotients:
        both = ((*access.loops, *quotients), (*quotients, *access.loops))
        orders = [(loops, first) for loops in both for first in (False, True)]
    found = dict.fromkeys(one for loops, first in orders for one in _Ways(prover, first).bounds(index, loops, slacks))
    return least([one for one in found if not hidden.behind(one.symbols)], points)


def _quotients(
    access: Reference,
    slacks: Sequence[Polynomial],
    prover: Prover,
    points: Sequence[Launch],
    hidden: HiddenValues,
) -> tuple[Sequence[LoopRange], Sequence[Polynomial]]:
    """Return the ranges of quotients, as if these were loops, and slacks with what is known of them.

    ``p / w`` with ``p`` below ``h*w`` is below ``h``.
    """
    (index,) = access.indices
    assert index is not None
    found: list[LoopRange] = []
    slacks = list(slacks)
    names: set[str] = set()
    for one in hidden.behind(name for value in (index, *slacks) for name in value.symbols):
        if one.dividend is None or one.divisor is None or len(one.symbols) > 1:
            continue
        known = [slack for slack in slacks if _names_of(slack, hidden) <= names]
        bounds = list(_Ways(prover).bounds(one.dividend, (*access.loops, *found), known))
        ends = [most + more for most in bounds for more in range(1, MOST_UNEVEN + 1)]  # any end behind is one
        trips = [trips for end in ends if (trips := end.divide_exactly(one.divisor)) is not None and whole(trips)]
        for end in least([trip for trip in trips if not hidden.behind(trip.symbols)], points)[:1]:
            found.append(LoopRange(one.symbols[0], end, LoopKind.SERIAL))
            names.add(one.symbols[0])
            slacks += rooms(one.constraints)
    return found, [slack for slack in slacks if _names_of(slack, hidden) <= names]


def _names_of(value: Polynomial, hidden: HiddenValues) -> set[str]:
    return {name for one in hidden.behind(value.symbols) for name in one.symbols}


def _left_over(guard: Guard, prover: Prover) -> Iterator[Constraint]:
    """Yield what a guard says where all but one of its alternatives are refuted: ``i != n - 1`` where ``i < n``."""
    for cases in guard.meaning.alternatives:
        open_ = [case for case in cases if not any(_refuted(one, prover) for one in case)]
        if len(open_) == 1:
            yield from open_[0]


def _refuted(constraint: Constraint, prover: Prover) -> bool:
    return constraint.relation != "==" and bool(prover.proves(constraint.negated()))


_Steps = Iterator[tuple[Polynomial, Sequence[Polynomial]]]


class _Ways(Struct):
    """The ways to a bound that were not tried yet, and what knows signs."""

    prover: Prover
    ranges_first: bool = False
    left: int = WAYS

    def bounds(
        self, value: Polynomial, loops: Sequence[LoopRange], slacks: Sequence[Polynomial]
    ) -> Iterator[Polynomial]:
        """Yield polynomials without loop symbols that a value is never above; ``slacks`` are never below 0."""
        loop = next((one for one in reversed(loops) if one.var in value.symbols), None)
        if loop is None:
            yield value
            return
        factor = value.coefficient(loop.var)
        self.left -= 1
        if factor is None or self.left < 0:
            return
        steps = (self._by_conditions(value, factor, loop, slacks), self._by_range(value, factor, loop, slacks))
        for step in reversed(steps) if self.ranges_first else steps:
            for greater, left in step:
                yield from self.bounds(greater, loops, left)

    def _by_conditions(
        self, value: Polynomial, factor: Polynomial, loop: LoopRange, slacks: Sequence[Polynomial]
    ) -> _Steps:
        """Yield what a value is not above by a condition that bounds the loop's symbol, and the other conditions."""
        for number, slack in enumerate(slacks):
            down = slack.coefficient(loop.var)
            times = None if not down else factor.divide_exactly(-down)
            if times is not None and self.prover.sign(times) == 1:
                # Once each: it may bring other symbols back.
                yield value + slack * times, (*slacks[:number], *slacks[number + 1 :])

    def _by_range(self, value: Polynomial, factor: Polynomial, loop: LoopRange, slacks: Sequence[Polynomial]) -> _Steps:
        """Yield what a value is at the end of the loop's range where it is the greatest."""
        sign = self.prover.sign(factor)
        if sign == -1:
            yield value.substitute({loop.var: 0}), slacks
        elif sign == 1 and loop.trips is not None:
            yield value.substitute({loop.var: loop.trips - 1}), slacks


def _largest(tops: Sequence[_Top], prover: Prover) -> Bounds:
    """Return the bounds whose least is proved to be the largest, each where it counts, none where there are none."""
    ways = dict.fromkeys((top.bounds, top.where) for top in tops)
    provers = {where: prover.with_premises(where) if where else prover for _, where in ways}

    def below(one: Polynomial, bounds: Bounds, where: tuple[Constraint, ...]) -> bool:
        return one in bounds or any(provers[where].proves(at_most(other, one)) for other in bounds)

    candidates = dict.fromkeys(bounds for bounds, _ in ways)
    return next((most for most in candidates if all(below(one, *way) for way in ways for one in most)), ())


def _others(values: Iterable[Polynomial], symbols: Mapping[str, DerivedSymbol], names: Set[str]) -> list[str]:
    """Return what values depend on but for the given names, quotients taken apart."""
    found: set[str] = set()
    asked = {name for value in values for name in value.symbols}
    while asked:
        name = asked.pop()
        if name in symbols:
            asked |= {one for operand in symbols[name].operands for one in operand.symbols}
        elif name not in names:
            found.add(name)
    return sorted(found)


def _least_text(
    values: Sequence[Polynomial], symbols: Mapping[str, DerivedSymbol], names: frozenset[str]
) -> str | None:
    """Return the least of values as C; ``None`` where there are none, or they have other names than the given ones."""
    texts = [_text(value, symbols, names) for value in values]
    result = texts[0] if texts else None
    for text in texts[1:]:
        result = None if text is None or result is None else f"({result} < {text} ? {result} : {text})"
    return result


def _text(value: Polynomial, symbols: Mapping[str, DerivedSymbol], names: frozenset[str]) -> str | None:
    """Return a polynomial as C, quotients written out; ``None`` where it has other names than the given ones."""
    terms: list[str] = []
    for monomial, coefficient in sorted(value.terms().items(), key=lambda term: term[1] < 0):
        factors: list[str] = []
        for name, exponent in monomial:
            text = name if name in names else _quotient(symbols.get(name), symbols, names)
            if text is None:
                return None
            factors += [text] * exponent
        if coefficient.denominator != 1:
            return None
        number = abs(int(coefficient))
        if number != 1 or not factors:
            factors.insert(0, str(number))
        sign = "-" if coefficient < 0 else "+"
        terms += [sign, " * ".join(factors)]
    if not terms:
        return "0"
    return " ".join(terms[1:] if terms[0] == "+" else ["0", *terms])


def _quotient(symbol: DerivedSymbol | None, symbols: Mapping[str, DerivedSymbol], names: frozenset[str]) -> str | None:
    if symbol is None or symbol.kind != "floor":
        return None
    above, below = (_text(operand, symbols, names) for operand in symbol.operands)
    return None if above is None or below is None else f"(({above}) / ({below}))"
