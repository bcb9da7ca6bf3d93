"""From which line of the input the lines of a kernel come: ``#line`` for debuggers and profilers.

Kernels are printed with a marker in front of each statement and one behind the last.  ``resolved`` turns the markers
of a finished file into directives: it alone knows where in the file they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.messages.source import NOWHERE, Span

_BEGIN = "#line "
END = "#line"
"""Behind the last statement of a kernel."""

Place = tuple[str, int]
"""A file, as it stands in a literal of C, and a line of it."""


def marker(line: int) -> str:
    """Return what stands in front of a statement that comes from a line of the input."""
    return f"{_BEGIN}{line}"


def line_of(body: Sequence[ir.Stmt], position: int, schedule: int) -> int:
    """Return the line of the input that a statement comes from.

    A scalar or an element that was loaded for the statement behind it has the line of that one.  What nobody wrote,
    such as copies to shared memory, has the line of the schedule.
    """
    own = _own_line(body[position])
    for stmt in body[position:]:
        if own is not None or not isinstance(stmt, ir.Declare | ir.Assign):
            break
        own = _own_line(stmt)
    return schedule if own is None else own


def spanned(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """Return statements that may be moved: those that have the line of one behind them have its span."""
    result: list[ir.Stmt] = []
    behind: Span | None = None
    for stmt in reversed(body):
        if not isinstance(stmt, ir.Declare | ir.Assign):
            behind = None
        elif (own := _own_span(stmt)) is not None:
            behind = own
        elif behind is not None:
            stmt = replace(stmt, span=behind)
        result.append(stmt)
    return tuple(reversed(result))


def _own_line(stmt: ir.Stmt) -> int | None:
    span = _own_span(stmt)
    return None if span is None else span.line


def _own_span(stmt: ir.Stmt) -> Span | None:
    parts: list[ir.Stmt | ir.Expr | None] = [stmt]
    if isinstance(stmt, ir.For):
        parts += [stmt.init, stmt.step]
    if not isinstance(stmt, ir.Phase | ir.BlockArray | ir.PrivateArray):
        parts += ir.expressions_of(stmt)
    return next((one.span for one in parts if one is not None and one.span != NOWHERE), None)


def resolved(text: str, path: str, place_of: Callable[[int], Place]) -> str:
    """Return the text of a file with directives for its markers; ``path`` is what it is called itself.

    ``place_of`` gives the place of a line of the input.  A line whose number follows from the one above has none.
    """
    result: list[str] = []
    wanted: Place | None = None
    reached: Place = (path, 1)
    for line in text.split("\n"):
        if line.startswith(_BEGIN):
            wanted = place_of(int(line.removeprefix(_BEGIN)))
            continue
        if line == END:
            wanted = None
            reached = (path, len(result) + 2)
            result.append(_directive(reached))
            continue
        if wanted is not None and wanted != reached:
            result.append(_directive(wanted) if wanted[0] != reached[0] else f"#line {wanted[1]}")
            reached = wanted
        result.append(line)
        reached = (reached[0], reached[1] + 1)
    return "\n".join(result)


def _directive(place: Place) -> str:
    return f'#line {place[1]} "{place[0]}"'
