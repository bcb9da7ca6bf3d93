"""Operations of straight-line code: what is left of its instructions on the device, with numbered values.

Copies and extensions vanish, constant offsets stand in the accesses, the product that scales an index is one operation
with the sum that adds the base.  Each value is defined once: a register that is written twice is two values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

from msgspec import Struct

from metafork.evaluators.registers.code import Form, PtxInstruction

# Cycles until a result is there; in proportion to each other, all that matters.
_LATENCIES = {"st": 1, **dict.fromkeys(("cvt", "cvta", "ex2", "lg2", "sin", "cos"), 12)}
_GLOBAL_LATENCY, _LOAD_LATENCY, _SEQUENCE_LATENCY, _APPROXIMATE_LATENCY, _DOUBLE_LATENCY, _LATENCY = (
    40,
    25,
    60,
    12,
    8,
    5,
)
_BRANCH_LATENCY = 1
_EXTENSIONS = frozenset({("u32", "u64"), ("u64", "u32"), ("s64", "s32"), ("u32", "u16")})
_SCALES = {"mul": "wide", "shl": "b64", "cvt": "s64"}


class Operation(Struct, eq=False):
    """``instruction`` says what it does; ``defines`` and ``uses`` are numbers of values."""

    instruction: PtxInstruction
    defines: list[int]
    uses: list[int]
    latency: int


class Operations(Struct, frozen=True):
    """The operations of a region, the values that live after it, and the registers that each value takes."""

    sequence: list[Operation]
    live_out: set[int]
    weight: list[int]


class _Kind(Struct, frozen=True):
    """What becomes of an instruction: found out once for each form.

    ``passes``: it hands on its operand; ``extends``: it only tells the width of a value; ``offsets``: it may add a
    constant to an address; ``sums``: it may add a base to an offset; ``scales``: it makes an offset in bytes of an
    index, which an addition does besides.
    """

    latency: int
    passes: bool
    extends: bool
    offsets: bool
    sums: bool
    scales: bool


@cache  # as ``form``
def _kind(form: Form) -> _Kind:
    opcode, modifiers = form.opcode, form.modifiers
    return _Kind(
        _latency(form),
        passes=opcode in ("mov", "cvta"),
        extends=opcode == "cvt" and (modifiers[:2] in _EXTENSIONS or modifiers[0] == "u16"),
        offsets=form.mnemonic == "add.s64",
        sums=form.mnemonic in ("add.s64", "sub.s64"),
        scales=modifiers[:1] == (_SCALES.get(opcode),),
    )


def _latency(form: Form) -> int:
    if form.opcode == "ld":
        return _GLOBAL_LATENCY if form.space == "global" else _LOAD_LATENCY
    if form.opcode in _LATENCIES:
        return _LATENCIES[form.opcode]
    if form.is_quotient:
        return _APPROXIMATE_LATENCY if form.approximate else _SEQUENCE_LATENCY
    return _DOUBLE_LATENCY if "f64" in form.modifiers else _LATENCY


def operations(body: Sequence[PtxInstruction], live_out: AbstractSet[int], registers: Sequence[int]) -> Operations:
    """Return the operations of straight-line code; ``registers`` says how many each register of the PTX takes.

    What only passes through is one value that takes as much as all of that.
    """
    current: dict[int, int] = {}
    weight: list[int] = []
    count: list[int] = []
    as_address: dict[int, int] = {}

    def fresh(name: int) -> int:
        current[name] = value = len(weight)
        weight.append(registers[name])
        count.append(0)
        return value

    renamed: list[tuple[PtxInstruction, list[int], list[int]]] = []
    for one in body:
        uses = [current[name] if name in current else fresh(name) for name in one.uses]
        for value in uses:
            count[value] += 1
        if one.address:
            for value in [current[name] for name in one.uses if name in one.address]:
                as_address[value] = as_address.get(value, 0) + 1
        if one.guarded:
            # Where the guard does not hold, the old value stays.
            uses += [current[name] if name in current else fresh(name) for name in one.defines]
        renamed.append((one, [fresh(name) for name in one.defines], uses))
    last = {current[name] for name in live_out if name in current}
    through = sum([registers[name] for name in live_out if name not in current])
    if through:
        last.add(len(weight))
        weight.append(through)
        count.append(0)
    for value in last:
        count[value] += 1
    return Operations(_merged(renamed, last, weight, count, as_address), last, weight)


def _merged(
    renamed: Sequence[tuple[PtxInstruction, list[int], list[int]]],
    last: set[int],
    weight: Sequence[int],
    count: Sequence[int],
    as_address: Mapping[int, int],
) -> list[Operation]:
    """Return the operations of instructions whose values are numbered; ``count`` is how often each value is used."""
    root = list(range(len(weight)))
    result: list[Operation] = []
    scales: dict[int, Operation] = {}
    absorbed: set[Operation] = set()
    for one, defines, operands in renamed:
        form = one.form
        if form.opcode == "bra":
            result.append(Operation(one, [], [], _BRANCH_LATENCY))
            continue
        kind = _kind(form)
        uses = [root[value] for value in operands]
        if (
            (kind.passes or kind.extends or kind.offsets)
            and len(uses) == 1
            and len(defines) == 1
            and not one.special
            and defines[0] not in last
        ):
            value = defines[0]
            vanishes = (
                kind.passes
                or (kind.extends and weight[uses[0]] == weight[value])
                # A constant offset of accesses.
                or (kind.offsets and as_address.get(value, 0) == count[value])
            )
            if vanishes:
                root[value] = uses[0]
                continue
        operation = Operation(one, defines, uses, kind.latency)
        if kind.sums:
            for value in uses:
                scale = scales.get(value)
                if scale is not None and count[value] == 1:
                    operation.uses = [other for other in uses if other != value] + scale.uses
                    absorbed.add(scale)
                    break
        if kind.scales:
            for value in defines:
                scales[value] = operation
        result.append(operation)
    return [one for one in result if one not in absorbed]


def in_order(code: Operations) -> int:
    """Return the most registers that live at once in the order of the text."""
    weight = code.weight
    lives = [False] * len(weight)
    for value in code.live_out:
        lives[value] = True
    now = most = sum([weight[value] for value in code.live_out])
    for one in reversed(code.sequence):
        ends = dead = 0
        for value in one.defines:
            if lives[value]:
                lives[value] = False
                ends += weight[value]
            else:
                dead += weight[value]
        if now + dead > most:
            most = now + dead
        now -= ends
        for value in one.uses:
            if not lives[value]:
                lives[value] = True
                now += weight[value]
        if now > most:
            most = now
    return most
