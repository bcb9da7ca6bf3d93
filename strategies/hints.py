"""Loops that a strategy cannot take up, why, and the rewritings that would change that: for ``metafork explain``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.references import Reference, left_early
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import common_type
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.rewriting import (
    arrays_read,
    assigned_variables,
    map_body,
    names_of,
    substitute_body,
    variables,
)
from metafork.printing.expressions import as_written, expression
from metafork.strategies.strategy import Remark
from metafork.transform.nests.simplification import simplified
from metafork.transform.nests.spine import replaced_on_spine, spine_of


def loop_name(loop: ir.For | ir.While) -> str:
    """Return what a loop is called: by its variable, where it declares one."""
    match loop:
        case ir.For(init=ir.Declare(name=name)) | ir.For(init=ir.Assign(target=ir.Var(name=name))):
            return f"the loop over {name}"
        case _:
            return "the while loop" if isinstance(loop, ir.While) else "the loop"


Written = tuple[str, ir.Program]
"""What a hint says, and the program written so."""

MOST_BOUNDS = 3
"""Parameters that are tried as the bound of a loop."""


def bounded_loop_hints(program: ir.Program, variable: str) -> Iterator[Written]:
    """Yield how a loop gets a bound in parameters, as ``loop_hints`` does."""
    for stmt in ir.walk_statements(program.body):
        if isinstance(stmt, ir.For) and isinstance(stmt.init, ir.Declare) and stmt.init.name == variable:
            yield from loop_hints(program, stmt)
            return


def chosen_index_hint(program: ir.Program, reference: Reference) -> tuple[str, ir.Program] | None:
    """Say how an index that is one of two is written so that each is understood, with the program written so.

    ``None`` where that may be another program: an index that wraps more than once, or names that have other values by
    then; and where the element is assigned too, for C assigns no choice.
    """
    access = reference.element
    if any(isinstance(stmt, ir.Assign) and stmt.target == access for stmt in ir.walk_statements(program.body)):
        return None
    written = partial(expression, spelling=as_written(program))
    for axis, index in enumerate(access.indices):
        value = _steady_value(program, index)
        match value:
            case ir.Binary(op="%", left=ir.Binary(op="+" | "-") as left, right=right) if _wraps_once(reference, axis):
                below = _at(access, axis, simplified(left))
                above = _at(access, axis, simplified(ir.binary("-", left, right)))
                chosen = ir.Conditional(ir.binary("<", simplified(left), right), below, above, access.type)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise) if not any(
                isinstance(part, ir.Conditional) for side in (then, otherwise) for part in ir.walk_expression(side)
            ):
                chosen = ir.Conditional(condition, _at(access, axis, then), _at(access, axis, otherwise), access.type)
            case _:
                continue
        body = map_body(program.body, partial(_in_place, access, chosen))
        return f"write {written(chosen)}", replace(program, body=body)
    return None


def _in_place(old: ir.Expr, new: ir.Expr, part: ir.Expr) -> ir.Expr | None:
    return new if part == old else None


def _wraps_once(reference: Reference, axis: int) -> bool:
    trips = [loop.trips for wrapped, loop in reference.turns if wrapped == axis]
    return bool(trips) and all(one is not None and one.is_constant and one.constant_value() <= 2 for one in trips)


def _steady_value(program: ir.Program, index: ir.Expr) -> ir.Expr | None:
    """Return an index, or what its variable was declared as where that has the same value at every place."""
    if not isinstance(index, ir.Var):
        return index
    statements = ir.walk_statements(program.body)
    values = [stmt.value for stmt in statements if isinstance(stmt, ir.Declare) and stmt.name == index.name]
    heads = {id(stmt.step) for stmt in statements if isinstance(stmt, ir.For)}
    changed = [stmt.target for stmt in statements if isinstance(stmt, ir.Assign) and id(stmt) not in heads]
    names = {target.name if isinstance(target, ir.Var) else target.array for target in changed}
    if len(values) != 1 or values[0] is None or index.name in names:
        return None
    return values[0] if names.isdisjoint(variables(values[0]) | arrays_read(values[0])) else None


def _at(access: ir.Element, axis: int, index: ir.Expr) -> ir.Element:
    return replace(access, indices=(*access.indices[:axis], index, *access.indices[axis + 1 :]))


def loop_hints(program: ir.Program, loop: ir.For) -> Iterator[Written]:
    """Yield how a loop gets a bound in parameters, a larger one and a condition inside, once for each that it may be.

    Nothing for loops that do not count up from 0.
    """
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or view.first != ir.IntConst(0) or limit[0] not in ("<", "<="):
        return
    if not _changed(loop.body).isdisjoint(variables(limit[1]) | arrays_read(limit[1])):
        return  # a condition inside would not end it
    inside = ir.binary(limit[0], view.variable, limit[1])
    hint = f"let {view.variable.name} run to a bound in parameters, and write if ({expression(inside)}) inside"
    for parameter in program.parameters[:MOST_BOUNDS]:
        head = ir.binary("<", view.variable, ir.Var(parameter.name, parameter.type))
        bounded = replace(loop, condition=head, body=(ir.If(inside, loop.body),))
        yield hint, _with_loop(program, loop, bounded)


def _with_loop(program: ir.Program, old: ir.For, new: ir.For) -> ir.Program:
    return replace(program, body=replaced_on_spine(program.body, old, partial(_put, new)))


def _put(loop: ir.For, level: tuple[ir.Stmt, ...], position: int) -> tuple[ir.Stmt, ...]:
    return (*level[:position], loop, *level[position + 1 :])


def _changed(body: tuple[ir.Stmt, ...]) -> set[str]:
    """Return the names of the variables and arrays that statements change."""
    targets = [stmt.target for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Assign)]
    return {target.name if isinstance(target, ir.Var) else target.array for target in targets}


def loops_off_the_spine(
    program: ir.Program, scope: Scope, joins: Callable[[ir.Program, str], bool]
) -> Iterator[Remark]:
    """Yield remarks on the outermost serial loops that no strategy can make part of the grid, whatever they access.

    ``joins`` says whether a loop, by its name, becomes part of the grid in another program: hints are tried.
    """
    spine = spine_of(program)
    for loop in spine.uncounted:
        name = loop_name(loop)
        written = _counted_form(program, loop, scope)
        hint = "" if written is None or not joins(written[1], name) else written[0]
        yield Remark("grid", name, False, _FORM, loop.span, hint=hint)
    for stmt in spine.work:
        others = [other for other in spine.work if other is not stmt]
        for inner in _outermost_loops(stmt):
            reason, fault = _off_the_spine(inner, stmt, others)
            yield Remark("grid", loop_name(inner), False, reason, inner.span, fault)


def _off_the_spine(loop: ir.For | ir.While, work: ir.Stmt, others: Sequence[ir.Stmt]) -> tuple[str, Span]:
    """Say why a loop inside ``work``, beside which stand ``others``, is not on the spine."""
    if isinstance(loop, ir.While):
        return "how often it runs is not known", NOWHERE
    if left_early(loop.body):
        return "an iteration may end early, by break or continue", NOWHERE
    if not isinstance(loop.init, ir.Declare) or loop.init.name in assigned_variables(loop.body):
        return _FORM, NOWHERE
    if others:
        return "a block does other work beside it", others[0].span
    return "not all the work of a block stands inside it", work.span


_FORM = "it does not count from 0 by ones to a bound of its own"


def _counted_form(program: ir.Program, loop: ir.For, scope: Scope) -> Written | None:
    """Say how a loop that counts by ones gets to count from 0; ``None`` for others."""
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or not view.declared or view.down or not view.unit or limit[0] not in ("<", "<="):
        return None
    more = int(limit[0] == "<=")
    match view.first:
        case ir.IntConst(value=first) if first - more >= 0:
            extent = ir.binary("-", limit[1], ir.IntConst(first - more))
        case ir.IntConst(value=first):
            extent = ir.binary("+", limit[1], ir.IntConst(more - first))
        case _:
            extent = ir.binary("-", limit[1], view.first)
            extent = ir.binary("+", extent, ir.IntConst(1)) if more else extent
    variable, count = view.variable, simplified(extent)
    head = ir.binary("<", variable, count)
    if not common_type(variable.type, count.type).signed:
        known = scope.polynomial(count)
        if known is None or not scope.bounded(known):
            return None  # of numbers without a sign, what is below 0 is a large one
    value = simplified(ir.binary("+", variable, view.first))
    inside = f", and write {expression(value)} inside" if value != variable else ""
    counted = ir.For(
        ir.Declare(variable.name, variable.type, ir.IntConst(0)),
        head,
        ir.Assign(variable, "+", ir.IntConst(1)),
        substitute_body(loop.body, {variable.name: value}, {*names_of(program)}),
        loop.span,
    )
    return f"count from 0 while {expression(simplified(head))}{inside}", _with_loop(program, loop, counted)


def _outermost_loops(stmt: ir.Stmt) -> Iterator[ir.For | ir.While]:
    match stmt:
        case ir.For() | ir.While():
            yield stmt
        case ir.If(then=then, otherwise=otherwise):
            for inner in (*then, *otherwise):
                yield from _outermost_loops(inner)
        case ir.Phase(body=body):
            for inner in body:
                yield from _outermost_loops(inner)
        case _:
            return
