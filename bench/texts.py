"""The kernels of all programs as text, to compare before and after a change that only moves structure.

    python -m bench.texts build/before [--random 100]
    ...
    python -m bench.texts build/after [--random 100]
    diff -r build/before build/after

Programs are ``examples``, ``bench/programs`` and random ones of the tests, each discussed as by default and as the
paper does (``--order paper --machine all``), with instances for typical values.  A file holds what a run finds: the
tree as JSON, and the kernel of each leaf and instance; or the diagnostics of a program that is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from metafork.comprehensive.emit import kernel_of
from metafork.comprehensive.optimize import optimize
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.cuda import kernel_text
from tests.random_programs.generator import Generator

ROOT = Path(__file__).resolve().parents[1]
RUNS = {"default": {"static": "auto"}, "paper": {"order": "paper", "machine": "all", "static": "auto"}}


def sources(random: int) -> Iterator[Source]:
    """Yield the programs."""
    for folder in ("examples", "bench/programs"):
        for path in sorted((ROOT / folder).glob("*.mf")):
            yield Source(path.name, path.read_text())
    for seed in range(random):
        yield Source(f"random{seed}.mf", Generator(seed, f"random{seed}").text())


def told(source: Source, run: str) -> str:
    """Return what a run finds."""
    try:
        result = optimize(source, **RUNS[run])
    except DiagnosticsError as error:
        return f"{error}\n"
    kernels = [
        kernel_text(kernel_of(variant, result.analyses))
        for tree in result.schedules
        for leaf in tree.leaves
        for variant in leaf.variants
    ]
    return "\n".join([result.to_json(), *kernels])


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the texts go")
    parser.add_argument("--random", type=int, default=100, help="how many random programs")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    work = [(source, run) for source in sources(options.random) for run in RUNS]
    with ProcessPoolExecutor(options.jobs) as pool:
        for (source, run), text in zip(work, pool.map(told, *zip(*work, strict=True)), strict=True):
            (options.folder / f"{Path(source.name).stem}.{run}.txt").write_text(text)


if __name__ == "__main__":
    main()
