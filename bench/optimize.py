"""How long ``metafork optimize`` takes, and what the case discussion does, on the paper's four programs.

    python bench/optimize.py [--runs 5] [--json FILE]

1. Whole processes: the installed command on each example with its defaults, in turn with a process that only imports
   sympy, z3, islpy and llvmlite.  The least processor time of the former may be ``LIMIT`` times that of the latter.
2. The work of each tree: inner nodes, paths, leaves, counter evaluations, strategy applications, questions to Z3.
3. Growth from 2 to 8 strategies: on the real ones (the first k of the default order) as far as there are, and on
   made-up ones that all improve both of two counters, one numeric and one symbolic, the worst kind of tree.

``bench/optimize.md`` holds the figures of a run and says how they were taken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.comprehensive import registry
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.systems.start import Start
from metafork.evaluators.counter import CounterValue
from metafork.strategies.strategy import StrategyOf

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("matadd", "jacobi1d", "transpose", "matmul")
IMPORTS = "import sympy, z3, islpy, llvmlite.binding"
COMMAND = "from metafork.comprehensive.cli import main; main()"
LIMIT = 2.5


def process_time(code: str, *arguments: str) -> tuple[float, float]:
    """Return the wall time and the processor time of a whole process that runs Python code, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        began, before = time.perf_counter(), os.times()
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True,
            capture_output=True,
            cwd=folder,
            # Users keep what Python compiles, whatever the environment of this run says.
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""},
        )
        wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def process_times(program: str, runs: int) -> dict[str, object]:
    """Return the least times of optimizing a program and of the imports, which run in turn."""
    arguments = ("optimize", str(ROOT / "examples" / f"{program}.mf"), "-o", "out")
    process_time(COMMAND, *arguments)  # compiles what Python keeps compiled
    pairs = [(process_time(COMMAND, *arguments), process_time(IMPORTS)) for _ in range(runs)]
    walls, processors = zip(*(ours for ours, _ in pairs), strict=True)
    imports = min(processor for _, (_, processor) in pairs)
    row: dict[str, object] = {"program": program, "wall s": min(walls), "processor s": min(processors)}
    return row | {"imports s": imports, "ratio": min(processors) / imports}


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
    effect: None = None


class Lowering(StrategyOf[tuple[str, ...]], frozen=True):
    name: str
    improves: frozenset[str] = frozenset({"r1", "r2"})

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
    options = parser.parse_args()

    times = [process_times(program, options.runs) for program in PROGRAMS]
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
    slow = [str(row["program"]) for row in times if float(str(row["ratio"])) > LIMIT]
    if slow:
        sys.exit(f"more than {LIMIT} times the processor time of the imports: {', '.join(slow)}")


if __name__ == "__main__":
    main()
