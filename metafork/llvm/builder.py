"""LLVM IR as text, made an instruction at a time.

A *value* is its type and what stands for it as an operand, both as LLVM writes them.  Names of variables are kept, with
a number where one is taken; results of instructions are ``%.1``, ``%.2``, and so on, which no variable can be called.
Nothing is folded or checked here: LLVM verifies what it parses.  An object an instruction, as libraries for IR have
them, takes three times as long.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

VOID, FLOAT, DOUBLE, I1, I8, I16, I32, I64 = "void", "float", "double", "i1", "i8", "i16", "i32", "i64"


def pointer(space: int = 0) -> str:
    """Return the type of addresses in a space."""
    return f"ptr addrspace({space})" if space else "ptr"


class Value:
    """What an instruction takes; ``constant`` is the number that a constant is, ``None`` for anything else."""

    __slots__ = ("constant", "text", "type")

    def __init__(self, type_: str, text: str, constant: float | None = None) -> None:
        self.type, self.text, self.constant = type_, text, constant


def constant(type_: str, number: float) -> Value:
    """Return a number of a type; a ``float`` has to hold it exactly."""
    if type_ in (FLOAT, DOUBLE):
        # LLVM writes both as the bits of a double.
        return Value(type_, f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016x}", number)
    return Value(type_, str(number), number)


class Block:
    """Instructions that run one after the other; the last one of a ``closed`` block leaves it."""

    __slots__ = ("closed", "lines", "name")

    def __init__(self, name: str) -> None:
        self.name, self.closed = name, False
        self.lines: list[str] = []


class Module:
    """One function with what it refers to: declarations, variables and metadata."""

    def __init__(self, triple: str) -> None:
        self.triple = triple
        self._globals: dict[str, str] = {}
        self._metadata: list[str] = []

    def declare(self, name: str, result: str, parameters: Sequence[str], attributes: str = "") -> Value:
        """Return a function of another module."""
        self._globals.setdefault(name, f'declare {result} @"{name}"({", ".join(parameters)}) {attributes}'.rstrip())
        return Value(result, f'@"{name}"')

    def variable(self, name: str, definition: str, space: int) -> Value:
        """Return the address of a variable, given what stands behind its address space."""
        place = f"addrspace({space}) " if space else ""
        self._globals[name] = f'@"{name}" = {definition.format(space=place)}'
        return Value(pointer(space), f'@"{name}"')

    def loop(self, asks: str) -> str:
        """Return the metadata of a loop of which LLVM is asked something."""
        asked, loop = (f"!{len(self._metadata) + more}" for more in range(2))
        # The first operand of a loop's metadata is the node itself, which makes it unlike that of any other loop.
        self._metadata += [f"{asked} = !{{{asks}}}", f"{loop} = distinct !{{{loop}, {asked}}}"]
        return loop

    def text(self, function: Function) -> str:
        """Return the module with its function."""
        return "\n".join(
            [f'target triple = "{self.triple}"', *self._globals.values(), *function.lines(), *self._metadata, ""]
        )


class Function:
    """A function whose blocks are being filled; instructions go to the end of the ``block`` that was chosen last."""

    def __init__(self, head: str, name: str, attributes: str, *, named: bool = True) -> None:
        """``head`` is what stands before the name: calling convention and the type of the result.

        Without ``named``, arguments, variables and blocks have numbers for names, and an operation on the same values
        is put once where its result stands for both (``region``): less to read for LLVM, which finds the same.
        """
        self.named = named
        self._known: list[dict[str, Value]] = [{}]
        self.arguments: list[Value] = []
        self.blocks: list[Block] = []
        self._head, self._name, self._attributes = head, name, attributes
        self._parameters: list[str] = []
        self._names: dict[str, int] = {}
        self._results = 0
        self.block = self.new_block("entry")

    def argument(self, name: str, type_: str, attributes: str = "") -> Value:
        """Add an argument."""
        value = Value(type_, f'%"{self._free(name)}"')
        self.arguments.append(value)
        self._parameters.append(" ".join(filter(None, (type_, attributes, value.text))))
        return value

    def _free(self, name: str) -> str:
        name = name if self.named else "v"
        number = self._names.get(name, 0)
        self._names[name] = number + 1
        return f"{name}.{number}" if number else name

    def lines(self) -> Iterator[str]:
        """Yield the lines of the definition."""
        yield f'define {self._head} @"{self._name}"({", ".join(self._parameters)}) {self._attributes} {{'
        for block in self.blocks:
            yield f"{block.name}:"
            yield from block.lines
        yield "}"

    @contextmanager
    def region(self) -> Iterator[None]:
        """Put what may not be run: its results are known within it only."""
        self._known.append({})
        yield
        self._known.pop()

    # Blocks and how they are left.

    def new_block(self, name: str) -> Block:
        """Add a block behind the others."""
        block = Block(self._free(name))
        self.blocks.append(block)
        return block

    def go_to(self, block: Block) -> None:
        """Put what follows at the end of a block."""
        self.block = block

    @contextmanager
    def in_entry(self) -> Iterator[None]:
        """Put what follows at the end of the first block, before what leaves it."""
        before, entry = self.block, self.blocks[0]
        leaving = [entry.lines.pop()] if entry.closed else []
        self.block = entry
        yield
        entry.lines += leaving
        self.block = before

    def leave(self, line: str, metadata: str = "") -> None:
        """End the block."""
        self.block.lines.append(f"  {line}{metadata}")
        self.block.closed = True

    def branch(self, target: Block, metadata: str = "") -> None:
        """Go on at a block."""
        self.leave(f'br label %"{target.name}"', metadata)

    def choose(self, condition: Value, then: Block, otherwise: Block) -> None:
        """Go on at one of two blocks."""
        self.leave(f'br i1 {condition.text}, label %"{then.name}", label %"{otherwise.name}"')

    # Instructions.

    def put(self, line: str) -> None:
        """Put an instruction without a result."""
        self.block.lines.append(f"  {line}")

    def result(self, type_: str, line: str) -> Value:
        """Put an instruction, and return its result."""
        self._results += 1
        name = f"%.{self._results}"
        self.block.lines.append(f"  {name} = {line}")
        return Value(type_, name)

    def pure(self, type_: str, line: str) -> Value:
        """Put an instruction that depends on its operands alone, and return its result."""
        if self.named:
            return self.result(type_, line)
        for known in reversed(self._known):
            if line in known:
                return known[line]
        value = self._known[-1][line] = self.result(type_, line)
        return value

    def slot(self, type_: str, name: str, space: int) -> Value:
        """Put memory of the thread."""
        value = Value(pointer(space), f'%"{self._free(name)}"')
        self.block.lines.append(f"  {value.text} = alloca {type_}{f', addrspace({space})' if space else ''}")
        return value

    def load(self, address: Value, type_: str, align: int | None = None) -> Value:
        """Read a value; ``align`` is in bytes."""
        line = f"load {type_}, {address.type} {address.text}"
        return self.result(type_, line if align is None else line + _aligned(align))

    def store(self, value: Value, address: Value, align: int | None = None) -> None:
        """Write a value; ``align`` is in bytes."""
        self.put(f"store {value.type} {value.text}, {address.type} {address.text}{_aligned(align)}")

    def element(self, base: Value, index: Value, type_: str) -> Value:
        """Return the address of an element of an array that is accessed within its bounds."""
        return self.pure(
            base.type, f"getelementptr inbounds {type_}, {base.type} {base.text}, {index.type} {index.text}"
        )

    def binary(self, operation: str, left: Value, right: Value) -> Value:
        """Put an operation of two values of one type, which the result has; flags are a part of its name."""
        return self.pure(left.type, f"{operation} {left.type} {left.text}, {right.text}")

    def compare(self, condition: str, left: Value, right: Value) -> Value:
        """Compare two values of one type; ``condition`` is such as ``icmp slt``."""
        return self.pure(I1, f"{condition} {left.type} {left.text}, {right.text}")

    def cast(self, operation: str, value: Value, type_: str) -> Value:
        """Convert a value."""
        return self.pure(type_, f"{operation} {value.type} {value.text} to {type_}")

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return one of two values."""
        return self.pure(
            then.type,
            f"select i1 {condition.text}, {then.type} {then.text}, {otherwise.type} {otherwise.text}",
        )

    def phi(self, type_: str, incoming: Sequence[tuple[Value, Block]]) -> Value:
        """Return the value that belongs to the block that was run before; first in its block."""
        return self.result(
            type_, f"phi {type_} " + ", ".join(f'[{value.text}, %"{block.name}"]' for value, block in incoming)
        )

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        """Call a function that was declared."""
        line = f"call {function.type} {function.text}({', '.join(f'{one.type} {one.text}' for one in arguments)})"
        if function.type == VOID:
            self.put(line)
            return Value(VOID, "")
        return self.result(function.type, line)


def _aligned(align: int | None) -> str:
    return "" if align is None else f", align {align}"
