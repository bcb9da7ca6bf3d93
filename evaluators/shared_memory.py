"""shared_memory: 4-byte words of shared memory a block needs (DESIGN section 4).

The sum over cached arrays of their windows and over the block's own arrays, each rounded up to words; the maximum
over the paths that a whole block takes alike.  ``metafork.analysis.memory.block_memory`` holds the arithmetic, because
the kernel's layout is made from the same plan.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.evaluators.counter import CounterValue, Details, NotKnown
from metafork.ir.program import Version


class SharedMemory(Struct, frozen=True):
    """Words of shared memory of a block; a resource, limited by ``Z``."""

    name: str = "shared_memory"
    kind: Literal["resource", "performance"] = "resource"
    symbol: str = "Z"
    less_is_better: bool = True
    default_target: Fraction | None = None
    details: ClassVar[Details] = Details("4-byte words", used="4a")

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the words as a polynomial in parameters and derived symbols."""
        try:
            memory = block_memory(version.program, analyses)
        except UnknownSizeError as reason:
            return NotKnown(str(reason))
        return CounterValue(memory.words, derived=(*memory.facts.derived, *memory.derived))


COUNTER = SharedMemory()
