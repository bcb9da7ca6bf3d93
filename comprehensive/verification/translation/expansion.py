"""Copies of elements in scalars, undone: the inverse of what ``scalar_replacement`` does, checked by itself.

    float x = a[i];                     for (...)
    for (...) x += f(...);      -->       a[i] += f(...);
    a[i] = x;

This is done where nothing between the two ends accesses the array, changes what the index is computed from or leaves
early, and the scalar is not used afterwards: then the scalar and the element agree all the while, and a thread's
accesses to the element are the same but for their number.  The dataflow of a leaf is compared in this form.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.rewriting import arrays_read, assigned_variables, declared_here, map_body, variables
from metafork.ir.visitor import Body, Rewriter


def expanded(program: ir.Program) -> ir.Program:
    """Return the program with elements in place of the scalars that hold them for a while."""
    return replace(program, body=_Expanded().body(program.body))


class _Expanded(Rewriter):
    def body(self, body: Body) -> Body:
        result = list(super().body(body))
        start = 0
        while start < len(result):
            found = _undone(tuple(result[start:]))
            if found is None:
                start += 1
            else:
                result[start:] = found
        return tuple(result)


def _undone(body: Body) -> Body | None:
    """Return a body without the scalar that its first statement declares, ``None`` where that is no mere copy."""
    match body[0]:
        case ir.Declare(name=name, value=ir.Element() as element, type=type_) if type_ is element.type:
            scalar = ir.Var(name, type_)
        case _:
            return None
    ends = [place for place, stmt in enumerate(body) if stmt == ir.Assign(element, "", scalar)]
    if not ends:
        return None
    between, rest = body[1 : ends[0]], body[ends[0] + 1 :]
    changed = assigned_variables(between) | {
        stmt.name for stmt in ir.walk_statements(between) if isinstance(stmt, ir.Declare)
    }
    read = frozenset().union(*(variables(index) for index in element.indices))
    touched = {array for expr in _expressions(between) for array in arrays_read(expr)}
    if (
        element.array in touched
        or any(arrays_read(index) for index in element.indices)
        or changed & read
        or any(isinstance(stmt, ir.Break | ir.Continue | ir.While | ir.Phase) for stmt in ir.walk_statements(between))
        or name in declared_here(between)
        or any(name in variables(expr) for expr in _expressions(rest))
    ):
        return None
    inside = map_body(between, lambda part: element if isinstance(part, ir.Var) and part.name == name else None)
    return (*inside, *rest)


def _expressions(body: Body) -> list[ir.Expr]:
    return [expr for stmt in ir.walk_statements(body) for expr in ir.expressions_of(stmt)]
