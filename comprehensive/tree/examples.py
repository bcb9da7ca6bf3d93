"""A GPU and parameters at which a tree is shown first: the page opens there, and the screen asks for more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.document import ScheduleDocument
from metafork.comprehensive.tree.legend import EXAMPLE
from metafork.comprehensive.tree.selection import machine_point, other_machine, select
from metafork.runtime.machine import PRESETS, given_values

TRIED = (64, 32, 16, 8, 256, 1024, 4096)
"""Numbers for parameters of which the first instance says nothing."""


def gpus_for(schedule: ScheduleDocument) -> Iterator[tuple[str, dict[str, Number]]]:
    """Yield the presets that the tree is for, each with the numbers of the schedule's machine symbols."""
    own = {schedule.fields.get(one.limit, one.limit): one.own for one in schedule.counters if one.own is not None}
    for preset in PRESETS:
        point = machine_point(schedule, given_values(preset, own))
        known = [one for one in schedule.start if one.symbols <= point.keys()]
        if other_machine(schedule, point) is None and all(one.holds(point) for one in known):
            yield preset, {name: number for name, number in point.items() if name in schedule.machine}


def point_to_show(
    schedule: ScheduleDocument, gpus: Mapping[str, Mapping[str, Number]]
) -> tuple[str | None, dict[str, Number]]:
    """Return the preset and the numbers to show a tree at, those of the first instance if there is one.

    They choose the first leaf, or any, with the targets that counters have by themselves; if none of the points tried
    does, they are an example of the first leaf, which may be on no known GPU.
    """
    parameters = (*schedule.data, *schedule.program, *schedule.opaque)
    preset = EXAMPLE if EXAMPLE in gpus else next(iter(gpus), None)
    known: dict[str, Number] = dict.fromkeys((*schedule.machine, *parameters), 1)
    known.update((one.limit, one.target) for one in schedule.counters if one.target is not None and one.limit in known)
    if preset is not None:
        known |= gpus[preset]
    if not schedule.leaves:
        return preset, known
    leaf = schedule.leaves[0]
    witness = {name: number for name, number in (leaf.witness or {}).items() if name in known}
    if preset is None:
        return None, known | witness
    instance = next((one.values for one in leaf.variants if one.values), {})
    points = [{**known, **dict.fromkeys(parameters, number), **instance} for number in TRIED]
    points.append(known | {name: number for name, number in witness.items() if name in parameters})
    chosen = [select(schedule, point).leaf for point in points]
    for wanted in (leaf.id, *filter(None, chosen)):
        if wanted in chosen:
            return preset, points[chosen.index(wanted)]
    return None, known | witness


def question(schedule: ScheduleDocument, folder: object) -> str | None:
    """Return a command that says which kernel runs at such a point; ``None`` where there is no leaf or no known GPU."""
    preset, point = point_to_show(schedule, dict(gpus_for(schedule)))
    if preset is None or not schedule.leaves:
        return None
    values = " ".join(f"{name}={point[name]}" for name in (*schedule.data, *schedule.program))
    return f"metafork select {folder} --machine {preset} {values}"
