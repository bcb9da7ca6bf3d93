"""``metafork ptxas-wrapper``: stands in for ``ptxas``, so that a build's kernels get shuffles.

The PTX files among the arguments are transformed into a temporary directory; everything else is the real assembler's.
Nothing here may break a build: PTX that cannot be read, and code that the assembler then refuses, is assembled as it
was, with a note on standard error.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click


class _Ptxas(click.Command):
    """A command whose options have two dashes: what has one is the assembler's (``-arch=sm_90``, ``-h``, ``-v``)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options of this command out, up to ``--``; all others are arguments."""
        own = {name: option for option in self.params if isinstance(option, click.Option) for name in option.opts}
        mine: list[str] = []
        rest: list[str] = []
        given = iter(args)
        for word in given:
            option = own.get(word.partition("=")[0])
            if word == "--":
                rest += given
            elif word == "--help" or args == ["-h"]:
                mine.append("--help")
            elif option is None:
                rest.append(word)
            else:
                takes = not option.is_flag and "=" not in word
                mine += [word, *(itertools.islice(given, 1) if takes else ())]
        return super().parse_args(ctx, [*mine, "--", *rest])


@click.command(cls=_Ptxas, context_settings={"help_option_names": ["--help"]})
@click.option("--max-delta", type=click.IntRange(0, 31), default=31, show_default=True)
@click.option("--ptxas", "assembler", envvar="METAFORK_PTXAS", help="The real assembler; default: ptxas on PATH.")
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Append a JSON line a file to this file."
)
@click.option("--verbose", is_flag=True, help="Say on standard error what became of each kernel.")
@click.option(
    "--toolkit", type=click.Path(file_okay=False, path_type=Path),
    help="Make a directory whose nvcc uses this wrapper, and do nothing else.",
)  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    max_delta: int,
    assembler: str | None,
    report: Path | None,
    verbose: bool,
    toolkit: Path | None,
    arguments: tuple[str, ...],
) -> None:
    """Run ptxas on ARGUMENTS, with the PTX files among them replaced by copies whose loads became shuffles.

    Options with one dash are the assembler's, as `-arch=sm_90`, and so is all behind `--`.

    `metafork ptxas-wrapper --toolkit DIR` makes DIR, whose `DIR/nvcc` is the nvcc on PATH with this wrapper as its
    assembler.
    """
    if toolkit is not None:
        _make_toolkit(toolkit, max_delta, report)
        return
    real = assembler or shutil.which("ptxas")
    if real is None:
        raise click.ClickException("there is no ptxas on PATH; name it by --ptxas or METAFORK_PTXAS")
    with tempfile.TemporaryDirectory(prefix="metafork-") as directory:
        changed = [_transformed(argument, Path(directory), max_delta, report, verbose) for argument in arguments]
        done = subprocess.run([real, *changed], capture_output=True, check=False)
        if done.returncode and tuple(changed) != arguments:
            click.echo("metafork: ptxas refuses the transformed code; assembling the original", err=True)
            done = subprocess.run([real, *arguments], capture_output=True, check=False)
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.buffer.flush()
        # The assembler names the temporary copy; users know their own file.
        message = done.stderr.decode(errors="replace")
        for before, after in zip(arguments, changed, strict=True):
            message = message.replace(after, before) if before != after else message
        sys.stderr.write(message)
    sys.exit(done.returncode)


def _transformed(argument: str, directory: Path, max_delta: int, report: Path | None, verbose: bool) -> str:
    """Return the path of a PTX file's transformed copy; any other argument, and any doubt, as it is."""
    path = Path(argument)
    if argument.startswith("-") or path.suffix != ".ptx" or not path.is_file():
        return argument
    import json

    from metafork.ptx.shuffles.report import report_document, report_text
    from metafork.ptx.shuffles.shuffle import Options, shuffle_text
    from metafork.ptx.text.source import PtxError

    try:
        text = path.read_text(encoding="utf-8")
        result = shuffle_text(text, Options(max_delta))
    except (PtxError, OSError, UnicodeDecodeError) as error:
        click.echo(f"metafork: {argument} is assembled as it is: {error}", err=True)
        return argument
    if verbose:
        click.echo(report_text(result), nl=False, err=True)
    if report is not None:
        with report.open("a", encoding="utf-8") as file:
            file.write(json.dumps(report_document(result, argument)) + "\n")
    if result.text == text:
        return argument
    copy = directory / path.name
    copy.write_text(result.text, encoding="utf-8")
    return str(copy)


def _make_toolkit(directory: Path, max_delta: int, report: Path | None) -> None:
    """Make a directory of links to the CUDA toolkit's programs in which ``ptxas`` is this wrapper."""
    programs = _toolkit_programs()
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise click.ClickException(f"{directory} is not empty")
    for program in programs.iterdir():
        if program.name not in ("ptxas", "nvcc.profile"):
            (directory / program.name).symlink_to(program)
    # nvcc looks for everything beside itself, but for what its profile says is elsewhere.
    profile = (programs / "nvcc.profile").read_text(encoding="utf-8")
    lines = [
        f"TOP = {programs.parent}" if line.split("=")[0].strip() == "TOP" else line for line in profile.splitlines()
    ]
    (directory / "nvcc.profile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = "from metafork.comprehensive.cli import main; main()"
    words = [sys.executable, "-c", run, "ptxas-wrapper", "--ptxas", str(programs / "ptxas")]
    words += ["--max-delta", str(max_delta)]
    if report is not None:
        words += ["--report", str(report.resolve())]
    script = directory / "ptxas"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} -- "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    click.echo(f"{directory / 'nvcc'} assembles through metafork")


def _toolkit_programs() -> Path:
    """Return the directory of the toolkit's programs, as nvcc itself tells it."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise click.ClickException("there is no nvcc on PATH")
    dry = subprocess.run(
        [nvcc, "--dryrun", "-c", "-x", "cu", os.devnull, "-o", os.devnull], capture_output=True, text=True, check=False
    )
    for line in (dry.stdout + dry.stderr).splitlines():
        name, _, value = line.removeprefix("#$ ").partition("=")
        if name == "_HERE_" and (Path(value) / "ptxas").exists():
            return Path(value).resolve()
    raise click.ClickException(f"{nvcc} does not say where its ptxas is")
