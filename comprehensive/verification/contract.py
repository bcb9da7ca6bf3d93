"""The serial program with every index of its schedules checked against the extent that it declares.

Parameters are made up, and a program may say nothing about values that it was never meant for: ``a[j]`` with ``j``
beyond ``n``.  Such a point is outside of the program's own contract, and shows nothing about a leaf.  AddressSanitizer
sees only what leaves an array altogether, and not far; here each dimension is checked.  The text is the input's but for
its schedules, which are printed from what the compiler understood; the reference that results are compared with is
another text, the input's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.comprehensive.emit.host.members import row_declarations
from metafork.comprehensive.verification.driver import (
    CONTRACT_PREFIX,
    LENT,
    LENT_BEFORE,
    LENT_ROW,
    LENT_ROWS,
    as_reference,
    edited,
    quoted,
    replaced,
)
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import arrays_read, map_body, map_expression, variables
from metafork.ir.translation_unit import Schedule, TranslationUnit
from metafork.printing.expressions import PLAIN_C, Spelling, as_written, expression
from metafork.printing.metafork_text import serial_text

_CHECK = "metafork_inside"


class _Sites(Struct):
    """The places that are checked: what an access is called, and what to do where its index is low or high."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    spelling: Spelling = PLAIN_C

    def added(
        self, element: ir.Element, index: ir.Expr, extent: ir.Expr, uniform: frozenset[str], from_memory: frozenset[str]
    ) -> ir.IntConst:
        text = expression(element, self.spelling)
        place, limit = expression(index, self.spelling), expression(extent)
        if arrays_read(index) or variables(index) & from_memory:
            row = (text, *2 * ("the index comes from memory: give the arrays meaningful values (--init)",))
        elif variables(index) <= uniform:
            row = (text, f"add assert(0 <= {place})", f"add assert({place} < {limit})")
        else:
            row = (text, *2 * (f"add an assert under which 0 <= {place} && {place} < {limit}",))
        self.rows.append(row)
        return ir.IntConst(len(self.rows) - 1)

    def table(self) -> str:
        rows = ",\n".join(f"  {{{', '.join(quoted(text) for text in row)}}}" for row in self.rows)
        return f"static const char *const metafork_sites[][3] = {{\n{rows or '  {0}'}\n}};\n"


def contract_text(unit: TranslationUnit) -> str:
    """Return the checked program as C, its functions under ``CONTRACT_PREFIX``; compile with ELISION_FLAGS."""
    sites = _Sites()
    lent = {(function.name, one.name) for function in unit.functions for one in function.values if one.type is None}
    checked = dict(replaced(unit, lambda schedule: _nest(schedule, sites, lent)))
    text = as_reference(unit, edited(unit, checked), CONTRACT_PREFIX)
    return (
        "extern void driver_outside(const char *, const char *, long long, long long);\n"
        f"{sites.table()}"
        f"__attribute__((unused)) static long long {_CHECK}(long long index, long long first, long long extent, "
        "int site) {\n"
        "  if (index < first || index >= first + extent)\n"
        "    driver_outside(metafork_sites[site][0], metafork_sites[site][index < 0 ? 1 : 2], index, extent);\n"
        "  return index;\n"
        f"}}\n{text}"
    )


def _nest(schedule: Schedule, sites: _Sites, lent: Collection[tuple[str, str]]) -> str:
    """Return a schedule's loops with every index checked, as one block.

    Pointers that are ``lent`` arrays, by function and name, have as many elements as those if nobody knows it.
    """
    program = schedule.program
    sites.spelling = as_written(program)
    endless = {one.name: one.whole or one.name for one in program.arrays if one.endless}
    given = frozenset(name for name, whole in endless.items() if (schedule.function, whole) in lent)
    given |= {one.name for one in program.arrays if one.table and (schedule.function, one.table) in lent}
    body = map_body(program.body, _checking(program, sites, given))
    rows = [*row_declarations(schedule), *(f"const int {name} = {pointer} != 0;" for name, pointer in schedule.asked)]
    return " ".join(["{", *rows, serial_text(program, body), "}"])


def _checking(program: ir.Program, sites: _Sites, lent: frozenset[str]) -> Callable[[ir.Expr], ir.Expr | None]:
    arrays: dict[str, ir.Array] = {array.name: array for array in program.arrays}
    own = [stmt.array for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.BlockArray | ir.PrivateArray)]
    arrays |= {array.name: array for array in (*own, *(table.array for table in program.tables))}
    from_memory = _from_memory(program)
    uniform = frozenset([*(one.name for one in program.parameters), *(one.name for one in program.derived)])

    def checked(expr: ir.Expr) -> ir.Expr | None:
        if not isinstance(expr, ir.Element) or expr.array not in arrays:
            return None
        indices: list[ir.Expr] = []
        extents = arrays[expr.array].extents
        if arrays[expr.array].table and expr.array in lent:
            extents = (ir.IntConst(LENT_ROWS), ir.IntConst(LENT_ROW))
        elif arrays[expr.array].table:
            extents = (ir.ENDLESS, ir.ENDLESS)
        for index, extent in zip(expr.indices, extents, strict=True):
            inner = map_expression(index, checked)
            if extent == ir.ENDLESS and expr.array not in lent:
                indices.append(inner)
                continue
            before, extent = (LENT_BEFORE, ir.IntConst(LENT)) if extent == ir.ENDLESS else (0, extent)
            site = sites.added(expr, index, extent, uniform, from_memory)
            inside = ir.Call(_CHECK, (inner, ir.IntConst(-before), extent, site), ScalarType.LONG_LONG)
            indices.append(inside)
        return replace(expr, indices=tuple(indices))

    return checked


def _from_memory(program: ir.Program) -> frozenset[str]:
    """Return the scalars of a schedule whose values depend on what arrays hold, loop variables by their bounds."""
    found: frozenset[str] = frozenset()
    while True:
        more = found
        for stmt in ir.walk_statements(program.body):
            match stmt:
                case ir.Declare(name=name, value=read) | ir.Assign(target=ir.Var(name=name), value=read):
                    pass
                case ir.For(init=ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)), condition=read):
                    pass
                case _:
                    continue
            if read is not None and (arrays_read(read) or variables(read) & more):
                more |= {name}
        if more == found:
            return found
        found = more
