"""Members of structures that are parameters to schedules: declared where their function begins, and put together again.

A function with ``Grid g`` in which schedules use ``g.nx`` begins with ``const int g_nx = g.nx;``.  Who knows nothing of
the structure (the driver of ``verify``) calls a *flat* function instead, which is given the members, and the values of
the file's variables that sizes depend on.  Of a static function there is one too: nothing else can be called.
"""

from __future__ import annotations

import re

from metafork.frontend.text.vocabulary import HEADER_TYPES
from metafork.ir.translation_unit import Function, FunctionParameter, Schedule

FLAT_SUFFIX = "_metafork_flat"
"""What the symbol of a flat function ends with."""

_GIVEN = "metafork_given_"
_RETURNED = {"void", "signed", "unsigned", "char", "short", "int", "long", "float", "double", "_Bool", "const"}


def member_declarations(function: Function) -> str:
    """Return what stands at the beginning of a function's body, empty where no member is a parameter."""
    return "".join(_declared(one) for one in function.values if one.member and not one.moved)


def moved_members(function: Function) -> tuple[str, str]:
    """Return what stands in front of a function and behind it: members that it assigns to are what they are now."""
    moved = [one for one in function.values if one.moved]
    before = "".join(f"\n#define {one.name} ({_value(one)})" for one in moved)
    behind = "".join(f"\n#undef {one.name}" for one in moved)
    return (f"{before}\n", f"{behind}\n") if moved else ("", "")


def _declared(member: FunctionParameter) -> str:
    return f" const __typeof__({member.member}) {member.name} __attribute__((unused)) = {_value(member)};"


def _value(member: FunctionParameter) -> str:
    pointer, arrow, _ = member.member.partition("->")
    return f"{pointer} ? {member.member} : 0" if arrow else member.member


def row_declarations(schedule: Schedule) -> list[str]:
    """Return the declarations of rows that a schedule knows by names of their own."""
    return [f"const __typeof__({row}) {name} __attribute__((unused)) = {row};" for name, row in schedule.led]


def member_test(member: FunctionParameter) -> str:
    """Return a condition under which a member behind a pointer is what it was, empty for any other one."""
    return f"({_value(member)}) == {member.name}" if "->" in member.member and not member.moved else ""


def is_flattened(function: Function) -> bool:
    """Say whether a flat function is called in the place of a function."""
    given = function.static or function.globals or flat_returns(function) != function.returns
    return bool(given) or any(one.parts or one.given for one in function.parameters)


def flat_returns(function: Function) -> str:
    """Return what a flat function returns: nothing where another file may not know the type."""
    words = set(re.findall(r"\w+", function.returns))
    return function.returns if words <= _RETURNED | HEADER_TYPES.keys() else "void"


def flat_parameters(function: Function) -> tuple[FunctionParameter, ...]:
    """Return what a flat function is given: members in the place of structures; variables of the file at the end.

    In front of a pointer that may be null it is given whether it is.
    """
    own = (one for parameter in function.parameters for one in parameter.parts or (parameter,))
    return (*(each for one in own for each in (one.given, one) if each is not None), *function.globals)


def flat_function(function: Function, prefix: str = "") -> str:
    """Return a function that is given members and calls the function of a file; its symbol begins with ``prefix``."""
    own = flat_parameters(function)[: -len(function.globals) or None]
    given = [one.declaration if one.type is not None else f"void *{one.name}" for one in own]
    given += [f"{one.type.spelling} {_GIVEN}{one.name}" for one in function.globals if one.type is not None]
    returns = flat_returns(function)
    head = f"{returns} metafork_flat_{function.name}({', '.join(given) or 'void'})"
    whole = [f"{one.name} = {_GIVEN}{one.name};" for one in function.globals]
    whole += [f"if (!{one.given.name}) {one.name} = 0;" for one in function.values if one.given is not None]
    whole += [_whole(one) for one in function.parameters if one.parts]
    call = f"{function.name}({', '.join(one.name for one in function.parameters)})"
    symbol = f"{prefix}{function.name}{FLAT_SUFFIX}"
    called = f"return {call};" if returns == function.returns else f"{call};"
    return f'{head} __asm__("{symbol}");\n{head} {{ {" ".join([*whole, called])} }}\n'


def _whole(structure: FunctionParameter) -> str:
    """Return the declaration of a structure that is made of its members, or of a pointer to it."""
    arrow = "->" in structure.parts[0].member
    values = ", ".join(
        f".{one.member[len(structure.name) + (2 if arrow else 1) :]} = {one.name}" for one in structure.parts
    )
    value = f"&(__typeof__(*{structure.name})){{{values}}}" if arrow else f"{{{values}}}"
    return f"{structure.text} = {value};"
