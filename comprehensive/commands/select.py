"""``metafork select DIR --machine sm_80 n=1024 B0=16 ...``: which leaf, and why not the others."""

from __future__ import annotations

import json
import re
import shlex
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metafork.comprehensive.commands.faults import InputFile, mistakes_of_options, refuse_source
from metafork.comprehensive.commands.names import completed, listed

if TYPE_CHECKING:
    from metafork.comprehensive.systems.points import Number
    from metafork.comprehensive.tree.document import ScheduleDocument
    from metafork.comprehensive.tree.selection import Selection


@click.command()
@click.argument("directory", type=InputFile(folders=True))
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--machine",
    required=True,
    is_eager=True,
    callback=listed("machine"),
    shell_complete=completed("machine"),
    help="A GPU or preset (a100, sm_80), values (R=63,T=1024,Z=12288), or both (sm_80,Z=4096). `help` lists them.",
)
@click.option("--schedule", "only", help="Ask about this schedule only; by default about all of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(directory: Path, values: tuple[str, ...], machine: str, only: str | None, as_json: bool) -> None:
    """Say which leaf a machine and parameter values choose, and why not the others.

    Parameters that decide nothing may be left out.
    DIRECTORY is an output directory of `metafork optimize`, or a *.tree.json file.  The walk uses the estimates of the
    tree; at run time the dispatcher also looks at the compiled kernels' own registers.
    """
    from metafork.comprehensive.options import machine_values
    from metafork.comprehensive.tree.selection import (
        MissingValueError,
        machine_point,
        other_machine,
        select,
        told,
        without_unasked,
    )

    found = _schedules(directory)
    schedules = [s for s in found if only is None or s.name == only]
    if not schedules:
        names = ", ".join(s.name for s in found)
        raise click.UsageError(f"there is no schedule {only!r}; there are {names}" if found else "there is no schedule")
    given = _numbers(values, schedules)
    with mistakes_of_options():
        targets = [name for schedule in schedules for name in schedule.fields.values()]
        own = {s.fields.get(c.limit, c.limit): c.own for s in schedules for c in s.counters if c.own is not None}
        limits = machine_values(machine, targets, own)
    results: list[dict[str, Any]] = []
    for schedule in schedules:
        point = machine_point(schedule, limits)
        for counter in schedule.counters:
            if counter.target is not None:
                point.setdefault(counter.limit, counter.target)
        if (other := other_machine(schedule, point)) is not None:
            raise click.UsageError(other)
        schedule, unasked = without_unasked(schedule, given)
        try:
            selection = select(schedule, {**point, **given})
        except MissingValueError as error:
            raise click.UsageError(_missing(schedule, error.names)) from error
        if as_json:
            results.append({**_as_json(schedule, selection), "any": list(unasked)})
        else:
            click.echo("\n".join(told(schedule, selection)))
            if unasked:
                click.echo(f"  {', '.join(unasked)} may have any value for which the program is defined")
    if as_json:
        click.echo(json.dumps({"format": "metafork-selection", "version": 2, "schedules": results}, indent=1))


def _schedules(directory: Path) -> tuple[ScheduleDocument, ...]:
    from metafork.comprehensive.tree.tree_fields import TreeFormatError
    from metafork.comprehensive.tree.tree_reading import load

    path = directory
    if directory.is_dir():
        found = sorted(directory.glob("*.tree.json"))
        if len(found) != 1:
            what = "no *.tree.json" if not found else f"several trees ({', '.join(p.name for p in found)}); name one"
            raise click.UsageError(f"{directory} has {what}")
        path = found[0]
    try:
        return load(path).schedules
    except TreeFormatError as error:
        refuse_source(path, f"then ask:            {_asked(path)}")
        raise click.ClickException(f"{path}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from error


def _asked(path: Path) -> str:
    """Return the command line as it would be for the output of ``metafork optimize``."""
    context = click.get_current_context()
    given = context.params
    machine = shlex.quote(given["machine"])
    words = ["metafork select", f"{path.stem}.out", f"--machine {machine}", *given["values"]]
    return " ".join(words)


def _numbers(values: tuple[str, ...], schedules: list[ScheduleDocument]) -> dict[str, int]:
    from metafork.comprehensive.registry import UnknownNameError

    known = sorted({name for s in schedules for name in (*s.data, *s.program, *s.opaque)})
    numbers: dict[str, int] = {}
    for text in values:
        name, equals, number = text.partition("=")
        name = name.strip()
        if not equals:
            raise click.UsageError(f"{text!r} is not NAME=VALUE")
        if name not in known:
            raise click.UsageError(str(UnknownNameError("parameter", name, known)))
        if name in numbers:
            raise click.UsageError(f"{name} is given twice")
        if re.fullmatch(r"\s*[-+]?[0-9]+\s*", number, re.ASCII) is None:
            raise click.UsageError(f"{name}={number[:40]}: give a whole number, such as {name}={_whole(number)}")
        if len(number) > 60 or not -(2**63) <= int(number) < 2**63:
            raise click.UsageError(f"{name} does not fit 64 bits: {number[:40]}")
        numbers[name] = int(number)
    return numbers


def _whole(text: str) -> int:
    """Return a whole number near one that is written otherwise (``1e6``, ``1_000``, ``2.5``), else 1000."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return 1000
    return number if abs(number) < 2**63 else 1000


def _missing(schedule: ScheduleDocument, names: tuple[str, ...]) -> str:
    parameters = [name for name in names if name not in schedule.machine]
    limits = [schedule.fields.get(name, name) for name in names if name in schedule.machine]
    parts = []
    if parameters:
        parts.append(f"no value is given for {', '.join(parameters)} (write {parameters[0]}=...)")
    if limits:
        parts.append(f"--machine does not give {', '.join(limits)}")
    return f"{schedule.name}: {'; '.join(parts)}"


def _as_json(schedule: ScheduleDocument, selection: Selection) -> dict[str, Any]:
    def number(value: Number) -> int | str:
        return int(value) if Fraction(value).denominator == 1 else str(value)

    variant = selection.variant
    counters = {} if variant is None else variant.counters
    return {
        "schedule": schedule.name,
        "leaf": selection.leaf,
        "variant": None if variant is None else variant.number,
        "kernel": None if variant is None else variant.kernel,
        "estimates": {name: number(value) for name, value in selection.estimates.items()},
        "sampled": {name: value.sampled for name, value in counters.items() if value.sampled},
        "derived": {name: number(value) for name, value in selection.derived.items()},
        "outside": [violation.exact for violation in selection.outside],
        "region": selection.region or None,
        "passed_over": {one.kernel: [v.exact for v in missed] for one, missed in selection.passed_over},
        "others": {str(leaf): [v.exact for v in violations] for leaf, violations in selection.violated.items()},
    }
