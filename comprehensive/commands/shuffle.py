"""``metafork shuffle``: replace global loads of a PTX file by warp shuffles."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from metafork.comprehensive.commands.faults import InputFile, refuse_to_overwrite, write_output


@click.command()
@click.argument("source", type=InputFile("ptx"))
@click.option(
    "-o", "output", type=click.Path(dir_okay=False, path_type=Path), help="The new file; default: standard output."
)
@click.option(
    "--max-delta", type=click.IntRange(0, 31), default=31, show_default=True,
    help="The most lanes a value may move; 0 leaves register reuse only.",
)  # fmt: skip
@click.option("--report", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--variant", type=click.Choice(["full", "no-load", "no-corner"]), default="full", show_default=True,
    help="no-load and no-corner compute wrong results; they are for measuring only.",
)  # fmt: skip
@click.option(
    "--no-assume", type=click.Choice(["signed-index", "grid-fits"]), multiple=True,
    help="Do not assume that signed 32-bit index arithmetic does not overflow, or that the grid has few blocks.",
)  # fmt: skip
@click.option("--no-hoist", is_flag=True, help="Let the first load of a row serve the others, as the paper does.")
@click.option(
    "--no-check-passes", is_flag=True,
    help="Leave loads alone where lanes may be in different passes of a loop, instead of comparing the passes.",
)  # fmt: skip
def command(
    source: Path,
    output: Path | None,
    max_delta: int,
    form: str,
    variant: str,
    no_assume: tuple[str, ...],
    no_hoist: bool,
    no_check_passes: bool,
) -> None:
    """Replace global loads of the PTX file SOURCE by shuffles between neighbouring lanes.

    SOURCE itself is never changed.  The report goes to standard output, or to standard error where that takes the
    PTX.  A kernel about which anything is unclear passes unchanged, and the report says why.
    """
    from metafork.ptx.shuffles.report import report_document, report_text
    from metafork.ptx.shuffles.shuffle import Options, shuffle_text
    from metafork.ptx.shuffles.synthesis import Variant
    from metafork.ptx.text.source import PtxError

    if output is not None:
        refuse_to_overwrite(output, source)
    text = _read(source)
    assumed = "signed-index" not in no_assume
    options = Options(
        max_delta,
        Variant(variant),
        assumed,
        not no_hoist,
        check_passes=not no_check_passes,
        grid_fits="grid-fits" not in no_assume,
    )
    try:
        result = shuffle_text(text, options)
    except PtxError as error:
        click.echo(error.render(text, str(source)), err=True)
        sys.exit(1)
    if form == "json":
        report = json.dumps(report_document(result, str(source)), indent=1) + "\n"
    else:
        report = report_text(result)
    if output is None:
        click.echo(result.text, nl=False)
    else:
        write_output(output, result.text)
    click.echo(report, nl=False, err=output is None)


def _read(path: Path) -> str:
    """Read the PTX.  Raises ``click.ClickException`` (status 1) for a file that is not UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from error
