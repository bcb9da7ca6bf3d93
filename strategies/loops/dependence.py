"""Are the iterations of a serial loop independent, so that they may run in any order and in different blocks?

``iterations_independent(program, k)`` asks whether, within one point of the grid, an element that one iteration of the
loop ``k`` writes may be touched by another iteration.  What needs no proof, because ``meta_for`` promises it:

- points of the grid touch nothing of each other's that is written, whatever their iterations of ``k``;
- within one phase, between two barriers, threads touch nothing of each other's that is written.

So two accesses are compared for k < k' and k' < k, at one grid point, and at one thread where both stand in one
phase that no block-level loop repeats (``k`` itself included); otherwise at any two threads, for a barrier between
the two may order them today.  All other loop variables are free on both sides.

A pair is disjoint when one index of the two differs always; a linear index is split into row and column before, where
that is proved (``metafork.analysis.memory.windows``).  Three provers are asked in turn, cheapest first: signs of
coefficients after substituting ranges (``certified``, which settles products of symbols such as ``k*B + j``), islpy
where everything is affine, and Z3.  Uniform conditions are decided path by path before (Figure 7's ``t % 2``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, equal, less_than
from metafork.algebra.prover import PROVED, Proof, Prover, Verdict
from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.source_cfg import UniformPath, uniform_paths
from metafork.analysis.facts import Facts, Scope
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.windows import coordinates, split_factors
from metafork.analysis.references import Reference
from metafork.ir.program import Program
from strategies.loops.affine import affine_conflict

MAX_ENUMERATED = 4
"""Loops with at most this constant number of iterations are compared iteration by iteration."""
MAX_NODES = 400
"""Bound of the search for a certificate."""


@dataclass(frozen=True, slots=True)
class _Case:
    """Two iterations to compare: the values of ``k`` for the first and the second access, and what is known of them."""

    first: Polynomial
    second: Polynomial
    premises: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Independence:
    """Whether iterations are independent; where that is not proved, why, and the access at fault."""

    verdict: Verdict
    reason: str = ""
    access: Reference | None = None

    def __bool__(self) -> bool:
        """Whether they are proved to be independent."""
        return self.verdict is Verdict.YES


def iterations_independent(
    program: Program, loop: str, analyses: Analyses, private: frozenset[str] = frozenset()
) -> Independence:
    """Say whether the iterations of the serial loop with variable ``loop`` are independent.

    Every access to an array that is written stands inside the loop (the caller sees to that), and no local hides
    another name.  ``private`` are block arrays declared inside the loop: each iteration has its own.  A NO or an
    UNKNOWN says in ``reason`` which accesses are at fault.
    """
    facts = analyses.facts(program)
    for path in uniform_paths(program):
        found = _on_path(path, analyses, facts, loop, private)
        if not found:
            return found
    return Independence(Verdict.YES)


def _on_path(path: UniformPath, analyses: Analyses, facts: Facts, loop: str, private: frozenset[str]) -> Independence:
    accesses = analyses.references(path.program, facts)
    written = {access.array for access in accesses if access.writes} - private
    accesses = tuple(access for access in accesses if access.array in written)
    scope = Scope.of(facts)
    decided = tuple(c for condition, truth in path.conditions for c in scope.implied(condition, truth))
    premises = (*facts.constraints, *decided)
    accesses = _in_coordinates(path.program, accesses, analyses.prover(premises, facts.derived))
    seen = set()
    for first in accesses:
        for second in accesses:
            if first.array != second.array or first.order > second.order or not (first.writes or second.writes):
                continue
            key = tuple((access.array, access.indices, *_circumstances(access)) for access in (first, second))
            if key in seen:
                continue
            seen.add(key)
            proof = _Pair(first, second, loop, premises, facts).disjoint()
            if not proof:
                return Independence(proof.verdict, proof.reason, _at_fault(first, second, loop))
    return Independence(Verdict.YES)


def _in_coordinates(program: Program, accesses: Sequence[Reference], prover: Prover) -> tuple[Reference, ...]:
    """Return accesses with linear indices split into row and column, where every access to the array allows that."""
    split: dict[str, tuple[Polynomial, ...]] = {}
    for array in program.arrays:
        own = [access for access in accesses if access.array == array.name]
        if own and all(index is not None for access in own for index in access.indices):
            split[array.name] = split_factors(program, prover, array, own)
    return tuple(
        replace(access, indices=coordinates(access, split[access.array])) if split.get(access.array) else access
        for access in accesses
    )


def _at_fault(first: Reference, second: Reference, loop: str) -> Reference:
    """Return the access of two that says more of why they may meet."""
    for access in (first, second):
        if _range_of(access, loop) is None or None in access.indices:
            return access
    return second if second.writes else first


def _circumstances(access: Reference) -> tuple[object, ...]:
    return (access.loops, access.guards, access.bounded, access.phase)


def _range_of(access: Reference, loop: str) -> LoopRange | None:
    return next((range_ for range_ in access.loops if range_.var == loop), None)


class _Pair:
    """Two accesses to one array, at least one a write."""

    def __init__(
        self, first: Reference, second: Reference, loop: str, premises: tuple[Constraint, ...], facts: Facts
    ) -> None:
        self._first = first
        self._second = second
        self._loop = loop
        self._premises = premises
        self._facts = facts
        self._range = _range_of(first, loop)

    def disjoint(self) -> Proof:
        """Say whether the two touch different elements in different iterations."""
        if self._range is None or _range_of(self._second, self._loop) is None:
            return Proof(Verdict.UNKNOWN, None, f"{self._first.array} is touched outside the loop over {self._loop}")
        if None in (*self._first.indices, *self._second.indices):
            return Proof(Verdict.UNKNOWN, None, f"an index of {self._first.array} is no known polynomial")
        if self._first == self._second and all(self._loop not in index.symbols for index in self._indices()):
            verdict = Verdict.NO if self._surely_made else Verdict.UNKNOWN
            return Proof(verdict, None, f"iterations of {self._loop} touch one element of {self._first.array}")
        for case in self._cases():
            proof = self._in_case(case)
            if not proof:
                return proof
        return PROVED

    def _indices(self) -> Iterator[Polynomial]:
        return (index for index in self._first.indices if index is not None)

    @property
    def _surely_made(self) -> bool:
        """Whether both accesses happen wherever their loops run, so that a common element is a conflict."""
        return all(access.bounded and not access.guards for access in (self._first, self._second))

    def _cases(self) -> Iterator[_Case]:
        assert self._range is not None
        trips = self._range.trips
        if trips is not None and trips.is_constant and trips.constant_value() <= MAX_ENUMERATED:
            numbers = [Polynomial.constant(number) for number in range(int(trips.constant_value()))]
            for low, high in combinations(numbers, 2):
                yield _Case(low, high, ())
                yield _Case(high, low, ())
            return
        low, gap = Polynomial.symbol(self._loop), Polynomial.symbol(f"{self._loop} gap")
        high = low + gap + 1
        bound = () if trips is None else (at_most(high + 1, trips),)
        yield _Case(low, high, bound)
        yield _Case(high, low, bound)

    def _renaming(self) -> Mapping[str, Polynomial]:
        """Return what the loop variables of the second access are called where they may differ from the first's."""
        # A loop of unknown shape is no part of ``loops``; it may stand at block level.
        one_thread = (
            self._first.phase == self._second.phase
            and self._first.phase is not None
            and self._first.bounded
            and self._second.bounded
            and all(range_.kind is not LoopKind.BLOCK for range_ in (*self._first.loops, *self._second.loops))
        )
        return {
            range_.var: Polynomial.symbol(f"{range_.var}'")
            for range_ in self._second.loops
            if range_.kind is not LoopKind.GRID and not (one_thread and range_.kind is LoopKind.THREAD)
        }

    def _in_case(self, case: _Case) -> Proof:
        here = {self._loop: case.first}
        there = {**self._renaming(), self._loop: case.second}
        known = [*case.premises]
        for access, values in ((self._first, here), (self._second, there)):
            known += [
                constraint.substitute(values)
                for range_ in access.loops
                for constraint in (range_.inside if range_.var == self._loop else range_.constraints())
            ]
            known += [constraint.substitute(values) for guard in access.guards for constraint in guard.constraints]
        left = [index.substitute(here) for index in self._indices()]
        right = [index.substitute(there) for index in self._second.indices if index is not None]
        differences = [b - a for a, b in zip(left, right, strict=True)]
        search = Certificates((*self._premises, *known), self._facts)
        if any(search.positive(difference) or search.positive(-difference) for difference in differences):
            return PROVED
        premises = (*self._premises, *known, *(equal(a, b) for a, b in zip(left, right, strict=True)))
        conflict = affine_conflict(premises)
        where = f"iterations of {self._loop} may touch one element of {self._first.array}"
        if conflict is not None:
            verdict = Verdict.NO if self._surely_made else Verdict.UNKNOWN
            return Proof(verdict, None, where) if conflict else PROVED
        for difference in differences:
            if not difference:
                continue
            others = tuple(equal(other, 0) for other in differences if other and other != difference)
            prover = Prover((*self._premises, *known, *others), self._facts.derived)
            for side in (difference, -difference):
                if prover.proves(less_than(0, side)):
                    return PROVED
        return Proof(Verdict.UNKNOWN, None, f"it is not proved that no two {where}")


class Certificates:
    """Proofs of positivity by substitution: bounds of symbols are put in until every coefficient is non-negative.

    A premise ``x >= e`` with ``x`` not in ``e`` gives the substitution ``x -> e + rest`` with ``rest >= 0``; the
    definition of a quotient gives its dividend as ``divisor*quotient + remainder``.  All symbols are non-negative.
    """

    def __init__(self, premises: Iterable[Constraint], facts: Facts) -> None:
        self._bounds: dict[str, list[Polynomial]] = {}
        self._nodes = 0
        for number, symbol in enumerate(facts.derived):
            if symbol.kind == "floor":
                numerator, denominator = symbol.operands
                rest = denominator * Polynomial.symbol(symbol.name) + Polynomial.symbol(f"remainder {number}")
                self._enter(numerator - rest)
        for number, premise in enumerate(premises):
            if premise.relation == "==":
                self._enter(premise.difference)
                self._enter(-premise.difference)
            else:
                strict = 1 if premise.relation == "<" else 0
                self._enter(premise.right - premise.left - strict - Polynomial.symbol(f"slack {number}"))

    def _enter(self, zero: Polynomial) -> None:
        """Take up an equation ``zero == 0`` as definitions of the symbols that stand in it alone, with factor 1."""
        for name in sorted(zero.symbols):
            if name.startswith(("slack ", "remainder ")) or zero.coefficient(name) != 1:
                continue
            definition = Polynomial.symbol(name) - zero
            # Only a definition that says more than ``x >= 0`` helps.
            if any(coeff > 0 and not _is_rest(mono) for mono, coeff in definition.terms().items()):
                self._bounds.setdefault(name, []).append(definition)

    def positive(self, value: Polynomial) -> bool:
        """Say whether ``value >= 1`` was proved; all coefficients must be integers for that to be ``value > 0``."""
        if not value or any(coeff.denominator != 1 for coeff in value.terms().values()):
            return False
        self._nodes = 0
        return self._search(value - 1, frozenset())

    def non_negative(self, value: Polynomial) -> bool:
        """Say whether ``value >= 0`` was proved."""
        self._nodes = 0
        return self._search(value, frozenset())

    def _search(self, value: Polynomial, used: frozenset[str]) -> bool:
        terms = value.terms()
        if all(coeff >= 0 for coeff in terms.values()):
            return True
        self._nodes += 1
        if self._nodes > MAX_NODES or len(used) > 5:
            return False
        helpful = {name for mono, coeff in terms.items() if coeff > 0 for name, _ in mono}
        for name in sorted(helpful - used):
            for definition in self._bounds.get(name, ()):
                if self._search(value.substitute({name: definition}), used | {name}):
                    return True
        return False


def _is_rest(mono: tuple[tuple[str, int], ...]) -> bool:
    return len(mono) == 1 and mono[0][0].startswith(("slack ", "remainder "))
