"""registers_per_block: registers per thread, times threads rounded up to whole warps (DESIGN section 4).

The hardware hands out registers to whole warps, of 32 threads or of 64 (``Hardware.warp_size``).  The number of warps
is a ceiling, so a derived symbol: ``B0*B1`` threads of 20 registers take ``640*warps`` registers with
``warps = ceil((B0*B1)/32)``.
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
        """Return ``registers * warp_size * ceil(threads / warp_size)``; not known where either factor is not."""
        threads = in_whole_warps(version, analyses)
        if isinstance(threads, NotKnown):
            return threads
        per_thread = registers(version, analyses)
        if isinstance(per_thread, NotKnown):
            return per_thread
        return replace(threads, numerator=threads.numerator * per_thread)


def in_whole_warps(version: Version, analyses: Analyses) -> CounterValue | NotKnown:
    """Return the threads of a block, rounded up to whole warps: ``warp_size * ceil(threads / warp_size)``."""
    threads = THREADS_PER_BLOCK.evaluate(version, analyses)
    if isinstance(threads, NotKnown):
        return threads
    # Every symbol of the product of extents is a constant of the launch.
    scope = Scope({}, threads.numerator.symbols, threads.derived)
    warps = scope.quotient("ceiling", threads.numerator, Polynomial.constant(analyses.hardware.warp_size), "warps")
    if warps is None:
        return NotKnown(f"{threads.numerator} threads are no whole number of warps that is known")
    return CounterValue(warps * analyses.hardware.warp_size, derived=tuple(scope.derived), domain=threads.domain)


COUNTER = RegistersPerBlock()
