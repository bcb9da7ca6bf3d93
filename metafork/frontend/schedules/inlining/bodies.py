"""What bodies of functions do: whether they choose a value, what they write, and what they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from metafork.frontend.schedules.inlining.functions import FileFunction
from metafork.frontend.text import syntax
from metafork.frontend.text.jumps import always_leaves


def items_of(statement: syntax.Statement) -> list[syntax.Statement]:
    """Return the statements of a body, the braces around all of it and empty statements left out."""
    if not isinstance(statement, syntax.Block):
        return [] if isinstance(statement, syntax.Empty) else [statement]
    items: list[syntax.Statement] = [item for item in statement.items if not isinstance(item, syntax.Empty)]
    return items_of(items[0]) if len(items) == 1 and isinstance(items[0], syntax.Block) else items


def assigned_first(items: list[syntax.Statement]) -> list[syntax.Statement]:
    """Return statements with ``return a = e;`` at their end as ``a = e; return a;``."""
    match items:
        case [*before, syntax.Jump(value=syntax.Assignment(target=target) as value, span=span) as last] if is_still(
            target
        ):
            return [*before, syntax.ExpressionStatement(value, span), replace(last, value=target)]
        case _:
            return items


def is_still(expression: syntax.Expression) -> bool:
    """Return whether an expression surely changes nothing."""
    return not any(
        isinstance(part, syntax.Assignment | syntax.Postfix | syntax.Invocation | syntax.Unsupported)
        or (isinstance(part, syntax.Prefix) and part.op in ("++", "--"))
        for part in syntax.walk(expression)
    )


def chooses(items: Sequence[syntax.Statement]) -> bool:
    """Return whether statements do nothing but return a value, which conditions may choose."""
    match items:
        case [syntax.Jump(word="return", value=value), *_]:
            return value is not None
        case [syntax.IfStatement(then=then, otherwise=None), *rest]:
            return always_leaves(then) and chooses(items_of(then)) and chooses(rest)
        case [syntax.IfStatement(then=then, otherwise=otherwise), *_] if otherwise is not None:
            return chooses(items_of(then)) and chooses(items_of(otherwise))
        case _:
            return False


def is_pointer(declarator: syntax.Declarator) -> bool:
    """Say whether a parameter is a pointer."""
    return declarator.type.pointers > 0


def rank(declarator: syntax.Declarator) -> int:
    """Return how many indices lead from a parameter to a scalar."""
    return len(declarator.type.extents) + declarator.type.pointers


def targets_in(parts: Iterable[syntax.Expression]) -> list[syntax.Expression]:
    """Return what expressions assign, change or take the address of."""
    found: list[syntax.Expression] = []
    for part in parts:
        match part:
            case (
                syntax.Assignment(target=target)
                | syntax.Postfix(operand=target)
                | syntax.Prefix(op="++" | "--" | "&", operand=target)
            ):
                found.append(target)
            case _:
                pass
    return found


def stores(statement: syntax.Statement, own: frozenset[str] = frozenset()) -> bool:
    """Return whether a statement writes to anything but scalars and arrays ``own``, declared around it."""
    parts = [part for one in syntax.direct_expressions(statement) for part in syntax.walk(one)]
    if any(base_of(target) not in own for target in targets_in(parts) if not isinstance(target, syntax.Name)):
        return True
    for inner in syntax.direct_statements(statement):
        if stores(inner, own):
            return True
        if isinstance(inner, syntax.Declaration):
            names = {declarator.name for declarator in inner.declarators}
            own = own - names | {declarator.name for declarator in inner.declarators if not declarator.type.pointers}
    return False


def roots(place: syntax.Expression) -> set[str]:
    """Return the names of what may be at a place: those of indices are read alone."""
    while isinstance(place, syntax.Subscript | syntax.Member):
        place = place.base
    return syntax.names_in(place)


def own_parameters(function: FileFunction) -> frozenset[str]:
    """Return the parameters of a function that are its own: scalars and structures."""
    return frozenset(one.name for one in function.parameters if not (one.type.pointers or one.type.extents))


def names_beyond(function: FileFunction) -> set[str]:
    """Return what a function may take an element of, or hand on, that is neither a parameter nor its own."""
    own = {one.name for one in (*function.parameters, *syntax.declarators_in(function.body))}
    found: set[str] = set()
    for part in syntax.expressions_in(function.body):
        match part:
            case syntax.Subscript() | syntax.Member() | syntax.Prefix(op="*" | "&"):
                found |= syntax.names_in(part)
            case syntax.Invocation(arguments=arguments):
                found |= {one.name for one in arguments if isinstance(one, syntax.Name)}
            case _:
                pass
    return found - own


def base_of(target: syntax.Expression) -> str:
    """Return the name of the array or structure that a target is a part of, or nothing."""
    while isinstance(target, syntax.Subscript) or (isinstance(target, syntax.Member) and not target.arrow):
        target = target.base
    return target.name if isinstance(target, syntax.Name) else ""
