"""How many elements a pointer leads to at a schedule: as many as malloc or calloc has given it memory for.

``float *t = malloc(n * sizeof *t);`` gives ``t`` n elements as long as neither ``t`` nor ``n`` changes.
"""

from __future__ import annotations

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.text import syntax
from metafork.frontend.text.vocabulary import scalar_type


def given_memory(host: HostFunction, site: Site, pointer: Variable) -> syntax.Expression | None:
    """Return the extent of a pointer to scalars, in variables as they are at a schedule; ``None`` if not known."""
    write = host.definition(pointer, site)
    if write is None or write.value is None or pointer.rows or pointer.structure is not None or not host.known.trusted:
        return None
    call = write.value
    while isinstance(call, syntax.Conversion):
        call = call.operand
    match call:
        case syntax.Invocation(
            callee=syntax.Name(name="malloc"), arguments=(syntax.Infix(op="*", left=left, right=right),)
        ) if "malloc" not in write.scope:
            pass
        case syntax.Invocation(callee=syntax.Name(name="calloc"), arguments=(left, right)) if (
            "calloc" not in write.scope
        ):
            pass
        case _:
            return None
    sizes = [_is_size(one, host, pointer) for one in (left, right)]
    count = left if sizes == [False, True] else right if sizes == [True, False] else None
    if count is None or not _plain(count):
        return None
    for name in syntax.names_in(count):
        one = write.scope.get(name)
        if one is None or one.type is None or not one.type.integer or site.visible.get(name) is not one:
            return None
        if host.stable(one, write.order, site) is not None:
            return None
    return count


def _is_size(expression: syntax.Expression, host: HostFunction, pointer: Variable) -> bool:
    """Say whether an expression is the size of an element of a pointer."""
    match expression:
        case syntax.SizeOfType(type=type_):
            return (
                not type_.pointers and not type_.extents and scalar_type(type_.words, host.typedefs) is pointer.pointed
            )
        case syntax.Prefix(op="sizeof", operand=syntax.Prefix(op="*", operand=syntax.Name(name=name))):
            return name == pointer.name
        case syntax.Prefix(op="sizeof", operand=syntax.Subscript(base=syntax.Name(name=name))):
            return name == pointer.name
        case _:
            return False


def _plain(expression: syntax.Expression) -> bool:
    match expression:
        case syntax.Name(uncertain=False) | syntax.Constant():
            return True
        case syntax.Infix(op="+" | "-" | "*" | "/", left=left, right=right):
            return _plain(left) and _plain(right)
        case _:
            return False
