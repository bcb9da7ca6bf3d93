"""Columns that run side by side although some may not: what they load is loaded for all, and stores are chosen.

``before --> after``, for 4 columns and the condition ``j != k``::

    if (j != k) {                                  int to = d[k * n + first];  ...  // parts 0 to 3 of one access
      int through = from + d[k * n + j];           int through = from + to;  ...
      d[i * n + j] = through;              -->     if (first + 3 < k || first > k) {
    }                                                d[i * n + first] = through;  ...  // likewise
                                                   } else {
                                                     if (first != k && first + 1 != k)  // parts 0 and 1
                                                       d[i * n + first] = through;  ...
                                                     else if (first != k) d[i * n + first] = through;  ...
                                                   }

What is left of four columns is stored by two where that goes.  Where the first columns may not run, by ``j > k``, and
the last one does::

                                                   if (first > k)
                                                     d[i * n + first] = through;  ...  // parts 0 to 3
    if (j > k) {                                   else {
      ...                                  -->       if (first + 1 > k) d[i * n + first + 1] = through_2;
                                                     if (first + 2 > k) ...  // parts 2 and 3
                                                     else d[i * n + first + 3] = through_4;
                                                   }

Legality.  A column that does not run only loads and computes what nobody reads: no division, no function.  Loads that
do not depend on the column are those of another column, and one at least runs.  Others are parts of vectors, which lie
in their array as a whole, and of which a neighbour reads a part.  Elements are not stored as they were: others may read
them meanwhile.

A row that a condition leaves out loads and computes what another one does that runs, and does not store.

A condition around one store of an element that the same iteration has read in any case becomes a choice of values:
iterations of thread loops are independent, so no other one writes the element before the next barrier, and who reads it
meets the same value before and after it is written back.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.kernel import OFFSET
from metafork.ir.rewriting import variables

Body = tuple[ir.Stmt, ...]


def stored_in_any_case(body: Body) -> Body:
    """Return straight code in which conditions around one store of an element that was read are choices of values."""
    result: list[ir.Stmt] = []
    read: dict[ir.Element, ir.Var] = {}
    for stmt in body:
        match stmt:
            case ir.Declare(name=name, type=type_, value=ir.Element() as element) if element.type is type_:
                read[element] = ir.Var(name, type_)
                result.append(stmt)
            case ir.Declare():
                result.append(stmt)
            case ir.If(
                condition=condition,
                then=(ir.Assign(target=ir.Element() as target, op="", value=value, atomic=False) as store,),
                otherwise=(),
            ) if target in read:
                new = value if value.type is target.type else ir.Cast(target.type, value)
                result.append(replace(store, value=ir.Conditional(condition, new, read[target], target.type)))
                read.clear()
            case _:
                result.append(stmt)
                read.clear()
    return tuple(result)


class ColumnMask(Struct, frozen=True):
    """The first column, and the test that may leave out columns: that ``every`` one runs, and each ``one`` of them.

    It leaves out one at most; where there is a ``start``, all before some column, and never the last.
    """

    first: ir.Var
    every: ir.Expr
    one: Sequence[ir.Expr]
    start: bool


def masked(body: Body, columns: int, mask: ColumnMask | None, rows: Sequence[ir.Expr]) -> Body | None:
    """Return code of all rows and columns side by side in which stores are chosen; ``None`` where that is not proved.

    ``rows`` are the tests of rows, or none: what a row loads that does not run is what another one does.  Stores of
    ``columns``, from the first to the last, follow each other in ``body``, row by row.
    """
    count = next((number for number, stmt in enumerate(body) if not isinstance(stmt, ir.Declare)), len(body))
    loads, stores = body[:count], body[count:]
    for stmt in stores:
        match stmt:
            case ir.Assign(target=ir.Element(), op="", atomic=False):
                pass
            case _:
                return None
    each = [stores[at : at + columns] for at in range(0, len(stores), columns)]
    if mask is None:
        return (*loads, *_of_rows(each, rows))
    if not _harmless(loads, {mask.first.name}):
        return None
    if mask.start:
        return (*loads, ir.If(mask.every, _of_rows(each, rows), _but_first(each, mask, rows)))
    return (*loads, ir.If(mask.every, _of_rows(each, rows), _of_rows([_but_one(one, mask) for one in each], rows)))


def _but_first(each: Sequence[Body], mask: ColumnMask, rows: Sequence[ir.Expr]) -> Body:
    """Return the stores of rows of columns of which the first does not run, as far as that goes by two."""
    last = len(mask.one) - 1
    result: list[ir.Stmt] = []
    for at in range(0, last + 1, 2):
        behind = min(at + 1, last)
        alone = _of_rows([(_as_part(of_row[behind], None),) for of_row in each], rows)
        if behind < last:
            alone = (ir.If(mask.one[behind], alone),)
        both = () if at in (0, last) else _of_rows([_pair(of_row, at) for of_row in each], rows)
        result += (ir.If(mask.one[at], both, alone),) if both else alone
    return tuple(result)


def _pair(stores: Body, at: int) -> Body:
    """Return two stores of a row of columns, as one access where they were parts of one."""
    pair = stores[at : at + 2]
    return tuple(_as_part(one, ir.Part(2, place) if _is_part(pair[0], at) else None) for place, one in enumerate(pair))


def _but_one(stores: Body, mask: ColumnMask) -> Body:
    """Return the stores of a row of columns of which one may be left out, as far as that goes by two."""
    result: list[ir.Stmt] = []
    for at in range(0, len(stores), 2):
        tests, pair = mask.one[at : at + 2], stores[at : at + 2]
        alone = tuple(ir.If(test, (_as_part(one, None),)) for test, one in zip(tests, pair, strict=True))
        if len(pair) == 2 and _is_part(pair[0], at):
            result.append(ir.If(ir.binary("&&", tests[0], tests[1]), _pair(stores, at), alone))
        else:
            result += alone
    return tuple(result)


def _is_part(store: ir.Stmt, at: int) -> bool:
    """Say whether a store is of that part of an access of four."""
    return isinstance(store, ir.Assign) and isinstance(store.target, ir.Element) and store.target.part == ir.Part(4, at)


def _as_part(store: ir.Stmt, part: ir.Part | None) -> ir.Assign:
    assert isinstance(store, ir.Assign)
    assert isinstance(store.target, ir.Element)
    return replace(store, target=replace(store.target, part=part))


def _of_rows(stores: Sequence[Body], rows: Sequence[ir.Expr]) -> Body:
    """Return the stores of rows, one after the other, under the tests of their rows."""
    if not rows:
        return tuple(stmt for of_row in stores for stmt in of_row)
    return tuple(ir.If(rows[number % len(rows)], of_row) for number, of_row in enumerate(stores))


def _harmless(loads: Sequence[ir.Stmt], varying: Set[str]) -> bool:
    """Say whether scalars may be computed for a column that does not run."""
    names = set(varying)
    for stmt in loads:
        assert isinstance(stmt, ir.Declare)
        if stmt.value is None:
            return False
        for part in ir.walk_expression(stmt.value):
            if isinstance(part, ir.Element) and part.part is None and variables(part) & names:
                return False
        if not _computes(stmt.value):
            return False
        if variables(stmt.value) & names:
            names.add(stmt.name)
    return True


def _computes(value: ir.Expr) -> bool:
    """Say whether nothing is divided or called."""
    for part in ir.walk_expression(value):
        match part:
            case ir.Binary(op="/" | "%"):
                return False
            case ir.Call(name=name) if name != OFFSET:
                return False
            case _:
                pass
    return True
