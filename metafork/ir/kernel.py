"""The kernel form: what one thread of the device runs, for CUDA text and for LLVM IR alike (DESIGN section 3).

``metafork.lowering.lowering`` makes a ``Kernel`` of a ``Program``; ``metafork.printing.cuda`` prints it and
``metafork.llvm.llvm_ir`` lowers it.  Expressions and statements are those of ``metafork.ir.program``, with these
differences:

- no ``Phase``, no ``BlockArray``: thread variables are ordinary scalars, and ``Barrier`` stands where threads meet;
- an ``Element`` names a ``Memory`` of the kernel and has exactly one index, the linear offset in elements;
- ``Call(SHUFFLE, (value, lane))`` is the value that a lane of the warp, modulo 32, hands in at the same place; all 32
  lanes call it together, and ``value`` has 32 or 64 bits;
- an ``Assign`` of an element of global memory to one of shared memory may be ``asynchronous``: it is begun where it
  stands and takes effect by the next ``Barrier`` of its thread that ``awaits``, where hardware can do that, else at
  once.  Until then nobody writes what is read or touches what is written;
- ``Call(OFFSET, (index,))`` is an index as ``long long``, or as ``int`` where the offset that it is a part of fits; so
  is a scalar that is declared with a sum of such;
- ``Call(QUOTIENT, (place, length))`` is the quotient of a thread's linear place in its block by at least 1;
- ``Call(ALIGNED, ())`` is 1 where every global memory begins at a multiple of 16 bytes (it may be 0 even so), which the
  ``part`` of an ``Element`` relies on;
- ``Call(WARPS, ())`` is 1 where the 32 lanes of a warp hand on values (it may be 0 even so);
- the built-in variables are ``Var``s of type ``unsigned int``: ``threadIdx.x``, ``blockIdx.y``, ``blockDim.z``,
  ``gridDim.x`` and so on.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.visitor import Body, Rewriter

SHUFFLE = "METAFORK_SHUFFLE"
"""The function of ``metafork/device.h`` that exchanges values within a warp."""

OFFSET = "METAFORK_OFFSET"
"""The function of ``metafork/device.h`` that gives an index the type that offsets are computed in."""

QUOTIENT = "METAFORK_QUOTIENT"
"""The function of ``metafork/device.h`` that divides the linear place of a thread, which is below 1,024."""

ALIGNED = "METAFORK_ALIGNED"
"""The function of ``metafork/device.h`` that says whether memories begin where vectors may."""

WARPS = "METAFORK_WARPS"
"""The function of ``metafork/device.h`` that says whether the lanes of a warp hand on values."""

VECTOR_BYTES = 16
"""The most that one access of a thread moves."""


VECTORS = frozenset(
    {
        ScalarType.FLOAT,
        ScalarType.INT,
        ScalarType.UNSIGNED_INT,
        ScalarType.DOUBLE,
        ScalarType.LONG,
        ScalarType.UNSIGNED_LONG,
        ScalarType.LONG_LONG,
        ScalarType.UNSIGNED_LONG_LONG,
    }
)
"""The types that ``metafork/device.h`` has vectors of."""

ASYNCHRONOUS_BYTES = (4, 8)
"""Sizes of elements that hardware copies from global to shared memory asynchronously."""


def builtin(name: str) -> ir.Var:
    """Return a built-in variable of the device: ``threadIdx.x``."""
    return ir.Var(name, ScalarType.UNSIGNED_INT)


class Space(Enum):
    """Where a memory lives."""

    GLOBAL = "global"
    SHARED = "shared"
    PRIVATE = "private"
    CONSTANT = "constant"


class Memory(Struct, frozen=True):
    """One addressable memory of a kernel.

    ``GLOBAL``: a pointer argument; ``read_only`` where no statement of the kernel writes it, and no two global
    memories overlap (the dispatcher sees to that).  ``SHARED``: a part of the dynamic shared memory that starts at byte
    ``offset``, an expression in the kernel's scalar arguments, aligned for ``element``.  ``PRIVATE``: an array of the
    thread; ``extent`` is then an ``IntConst``.  ``CONSTANT``: a table of the file, with its ``values``.  ``extent``
    counts elements.
    """

    name: str
    space: Space
    element: ScalarType
    extent: ir.Expr
    offset: ir.Expr | None = None
    read_only: bool = False
    values: tuple[ir.IntConst | ir.FloatConst, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.space, self.extent))  # there may be many values


class Argument(Struct, frozen=True):
    """A scalar argument of a kernel."""

    name: str
    type: ScalarType


class Kernel(Struct, frozen=True):
    """A kernel and how it is launched.

    ``scalars`` come first in the signature, then the pointers of the ``GLOBAL`` memories, in order.  ``grid`` and
    ``block`` are (x, y, z) extents, padded with 1; ``shared_bytes`` is the dynamic shared memory of a block.  These
    expressions, and the scalars that are no parameter of the program, are computed on the host: ``host_scalars`` are
    evaluated in order before a launch (in 64-bit arithmetic), and everything else may use them.
    A grid larger than the hardware's is walked with a stride by the kernel itself.  Where ``widest`` is given, a block
    of this kernel walks its work with a stride of ``blockDim.x``: ``block`` is the least that it is counted with, and
    a launch may have up to ``widest`` threads in x.  ``told`` says that the text tells the compiler the extents of the
    block that are constants.  ``spans`` are numbers, computed on the host: where all are below 2**31, each offset made
    of ``OFFSET`` fits in ``int``.  ``line`` is that of the schedule in the input.
    ``bounds`` are the threads that a block has at most, and the blocks that a multiprocessor shall have registers for.
    """

    name: str
    scalars: tuple[Argument, ...]
    memories: tuple[Memory, ...]
    body: tuple[ir.Stmt, ...]
    grid: tuple[ir.Expr, ir.Expr, ir.Expr]
    block: tuple[ir.Expr, ir.Expr, ir.Expr]
    shared_bytes: ir.Expr
    host_scalars: tuple[ir.Derived, ...] = ()
    widest: ir.Expr | None = None
    told: bool = False
    spans: tuple[ir.Expr, ...] = ()
    line: int = 1
    bounds: tuple[int, int] | None = None

    @property
    def aligned(self) -> bool:
        """Whether the kernel asks where its memories begin."""
        return any(isinstance(part, ir.Call) and part.name == ALIGNED for part in ir.parts_of(self.body))

    @property
    def multiples(self) -> dict[str, int]:
        """The scalars that the kernel asks to be multiples of a number where it asks for that, and of which."""
        found: dict[str, int] = {}
        for stmt in ir.walk_statements(self.body):
            if isinstance(stmt, ir.Declare) and stmt.value is not None:
                parts = list(ir.walk_expression(stmt.value))
                if any(isinstance(part, ir.Call) and part.name == ALIGNED for part in parts):
                    asked = [(one.left, one.right) for one in parts if isinstance(one, ir.Binary) and one.op == "%"]
                    for scalar, number in asked:
                        if isinstance(scalar, ir.Var) and isinstance(number, ir.IntConst):
                            found[scalar.name] = max(number.value, found.get(scalar.name, 1))
        return found

    def memory(self, name: str) -> Memory:
        """Return the memory of that name; raises ``KeyError`` where there is none."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise KeyError(name)


def without_warps(body: Body) -> Body:
    """Return code in which no lane hands on a value where ``WARPS`` was asked."""
    return _WithoutWarps().body(body)


class _WithoutWarps(Rewriter):
    def branch(self, node: ir.If) -> ir.Stmt | Body:
        asked = any(isinstance(one, ir.Call) and one.name == WARPS for one in ir.walk_expression(node.condition))
        return self.body(node.otherwise) if asked else super().branch(node)


def made_of_offsets(value: ir.Expr | None) -> bool:
    """Say whether a value is a sum or a product with an ``OFFSET``: a scalar of it has the type of offsets."""
    match value:
        case ir.Call(name=name):
            return name == OFFSET
        case ir.Binary(left=left, right=right, type=ScalarType.LONG_LONG):
            return made_of_offsets(left) or made_of_offsets(right)
        case _:
            return False
