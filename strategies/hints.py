"""Loops that a strategy cannot take up, why, and the rewritings that would change that: for ``metafork explain``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.references import Reference, left_early
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import common_type
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import (
    Assign,
    Binary,
    Conditional,
    Declare,
    Element,
    Expr,
    For,
    If,
    IntConst,
    Phase,
    Program,
    Stmt,
    Var,
    While,
    binary,
    walk_expression,
    walk_statements,
)
from metafork.ir.rewriting import (
    arrays_read,
    assigned_variables,
    map_body,
    names_of,
    substitute_body,
    variables,
)
from metafork.printing.expressions import as_written, expression
from strategies.loops.simplification import simplified
from strategies.loops.spine import replaced_on_spine, spine_of
from strategies.strategy import Remark


def loop_name(loop: For | While) -> str:
    """Return what a loop is called: by its variable, where it declares one."""
    match loop:
        case For(init=Declare(name=name)) | For(init=Assign(target=Var(name=name))):
            return f"the loop over {name}"
        case _:
            return "the while loop" if isinstance(loop, While) else "the loop"


Written = tuple[str, Program]
"""What a hint says, and the program written so."""

MOST_BOUNDS = 3
"""Parameters that are tried as the bound of a loop."""


def bounded_loop_hints(program: Program, variable: str) -> Iterator[Written]:
    """Yield how a loop gets a bound in parameters, as ``loop_hints`` does."""
    for stmt in walk_statements(program.body):
        if isinstance(stmt, For) and isinstance(stmt.init, Declare) and stmt.init.name == variable:
            yield from loop_hints(program, stmt)
            return


def chosen_index_hint(program: Program, reference: Reference) -> tuple[str, Program] | None:
    """Say how an index that is one of two is written so that each is understood, with the program written so.

    ``None`` where that may be another program: an index that wraps more than once, or names that have other values by
    then; and where the element is assigned too, for C assigns no choice.
    """
    access = reference.element
    if any(isinstance(stmt, Assign) and stmt.target == access for stmt in walk_statements(program.body)):
        return None
    written = partial(expression, spelling=as_written(program))
    for axis, index in enumerate(access.indices):
        value = _steady_value(program, index)
        match value:
            case Binary(op="%", left=Binary(op="+" | "-") as left, right=right) if _wraps_once(reference, axis):
                below = _at(access, axis, simplified(left))
                above = _at(access, axis, simplified(binary("-", left, right)))
                chosen = Conditional(binary("<", simplified(left), right), below, above, access.type)
            case Conditional(condition=condition, then=then, otherwise=otherwise) if not any(
                isinstance(part, Conditional) for side in (then, otherwise) for part in walk_expression(side)
            ):
                chosen = Conditional(condition, _at(access, axis, then), _at(access, axis, otherwise), access.type)
            case _:
                continue
        body = map_body(program.body, partial(_in_place, access, chosen))
        return f"write {written(chosen)}", replace(program, body=body)
    return None


def _in_place(old: Expr, new: Expr, part: Expr) -> Expr | None:
    return new if part == old else None


def _wraps_once(reference: Reference, axis: int) -> bool:
    trips = [loop.trips for wrapped, loop in reference.turns if wrapped == axis]
    return bool(trips) and all(one is not None and one.is_constant and one.constant_value() <= 2 for one in trips)


def _steady_value(program: Program, index: Expr) -> Expr | None:
    """Return an index, or what its variable was declared as where that has the same value at every place."""
    if not isinstance(index, Var):
        return index
    statements = walk_statements(program.body)
    values = [stmt.value for stmt in statements if isinstance(stmt, Declare) and stmt.name == index.name]
    heads = {id(stmt.step) for stmt in statements if isinstance(stmt, For)}
    changed = [stmt.target for stmt in statements if isinstance(stmt, Assign) and id(stmt) not in heads]
    names = {target.name if isinstance(target, Var) else target.array for target in changed}
    if len(values) != 1 or values[0] is None or index.name in names:
        return None
    return values[0] if names.isdisjoint(variables(values[0]) | arrays_read(values[0])) else None


def _at(access: Element, axis: int, index: Expr) -> Element:
    return replace(access, indices=(*access.indices[:axis], index, *access.indices[axis + 1 :]))


def loop_hints(program: Program, loop: For) -> Iterator[Written]:
    """Yield how a loop gets a bound in parameters, a larger one and a condition inside, once for each that it may be.

    Nothing for loops that do not count up from 0.
    """
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or view.first != IntConst(0) or limit[0] not in ("<", "<="):
        return
    if not _changed(loop.body).isdisjoint(variables(limit[1]) | arrays_read(limit[1])):
        return  # a condition inside would not end it
    inside = binary(limit[0], view.variable, limit[1])
    hint = f"let {view.variable.name} run to a bound in parameters, and write if ({expression(inside)}) inside"
    for parameter in program.parameters[:MOST_BOUNDS]:
        head = binary("<", view.variable, Var(parameter.name, parameter.type))
        bounded = replace(loop, condition=head, body=(If(inside, loop.body),))
        yield hint, _with_loop(program, loop, bounded)


def _with_loop(program: Program, old: For, new: For) -> Program:
    return replace(program, body=replaced_on_spine(program.body, old, partial(_put, new)))


def _put(loop: For, level: tuple[Stmt, ...], position: int) -> tuple[Stmt, ...]:
    return (*level[:position], loop, *level[position + 1 :])


def _changed(body: tuple[Stmt, ...]) -> set[str]:
    """Return the names of the variables and arrays that statements change."""
    targets = [stmt.target for stmt in walk_statements(body) if isinstance(stmt, Assign)]
    return {target.name if isinstance(target, Var) else target.array for target in targets}


def loops_off_the_spine(program: Program, scope: Scope, joins: Callable[[Program, str], bool]) -> Iterator[Remark]:
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


def _off_the_spine(loop: For | While, work: Stmt, others: Sequence[Stmt]) -> tuple[str, Span]:
    """Say why a loop inside ``work``, beside which stand ``others``, is not on the spine."""
    if isinstance(loop, While):
        return "how often it runs is not known", NOWHERE
    if left_early(loop.body):
        return "an iteration may end early, by break or continue", NOWHERE
    if not isinstance(loop.init, Declare) or loop.init.name in assigned_variables(loop.body):
        return _FORM, NOWHERE
    if others:
        return "a block does other work beside it", others[0].span
    return "not all the work of a block stands inside it", work.span


_FORM = "it does not count from 0 by ones to a bound of its own"


def _counted_form(program: Program, loop: For, scope: Scope) -> Written | None:
    """Say how a loop that counts by ones gets to count from 0; ``None`` for others."""
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or not view.declared or view.down or not view.unit or limit[0] not in ("<", "<="):
        return None
    more = int(limit[0] == "<=")
    match view.first:
        case IntConst(value=first) if first - more >= 0:
            extent = binary("-", limit[1], IntConst(first - more))
        case IntConst(value=first):
            extent = binary("+", limit[1], IntConst(more - first))
        case _:
            extent = binary("-", limit[1], view.first)
            extent = binary("+", extent, IntConst(1)) if more else extent
    variable, count = view.variable, simplified(extent)
    head = binary("<", variable, count)
    if not common_type(variable.type, count.type).signed:
        known = scope.polynomial(count)
        if known is None or not scope.bounded(known):
            return None  # of numbers without a sign, what is below 0 is a large one
    value = simplified(binary("+", variable, view.first))
    inside = f", and write {expression(value)} inside" if value != variable else ""
    counted = For(
        Declare(variable.name, variable.type, IntConst(0)),
        head,
        Assign(variable, "+", IntConst(1)),
        substitute_body(loop.body, {variable.name: value}, {*names_of(program)}),
        loop.span,
    )
    return f"count from 0 while {expression(simplified(head))}{inside}", _with_loop(program, loop, counted)


def _outermost_loops(stmt: Stmt) -> Iterator[For | While]:
    match stmt:
        case For() | While():
            yield stmt
        case If(then=then, otherwise=otherwise):
            for inner in (*then, *otherwise):
                yield from _outermost_loops(inner)
        case Phase(body=body):
            for inner in body:
                yield from _outermost_loops(inner)
        case _:
            return
