"""Blocks of more threads than any GPU runs, where their sizes are constants (MF0114, a warning; MF0115)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from msgspec.structs import replace

from metafork.ir.messages.diagnostics import Diagnostic, Severity
from metafork.ir.program import IntConst, Phase, Program, walk_statements

MOST_THREADS = 1024
"""Threads of a block that the largest GPUs run."""
MOST_RESIDENT = 2048
"""Threads that a multiprocessor runs at once, on the GPUs that run most."""


def oversized_blocks(program: Program, source_name: str) -> Iterator[Diagnostic]:
    """Yield a warning where a block has too many threads; the place is where the sizes are written."""
    for phase in walk_statements(program.body):
        if not isinstance(phase, Phase):
            continue
        sizes = [loop.extent for loop in phase.threads if isinstance(loop.extent, IntConst) and loop.extent.value > 1]
        threads = prod(size.value for size in sizes)
        if threads <= MOST_THREADS:
            continue
        first, last = sizes[0].span, sizes[-1].span
        place = first
        if first.line == last.line and first.end <= last.end:
            place = replace(first, end_line=last.end_line, end_column=last.end_column, end=last.end)
        shown = "a number up to 1024; 128 and 256 are usual" if len(sizes) == 1 else "sizes such as 32 and 8"
        yield Diagnostic(
            "MF0114",
            Severity.WARNING,
            f"no GPU runs blocks of {threads} threads",
            place,
            source_name,
            f"a block has at most {MOST_THREADS} threads. The serial code would run on every machine.",
            f"give {shown}. For more work per thread, give a thread several elements (docs/tutorial.md).",
        )
        return


def crowded_blocks(program: Program, source_name: str) -> Iterator[Diagnostic]:
    """Yield an error where no multiprocessor has threads for the blocks that ``meta_min_blocks`` asks for."""
    asked = program.min_blocks
    for phase in walk_statements(program.body) if asked is not None else ():
        if not isinstance(phase, Phase) or not all(isinstance(loop.extent, IntConst) for loop in phase.threads):
            continue
        threads = prod(loop.extent.value for loop in phase.threads if isinstance(loop.extent, IntConst))
        if asked is not None and threads <= MOST_THREADS and threads * asked.value > MOST_RESIDENT:
            yield Diagnostic(
                "MF0115",
                Severity.ERROR,
                f"no multiprocessor runs {asked.value} blocks of {threads} threads at once",
                asked.span,
                source_name,
                f"a multiprocessor runs at most {MOST_RESIDENT} threads.",
                f"ask for at most {MOST_RESIDENT // threads} blocks.",
            )
            return
