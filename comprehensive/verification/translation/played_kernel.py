"""A kernel played through at one point with terms for data, as ``played`` plays a program.

What lowering adds to a program is in it: tiles in shared memory and their copies, results that a thread computes
together, vectors, elements in registers, what is left over at the ends.  Threads of a block run one after the other
between barriers, forwards or backwards; memories are checked against their extents, vectors against their alignment,
and the shared memory of a block against its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from metafork.analysis.analyses import WARP_SIZE
from metafork.comprehensive.verification.translation.played import (
    BreakError,
    CannotPlayError,
    Cell,
    ContinueError,
    OutsideError,
    Player,
    Terms,
    Value,
    initial,
)
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.kernel import ALIGNED, OFFSET, QUOTIENT, SHUFFLE, WARPS, Kernel, Memory, Space
from metafork.ir.polynomial_code import LONG

MOST_KERNEL_STEPS = 120_000
"""Statements that all threads run at one point."""

SHARED = " shared"
"""The cells of a block's shared memory, by bytes."""


class Manner(Struct, frozen=True):
    """How a kernel is launched and scheduled.

    ``backward``: blocks and threads run in the reverse order, and asynchronous copies take effect when they are
    awaited; ``walks``: the grid has one block, which does the work of all; ``aligned``: memories begin where vectors
    may.
    """

    backward: bool = False
    walks: bool = False
    aligned: bool = True

    def __str__(self) -> str:
        """Return what is said of it behind a refutation."""
        words = [
            *(["backwards"] if self.backward else []),
            *(["in one block"] if self.walks else []),
            *([] if self.aligned else ["without vectors"]),
        ]
        return f" ({', '.join(words)})" if words else ""


def manners_of(kernel: Kernel) -> tuple[Manner, ...]:
    """Return the manners in which a kernel is to be played: its results are the same in all of them."""
    both = (Manner(), Manner(backward=True, walks=True))
    return (*both, Manner(aligned=False)) if kernel.aligned else both


def statements_of(kernel: Kernel) -> set[int]:
    """Return the statements of a kernel, by ``id``, that assign something outside of heads of loops."""
    every = ir.walk_statements(kernel.body)
    heads = {id(head) for stmt in every if isinstance(stmt, ir.For) for head in (stmt.init, stmt.step)}
    return {id(stmt) for stmt in every if isinstance(stmt, ir.Declare | ir.Assign)} - heads


def play_kernel(
    kernel: Kernel, program: ir.Program, point: Mapping[str, int], terms: Terms, manner: Manner, left: set[int]
) -> dict[Cell, Value]:
    """Return what a kernel of a program leaves in its global arrays; elements that it never wrote are left out.

    Statements that run go from ``left``.  Raises ``CannotPlayError`` and ``OutsideError``.
    """
    try:
        return _KernelPlayer(kernel, program, terms, manner, left).run(point)
    except NoValueError as error:
        raise CannotPlayError(f"an integer expression has no value: {error}") from error


class _Thread(Struct):
    """A thread of the block that runs: its scalars, where it stands, what it ``handed`` in, and what it has ``seen``.

    What it saw is what all threads of its warp had handed in when they met: some may have gone on since.
    """

    values: dict[str, Value]
    code: Iterator[ir.Stmt]
    waits: ir.Stmt | None = None
    done: bool = False
    memory: dict[Cell, Value] = {}
    pending: list[tuple[Cell, Cell]] = []
    handed: dict[int, Value] = {}
    seen: Sequence[dict[int, Value]] = ()
    warp: Sequence[_Thread] = ()


class _KernelPlayer(Player):
    def __init__(self, kernel: Kernel, program: ir.Program, terms: Terms, manner: Manner, left: set[int]) -> None:
        super().__init__(terms, MOST_KERNEL_STEPS)
        self._left = left
        self._kernel, self._program, self._manner = kernel, program, manner
        self._memories: dict[str, tuple[Memory, int, int]] = {}
        self._shared: dict[Cell, Value] = {}
        self._meeting = _meeting(kernel.body)
        self._thread: _Thread

    def run(self, point: Mapping[str, int]) -> dict[Cell, Value]:
        kernel, program = self._kernel, self._program
        scalars = {parameter.name: point[parameter.name] for parameter in program.parameters}
        for derived in kernel.host_scalars:
            scalars[derived.name] = converted(integer_value(derived.definition, scalars), derived.type)
        self._extents = {
            array.name: tuple(integer_value(extent, scalars) for extent in array.extents) for array in program.arrays
        }
        self._shared_bytes = integer_value(kernel.shared_bytes, scalars)
        for memory in kernel.memories:
            offset = 0 if memory.offset is None else integer_value(memory.offset, scalars)
            self._memories[memory.name] = memory, integer_value(memory.extent, scalars), offset
            for place, one in enumerate(memory.values):
                self._memory[memory.name, (place,)] = self._eval(one)
        values: dict[str, Value] = {
            argument.name: scalars[argument.name] for argument in kernel.scalars if argument.name in scalars
        }
        values |= {one.name: self._terms.of("value", one.name) for one in program.values}
        grid = [integer_value(extent, scalars) for extent in kernel.grid]
        block = [integer_value(extent, scalars) for extent in kernel.block]
        if self._manner.walks:
            grid = [min(one, 1) for one in grid]
        values |= {f"gridDim.{axis}": count for axis, count in zip("xyz", grid, strict=True)}
        values |= {f"blockDim.{axis}": count for axis, count in zip("xyz", block, strict=True)}
        for z, y, x in self._ordered(product(*(range(count) for count in reversed(grid)))):
            self._block(values | {"blockIdx.x": x, "blockIdx.y": y, "blockIdx.z": z}, block)
        return {
            (name, self._indices(name, at[0])): value
            for (name, at), value in self._memory.items()
            if name in self._extents
        }

    def _indices(self, name: str, place: int) -> tuple[int, ...]:
        """Return the indices of the element of a global array that lies at an offset."""
        result: list[int] = []
        for extent in self._extents[name][:0:-1]:
            place, last = divmod(place, extent)
            result.append(last)
        return (place, *reversed(result))

    def _before(self, cell: Cell) -> Value:
        """Return an element of global memory."""
        name, (place,) = cell
        return self._memory[cell] if cell in self._memory else initial(self._terms, (name, self._indices(name, place)))

    def _ordered(self, places: Iterator[tuple[int, ...]]) -> list[tuple[int, ...]]:
        every = list(places)
        return every[::-1] if self._manner.backward else every

    def _block(self, values: dict[str, Value], extents: Sequence[int]) -> None:
        self._shared = {}
        threads = [
            _Thread(values | {"threadIdx.x": x, "threadIdx.y": y, "threadIdx.z": z}, iter(()))
            for z, y, x in product(*(range(count) for count in reversed(extents)))
        ]
        for place, thread in enumerate(threads):
            thread.code = self._walk(self._kernel.body)
            thread.warp = threads[place // WARP_SIZE * WARP_SIZE :][:WARP_SIZE]
        left = threads[::-1] if self._manner.backward else threads
        while left:
            for thread in left:
                if thread.waits is None:
                    self._resume(thread)
            left = [thread for thread in left if not thread.done]
            if left and not self._meet(left):
                raise OutsideError("some threads of a block wait where others do not come")

    def _resume(self, thread: _Thread) -> None:
        self._thread, self._values = thread, thread.values
        thread.waits = next(thread.code, None)
        thread.values, thread.done = self._values, thread.waits is None

    def _meet(self, threads: Sequence[_Thread]) -> bool:
        """Let those go on that all they wait for have come to; say whether there are any.

        ``threads`` are those that have not ended: as on the device, nobody waits for others.
        """
        first = threads[0].waits
        if isinstance(first, ir.Barrier) and all(one.waits is first for one in threads):
            for one in threads:
                one.waits = None
                if first.awaits:
                    self._await(one)
            return True
        free = [
            one
            for one in threads
            if not isinstance(one.waits, ir.Barrier) and all(other.waits is one.waits for other in one.warp)
        ]
        for one in free:
            one.seen = [other.handed for other in one.warp]
        for one in free:
            one.waits = None
        return bool(free)

    def _await(self, thread: _Thread) -> None:
        for target, source in thread.pending:
            self._shared[target] = self._before(source)
        thread.pending = []

    # --- code in which threads meet ------------------------------------------------------------------------------

    def _walk(self, body: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
        """Run a body; where its thread waits for others, give the statement there."""
        outer = self._enter()
        declared: set[str] = set()
        try:
            for stmt in body:
                if id(stmt) in self._meeting:
                    yield from self._met(stmt)
                else:
                    self._step(stmt)
                if isinstance(stmt, ir.Declare):
                    declared.add(stmt.name)
        except (BreakError, ContinueError):
            self._leave(outer, declared)
            raise
        self._leave(outer, declared)

    def _met(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        match stmt:
            case ir.Barrier():
                yield stmt
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                yield from self._walk(then if self._number(condition) else otherwise)
            case ir.For(init=init, condition=condition, step=step, body=body):
                outer = self._enter()
                if init is not None:
                    self._step(init)
                yield from self._looped(condition or ir.IntConst(1), body, step)
                self._leave(outer, {init.name} if isinstance(init, ir.Declare) else set())
            case ir.While(condition=condition, body=body):
                yield from self._looped(condition, body, None)
            case _:
                thread = self._thread
                thread.handed = {id(one): self._eval(one.arguments[0]) for one in _shuffles(stmt)}
                yield stmt
                self._step(stmt)

    def _looped(self, condition: ir.Expr, body: Sequence[ir.Stmt], step: ir.Assign | None) -> Iterator[ir.Stmt]:
        while self._number(condition):
            self._count()
            try:
                yield from self._walk(body)
            except ContinueError:
                pass
            except BreakError:
                return
            if step is not None:
                self._assign(step)

    # --- what a kernel has and a program has not -----------------------------------------------------------------

    def _step(self, stmt: ir.Stmt) -> None:
        self._left.discard(id(stmt))
        super()._step(stmt)

    def _assign(self, stmt: ir.Assign) -> None:
        if stmt.asynchronous and self._manner.backward:
            assert isinstance(stmt.target, ir.Element)
            assert isinstance(stmt.value, ir.Element)
            self._thread.pending.append((self._cell(stmt.target), self._cell(stmt.value)))
        else:
            super()._assign(stmt)

    def _called(self, call: ir.Call) -> Value:
        match call:
            case ir.Call(name=name, arguments=(index,)) if name == OFFSET:
                return converted(self._number(index), LONG)
            case ir.Call(name=name, arguments=(place, length)) if name == QUOTIENT:
                return self._number(place) // self._number(length)
            case ir.Call(name=name) if name == ALIGNED:
                return int(self._manner.aligned)
            case ir.Call(name=name) if name == WARPS:
                return 1
            case ir.Call(name=name, arguments=(_, lane)) if name == SHUFFLE:
                number = self._number(lane) % WARP_SIZE
                if number >= len(self._thread.seen):
                    raise OutsideError(f"lane {number} of a warp hands in nothing")
                return self._thread.seen[number][id(call)]
            case _:
                return super()._called(call)

    def _place(self, element: ir.Element) -> tuple[dict[Cell, Value], Cell]:
        memory, extent, offset = self._memories[element.array]
        place = self._number(element.indices[0])
        part = element.part
        first, lanes = (place, 1) if part is None else (place - part.place, part.lanes)
        if first < 0 or first + lanes > extent:
            raise OutsideError(f"{element.array}[{place}] lies outside of its {extent} elements")
        size = element.type.size
        begins = memory.space is not Space.GLOBAL or part is None or self._manner.aligned
        if not begins or (offset + first * size) % (lanes * size):
            raise OutsideError(f"{lanes} elements from {element.array}[{first}] on are no aligned vector")
        match memory.space:
            case Space.SHARED:
                byte = offset + place * size
                if byte + size > self._shared_bytes:
                    raise OutsideError(f"{element.array}[{place}] lies outside of the block's shared memory")
                return self._shared, (SHARED, (byte,))
            case Space.PRIVATE:
                return self._thread.memory, (element.array, (place,))
            case _:
                return self._memory, (element.array, (place,))

    def _cell(self, element: ir.Element) -> Cell:
        return self._place(element)[1]

    def _read(self, element: ir.Element) -> Value:
        memory, cell = self._place(element)
        if memory is self._memory:
            return self._before(cell)
        return memory[cell] if cell in memory else self._terms.of("uninitialised")

    def _write(self, element: ir.Element, value: Value) -> None:
        memory, cell = self._place(element)
        memory[cell] = value


def _shuffles(stmt: ir.Stmt) -> list[ir.Call]:
    return [
        part
        for expr in ir.expressions_of(stmt)
        for part in ir.walk_expression(expr)
        if isinstance(part, ir.Call) and part.name == SHUFFLE
    ]


def _meeting(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """Return the statements, by ``id``, in which threads wait for each other."""
    return frozenset(
        id(stmt)
        for stmt in ir.walk_statements(body)
        if any(isinstance(one, ir.Barrier) or _shuffles(one) for one in ir.walk_statements((stmt,)))
    )
