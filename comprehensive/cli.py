"""The console script ``metafork``: a table of commands, each loaded only when it is called.

A command is a module of ``comprehensive.commands`` with one public name, ``command``.  The table holds the one-line
help, so that ``metafork --help`` imports nothing heavy.  Exit status: 0 done, 1 the input is at fault (diagnostics),
2 usage, 3 a fault of the tool, 4 the time limit ended the run early, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from metafork.comprehensive.signals import unwind_when_asked_to_end
from metafork.comprehensive.streams import give_up, prepare_streams

INTERRUPTED = 130
"""The exit status after SIGINT: 128 and the signal's number."""

_STACK_WORDS = 1 << 13

COMMANDS = {
    "optimize": "Write the decision tree, kernels and dispatcher of a MetaFork file.",
    "build": "Make a library of a MetaFork file.",
    "render": "Draw a *.tree.json file as SVG.",
    "select": "Say which leaf a machine and parameter values choose, and why not the others.",
    "verify": "Prove the guards of every leaf and run it against the serial program.",
    "explain": "Say what is cached, kept in registers and joined to the grid, and why the rest is not.",
    "apply": "Print the program after some strategies.",
    "check": "Parse MetaFork files and print their diagnostics.",
    "cmake-dir": "Print the directory of MetaFork.cmake.",
    "include-dir": "Print the directory of the C runtime headers.",
    "shuffle": "Replace global loads of a PTX file by warp shuffles.",
    "ptxas-wrapper": "Run ptxas on a copy of its input whose loads became shuffles.",
    "swizzle": "Complete a data-movement sketch (*.swz).",
}


OTHER_WORDS = {
    "optimize": ("compile", "translate", "generate", "emit", "run", "transform"),
    "build": ("library", "link", "make", "install"),
    "check": ("lint", "validate", "parse"),
    "render": ("draw", "plot", "tree"),
    "verify": ("test", "prove"),
}
"""What other tools call these commands."""


def _no_command(name: str, following: Sequence[str]) -> str:
    """Say that there is no such command, and which one was probably meant."""
    import difflib  # for those who mistype

    lines = [f"there is no command {name[:60]!r}"]
    close = [one for one, words in OTHER_WORDS.items() if name.lower() in words]
    close += difflib.get_close_matches(name, COMMANDS, n=1)
    if close:
        lines.append(f"  did you mean: {' '.join(['metafork', close[0], *following])}?")
    elif Path(name).is_file() or Path(name).suffix in (".mf", ".c", ".cu", ".h"):
        lines.append(f"  to compile a file: {' '.join(['metafork', 'optimize', name, *following])}")
    return "\n".join([*lines, "  all commands: metafork --help"])


class LazyGroup(click.Group):
    """A click group that imports ``metafork.comprehensive.commands.<name>`` on first use of ``<name>``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or ``None`` where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"metafork.comprehensive.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interrupt ends it as shells expect, without the traceback and without half a file."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nmetafork: interrupted", err=True)
            ctx.exit(INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(_no_command(name, args[1:]), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="metafork")
def cli() -> None:
    """Comprehensive optimization of loops annotated in MetaFork, for CUDA."""


def _run() -> None:
    cli(standalone_mode=True)


# Frames lie in blocks of 16 KiB, and whoever calls across the end of one maps a block and gives it back, thousands of
# times a run where a loop stands there. A block has room for its first frame twice: one with a deep stack makes all lie
# in one block, of which the system gives only the pages that are used.
_run.__code__ = _run.__code__.replace(co_stacksize=_STACK_WORDS)


def main() -> NoReturn:
    """Run the command line; turn a fault of the tool into exit status 3, one of the system into 1."""
    # Programs and polynomials have few cycles; the collector would look through all of them again and again.
    gc.set_threshold(200_000, 20, 20)
    # Nor through what is left at the end, which goes with the process.
    atexit.register(gc.freeze)
    unwind_when_asked_to_end()
    prepare_streams()
    try:
        _run()
    except OSError as error:
        if "METAFORK_TRACEBACK" in os.environ:
            raise
        give_up(error)
        sys.exit(1)
    except Exception as fault:
        if "METAFORK_TRACEBACK" in os.environ:
            raise
        click.echo(f"metafork: internal error: {type(fault).__name__}: {fault}", err=True)
        click.echo("This is a fault of metafork; METAFORK_TRACEBACK=1 prints where it happened.", err=True)
        sys.exit(3)
    sys.exit(0)
