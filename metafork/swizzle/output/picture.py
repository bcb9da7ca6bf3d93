"""A picture of a solution: how terms move through its stages, as in the papers' figures.

Every array with thread and register axes is a grid, threads across and registers down; a cell shows its term and is
coloured by the thread that the goal sends it to.  Lines follow each term of the first threads from stage to stage.
"""

from __future__ import annotations

from math import prod
from xml.sax.saxutils import escape

from metafork.swizzle.model.index import to_text
from metafork.swizzle.model.problem import Cells, Fold, Gather, Hole, Literal, Problem, Statement, execute, hole_table
from metafork.swizzle.model.terms import UNDEFINED, ZERO
from metafork.swizzle.search.search import Solution

_CELL_WIDTH, _CELL_HEIGHT, _GAP, _MARGIN, _TITLE = 26, 16, 34, 12, 16
# Threads beyond this are cut from the picture, with a note.
_MOST_COLUMNS = 64


def draw(problem: Problem, solution: Solution) -> str:
    """Return the picture as SVG text."""
    choice = {hole.name: hole_table(hole, solution.options[hole.name]) for hole in problem.holes()}
    arrays = execute(problem, choice)
    owner = _owners(problem)
    shown = [one for one in problem.statements if _is_shown(problem, one)]
    body: list[str] = []
    places: dict[str, dict[int, tuple[float, float]]] = {}
    y, width = float(_MARGIN), 0.0
    for one in shown:
        columns, rows = _grid(problem, one)
        body.append(_text(_MARGIN, y + _TITLE - 4, _title(one, solution), "title"))
        y += _TITLE
        places[one.name] = {}
        for cell, term in enumerate(arrays[one.name].tolist()):
            column, row = _position(problem, one, cell)
            if column >= _MOST_COLUMNS:
                continue
            at = _MARGIN + column * _CELL_WIDTH, y + row * _CELL_HEIGHT
            body.append(_box(at, _colour(owner.get(term)), _label(problem, term)))
            places[one.name][cell] = at
        body += _arrows(problem, one, choice, places)
        width = max(width, 2 * _MARGIN + min(columns, _MOST_COLUMNS) * _CELL_WIDTH)
        y += rows * _CELL_HEIGHT + _GAP
    size = f'width="{max(width, 420):.0f}" height="{y:.0f}"'
    style = (
        "text{font-family:monospace;font-size:9px;text-anchor:middle}"
        "text.title{font-size:12px;text-anchor:start}rect{stroke:#555;stroke-width:.5}"
        "line{stroke:#000;stroke-width:.7;opacity:.45}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><title>{escape(problem.name)}</title>'
        f"<style>{style}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _is_shown(problem: Problem, one: Statement) -> bool:
    if isinstance(one, Literal) and one.is_input:
        return False
    # Copies for products and accumulators repeat what the arrays around them show.
    return not (isinstance(one, Gather) and "." in one.name)


def _owners(problem: Problem) -> dict[int, int]:
    """Return for each symbol the thread that needs it first."""
    goal = problem.statement(problem.goal)
    inner = prod(goal.shape[problem.warp :])
    owner: dict[int, int] = {}
    for cell, term in enumerate(problem.goal_terms.tolist()):
        waiting = [term]
        while waiting:
            member = waiting.pop()
            owner.setdefault(member, cell // inner)
            op = problem.terms.operator(member)
            if op is not None:
                waiting.extend(problem.terms.members(member, op))
    return owner


def _grid(problem: Problem, one: Statement) -> tuple[int, int]:
    columns = prod(one.shape[: problem.warp])
    return columns, prod(one.shape) // columns


def _position(problem: Problem, one: Statement, cell: int) -> tuple[int, int]:
    _, rows = _grid(problem, one)
    return divmod(cell, rows)


def _title(one: Statement, solution: Solution) -> str:
    if isinstance(one, Hole):
        spelled = to_text(one.options.expression(solution.options[one.name]))
        return f"{one.name}: {one.kind} {spelled}"
    if isinstance(one, Fold):
        return f"{one.name}: fold {one.op}"
    return one.name


def _label(problem: Problem, term: int) -> str:
    if term in {ZERO, UNDEFINED}:
        return "0" if term == ZERO else ""
    return problem.terms.text(term) if problem.terms.operator(term) is None else "…"


def _colour(owner: int | None) -> str:
    return "#fff" if owner is None else f"hsl({owner * 137 % 360},65%,80%)"


def _box(at: tuple[float, float], colour: str, label: str) -> str:
    x, y = at
    text = _text(x + _CELL_WIDTH / 2, y + _CELL_HEIGHT - 5, label, "")
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}" fill="{colour}"/>{text}'


def _text(x: float, y: float, text: str, kind: str) -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{attribute}>{escape(text)}</text>'


def _arrows(
    problem: Problem, one: Statement, choice: dict[str, Cells], places: dict[str, dict[int, tuple[float, float]]]
) -> list[str]:  # fmt: skip
    """Draw where the registers of the first two threads come from."""
    if not isinstance(one, Hole) or one.argument not in places:
        return []
    table, above = choice[one.name], places[one.argument]
    lines = []
    for cell, (x, y) in places[one.name].items():
        column, _ = _position(problem, one, cell)
        source = int(table[cell])
        if column < 2 and source in above:
            from_x, from_y = above[source]
            lines.append(
                f'<line x1="{from_x + _CELL_WIDTH / 2:.0f}" y1="{from_y + _CELL_HEIGHT:.0f}" '
                f'x2="{x + _CELL_WIDTH / 2:.0f}" y2="{y:.0f}"/>'
            )
    return lines
