"""What ``meta_min_blocks`` asks of a kernel: CUDA's launch bounds, the most threads of a block and the least blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.block_sizes import MOST_RESIDENT, MOST_THREADS
from metafork.ir.marks import several_results
from metafork.ir.program import Program

DIRECTIONS = 3
_LIMITS = (32, 64, 96, 128, 192, 256, 384, 512, 768)
"""Numbers of threads that a block is asked to have at most, the least first."""


def launch_bounds(program: Program, shape: Sequence[Polynomial], prover: Prover) -> tuple[int, int] | None:
    """Return the most threads of a block and the blocks asked for; ``None`` if no multiprocessor has so many threads.

    Where a thread has results in three directions, these are as many blocks as have the threads of the largest: else a
    compiler loads all that they read first, for which a thread takes up to 255 registers.
    A block whose threads are not bounded by what is known of the parameters may have as many as any GPU runs.
    """
    if program.min_blocks is None and len(several_results(program)) < DIRECTIONS:
        return None
    most = _most_threads(program, shape, prover)
    blocks = max(1, MOST_THREADS // most) if program.min_blocks is None else program.min_blocks.value
    return (most, blocks) if most * blocks <= MOST_RESIDENT else None


def _most_threads(program: Program, shape: Sequence[Polynomial], prover: Prover) -> int:
    threads = prod(shape, start=Polynomial.constant(1))
    if program.striding is not None:
        return MOST_THREADS  # a launch may have more than the least
    if threads.is_constant:
        return int(threads.constant_value())
    return next((limit for limit in _LIMITS if prover.shows(at_most(threads, limit))), MOST_THREADS)
