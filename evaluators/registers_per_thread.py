"""registers_per_thread: how many 32-bit registers per thread of the kernel needs (DESIGN section 4).

program + lambda -> kernel -> LLVM IR -> pipelines -> PTX -> live values -> calibrated number.  The value is
this project's own estimate, the same on every machine of NVIDIA's: nvcc is never asked.  How well it follows ``ptxas``
for sm_80 is measured by ``bench/registers``.  Other hardware counts for itself (``Hardware.count_registers``).
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import ClassVar, Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses, NotCountedError
from metafork.evaluators.counter import CounterValue, Details, Measure, NotKnown
from metafork.evaluators.kernels import kernel_of
from metafork.evaluators.registers.model import measure, shipped_model
from metafork.ir.program import Version
from metafork.llvm.ptx_target import TargetError

REGISTERS = 65536
"""Of a multiprocessor, in all of NVIDIA's GPUs since sm_50: with launch bounds, all blocks asked for get theirs."""


class RegistersPerThread(Struct, frozen=True):
    """The counter; its limit is the machine's most registers per thread, ``R``."""

    name: str = "registers_per_thread"
    kind: Literal["resource", "performance"] = "resource"
    symbol: str = "R"
    less_is_better: bool = True
    default_target: Fraction | None = None
    details: ClassVar[Details] = Details(
        "32-bit registers, estimated from the LLVM IR", Measure.REGISTERS_PER_THREAD, accepted="1"
    )

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the estimate, a constant; not known where the program has no kernel form."""
        estimate = registers(version, analyses)
        return estimate if isinstance(estimate, NotKnown) else CounterValue(Polynomial.constant(estimate))


def registers(version: Version, analyses: Analyses) -> int | NotKnown:
    """Return the estimated 32-bit registers of a thread."""
    return analyses.of(_registers, version)


def _registers(version: Version, analyses: Analyses) -> int | NotKnown:
    kernel = kernel_of(version.program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel
    counted = analyses.hardware.count_registers
    try:
        if counted is not None:
            return counted(kernel, version.ir_strategies)
        estimate = shipped_model().registers(measure(kernel, version.ir_strategies, analyses))
    except (TargetError, NotCountedError) as error:
        return NotKnown(f"no code: {error}")
    return estimate if kernel.bounds is None else min(estimate, REGISTERS // prod(kernel.bounds))


COUNTER = RegistersPerThread()
