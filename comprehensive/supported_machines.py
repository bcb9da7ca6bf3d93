"""Which leaves no machine of today's CUDA can choose: what ``--machine FIRST..LAST`` leaves out of a tree."""

from __future__ import annotations

from collections.abc import Sequence

from comprehensive.options import machine_limits
from comprehensive.systems.start import Start, within
from comprehensive.systems.systems import System
from comprehensive.tree.schedule_tree import Leaf
from metafork.algebra.polynomial import Constraint
from metafork.algebra.positivity import Positivity, whole
from metafork.algebra.symbols import DerivedSymbol
from metafork.runtime.machine import SUPPORTED, Between


def leaves_for_no_machine(start: Start, leaves: Sequence[Leaf], derived: Sequence[DerivedSymbol]) -> tuple[int, ...]:
    """Return the numbers of leaves that are shown to be empty on all machines between the supported presets.

    No solver is asked: a condition fails by ranges of symbols and premises that are added up, or nothing is said.
    """
    limits: list[Constraint] = []
    numbers: dict[str, int] = {}
    for name, limit in machine_limits(SUPPORTED).items():
        symbol = start.machine.get(name)
        if symbol is not None and isinstance(limit, Between):
            limits += within(symbol, limit)
        elif symbol is not None and not isinstance(limit, Between):
            numbers[symbol] = int(limit)
    # Targets of ratios are no integers, as the proofs below take symbols to be: what mentions one is left aside.
    known = [*start.constraints, *limits, *(fact for symbol in derived for fact in symbol.constraints())]
    premises = tuple(fact.substitute(numbers) for fact in known if start.real.isdisjoint(fact.symbols))
    knowledge = Positivity(premises)
    systems = {
        leaf.id: [
            tuple(member.substitute(numbers) for member in system if start.real.isdisjoint(member.symbols))
            for system in leaf.systems
        ]
        for leaf in leaves
    }
    return tuple(
        number for number, own in systems.items() if all(_empty(system, premises, knowledge) for system in own)
    )


def _empty(members: System, premises: tuple[Constraint, ...], knowledge: Positivity) -> bool:
    """Say whether a member of a system is shown never to hold beside the others and what is known of ``premises``."""
    known = knowledge.extended(members)
    for at, member in enumerate(members):
        facts = (*premises, *members[:at], *members[at + 1 :])
        # ``left <= right`` fails where ``left - right - 1 >= 0``, ``left < right`` where ``left - right >= 0``.
        slack = member.left - member.right - (1 if member.relation == "<=" else 0)
        if member.relation != "==" and whole(slack) and known.follows_from(slack, facts):
            return True
    return False
