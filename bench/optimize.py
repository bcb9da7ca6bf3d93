"""How long ``metafork optimize`` takes, and what the case discussion does, on the paper's four programs.

    python bench/optimize.py [--runs 5] [--json FILE]
    python bench/optimize.py --against CHECKOUT [--strategies NAMES] [--runs 7] [--json FILE]

1. Whole processes: the installed command on each example with its defaults, best and median wall time,
   and median processor time, which a busy machine does not change.
2. The work of each tree: inner nodes, paths, leaves, counter evaluations, strategy applications, questions to Z3.
3. Growth from 2 to 8 strategies: on the real ones (the first k of the default order) as far as there are, and on
   made-up ones that all improve both of two counters, one numeric and one symbolic, the worst kind of tree.

With ``--against``, the processor time of this checkout and of another one, on every example of the other one: pairs of
runs, one right after the other and in turn either first, because a busy machine also changes processor time.  With
``--strategies`` this checkout tries only those that it names: the other one's defaults, say, for equal work.

``bench/optimize.md`` holds the figures of a run and says how they were taken.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict

from comprehensive import registry
from comprehensive.case_discussion.discussion import Discussion
from comprehensive.optimize import optimize
from comprehensive.systems.start import Start
from evaluators.counter import CounterValue
from metafork.algebra.polynomial import Polynomial, at_most

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("matadd", "jacobi1d", "transpose", "matmul")
LIMIT_SECONDS = 1.5


def process_time(program: Path, checkout: Path = ROOT, strategies: str | None = None) -> tuple[float, float]:
    """Return the wall time and the processor time of a whole process, in seconds; the code is that of a checkout."""
    command = [sys.executable, "-c", "from comprehensive.cli import main; main()", "optimize"]
    command += [] if strategies is None else ["--strategies", strategies]
    # Without instances, which older checkouts make for named values only.
    if (checkout / "comprehensive" / "case_discussion" / "typical_values.py").exists():
        command += ["--static", "none"]
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.perf_counter(), os.times()
        subprocess.run(
            [*command, str(program), "-o", folder],
            check=True,
            capture_output=True,
            cwd=folder,
            # Users keep what Python compiles, whatever the environment of this run says.
            env=os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": ""},
        )
        wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def process_times(program: str, runs: int) -> tuple[list[float], list[float]]:
    """Return the wall times and the processor times of whole processes, in seconds."""
    both = [process_time(ROOT / "examples" / f"{program}.mf") for _ in range(runs)]
    return [wall for wall, _ in both], [processor for _, processor in both]


def paired(other: Path, runs: int, strategies: str | None = None) -> list[dict[str, object]]:
    """Return the least processor times of another checkout and of this one, and the medians of their quotients."""
    rows: list[dict[str, object]] = []
    for program in sorted((other / "examples").glob("*.mf")):
        checkouts = (other, ROOT)
        tried = {other: None, ROOT: strategies}
        for checkout in checkouts:
            process_time(program, checkout, tried[checkout])  # the first one compiles what Python keeps compiled
        pairs: list[tuple[float, float]] = []
        for number in range(runs):
            order = checkouts if number % 2 == 0 else checkouts[::-1]
            times = {checkout: process_time(program, checkout, tried[checkout])[1] for checkout in order}
            pairs.append((times[other], times[ROOT]))
        row: dict[str, object] = {"program": program.stem, "before s": min(a for a, _ in pairs)}
        row |= {"after s": min(b for _, b in pairs)}
        rows.append(row | {"after/before": statistics.median(b / a for a, b in pairs), "pairs": len(pairs)})
    totals = [sum(float(str(row[key])) for row in rows) for key in ("before s", "after s")]
    total: dict[str, object] = {"program": "all", "before s": totals[0], "after s": totals[1]}
    return [*rows, total | {"after/before": totals[1] / totals[0], "pairs": runs}]


def work(program: str, strategies: list[str] | None = None) -> list[dict[str, object]]:
    """Return the statistics of each tree of a program."""
    result = optimize(ROOT / "examples" / f"{program}.mf", strategies=strategies)
    return [{"schedule": tree.program.name, **asdict(tree.statistics)} for tree in result.schedules]


@dataclass(frozen=True)
class Count:
    """A counter on tuples of applied strategies: ``base - len(version)`` of something."""

    name: str
    symbol: str
    shape: Polynomial
    kind: str = "resource"
    less_is_better: bool = True
    default_target: None = None

    def evaluate(self, version: tuple[str, ...], analyses: object = None) -> CounterValue:
        return CounterValue(self.shape * (20 - len(version)))


@dataclass(frozen=True)
class Applied:
    version: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Lowering:
    name: str
    improves: frozenset[str] = frozenset({"r1", "r2"})
    on_ir: bool = False
    at_leaf: bool = False

    def apply(self, version: tuple[str, ...], analyses: object = None) -> Applied:
        return Applied((*version, self.name))


def made_up(count: int) -> dict[str, object]:
    """Return the statistics of a tree with ``count`` strategies that improve both counters."""
    s, b = Polynomial.symbol("s"), Polynomial.symbol("B")
    machine = {"R": "R", "Z": "Z"}
    start = Start(
        data=(),
        program=("s", "B"),
        machine=machine,
        constraints=(at_most(1, s), at_most(1, b), *(at_most(0, Polynomial.symbol(m)) for m in machine)),
        canonical=machine,
    )
    counters = [Count("r1", "R", Polynomial.constant(1)), Count("r2", "Z", s * b)]
    strategies = [Lowering(f"O{index}") for index in range(count)]
    outcome = Discussion(start, counters, strategies).run(())
    return asdict(outcome.statistics)


def table(rows: list[dict[str, object]]) -> str:
    """Return rows as a Markdown table."""
    keys = list(rows[0])
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    for row in rows:
        cells = [f"{row[key]:.3f}" if isinstance(row[key], float) else str(row[key]) for key in keys]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path, help="another checkout, with its examples")
    parser.add_argument("--strategies", help="with --against: the strategies that this checkout tries")
    options = parser.parse_args()

    if options.against is not None:
        rows = paired(options.against.resolve(), options.runs, options.strategies)
        print(table(rows))
        if options.json is not None:
            data = {"format": "metafork-bench-optimize-pairs", "version": 1, "pairs": rows}
            options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        return

    times = []
    for program in PROGRAMS:
        wall, processor = process_times(program, options.runs)
        row = {"program": program, "best s": min(wall), "median s": statistics.median(wall)}
        times.append(row | {"processor s": statistics.median(processor)})
    trees = [row for program in PROGRAMS for row in work(program)]
    names = list(registry.STRATEGIES)
    real = [
        {"strategies": count, **row}
        for count in range(2, len(names) + 1)
        for row in work("jacobi1d", names[:count]) + work("matmul", names[:count])
    ]
    made = [{"strategies": count, **made_up(count)} for count in range(2, 9)]
    print("## Whole processes\n\n" + table(times))
    print("\n## The work of each tree, defaults\n\n" + table(trees))
    print("\n## Growth with the first k strategies of the default order\n\n" + table(real))
    print("\n## Growth on made-up strategies that improve both of two counters\n\n" + table(made))
    if options.json is not None:
        data = {"format": "metafork-bench-optimize", "version": 1}
        data |= {"processes": times, "trees": trees, "growth": real, "made_up": made}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    slow = [row["program"] for row in times if row["median s"] > LIMIT_SECONDS]
    if slow:
        sys.exit(f"slower than {LIMIT_SECONDS} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
