"""Assertions that exclude a race: found among simple ones by trying each, for the way out of a diagnostic.

One is an answer only where the proof, done again with it, finds the accesses of the array apart, and where some launch
with iterations can keep it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import islice

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.prover import sample_points
from metafork.algebra.ranges import bounds
from metafork.analysis.facts import program_facts
from metafork.analysis.races.proof import Unproved
from metafork.analysis.races.races import Race, proved_free, symbols_behind
from metafork.analysis.reference_walk import references_and_quotients
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Facts
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.polynomial_code import code_of
from metafork.ir.program import (
    Binary,
    Expr,
    IntConst,
    Parameter,
    Phase,
    Program,
    Var,
    binary,
    parts_of,
    walk_expression,
    walk_statements,
)
from metafork.ir.translation_unit import Promise

MOST_TRIED = 12
"""Assertions that are tried for one array."""
MOST_ASKED = 2
"""Assertions with which the solvers are asked."""
_Pair = tuple[Reference, Reference]
MOST_NUMBER = 64
"""The greatest number that a size is asserted to be a multiple of."""


class Assertions:
    """Tries assertions for the arrays of a program.

    They are about parameters that are ``sayable``; ``promises`` are taken on trust, and after ``deadline`` (of
    ``time.monotonic``) nothing more is proved.
    """

    def __init__(
        self, program: Program, sayable: Collection[str], promises: Collection[Promise], deadline: float | None
    ) -> None:
        self._program = program
        self._facts = program_facts(program)
        self._known = Positivity(self._facts.constraints, self._facts.derived)
        self._own = [one for one in program.parameters if one.name in sayable and not one.of_serial_loop]
        self._promises = promises
        self._deadline = deadline
        self._found: dict[str, tuple[Expr, ...]] = {}

    def against(self, race: Race) -> tuple[Expr, ...]:
        """Return conditions, perhaps none, that exclude a race and all others on its array."""
        pair = (race.first, race.second)
        used = symbols_behind(pair, self._program, self._facts)
        zeros = [one for one in self._own if one.name in used and race.parameters.get(one.name) == 0]
        first = tuple(binary(">=", _variable(one), IntConst(1)) for one in zeros)
        return self._first(pair, [first] if first else [], race.parameters)

    def for_proof(self, pair: Unproved) -> tuple[Expr, ...]:
        """Return conditions, perhaps none, with which all accesses to the array of a pair are proved apart."""
        return self._first((pair.first, pair.second), [], None) if pair.compared else ()

    def _first(
        self, pair: _Pair, likely: list[tuple[Expr, ...]], broken_at: Mapping[str, int] | None
    ) -> tuple[Expr, ...]:
        array = pair[0].array
        if array not in self._found:
            tried = [*likely, *islice(dict.fromkeys(self._conditions(array)), MOST_TRIED)]
            tried = [some for some in tried if not _hold(some, broken_at)]
            cheaply = next((some for some in tried if self._does(some, array, thorough=False)), ())
            asked = tried[: 0 if cheaply else MOST_ASKED]
            self._found[array] = cheaply or next((some for some in asked if self._does(some, array, thorough=True)), ())
        return self._found[array]

    def _does(self, conditions: Sequence[Expr], array: str, *, thorough: bool) -> bool:
        """Say whether the accesses to an array are proved apart with conditions that some launch can keep."""
        assumed = replace(self._program, assumptions=(*self._program.assumptions, *conditions))
        facts = program_facts(assumed)
        if not sample_points((*facts.constraints, *facts.running), facts.derived):
            return False
        return proved_free(assumed, facts, array, self._promises, self._deadline, thorough=thorough)

    # --- what is tried ------------------------------------------------------------------------------------------------

    def _conditions(self, array: str) -> Iterator[tuple[Expr, ...]]:
        """Yield conditions on what the indices of an array are computed from, the likelier ones first."""
        found, _ = references_and_quotients(self._program, self._facts)
        accesses = [one for one in found if one.array == array]
        used = symbols_behind(accesses, self._program, self._facts)
        blocks = _block_sizes(self._program)
        sizes = [one for one in self._own if one.name in used and one.name not in blocks]
        multiples: list[list[Expr]] = [
            [binary("==", binary("%", _variable(one), IntConst(number)), IntConst(0)) for one in sizes]
            for number in sorted(_numbers(accesses, self._facts, self._program))
        ]
        rows: list[list[Expr]] = [self._long_enough(accesses, sizes, widest) for widest in (False, True)]
        alone = dict.fromkeys((one,) for some in (*multiples, *rows) for one in some)
        yield from alone
        yield from (tuple(some) for some in (*rows, *multiples) if len(some) > 1)
        yield from ((*some, *rows[1]) for some in multiples if rows[1])

    def _long_enough(self, accesses: Sequence[Reference], sizes: Sequence[Parameter], widest: bool) -> list[Expr]:
        """Return that rows are as long as what lies in them, innermost rows first: ``pitch >= m``.

        A row holds what each access touches, or for ``widest`` ones what any two do.
        """
        known = self._known
        variables = {one.name: _variable(one) for one in self._own}
        indices = [(index, one) for one in accesses for index in one.indices if index is not None]
        left, found, names = list(sizes), list[Expr](), {one.name for one in sizes}
        while left and indices:
            cut = {one.name: [index.divide(Polynomial.symbol(one.name)) for index, _ in indices] for one in left}
            stride = min(left, key=lambda one: max(_degree(column, names) for _, column in cut[one.name]))
            left.remove(stride)
            if not any(row for row, _ in cut[stride.name]):
                continue
            ends = [
                (self._greatest(column, one, variables), self._greatest(-column, one, variables))
                for (_, column), (_, one) in zip(cut[stride.name], indices, strict=True)
            ]
            lengths = [
                most + less + 1
                for number, (most, _) in enumerate(ends)
                for other, (_, less) in enumerate(ends)
                if most is not None and less is not None and (widest or number == other)
            ]
            value = Polynomial.symbol(stride.name)
            lengths = [one for one in dict.fromkeys(lengths) if not known.non_negative(value - one)]
            longest = [one for one in lengths if all(known.non_negative(one - other) for other in lengths)]
            if longest and longest[0].whole and stride.name not in longest[0].symbols:
                found.append(binary(">=", _variable(stride), code_of(longest[0], variables)))
            indices = [(row, one) for (row, _), (_, one) in zip(cut[stride.name], indices, strict=True)]
        return found

    def _greatest(self, value: Polynomial, access: Reference, variables: Container[str]) -> Polynomial | None:
        """Return what a part of an index is at most, in parameters; ``None`` where that is not seen."""
        conditions = [c for guard in access.guards for c in guard.constraints]
        conditions += [c for loop in access.loops for c in loop.inside]
        terms = value.terms().items()
        less = [
            value + room * (factor / -own)
            for room in rooms(conditions)
            for mono, factor in terms
            if (own := room.coefficients.get(mono, 0)) < 0 < factor and any(name not in variables for name, _ in mono)
        ]
        found = (most for one in (*less, value) for most in bounds(one, access.loops, self._known, largest=True))
        return next((most for most in found if all(name in variables for name in most.symbols)), None)


def _degree(value: Polynomial, names: Container[str]) -> int:
    """Return how often names stand in a term at most."""
    return max((sum(exponent for name, exponent in mono if name in names) for mono in value.terms()), default=0)


def _hold(conditions: Iterable[Expr], point: Mapping[str, int] | None) -> bool:
    """Say whether conditions hold at a point, if there is one: what is found there is found with them as well."""
    if point is None:
        return False
    with suppress(NoValueError):
        return all(integer_value(one, point) for one in conditions)
    return False


def _numbers(accesses: Iterable[Reference], facts: Facts, program: Program) -> set[int]:
    """Return numbers that steps, quotients and remainders take: what a size may have to be a multiple of."""
    found = [loop.step for access in accesses for loop in access.loops]
    found += [quotient.operands[1] for quotient in facts.derived if quotient.kind in ("floor", "ceiling")]
    values = [abs(one.constant_value()) for one in found if one.is_constant]
    terms = [index.terms() for access in accesses for index in access.indices if index is not None]
    values += [abs(coefficient) for one in terms for mono, coefficient in one.items() if mono]
    parts = [part for part in parts_of(program.body) if isinstance(part, Binary) and part.op == "%"]
    values += [Fraction(part.right.value) for part in parts if isinstance(part.right, IntConst)]
    return {int(one) for one in values if one.denominator == 1 and 2 <= one <= MOST_NUMBER}


def _block_sizes(program: Program) -> set[str]:
    phases = [stmt for stmt in walk_statements(program.body) if isinstance(stmt, Phase)]
    extents = [loop.extent for phase in phases for loop in phase.threads]
    return {part.name for extent in extents for part in walk_expression(extent) if isinstance(part, Var)}


def _variable(parameter: Parameter) -> Var:
    return Var(parameter.name, parameter.type)
