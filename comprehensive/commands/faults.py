"""How the commands say that something is wrong: diagnostics of the input (status 1), mistakes in options (status 2)."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from metafork.comprehensive.commands.names import completed, listed, told
from metafork.comprehensive.streams import colored
from metafork.ir.messages.diagnostics import Diagnostic, Severity, in_order, render_json, render_sarif, render_text
from metafork.ir.messages.line_markers import with_presumed_places
from metafork.ir.messages.source import Source

FORMATS = ("text", "json", "sarif")
MOST_SHOWN = 100
"""How many diagnostics are printed as text: who reads more of them mends the first before."""
INCOMPLETE = 4
"""The exit status where the time limit ended a run early: what was found is written, and marked as incomplete."""
NOT_VERIFIED = 5
"""The exit status of ``verify`` where nothing failed, and some leaf never ran."""
MOST_SECONDS = 1e8
"""Time limits above are none; more than a timer of the system takes."""
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def diagnostics_option(function: Decorated) -> Decorated:
    """Add ``--diagnostics``."""
    return click.option(
        "--diagnostics",
        "form",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="How to report errors of the input (on standard error).",
    )(function)


def shown(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str], form: str, color: bool) -> str:
    """Return diagnostics in one of the formats; as text the first ``MOST_SHOWN``, errors first."""
    diagnostics = with_presumed_places(diagnostics, texts)
    match form:
        case "json":
            return render_json(diagnostics)
        case "sarif":
            return render_sarif(diagnostics)
        case _:
            ordered = sorted(in_order(diagnostics), key=lambda one: one.severity is not Severity.ERROR)
            text = render_text(ordered[:MOST_SHOWN], texts, color)
            left = len(ordered) - MOST_SHOWN
            return (
                text
                if left <= 0
                else f"{text}\n{left} more of {len(ordered)} findings: --diagnostics json lists all.\n"
            )


def print_diagnostics(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str], form: str, err: bool = True) -> None:
    """Print diagnostics; in colour on a terminal only."""
    stream = sys.stderr if err else sys.stdout
    text = shown(diagnostics, texts, form, colored(stream))
    click.echo(text, err=err, nl=not text.endswith("\n"))


def _definitions(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for text in given:
        if re.match(r"[A-Za-z_]\w*(\([^()]*\))?(=|\Z)", text) is None or "\n" in text:
            raise click.BadParameter(f"{text!r} is not NAME or NAME=VALUE")
    return given


class Seconds(click.FloatRange):
    """A time limit: any number from 0 on; ``None`` for one that nobody lives to see."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of seconds."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds if seconds < MOST_SECONDS else None


def preprocessor_options(function: Decorated) -> Decorated:
    """Add ``-D`` and ``-I``, which mean what they mean to a C compiler."""
    define = click.option(
        "-D",
        "definitions",
        multiple=True,
        metavar="NAME[=VALUE]",
        callback=_definitions,
        help="Define a macro, as C compilers do.",
    )
    include = click.option(
        "-I",
        "folders",
        multiple=True,
        metavar="DIRECTORY",
        type=click.Path(),
        help="Look for headers in this directory too.",
    )
    return define(include(function))


class InputFile(click.Path):
    """A file that exists, or a directory if there are ``folders``; ``ending`` is what names of such files end in."""

    def __init__(self, ending: str = "mf", folders: bool = False) -> None:
        self._ending = ending
        super().__init__(exists=True, dir_okay=folders, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        path = Path(value)
        if path.is_dir() and not self.dir_okay:
            command = "COMMAND" if ctx is None else ctx.info_name
            raise click.UsageError(
                f"{path} is a directory; name the files in it: metafork {command} {value}/*.{self._ending}", ctx
            )
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if path.exists():
                raise
            raise click.UsageError(f"there is no {'directory' if self.dir_okay else 'file'} {path}", ctx) from error


def read_source(path: Path, definitions: Sequence[str] = (), folders: Sequence[str] = ()) -> Source:
    """Read an input file.  Raises ``DiagnosticsError`` where it is no UTF-8, ``click.ClickException`` (status 1)."""
    from metafork import frontend

    try:
        return frontend.read_source(path, definitions, folders)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from error


def refuse_source(path: Path, then: str) -> None:
    """Refuse a source file in the place of a tree; ``then`` is what to do with its tree."""
    with suppress(OSError):
        if path.suffix in (".mf", ".c", ".cu", ".h") or b"meta_schedule" in path.read_bytes().split(b'"')[0]:
            first = f"first make its tree: metafork optimize {path}"
            raise click.UsageError(f"{path} is a source file\n  {first}\n  {then}")


def refuse_to_overwrite(path: Path, source: Path) -> None:
    """Raise ``click.UsageError`` for an output that is an input too."""
    if path.exists() and path.samefile(source):
        raise click.UsageError(f"{path} is the input itself, which is never overwritten")


def write_output(path: Path, text: str | bytes) -> None:
    """Write a file that an option names: as a whole, or not at all; into what is no regular file, directly.

    Raises ``click.ClickException`` where it cannot be written.
    """
    from metafork.comprehensive.emit import write_files

    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(text.encode(errors="surrogateescape") if isinstance(text, str) else text)
        else:
            write_files(path.parent, {path.name: text})
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error


def _names_of(kind: str) -> Callable[[click.Context, click.Parameter, str | None], list[str] | None]:
    """Return the callback that splits the names of counters or strategies, whose options may hold commas in braces."""
    shown_or_given = listed(kind)

    def callback(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str] | None:
        from metafork.comprehensive.spelled_options import split_names

        given = shown_or_given(context, parameter, text)
        return None if given is None else split_names(given)

    return callback


def chosen_options(function: Decorated) -> Decorated:
    """Add ``--counters``, ``--strategies`` and ``--plugin``."""
    options = (
        click.option(
            "--counters",
            is_eager=True,
            callback=_names_of("counter"),
            shell_complete=completed("counter"),
            help="Counters to evaluate, in this order. +NAME adds one to the defaults. `help` lists all.",
        ),
        click.option(
            "--strategies",
            is_eager=True,
            callback=_names_of("strategy"),
            shell_complete=completed("strategy"),
            help="Strategies to try, in this order. +NAME adds one to the defaults; options go in braces. `help` "
            "lists all.",
        ),
        click.option(
            "--plugin",
            "plugins",
            multiple=True,
            metavar="MODULE",
            help="A module or a .py file with further counters, strategies and back ends.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


machine_option = click.option(
    "--machine",
    is_eager=True,
    callback=listed("machine"),
    shell_complete=completed("machine"),
    help="Make leaves for these machines: a GPU or preset (a100, sm_80), a range (sm_80..sm_120), values "
    "(T=1024,Z=12288), several of these, or `all`. By default those of the back end (sm_75..sm_120), with --order "
    "paper all. `help` lists the presets.",
)

static_option = click.option(
    "--static",
    multiple=True,
    metavar="NAME=VALUES",
    help="Also compile leaves for these values of a program parameter: s=1,2,4 (they replace its meta_static). "
    "`auto`: typical values if the text names none. `none`: no values.",
)

fma_option = click.option(
    "--fma", is_flag=True, help="Fuse x*y + z into one operation, by the same rule everywhere (FP_CONTRACT)."
)

lines_option = click.option(
    "--line-directives", is_flag=True, help="Let debuggers and profilers show the lines of FILE (#line, -lineinfo)."
)

reassociate_option = click.option(
    "--reassociate",
    is_flag=True,
    help="Allow `meta_reduction` of floating-point numbers. It adds up in an order of its own.",
)

order_option = click.option(
    "--order",
    type=click.Choice(["cost", "paper"]),
    default="cost",
    show_default=True,
    help="Which of several possible leaves goes first: the one that is proved to do less, or the paper's choice. With "
    "`paper` there are also leaves for all machines, and the strategies register_pressure.",
)

strict_option = click.option(
    "--strict", is_flag=True, help="Refuse a file if it is not proved free of races, instead of warning."
)


@contextmanager
def mistakes_of_options() -> Iterator[None]:
    """Turn unknown names, bad options, plugins, machines and assumptions into usage errors."""
    try:
        yield
    except ValueError as error:
        from metafork.comprehensive.emit.targets.target import TargetOptionError
        from metafork.comprehensive.options import StaticValueError
        from metafork.comprehensive.plugins import PluginError
        from metafork.comprehensive.registry import UnknownNameError
        from metafork.comprehensive.spelled_options import OptionError
        from metafork.comprehensive.systems.inequality_text import InequalityError
        from metafork.ir.contraction import NameTakenError
        from metafork.runtime.machine import MachineError

        wrong_options = (UnknownNameError, OptionError, PluginError, MachineError, InequalityError, StaticValueError)
        if not isinstance(error, (*wrong_options, NameTakenError, TargetOptionError)):
            raise
        raise click.UsageError(told(error) if isinstance(error, UnknownNameError) else str(error)) from error
