"""The programs that registers are measured on, and their leaves.

Every ``.mf`` file of ``corpus/``, of ``corpus/held_out/`` and of ``examples/`` is one program.  Its leaves are what the
tool itself can make of it: arrays cached or not, granularity reduced or not, common subexpressions eliminated or not.
Leaves that LLVM makes the same code of (most that differ in common subexpressions only) count once.

The programs of ``held_out/`` were written before anything was scored on them, and no calibration ever sees them; all
others are seen: coefficients are fitted to them, and what the model counts is chosen by leaving out a fifth in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse
from metafork.ir.kernel import Kernel
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import optimize, parsed, ptx_of
from metafork.lowering.lowering import lower
from metafork.strategies.caching import STRATEGY as CACHING
from metafork.strategies.caching import with_cached_arrays
from metafork.strategies.cse import STRATEGIES as CSE
from metafork.strategies.granularity import STRATEGY as GRANULARITY
from metafork.strategies.strategy import Applied

ROOT = Path(__file__).resolve().parents[2]
_HELD_OUT = ROOT / "bench/registers/corpus/held_out"
_FOLDERS = (_HELD_OUT.parent, _HELD_OUT, ROOT / "examples")
_CALLS = re.compile(r"(?<=callseq )\d+")
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
    return sorted((path for folder in _FOLDERS for path in folder.glob("*.mf")), key=lambda path: path.stem)


def held_out() -> set[str]:
    """Return the programs that calibration never sees."""
    return {path.stem for path in _HELD_OUT.glob("*.mf")}


def leaves(path: Path) -> Iterator[Leaf]:
    """Yield the different leaves of a program."""
    unit = parse(Source(path.name, path.read_text(encoding="utf-8")))
    for schedule in unit.schedules:
        seen = set()
        start = Version(with_cached_arrays(schedule.program, Analyses()).program)
        for chosen in _CHOICES:
            version = start
            for strategy in chosen:
                result = strategy.apply(version, Analyses())
                version = result.version if isinstance(result, Applied) else version
            # Compared as PTX, for there the names of values are numbers; those of calls count up in a process.
            code = _CALLS.sub("", ptx_of(parsed(optimize(module_text(lower(version.program, "kernel"))))))
            if code not in seen:
                seen.add(code)
                name = "_".join([schedule.program.name, *(strategy.name for strategy in chosen)])
                yield Leaf(path.stem, name, version, lower(version.program, name))
