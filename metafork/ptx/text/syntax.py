"""The frozen representation of PTX, ISA 7.0 to 9.0.

A module is a tuple of items; a function body is a tree of statements (inline assembly opens nested scopes).  What no
analysis needs (debug sections, ``.loc``, prototypes) is a ``Directive`` that carries its text.  Opcodes are plain
strings: one that nobody here knows is represented, and printed, like any other.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from metafork.ptx.text.source import NOWHERE, Span

SPACES = frozenset({"reg", "sreg", "param", "const", "global", "local", "shared", "tex"})
"""State spaces that start a declaration, without their dot."""

TYPE_BYTES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4, "u16x2": 4, "s16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "f32x2": 8,
}  # fmt: skip
"""Bytes of a value of each fundamental type; ``pred`` has none."""


class Name(Struct, frozen=True):
    """A register, variable, label, parameter or special register; ``component`` is the ``x`` of ``%tid.x``."""

    text: str
    component: str | None = None

    def __str__(self) -> str:
        return self.text if self.component is None else f"{self.text}.{self.component}"


class Immediate(Struct, frozen=True):
    """A literal as written: ``-4``, ``0x10``, ``0f3F800000``, ``1.5``."""

    text: str

    def __str__(self) -> str:
        return self.text


class Negated(Struct, frozen=True):
    """A negated predicate operand, ``!%p1``."""

    name: Name

    def __str__(self) -> str:
        return f"!{self.name}"


class Offset(Struct, frozen=True):
    """The address of a variable plus bytes, as an operand of ``mov``: ``table+16``."""

    name: Name
    offset: int

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}"


class Address(Struct, frozen=True):
    """A memory operand ``[base+offset]``; the offset is in bytes."""

    base: Name | Immediate
    offset: int

    def __str__(self) -> str:
        return f"[{self.base}+{self.offset}]" if self.offset else f"[{self.base}]"


class Vector(Struct, frozen=True):
    """A vector operand, ``{%f1, %f2}``."""

    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


class Pair(Struct, frozen=True):
    """Two destinations, ``%r1|%p1``."""

    first: Name
    second: Name

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


class Group(Struct, frozen=True):
    """The parenthesised results or arguments of a ``call``."""

    elements: tuple[Operand, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


class Verbatim(Struct, frozen=True):
    """An operand of a form that is only carried through, with the names it mentions."""

    text: str
    names: tuple[Name, ...]

    def __str__(self) -> str:
        return self.text


Operand: TypeAlias = Name | Immediate | Negated | Offset | Address | Vector | Pair | Group | Verbatim


class Guard(Struct, frozen=True):
    """The predicate of an instruction, ``@%p1`` or ``@!%p1``."""

    name: Name
    negated: bool

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}{self.name}"


class Instruction(Struct, frozen=True):
    """One instruction: ``guard opcode.modifier… operand, …;``; modifiers are kept without their dots."""

    guard: Guard | None
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    span: Span = NOWHERE

    @property
    def mnemonic(self) -> str:
        """The opcode with its modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


class Label(Struct, frozen=True):
    """A branch target."""

    name: str
    span: Span = NOWHERE


class Directive(Struct, frozen=True):
    """Text carried through unread: ``.loc``, ``.pragma``, ``.callprototype``, ``.section`` with its bytes, …"""

    text: str
    span: Span = NOWHERE


class Declarator(Struct, frozen=True):
    """One declared name; ``count`` is the 10 of ``%r<10>``, ``None`` among the extents an open one (``smem[]``)."""

    name: str
    count: int | None = None
    extents: tuple[int | None, ...] = ()
    initialiser: str | None = None


class Pointer(Struct, frozen=True):
    """What ``.ptr`` says of a parameter: the space pointed into, its alignment in bytes, and ``.restrict``."""

    space: str | None
    alignment: int | None
    restrict: bool = False


class Declaration(Struct, frozen=True):
    """Variables of one state space and type; alignment in bytes, ``vector`` is ``v2``, ``v4`` or ``None``."""

    linkage: tuple[str, ...]
    space: str
    attributes: tuple[str, ...]
    alignment: int | None
    vector: str | None
    type: str
    pointer: Pointer | None
    declarators: tuple[Declarator, ...]
    span: Span = NOWHERE


class Scope(Struct, frozen=True):
    """Statements between braces inside a body; names declared inside are invisible outside."""

    statements: tuple[Statement, ...]
    span: Span = NOWHERE


Statement: TypeAlias = Instruction | Label | Directive | Declaration | Scope


class Function(Struct, frozen=True):
    """An ``.entry`` or ``.func``; ``body`` is ``None`` for a prototype, ``directives`` are ``.maxntid 256, 1, 1`` …"""

    linkage: tuple[str, ...]
    kernel: bool
    results: tuple[Declaration, ...]
    name: str
    parameters: tuple[Declaration, ...]
    directives: tuple[str, ...]
    body: tuple[Statement, ...] | None
    span: Span = NOWHERE


Item: TypeAlias = Function | Declaration | Directive


class Module(Struct, frozen=True):
    """A PTX file; the header's three directives are typed, the rest is ``items`` in order.

    ``version`` is (major, minor), ``target`` the words after ``.target`` (``("sm_80", "debug")``), ``address_size`` in
    bits, ``None`` where the file leaves it out.
    """

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int | None
    items: tuple[Item, ...]

    def kernels(self) -> tuple[Function, ...]:
        """Return the kernels that have a body, in order."""
        return tuple(
            item for item in self.items if isinstance(item, Function) and item.kernel and item.body is not None
        )

    def function(self, name: str) -> Function:
        """Return the function of that name that has a body.

        Raises:
            KeyError: there is none.
        """
        for item in self.items:
            if isinstance(item, Function) and item.name == name and item.body is not None:
                return item
        raise KeyError(name)
