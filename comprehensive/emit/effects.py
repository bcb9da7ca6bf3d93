"""What the schedules of a file do to arrays: which parts each surely overwrites, and what others of a function do.

Bytes move by it (``metafork/residents.h``): what is overwritten before it is read need not go to the device, and only
what was written comes back; where that is not known beforehand, what comes back is compared with what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from metafork.analysis.overwriting import Overwriting, Region, overwriting
from metafork.analysis.reference_walk import references_and_quotients
from metafork.comprehensive.emit.signature import host_arrays, signature_of
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.ir.program import Program


class Effect(Struct, frozen=True):
    """What a schedule does to one array, by the words of ``metafork_effect``; ``regions`` are surely overwritten.

    ``derived`` define the symbols in these that are no parameters, and perhaps others.
    """

    written: bool = False
    exact: bool = False
    overwritten: bool = False
    later: bool = False
    compared: bool = False
    regions: tuple[Region, ...] = ()
    derived: tuple[DerivedSymbol, ...] = ()


Effects = Mapping[str, Effect]
"""By the name of the array, as the host has it."""


def effects_of(trees: Sequence[ScheduleTree]) -> dict[str, Effects]:
    """Return what each schedule does, by its name."""
    alone = [(tree.program, _alone(tree.program)) for tree in trees]
    found: dict[str, Effects] = {}
    for number, (program, own) in enumerate(alone):
        beside = [effects for other, effects in alone if other.function == program.function]
        behind = [effects for other, effects in alone[number + 1 :] if other.function == program.function]
        found[program.name] = {
            name: replace(
                effect,
                later=next((effects[name].overwritten for effects in behind if name in effects), False),
                compared=any(name in effects and effects[name].compared for effects in beside),
            )
            for name, effect in own.items()
        }
    return found


def _alone(program: Program) -> Effects:
    """Return what a schedule does, as if there were no other one."""
    written = signature_of(program).written
    known: Mapping[str, Overwriting] = {}
    derived: tuple[DerivedSymbol, ...] = ()
    if any(not array.slots and array.name in written for array in host_arrays(program)):
        facts = program_facts(program)
        accesses, quotients = references_and_quotients(program, facts)
        known = overwriting(program, facts, accesses)
        derived = (*facts.derived, *quotients)
    found: dict[str, Effect] = {}
    for array in host_arrays(program):
        one = known.get(array.name)
        if array.name not in written:
            found[array.name] = Effect()
        elif one is None:  # views of structures
            found[array.name] = Effect(written=True, compared=True)
        else:
            found[array.name] = Effect(True, one.exact, one.first, False, not one.exact, one.regions, derived)
    return found
