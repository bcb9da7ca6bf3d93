"""How many elements a program touches of an array without extents: one more than the greatest index that it can have.

The greatest value of an index is looked for by eliminating loop symbols from it, the innermost first: at the end of
the symbol's range, or by a condition around the access (``p < n``), which is added as often as makes the symbol vanish.
Every way ends in an upper bound in parameters.  Of several accesses the bound that is proved to be the largest is
taken, of one access the least in some launches that are tried, in which it must be touched indeed (``reached``): the
caller's memory may end behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.index_cases import with_cases
from metafork.analysis.extents.reached import Launch, is_reached, launches, least
from metafork.analysis.facts import program_facts
from metafork.analysis.loop_ranges import LoopRange
from metafork.analysis.references import Guard, Reference, references_and_quotients
from metafork.ir.program import Array, Element, Expr, Program
from metafork.ir.rewriting import map_body, map_expression
from metafork.lazy_dataclass import dataclass

WAYS = 64
"""Steps of the search for bounds, an access."""


@dataclass(frozen=True, slots=True)
class Extents:
    """Of each array either the text of its extent, in C and in parameters, or why there is none."""

    known: Mapping[str, str]
    unknown: Mapping[str, str]


def extents_of(programs: Sequence[Program], arrays: Iterable[str], names: Iterable[str]) -> Extents:
    """Return the extents of one-dimensional arrays that programs of one function share, in terms of some names.

    Of arrays of structures it is the number of structures; whoever touches a member touches the whole.
    """
    arrays = list(arrays)
    programs = [with_cases(_with_whole_structures(program, arrays), arrays) for program in programs]
    facts = [program_facts(program) for program in programs]
    found: list[tuple[Reference, ...]] = []
    for number, program in enumerate(programs):
        accesses, quotients = references_and_quotients(program, facts[number])
        found.append(accesses)
        facts[number] = replace(facts[number], derived=(*facts[number].derived, *quotients))
    points = launches(facts)
    symbols = {symbol.name: symbol for one in facts for symbol in one.derived}
    together = Prover({c: None for one in facts for c in one.constraints}, tuple(symbols.values()))
    known: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for array in arrays:
        tops: list[tuple[Polynomial | None, Sequence[Constraint]]] = []
        own = [[access for access in accesses if access.array == array] for accesses in found]
        for number, one in enumerate(facts):
            prover = Prover(one.constraints, one.derived)
            for access in own[number]:
                top = _greatest(access, prover, [point[number] for point in points])
                loops = {loop.var for loop in access.loops}
                tops.append((top, [c for guard in access.guards for c in guard.constraints if not c.symbols & loops]))
        bounds = [(top, where) for top, where in tops if top is not None]
        if len(bounds) < len(tops):
            unknown[array] = f"the greatest index of `{array}` is not known in parameters"
            continue
        most = _largest(bounds, together)
        if most is not None and not is_reached(most, own, points):
            unknown[array] = f"the elements of `{array}` up to index {most} are not all touched"
            continue
        text = None if most is None else _text(most + 1, symbols, frozenset(names))
        if text is None:
            unknown[array] = f"which index of `{array}` is the greatest is not known in parameters"
        else:
            known[array] = text
    return Extents(known, unknown)


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


def _greatest(access: Reference, prover: Prover, points: Sequence[Launch]) -> Polynomial | None:
    """Return the greatest index of an access, ``None`` where no bound is known or none is the least."""
    (index,) = access.indices
    if index is None:
        return None
    inner = prover.with_premises(access.constraints())
    conditions = [one for guard in access.guards for one in guard.constraints]
    conditions += [one for loop in access.loops for one in loop.inside]
    conditions += [one for guard in access.guards for one in _left_over(guard, inner)]
    slacks = [-one.difference - (1 if one.relation == "<" else 0) for one in conditions if one.relation in ("<", "<=")]
    ways = _Ways(inner)
    found = list(dict.fromkeys(ways.bounds(index, access.loops, slacks)))
    return least(found, points) if found else None


def _left_over(guard: Guard, prover: Prover) -> Iterator[Constraint]:
    """Yield what a guard says where all but one of its alternatives are refuted: ``i != n - 1`` where ``i < n``."""
    for cases in guard.meaning.alternatives:
        open_ = [case for case in cases if not any(_refuted(one, prover) for one in case)]
        if len(open_) == 1:
            yield from open_[0]


def _refuted(constraint: Constraint, prover: Prover) -> bool:
    return constraint.relation != "==" and bool(prover.proves(constraint.negated()))


@dataclass(slots=True)
class _Ways:
    """The ways to a bound that were not tried yet, and what knows signs."""

    prover: Prover
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
        for number, slack in enumerate(slacks):
            down = slack.coefficient(loop.var)
            times = None if not down else factor.divide_exactly(-down)
            if times is not None and self.prover.sign(times) == 1:
                others = (*slacks[:number], *slacks[number + 1 :])  # once each: it may bring other symbols back
                yield from self.bounds(value + slack * times, loops, others)
        sign = self.prover.sign(factor)
        if sign == -1:
            yield from self.bounds(value.substitute({loop.var: 0}), loops, slacks)
        elif sign == 1 and loop.trips is not None:
            yield from self.bounds(value.substitute({loop.var: loop.trips - 1}), loops, slacks)


def _largest(bounds: Sequence[tuple[Polynomial, Sequence[Constraint]]], prover: Prover) -> Polynomial | None:
    """Return the one that is proved to be the largest, each where it counts, ``None`` where none is."""
    ways = dict.fromkeys((bound, tuple(where)) for bound, where in bounds)
    provers = {where: prover.with_premises(where) if where else prover for _, where in ways}
    return next(
        (
            one
            for one in dict.fromkeys(bound for bound, _ in ways)
            if all(bound == one or provers[where].proves(at_most(bound, one)) for bound, where in ways)
        ),
        None,
    )


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
