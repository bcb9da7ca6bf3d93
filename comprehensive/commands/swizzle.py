"""``metafork swizzle FILE.swz``: complete a data-movement sketch, rank the solutions, print them as code."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct, field
from msgspec.structs import replace

from metafork.comprehensive.commands.faults import (
    INCOMPLETE,
    InputFile,
    Seconds,
    diagnostics_option,
    print_diagnostics,
    read_source,
    refuse_to_overwrite,
    write_output,
)
from metafork.comprehensive.signals import OutOfTimeError, until

if TYPE_CHECKING:
    from metafork.ir.messages.source import Source
    from metafork.swizzle.model.problem import Problem
    from metafork.swizzle.output.ranking import Objective, Ranked
    from metafork.swizzle.search.search import Search, Statistics

_MOST_MEMORY = 1 << 40
"""Megabytes: a bound above is none."""
_MANY = 200
"""So many solutions were priced before ``--best`` says what ends sooner."""
_MANY_FOUND = (
    f"note: {_MANY} solutions so far, and --best compares all; --objective accumulates drops what cannot be the best, "
    "--time-limit ends the search with the best until then, and -D level=1 searches less where the sketch has a level"
)
_ARCHITECTURES = ("sm_35", "sm_70", "sm_90")


def _constants(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value.removeprefix("-").isdigit():
            raise click.BadParameter(f"'{text}' is not of the form NAME=INTEGER")
        if name in result:
            raise click.BadParameter(f"'{name}' is set twice")
        result[name] = int(value)
    return result


@click.command()
@click.argument("file", type=InputFile("swz"))
@click.option("--first", "how", flag_value="first", help="Stop at the first solution found (the default).")
@click.option("--all", "how", flag_value="all", help="Every solution, cheapest first.")
@click.option("--best", "how", flag_value="best", help="The cheapest of all solutions.")
@click.option(
    "--emit", type=click.Choice(["cuda", "c", "json", "llvm", "ptx"]), help="Print code instead of expressions."
)
@click.option("--widen", is_flag=True, help="Try the levels 0 to 4 for all holes in turn, up to the first solution.")
@click.option("--time-limit", "limit", type=Seconds(), metavar="SECONDS", help="Stop then; keep what was found.")
@click.option("--memory", type=click.IntRange(min=1), metavar="MB", help="Bound on the memory of the search.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw the first solution printed.")
@click.option("-D", "constants", multiple=True, callback=_constants, metavar="NAME=N", help="Set a 'let' constant.")
@click.option("--arch", type=click.Choice(_ARCHITECTURES), default="sm_70", show_default=True, help="Weights of costs.")
@click.option(
    "--element-bytes",
    type=click.Choice(["4", "8", "16"]),
    default="4",
    show_default=True,
    help="Bytes of an element, for the banks of shared memory in costs.",
)
@click.option(
    "--objective",
    type=click.Choice(["cost", "accumulates"]),
    default="cost",
    show_default=True,
    help="What the order of solutions minimises.",
)
@click.option(
    "--registers",
    is_flag=True,
    help="A device function from registers to registers (not with --emit c).",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there, not to the screen.")
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    how: str | None,
    emit: str | None,
    widen: bool,
    limit: float | None,
    memory: int | None,
    picture: Path | None,
    constants: dict[str, int],
    arch: str,
    element_bytes: str,
    objective: str,
    output: Path | None,
    registers: bool,
    form: str,
) -> None:
    """Complete a data-movement sketch (*.swz).

    Prints what each hole becomes and what the solution costs, or code.  The exit status is 1 when the sketch is at
    fault, has no solution, or does not fit into --memory; 4 when --time-limit ended the search, and 130 when it was
    interrupted: what was found until then is printed.
    """
    from metafork.ir.messages.diagnostics import DiagnosticsError
    from metafork.swizzle.grammar.levels import LEVELS
    from metafork.swizzle.output.instructions import NotLowerableError
    from metafork.swizzle.output.picture import draw
    from metafork.swizzle.search.memory import DoesNotFitError, bounded_process

    if registers and emit in {None, "c"}:
        raise click.UsageError("--registers is for --emit cuda, llvm, ptx or json")
    for written in (output, picture):
        if written is not None:
            refuse_to_overwrite(written, file)
    source = read_source(file)
    task = _Task(source, constants, how or "first", arch, "accumulates" if objective == "accumulates" else "cost")
    task.element_bytes = int(element_bytes)
    stopped = 0
    try:
        memory = None if memory is None else min(memory, _MOST_MEMORY)
        with bounded_process(memory), until(None if limit is None else time.monotonic() + limit):
            task.run(memory, LEVELS if widen else (None,))
    except DiagnosticsError as error:
        print_diagnostics(error.diagnostics, {source.name: source.text}, form)
        context.exit(1)
    except DoesNotFitError as error:
        raise click.ClickException(f"{file} does not fit: {error}") from error
    except OutOfTimeError:
        stopped = INCOMPLETE
    except KeyboardInterrupt:
        stopped = 130
    if stopped:
        why = "the time limit was reached" if stopped == INCOMPLETE else "interrupted"
        click.echo(f"{file}: {why}; {task.left_open()}", err=True)
    elif not task.found:
        raise click.ClickException(f"{file} has no solution: {task.why_none(widened=widen)}")
    if task.found:
        try:
            text = _printed(task, emit, complete=not stopped, registers=registers)
        except NotLowerableError as error:
            raise click.ClickException(f"{file} cannot be printed as {emit}: {error}") from error
        if output is None:
            click.echo(text, nl=False)
        else:
            write_output(output, text)
        if picture is not None:
            assert task.problem is not None
            write_output(picture, draw(task.problem, task.ranked()[0].solution))
    if stopped:
        context.exit(stopped)


class _Task(Struct):
    """A run of the search, so that what it found outlives an interruption."""

    source: Source
    constants: dict[str, int]
    how: str
    arch: str
    objective: Objective
    problem: Problem | None = None
    search: Search | None = None
    level: int | None = None
    found: list[Ranked] = field(default_factory=list)
    count: int = 0
    element_bytes: int = 4

    def run(self, memory: int | None, levels: tuple[int | None, ...]) -> None:
        """Search at each level in turn until there is a solution."""
        from metafork.swizzle.language.elaborate import load
        from metafork.swizzle.output.ranking import priced
        from metafork.swizzle.search.least_accumulates import LeastAccumulates
        from metafork.swizzle.search.search import Search

        sizes: list[int] | None = None
        for level in levels:
            problem = load(self.source, self.constants, level)
            before, sizes = sizes, [len(hole.options) for hole in problem.holes()]
            if sizes == before:
                continue
            bounded = self.how == "best" and self.objective == "accumulates"
            bound = LeastAccumulates() if bounded else None
            self.problem, self.level, self.search = problem, level, Search(problem, memory, bound)
            for solution in self.search:
                one = priced(
                    problem,
                    solution,
                    architecture=self.arch,
                    objective=self.objective,
                    element_bytes=self.element_bytes,
                )
                self.count += 1
                if self.how == "best" and bound is None and self.count == _MANY:
                    click.echo(_MANY_FOUND, err=True)
                if self.how != "best":
                    self.found.append(one)
                elif not self.found or one.key < self.found[0].key:
                    self.found = [one]
                if bound is not None:
                    bound.reached = self.found[0].key[0]
                if self.how == "first":
                    return
            if self.found:
                return

    def ranked(self) -> list[Ranked]:
        """Return what was found, the best first."""
        return sorted(self.found, key=lambda one: one.key)

    def left_open(self) -> str:
        """Say what a search that was stopped does not know."""
        if not self.found:
            return "no solution was found until then, and none was excluded"
        best = "the best of them is printed, not proved optimal" if self.how == "best" else "there may be more"
        return f"{self.count} solution{'s' if self.count > 1 else ''} found until then; {best}"

    def why_none(self, *, widened: bool) -> str:
        """Say which stage and goal cell fail, and whether a wider level exists."""
        from metafork.ir.messages.diagnostics import DiagnosticsError
        from metafork.swizzle.language.elaborate import load

        assert self.problem is not None
        assert self.search is not None
        failure = self.search.why_none()
        text = "no choice for its holes meets the goal" + ("" if failure is None else f"; {failure}")
        if widened:
            return f"{text}. Level 4 is the widest"
        try:
            widest = load(self.source, self.constants, 4)
        except DiagnosticsError as error:
            return f"{text}. A wider level is refused: {error.diagnostics[0].message}"
        pairs = zip(self.problem.holes(), widest.holes(), strict=True)
        wider = [now.name for now, then in pairs if len(then.options) > len(now.options)]
        if not wider:
            return f"{text}. There is no wider level"
        names = ", ".join(wider[:3]) + (", …" if len(wider) > 3 else "")
        return f"{text}. A wider level exists for {names}: --widen tries the levels in turn"


def _printed(task: _Task, emit: str | None, *, complete: bool, registers: bool) -> str:
    from metafork.swizzle.output.lowering import lower
    from metafork.swizzle.output.print_c import print_c
    from metafork.swizzle.output.print_cuda import print_cuda
    from metafork.swizzle.output.print_json import print_json

    assert task.problem is not None
    assert task.search is not None
    problem, chosen, statistics = task.problem, task.ranked(), task.search.statistics
    names = [problem.name if len(chosen) == 1 else f"{problem.name}_{number}" for number in range(len(chosen))]
    match emit:
        case "cuda" | "llvm" | "ptx":
            lowered = [
                lower(problem, one.solution, registers=True) if registers else one.code or lower(problem, one.solution)
                for one in chosen
            ]
            names = [f"{name}_registers" if registers else name for name in names]
            codes = [replace(code, name=name) for name, code in zip(names, lowered, strict=True)]
            if emit == "cuda":
                return print_cuda(codes)
            from metafork.swizzle.output.print_llvm import print_llvm, print_ptx, usual_element

            return (print_llvm if emit == "llvm" else print_ptx)(codes, usual_element(codes))
        case "c":
            return print_c(problem, [(name, one.solution) for name, one in zip(names, chosen, strict=True)])
        case "json":
            solutions = [
                (one.solution, lower(problem, one.solution, registers=True) if registers else one.code, one.cost)
                for one in chosen
            ]
            return print_json(problem, solutions, statistics, complete=complete)
        case _:
            return _summary(task, problem, chosen, statistics, complete=complete)


def _summary(task: _Task, problem: Problem, chosen: list[Ranked], statistics: Statistics, *, complete: bool) -> str:
    from metafork.swizzle.model.index import to_text

    lines = []
    for number, one in enumerate(chosen, 1):
        lines.append(f"solution {number} of {len(chosen)}" if len(chosen) > 1 else "solution")
        for hole in problem.holes():
            spelled = to_text(hole.options.expression(one.solution.options[hole.name]))
            lines.append(f"  {hole.name} = {hole.kind} {spelled}")
        if one.cost is not None:
            price = one.cost
            parts = f"{price.shuffles} shuffles, {price.selects} selects, {price.folds} folds"
            if price.accumulates:
                parts += f", {price.accumulates} accumulates"
            if price.bank_degree:
                parts += f", bank degree {price.bank_degree}"
            lines.append(f"  cost {price.total:g}: {parts}, {price.address_operations} index operations")
    if task.level is not None:
        lines.append(f"level {task.level}, the first of 1 to 4 with a solution")
    if task.how == "best":
        what = "accumulates" if task.objective == "accumulates" else "cost"
        lines.append(
            f"no solution has less {what}" if complete else f"not proved optimal: stopped at {task.count} found"
        )
    searched = f"{statistics.options} options, {statistics.states_built} states, {statistics.states_pruned} pruned"
    if complete and task.how == "all":
        searched += f", ineffectiveness {statistics.ineffectiveness:.2f}"
    return "\n".join([*lines, searched]) + "\n"
