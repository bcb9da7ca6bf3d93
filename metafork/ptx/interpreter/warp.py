"""What lanes of a warp do together: shuffles, votes, matches, reductions.

A ``.sync`` operation whose mask names a lane that is not here is an error, for lanes that have not ended.  A shuffle
from a lane that takes no part gives ``POISON``: code that relies on it shows in its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from metafork.ptx.interpreter.alu import unsupported
from metafork.ptx.interpreter.frame import WARP, Frame
from metafork.ptx.interpreter.operands import Operands, Reader
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Instruction, Pair

Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[[Frame, Array], None]

WARP_OPCODES = frozenset({"shfl", "vote", "activemask", "match", "redux", "elect"})
POISON = 0x7FC0DEAD
"""What a shuffle reads from a lane that takes no part (a NaN, as a single)."""


def compile_warp_operation(instruction: Instruction, operands: Operands) -> Step:
    """Return the step of a warp operation.

    Raises:
        PtxError: the form is not known.
    """
    builders = {"shfl": _shuffle, "vote": _vote, "activemask": _active, "redux": _reduce, "match": _match}
    builder = builders.get(instruction.opcode)
    if builder is None:
        raise unsupported(instruction)
    return builder(instruction, operands)


def _check_members(frame: Frame, mask: Array, members: Array, instruction: Instruction) -> None:
    """Refuse a ``.sync`` whose members are elsewhere.

    Raises:
        PtxError: a named lane that lives is not here, or a lane that is here is not named.
    """
    here = frame.batch.warps(mask)
    alive = frame.batch.warps(~frame.batch.exited)
    missing = members & alive & ~here
    lane = frame.batch.specials["%laneid"].astype(np.uint32)
    unnamed = members >> lane & np.uint32(1) == 0
    if (mask & (missing != 0)).any():
        raise PtxError(f"{instruction.mnemonic} names a lane that is not here", instruction.span)
    if (mask & unnamed).any():
        raise PtxError(f"{instruction.mnemonic} is executed by a lane that it does not name", instruction.span)


def _members(instruction: Instruction, operands: Operands, index: int) -> Reader | None:
    if "sync" not in instruction.modifiers:
        return None
    if len(instruction.operands) <= index:
        raise PtxError(f"{instruction.mnemonic} needs a member mask", instruction.span)
    return operands.read(instruction.operands[index], "u32", instruction)


def _shuffle(instruction: Instruction, operands: Operands) -> Step:
    target = instruction.operands[0]
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    write = operands.write(first, "b32", instruction)
    write_valid = None if second is None else operands.write(second, "pred", instruction)
    value = operands.read(instruction.operands[1], "b32", instruction)
    distance = operands.read(instruction.operands[2], "u32", instruction)
    clamp = operands.read(instruction.operands[3], "u32", instruction)
    members = _members(instruction, operands, 4)
    mode = next((m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx")), None)
    if mode is None:
        raise unsupported(instruction)

    def step(frame: Frame, mask: Array) -> None:
        shape = (frame.slots,)
        if members is not None:
            _check_members(frame, mask, np.broadcast_to(members(frame), shape), instruction)
        lane = frame.batch.specials["%laneid"].astype(np.int64)
        by = (np.broadcast_to(distance(frame), shape) & 31).astype(np.int64)
        control = np.broadcast_to(clamp(frame), shape).astype(np.int64)
        segment = control >> 8 & 31
        last = (lane & segment) | (control & 31 & ~segment)
        source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": (lane & segment) | (by & ~segment)}[
            mode
        ]
        valid = source >= last if mode == "up" else source <= last
        source = np.where(valid, source, lane)
        values = np.broadcast_to(value(frame), shape)
        moved = frame.batch.lane_values(values, source)
        taking_part = frame.batch.lane_values(mask, source)
        write(frame, np.where(taking_part, moved, np.uint32(POISON)), mask)
        if write_valid is not None:
            write_valid(frame, valid, mask)

    return step


def _vote(instruction: Instruction, operands: Operands) -> Step:
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), None)
    if mode is None:
        raise unsupported(instruction)
    write = operands.write(instruction.operands[0], "b32" if mode == "ballot" else "pred", instruction)
    predicate = operands.read(instruction.operands[1], "pred", instruction)
    members = _members(instruction, operands, 2)

    def step(frame: Frame, mask: Array) -> None:
        here = frame.batch.warps(mask)
        if members is not None:
            _check_members(frame, mask, np.broadcast_to(members(frame), (frame.slots,)), instruction)
        yes = frame.batch.warps(mask & predicate(frame))
        results = {"all": yes == here, "any": yes != 0, "uni": (yes == here) | (yes == 0), "ballot": yes}
        write(frame, results[mode], mask)

    return step


def _match(instruction: Instruction, operands: Operands) -> Step:
    """``match.all``: the members and true where all have one value, else 0 and false."""
    target, kind = instruction.operands[0], instruction.modifiers[-1]
    if "all" not in instruction.modifiers or kind not in ("b32", "b64"):
        raise unsupported(instruction)
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    write = operands.write(first, "b32", instruction)
    write_alike = None if second is None else operands.write(second, "pred", instruction)
    value = operands.read(instruction.operands[1], kind, instruction)
    members = _members(instruction, operands, 2)

    def step(frame: Frame, mask: Array) -> None:
        here = frame.batch.warps(mask)
        if members is not None:
            _check_members(frame, mask, np.broadcast_to(members(frame), (frame.slots,)), instruction)
        values = np.broadcast_to(value(frame), (frame.slots,))
        lowest = np.argmax(mask.reshape(-1, WARP), axis=1).repeat(WARP)
        other = frame.batch.warps(mask & (values != frame.batch.lane_values(values, lowest)))
        write(frame, np.where(other == 0, here, np.uint32(0)), mask)
        if write_alike is not None:
            write_alike(frame, other == 0, mask)

    return step


def _active(instruction: Instruction, operands: Operands) -> Step:
    write = operands.write(instruction.operands[0], "b32", instruction)

    def step(frame: Frame, mask: Array) -> None:
        write(frame, frame.batch.warps(mask), mask)

    return step


def _reduce(instruction: Instruction, operands: Operands) -> Step:
    mode = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), None)
    kind = instruction.modifiers[-1]
    if mode is None or kind not in ("s32", "u32", "b32"):
        raise unsupported(instruction)
    write = operands.write(instruction.operands[0], kind, instruction)
    value = operands.read(instruction.operands[1], kind, instruction)
    members = _members(instruction, operands, 2)
    functions: dict[str, Any] = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }  # fmt: skip

    def step(frame: Frame, mask: Array) -> None:
        if members is not None:
            _check_members(frame, mask, np.broadcast_to(members(frame), (frame.slots,)), instruction)
        values = np.broadcast_to(value(frame), (frame.slots,)).reshape(-1, WARP)
        rows = mask.reshape(-1, WARP)
        totals = np.zeros(len(values), values.dtype)
        for index in np.flatnonzero(rows.any(axis=1)):
            totals[index] = functions[mode].reduce(values[index][rows[index]], dtype=values.dtype)
        write(frame, np.repeat(totals, WARP), mask)

    return step
