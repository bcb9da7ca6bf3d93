"""MetaFork source of a ``Program``, as Figures 7 and 8 of the paper print their cases.

The text is a whole function with its tables in front of it: derived scalars and assertions first, then the serial
loops around the schedule (their bounds are no part of a program, and become parameters), then the schedule with its
clauses.  Parsing it gives an equal program, but for spans and for the name, which comes from the file; what
was asked for by ``cache`` before a strategy chose otherwise is not kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.ir.mapping import FORM_OF
from metafork.ir.marks import jammed_loops, phases, unmarked
from metafork.ir.program import Derived, Element, Expr, IntConst, Parameter, Phase, Program, Stmt, Table
from metafork.ir.rewriting import fresh_name, map_body, map_expression, names_of, variables
from metafork.printing.expressions import expression, table_rows
from metafork.printing.statements import array_declaration, statements, thread_loop

STEP = 2
"""Columns of one level of indentation."""


def metafork_text(program: Program) -> str:
    """Return the MetaFork source of a program, a function of the name ``program.function``."""
    serial = [parameter for parameter in program.parameters if parameter.of_serial_loop]
    bounds = _bounds(program, serial)
    lines = [*map(_table, program.tables), _head(program, bounds), "{"]
    early, late = _preamble(program, frozenset(parameter.name for parameter in serial))
    indent = STEP
    lines += [" " * indent + line for line in early]
    for loop, bound in zip(serial, bounds, strict=True):
        # The declarations that use its variable stand inside the innermost loop.
        brace = " {" if late and loop is serial[-1] else ""
        name = loop.name
        lines.append(f"{' ' * indent}for ({loop.type.spelling} {name} = 0; {name} < {bound}; {name}++){brace}")
        indent += STEP
    lines += [" " * indent + line for line in late]
    lines += _schedule(program, indent)
    if late:
        lines.append(" " * (indent - STEP) + "}")
    return "\n".join([*lines, "}", ""])


def _table(table: Table) -> str:
    """Return the declaration of a table of the file."""
    last = table.array.extents[-1]
    assert isinstance(last, IntConst)
    columns = last.value if len(table.array.extents) == 2 else len(table.values)
    return f"static const {array_declaration(table.array)} = {table_rows(table.values, columns)};"


def serial_text(program: Program, body: Sequence[Stmt]) -> str:
    """Return a program's loops around a body: a block of C for the schedule's place, with ``meta_for`` for ``for``.

    There, arrays of structures are declared anew, as the rows of scalars that they are to the program, and so are
    scalars that are arrays of one element to it, and arrays of small floating-point numbers, which are their bits.
    Rows of tables have the names of the tables.
    """
    tables = {array.name: array.table for array in program.arrays if array.table}

    def by_table(expr: Expr) -> Expr | None:
        if not isinstance(expr, Element) or expr.array not in tables:
            return None
        indices = tuple(map_expression(index, by_table) for index in expr.indices)
        return replace(expr, array=tables[expr.array], indices=indices)

    body = map_body(tuple(body), by_table) if tables else body
    taken = set(names_of(program))
    places: list[str] = []
    rows: list[str] = []
    for array in program.arrays:
        if array.members or array.scalar or array.small:
            place = fresh_name(f"{array.name}_rows", taken)
            taken.add(place)
            inner = _extents(array.extents[1:])
            places.append(f"  void *{place} = (void *){'&' if array.scalar else ''}{array.whole or array.name};")
            rows.append(f"  {array.element.spelling} (*{array.name}){inner} = {place};")
    opening, closing = (["{", *places, "{", *rows], ["}", "}"]) if rows else (["{"], ["}"])
    loops = [f"  {thread_loop(loop)}" for loop in program.grid]
    return "\n".join([*opening, *loops, "  {", *statements(tuple(body), 4), "  }", *closing])


def _extents(extents: Sequence[Expr]) -> str:
    return "".join(f"[{expression(extent)}]" for extent in extents)


def _bounds(program: Program, serial: Sequence[Parameter]) -> list[str]:
    taken = set(names_of(program))
    bounds = []
    for _ in serial:
        bounds.append(fresh_name("T", taken))
        taken.add(bounds[-1])
    return bounds


def _head(program: Program, bounds: Sequence[str]) -> str:
    serial = [parameter for parameter in program.parameters if parameter.of_serial_loop]
    scalars = [f"{p.type.spelling} {p.name}" for p in program.parameters if not p.of_serial_loop]
    scalars += [f"{loop.type.spelling} {bound}" for loop, bound in zip(serial, bounds, strict=True)]
    scalars += [f"{value.type.spelling} {value.name}" for value in program.values]
    # An extent may use any scalar, so that arrays come last.
    arguments = [*scalars, *(array_declaration(array) for array in program.arrays)]
    endless = [f"{one.name}[?]{_extents(one.extents[1:])}" for one in program.arrays if one.endless]
    pragma = f"#pragma metafork extents({', '.join(endless)})\n" if endless else ""
    return f"{pragma}void {program.function}({', '.join(arguments) or 'void'})"


def _preamble(program: Program, serial: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return the declarations and assertions before the serial loops, and those that need their variables."""
    early: list[str] = []
    late: list[str] = []
    inside = set(serial)

    def placed(text: str, read: frozenset[str], *, in_order: bool) -> bool:
        where = late if in_order or read & inside else early
        where.append(text)
        return where is late

    moved = False
    for derived in program.derived:
        moved = placed(_declaration(derived), variables(derived.definition), in_order=moved)
        if moved:
            inside.add(derived.name)
    moved = False
    for assumption in program.assumptions:
        moved = placed(_assertion(assumption), variables(assumption), in_order=moved)
    return early, late


def _declaration(derived: Derived) -> str:
    return f"{derived.type.spelling} {derived.name} = {expression(derived.definition)};"


def _assertion(condition: Expr) -> str:
    return f"assert({expression(condition)});"


def _directives(program: Program) -> list[str]:
    """Return the directives that make the marks and the mapping of a program (``metafork.transform``)."""
    mapping = program.mapping
    found = [f"lay_out({name}, {FORM_OF[layout]})" for name, layout in mapping.layouts]
    found += [f"transpose({name})" for name in mapping.transposed]
    found += [f"coarsen({loop.var}, {loop.results})" for loop in phases(program)[0].threads if loop.results > 1]
    found += [f"unroll_and_jam({loop}, {factor})" for loop, factor in jammed_loops(program).items()]
    found += ["vectorize()"] if mapping.wide else []
    found += [f"stages({mapping.stages})"] if mapping.stages > 1 else []
    found += [] if program.striding is None else [f"stride({program.striding})"]
    return found


def _schedule(program: Program, indent: int) -> list[str]:
    mapping = program.mapping
    clause = f" cache({', '.join(mapping.cached)})" if mapping.decided or mapping.cached else ""
    clause += f" meta_min_blocks({program.min_blocks.value})" if program.min_blocks is not None else ""
    lines = [f"{' ' * indent}meta_schedule{clause} {{"]
    if directives := _directives(program):
        lines.insert(0, f"{' ' * indent}#pragma metafork schedule({'; '.join(directives)})")
    if program.static:
        values = ", ".join(f"{name}: {', '.join(map(str, listed))}" for name, listed in program.static)
        lines.insert(0, f"{' ' * indent}meta_static({values})")
    bare = len(program.body) == 1 and isinstance(program.body[0], Phase)
    depth = indent + STEP
    for loop in program.grid:
        brace = "" if bare or loop is not program.grid[-1] else " {"
        lines.append(" " * depth + thread_loop(loop) + brace)
        depth += STEP
    lines += statements(unmarked(program.body), depth)
    if not bare:
        lines.append(" " * (depth - STEP) + "}")
    return [*lines, " " * indent + "}"]
