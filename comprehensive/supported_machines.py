"""Which leaves no machine of today's CUDA can choose: what ``--machine FIRST..LAST`` leaves out of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from comprehensive.options import machine_limits
from comprehensive.systems.start import Start, within
from comprehensive.systems.systems import System
from comprehensive.tree.schedule_tree import Leaf
from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.positivity import Positivity, rooms, whole
from metafork.algebra.symbols import DerivedSymbol
from metafork.runtime.machine import SUPPORTED, Between


def leaves_for_no_machine(start: Start, leaves: Sequence[Leaf], derived: Sequence[DerivedSymbol]) -> tuple[int, ...]:
    """Return the numbers of leaves that are shown to be empty on all machines between the supported presets."""
    supported = SupportedMachines.of(start, derived)
    return tuple(leaf.id for leaf in leaves if not any(map(supported.admit, leaf.systems)))


class SupportedMachines(Struct, frozen=True):
    """What holds on all machines between the supported presets: ``numbers`` of symbols, and what is ``known``.

    No solver is asked: a condition fails by ranges of symbols and premises that are added up, or nothing is said.
    ``real`` are the targets of ratios, which are no integers, as the proofs take symbols to be: what mentions one is
    left aside.
    """

    numbers: Mapping[str, Polynomial | int]
    known: Positivity
    rooms: Sequence[Polynomial]
    real: frozenset[str]

    @staticmethod
    def of(
        start: Start, derived: Sequence[DerivedSymbol], values: Mapping[str, Polynomial] | None = None
    ) -> SupportedMachines:
        """Return it for the machines of a tree; ``values`` are what other symbols stand for."""
        limits: list[Constraint] = []
        numbers: dict[str, Polynomial | int] = dict(values or {})
        for name, limit in machine_limits(SUPPORTED).items():
            symbol = start.machine.get(name)
            if symbol is not None and isinstance(limit, Between):
                limits += within(symbol, limit)
            elif symbol is not None and not isinstance(limit, Between):
                numbers[symbol] = int(limit)
        known = [*start.constraints, *limits, *(fact for symbol in derived for fact in symbol.constraints())]
        premises = tuple(fact.substitute(numbers) for fact in known if start.real.isdisjoint(fact.symbols))
        return SupportedMachines(numbers, Positivity(premises), rooms(premises), start.real)

    def admit(self, system: System) -> bool:
        """Say whether some of the machines may satisfy a system: false only where none is shown to."""
        members = [member.substitute(self.numbers) for member in system if self.real.isdisjoint(member.symbols)]
        if any(member.difference.is_constant and not member.holds({}) for member in members):
            return False
        # A member fails where the premises and the members, itself among them, show its opposite.
        known, left = self.known.extended(members), [*self.rooms, *rooms(members)]
        # Limits that do not hold stand last, and are what most machines exceed.
        return not any(known.follows_from(slack, left) for slack in _opposites(reversed(members)))


def _opposites(members: Iterable[Constraint]) -> Iterator[Polynomial]:
    """Yield what is not negative where a member does not hold: ``x - y - 1`` for ``x <= y``."""
    for member in members:
        slack = member.left - member.right - (1 if member.relation == "<=" else 0)
        if member.relation != "==" and whole(slack):
            yield slack
