"""``metafork apply``: the program after a schedule, or after some strategies, as MetaFork text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from metafork.comprehensive.commands.faults import (
    InputFile,
    diagnostics_option,
    mistakes_of_options,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    strict_option,
)

if TYPE_CHECKING:
    from metafork.ir.program import Program
    from metafork.transform.directive import Schedule


@click.command()
@click.argument("what", metavar="SCHEDULE|STRATEGIES")
@click.argument("file", type=InputFile())
@click.option("--schedule", "only", help="Change this schedule only; by default all of the file.")
@click.option("--assume", multiple=True, metavar="INEQUALITY", help='Assume an inequality: "B0*B1 <= 1024".')
@reassociate_option
@strict_option
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    what: str,
    file: Path,
    only: str | None,
    assume: tuple[str, ...],
    reassociate: bool,
    strict: bool,
    form: str,
    definitions: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    """Print the program after a schedule or some strategies, one function per `meta_schedule`, to be read again.

    A SCHEDULE is a list of directives, "tile(v, 4); cache(a)" (docs/schedule.md), applied to the program as it
    stands. One that is not legal there ends the command with its reason and status 1.

    STRATEGIES are names, with commas between them, applied in the order given, to the program as the case discussion
    begins with it: without a `cache` clause the arrays of shared memory are chosen first. What each did, or why it
    did not apply, goes to standard error. A strategy that works on the LLVM IR leaves the text as it is.
    """
    from metafork.analysis.analyses import Analyses
    from metafork.analysis.exactness import exact_unit
    from metafork.analysis.races.diagnostics import check_races
    from metafork.comprehensive import registry
    from metafork.comprehensive.application import applied
    from metafork.comprehensive.options import with_assumptions
    from metafork.comprehensive.reading import parse
    from metafork.comprehensive.scheduled import scheduled_program, scheduled_unit
    from metafork.comprehensive.spelled_options import split_names
    from metafork.ir.contraction import contracted_unit
    from metafork.ir.messages.diagnostics import DiagnosticsError, excerpt
    from metafork.ir.messages.source import NOWHERE
    from metafork.printing.metafork_text import metafork_text

    schedule = _schedule(what) if "(" in what else None
    names = [] if schedule else split_names(what)
    if not names and not schedule:
        raise click.UsageError("no strategy is named")
    source = read_source(file, definitions, folders)
    texts = {source.name: source.text}
    with mistakes_of_options():
        chosen = registry.strategies(names)
        try:
            unit = exact_unit(with_assumptions(parse(source, reassociate=reassociate), assume))
            warnings = check_races(unit, strict=strict)
            unit = scheduled_unit(contracted_unit(unit))
        except DiagnosticsError as error:
            print_diagnostics(error.diagnostics, texts, form)
            context.exit(1)
    if warnings or form != "text":
        print_diagnostics(warnings, texts, form)
    programs = [schedule.program for schedule in unit.schedules if only in (None, schedule.program.name)]
    if not programs:
        known = ", ".join(schedule.program.name for schedule in unit.schedules)
        raise click.UsageError(f"there is no schedule {only!r}; {file} has {known}")
    functions = Counter(schedule.program.function for schedule in unit.schedules)
    printed: list[str] = []
    for program in programs:
        if schedule:
            try:
                scheduled = scheduled_program(program, schedule, source.name, Analyses())
            except DiagnosticsError as error:
                print_diagnostics(error.diagnostics, texts, form)
                context.exit(1)
            printed.append(metafork_text(_named(scheduled, functions)))
            continue
        result = applied(program, chosen)
        for step in result.steps:
            click.echo(f"{program.name}: {step.sentence}", err=True)
            if step.span != NOWHERE:
                click.echo(excerpt(step.span, source.text), err=True)
        printed.append(metafork_text(_named(result.version.program, functions)))
    click.echo("\n".join(printed), nl=False)


def _schedule(text: str) -> Schedule:
    from metafork.transform.schedule import ScheduleError, schedule_of

    try:
        return schedule_of(text)
    except ScheduleError as error:
        raise click.UsageError(str(error)) from None


def _named(program: Program, functions: Counter[str]) -> Program:
    """Give the schedules of one function a function each, under the schedule's name."""
    from metafork.ir.rewriting import fresh_name, names_of

    if functions[program.function] == 1:
        return program
    return replace(program, function=fresh_name(program.name, {*functions, *names_of(program)}))
