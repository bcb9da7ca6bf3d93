"""``metafork verify``: every leaf of every schedule, proved where that can be had and run everywhere else.

Guards are proved; the code of each leaf runs on the CPU build at points of its region and on its boundaries, against
the serial elision, with bounds, uninitialised shared memory and races checked; the shared memory launched is compared
with the counter, registers with ``ptxas``.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from random import Random
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.algebra.prover import Verdict
from metafork.comprehensive.building.commands import BuildError
from metafork.comprehensive.emit.host.members import flat_parameters
from metafork.comprehensive.optimize import Result, optimize
from metafork.comprehensive.options import MachineLike, Order, Static
from metafork.comprehensive.signals import OutOfTimeError
from metafork.comprehensive.tree.schedule_tree import ScheduleTree, Variant, variant_title
from metafork.comprehensive.verification.builds import UNTOLD, Build, CodeOf, Launch, Run, plain_code
from metafork.comprehensive.verification.device import DeviceBuild
from metafork.comprehensive.verification.driver import CannotDriveError, driver_text, point_line
from metafork.comprehensive.verification.guards import guard_checks, point_checks
from metafork.comprehensive.verification.optimality import optimality_notes
from metafork.comprehensive.verification.point_choice import chosen_points
from metafork.comprehensive.verification.point_conditions import compiled
from metafork.comprehensive.verification.points import Point, Points
from metafork.comprehensive.verification.registers import registers_by_target
from metafork.comprehensive.verification.result import DEVICE, VariantResult, Verification
from metafork.comprehensive.verification.second_opinion import sympy_check
from metafork.comprehensive.verification.translation.translation import validations
from metafork.comprehensive.verification.unordered_sums import CLOSE, bounds_said
from metafork.evaluators.counter import Measure, NotKnown
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.messages.source import Source, base_name
from metafork.ir.translation_unit import Function

POINTS = 50
"""Points a leaf, where so many exist."""

TRIES = 3000
"""Parameter points looked at, a schedule."""

ATTEMPTS = 6
"""Values for the scalars that no schedule has as parameters, at a point that else shows nothing about its leaf."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many units of it are done, and how many there are."""


class Options(Struct, frozen=True):
    """How much is done: points a leaf, the seed, compilers at a time, seconds for all, targets of ``ptxas``.

    ``optimization`` is the level at which kernels are compiled (``-O0`` is quicker); ``dataflow_seconds`` stand behind
    the proofs of dataflow of one schedule, which isl's own count of operations ends long before (0: none are tried).
    ``init`` is a C file with a function ``NAME_init`` for each function NAME whose arrays it fills: it takes NAME's
    parameters, and is called before NAME at every point.  ``device`` runs every leaf on the GPU of this machine too,
    by nvcc; ``runner`` are the words of a command that starts the programs for it.
    """

    points: int = POINTS
    seed: int = 1
    jobs: int = 2
    time_limit: float | None = None
    targets: tuple[str, ...] = ()
    races: bool = True
    optimization: str = "-O1"
    dataflow_seconds: float = 600.0
    init: Path | None = None
    device: bool = False
    runner: tuple[str, ...] = ()


def verify(
    path_or_text: str | PathLike[str] | Source | Result,
    *,
    counters: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    machine: MachineLike = None,
    assume: Sequence[str] = (),
    plugins: Sequence[str] = (),
    static: Static | None = None,
    order: Order = "cost",
    fma: bool = False,
    reassociate: bool = False,
    options: Options | None = None,
    code_of: CodeOf = plain_code,
    directory: Path | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Verify every leaf of a file (or of a finished ``Result``); what fails is in the result, with its point.

    ``code_of`` gives the code that runs, ``directory`` keeps the built programs.  Raises what ``metafork.optimize``
    raises, and ``BuildError`` where a generated file does not compile or there is no compiler.
    """
    options = options or Options()
    begun, taken = time.monotonic(), sum(os.times()[:4])

    def remaining(under_way: float = 0.0) -> float:
        """Return the seconds that are left, on the clock and on the processors; programs that run add theirs."""
        if options.time_limit is None:
            return float("inf")
        return options.time_limit - max(time.monotonic() - begun, sum(os.times()[:4]) - taken + under_way)

    if isinstance(path_or_text, Result):
        result = path_or_text
    else:
        limit = None if options.time_limit is None else options.time_limit / 4
        result = optimize(
            path_or_text,
            counters=counters,
            strategies=strategies,
            machine=machine,
            assume=assume,
            plugins=plugins,
            static=static,
            order=order,
            fma=fma,
            reassociate=reassociate,
            time_limit=limit,
        )
    found = Verification(base_name(result.unit.source.name))
    found.notes += [f"{tree.program.name}: the tree is incomplete" for tree in result.schedules if not tree.complete]
    return _Run(result, options, code_of, progress or (lambda what, done, whole: None), remaining, found).run(directory)


class Remaining(Protocol):
    """The seconds that are left."""

    def __call__(self, under_way: float = 0.0) -> float:
        """Return them, if programs that run have taken so many of the processors."""
        ...


class _Job(Struct):
    """A point to run: the schedule's tree, the row of its variant, and the line for the driver."""

    tree: ScheduleTree
    row: VariantResult
    point: Point
    line: str


class _Run(Struct):
    result: Result
    options: Options
    code_of: CodeOf
    progress: Progress
    remaining: Remaining
    found: Verification
    finders: dict[str, Points] = field(default_factory=dict)
    """By schedule: what computes its derived symbols."""

    def run(self, directory: Path | None) -> Verification:
        functions = self._drivable()
        rows: dict[tuple[str, int, int], VariantResult] = {}
        jobs: dict[str, list[_Job]] = {function.name: [] for function in functions}
        self.found.notes += bounds_said(self.result.unit, functions)
        for number, tree in enumerate(self.result.schedules):
            name = tree.program.name
            for leaf in tree.leaves:
                for one in leaf.variants:
                    title = "" if one is leaf.own else variant_title(one.values, one.effects, leaf.own.effects)
                    row = VariantResult(name, leaf.id, one.number, one.kernel, one.strategies, leaf.title, title)
                    row.for_values = bool(one.values)
                    rows[name, leaf.id, one.number] = row
                    self.found.rows.append(row)
            self.progress("guards", number, len(self.result.schedules))
            points = chosen_points(Points(tree, self.options.seed), self.options.points, TRIES)
            checks = point_checks(Points(tree, self.options.seed + 1), points, 60)
            if self.remaining() > 0:
                checks = [*guard_checks(tree), sympy_check(tree), *checks]
            else:
                self.found.complete = False
            self.found.guards[name] = checks
            if self.remaining() > 0 and not tree.fixed:  # for some machines no leaf need be optimal
                self.found.notes += [
                    f"{name}: {note}" for note in optimality_notes(tree, *self.result.used, self.result.analyses)
                ]
            self.found.refute(name, checks)
            self._dataflow(tree, rows)
            function = next((f for f in functions if f.name == tree.program.function), None)
            for key, own in points.items():
                row = rows[name, *key]
                if function is None:
                    row.not_run = "no driver calls its function"
                    continue
                for point in own:
                    jobs[function.name].append(_Job(tree, row, point, self._line(function, point)))
                place = f"{name} {row.name}"
                if not own:
                    row.not_run = "no point was found that is small enough to run"
                    self.found.notes.append(f"{place}: {row.not_run}; it was not run")
                elif not row.for_values and not any(point.walks for point in own):
                    self.found.notes.append(f"{place}: no point was found at which a block walks the grid")
        if functions:
            with _directory(directory) as where:
                try:
                    self._build_and_run(where, functions, jobs)
                except OutOfTimeError:
                    self.found.complete = False
        for number, target in enumerate(self.options.targets):
            self.progress("registers", number, len(self.options.targets))
            if self.remaining() <= 0:
                self.found.complete = False
                break
            self._registers(target)
        return self.found

    def _build_and_run(self, where: Path, functions: Sequence[Function], jobs: dict[str, list[_Job]]) -> None:
        """Compile, and run the points of each function.  Raises ``OutOfTimeError`` while it compiles."""
        build = Build(
            self.result, where, functions, self.code_of, self.options.jobs, self.options.optimization,
            self.options.init, self.remaining,
        )  # fmt: skip
        self.progress("compile", 0, 1)
        build.make(raced=self.options.races)
        for row in self.found.rows:
            row.branches = build.branches.get(row.kernel, ())
        if build.unchecked:
            self.found.notes.append(f"indices of the serial run were not checked: {build.unchecked}")
        device = DeviceBuild(build, self.options.runner) if self.options.device else None
        if device is not None:
            self._make(device)
        self._run_jobs(build, device, functions, jobs)

    def _dataflow(self, tree: ScheduleTree, rows: dict[tuple[str, int, int], VariantResult]) -> None:
        seconds = min(self.options.dataflow_seconds, self.remaining())
        if seconds <= 0:
            return
        self.progress("dataflow", 0, 1)
        for key, validation in validations(tree, seconds=seconds).items():
            row = rows[tree.program.name, *key]
            row.dataflow = validation
            if validation.verdict is Verdict.NO:
                self.found.failures.append(row.failure("dataflow", "", validation.detail))

    def _drivable(self) -> list[Function]:
        functions = []
        for function in self.result.unit.functions:
            try:
                driver_text(self.result.unit, function)
            except CannotDriveError as reason:
                self.found.notes.append(f"{reason}; its leaves were not run")
                continue
            functions.append(function)
        return functions

    def _line(self, function: Function, point: Point, attempt: int = 0) -> str:
        """Return the driver's line; scalars that the schedule does not have as parameters get small values.

        A later attempt takes also 0 and the constants of the text, which conditions of the host may ask for.
        """
        random = Random(f"{point.text()} {attempt}" if attempt else point.text())
        integers = self._constants if attempt else (1, 2, 3)
        values: list[str | int | float] = []
        for parameter in flat_parameters(function):
            if parameter.type is None:
                continue
            if parameter.name in point.parameters:
                values.append(point.parameters[parameter.name])
            elif parameter.type.floating:
                values.append(random.choice((0.25, 0.5, 0.75, 1.0 / 3, -1.5, 3.0)))
            else:
                values.append(random.choice(integers))
        machine = ",".join(f"{name}={value}" for name, value in point.machine.items())
        return point_line(machine, values)

    @property
    def _constants(self) -> tuple[int, ...]:
        """Small integers: the first ones, and those that the text holds."""
        spelled = re.findall(r"(?<![\w.])\d{1,3}(?![\w.])", self.result.unit.source.text)
        return tuple(sorted({0, 1, 2, 3, *(int(one) for one in spelled if int(one) <= 100)}))

    def _make(self, device: DeviceBuild) -> None:
        self.progress("compile for the device", 0, 1)
        device.make()
        self.found.on_device = True
        if device.close:
            self.found.notes.append(f"on the device results are compared to {CLOSE:g} of the largest, not bit for bit")

    def _run_jobs(self, build: Build, device: DeviceBuild | None, functions: Sequence[Function],
                  jobs: dict[str, list[_Job]]) -> None:  # fmt: skip
        whole = sum(len(own) for own in jobs.values())
        done = 0
        for number, function in enumerate(functions):
            own = jobs[function.name]
            for start in range(0, len(own), 100):
                part = own[start : start + 100]
                if self.remaining() <= 0:
                    self.found.complete = False
                    return
                pairs = self._in_time(self._runs(build, number, function, part))
                judged = [job for job, run in pairs if self._judge(job, run)]
                lines = [job.line for job in judged]
                if self.options.races:
                    raced = build.run(number, lines, raced=True, seconds=self._seconds)
                    for job, run in self._in_time(zip(judged, raced, strict=True)):
                        self._judge_race(job, run)
                if device is not None:
                    runs = device.run(number, lines, self._seconds)
                    for job, run in self._in_time(zip(judged, runs, strict=True)):
                        self._judge_on_device(job, run)
                done += len(part)
                self.progress("run", done, whole)

    def _seconds(self) -> float:
        return min(300.0, self.remaining())

    def _in_time(self, pairs: Iterable[tuple[_Job, Run]]) -> list[tuple[_Job, Run]]:
        """Return the runs but those that ended because no time is left: these show nothing."""
        found = list(pairs)
        kept = found if self.remaining() > 0 else [(job, run) for job, run in found if not run.late]
        self.found.complete = self.found.complete and len(kept) == len(found)
        return kept

    def _runs(self, build: Build, number: int, function: Function, jobs: Sequence[_Job]) -> list[tuple[_Job, Run]]:
        """Run points; those that show nothing about their leaf a few times, with other values of free scalars."""
        pairs = list(zip(jobs, build.run(number, [job.line for job in jobs], seconds=self._seconds), strict=True))
        for attempt in range(1, ATTEMPTS):
            again = {
                place: replace(job, line=self._line(function, job.point, attempt))
                for place, (job, run) in enumerate(pairs)
                if self._shows_nothing(job, run)
            }
            again = {place: job for place, job in again.items() if job.line != pairs[place][0].line}
            if not again or self.remaining() <= 0:
                break
            runs = build.run(number, [job.line for job in again.values()], seconds=self._seconds)
            for (place, job), run in zip(again.items(), runs, strict=True):
                pairs[place] = (job, run)
        return pairs

    def _judge(self, job: _Job, run: Run) -> bool:
        """Take up what a run shows about a leaf; say whether it shows anything."""
        if self._left_out(job, run):
            return False
        job.row.points += 1
        job.row.marks |= job.point.marks
        if run.problem:
            self._fail("code", job, run.problem)
            return True
        own = [launch for launch in run.launches if launch.schedule == job.tree.program.name]
        leaves = {launch.leaf for launch in own}
        if job.row.leaf not in leaves:
            ran = " and ".join(self.found.leaf_named(job.tree.program.name, leaf) for leaf in sorted(leaves))
            given = self.found.leaf_named(job.tree.program.name, job.row.leaf)
            self._fail("code", job, f"{f'{ran} ran' if own else 'no kernel was launched'} where the tree gives {given}")
        for launch in own:
            if launch.leaf == job.row.leaf:
                self._judge_launch(job, launch)
        return True

    def _judge_launch(self, job: _Job, launch: Launch) -> None:
        self._judge_variant(job, launch)
        variant = job.tree.leaves[launch.leaf - 1].variants[launch.variant - 1]
        expected = self._shared_bytes(job.tree, variant, launch.parameters)
        if expected is not None and expected != launch.shared_bytes:
            counted = f"{launch.shared_bytes} bytes of shared memory launched, {expected} counted"
            self._fail("resources", job, counted)

    def _judge_variant(self, job: _Job, launch: Launch) -> None:
        """Hold the variant of a leaf that ran against the one that the tree gives."""
        finder = self._finder(job.tree)
        point = finder.completed(launch.parameters)
        if point is None:
            return
        fields = job.tree.machine
        machine = {symbol: job.point.machine[name] for name, symbol in fields.items() if name in job.point.machine}
        given = finder.variant_at({**point, **machine}, launch.leaf).number
        if launch.variant != given:
            self._fail("code", job, f"variant {launch.variant} ran where the tree gives variant {given}")

    def _left_out(self, job: _Job, run: Run) -> bool:
        note = self._shows_nothing(job, run)
        if not note:
            return False
        job.row.left_out = job.row.left_out or note.partition(": ")[2]
        first = run.outside[1] if run.outside else run.problem
        if first and not any(one.startswith(note) for one in self.found.notes):
            point = ", ".join(f"{name}={value}" for name, value in job.point.parameters.items())
            note = f"{note} (first: {first} at {point})"
        if not any(one.startswith(note) for one in self.found.notes):
            self.found.notes.append(note)
        return True

    def _shows_nothing(self, job: _Job, run: Run) -> str:
        """Return why a point shows nothing about its leaf; empty where it does.

        So it is where the serial program leaves its arrays or the serial reference fails, and where the host code does
        not come to the schedule with the point's parameters (it stands under a condition, or they are made up on the
        way) and the leaf did not run.
        """
        name = job.tree.program.name
        if run.outside:
            access, _, hint = run.outside
            return f"{name}: points are left out where the serial program itself leaves an array, at {access}: {hint}"
        if run.reference_failed:
            return f"{name}: points are left out where the serial program itself fails on made-up values"
        if untold := re.search(rf"\b{name}: {UNTOLD} (.*?)(?:; |$)", run.serial):
            return f"{name}: points are left out where nobody knows how many elements there are: {untold[1]}"
        if run.problem or self._meant(job, run):
            return ""
        missed = "points are left out at which the function does not come to the schedule with their parameters"
        return f"{name} {job.row.name}: {missed}"

    def _meant(self, job: _Job, run: Run) -> bool:
        name = job.tree.program.name
        own = (name, job.row.leaf)
        ran = any((launch.schedule, launch.leaf) == own for launch in run.launches)
        return ran or (name, dict(job.point.parameters)) in run.reached

    def _judge_race(self, job: _Job, run: Run) -> None:
        if self._left_out(job, run):
            return
        job.row.raced_points += 1
        self.found.take(run.branches)
        if run.problem:
            told = "data race" in run.problem or "uninitialised" in run.problem
            self._fail("races" if told else "code", job, run.problem)

    def _judge_on_device(self, job: _Job, run: Run) -> None:
        """Take up a run on a GPU, which the point's machine need not be: the device may have no room for its leaf."""
        if run.problem:
            self._fail(DEVICE, job, run.problem)
            return
        own = (job.tree.program.name, job.row.leaf)
        others = {(one.schedule, one.leaf) for one in run.launches}
        if own in others and not run.serial:
            job.row.device_points += 1
        else:
            ran = " and ".join(self.found.leaf_named(*other) for other in sorted(others))
            job.row.not_on_device = job.row.not_on_device or run.serial or f"{ran or 'nothing'} ran"

    def _fail(self, check: str, job: _Job, message: str) -> None:
        if sum(job.row.has(one) and one.check == check for one in self.found.failures) < 3:  # the first say enough
            self.found.failures.append(job.row.failure(check, job.point.text(), message))

    def _finder(self, tree: ScheduleTree) -> Points:
        name = tree.program.name
        if name not in self.finders:
            self.finders[name] = Points(tree)
        return self.finders[name]

    def _shared_bytes(self, tree: ScheduleTree, variant: Variant, parameters: dict[str, int]) -> int | None:
        value = variant.counters.get(SHARED_MEMORY.name)
        if value is None:
            evaluated = SHARED_MEMORY.evaluate(variant.version, self.result.analyses)
            if isinstance(evaluated, NotKnown):
                return None
            value = evaluated
        point = self._finder(tree).completed(parameters)
        if point is None:
            return None
        for symbol in value.derived:
            if symbol.name not in point:
                point[symbol.name] = symbol.evaluate(point)
        return 4 * compiled(value.numerator)(point)

    def _registers(self, target: str) -> None:
        try:
            allotted = registers_by_target(self.result, target, self.options.jobs, self.remaining)
        except OutOfTimeError:
            self.found.complete = False
            return
        except BuildError as reason:
            self.found.notes.append(f"registers on {target} were not compared: {reason}")
            return
        for tree in self.result.schedules:
            counter = next((c for c in tree.counters if c.measure is Measure.REGISTERS_PER_THREAD), None)
            for row in self.found.rows:
                if row.schedule != tree.program.name or row.kernel not in allotted:
                    continue
                variant = tree.leaves[row.leaf - 1].variants[row.variant - 1]
                value = None if counter is None else variant.counters.get(counter.name)
                estimate = (
                    int(value.numerator.constant_value()) if value is not None and value.numerator.is_constant else None
                )
                row.registers[target] = (estimate, allotted[row.kernel])


@contextmanager
def _directory(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="metafork-verify-") as temporary:
        yield Path(temporary)
