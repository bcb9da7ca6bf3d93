"""Members that are parameters, as variables of the function and as C declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from metafork.frontend.host.file_scope import FileScope
from metafork.frontend.host.variables import Variable, declared
from metafork.frontend.members.returning import Returning
from metafork.frontend.members.structure_values import member_types, moved_members
from metafork.frontend.text import syntax
from metafork.frontend.text.tokens import Token
from metafork.ir.names import fresh
from metafork.ir.translation_unit import FunctionParameter


def member_parameters(
    declarator: syntax.Declarator,
    scope: FileScope,
    head: Sequence[Token],
    body: Sequence[Token],
    returning: Mapping[str, Returning],
    taken: set[str],
) -> dict[tuple[str, ...], tuple[Variable, FunctionParameter]]:
    """Return the members of a parameter that are parameters too, by the names that lead there (``g``, ``nx``).

    ``head`` are the function's other parameters and its promises; ``taken`` are names, and grow.
    """
    others = [
        name
        for name, one in scope.variables.items()
        if one.type is None and (one.element is None or one.structure is not None)
    ]
    joint = "->" if declarator.type.pointers else "."
    found: dict[tuple[str, ...], tuple[Variable, FunctionParameter]] = {}
    moved = moved_members(declarator, scope.typedefs, body)
    for path, type_ in member_types(declarator, scope.typedefs, head, body, scope.known, returning, others).items():
        name = fresh(f"{declarator.name}_{path.replace('.', '_')}", taken)
        part = declared(
            replace(declarator, name=name, type=replace(type_, span=declarator.type.span)), scope.typedefs, 0
        )
        part.is_parameter = True
        named = type_.words if type_.structure is None else ("struct", type_.structure.tag)
        words = " ".join((*sorted(type_.qualifiers), *named))
        spelled, member = f"{words} {'*' * type_.pointers}{name}", f"{declarator.name}{joint}{path}"
        parameter = FunctionParameter(name, spelled, part.type, member=member, moved=path in moved)
        found[(declarator.name, *path.split("."))] = part, parameter
    return found
