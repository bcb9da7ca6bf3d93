"""How many elements a program touches of an array without extents: one more than the greatest index that it can have.

The greatest value of an index is looked for by eliminating loop symbols from it, the innermost first: at the end of
the symbol's range, or by a condition around the access (``p < n``), which is added as often as makes the symbol vanish.
Every way ends in an upper bound in parameters; one that is proved to be the least of them is taken, and of several
accesses the greatest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from metafork.analysis.loop_ranges import LoopRange
from metafork.analysis.references import Reference, references
from metafork.ir.program import Program

WAYS = 64
"""Bounds that are looked for, an access."""


@dataclass(frozen=True, slots=True)
class Extents:
    """Of each array either the text of its extent, in C and in parameters, or why there is none."""

    known: Mapping[str, str]
    unknown: Mapping[str, str]


def extents_of(programs: Sequence[Program], arrays: Iterable[str], names: Iterable[str]) -> Extents:
    """Return the extents of one-dimensional arrays that programs of one function share, in terms of some names."""
    facts = [program_facts(program) for program in programs]
    found = [references(*both) for both in zip(programs, facts, strict=True)]
    symbols = {symbol.name: symbol for one in facts for symbol in one.derived}
    together = Prover({c: None for one in facts for c in one.constraints}, tuple(symbols.values()))
    known: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for array in arrays:
        tops: list[Polynomial | None] = []
        for one, accesses in zip(facts, found, strict=True):
            prover = Prover(one.constraints, one.derived)
            tops += [_greatest(access, prover) for access in accesses if access.array == array]
        bounds = [top for top in tops if top is not None]
        if len(bounds) < len(tops):
            unknown[array] = f"the greatest index of `{array}` is not known in parameters"
            continue
        most = _chosen(bounds, together, largest=True)
        text = None if most is None else _text(most + 1, symbols, frozenset(names))
        if text is None:
            unknown[array] = f"which index of `{array}` is the greatest is not known in parameters"
        else:
            known[array] = text
    return Extents(known, unknown)


def _greatest(access: Reference, prover: Prover) -> Polynomial | None:
    """Return the greatest index of an access, ``None`` where no bound is known or none is proved to be the least."""
    (index,) = access.indices
    if index is None:
        return None
    inner = prover.with_premises(access.constraints())
    conditions = [one for guard in access.guards for one in guard.constraints]
    conditions += [one for loop in access.loops for one in loop.inside]
    slacks = [-one.difference - (1 if one.relation == "<" else 0) for one in conditions if one.relation in ("<", "<=")]
    ways = _bounds(index, access.loops, slacks, inner)
    found = list(dict.fromkeys(bound for bound, _ in zip(ways, range(WAYS), strict=False)))
    return _chosen(found, prover, largest=False)


def _bounds(
    value: Polynomial, loops: Sequence[LoopRange], slacks: Sequence[Polynomial], prover: Prover
) -> Iterator[Polynomial]:
    """Yield polynomials without loop symbols that a value is never above; ``slacks`` are never below 0."""
    loop = next((one for one in reversed(loops) if one.var in value.symbols), None)
    if loop is None:
        yield value
        return
    factor = value.coefficient(loop.var)
    if factor is None:
        return
    for slack in slacks:
        down = slack.coefficient(loop.var)
        if down is None or not down.is_constant or down.constant_value() >= 0:
            continue
        times = factor * (ONE.constant_value() / -down.constant_value())
        if prover.sign(times) == 1:
            yield from _bounds(value + slack * times, loops, slacks, prover)
    sign = prover.sign(factor)
    if sign == -1 or sign == 0:
        yield from _bounds(value.substitute({loop.var: 0}), loops, slacks, prover)
    elif sign == 1 and loop.trips is not None:
        yield from _bounds(value.substitute({loop.var: loop.trips - 1}), loops, slacks, prover)


def _chosen(bounds: Sequence[Polynomial], prover: Prover, *, largest: bool) -> Polynomial | None:
    """Return the one that is proved to be the largest or the least, ``None`` where none is."""
    bounds = list(dict.fromkeys(bounds))

    def first(one: Polynomial, other: Polynomial) -> bool:
        low, high = (other, one) if largest else (one, other)
        return low == high or prover.sign(high - low) in (0, 1) or bool(prover.proves(at_most(low, high)))

    return next((one for one in bounds if all(first(one, other) for other in bounds)), None)


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
