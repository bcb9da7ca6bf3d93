"""The frozen representation → PTX text that ``ptxas`` reads; ``parse(print(m)) == m`` but for spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from metafork.ptx.text.syntax import (
    Declaration,
    Declarator,
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Scope,
    Statement,
)


def print_module(module: Module) -> str:
    """Return the text of a module, ending in a newline."""
    lines = [f".version {module.version[0]}.{module.version[1]}", f".target {', '.join(module.target)}"]
    if module.address_size is not None:
        lines.append(f".address_size {module.address_size}")
    for item in module.items:
        lines.append("")
        match item:
            case Function():
                lines.extend(_function(item))
            case Declaration():
                lines.append(print_declaration(item) + ";")
            case Directive():
                lines.append(item.text)
            case _:
                assert_never(item)
    return "\n".join(lines) + "\n"


def _function(function: Function) -> Iterable[str]:
    head = [f".{word}" for word in function.linkage]
    head.append(".entry" if function.kernel else ".func")
    if function.results:
        head.append("(" + ", ".join(map(print_declaration, function.results)) + ")")
    yield " ".join([*head, f"{function.name}("])
    last = len(function.parameters) - 1
    for index, parameter in enumerate(function.parameters):
        yield f"\t{print_declaration(parameter)}{',' if index < last else ''}"
    yield ")"
    yield from function.directives
    if function.body is None:
        yield ";"
        return
    yield "{"
    yield from _statements(function.body, "\t")
    yield "}"


def _statements(statements: Iterable[Statement], indent: str) -> Iterable[str]:
    for statement in statements:
        match statement:
            case Instruction():
                yield indent + print_instruction(statement)
            case Label(name):
                yield f"{name}:"
            case Directive(text):
                yield indent + text
            case Declaration():
                yield f"{indent}{print_declaration(statement)};"
            case Scope(inner):
                yield indent + "{"
                yield from _statements(inner, indent + "\t")
                yield indent + "}"
            case _:
                assert_never(statement)


def print_instruction(instruction: Instruction) -> str:
    """Return one instruction with its semicolon."""
    guard = f"{instruction.guard} " if instruction.guard is not None else ""
    operands = ", ".join(map(str, instruction.operands))
    return f"{guard}{instruction.mnemonic}{' ' if operands else ''}{operands};"


def print_declaration(declaration: Declaration) -> str:
    """Return a declaration without its semicolon, as parameters need it."""
    words = [f".{word}" for word in (*declaration.linkage, declaration.space)]
    words.extend(declaration.attributes)
    if declaration.alignment is not None:
        words.append(f".align {declaration.alignment}")
    if declaration.vector is not None:
        words.append(f".{declaration.vector}")
    words.append(f".{declaration.type}")
    pointer = declaration.pointer
    if pointer is not None:
        words.append(".ptr")
        if pointer.space is not None:
            words.append(f".{pointer.space}")
        if pointer.restrict:
            words.append(".restrict")
        if pointer.alignment is not None:
            words.append(f".align {pointer.alignment}")
    words.append(", ".join(map(_declarator, declaration.declarators)))
    return " ".join(words)


def _declarator(declarator: Declarator) -> str:
    count = f"<{declarator.count}>" if declarator.count is not None else ""
    extents = "".join(f"[{'' if extent is None else extent}]" for extent in declarator.extents)
    initialiser = f" = {declarator.initialiser}" if declarator.initialiser is not None else ""
    return f"{declarator.name}{count}{extents}{initialiser}"
