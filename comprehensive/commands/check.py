"""``metafork check FILE...``: parse, and print what is wrong."""

from __future__ import annotations

from pathlib import Path

import click

from comprehensive.commands.faults import diagnostics_option, print_diagnostics, read_source


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@diagnostics_option
@click.pass_context
def command(context: click.Context, files: tuple[Path, ...], form: str) -> None:
    """Parse MetaFork files and print their diagnostics.

    The exit status is 1 where a file is at fault.  With `--diagnostics json` or `sarif` one document for all files goes
    to standard output.
    """
    from metafork.diagnostics import Diagnostic, DiagnosticsError
    from metafork.frontend import parse

    found: list[Diagnostic] = []
    texts: dict[str, str] = {}
    for path in files:
        source = read_source(path)
        texts[source.name] = source.text
        try:
            unit = parse(source)
        except DiagnosticsError as error:
            found += error.diagnostics
        else:
            if form == "text":
                count = len(unit.schedules)
                click.echo(f"{path}: {count} {'schedule' if count == 1 else 'schedules'}, no errors")
    if form != "text":
        print_diagnostics(found, texts, form, err=False)
    elif found:
        print_diagnostics(found, texts, form)
    context.exit(1 if found else 0)
