"""A few launches of programs: small values of their parameters that the programs admit.

Where a program divides by numbers, ``n / 128`` blocks say, ``n`` is also tried around multiples of them: a block or
two among them, which reach less than many do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, gcd, lcm, prod
from random import Random

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import Facts

POINTS = 12
"""Launches that are tried."""

TRIES = 400
"""Values of parameters that are looked at, to find as many launches."""

LARGEST_UNIT = 1 << 20
"""The greatest number that parameters are tried as multiples of."""

_NUMBERS = (range(3, 10), (4, 8), (4, 6, 7, 11, 13, 19), (3, 6))


Launch = Mapping[str, int]
"""Values of parameters and of all that is derived from them."""


def launches(programs: Sequence[Facts]) -> list[tuple[Launch, ...]]:
    """Return a few launches of programs with common parameters, small ones, and none where there are none."""
    found: dict[tuple[int, ...], tuple[Launch, ...]] = {}
    for given in _tried(programs):
        values = [_with_derived(given, facts) for facts in programs]
        possible = tuple(one for one in values if one is not None)
        if len(possible) == len(values):
            found.setdefault(tuple(given.values()), possible)
            if len(found) == POINTS:
                break
    return list(found.values())


def _tried(programs: Sequence[Facts]) -> Iterator[dict[str, int]]:
    """Yield values of the parameters, those around multiples of numbers in turn with small ones."""
    names = sorted({name for facts in programs for name in _parameters(facts)})
    units = _units([symbol for facts in programs for symbol in facts.derived])
    least = {name: max(_least(name, facts) for facts in programs) for name in names}
    alike = not any(units.get(name) or least[name] > 1 for name in names)
    random, other = Random(0), Random(1)
    for number in range(TRIES):
        # Also numbers that divide each other, as they often do, and some that lie far apart.
        some = _NUMBERS[number // 2 % len(_NUMBERS)] if not alike else _NUMBERS[number % len(_NUMBERS)]
        if alike or number % 2:
            yield {name: random.choice(some) for name in names}
        else:
            yield {name: _around(sorted(units.get(name, {1})), least[name], some, other) for name in names}


def _around(units: Sequence[int], least: int, some: Sequence[int], random: Random) -> int:
    """Return a number not below the least, at a multiple of one of some units, or a little off it."""
    unit = random.choice(units)
    first = ceil(least / unit)
    times = random.choice((1, 2, 3, random.choice(some)) if unit > 1 else some)
    off = random.choice((0, 0, 0, 1, unit // 2, unit - 1)) if unit > 1 else 0
    return unit * (first + times - (1 if first else 0)) + off


def _units(derived: Sequence[DerivedSymbol]) -> dict[str, set[int]]:
    """Return by parameter the numbers that it is divided by, one behind the other, and their least multiple.

    ``n / 4 / 32`` divides by 128, and ``n / T`` with ``T / 32`` warps by 32.
    """
    found: dict[str, set[int]] = {}
    for _ in range(2):  # a divisor may be divided itself, behind it
        through: dict[str, dict[str, int]] = {}
        for symbol in derived:
            by, operands = 1, symbol.operands
            if symbol.kind in ("floor", "ceiling"):
                divisor = symbol.operands[1]
                by = _content(divisor) * prod(max(found.get(name, {1})) for name in divisor.symbols)
                operands = symbol.operands[:1]
            own = through.setdefault(symbol.name, {})
            for name in {name for one in operands for name in one.symbols}:
                for parameter, factor in through.get(name, {name: 1}).items():
                    own[parameter] = max(own.get(parameter, 1), factor * by)
        for own in through.values():
            for parameter, factor in own.items():
                if 1 < factor <= LARGEST_UNIT:
                    found.setdefault(parameter, set()).add(factor)
    for numbers in found.values():
        if (together := lcm(*numbers)) <= LARGEST_UNIT:
            numbers.add(together)
    return found


def _content(value: Polynomial) -> int:
    """Return the greatest number that divides a polynomial, 1 where it is not one of integers."""
    factors = list(value.terms().values())
    if any(one.denominator != 1 for one in factors):
        return 1
    return gcd(*(int(one) for one in factors)) or 1


def _least(name: str, facts: Facts) -> int:
    """Return what a parameter is at least by a condition on it alone, 0 where none says so."""
    least = Fraction(0)
    for one in facts.constraints:
        if one.symbols == {name} and (factor := one.difference.coefficient(name)) is not None and factor.is_constant:
            number, by = one.difference.substitute({name: 0}).constant_value(), factor.constant_value()
            if by < 0 or (by and one.relation == "=="):
                least = max(least, -number / by + (one.relation == "<"))
    return ceil(least)


def _parameters(facts: Facts) -> frozenset[str]:
    derived = {symbol.name for symbol in facts.derived}
    used = frozenset(name for constraint in facts.constraints for name in constraint.symbols)
    return (used | frozenset(n for value in facts.values.values() for n in value.symbols)) - derived


def _with_derived(given: Mapping[str, int], facts: Facts) -> dict[str, int] | None:
    """Return the values of all symbols, ``None`` where there is no launch with them."""
    values = dict(given)
    for symbol in facts.derived:
        try:
            values[symbol.name] = symbol.evaluate(values)
        except ZeroDivisionError:
            return None
    return values if all(one.holds(values) for one in facts.constraints) else None
