"""occupancy: warps that are active on a multiprocessor, over the most that it holds; a ratio, better when more.

By the rules of CUDA's occupancy calculator (``cuda_occupancy.h``): a multiprocessor takes whole blocks, as many as it
has places, warps, registers and shared memory for.  Registers are handed out to warps in units of 256, each of its four
partitions has a quarter of them, and a warp lies in one partition.  Shared memory is handed out in units, room with
what the system reserves of each block; a block without any is not limited by it.

The registers are the estimate of ``registers_per_thread``.  The value is rational in the machine's and the program's
symbols: ``blocks * warps / warps_per_sm``, in which ``blocks`` is the minimum of quotients.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import DerivedKind, DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import MACHINE_MARK, CounterValue, Details, NotKnown
from metafork.evaluators.registers_per_block import PARTITIONS, handed_out, in_groups
from metafork.evaluators.registers_per_thread import registers
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.program import Version

_FIELDS = (
    "warps_per_sm",
    "blocks_per_sm",
    "registers_per_sm",
    "shared_words_per_sm",
    "shared_words_unit",
    "shared_words_reserved",
)
_WARPS, _BLOCKS, _REGISTERS, _WORDS, _UNIT, _RESERVED = (Polynomial.symbol(MACHINE_MARK + name) for name in _FIELDS)


class Occupancy(Struct, frozen=True):
    """Active warps over the most; accepted when at least the target ``O``."""

    name: str = "occupancy"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "O"
    less_is_better: bool = False
    default_target: Fraction | None = Fraction(1, 4)
    details: ClassVar[Details] = Details("active warps over the most", machine=_FIELDS)

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the ratio; not known where threads, registers or shared memory are not, and for GPUs of AMD's."""
        if not analyses.hardware.ptx:
            return NotKnown("it follows NVIDIA's rules")
        width = analyses.hardware.warp_size
        threads, words = in_groups(version, analyses, width, "warps"), SHARED_MEMORY.evaluate(version, analyses)
        per_thread = registers(version, analyses)
        for part in (threads, words, per_thread):
            if isinstance(part, NotKnown):
                return part
        assert isinstance(threads, CounterValue)
        assert isinstance(words, CounterValue)
        assert isinstance(per_thread, int)
        warps = threads.numerator * Fraction(1, width)
        derived = list(dict.fromkeys((*threads.derived, *words.derived)))

        def fresh(name: str, kind: DerivedKind, *operands: Polynomial) -> Polynomial:
            derived.append(DerivedSymbol(name, kind, operands))
            return Polynomial.symbol(name)

        four_warps = Polynomial.constant(PARTITIONS * width * handed_out(per_thread))
        fitting = fresh("fitting", "floor", _REGISTERS, four_warps) * PARTITIONS
        room = fresh("room", "minimum", _WARPS, fitting)
        limits = [_BLOCKS, fresh("q1", "floor", room, warps)]
        if words.numerator:
            units = fresh("units", "ceiling", words.numerator + _RESERVED, _UNIT)
            limits.append(fresh("q2", "floor", _WORDS, units * _UNIT))
        blocks = fresh("blocks", "minimum", *limits)
        return CounterValue(blocks * warps, _WARPS, tuple(derived), (*threads.domain, *words.domain))


COUNTER = Occupancy()
