"""A function body without its nested scopes: one list of instructions, unique names, labels as positions.

Inline assembly declares registers and labels inside braces; two expansions of one statement declare the same names.
Analyses want one name for one thing, so a name declared twice gets a suffix here.  Positions count instructions in
the order of the text, and so does ``synthesis``: position ``i`` is the ``i``-th instruction printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.ptx.text.source import PtxError, Span
from metafork.ptx.text.syntax import (
    Address,
    Declaration,
    Declarator,
    Directive,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Name,
    Negated,
    Offset,
    Operand,
    Pair,
    Scope,
    Statement,
    Vector,
    Verbatim,
)

_BRANCH_TARGETS = r"\.branchtargets\s+([^;]+);"


class Variable(Struct, frozen=True):
    """A variable of the function that lives in memory: ``.local``, ``.shared`` or ``.param``."""

    declaration: Declaration
    declarator: Declarator


class FlatBody(Struct, frozen=True):
    """The flat body of a function.

    Attributes:
        instructions: in the order of the text.
        labels: label → position of the instruction that follows (the length for a label at the end).
        registers: register → type, ``pred`` included.
        variables: memory variables declared in the body.
        tables: name of a ``.branchtargets`` list → its labels.
        scopes: the number of the scope each instruction stands in; 0 is the body itself.
    """

    function: Function
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    registers: Mapping[str, str]
    variables: Mapping[str, Variable]
    tables: Mapping[str, tuple[str, ...]]
    scopes: tuple[int, ...]


def flatten(function: Function) -> FlatBody:
    """Return the flat body of a function.

    Raises:
        PtxError: a label or register is declared twice in one scope.
        ValueError: the function is a prototype.
    """
    if function.body is None:
        raise ValueError(f"{function.name} has no body")
    flattener = _Flattener()
    flattener.scope(function.body, {})
    return FlatBody(
        function,
        tuple(flattener.instructions),
        flattener.labels,
        flattener.registers,
        flattener.variables,
        flattener.tables,
        tuple(flattener.scopes),
    )


class _Flattener:
    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.taken: set[str] = set()
        self.scopes: list[int] = []
        self.opened = 0

    def unique(self, name: str, renaming: dict[str, str], here: set[str], span: Span) -> str:
        if name in here:
            raise PtxError(f"{name} is declared twice", span)
        here.add(name)
        fresh, number = name, 0
        while fresh in self.taken:
            number += 1
            fresh = f"{name}#{number}"
        self.taken.add(fresh)
        if fresh != name:
            renaming[name] = fresh
        else:
            renaming.pop(name, None)
        return fresh

    def scope(self, statements: Iterable[Statement], outer: Mapping[str, str]) -> None:
        renaming = dict(outer)
        here: set[str] = set()
        number = self.opened
        self.opened += 1
        statements = tuple(statements)
        # Labels may be used before they stand, so the names of the scope come first.
        for index, statement in enumerate(statements):
            if isinstance(statement, Label):
                table = statements[index + 1] if index + 1 < len(statements) else None
                fresh = self.unique(statement.name, renaming, here, statement.span)
                if isinstance(table, Directive) and (match := re.match(_BRANCH_TARGETS, table.text)):
                    self.tables[fresh] = tuple(match.group(1).replace(",", " ").split())
            elif isinstance(statement, Declaration):
                self.declare(statement, renaming, here)
        for name, targets in self.tables.items():
            self.tables[name] = tuple(renaming.get(target, target) for target in targets)
        for statement in statements:
            match statement:
                case Instruction():
                    self.instructions.append(_rename(statement, renaming) if renaming else statement)
                    self.scopes.append(number)
                case Label(name):
                    self.labels[renaming.get(name, name)] = len(self.instructions)
                case Scope(inner):
                    self.scope(inner, renaming)
                case Declaration() | Directive():
                    pass
                case _:
                    assert_never(statement)

    def declare(self, declaration: Declaration, renaming: dict[str, str], here: set[str]) -> None:
        for declarator in declaration.declarators:
            if declaration.space == "reg":
                count = declarator.count
                names = [declarator.name] if count is None else [f"{declarator.name}{i}" for i in range(count)]
                if self.taken.isdisjoint(names):
                    # All at once: a kernel declares more registers than it has instructions.
                    here.update(names)
                    self.taken.update(names)
                else:
                    names = [self.unique(name, renaming, here, declaration.span) for name in names]
                self.registers.update(dict.fromkeys(names, declaration.type))
            else:
                fresh = self.unique(declarator.name, renaming, here, declaration.span)
                self.variables[fresh] = Variable(declaration, declarator)


def _rename(instruction: Instruction, renaming: Mapping[str, str]) -> Instruction:
    guard = instruction.guard
    return replace(
        instruction,
        guard=guard and Guard(_name(guard.name, renaming), guard.negated),
        operands=tuple(_operand(operand, renaming) for operand in instruction.operands),
    )


def _name(name: Name, renaming: Mapping[str, str]) -> Name:
    fresh = renaming.get(name.text)
    return name if fresh is None else Name(fresh, name.component)


def _operand(operand: Operand, renaming: Mapping[str, str]) -> Operand:
    match operand:
        case Name():
            return _name(operand, renaming)
        case Negated(name):
            return Negated(_name(name, renaming))
        case Offset(name, offset):
            return Offset(_name(name, renaming), offset)
        case Address(base, offset):
            return Address(_name(base, renaming) if isinstance(base, Name) else base, offset)
        case Pair(first, second):
            return Pair(_name(first, renaming), _name(second, renaming))
        case Vector(elements):
            return Vector(tuple(_operand(element, renaming) for element in elements))
        case Group(elements):
            return Group(tuple(_operand(element, renaming) for element in elements))
        case Verbatim(text, names):
            return Verbatim(text, tuple(_name(name, renaming) for name in names))
        case Immediate():
            return operand
        case _:
            assert_never(operand)
