"""Arrays that a schedule uses as its own, though the function declares them: ``float w[9];`` in front of the loops.

Such an array is declared in the threads' code instead, where nobody can tell the difference: nothing outside of
schedules names it, and every iteration of the innermost ``meta_for`` writes each element before it reads it (*array
privatization*).  That is proved by a walk through the code that knows which elements surely are written: loops between
numbers are walked one iteration after the other, and others say of a range that it is::

    for (int k = 0; k < 9; k++) w[k] = ...;      all 9 elements
    for (int k = 0; k < m; k++) w[k] = ...;      those from 0 to m - 1
    if (...) w[0] = 1; else w[0] = 2;            the first one
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable, spelled_out
from metafork.frontend.nests.written import Written
from metafork.frontend.nests.written_elements import Find, NotKnownError, Number, OwnArray, Walk
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.reporter import RefusedError
from metafork.frontend.text.structures import structure_of
from metafork.frontend.text.syntax_changes import with_statements

MOST_ELEMENTS = 4096


def with_own_arrays(
    schedule: syntax.ScheduleStatement, host: HostFunction, site: Site, functions: Find, number: Number
) -> syntax.ScheduleStatement:
    """Return a schedule in which the arrays of the function that are its own are declared."""
    named = {one.name for one in (*syntax.results_of(schedule), *(schedule.cache or ()))}
    for declared in host.declared:
        declarator = replace(declared, type=spelled_out(declared.type, host.typedefs))
        variable = site.visible.get(declarator.name)
        if variable is None or variable.span != declarator.name_span or not _may_be_own(host, variable, declarator):
            continue
        if declarator.name not in free_names(schedule.body) - named or not _only_in_schedules(host, declarator.name):
            continue
        shape = [number(one) for one in declarator.type.extents if one is not None]
        known = [one for one in shape if one is not None and one > 0]
        if len(known) < len(declarator.type.extents) or math.prod(known) > MOST_ELEMENTS:
            continue
        structure = None if known else structure_of(declarator.type, host.typedefs)
        members = () if structure is None else structure.members
        array = OwnArray(declarator.name, tuple(known), tuple(f".{one}" for one in members))
        own = all(_is_own(one.statement, array, functions, number) for one in host.sites)
        if own:
            plain = replace(declarator, value=None, braces=None)
            declaration = syntax.Declaration((plain,), declarator.span)
            schedule = replace(schedule, body=_declared(schedule.body, declaration))
    return schedule


def _may_be_own(host: HostFunction, variable: Variable, declarator: syntax.Declarator) -> bool:
    """Say whether a variable is an array of the function, or a structure, of which nobody has the address."""
    given = variable.is_parameter or variable.is_global or variable.const or variable.escapes < math.inf
    of_structure = variable.fault == "MF0205" and not declarator.type.extents
    plain = not declarator.type.pointers and not declarator.type.storage and (variable.element or of_structure)
    return host.is_certain and declarator.name not in host.in_pragmas and bool(plain) and not given


def _only_in_schedules(host: HostFunction, name: str) -> bool:
    """Say whether a variable is named in schedules alone: nobody else reads what they leave in it."""
    pending: list[syntax.Statement] = [host.body]
    while pending:
        one = pending.pop()
        if isinstance(one, syntax.ScheduleStatement):
            if one.block is not None and any(name in syntax.names_in(extent) for extent in one.block.shape):
                return False
            continue
        if isinstance(one, syntax.Opaque) and any(token.text == name for token in one.tokens):
            return False
        if any(name in syntax.names_in(part) for part in syntax.direct_expressions(one)):
            return False
        pending += syntax.direct_statements(one)
    return True


def _is_own(schedule: syntax.ScheduleStatement, array: OwnArray, functions: Find, number: Number) -> bool:
    """Say whether each iteration of the innermost ``meta_for`` writes what it reads, and all uses stand in one."""
    uses = list(_innermost(schedule.body, array.name))
    if None in uses:
        return False
    hidden = {one.name for one in syntax.declarators_in(schedule.body)}
    try:
        for body in uses:
            assert body is not None
            Walk(array, functions, number, hidden).statement(body, Written(), {})
    except (NotKnownError, RefusedError):
        return False
    return True


def _innermost(statement: syntax.Statement, name: str) -> Iterator[syntax.Statement | None]:
    """Yield the bodies of innermost ``meta_for``s that name a variable, ``None`` for a use outside of them."""
    if name not in free_names(statement):
        return
    if isinstance(statement, syntax.ForStatement) and statement.meta:
        inside = any(
            isinstance(one, syntax.ForStatement) and one.meta for one in syntax.walk_statements(statement.body)
        )
        if not inside:
            yield statement.body
            return
    if any(name in syntax.names_in(part) for part in syntax.direct_expressions(statement)):
        yield None
    for one in syntax.direct_statements(statement):
        yield from _innermost(one, name)


def _declared(statement: syntax.Statement, declaration: syntax.Declaration) -> syntax.Statement:
    """Return a statement with a declaration at the beginning of each innermost ``meta_for`` that needs it."""
    name = declaration.declarators[0].name
    if name not in free_names(statement):
        return statement
    if (
        isinstance(statement, syntax.ForStatement)
        and statement.meta
        and list(_innermost(statement, name)) == [statement.body]
    ):
        items = statement.body.items if isinstance(statement.body, syntax.Block) else (statement.body,)
        return replace(statement, body=syntax.Block((declaration, *items), statement.body.span))
    return with_statements(statement, lambda one: _declared(one, declaration))
