"""``metafork check FILE...``: parse, and print what is wrong."""

from __future__ import annotations

from pathlib import Path

import click

from metafork.comprehensive.commands.faults import (
    InputFile,
    diagnostics_option,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    strict_option,
)


@click.command()
@click.argument("files", nargs=-1, required=True, type=InputFile())
@reassociate_option
@strict_option
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    reassociate: bool,
    strict: bool,
    form: str,
    definitions: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    """Parse MetaFork files, look for races, and print the diagnostics.

    The exit status is 1 where a file is at fault.  With `--diagnostics json` or `sarif` one document for all files goes
    to standard output.
    """
    from metafork.analysis.exactness import exact_unit
    from metafork.analysis.races.diagnostics import check_races
    from metafork.comprehensive.reading import parse
    from metafork.comprehensive.scheduled import scheduled_unit
    from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError

    found: list[Diagnostic] = []
    texts: dict[str, str] = {}
    failed = False
    for path in files:
        try:
            source = read_source(path, definitions, folders)
            texts[source.name] = source.text
            unit = exact_unit(parse(source, reassociate=reassociate))
            warnings = check_races(unit, strict=strict)
            scheduled_unit(unit)
        except DiagnosticsError as error:
            found += error.diagnostics
            failed = True
        else:
            found += warnings
            if form == "text":
                count = len(unit.schedules)
                click.echo(f"{path}: {count} {'schedule' if count == 1 else 'schedules'}, no errors")
    if form != "text":
        print_diagnostics(found, texts, form, err=False)
    elif found:
        print_diagnostics(found, texts, form)
    context.exit(1 if failed else 0)
