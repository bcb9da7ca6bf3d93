"""Columns that run side by side although one of them may not: what they load is loaded for all, and stores are chosen.

``before --> after``, for 4 columns and the condition ``j != k``::

    if (j != k) {                                  int to = d[k * n + first];  ...  // parts 0 to 3 of one access
      int through = from + d[k * n + j];           int through = from + to;  ...
      d[i * n + j] = through;              -->     if (first + 3 < k || first > k) {
    }                                                d[i * n + first] = through;  ...  // likewise
                                                   } else {
                                                     if (first != k) d[i * n + first] = through;  ...
                                                   }

Legality.  One column at most does not run, and it only loads and computes what nobody reads: no division, no function.
Loads that do not depend on the column are those of another column.  Others are parts of vectors, which lie in their
array as a whole, and of which a neighbour reads a part.

A condition around one store of an element that the same iteration has read in any case becomes a choice of values:
iterations of thread loops are independent, so no other one writes the element before the next barrier, and who reads it
meets the same value before and after it is written back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from metafork.ir.kernel import OFFSET
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    If,
    Stmt,
    Var,
    walk_expression,
)
from metafork.ir.rewriting import variables

Body = tuple[Stmt, ...]


def stored_in_any_case(body: Body) -> Body:
    """Return straight code in which conditions around one store of an element that was read are choices of values."""
    result: list[Stmt] = []
    read: dict[Element, Var] = {}
    for stmt in body:
        match stmt:
            case Declare(name=name, type=type_, value=Element() as element) if element.type is type_:
                read[element] = Var(name, type_)
                result.append(stmt)
            case Declare():
                result.append(stmt)
            case If(
                condition=condition,
                then=(Assign(target=Element() as target, op="", value=value, atomic=False) as store,),
                otherwise=(),
            ) if target in read:
                new = value if value.type is target.type else Cast(target.type, value)
                result.append(replace(store, value=Conditional(condition, new, read[target], target.type)))
                read.clear()
            case _:
                result.append(stmt)
                read.clear()
    return tuple(result)


def masked(body: Body, first: Var, columns: int, every: Expr, one: Callable[[int], Expr]) -> Body | None:
    """Return code of all columns side by side, in which stores are chosen; ``None`` where that is not proved right.

    ``first`` is the first column, ``every`` says that all of them run, and ``one`` that the one of that number does.
    Stores of columns, from the first to the last, follow each other in ``body``.
    """
    count = next((number for number, stmt in enumerate(body) if not isinstance(stmt, Declare)), len(body))
    loads, stores = body[:count], body[count:]
    alone: list[Stmt] = []
    for number, stmt in enumerate(stores):
        match stmt:
            case Assign(target=Element() as target, op="", atomic=False):
                store = replace(stmt, target=replace(target, part=None))
                alone.append(If(one(number % columns), (store,)))
            case _:
                return None
    if not _harmless(loads, {first.name}):
        return None
    return (*loads, If(every, stores, tuple(alone)))


def _harmless(loads: Sequence[Stmt], varying: Set[str]) -> bool:
    """Say whether scalars may be computed for a column that does not run."""
    names = set(varying)
    for stmt in loads:
        assert isinstance(stmt, Declare)
        if stmt.value is None:
            return False
        for part in walk_expression(stmt.value):
            if isinstance(part, Element) and part.part is None and variables(part) & names:
                return False
        if not _computes(stmt.value):
            return False
        if variables(stmt.value) & names:
            names.add(stmt.name)
    return True


def _computes(value: Expr) -> bool:
    """Say whether nothing is divided or called."""
    for part in walk_expression(value):
        match part:
            case Binary(op="/" | "%"):
                return False
            case Call(name=name) if name != OFFSET:
                return False
            case _:
                pass
    return True
