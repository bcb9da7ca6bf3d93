"""The representation of one schedule, whole: expressions, statements, the ``Program`` (DESIGN section 3).

Grammar, each line one frozen record below (spans are left out, and never take part in comparisons)::

    expr   := IntConst(value) | FloatConst(text) | Var(name) | Unary(op, expr) | Binary(op, expr, expr)
            | Conditional(expr, expr, expr) | Cast(type, expr) | Call(name, expr*) | Element(array, expr*)
    stmt   := Declare(name, type, expr?) | Assign(Var | Element, op, expr) | If(expr, stmt*, stmt*)
            | For(stmt?, expr?, stmt?, stmt*) | While(expr, stmt*) | Break | Continue
            | BlockArray(array) | Phase(MetaFor*, stmt*) | PrivateArray(array) | Barrier
    program:= Program(parameter*, value*, derived*, assumption*, array*, MetaFor*, stmt*, Mapping,
               exactness*, table*)

Expressions are C expressions with C's types: ``type`` is the type of the value after C's own conversions, and the
operands of a ``Binary`` are converted to their common type by whoever lowers it.  The statements of
``Program.body`` are at *block level*: every thread of the block runs them alike.  A ``Phase`` is one nest of thread
loops; inside it stands thread code.  ``BlockArray`` and ``Phase`` occur at block level only, ``PrivateArray`` in thread
code only, ``Barrier`` only in a kernel (``metafork.ir.kernel``).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.expr import (
    COMPARISONS as COMPARISONS,
)
from metafork.ir.expr import (
    INT as INT,
)
from metafork.ir.expr import (
    LOGICAL as LOGICAL,
)
from metafork.ir.expr import (
    Binary as Binary,
)
from metafork.ir.expr import (
    Call as Call,
)
from metafork.ir.expr import (
    Cast as Cast,
)
from metafork.ir.expr import (
    Conditional as Conditional,
)
from metafork.ir.expr import (
    Element as Element,
)
from metafork.ir.expr import (
    Expr as Expr,
)
from metafork.ir.expr import (
    FloatConst as FloatConst,
)
from metafork.ir.expr import (
    IntConst as IntConst,
)
from metafork.ir.expr import (
    Part as Part,
)
from metafork.ir.expr import (
    Unary as Unary,
)
from metafork.ir.expr import (
    Var as Var,
)
from metafork.ir.expr import (
    binary as binary,
)
from metafork.ir.expr import (
    subexpressions as subexpressions,
)
from metafork.ir.expr import (
    unary as unary,
)
from metafork.ir.expr import (
    walk_expression as walk_expression,
)
from metafork.ir.ir_strategies import IrStrategy
from metafork.ir.mapping import UNMAPPED, Mapping
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.node import Node


class Declare(Node, frozen=True):
    """``type name = value;`` (``value`` may be absent)."""

    name: str
    type: ScalarType
    value: Expr | None
    span: Span = NOWHERE


class Assign(Node, frozen=True):
    """``target op= value;``; ``op`` is empty for a plain assignment.  ``x++`` is ``Assign(x, "+", 1)``.

    Of an ``atomic`` one see ``metafork.ir.atomic_updates``, of an ``asynchronous`` one ``metafork.ir.kernel``.
    """

    target: Var | Element
    op: str
    value: Expr
    span: Span = NOWHERE
    atomic: bool = False
    asynchronous: bool = False


class If(Node, frozen=True):
    """``if (condition) then else otherwise``.

    In a kernel, ``widened`` says that both branches do the same, the first with several elements by an access.
    """

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    span: Span = NOWHERE
    widened: bool = False


ROLLED, WHOLE = 1, -1
"""What kernel text may ask of a loop, beside numbers of copies."""


class For(Node, frozen=True):
    """``for (init; condition; step) body``.

    Kernel text asks the compiler for so many copies of the body: ``ROLLED`` is one, ``WHOLE`` as many as there are
    iterations, which are a constant; 0 leaves it to the compiler.  Of a thread's loop in a program, so many iterations
    run side by side, of ``WHOLE`` all (``metafork.transform.unroll_and_jam``).
    """

    init: Declare | Assign | None
    condition: Expr | None
    step: Assign | None
    body: tuple[Stmt, ...]
    span: Span = NOWHERE
    copies: int = 0


class While(Node, frozen=True):
    """``while (condition) body``."""

    condition: Expr
    body: tuple[Stmt, ...]
    span: Span = NOWHERE


class Break(Node, frozen=True):
    """``break;`` out of the innermost serial loop."""

    span: Span = NOWHERE


class Continue(Node, frozen=True):
    """``continue;`` of the innermost serial loop."""

    span: Span = NOWHERE


class Slot(Struct, frozen=True):
    """A member of a structure of several types: its type, and the byte of the structure at which it begins."""

    type: ScalarType
    offset: int


class Array(Node, frozen=True):
    """An array: element type and extents, outermost first.  Extents are expressions in parameters.

    The first is ``ENDLESS`` where nobody knows it: no element is then known to exist that the program does not touch.
    Where it is one of structures in the host's text, the last extent is that of their ``members``.  One that is a
    ``scalar`` there is what a reduction adds up in: the host copies it there and back.
    Of a constant table of the file, ``in_global`` is why it is not in constant memory.
    Structures of several types are as many arrays at one place, each of which is a view of the ``whole``: its elements
    of other types are never touched.  ``slots`` are their members while they are one array still.
    ``small`` says that the host takes its elements, integers to the program, for numbers of a small floating type.
    What the host packs the rows of a ``table`` of pointers into is an array of them, as long as the longest.
    """

    aside: ClassVar[frozenset[str]] = frozenset(
        {"span", "members", "scalar", "in_global", "whole", "slots", "small", "table"}
    )

    name: str
    element: ScalarType
    extents: tuple[Expr, ...]
    span: Span = NOWHERE
    members: tuple[str, ...] = ()
    scalar: bool = False
    in_global: str = ""
    whole: str = ""
    slots: tuple[Slot, ...] = ()
    small: bool = False
    table: str = ""

    @property
    def endless(self) -> bool:
        """Whether it is not known how many elements there are."""
        return self.extents[:1] == (ENDLESS,)


ENDLESS = IntConst(1 << 40, ScalarType.LONG)
"""The first extent of an array of which none is known: beyond every index that a launch comes to."""


class Table(Struct, frozen=True):
    """A constant array of the file that every kernel holds in constant memory: extents are ``IntConst``s.

    ``values`` are its elements, row by row, each a constant of the element's type.
    """

    array: Array
    values: tuple[IntConst | FloatConst, ...]

    def __hash__(self) -> int:
        return hash(self.array)  # there may be many values


class BlockArray(Node, frozen=True):
    """The declaration, at block level, of an array that is the block's own shared memory."""

    array: Array
    span: Span = NOWHERE


class PrivateArray(Node, frozen=True):
    """The declaration, in thread code, of an array of constant extents that is the thread's own; unset at first."""

    array: Array
    span: Span = NOWHERE


class MetaFor(Node, frozen=True):
    """``meta_for (type var = 0; var < extent; var++)``.

    Of a thread loop a thread runs so many neighbouring iterations, its ``results`` (``metafork.transform.coarsen``).
    """

    var: str
    extent: Expr
    type: ScalarType = INT
    span: Span = NOWHERE
    results: int = 1


class Phase(Node, frozen=True):
    """One nest of thread loops, outermost first (the last is x), and the code of a thread."""

    threads: tuple[MetaFor, ...]
    body: tuple[Stmt, ...]
    span: Span = NOWHERE


class Barrier(Node, frozen=True):
    """``__syncthreads()``; stands in kernels only.

    Where it ``awaits``, each thread first waits for the asynchronous copies that it has begun.
    """

    span: Span = NOWHERE
    awaits: bool = False


Stmt = Declare | Assign | If | For | While | Break | Continue | BlockArray | Phase | PrivateArray | Barrier


class ParameterKind(Enum):
    """Data parameters size an array, program parameters do not (the paper's Definition 1)."""

    DATA = "data"
    PROGRAM = "program"


class Parameter(Node, frozen=True):
    """An integer scalar that is read and never written in the schedule and enters an extent, an index or a counter.

    ``of_serial_loop`` marks the variable of a serial loop around the schedule; those come last.
    """

    name: str
    type: ScalarType
    kind: ParameterKind
    of_serial_loop: bool = False
    span: Span = NOWHERE


class ValueArgument(Node, frozen=True):
    """A scalar that is only handed through to the kernel in its own type."""

    name: str
    type: ScalarType
    span: Span = NOWHERE


class Derived(Node, frozen=True):
    """An integer scalar computed before the schedule from parameters and earlier derived scalars."""

    name: str
    type: ScalarType
    definition: Expr
    span: Span = NOWHERE


class Program(Node, frozen=True):
    """One schedule with what surrounds it.

    ``name`` is ``<file stem>_k<number>``.  ``grid`` and the threads of every phase have equal length 1, 2 or 3,
    outermost first.  ``assumptions`` are the conditions of ``assert``s (and of ``--assume``), over parameters and
    derived scalars.  ``arrays`` are the global ones, in declaration order.  ``mapping`` says where what the program
    computes is kept; the other fields say what it computes.
    ``tables`` are arrays of the file that are in constant memory instead: nobody writes or moves them.
    ``exactness`` are conditions on parameters under which index arithmetic of unsigned and narrower types is exact
    (``metafork.analysis.exactness``); they are those of the input, and stay what they are in every version of it.
    ``static`` are the values that the text says kernels may be compiled for, by parameter, in the order given.
    ``blocked`` says that a ``meta_block`` clause gives the threads of a block, and not how much it computes.
    ``min_blocks`` is how many blocks a multiprocessor shall have registers for at once.  ``striding`` is the least
    number of threads of a block that walks its thread loops with fewer than they ask for
    (``metafork.transform.stride``), and ``None`` where it has just those.
    """

    name: str
    function: str
    parameters: tuple[Parameter, ...]
    values: tuple[ValueArgument, ...]
    derived: tuple[Derived, ...]
    assumptions: tuple[Expr, ...]
    arrays: tuple[Array, ...]
    grid: tuple[MetaFor, ...]
    body: tuple[Stmt, ...]
    mapping: Mapping = UNMAPPED
    exactness: tuple[Constraint, ...] = ()
    tables: tuple[Table, ...] = ()
    static: tuple[tuple[str, tuple[int, ...]], ...] = ()
    blocked: bool = False
    min_blocks: IntConst | None = None
    striding: int | None = None
    span: Span = NOWHERE

    aside: ClassVar[frozenset[str]] = frozenset({"span", "blocked"})

    def mapped(self, **fields: Any) -> Program:
        """Return the program with these fields of its mapping replaced."""
        return replace(self, mapping=replace(self.mapping, **fields))

    def array(self, name: str) -> Array:
        """Return the array of that name, whatever memory it is in; raises ``KeyError`` where there is none."""
        for array in (*self.arrays, *(table.array for table in self.tables)):
            if array.name == name:
                return array
        for stmt in walk_statements(self.body):
            if isinstance(stmt, BlockArray | PrivateArray) and stmt.array.name == name:
                return stmt.array
        raise KeyError(name)


class Version(Struct, frozen=True):
    """A program together with the IR strategies applied to it, in order: (G_C, lambda) of the paper's quintuple."""

    program: Program
    ir_strategies: tuple[IrStrategy, ...] = ()


def walk_statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Return every statement of a body and everything below it, in textual order (a ``For``'s init and step too)."""
    found: list[Stmt] = []
    _walk_into(body, found)
    return found


def _walk_into(body: tuple[Stmt, ...], found: list[Stmt]) -> None:
    for stmt in body:
        found.append(stmt)
        match stmt:
            case Assign() | Declare():  # most are
                pass
            case If(then=then, otherwise=otherwise):
                _walk_into(then, found)
                _walk_into(otherwise, found)
            case For(init=init, step=step, body=inner):
                if init is not None:
                    found.append(init)
                _walk_into(inner, found)
                if step is not None:
                    found.append(step)
            case While(body=inner) | Phase(body=inner):
                _walk_into(inner, found)
            case _:
                pass


def parts_of(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Yield every expression of a body with everything below it, statement by statement in textual order."""
    for stmt in walk_statements(body):
        for expr in expressions_of(stmt):
            yield from walk_expression(expr)


def expressions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions that a statement itself evaluates; not those of statements below it.

    The target of an ``Assign`` is among them (first); the extents of arrays and of thread loops are too.
    """
    match stmt:
        case Declare(value=value):
            return () if value is None else (value,)
        case Assign(target=target, value=value):
            return (target, value)
        case If(condition=condition) | While(condition=condition):
            return (condition,)
        case For(condition=condition):
            return () if condition is None else (condition,)
        case BlockArray(array=array) | PrivateArray(array=array):
            return array.extents
        case Phase(threads=threads):
            return tuple(loop.extent for loop in threads)
        case Break() | Continue() | Barrier():
            return ()
