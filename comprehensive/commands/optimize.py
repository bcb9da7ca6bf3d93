"""``metafork optimize FILE...``: trees, kernels and dispatcher of MetaFork files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from metafork.comprehensive.commands.faults import (
    INCOMPLETE,
    InputFile,
    Seconds,
    chosen_options,
    diagnostics_option,
    fma_option,
    lines_option,
    machine_option,
    mistakes_of_options,
    order_option,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    static_option,
    strict_option,
)
from metafork.comprehensive.commands.names import completed, listed
from metafork.comprehensive.commands.progress import Progress
from metafork.comprehensive.commands.side_by_side import in_order
from metafork.comprehensive.streams import colored

if TYPE_CHECKING:
    from metafork.comprehensive.emit.targets.target import Target
    from metafork.comprehensive.optimize import Result
    from metafork.comprehensive.options import Order
    from metafork.comprehensive.tree.examples import Shown
    from metafork.comprehensive.tree.schedule_tree import ScheduleTree
    from metafork.ir.messages.diagnostics import Diagnostic
    from metafork.ir.messages.source import Source

_LEAST_DRAWN = 1.0
"""Seconds for the drawing where the time limit leaves none."""
_NOT_DRAWN = "{}.tree.svg is not drawn: the time limit was reached"


@click.command()
@click.argument("files", nargs=-1, required=True, type=InputFile())
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write to this directory, by default NAME.out for NAME.mf. With several files it holds one for each.",
)
@chosen_options
@click.option("--assume", multiple=True, metavar="INEQUALITY", help='Assume an inequality: "B0*B1 <= 1024".')
@machine_option
@static_option
@order_option
@fma_option
@reassociate_option
@click.option(
    "--emit",
    type=click.Choice(["ptx", "object"]),
    help="Also write the PTX of every leaf, or its object code for an AMD GPU.",
)
@click.option(
    "--backend",
    default="cuda",
    show_default=True,
    is_eager=True,
    callback=listed("back end"),
    shell_complete=completed("back end"),
    help="Write kernels as cuda, ptx, hip, opencl, or as a plug-in does. `help` lists all.",
)
@click.option(
    "--target",
    help="Make code for this GPU. By default sm_80 with --emit ptx, sm_75 with --backend ptx, gfx90a with --backend "
    "hip and --emit object.",
)
@click.option("--allow-fma", is_flag=True, help="Let nvcc contract a*b + c as it likes (results may differ).")
@click.option("--jit", is_flag=True, help="Let NVRTC compile kernels at run time for any values of static parameters.")
@lines_option
@click.option("--json", "as_json", is_flag=True, help="Print the trees as JSON. Write files only if -o is given.")
@click.option("--time-limit", type=Seconds(), help="Stop after so many seconds. The exit status is then 4.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Work on so many inputs at a time; by default one per processor."
)
@click.option("--depfile", type=click.Path(dir_okay=False, path_type=Path), help="Write a make rule: outputs, input.")
@strict_option
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    output: Path | None,
    counters: list[str] | None,
    strategies: list[str] | None,
    plugins: tuple[str, ...],
    assume: tuple[str, ...],
    machine: str | None,
    static: tuple[str, ...],
    order: Order,
    fma: bool,
    reassociate: bool,
    emit: str | None,
    backend: str,
    target: str | None,
    allow_fma: bool,
    jit: bool,
    line_directives: bool,
    as_json: bool,
    time_limit: float | None,
    jobs: int | None,
    depfile: Path | None,
    strict: bool,
    form: str,
    definitions: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    """Write the decision tree, kernels and dispatcher of MetaFork files."""
    from metafork.comprehensive.emit.jit_text import with_note
    from metafork.comprehensive.emit.targets.target import with_jit, with_lines
    from metafork.comprehensive.optimize import NO_PTX, NotReadInTimeError, optimize
    from metafork.comprehensive.options import asked_static
    from metafork.ir.messages.diagnostics import DiagnosticsError

    deadline = None if time_limit is None else time.monotonic() + time_limit
    with mistakes_of_options():
        way = _backend(backend, plugins, target, machine, allow_fma=allow_fma)
        way = with_jit(way, allow_fma=allow_fma) if jit else way
        way = with_lines(way) if line_directives else way
    if depfile is not None and len(files) > 1:
        raise click.UsageError("--depfile takes one input file")
    _refuse_equal_names(files)
    jobs = min(jobs or os.cpu_count() or 1, len(files))

    def optimized(path: Path) -> _Outcome:
        """Optimize one input, and write its files."""
        source: Source | None = None
        with mistakes_of_options(), Progress() as progress:
            try:
                source = read_source(path, definitions, folders)
                result = optimize(
                    source,
                    counters=counters,
                    strategies=strategies,
                    machine=machine,
                    assume=assume,
                    time_limit=None if deadline is None else max(0.0, deadline - time.monotonic()),
                    strict=strict,
                    plugins=plugins,
                    progress=progress.explored if jobs == 1 else None,
                    static=asked_static(static, "auto"),
                    order=order,
                    fma=fma,
                    hardware=way.hardware,
                    reassociate=reassociate,
                )
            except DiagnosticsError as error:
                return _Outcome(path, source, error.diagnostics, failed=True)
            except NotReadInTimeError as error:
                return _Outcome(path, source, incomplete=f"{error}; nothing is written")
        if jit:
            result = replace(result, schedules=tuple(map(with_note, result.schedules)))
        unused = _named_in_vain(strategies, result)
        folder = _folder(path, output, len(files) > 1)
        problems: list[str] = []
        if output is not None or not as_json:
            emitted = None if emit is None else (emit, target or _usual_target(emit, machine or ""))
            result, problems = _write(result, folder, way, emitted, allow_fma, depfile, deadline)
        what = "the drawing is left out" if _NOT_DRAWN.format(result.unit.name) in problems else ""
        what = what if result.complete else "the tree is incomplete"
        incomplete = what and f"the time limit ended the run early; {what}"
        text = result.to_json() if as_json else _summary(result, folder, machine) + "\n"
        return _Outcome(path, source, result.warnings, text, problems, unused, incomplete)

    outcomes: list[_Outcome] = []
    for one in in_order(optimized, files, jobs):
        for problem in one.problems:
            click.echo(f"metafork: {problem}", err=True)
        click.echo(_coloured(one.text) if colored(sys.stdout) else one.text, nl=False)
        outcomes.append(one)
    found = [diagnostic for one in outcomes for diagnostic in one.found]
    texts = {one.source.name: one.source.text for one in outcomes if one.source is not None}
    unused = next((one.unused for one in outcomes if one.unused), [])
    incomplete = [(one.path, one.incomplete) for one in outcomes if one.incomplete]
    failed = any(one.failed for one in outcomes)
    if found or form != "text":
        print_diagnostics(found, texts, form)
    if unused:
        click.echo(f"metafork: {', '.join(unused)}: {NO_PTX}", err=True)
    for path, sentence in incomplete:
        click.echo(f"metafork: {path}: {sentence}", err=True)
    context.exit(1 if failed else INCOMPLETE if incomplete else 0)


class _Outcome(NamedTuple):
    """What came of one input: ``text`` is for standard output, ``problems`` are sentences for standard error."""

    path: Path
    source: Source | None
    found: Sequence[Diagnostic] = ()
    text: str = ""
    problems: Sequence[str] = ()
    unused: Sequence[str] = ()
    incomplete: str = ""
    failed: bool = False


def _refuse_equal_names(files: Sequence[Path]) -> None:
    """Refuse two inputs that would write the same output file."""
    from metafork.frontend.unit_name import unit_name

    known: dict[str, Path] = {}
    for path in files:
        name = unit_name(path.name)
        if name in known:
            raise click.UsageError(f"the outputs of {known[name]} and {path} would both be called {name}")
        known[name] = path


def _folder(path: Path, output: Path | None, several: bool) -> Path:
    own = Path(f"{path.stem}.out")
    if output is None:
        return own
    return output / own if several else output


def _backend(
    name: str, plugins: Sequence[str], architecture: str | None, machine: str | None, *, allow_fma: bool
) -> Target:
    """Return the back end of that name, for a GPU where one is said.

    Raises ``UnknownNameError``, ``PluginError`` and ``TargetOptionError``.
    """
    from metafork.comprehensive.emit.targets.table import target
    from metafork.comprehensive.emit.targets.target import for_machine, refuse_other_machine
    from metafork.comprehensive.plugins import load

    way = target(name, [load(plugin) for plugin in plugins])
    if architecture is not None:
        refuse_other_machine(architecture, machine or "")
    way = way.aimed_at(architecture) if architecture is not None else for_machine(way, machine or "")
    way.package("none", allow_fma=allow_fma)
    return way


def _usual_target(emit: str, machine: str) -> str:
    """Return the GPU that ``--emit`` makes code for where none is named."""
    if emit != "object":
        return "sm_80"
    from metafork.comprehensive.emit.targets.hip import gpu_of

    return gpu_of(machine)


def _write(
    result: Result,
    folder: Path,
    way: Target,
    emitted: tuple[str, str] | None,
    allow_fma: bool,
    depfile: Path | None,
    deadline: float | None,
) -> tuple[Result, list[str]]:
    """Write the files of a result; return what of it was written, and what was not.

    It is less than all where the deadline has passed.

    ``emitted`` is what ``--emit`` asks for, and the GPU.
    """
    from metafork.comprehensive.emit import ComputationError, NotOursError, TabulationError, write_outputs
    from metafork.comprehensive.leaf_files import LEFT_OUT, LeafTexts
    from metafork.comprehensive.tree import page, render
    from metafork.llvm.ptx_target import ExternalFunctionError, TargetError
    from metafork.lowering.lowering import CannotLowerError

    stem = result.unit.name
    match emitted:
        case "ptx", gpu:
            texts = LeafTexts(result.analyses, gpu, way)
        case "object", gpu:
            texts = LeafTexts(result.analyses, None, way, gpu)
        case _:
            texts = LeafTexts(result.analyses, None, way)
    try:
        result = texts.in_time(result, deadline)
        leaves, problems = texts.files(result)
        result = texts.with_notes(result)
    except CannotLowerError as error:
        raise click.ClickException(f"{result.unit.source.name}: a leaf has no kernel: {error}") from error
    except ExternalFunctionError as error:
        raise click.ClickException(f"{result.unit.source.name}: a leaf has no code: {error}") from error
    except TargetError as error:
        raise click.UsageError(str(error)) from error
    extra = {
        f"{stem}.tree.json": result.to_json(),
        f"{stem}.tree.dot": result.to_dot(),
        "report.md": result.to_report(texts.compiled()),
        "report.html": page.html(result.document, result.schedules, texts.sources(result)),
        **leaves,
    }
    seconds = None if deadline is None else max(_LEAST_DRAWN, deadline - time.monotonic())
    try:
        extra[f"{stem}.tree.svg"] = result.to_svg(seconds)
    except (render.NoGraphvizError, render.TooLargeError) as error:
        problems.append(f"{stem}.tree.svg is not drawn: {error}")
    except subprocess.TimeoutExpired:
        problems.append(_NOT_DRAWN.format(stem))
    except subprocess.CalledProcessError as error:
        problems.append(f"{stem}.tree.svg is not drawn: Graphviz failed: {error.stderr.strip()}")
    try:
        write_outputs(
            result, folder, code_of=texts.code_of, allow_fma=allow_fma, extra=extra, depfile=depfile, target=way
        )
    except (ComputationError, TabulationError) as error:
        raise click.ClickException(f"{result.unit.source.name}: no dispatcher can be written: {error}") from error
    except NotOursError as error:
        raise click.ClickException(f"{error}; name another directory with -o") from error
    except OSError as error:
        place = error.filename or folder
        raise click.ClickException(f"{place} cannot be written: {error.strerror or error}") from error
    return result, [*_left_out(result.schedules, LEFT_OUT), *problems]


def _left_out(trees: Sequence[ScheduleTree], beginning: str) -> list[str]:
    """Return a sentence for each reason why leaves of a schedule are left out; the report names the leaves."""
    sentences = []
    for tree in trees:
        notes = [(subject, reason) for subject, reason in tree.notes if subject.startswith(beginning)]
        for reason in dict.fromkeys(reason for _, reason in notes):
            own = [subject for subject, other in notes if other == reason]
            what = own[0] if len(own) == 1 else f"{len(own)} leaves are left out"
            sentences.append(f"{tree.program.name}: {what}: {reason}")
    return sentences


def _named_in_vain(strategies: Sequence[str] | None, result: Result) -> list[str]:
    """Return the strategies that were named and take no part."""
    from metafork.comprehensive.registry import GROUPS
    from metafork.comprehensive.spelled_options import name_and_options

    named = (name_and_options(text)[0].removeprefix("+") for text in strategies or ())
    every = (one for name in named for one in GROUPS.get(name, (name,)))
    return [name for name in dict.fromkeys(every) if name not in result.strategies]


def _summary(result: Result, folder: Path, machine: str | None) -> str:
    from metafork.comprehensive.tree.examples import for_gpus, gpus_for, point_to_show, question
    from metafork.comprehensive.tree.legend import legend
    from metafork.comprehensive.tree.outline import example_lines, outline, wrapped
    from metafork.comprehensive.tree.remarks import in_one_line
    from metafork.comprehensive.tree.schedule_tree import ESTIMATED
    from metafork.ir.messages.source import base_name

    lines: list[str] = []
    points: list[Shown] = []
    source = base_name(result.unit.source.name)
    for schedule, tree in zip(result.document.schedules, result.schedules, strict=True):
        leaves = len(schedule.leaves)
        gpus = dict(gpus_for(schedule))
        what = f"{leaves} {'leaf' if leaves == 1 else 'leaves'}{for_gpus(list(gpus))}"
        lines.append(f"{schedule.name} ({source}:{schedule.line}): {what}")
        if tree.remarks:
            lines += wrapped(in_one_line(tree.remarks), "  ", "    ")
        named = {name: values for name, values in gpus.items() if name == machine}
        points.append(point_to_show(schedule, named or gpus))
        if not leaves:
            lines.append("  no parameters, on no machine asked for, satisfy all that it assumes: the serial code runs")
            if any(subject == ESTIMATED for subject, _ in tree.notes):
                lines.append("  an estimate of registers alone leaves leaves out: report.md says by how much")
        else:
            shown = [*outline(schedule), *legend(schedule), *example_lines(schedule, points[-1])]
            lines += [f"  {line}" for line in shown]
        if not schedule.complete:
            lines.append("  the time limit left branches unexplored; report.md lists them")
    if not result.schedules:
        lines.append("there is no meta_schedule in this file")
    asked = question(result.document.schedules, folder, points)
    following = [f"next: {asked}"] if asked else []
    return "\n".join([*lines, f"wrote {folder}/ (open {folder}/report.html, or read report.md)", *following])


def _coloured(text: str) -> str:
    """Return what is said of a tree with the kernels that run in colour."""
    text = re.sub(r"(?m)^(\w+)(?= \(.*: \d+ lea)", lambda name: click.style(name[0], bold=True), text)
    text = re.sub(r"\bleaf \d+", lambda leaf: click.style(leaf[0], fg="green", bold=True), text)
    text = re.sub(r"the serial code", click.style("the serial code", fg="yellow"), text)
    return re.sub(r" \.{3,} ", lambda dots: click.style(dots[0], dim=True), text)
