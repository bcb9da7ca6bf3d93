"""``metafork explain FILE...``: what is cached, kept in registers and joined to the grid, what is not, and why."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metafork.comprehensive.commands.faults import (
    InputFile,
    diagnostics_option,
    mistakes_of_options,
    order_option,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    strict_option,
)
from metafork.comprehensive.commands.names import completed
from metafork.comprehensive.streams import colored

if TYPE_CHECKING:
    from metafork.comprehensive.options import Order


_CODE = re.compile(r"MF[0-9]{4}", re.IGNORECASE)


def _is_code(path: Path) -> bool:
    return _CODE.fullmatch(str(path)) is not None and not path.exists()


class _FileOrCode(InputFile):
    """A file that exists, or the code of a diagnostic."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; a code is returned as one too."""
        return Path(value) if _is_code(Path(value)) else super().convert(value, param, ctx)


def _entry(code: str) -> str:
    """Return what the catalogue has of a code."""
    from metafork.ir.messages.catalogue import CATALOGUE
    from metafork.ir.messages.examples import EXAMPLES

    entry = CATALOGUE.get(code)
    if entry is None:
        raise click.UsageError(f"there is no diagnostic {code}\n  all codes: docs/diagnostics.md")
    return f"{code}: {entry.title}\n  refused: {EXAMPLES[code]}\n  reason: {entry.reason}\n  help: {entry.way_out}"


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FileOrCode(), metavar="FILE|CODE...")
@click.option(
    "--strategies",
    shell_complete=completed("strategy"),
    help="Ask these strategies, as with `metafork optimize`.",
)
@click.option("--assume", multiple=True, metavar="INEQUALITY", help='Assume an inequality: "B0*B1 <= 1024".')
@order_option
@reassociate_option
@strict_option
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context, files: tuple[Path, ...], strategies: str | None, assume: tuple[str, ...], order: Order,
    reassociate: bool, strict: bool, form: str, definitions: tuple[str, ...], folders: tuple[str, ...],
) -> None:  # fmt: skip
    """Say of each schedule what is cached, kept in registers and given to the grid, what is not, and why.

    Where a change of the program would help, a hint names it.  The code of a diagnostic, such as MF0101, is explained
    too.
    """
    codes = [path.name.upper() for path in files if _is_code(path)]
    files = tuple(path for path in files if not _is_code(path))
    if codes:
        click.echo("\n\n".join(_entry(code) for code in codes))
    from metafork.analysis.analyses import Analyses
    from metafork.analysis.exactness import exact_unit
    from metafork.analysis.races.diagnostics import check_races
    from metafork.comprehensive import registry
    from metafork.comprehensive.case_discussion.order import ByCost
    from metafork.comprehensive.explanation import explanation
    from metafork.comprehensive.options import with_assumptions
    from metafork.comprehensive.reading import parse
    from metafork.comprehensive.scheduled import scheduled_unit
    from metafork.comprehensive.spelled_options import split_names
    from metafork.comprehensive.tree.remarks import with_carets
    from metafork.comprehensive.tree.schedule_tree import listed_text
    from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError

    names = None if strategies is None else split_names(strategies)
    found: list[Diagnostic] = []
    texts: dict[str, str] = {}
    blocks: list[str] = []
    failed = False
    with mistakes_of_options():
        chosen = registry.strategies(names, order=order)
        for path in files:
            source = read_source(path, definitions, folders)
            texts[source.name] = source.text
            try:
                unit = exact_unit(with_assumptions(parse(source, reassociate=reassociate), assume))
                found += check_races(unit, strict=strict)
                unit = scheduled_unit(unit)
            except DiagnosticsError as error:
                found += error.diagnostics
                failed = True
                continue
            for schedule in unit.schedules:
                program = schedule.program
                head = f"{program.name}: the schedule at line {program.span.line}, function {program.function}"
                analyses = Analyses()
                by_cost = ByCost.of(program, analyses) if order == "cost" else None
                remarks = explanation(program, chosen, analyses, by_cost)
                told = with_carets(remarks, source, program.span, colored(sys.stdout))
                if program.static:
                    head += f"\nkernels for {listed_text(program.static)} too: `meta_static` asks for them"
                blocks.append(f"{head}\n\n{told or 'No array is cached and no loop changes.'}")
    if blocks:
        click.echo("\n".join(blocks), nl=False)
    if found or (form != "text" and files):
        print_diagnostics(found, texts, form)
    context.exit(1 if failed else 0)
