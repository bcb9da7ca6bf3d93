"""Tables of pointers, ``float *rows[3]`` or ``float **rows``: at a schedule, their rows are arrays.

``rows[1][i]`` is read as ``rows_1[i]``, where ``rows_1`` is a pointer that the host takes out of its table just before
the schedule runs: rows may lie anywhere, differ in length, overlap, and change between two schedules.  A row is chosen
where its number is no constant.  No pointer is taken that the table may not have: how many it has is declared, or
follows from its use, as ``float **rows`` has three where ``rows[2]`` is read whenever the schedule runs.

All other tables are one array, ``rows_rows[i][k]``, into which the host packs what a schedule touches of them
(``metafork.analysis.extents.host_walk``).  ``rows_pitch`` is the length of the longest row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from metafork.frontend.host.linear_indices import changed
from metafork.frontend.host.variables import Row, Site, Variable
from metafork.frontend.nests.local_pointers import MOST_POINTERS, OF_SCALARS, finished, with_pointer
from metafork.frontend.nests.places import Fixed, Place, Table
from metafork.frontend.text import syntax
from metafork.frontend.text.constants import integer_constant
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.other_languages.types import OF_TABLES
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.names import fresh


def led_to_rows(site: Site, taken: Collection[str]) -> Site:
    """Return a schedule to which rows of tables are pointers by themselves, of names that are not ``taken``."""
    visible, body = dict(site.visible), site.statement.body
    led: list[Row] = []
    names = {*taken, *visible}
    own = {one.name for one in syntax.declarators_in(body)}
    for name in sorted(free_names(body) - own):
        table = site.visible.get(name)
        if table is None or table.row is None:
            continue
        rows = _rows(name, syntax.expressions_in(body))
        only = _only_rows(name, body)
        count = _count(table, body) if only and _of_scalars(rows) else None
        if count is None and only and table.structure is None:
            led.append(_packed(table, rows[0].span, site, visible, names))
            continue
        if count is None:
            visible[name] = _refused(table)
            continue
        numbers = [_number(one.index) for one in rows]
        for number in range(count) if None in numbers else sorted({one for one in numbers if one is not None}):
            row = Row(fresh(f"{name}_{number}", names), name, number)
            led.append(row)
            visible[row.name] = Variable(
                row.name,
                rows[0].span,
                site.order,
                pointed=table.row,
                structure=table.structure,
                const=table.const,
                fault="MF0201",
                message=f"`{row.name}`, a row of `{name}`, is a pointer",
                scope=site.visible,
            )
    return replace(site, visible=visible, led=tuple(led))


def _packed(table: Variable, span: Span, site: Site, visible: dict[str, Variable], names: set[str]) -> Row:
    """Make all rows of a table one array, ``float (*rows)[pitch]``, and the longest length a variable."""
    row, pitch = Row(fresh(f"{table.name}_rows", names), table.name, None), fresh(f"{table.name}_pitch", names)
    visible[pitch] = Variable(pitch, span, site.order, ScalarType.LONG)
    visible[row.name] = Variable(
        row.name,
        span,
        site.order,
        pointed=table.row,
        rows=(syntax.Name(pitch, span),),
        const=table.const,
        fault="MF0201",
        message=f"`{table.name}` is a table of pointers",
        scope=visible,
        table=table.name,
    )
    return row


def with_rows(body: syntax.Statement, site: Site) -> syntax.Statement:
    """Return a schedule's body in which rows of tables have names of their own."""
    for packed in (one for one in site.led if one.number is None):
        place = Place(syntax.Name(packed.name, site.visible[packed.name].span))
        body = finished(with_pointer(body, Fixed(packed.table, place)))
    for table in dict.fromkeys(one.table for one in site.led if one.number is not None):
        parts = {one.number: one.name for one in site.led if one.table == table and one.number is not None}
        span = site.visible[next(iter(parts.values()))].span
        places = [Place(syntax.Name(parts.get(number, table), span)) for number in range(max(parts) + 1)]
        body = finished(with_pointer(body, Table(table, tuple(places))))
    return body


def _refused(table: Variable) -> Variable:
    """Return a table whose rows are no arrays, with what is said of it where its declaration says nothing better."""
    if table.at is not None:
        return table
    element = f"{'const ' * table.const}{table.row.spelling if table.row else 'float'}"
    return replace(
        table,
        message=f"`{table.name}` is a table of pointers, and cannot be copied to the GPU",
        reason=OF_TABLES,
        way_out=f"use one array for all rows, such as `{element} {table.name}[n][m]`.",
    )


def _only_rows(table: str, body: syntax.Statement) -> bool:
    """Say whether a schedule uses nothing of a table but rows, and changes none of its pointers."""
    parts = list(syntax.expressions_in(body))
    named = sum(isinstance(one, syntax.Name) and one.name == table for one in parts)
    return named == len(_rows(table, parts)) and not _changes_row(table, parts)


def _of_scalars(rows: Sequence[syntax.Subscript]) -> bool:
    """Say whether the numbers of rows are computed without memory, and nothing else is."""
    scalar = all(isinstance(part, OF_SCALARS) for one in rows for part in syntax.walk(one.index))
    return scalar and not changed(one.index for one in rows)


def _count(table: Variable, body: syntax.Statement) -> int | None:
    """Return how many rows a table has whenever a schedule runs; ``None`` where that is not known, or too many."""
    numbers = [_number(one.index) for one in _rows(table.name, syntax.expressions_in(body))]
    known = [one for one in numbers if one is not None]
    count = None if table.row_count is None else _number(table.row_count)
    if count is None:
        always = [_number(one.index) for one in _rows(table.name, _whenever_it_runs(body))]
        count = 1 + max(known, default=-1)
        if len(known) < len(numbers) or count - 1 not in always:
            return None
    return count if count <= MOST_POINTERS and max(known, default=-1) < count else None


def _rows(table: str, parts: Iterator[syntax.Expression] | Sequence[syntax.Expression]) -> list[syntax.Subscript]:
    subscripts = (one for one in parts if isinstance(one, syntax.Subscript))
    return [one for one in subscripts if isinstance(one.base, syntax.Name) and one.base.name == table]


def _number(index: syntax.Expression) -> int | None:
    found = integer_constant(index.text) if isinstance(index, syntax.Constant) else None
    return None if found is None else found[0]


def _changes_row(table: str, parts: Sequence[syntax.Expression]) -> bool:
    for part in parts:
        match part:
            case (
                syntax.Assignment(target=target)
                | syntax.Postfix(operand=target)
                | syntax.Prefix(op="++" | "--" | "&", operand=target)
            ) if _rows(table, [target]):
                return True
            case _:
                pass
    return False


# --- what is reached whenever a schedule runs ---------------------------------------------------------------------


def _whenever_it_runs(body: syntax.Statement) -> Iterator[syntax.Expression]:
    """Yield expressions that some iteration evaluates: loops run, and conditions on the iteration hold in one of them.

    Other conditions, those that parameters or elements decide, may hold for none.
    """
    varying: set[str] = set()
    count = -1
    while count < len(varying):
        count = len(varying)
        for one in syntax.walk_statements(body):
            if isinstance(one, syntax.ForStatement):
                heads = one.init.declarators if isinstance(one.init, syntax.Declaration) else ()
                varying |= {each.name for each in heads} if one.meta else set()
                varying |= changed([one.init]) if one.meta and isinstance(one.init, syntax.Assignment) else set()
            given = [(each.name, each.value) for each in syntax.declarators_in(one)]
            varying |= {name for name, value in given if value is not None and syntax.names_in(value) & varying}
    if not _leaves_by_chance(body, varying):
        yield from _reached(body, varying)


def _of_iterations(condition: syntax.Expression, varying: Collection[str]) -> bool:
    plain = all(isinstance(one, OF_SCALARS) for one in syntax.walk(condition))
    return plain and not syntax.names_in(condition).isdisjoint(varying)


def _leaves_by_chance(body: syntax.Statement, varying: Collection[str]) -> bool:
    """Say whether a condition that is not one on the iteration ends something early."""
    for one in syntax.walk_statements(body):
        chance = isinstance(one, syntax.IfStatement) and not _of_iterations(one.condition, varying)
        if chance and any(isinstance(each, syntax.Jump) for each in syntax.walk_statements(one)):
            return True
    return False


def _reached(statement: syntax.Statement, varying: Collection[str]) -> Iterator[syntax.Expression]:
    for expression in syntax.direct_expressions(statement):
        yield from _evaluated(expression)
    match statement:
        case syntax.SwitchStatement():
            pass
        case syntax.IfStatement(condition=condition, then=then):
            if _of_iterations(condition, varying):
                yield from _reached(then, varying)
        case _:
            for one in syntax.direct_statements(statement):
                yield from _reached(one, varying)


def _evaluated(expression: syntax.Expression) -> Iterator[syntax.Expression]:
    yield expression
    match expression:
        case syntax.Infix(op="&&" | "||", left=left):
            yield from _evaluated(left)
        case syntax.Ternary(condition=condition):
            yield from _evaluated(condition)
        case _:
            for one in syntax.operands(expression):
                yield from _evaluated(one)
