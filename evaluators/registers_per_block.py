"""registers_per_block: the registers that the hardware hands out to a block (DESIGN section 4).

It hands them out to whole warps, of 32 threads or of 64 (``Hardware.warp_size``), in eights per thread.  Each of the
four partitions of a multiprocessor has a quarter of them, and a block launches only if each partition can hold as many
warps as the fullest (``cuda_occupancy.h``; metafork/dispatching.h does the same with the registers of the compiled
kernel).  The number of such groups of four warps is a ceiling, so a derived symbol: ``B0*B1`` threads of 20 registers,
of which 24 are handed out, take ``3072*quads`` registers with ``quads = ceil((B0*B1)/128)``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, Details, Measure, NotKnown
from metafork.evaluators.registers_per_thread import registers
from metafork.evaluators.threads_per_block import COUNTER as THREADS_PER_BLOCK
from metafork.ir.program import Version

REGISTERS_TOGETHER = 8
"""Of a thread, which the hardware hands out: a warp of 32 gets them in units of 256."""

PARTITIONS = 4
"""Of a multiprocessor; each has a quarter of its registers."""


class RegistersPerBlock(Struct, frozen=True):
    """The counter; its limit is the machine's registers per thread-block may have, ``RB``."""

    name: str = "registers_per_block"
    kind: Literal["resource", "performance"] = "resource"
    symbol: str = "RB"
    less_is_better: bool = True
    default_target: Fraction | None = None
    details: ClassVar[Details] = Details(
        "32-bit registers, estimated from the LLVM IR", Measure.REGISTERS_PER_BLOCK, accepted="1"
    )

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the registers handed out per thread, times the threads in groups of four warps, or why not known."""
        threads = in_groups(version, analyses, PARTITIONS * analyses.hardware.warp_size, "quads")
        if isinstance(threads, NotKnown):
            return threads
        per_thread = registers(version, analyses)
        if isinstance(per_thread, NotKnown):
            return per_thread
        return replace(threads, numerator=threads.numerator * handed_out(per_thread))


def handed_out(registers: int) -> int:
    """Return the registers that the hardware hands out to a thread that needs so many."""
    return -(-registers // REGISTERS_TOGETHER) * REGISTERS_TOGETHER


def in_groups(version: Version, analyses: Analyses, size: int, name: str) -> CounterValue | NotKnown:
    """Return the threads of a block, rounded up to whole groups: ``size * ceil(threads / size)``.

    ``name`` is what the symbol of the ceiling is called.
    """
    threads = THREADS_PER_BLOCK.evaluate(version, analyses)
    if isinstance(threads, NotKnown):
        return threads
    # Every symbol of the product of extents is a constant of the launch.
    scope = Scope({}, threads.numerator.symbols, threads.derived)
    groups = scope.quotient("ceiling", threads.numerator, Polynomial.constant(size), name)
    if groups is None:
        return NotKnown(f"{threads.numerator} threads are no whole number of warps that is known")
    return CounterValue(groups * size, derived=tuple(scope.derived), domain=threads.domain)


COUNTER = RegistersPerBlock()
