"""Registers of instances against ``ptxas``: estimates, and the bounds that stand in the conditions.

    python bench/registers/instances.py [NAME ...]    # needs nvcc and ptxas

Programs are those of ``examples/`` and ``bench/programs/``, each with its typical values (``default``), with 2, 4, 8
and 16 for each of its static parameters alone, and with 2 and 4 for the first two of them.  Every instance of every
leaf that some supported machine chooses is compiled as it ships, those of equal text once.  Results are in
``bench/results/instance_registers.json``: for each leaf its conditions, and for each instance its values, the
estimate, the bound (the estimate where its condition is a number of its own) and what ``ptxas`` allots.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import merit
import oracle
from corpus import ROOT
from msgspec.structs import replace

from comprehensive.emit import kernel_of
from comprehensive.optimize import optimize
from comprehensive.tree.schedule_tree import Instance
from metafork.algebra.polynomial import Constraint
from metafork.ir.kernel import Kernel
from metafork.ir.static_values import static_parameters
from metafork.printing.cuda import kernel_text

TARGET = "sm_80"
VALUES = (2, 4, 8, 16)
PAIRS = (2, 4)
RESULTS = ROOT / "bench/results/instance_registers.json"
COUNTER = "registers_per_thread"
LIMITS = (24, 32, 40, 64, 128)
"""Registers of a thread with which blocks of 1024, or several blocks, fit a multiprocessor."""


def lists_of(path: Path) -> Iterator[tuple[str, str | Mapping[str, Sequence[int]]]]:
    """Yield what a program is compiled for, with a name."""
    yield "default", "auto"
    found: dict[str, None] = {}
    for tree in optimize(path, counters=["threads_per_block"], strategies=[]).schedules:
        free = static_parameters(tree.program)
        found |= {one.name: None for one in tree.program.parameters if one.name in free}
    for name in found:
        yield name, {name: VALUES}
    for pair in list(combinations(found, 2))[:1]:
        yield " ".join(pair), dict.fromkeys(pair, PAIRS)


Row = tuple[dict[str, int], int, float, int, str]
"""An instance's values, estimate, bound and registers by ``ptxas``, and its kernel."""
Groups = dict[str, dict[str, list[object]]]
"""By what a program was compiled for and its schedule, then by leaf: the conditions, and the rows."""


def condition_of(instance: Instance) -> Constraint:
    """Return the condition on the registers of a thread."""
    return next(condition for condition in instance.system if condition.right.symbols == {"R"})


def row_of(one: Instance, registers: Mapping[str, int]) -> Row:
    """Return what is known of an instance."""
    condition = condition_of(one)
    bound = float(condition.left.evaluate(one.values) / condition.right.evaluate({"R": 1}))
    estimate = int(one.counters[COUNTER].numerator.constant_value())
    return dict(one.values), estimate, bound, registers[one.kernel], one.kernel


def measured(path: Path) -> Groups:
    """Return the rows of a program: of the leaves of its tree, with conditions in ``R``."""
    chosen = {leaf.version for tree in optimize(path, static="none").schedules for leaf in tree.leaves}
    kernels: dict[str, Kernel] = {}
    names: dict[str, str] = {}
    leaves: list[tuple[str, str, list[Instance]]] = []
    for listed, static in lists_of(path):
        for tree in optimize(path, static=static, machine="all").schedules:
            for leaf in tree.leaves:
                if leaf.version not in chosen or not leaf.instances:
                    continue
                own = []
                for one in leaf.instances:
                    kernel = kernel_of(leaf.of(one))
                    name = names.setdefault(kernel_text(replace(kernel, name="kernel")), f"kernel{len(names)}")
                    kernels[name] = replace(kernel, name=name)
                    own.append(replace(one, kernel=name))
                leaves.append((f"{listed}: {tree.program.name}", f"leaf {leaf.id}", own))
    registers = oracle.registers_of_text(list(kernels.values()), TARGET)
    result: Groups = {}
    for key, name, instances in leaves:
        conditions = list(dict.fromkeys(condition_of(one).text() for one in instances))
        result.setdefault(key, {})[name] = [conditions, *(row_of(one, registers) for one in instances)]
    return result


def figures(programs: Mapping[str, Groups]) -> dict[str, object]:
    """Return the figures of merit over all programs."""
    groups = [
        (name, conditions, rows)
        for name, program in programs.items()
        for leaves in program.values()
        for conditions, *rows in leaves.values()
    ]
    several = [(conditions, rows) for _, conditions, rows in groups if len(rows) > 1]
    shared = [(condition, rows) for (condition, *others), rows in several if not others]
    kernels = {(name, row[-1]): (row[1], row[2], row[3]) for name, _, rows in groups for row in rows}
    estimates, _, truth = zip(*kernels.values(), strict=True)
    errors = merit.relative_errors(estimates, truth)
    rows = [row for _, _, own in groups for row in own]
    return {
        "instances": len(rows),
        "kernels": len(kernels),
        "leaves_with_several_instances": len(several),
        "polynomial": sum(not condition.split(" <= ")[0].isdigit() for condition, _ in shared),
        "one_number_for_all": sum(condition.split(" <= ")[0].isdigit() for condition, _ in shared),
        "a_number_each": len(several) - len(shared),
        "largest_bound_above_estimate": max(row[2] - row[1] for row in rows),
        "spearman": round(merit.spearman(estimates, truth), 3),
        "median_error": round(float(statistics.median(errors)), 3),
        "mean_error": round(float(statistics.fmean(errors)), 3),
        "estimate_below_ptxas": sum(e < t for e, t in zip(estimates, truth, strict=True)),
        "bound_below_ptxas_instances": sum(row[2] < row[3] for row in rows),
        "estimate_more_than_a_fifth_below": sum(1.2 * e < t for e, t in zip(estimates, truth, strict=True)),
        "instances_whose_bound_decides_otherwise_than_ptxas": {
            str(limit): sum((row[2] <= limit) != (row[3] <= limit) for row in rows) for limit in LIMITS
        },
    }


def text_of(result: Mapping[str, object]) -> str:
    """Return JSON with a line for each leaf."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\n {4,}", " ", text) + "\n"


def main(names: Sequence[str]) -> None:
    """Measure the named programs, or all; results of others stay as they are where some are named."""
    old = json.loads(RESULTS.read_text(encoding="utf-8"))["programs"] if names and RESULTS.exists() else {}
    programs = dict(old)
    for path in sorted([*ROOT.glob("examples/*.mf"), *ROOT.glob("bench/programs/*.mf")], key=lambda one: one.stem):
        if names and path.stem not in names:
            continue
        programs[path.stem] = measured(path)
        print(
            path.stem, sum(len(rows) for leaves in programs[path.stem].values() for rows in leaves.values()), flush=True
        )
    result = {"target": TARGET, "ptxas": oracle.version(), "figures": figures(programs), "programs": programs}
    RESULTS.write_text(text_of(result), encoding="utf-8")
    print(json.dumps(result["figures"], indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
