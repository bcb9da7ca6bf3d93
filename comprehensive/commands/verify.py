"""``metafork verify FILE...``: guards proved, every leaf run against the serial elision, what fails with its point."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metafork.comprehensive.commands.faults import (
    INCOMPLETE,
    NOT_VERIFIED,
    InputFile,
    Seconds,
    chosen_options,
    diagnostics_option,
    fma_option,
    machine_option,
    mistakes_of_options,
    order_option,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    static_option,
)
from metafork.comprehensive.streams import moves_its_cursor

if TYPE_CHECKING:
    from metafork.comprehensive.options import Order
    from metafork.comprehensive.verification.engine import Progress

TARGETS = "sm_75,sm_80,sm_90,sm_120"


def _names(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _words(context: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    """Return the words of a command that is there."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise click.BadParameter(str(error).lower()) from None
    if words and not context.params.get("device"):
        raise click.BadParameter("it starts the programs of --device")
    if words and shutil.which(words[0]) is None:
        raise click.BadParameter(f"{words[0]} is not installed")
    return words


def _targets(asked: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the targets on which registers are compared: those asked for, or all where the tools are present."""
    if asked is not None:
        return () if asked == ("none",) else asked
    present = shutil.which("nvcc") is not None and shutil.which("ptxas") is not None
    return tuple(TARGETS.split(",")) if present else ()


@click.command()
@click.argument("files", nargs=-1, required=True, type=InputFile())
@chosen_options
@click.option("--assume", multiple=True, metavar="INEQUALITY", help='Assume an inequality: "B0*B1 <= 1024".')
@machine_option
@static_option
@order_option
@fma_option
@reassociate_option
@click.option("--points", default=50, show_default=True, type=click.IntRange(min=1), help="Points per leaf, at most.")
@click.option("--seed", default=1, show_default=True, help="Another seed gives other points.")
@click.option(
    "--registers",
    callback=_names,
    metavar="TARGETS",
    help=f"Compare estimates with ptxas on these targets; {TARGETS} where nvcc and ptxas are present, or none.",
)
@click.option("--no-races", is_flag=True, help="Do not look for races and uninitialised shared memory.")
@click.option(
    "--init",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="F.c",
    help="A C file whose functions NAME_init take the parameters of NAME and fill its arrays before each run.",
)
@click.option(
    "--device", is_flag=True, is_eager=True, help="Also run every leaf on the GPU of this machine (needs nvcc)."
)
@click.option(
    "--runner",
    default="",
    callback=_words,
    metavar="COMMAND",
    help='Start the programs for the GPU with this command: "compute-sanitizer --error-exitcode 9".',
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Run so many compilers at a time; by default one per processor."
)
@click.option("--time-limit", type=Seconds(), help="Stop each file after so many seconds, and say what is left.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (an array for several files).")
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    counters: list[str] | None,
    strategies: list[str] | None,
    plugins: tuple[str, ...],
    assume: tuple[str, ...],
    machine: str | None,
    static: tuple[str, ...],
    order: Order,
    fma: bool,
    reassociate: bool,
    points: int,
    seed: int,
    registers: tuple[str, ...] | None,
    no_races: bool,
    init: Path | None,
    device: bool,
    runner: tuple[str, ...],
    jobs: int | None,
    time_limit: float | None,
    as_json: bool,
    form: str,
    definitions: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    """Verify every leaf of MetaFork files.

    Guards are proved; each leaf runs on the CPU build at points inside its conditions and on their boundaries, against
    the serial elision, bit for bit, with bounds, uninitialised shared memory and races checked. The exit status is 1
    where anything fails, and 5 where nothing does but some leaf never ran: it is not verified. Where isl can, a leaf's
    dataflow is proved to be the source's; elsewhere it is tested.
    """
    from metafork.comprehensive.options import asked_static
    from metafork.comprehensive.verification import BuildError, Options, verify
    from metafork.ir.messages.diagnostics import DiagnosticsError

    options = Options(
        points=points,
        seed=seed,
        jobs=jobs or os.cpu_count() or 1,
        time_limit=time_limit,
        targets=_targets(registers),
        races=not no_races,
        init=init,
        device=device,
        runner=runner,
    )
    failed = incomplete = unverified = False
    documents = []
    for path in files:
        texts: dict[str, str] = {}
        with mistakes_of_options(), _progress(path.name) as progress:
            try:
                source = read_source(path, definitions, folders)
                texts[source.name] = source.text
                found = verify(
                    source,
                    counters=counters,
                    strategies=strategies,
                    machine=machine,
                    assume=assume,
                    plugins=plugins,
                    options=options,
                    static=asked_static(static, {}),
                    order=order,
                    fma=fma,
                    reassociate=reassociate,
                    progress=progress,
                )
            except DiagnosticsError as error:
                print_diagnostics(error.diagnostics, texts, form)
                failed = True
                continue
            except BuildError as error:
                raise click.ClickException(f"{path}: {error}") from error
        failed = failed or not found.passed
        incomplete = incomplete or not found.complete
        unverified = unverified or bool(found.not_verified or found.leafless)
        if as_json:
            documents.append(found.to_json().rstrip())
        else:
            skipped = len(found.not_verified)
            verdict = "FAILED" if not found.passed else "verified" if found.complete else "not finished in time"
            if skipped and verdict == "verified":
                verdict = f"not verified: {skipped} of {len(found.rows)} kernels never ran"
            elif found.leafless and verdict == "verified":
                verdict = f"not verified: {', '.join(found.leafless)} without a leaf"
            click.echo(f"{path}: {verdict}")
            click.echo(found.table())
    if as_json:
        click.echo(documents[0] if len(files) == 1 and documents else "[" + ",\n".join(documents) + "]")
    context.exit(1 if failed else INCOMPLETE if incomplete else NOT_VERIFIED if unverified else 0)


@contextmanager
def _progress(name: str) -> Iterator[Progress | None]:
    """Show a bar on a terminal, and nothing elsewhere."""
    if not moves_its_cursor(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(what: str, done: int, whole: int) -> None:
            bar.update(task, description=f"{name}: {what}", completed=done, total=whole if whole > 1 else None)

        yield show
