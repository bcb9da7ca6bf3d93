"""``metafork swizzle FILE.swz``: complete a data-movement sketch, rank the solutions, print them as code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comprehensive.commands.faults import diagnostics_option, print_diagnostics, read_source

if TYPE_CHECKING:
    from metafork.swizzle.model.problem import Problem
    from metafork.swizzle.output.ranking import Ranked
    from metafork.swizzle.search.search import Statistics

_ARCHITECTURES = ("sm_35", "sm_70", "sm_90")


def _constants(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value.removeprefix("-").isdigit():
            raise click.BadParameter(f"'{text}' is not of the form NAME=INTEGER")
        result[name] = int(value)
    return result


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--first", "how", flag_value="first", help="Stop at the first solution found (the default).")
@click.option("--all", "how", flag_value="all", help="Every solution, cheapest first.")
@click.option("--best", "how", flag_value="best", help="The cheapest of all solutions.")
@click.option(
    "--emit", type=click.Choice(["cuda", "c", "json", "llvm", "ptx"]), help="Print code instead of expressions."
)
@click.option("--memory", type=click.IntRange(min=1), metavar="MB", help="Bound on the memory of the search.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw the first solution printed.")
@click.option("-D", "constants", multiple=True, callback=_constants, metavar="NAME=N", help="Set a 'let' constant.")
@click.option("--arch", type=click.Choice(_ARCHITECTURES), default="sm_70", show_default=True, help="Weights of costs.")
@click.option(
    "--objective",
    type=click.Choice(["cost", "accumulates"]),
    default="cost",
    show_default=True,
    help="What the order of solutions minimises.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there, not to the screen.")
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    how: str | None,
    emit: str | None,
    memory: int | None,
    picture: Path | None,
    constants: dict[str, int],
    arch: str,
    objective: str,
    output: Path | None,
    form: str,
) -> None:
    """Complete a data-movement sketch (*.swz).

    Prints what each hole becomes and what the solution costs, or code.  The exit status is 1 when the sketch is at
    fault, has no solution, or does not fit into --memory.
    """
    from metafork.ir.diagnostics import DiagnosticsError
    from metafork.swizzle.language.elaborate import load
    from metafork.swizzle.output.lowering import NotLowerableError
    from metafork.swizzle.output.picture import draw
    from metafork.swizzle.output.ranking import rank
    from metafork.swizzle.search.memory import DoesNotFitError, bounded_process
    from metafork.swizzle.search.search import Search

    source = read_source(file)
    found = []
    try:
        with bounded_process(memory):
            problem = load(source, constants)
            search = Search(problem, memory)
            for solution in search:
                found.append(solution)
                if how in {None, "first"}:
                    break
    except DiagnosticsError as error:
        print_diagnostics(error.diagnostics, {source.name: source.text}, form)
        context.exit(1)
    except DoesNotFitError as error:
        raise click.ClickException(f"{file} does not fit: {error}") from error
    if not found:
        raise click.ClickException(f"{file} has no solution: no choice for its holes meets the goal")
    ranked = rank(problem, found, architecture=arch, objective="accumulates" if objective == "accumulates" else "cost")
    chosen = ranked[:1] if how == "best" else ranked
    try:
        text = _printed(problem, chosen, search.statistics, emit, complete=how in {"all", "best"})
    except NotLowerableError as error:
        raise click.ClickException(f"{file} cannot be printed as {emit}: {error}") from error
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    if picture is not None:
        picture.write_text(draw(problem, chosen[0].solution), encoding="utf-8")


def _printed(
    problem: Problem, chosen: list[Ranked], statistics: Statistics, emit: str | None, *, complete: bool
) -> str:
    from metafork.swizzle.output.lowering import lower
    from metafork.swizzle.output.print_c import print_c
    from metafork.swizzle.output.print_cuda import print_cuda
    from metafork.swizzle.output.print_json import print_json

    names = [problem.name if len(chosen) == 1 else f"{problem.name}_{number}" for number in range(len(chosen))]
    match emit:
        case "cuda" | "llvm" | "ptx":
            lowered = [one.code or lower(problem, one.solution) for one in chosen]
            codes = [replace(code, name=name) for name, code in zip(names, lowered, strict=True)]
            if emit == "cuda":
                return print_cuda(codes)
            from metafork.swizzle.output.print_llvm import print_llvm, print_ptx, usual_element

            return (print_llvm if emit == "llvm" else print_ptx)(codes, usual_element(codes))
        case "c":
            return print_c(problem, [(name, one.solution) for name, one in zip(names, chosen, strict=True)])
        case "json":
            return print_json(problem, [(one.solution, one.code, one.cost) for one in chosen], statistics)
        case _:
            return _summary(problem, chosen, statistics, complete=complete)


def _summary(problem: Problem, chosen: list[Ranked], statistics: Statistics, *, complete: bool) -> str:
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
    searched = f"{statistics.options} options, {statistics.states_built} states, {statistics.states_pruned} pruned"
    if complete:
        searched += f", ineffectiveness {statistics.ineffectiveness:.2f}"
    return "\n".join([*lines, searched]) + "\n"
