"""The accesses of a program to pointers, as conditions on symbols: where each is made, and what element it touches.

What comes in is a program; what goes out, access by access, is an index in symbols of loops and quotients, and what
holds of these where the access is made.  A condition that is a choice, ``i != k``, makes two accesses of one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.index_cases import with_cases
from metafork.analysis.opaque_references import OpaqueWalk
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import Choice
from metafork.analysis.values.intervals import Interval
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.analysis.values.opaque import OpaqueSymbols
from metafork.analysis.values.scope import Facts
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Element, Expr, Program
from metafork.ir.rewriting import map_body, map_expression

MOST_CASES = 8
"""Accesses that choices make of one."""


class Access(Struct, frozen=True, dict=True):
    """One access, or one case of it.  ``index`` is ``None`` where it is not known.

    ``loops`` are those around it, ``quotients`` the symbols that are functions of theirs, each defined by those before.
    ``conditions`` hold where the access is made, and ``lasting`` ones held in all iterations of a loop before, too.
    They all say exactly where it is made, if it is ``exact``.  ``known`` is what else is known of the symbols.
    """

    array: str
    index: Polynomial | None
    loops: tuple[LoopRange, ...]
    quotients: tuple[DerivedSymbol, ...]
    conditions: tuple[Constraint, ...]
    lasting: tuple[tuple[Constraint, str], ...]
    known: tuple[Constraint, ...]
    exact: bool

    @cached_property
    def own(self) -> frozenset[str]:
        """The symbols that are not parameters."""
        named = {name for one in (*self.known, *self.conditions) for name in one.symbols if " " in name}
        return frozenset({*(loop.var for loop in self.loops), *(one.name for one in self.quotients), *named})

    @cached_property
    def unknown(self) -> frozenset[str]:
        """The symbols of values of which no more is known than conditions say."""
        return self.own - {*(loop.var for loop in self.loops), *(one.name for one in self.quotients)}

    @cached_property
    def read(self) -> frozenset[str]:
        """The symbols of its index whose values are known to memory alone."""
        symbols = frozenset() if self.index is None else self.index.symbols
        return self.unknown | {name for name in symbols - self.own if " " in name}

    @cached_property
    def named(self) -> frozenset[str]:
        """The symbols of all that is known of it."""
        symbols = frozenset() if self.index is None else self.index.symbols
        return symbols.union(*(one.symbols for one in (*self.conditions, *self.known)))

    @cached_property
    def where(self) -> tuple[Constraint, ...]:
        """What holds of parameters alone where the access is made at all."""
        return tuple(one for one in (*self.conditions, *self.known) if not one.symbols & self.own)


def accesses_of(program: Program, facts: Facts, arrays: Collection[str]) -> tuple[list[Access], list[DerivedSymbol]]:
    """Return the accesses to some arrays, and the symbols of quotients of parameters that the facts do not define.

    Whoever touches an element touches its whole row; of arrays of structures, a member its whole structure.
    """
    walk = _Walk(facts)
    walk.program(with_cases(_whole(program, arrays), arrays))
    found = _with_either([one for one in walk.found if one.array in arrays])
    cases = [case for one in found for case in _cases(one, walk.opaque)]
    return list(dict.fromkeys(cases)), walk.quotients[len(facts.derived) :]


def _with_either(accesses: Sequence[Reference]) -> list[Reference]:
    """Return accesses, and of two of one element, where a condition holds and where it does not, one without it."""
    found = list(accesses)
    for one in found:  # which grows
        for other in list(found):
            for place, (guard, its) in enumerate(zip(one.guards, other.guards, strict=False)):
                if guard.condition is not its.condition or guard.truth == its.truth or guard.meaning.exact:
                    continue
                rest = one.guards[:place] + one.guards[place + 1 :]
                if rest != other.guards[:place] + other.guards[place + 1 :] or not _alike(one, other):
                    continue
                either = replace(one, guards=rest, certain=one.certain and other.certain)
                found += [] if either in found else [either]
    return found


def _alike(one: Reference, other: Reference) -> bool:
    """Say whether accesses touch one element in loops of one range, whatever these count with."""
    names = {its.var: Polynomial.symbol(own.var) for own, its in zip(one.loops, other.loops, strict=False)}
    first, its = one.indices[0], other.indices[0]
    if one.array != other.array or len(one.loops) != len(other.loops) or first is None or its is None:
        return False
    ranges = [
        (own.kind, own.dense, own.constraints())
        == (each.kind, each.dense, tuple(c.substitute(names) for c in each.constraints()))
        for own, each in zip(one.loops, other.loops, strict=True)
    ]
    return all(ranges) and first == its.substitute(names)


class _Walk(OpaqueWalk):
    """Knows quotients by symbols of their own wherever they are computed, and what the host computes by its name."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._of_host = frozenset()

    def _declared(self, name: str, type_: ScalarType, value: Expr) -> Polynomial | None:
        return self._kept(name, type_, value)

    def _lost(
        self, name: str, type_: ScalarType, bounds: Interval | None, most: Polynomial | None = None
    ) -> Polynomial | None:
        """Return a symbol for a scalar of a thread, too: what conditions say of it bounds an index."""
        if self._phase is None or not type_.integer:
            return super()._lost(name, type_, bounds, most)
        low, high = bounds or (None, None)
        if type_.size < ScalarType.INT.size:
            low, high = type_.least if low is None else low, type_.greatest if high is None else high
        return self.opaque.unknown(
            name, once_a_block=False, low=0 if low is None and not type_.signed else low, high=high
        )

    def _tested(self, condition: Expr) -> None:
        """Visit a condition, once more than there are iterations."""
        loop = self._loops[-1]
        trips = None if loop.trips is None else loop.trips + 1
        self._loops[-1] = replace(loop, trips=trips, inside=())
        self._unsaid += 1
        super()._tested(condition)
        self._unsaid -= 1
        self._loops[-1] = loop
        if loop.trips is not None and loop.trips.symbols <= self.scope.constants:
            self.scope.ranges.learn((at_most(1, loop.trips),))  # in the body: there is an iteration


def _cases(access: Reference, opaque: OpaqueSymbols) -> Iterator[Access]:
    index = access.indices[0]
    ranges = [one for loop in access.loops for one in loop.constraints()]
    plain = [one for guard in access.guards for one in guard.constraints]
    lasting = [one for guard in access.guards if guard.lasts for one in guard.constraints]
    choices = [(choice, guard.lasts) for guard in access.guards for choice in guard.meaning.alternatives]
    exact = access.certain and all(guard.meaning.exact for guard in access.guards)
    choices = [(possible, lasts) for choice, lasts in choices if (possible := _possible(choice, plain)) is not None]
    while prod(len(choice) for choice, _ in choices) > MOST_CASES:
        choices.pop()
        exact = False
    for chosen in product(*(choice for choice, _ in choices)):
        conditions = (*ranges, *plain, *(one for case in chosen for one in case))
        held = [*lasting, *(one for case, (_, lasts) in zip(chosen, choices, strict=True) if lasts for one in case)]
        names = {name for one in conditions for name in one.symbols} | (index.symbols if index is not None else set())
        behind = opaque.behind(names)
        divided = [one for one in behind if one.kind == "quotient" and len(one.symbols) == 1]
        inner = [(one, [loop.var for loop in access.loops if loop.var in one.symbols]) for one in held]
        yield Access(
            access.array,
            index,
            access.loops,
            tuple(DerivedSymbol(one.symbols[0], "floor", one.operands) for one in divided),
            tuple(dict.fromkeys(conditions)),
            tuple((one, loops[-1]) for one, loops in inner if loops),
            tuple(constraint for one in behind for constraint in one.constraints),
            exact
            and len(divided) == len(behind)
            and all(loop.dense for loop in access.loops)
            and not any(opaque.behind(one.symbols) for one in held),
        )


def _possible(choice: Choice, known: Sequence[Constraint]) -> Choice | None:
    """Return the cases of a choice that symbols of known values leave, ``None`` where they make one of them true."""
    zeros = [(one.difference, name) for one in known if one.relation == "==" for name in one.symbols]
    values = {name: Polynomial.symbol(name) - zero * sign for zero, name in zeros if (sign := _alone(zero, name))}
    cases = [([one.substitute(values) for one in case], case) for case in choice]
    if any(all(not one.symbols and one.holds({}) for one in there) for there, _ in cases):
        return None
    return tuple(case for there, case in cases if all(one.symbols or one.holds({}) for one in there))


def _alone(zero: Polynomial, name: str) -> int:
    """Return the factor, 1 or -1, of the only symbol of a polynomial, or 0."""
    factor = zero.coefficients.get(((name, 1),), 0)
    return int(factor) if len(zero.symbols) == 1 and abs(factor) == 1 and zero.coefficient(name) == factor else 0


def _whole(program: Program, arrays: Collection[str]) -> Program:
    """Return a program to which the structures of some arrays are one array each, whatever views they have."""
    names = {one.name: one.whole for one in program.arrays if one.whole in arrays}

    def whole(expr: Expr) -> Expr | None:
        if not isinstance(expr, Element) or expr.array not in names:
            return None
        return replace(expr, array=names[expr.array], indices=tuple(map_expression(one, whole) for one in expr.indices))

    return replace(program, body=map_body(program.body, whole)) if names else program
