"""The programs that registers are measured on, and their leaves.

Every ``.mf`` file of ``corpus/`` and of ``examples/`` is one program.  Its leaves are what the tool itself can make of
it: arrays cached or not, granularity reduced or not, common subexpressions eliminated or not.  Leaves that LLVM makes
the same code of (most that differ in common subexpressions only) count once.  The examples, and one program of the
corpus in three by its place in the alphabet, are held out whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metafork.frontend import parse
from metafork.ir import Version
from metafork.kernel import Kernel
from metafork.llvm_ir import module_text
from metafork.lowering import lower
from metafork.ptx_target import optimize, parsed, ptx_of
from metafork.source import Source
from strategies.caching import STRATEGY as CACHING
from strategies.caching import with_cached_arrays
from strategies.cse import STRATEGIES as CSE
from strategies.granularity import STRATEGY as GRANULARITY
from strategies.strategy import Applied

ROOT = Path(__file__).resolve().parents[2]
_CHOICES = [
    [*granularity, *caching, *cse]
    for caching in ([], [CACHING])
    for granularity in ([], [GRANULARITY])
    for cse in ([], CSE)
]


@dataclass(frozen=True)
class Leaf:
    """One kernel of one program; ``name`` is unique in the corpus."""

    program: str
    name: str
    version: Version
    kernel: Kernel


def programs() -> list[Path]:
    """Return the files, in alphabetical order of their stems."""
    files = [*(ROOT / "bench/registers/corpus").glob("*.mf"), *(ROOT / "examples").glob("*.mf")]
    return sorted(files, key=lambda path: path.stem)


def held_out() -> set[str]:
    """Return the programs that calibration never sees."""
    own = sorted(path.stem for path in (ROOT / "bench/registers/corpus").glob("*.mf"))
    return {*own[1::3], *(path.stem for path in (ROOT / "examples").glob("*.mf"))}


def leaves(path: Path) -> Iterator[Leaf]:
    """Yield the different leaves of a program."""
    unit = parse(Source(path.name, path.read_text(encoding="utf-8")))
    for schedule in unit.schedules:
        seen = set()
        start = Version(with_cached_arrays(schedule.program).program)
        for chosen in _CHOICES:
            version = start
            for strategy in chosen:
                result = strategy.apply(version)
                version = result.version if isinstance(result, Applied) else version
            # Compared as PTX, for there the names of values are numbers.
            code = ptx_of(parsed(optimize(module_text(lower(version.program, "kernel")))))
            if code not in seen:
                seen.add(code)
                name = "_".join([schedule.program.name, *(strategy.name for strategy in chosen)])
                yield Leaf(path.stem, name, version, lower(version.program, name))
