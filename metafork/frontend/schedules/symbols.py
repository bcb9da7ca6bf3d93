"""What the names of a schedule stand for: scalars, arrays and parts of them, values of parameters, names of no use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span


class Origin(Enum):
    """Where a scalar lives: outside the schedule, or at which level of its nest it was declared."""

    HOST = "outside the schedule"
    GRID_INDEX = "a grid loop"
    BLOCK = "block level"
    THREAD_INDEX = "a thread loop"
    THREAD = "a thread"


class ScalarSymbol(Struct, frozen=True):
    """A scalar variable as a schedule sees it; ``name`` is the unique name that the program uses.

    ``number`` is the value of a ``const`` integer that has one for good.  Of a union, which is its bits as an integer,
    ``members`` are what these are taken for.
    """

    name: str
    type: ScalarType
    origin: Origin
    span: Span
    const: bool = False
    number: int | None = None
    members: Mapping[str, ScalarType] | None = None


class ArraySymbol(Struct, frozen=True):
    """An array as a schedule sees it; ``of_block`` where it is the block's own, ``of_thread`` where it is a thread's.

    An argument of a function may be a part of an array: ``prefix`` are its leading indices (``a[i]``), ``offset`` is
    what is added to the first one that is left (``a + i``).  Of an array of structures, the last extent is that of
    their ``members``; one that is a ``single`` structure has one element, without an index in the text.  What is a
    ``pointer`` in C, a parameter or ``a + i``, has not the size of the array; ``given`` is the host's integer that says
    whether it is not null.
    """

    array: ir.Array
    const: bool = False
    of_block: bool = False
    prefix: tuple[ir.Expr, ...] = ()
    offset: ir.Expr | None = None
    of_thread: bool = False
    members: tuple[str, ...] = ()
    single: bool = False
    pointer: bool = False
    given: str = ""

    @property
    def whole(self) -> bool:
        """Whether this is one structure."""
        return bool(self.members) and (self.single or len(self.extents) == 1)

    def alike(self, other: ArraySymbol) -> bool:
        """Say whether these are structures of one type."""
        mine, theirs = ((one.members, one.array.element, one.array.slots) for one in (self, other))
        return mine == theirs

    def member(self, position: int, span: Span, further: ir.Expr | None = None) -> ir.Element:
        """Return a member of the one structure that this is, or one so much ``further`` of the array that it is in."""
        index: ir.Expr = ir.IntConst(position)
        if further is not None:
            index = ir.binary("+", index, further, further.span)
        own = (ir.IntConst(0), index) if len(self.extents) == 2 else (index,)
        slots = self.array.slots
        type_ = slots[position].type if slots else self.array.element
        return ir.Element(self.array.name, self.indices(own), type_, span)

    @property
    def extents(self) -> tuple[ir.Expr, ...]:
        """The extents of the part; the first one is that of the array where it has an offset."""
        return self.array.extents[len(self.prefix) :]

    def moved(self, by: ir.Expr) -> ArraySymbol:
        """Return the part that begins so many elements, or rows, further on: ``a + by``."""
        return replace(self, offset=self._index(by), pointer=True)

    def part(self, index: ir.Expr) -> ArraySymbol:
        """Return the part at an index: ``a[index]``."""
        return replace(self, prefix=(*self.prefix, self._index(index)), offset=None, pointer=False)

    def indices(self, own: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """Return the indices in the array itself of an element of the part."""
        return (*self.prefix, self._index(own[0]), *own[1:])

    def _index(self, index: ir.Expr) -> ir.Expr:
        return index if self.offset is None else ir.binary("+", self.offset, index, index.span)


class ValueSymbol(Struct, frozen=True):
    """A parameter of a function that is put in line, never written there: the argument, in the parameter's type."""

    value: ir.Expr
    span: Span


class PointedSymbol(Struct, frozen=True):
    """A parameter of a function that is put in line and points to a scalar of the caller."""

    scalar: ScalarSymbol
    span: Span
    const: bool = False


class UnusableSymbol(Struct, frozen=True):
    """A declared name that no schedule can use: the code that says why, a reason and a way out of its own, if any.

    ``at`` is the place where it is mended, if that is not where it is used.
    """

    code: str
    message: str
    span: Span
    reason: str | None = None
    way_out: str | None = None
    at: Span | None = None


Symbol = ScalarSymbol | ArraySymbol | ValueSymbol | PointedSymbol | UnusableSymbol
