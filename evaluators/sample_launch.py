"""One launch of a version at sample values of its parameters, run by the PTX interpreter: what its warps execute.

The sample is the first of the listed values at which every fact of the program holds, a block has 256 threads at most
and a launch few enough to be run together: data extents of 32 first, blocks of 16 first, factors of 2 first.  Arrays
are zero, floating-point scalars one half.  It is the same for all versions of a program that have the same parameters
and facts, however their kernels differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import prod

import numpy as np

from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Facts
from metafork.evaluators.counter import NotKnown
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.kernel import Kernel, Space
from metafork.ir.program import Expr, ParameterKind, Program, Var, walk_expression
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import PtxError

DATA, BLOCKS, FACTORS = (32, 48, 33, 64, 16), (16, 8, 32, 4, 64, 2), (2, 4, 1, 3)
MOST_POINTS = 1024
MOST_THREADS, MOST_LANES = 256, 1 << 12
MOST_BYTES = 1 << 26
MOST_SEGMENTS = 10_000
"""How many stretches of code a launch may run through: a second or two."""


def executed(ptx: str, kernel: Kernel, program: Program, analyses: Analyses) -> tuple[int, str] | NotKnown:
    """Return the instructions that a warp executes on average in the sample launch of PTX, rounded, and the sample."""
    facts = analyses.facts(program)
    for point in islice(_points(kernel, program, facts), MOST_POINTS):
        try:
            values = dict(point)
            for scalar in (*program.derived, *kernel.host_scalars):
                values[scalar.name] = integer_value(scalar.definition, values)
            grid, block = ([integer_value(extent, values) for extent in sizes] for sizes in (kernel.grid, kernel.block))
        except NoValueError:
            continue
        threads = prod(block)
        if not (min(grid + block) >= 1 and threads <= MOST_THREADS and prod(grid) * threads <= MOST_LANES):
            continue
        count = _run(ptx, kernel, values, grid, block)
        if isinstance(count, NotKnown):
            return count
        warps = prod(grid) * -(-threads // 32)
        return round(count / warps), ", ".join(f"{name} = {value}" for name, value in point.items())
    return NotKnown("no sample of its parameters is a launch that can be tried")


def _points(kernel: Kernel, program: Program, facts: Facts) -> Iterator[Mapping[str, int]]:
    """Yield values of the parameters at which the facts hold."""
    shaping = {name for extent in kernel.block for name in _names(extent)}
    ranges = {
        one.name: BLOCKS if one.name in shaping else DATA if one.kind is ParameterKind.DATA else FACTORS
        for one in program.parameters
    }
    # The first parameters change last: an extent of the data stays while the blocks are tried.
    for values in product(*ranges.values()):
        point = dict(zip(ranges, values, strict=True))
        if _possible(point, facts):
            yield point


def _possible(point: Mapping[str, int], facts: Facts) -> bool:
    known = dict(point)
    for symbol in facts.derived:
        if all(operand.symbols <= known.keys() for operand in symbol.operands):
            try:
                known[symbol.name] = symbol.evaluate(known)
            except ZeroDivisionError:
                return False
    return all(fact.holds(known) for fact in facts.constraints if fact.symbols <= known.keys())


def _names(expr: Expr) -> set[str]:
    return {part.name for part in walk_expression(expr) if isinstance(part, Var)}


def _run(ptx: str, kernel: Kernel, values: Mapping[str, int], grid: list[int], block: list[int]) -> int | NotKnown:
    memory = GlobalMemory()
    arguments: list[int | float] = [
        values.get(scalar.name, 0) if scalar.type.integer else 0.5 for scalar in kernel.scalars
    ]
    try:
        sizes = [
            max(1, integer_value(one.extent, values)) * one.element.size
            for one in kernel.memories
            if one.space is Space.GLOBAL
        ]
        if sum(sizes) > MOST_BYTES:
            return NotKnown("the arrays of the sample launch are too large to try it")
        arguments += [memory.upload(np.zeros(size, np.uint8)) for size in sizes]
        launch = run_kernel(
            parse(ptx), kernel.name, grid, block, arguments, memory=memory,
            shared_bytes=integer_value(kernel.shared_bytes, values), limit=MOST_SEGMENTS,
        )  # fmt: skip
    except (NoValueError, PtxError, ValueError) as error:
        return NotKnown(f"its sample launch does not end well: {error}")
    return sum(launch.executed.values())
