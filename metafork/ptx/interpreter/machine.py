"""The launch: compiles the functions of a module once, runs its blocks in batches, keeps threads together.

Code is cut into *segments* at labels, branches, barriers and returns.  Every thread has a segment number; the threads
with the least number run it together.  That is the reconvergence rule: code that is laid out in the order of its
control flow joins at the earliest place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from metafork.ptx.interpreter.frame import WARP, Batch, Frame, ParameterSpace
from metafork.ptx.interpreter.memory import AccessError, Arena, GlobalMemory
from metafork.ptx.interpreter.operands import Operands, register_type
from metafork.ptx.interpreter.steps import Compiler, Step
from metafork.ptx.interpreter.variables import (
    FunctionLayout,
    declared_size,
    layout_function,
    layout_module,
    pack_argument,
)
from metafork.ptx.text.flatten import FlatBody, flatten
from metafork.ptx.text.source import PtxError, Span
from metafork.ptx.text.syntax import SPACES, Function, Instruction, Module, Name

Array: TypeAlias = npt.NDArray[Any]
Dimensions: TypeAlias = "tuple[int, int, int]"

BATCH_SLOTS = 1 << 15
"""Lanes that run together at most, in whole blocks."""

_CUTS = frozenset({"bra", "brx", "ret", "exit", "bar", "barrier", "call", "trap"})


class Launch(Struct, frozen=True):
    """What a launch did.

    Attributes:
        executed: opcode → instructions, counted once for each warp that took part.
        lanes: opcode with its state space (``ld.global``) → lanes that executed it, in all.
    """

    executed: Mapping[str, int]
    lanes: Mapping[str, int]


class Code(Struct, frozen=True):
    """A compiled function: segment bounds, the step of each instruction, and the layout of its memory."""

    body: FlatBody
    bounds: tuple[tuple[int, int], ...]
    segment_at: Mapping[int, int]
    steps: tuple[Step, ...]
    guards: tuple[Callable[[Frame], Array] | None, ...]
    layout: FunctionLayout


def run_kernel(
    module: Module,
    name: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[Any],
    *,
    memory: GlobalMemory,
    shared_bytes: int = 0,
    limit: int = 10_000_000,
    order: Random | None = None,
) -> Launch:
    """Run a kernel to its end.

    Args:
        module: the PTX.
        name: the kernel's name.
        grid: blocks along x, y, z (missing ones are 1).
        block: threads of a block along x, y, z.
        args: one value a parameter: integers (addresses too), floats, NumPy scalars, or ``bytes`` for a struct.
        memory: global memory, changed in place; the module's variables are allocated there at the first launch.
        shared_bytes: dynamic shared memory of each block, in bytes, exactly as much as may be touched.
        limit: the most segments run, against endless loops.
        order: chooses among the places that threads stand at, so that they part and meet anywhere; without it the
            least place runs first.

    Raises:
        KeyError: there is no such kernel.
        ValueError: the arguments or dimensions do not fit.
        PtxError: the code cannot be interpreted, or does what it must not, with line and column.
    """
    grid3, block3 = _dimensions(grid), _dimensions(block)
    threads = block3[0] * block3[1] * block3[2]
    if threads > 1024:
        raise ValueError(f"a block has at most 1024 threads, not {threads}")
    machine = _Machine(module, memory, shared_bytes, limit, order)
    kernel = module.function(name)
    if len(args) != len(kernel.parameters):
        raise ValueError(f"{name} takes {len(kernel.parameters)} arguments, not {len(args)}")
    parameters = {
        declaration.declarators[0].name: ParameterSpace(pack_argument(declaration, value))
        for declaration, value in zip(kernel.parameters, args, strict=True)
    }
    blocks = grid3[0] * grid3[1] * grid3[2]
    together = max(1, BATCH_SLOTS // (-(-threads // WARP) * WARP))
    with np.errstate(all="ignore"):
        for first in range(0, blocks, together):
            machine.run_batch(kernel, parameters, grid3, block3, range(first, min(first + together, blocks)))
    return Launch(machine.executed, machine.lanes)


def _dimensions(sizes: Sequence[int]) -> tuple[int, int, int]:
    padded = (*sizes, 1, 1)[:3]
    if len(sizes) > 3 or any(size < 1 for size in padded):
        raise ValueError(f"{tuple(sizes)} are no dimensions")
    return (padded[0], padded[1], padded[2])


class _Machine:
    def __init__(
        self, module: Module, memory: GlobalMemory, shared_bytes: int, limit: int, order: Random | None
    ) -> None:
        self.module = module
        self.order = order
        self.memory = memory
        self.limit = limit
        self.executed: dict[str, int] = {}
        self.lanes: dict[str, int] = {}
        self.layout = layout_module(module, memory)
        self.shared_size = self.layout.shared_size + shared_bytes
        self.dynamic_bytes = shared_bytes
        self._codes: dict[str, Code] = {}

    # --- compiling ----------------------------------------------------------------------------------------------

    def code(self, function: Function) -> Code:
        """Return a function compiled; the work is done at the first use."""
        known = self._codes.get(function.name)
        if known is not None:
            return known
        body = flatten(function)
        layout = layout_function(body)
        operands = Operands(body, self.layout.symbols, self.layout.shared_of(function.name), layout.local_offsets)
        compiler = Compiler(self, operands)
        steps = tuple(compiler.step(instruction) for instruction in body.instructions)
        guards = tuple(
            None if i.guard is None else _guard(operands.read(i.guard.name, "pred", i), negated=i.guard.negated)
            for i in body.instructions
        )
        size = len(body.instructions)
        starts = {0, *body.labels.values()}
        starts.update(k + 1 for k, i in enumerate(body.instructions) if i.opcode in _CUTS)
        starts.update(k for k, i in enumerate(body.instructions) if i.opcode in ("bar", "barrier"))
        ordered = [*sorted(start for start in starts if start < size), size]
        bounds = tuple(itertools.pairwise(ordered))
        segment_at = {start: index for index, start in enumerate(ordered)}
        code = Code(body, bounds, segment_at, steps, guards, layout)
        self._codes[function.name] = code
        return code

    # --- running ------------------------------------------------------------------------------------------------

    def run_batch(
        self,
        kernel: Function,
        parameters: dict[str, ParameterSpace],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        blocks: range,
    ) -> None:
        """Run some blocks of the grid to their end."""
        threads = block[0] * block[1] * block[2]
        row = -(-threads // WARP) * WARP
        slots = row * len(blocks)
        linear = np.tile(np.arange(row), len(blocks))
        number = np.repeat(np.arange(blocks.start, blocks.stop), row)
        lane = (linear % WARP).astype(np.uint32)
        one = np.uint32(1)
        specials: dict[str, Array] = {
            "%tid.x": linear % block[0], "%tid.y": linear // block[0] % block[1],
            "%tid.z": linear // (block[0] * block[1]), "%ctaid.x": number % grid[0],
            "%ctaid.y": number // grid[0] % grid[1], "%ctaid.z": number // (grid[0] * grid[1]),
            "%laneid": lane, "%warpid": linear // WARP, "%nwarpid": np.array([row // WARP]),
            "%lanemask_eq": one << lane, "%lanemask_lt": (one << lane) - one, "%lanemask_le": (one << lane) * 2 - one,
            "%lanemask_gt": ~((one << lane) * 2 - one), "%lanemask_ge": ~((one << lane) - one),
            "%gridid": np.array([0]), "%smid": np.array([0]), "%nsmid": np.array([1]),
            "%dynamic_smem_size": np.array([self.dynamic_bytes]), "%total_smem_size": np.array([self.shared_size]),
        }  # fmt: skip
        for axis, extent, count in zip("xyz", block, grid, strict=True):
            specials[f"%ntid.{axis}"] = np.array([extent])
            specials[f"%nctaid.{axis}"] = np.array([count])
        batch = Batch(
            slots,
            number - blocks.start,
            specials,
            linear >= threads,
            self.memory,
            Arena("shared", len(blocks), self.shared_size),
            self.layout.shared,
        )
        frame = self.frame(self.code(kernel), batch, parameters)
        self.run(self.code(kernel), frame, ~batch.exited)

    def frame(self, code: Code, batch: Batch, parameters: dict[str, ParameterSpace]) -> Frame:
        """Return a fresh activation of a function."""
        registers = {name: np.zeros(batch.slots, register_type(kind)) for name, kind in code.body.registers.items()}
        spaces = dict(parameters)
        for name, variable in code.body.variables.items():
            if variable.declaration.space == "param":
                size = declared_size(variable.declaration, variable.declarator)
                spaces[name] = ParameterSpace(np.zeros((batch.slots, size), np.uint8))
        local = Arena("local", batch.slots, code.layout.local_size)
        return Frame(batch, registers, spaces, local, code.layout.local_offsets, np.zeros(batch.slots, np.bool_))

    def call(self, frame: Frame, mask: Array, name: str, arguments: list[ParameterSpace], span: Span) -> list[Array]:
        """Run a device function for the lanes in ``mask``; return its results' bytes.

        Raises:
            PtxError: the module has no such function, or the arguments do not fit.
        """
        try:
            function = self.module.function(name)
        except KeyError:
            raise PtxError(f"the interpreter has no body of {name}", span) from None
        if len(arguments) != len(function.parameters):
            raise PtxError(f"{name} takes {len(function.parameters)} arguments, not {len(arguments)}", span)
        code = self.code(function)
        parameters = {
            d.declarators[0].name: argument for d, argument in zip(function.parameters, arguments, strict=True)
        }
        for declaration in function.results:
            size = declared_size(declaration, declaration.declarators[0])
            parameters[declaration.declarators[0].name] = ParameterSpace(np.zeros((frame.slots, size), np.uint8))
        inner = self.frame(code, frame.batch, parameters)
        self.run(code, inner, mask)
        return [inner.parameters[d.declarators[0].name].data for d in function.results]

    def run(self, code: Code, frame: Frame, mask: Array) -> None:
        """Run a function for the lanes in ``mask`` until all have returned or ended."""
        end = len(code.bounds)
        at = np.where(mask, 0, end)
        waiting = np.zeros(frame.slots, np.bool_)
        instructions = code.body.instructions
        exited = frame.batch.exited
        while True:
            at[exited] = end
            ready = (at < end) & ~waiting
            if not ready.any():
                if not waiting.any():
                    return
                self._release(code, frame, at, waiting, stuck=True)
                continue
            self.limit -= 1
            if self.limit < 0:
                raise PtxError("the kernel runs longer than the limit", instructions[0].span)
            segment = int(at[ready].min()) if self.order is None else self.order.choice(np.unique(at[ready]).tolist())
            active = ready & (at == segment)
            start, stop = code.bounds[segment]
            for position in range(start, stop):
                self._step(code, frame, position, active)
            last = instructions[stop - 1]
            taken = self._taken(code, frame, stop - 1, active)
            at[active] = segment + 1
            if last.opcode == "bra":
                target = last.operands[0]
                assert isinstance(target, Name)
                at[taken] = self._segment(code, target.text, last)
            elif last.opcode == "brx":
                self._indexed(code, frame, last, taken, at)
            elif last.opcode == "exit" or (last.opcode == "ret" and code.body.function.kernel):
                exited |= taken
            elif last.opcode == "ret":
                at[taken] = end
            elif last.opcode in ("bar", "barrier") and "arrive" not in last.modifiers:
                waiting |= taken
                self._release(code, frame, at, waiting, stuck=False)

    def _taken(self, code: Code, frame: Frame, position: int, active: Array) -> Array:
        guard = code.guards[position]
        return active if guard is None else active & guard(frame)

    def _step(self, code: Code, frame: Frame, position: int, active: Array) -> None:
        instruction = code.body.instructions[position]
        mask = self._taken(code, frame, position, active)
        warps = int(mask.reshape(-1, WARP).any(axis=1).sum())
        if not warps:
            return
        self.executed[instruction.opcode] = self.executed.get(instruction.opcode, 0) + warps
        if instruction.opcode in ("ld", "st", "atom", "red"):
            space = next((m for m in instruction.modifiers if m in SPACES), "generic")
            key = f"{instruction.opcode}.{space}"
            self.lanes[key] = self.lanes.get(key, 0) + int(mask.sum())
        try:
            code.steps[position](frame, mask)
        except AccessError as error:
            raise PtxError(str(error), instruction.span) from error

    @staticmethod
    def _segment(code: Code, label: str, instruction: Instruction) -> int:
        if label not in code.body.labels:
            raise PtxError(f"no label {label}", instruction.span)
        return code.segment_at.get(code.body.labels[label], len(code.bounds))

    def _indexed(self, code: Code, frame: Frame, instruction: Instruction, taken: Array, at: Array) -> None:
        table = instruction.operands[-1]
        index = instruction.operands[0]
        if not isinstance(table, Name) or table.text not in code.body.tables or not isinstance(index, Name):
            raise PtxError("brx.idx needs a register and a .branchtargets list", instruction.span)
        targets = np.array([self._segment(code, label, instruction) for label in code.body.tables[table.text]])
        chosen = frame.registers[index.text][taken].astype(np.int64)
        if chosen.size and int(chosen.max()) >= len(targets):
            raise PtxError("brx.idx goes beyond its list", instruction.span)
        at[taken] = targets[chosen]

    def _release(self, code: Code, frame: Frame, at: Array, waiting: Array, *, stuck: bool) -> None:
        """Let threads go on whose barrier everyone has reached.

        Raises:
            PtxError: nobody can go on (``stuck``).
        """
        released = False
        by_barrier: dict[str, list[int]] = {}
        for segment in np.unique(at[waiting]).tolist():
            barrier = self._barrier_before(code, segment)
            number = "warp" if "warp" in barrier.modifiers else str(barrier.operands[0]) if barrier.operands else "0"
            by_barrier.setdefault(number, []).append(segment)
        alive = ~frame.batch.exited
        for number, segments in by_barrier.items():
            here = waiting & np.isin(at, segments)
            groups = np.arange(frame.slots) // WARP if number == "warp" else frame.batch.block
            expected = np.bincount(groups[alive], minlength=int(groups.max()) + 1)
            barrier = self._barrier_before(code, segments[0])
            if number != "warp" and len(barrier.operands) > 1:
                expected = np.minimum(expected, int(str(barrier.operands[1])))
            arrived = np.bincount(groups[here], minlength=expected.size)
            complete = here & (arrived >= expected)[groups]
            if complete.any():
                released = True
                waiting &= ~complete
        if stuck and not released:
            barrier = self._barrier_before(code, int(at[waiting].min()))
            raise PtxError("threads wait here for others that never come", barrier.span)

    @staticmethod
    def _barrier_before(code: Code, segment: int) -> Instruction:
        """Return the barrier at which threads wait that go on at ``segment``."""
        return code.body.instructions[code.bounds[segment - 1][1] - 1]


def _guard(read: Callable[[Frame], Array], *, negated: bool) -> Callable[[Frame], Array]:
    return (lambda frame: ~read(frame)) if negated else read
