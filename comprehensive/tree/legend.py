"""What the symbols of a tree mean, for people: machine limits with a number that they know, derived symbols defined."""

from __future__ import annotations

from metafork.comprehensive.systems.systems import System
from metafork.comprehensive.tree.document import ScheduleDocument
from metafork.comprehensive.tree.wording import ALLOTTED, UNITS
from metafork.runtime.machine import PRESETS

EXAMPLE = "sm_80"
_MEANINGS = {
    **UNITS,
    "shared_words": "shared memory per block, in words of 4 bytes",
    "block_dim_x": "threads per block along x",
    "block_dim_y": "threads per block along y",
    "block_dim_z": "threads per block along z",
}


def meaning(schedule: ScheduleDocument, symbol: str) -> str:
    """Return what a limit of machines is, empty where its name says it."""
    return _MEANINGS.get(schedule.fields.get(symbol, symbol), "")


def legend(schedule: ScheduleDocument, also: System = ()) -> list[str]:
    """Return a line for each symbol that conditions of a schedule's leaves have and its text does not define.

    ``also`` are further conditions that are shown beside it.
    """
    systems = [also, *(system for leaf in schedule.leaves for system in leaf.systems)]
    systems += [one.limits for leaf in schedule.leaves for one in leaf.variants]
    shown = {name for system in systems for condition in system for name in schedule.plain(condition).symbols}
    for one in reversed(schedule.derived):
        if one.name in shown:
            shown |= {name for operand in one.operands for name in operand.symbols}
    lines = []
    if any(ALLOTTED in schedule.said(condition) for system in systems for condition in system):
        lines.append(f"{ALLOTTED}: the hardware hands them out in eights per thread, to four warps at a time")
    for symbol in schedule.machine:
        field = schedule.fields.get(symbol, symbol)
        if symbol in shown and field in _MEANINGS:
            lines.append(f"{symbol}: {_MEANINGS[field]} ({PRESETS[EXAMPLE].fields()[field]:,} on {EXAMPLE})")
    lines += [
        f"{counter.limit}: the target of {counter.name} ({counter.target} unless given)"
        for counter in schedule.counters
        if counter.target is not None and counter.limit in shown
    ]
    defined = [one for one in schedule.derived if one.name in shown and one.kind == "floor"]
    return [*lines, *(f"{one.name} = {one.definition(schedule.order)}" for one in defined)]
