"""What sums in any order may differ by: their terms are told to the driver while the reference runs.

``before --> after``, in the reference::

    meta_atomic x[c[i]] += v;    -->    x[c[i]] += METAFORK_ADDS(x[c[i]], v);

The driver notes for each element how many terms came, N, the size of what it held, and the sizes of the terms.  With
the unit roundoff u, two sums of the same terms in two orders differ by at most ``(2 N + 1) u (|x| + sum |v|)``, but for
terms in u squared, which the driver adds.  The one is for terms that are rounded to the element's type first.

That is all that is known of results which such a sum has an influence on: where a schedule reads the array, or the
code around names it, results are ``followed`` by no bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.atomic_updates import unordered_sums
from metafork.ir.rewriting import arrays_read
from metafork.ir.translation_unit import Function, Schedule, TranslationUnit
from metafork.ir.visitor import Rewriter

CLOSE = 1e-5
"""By how much of the largest one a result may differ where no bound is known.

So it is where a program goes on from a sum in any order, and on a device where it calls functions whose last bits C
leaves open."""

TERMS = (
    "extern void driver_term(const void *, double, double, int);\n"
    "#define METAFORK_TOLD(element, term) driver_term(&(element), (element), (term), (int)sizeof(element))\n"
    "#define METAFORK_ADDS(element, value) (METAFORK_TOLD(element, value), (value))\n"
    "#define METAFORK_TAKES(element, value) (METAFORK_TOLD(element, -(double)(value)), (value))\n"
)
"""What a reference text with such sums begins with."""


class _Telling(Rewriter):
    def assign(self, node: ir.Assign) -> ir.Assign:
        if not node.atomic or not node.target.type.floating:
            return node
        told = "METAFORK_ADDS" if node.op == "+" else "METAFORK_TAKES"
        return replace(node, value=ir.Call(told, (node.target, node.value), node.value.type))


def telling(program: ir.Program) -> tuple[ir.Stmt, ...]:
    """Return the body of a program whose sums in any order tell their terms."""
    return _Telling().body(program.body)


def summed(unit: TranslationUnit, function: Function) -> frozenset[str]:
    """Return the arrays that a function's schedules, and those of functions that it may call, add up in any order."""
    found: frozenset[str] = frozenset()
    for schedule in _reached(unit, function):
        whole = {one.name: one.whole or one.name for one in schedule.program.arrays}
        found |= {whole[name] for name in unordered_sums(schedule.program.body) if name in whole}
    return found


def followed(unit: TranslationUnit, function: Function) -> bool:
    """Say whether anything else in a function may depend on what it adds up in any order."""
    loose = summed(unit, function)
    own = [one for one in unit.schedules if one.function == function.name]
    if len(_reached(unit, function)) > len(own) or any(_reads(one) & loose for one in own):
        return bool(loose)
    if any(unordered_sums(one.program.body) - {array.name for array in one.program.arrays} for one in own):
        return True  # in an array of the block, which the block then reads
    text, position = "", function.body.start
    for place in sorted((one.span.start, one.span.end) for one in own):
        text, position = text + unit.source.text[position : place[0]], place[1]
    text += unit.source.text[position : function.body.end]
    return any(re.search(rf"\b{name}\b", text) for name in loose)


def bounds_said(unit: TranslationUnit, functions: Sequence[Function]) -> list[str]:
    """Return what is to be said of how results are compared that are sums in any order."""
    said = []
    for function in functions:
        names = ", ".join(sorted(summed(unit, function)))
        if names:
            said.append(f"{function.name}: {names}: sums in any order, compared to the bound for their terms")
        if followed(unit, function):
            close = f"what depends on such sums is compared to {CLOSE:g} of the largest, since no bound is known"
            said.append(f"{function.name}: {close}")
    return said


def _reached(unit: TranslationUnit, function: Function) -> list[Schedule]:
    """Return the schedules of a function and of those that its text names."""
    text = unit.source.text[function.body.start : function.body.end]
    names = {one.name for one in unit.functions if re.search(rf"\b{one.name}\s*\(", text)} | {function.name}
    return [one for one in unit.schedules if one.function in names]


def _reads(schedule: Schedule) -> frozenset[str]:
    """Return the arrays of the host whose elements a schedule reads, other than to update them atomically."""
    whole = {one.name: one.whole or one.name for one in schedule.program.arrays}
    found: set[str] = set()
    for stmt in ir.walk_statements(schedule.program.body):
        for expr in ir.expressions_of(stmt):
            stored = isinstance(stmt, ir.Assign) and expr is stmt.target and (stmt.atomic or not stmt.op)
            if stored and isinstance(expr, ir.Element):
                found.update(*map(arrays_read, expr.indices))
            else:
                found |= arrays_read(expr)
    return frozenset(whole.get(name, name) for name in found)
