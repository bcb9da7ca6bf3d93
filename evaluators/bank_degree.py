"""bank_degree: the worst bank conflict of the accesses of a warp to shared memory.

A performance counter, better when less: 0 where nothing goes through shared memory, 1 where no two threads of a warp
ever ask one bank for different words, up to 32.  Every access counts: those of the phases and those of the copies
between global and shared memory.  Accesses to one element together, and accesses in the order of the threads, have
degree 1 whatever the shape of the block; for others the value is the maximum over the listed shapes of
``evaluators.banks.simulation``, and says that it is (``CounterValue.sampled``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.analysis.memory.block_shape import UnknownShapeError
from metafork.evaluators.banks.shared_accesses import SharedAccess, UnknownAccessError, shared_accesses
from metafork.evaluators.banks.simulation import SAMPLED, Listed, UnknownDegreeError, access_degree, without_conflict
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.program import Program, Version


class BankDegree(Struct, frozen=True):
    """Different words that a warp asks of one bank at once; accepted when at most the target ``D``."""

    name: str = "bank_degree"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "D"
    less_is_better: bool = True
    default_target: Fraction | None = Fraction(1)

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the worst degree, a number."""
        try:
            listed, accesses = bank_accesses(version.program, analyses)
            degrees = [access_degree(access, access.layout, listed) for access in accesses]
        except (UnknownSizeError, UnknownShapeError, UnknownAccessError, UnknownDegreeError) as reason:
            return NotKnown(str(reason))
        proved = all(without_conflict(access, access.layout) for access in accesses)
        return CounterValue(Polynomial.constant(max(degrees, default=0)), sampled="" if proved else SAMPLED)


def bank_accesses(program: Program, analyses: Analyses) -> tuple[Listed, tuple[SharedAccess, ...]]:
    """Return the accesses of a program to shared memory, and what its listed shapes are made of.

    Raises ``UnknownSizeError``, ``UnknownShapeError`` and ``UnknownAccessError``.
    """
    memory = block_memory(program, analyses)
    derived = (*memory.facts.derived, *(symbol for symbol in memory.derived if symbol not in memory.facts.derived))
    return Listed(program, memory.facts, derived), shared_accesses(program, memory, analyses)


COUNTER = BankDegree()
