"""Points at which a tree is shown: the page opens at one, and the screen says what runs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.tree.document import ScheduleDocument
from metafork.comprehensive.tree.legend import EXAMPLE
from metafork.comprehensive.tree.selection import Selection, machine_point, other_machine, select
from metafork.evaluators.counter import CounterValue
from metafork.runtime.machine import PRESETS, given_values

THREADS = 256
"""Of a block at most, where the parameters of its shape are chosen."""

TRIED = (256, 64, 32, 16, 8, 4, 2, 1)
"""Numbers for the parameters of a block's shape; all that a thread does is ``WORK``."""

WORK = 4

DATA = (4096, 1024, 64, 8)
"""Numbers for sizes of data."""

FACTORS = (2, 4, 16, 64, 256)
"""By which one parameter grows where the screen looks for a point at which something else runs."""


class Shown(Struct, frozen=True):
    """A point and what is chosen there; ``gpu`` is the preset, ``None`` for a machine that is none."""

    gpu: str | None
    point: Mapping[str, Number]
    chosen: Selection


def gpus_for(schedule: ScheduleDocument) -> Iterator[tuple[str, dict[str, Number]]]:
    """Yield the presets that the tree is for, each with the numbers of the schedule's machine symbols."""
    own = {schedule.fields.get(one.limit, one.limit): one.own for one in schedule.counters if one.own is not None}
    for preset in PRESETS:
        point = machine_point(schedule, given_values(preset, own))
        known = [one for one in schedule.start if one.symbols <= point.keys()]
        if other_machine(schedule, point) is None and all(one.holds(point) for one in known):
            yield preset, {name: number for name, number in point.items() if name in schedule.machine}


def for_gpus(gpus: Sequence[str]) -> str:
    """Return in words which presets a tree is for, empty where nothing needs to be said."""
    if not gpus or len(gpus) == len(PRESETS):
        return ""
    between = list(PRESETS)[list(PRESETS).index(gpus[0]) :][: len(gpus)]
    several = f"{gpus[0]} to {gpus[-1]}" if between == list(gpus) and len(gpus) > 2 else ", ".join(gpus)
    return f" for {several}"


def point_to_show(schedule: ScheduleDocument, gpus: Mapping[str, Mapping[str, Number]]) -> Shown:
    """Return the point to show a tree at, that of the first instance if there is one.

    It chooses the first leaf, or any, with the targets that counters have by themselves; if none of the points tried
    does, it is an example of the first leaf, which may be on no known GPU.
    """
    gpu = EXAMPLE if EXAMPLE in gpus else next(iter(gpus), None)
    known: dict[str, Number] = dict.fromkeys((*schedule.machine, *_parameters(schedule)), 1)
    known.update((one.limit, one.target) for one in schedule.counters if one.target is not None and one.limit in known)
    other: Shown | None = None
    if gpu is not None and schedule.leaves:
        for point in _points(schedule, known | dict(gpus[gpu])):
            shown = Shown(gpu, point, select(schedule, point))
            if shown.chosen.leaf == 1:
                return shown
            other = shown if other is None and shown.chosen.leaf else other
    if other is not None:
        return other
    witness = schedule.leaves[0].witness or {} if schedule.leaves else {}
    point = known | {name: number for name, number in witness.items() if name in known}
    return Shown(None, point, select(schedule, point))


def another(schedule: ScheduleDocument, shown: Shown) -> Shown | None:
    """Return a point with one parameter larger at which another leaf runs, else one with another variant.

    The data is larger, too, if there is no such leaf otherwise.
    """
    found: Shown | None = None
    for size, name, factor in product((1, FACTORS[-1]), reversed(schedule.program), FACTORS):
        larger = {one: shown.point[one] * size for one in schedule.data}
        point = {**shown.point, **larger, name: shown.point[name] * factor}
        one = Shown(shown.gpu, point, select(schedule, point))
        if one.chosen.leaf not in (0, shown.chosen.leaf):
            return one
        if found is None and one.chosen.leaf and one.chosen.variant != shown.chosen.variant:
            found = one
    return found


def _parameters(schedule: ScheduleDocument) -> tuple[str, ...]:
    return (*schedule.data, *schedule.program, *schedule.opaque)


def _points(schedule: ScheduleDocument, known: Mapping[str, Number]) -> Iterator[dict[str, Number]]:
    """Yield points at which a block has many threads, but not more than usual, and the data many blocks."""
    leaf = schedule.leaves[0]
    instance = next((one.values for one in leaf.variants if one.values), {})
    threads = leaf.own.counters.get("threads_per_block")
    shape = set(schedule.program if threads is None else threads.numerator.symbols)
    sizes = (*schedule.data, *schedule.opaque)
    points = []
    for number, size in product(TRIED, DATA):
        program = {name: number if name in shape else min(WORK, number) for name in schedule.program}
        point = {**known, **dict.fromkeys(sizes, size), **program, **instance}
        if instance or not _too_many(threads, point):
            points.append(point)
    yield from points
    yield from ({**point, name: 1} for point in points for name in sizes)  # such as the step of a loop of the host


def _too_many(threads: CounterValue | None, point: Mapping[str, Number]) -> bool:
    if threads is None or not threads.numerator.symbols <= point.keys():
        return False
    return threads.numerator.at(point) > THREADS


def question(schedules: Sequence[ScheduleDocument], folder: object, shown: Sequence[Shown]) -> str | None:
    """Return a command that says which kernel runs at the point of the first of some schedules that have leaves."""
    values: dict[str, Number] = {}
    for schedule, one in zip(schedules, shown, strict=True):
        if schedule.leaves and one.gpu is not None:
            values = {name: one.point[name] for name in (*schedule.data, *schedule.program)} | values
    gpu = next((one.gpu for one in shown if one.gpu is not None), None)
    if gpu is None or not values:
        return None
    return f"metafork select {folder} --machine {gpu} {' '.join(f'{name}={value}' for name, value in values.items())}"
