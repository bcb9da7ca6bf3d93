"""Members of structures that are parameters to schedules: declared where their function begins, and put together again.

A function with ``Grid g`` in which schedules use ``g.nx`` begins with ``const int g_nx = g.nx;``.  Who knows nothing of
the structure (the driver of ``verify``) calls a *flat* function instead, which is given the members.
"""

from __future__ import annotations

from metafork.ir.translation_unit import Function, FunctionParameter

FLAT_SUFFIX = "_metafork_flat"
"""What the symbol of a flat function ends with."""


def member_declarations(function: Function) -> str:
    """Return what stands at the beginning of a function's body, empty where no member is a parameter."""
    return "".join(_declared(one) for one in function.values if one.member)


def _declared(member: FunctionParameter) -> str:
    return f" const __typeof__({member.member}) {member.name} __attribute__((unused)) = {_value(member)};"


def _value(member: FunctionParameter) -> str:
    pointer, arrow, _ = member.member.partition("->")
    return f"{pointer} ? {member.member} : 0" if arrow else member.member


def member_test(member: FunctionParameter) -> str:
    """Return a condition under which a member behind a pointer is what it was, empty for any other one."""
    return f"({_value(member)}) == {member.name}" if "->" in member.member else ""


def is_flattened(function: Function) -> bool:
    """Say whether a function is given structures whose members are parameters."""
    return any(one.parts for one in function.parameters)


def flat_parameters(function: Function) -> tuple[FunctionParameter, ...]:
    """Return what a function is given, with members in the place of structures."""
    return tuple(one for parameter in function.parameters for one in parameter.parts or (parameter,))


def flat_function(function: Function, prefix: str = "") -> str:
    """Return a function that is given members and calls the function of a file; its symbol begins with ``prefix``."""
    given = ", ".join(
        one.declaration if one.type is not None else f"void *{one.name}" for one in flat_parameters(function)
    )
    head = f"{function.returns} metafork_flat_{function.name}({given})"
    whole = [_whole(one) for one in function.parameters if one.parts]
    call = f"{function.name}({', '.join(one.name for one in function.parameters)})"
    symbol = f"{prefix}{function.name}{FLAT_SUFFIX}"
    return f'{head} __asm__("{symbol}");\n{head} {{ {" ".join(whole)} return {call}; }}\n'


def _whole(structure: FunctionParameter) -> str:
    """Return the declaration of a structure that is made of its members, or of a pointer to it."""
    arrow = "->" in structure.parts[0].member
    values = ", ".join(
        f".{one.member[len(structure.name) + (2 if arrow else 1) :]} = {one.name}" for one in structure.parts
    )
    value = f"&(__typeof__(*{structure.name})){{{values}}}" if arrow else f"{{{values}}}"
    return f"{structure.text} = {value};"
