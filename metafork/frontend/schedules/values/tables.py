"""Tables of the file: ``const`` arrays whose values stand in the text, for constant memory where that pays.

Constant memory has 64 KiB and serves reads at full rate whose index is the same for a whole warp.  Any other table
stays an array like all others, and keeps the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.host.variables import Variable
from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.values.initialisers import MisfitError, placed
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import RefusedError, SilentReporter
from metafork.frontend.text.structures import TypeNames
from metafork.ir import program as ir
from metafork.ir.arithmetic.constant_values import constant
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.uniform_reads import reads_by_thread

MOST_BYTES = 65536
"""The constant memory of a kernel's file; its parameters have some of their own."""

_Values = tuple[ir.IntConst | ir.FloatConst, ...]


class Placement(Struct, frozen=True):
    """Where the arrays of a schedule are: in global memory, or tables in constant memory."""

    arrays: tuple[ir.Array, ...]
    tables: tuple[ir.Table, ...]


class ConstantMemory:
    """The constant memory of one file, handed out in the order of its schedules."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def place(
        self,
        arrays: Sequence[ir.Array],
        variables: Mapping[str, Variable],
        typedefs: TypeNames,
        body: tuple[ir.Stmt, ...],
        cached: Sequence[str],
    ) -> Placement:
        """Return the arrays of a schedule apart; ``cached`` are those that go through shared memory by a clause."""
        tables: list[ir.Table] = []
        others: list[ir.Array] = []
        candidates = {one.name for one in arrays if not one.whole and _is_table(variables[one.name])}
        by_thread = reads_by_thread(body, candidates)
        for array in arrays:
            found: ir.Table | str = ""
            if array.name in candidates and array.name not in cached:
                found = self._table(array, variables[array.name], typedefs, by_thread.get(array.name))
            if isinstance(found, ir.Table):
                tables.append(found)
            else:
                others.append(replace(array, in_global=found))
        return Placement(tuple(others), tuple(tables))

    def _table(
        self, array: ir.Array, variable: Variable, typedefs: TypeNames, by_thread: ir.Element | None
    ) -> ir.Table | str:
        """Return an array as a table, or why it stays in global memory."""
        if by_thread is not None:
            return (
                f"its index at line {by_thread.span.line} may be another one in each thread, "
                "and constant memory serves those one after the other"
            )
        try:
            extents = tuple(integer_value(extent, {}) for extent in array.extents)
        except NoValueError:
            return "its extents are no numbers"
        if array.element.small:
            return f"its elements are of type `{array.element.spelling}`"
        size = math.prod(extents) * array.element.size
        taken = sum(bytes_ for name, bytes_ in self._taken.items() if name != array.name)
        if taken + size > MOST_BYTES:
            others = f" beside the {taken} of other tables" if taken else ""
            return f"its {size} bytes do not fit the {MOST_BYTES} of constant memory{others}"
        values = _values(variable, array, extents, typedefs)
        if values is None:
            return "its values are not all numbers in braces"
        self._taken[array.name] = size
        return ir.Table(replace(array, extents=tuple(ir.IntConst(extent) for extent in extents)), values)


def _is_table(variable: Variable) -> bool:
    return variable.is_global and variable.const and variable.structure is None


def _values(variable: Variable, array: ir.Array, extents: tuple[int, ...], typedefs: TypeNames) -> _Values | None:
    """Return the values of an array, row by row; ``None`` where one of them is not known."""
    if variable.braces is None:
        return None
    builder = ExpressionBuilder(SilentReporter(), typedefs, lambda _: None, list)

    def number(index: syntax.Expression) -> int:
        return integer_value(builder.build(index), {})

    zero = constant(ir.IntConst(0), array.element)
    values = [zero] * math.prod(extents)
    try:
        for place, item in placed(variable.braces, extents, number):
            at = 0
            for index, extent in zip(place, extents, strict=True):
                at = at * extent + index
            values[at] = constant(builder.build(item), array.element)
    except (MisfitError, NoValueError, RefusedError):
        return None
    return tuple(values)
