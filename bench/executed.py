"""What a warp executes of LLVM's text beside nvcc's: the same leaves at the same shapes, by executing their SASS.

    python bench/executed.py                 all programs of speed_cases.py at their first shape (some twenty minutes)
    python bench/executed.py matmul --write  only some; --write puts them into results/executed.json and gpucc.md
    python bench/executed.py --suites        programs in the shape of gpucc's suites: Rodinia, SHOC, Tensor

A program is optimized once.  Its leaves are then compiled twice for sm_80, both times without contraction: by nvcc
from their CUDA text, and by LLVM from their IR to PTX that ptxas assembles.  Both run on the rig from the program's
own drop-in function; results are compared with the program compiled as C.
"""

import argparse
import json
import sys
import time
from math import exp, log
from pathlib import Path

import numpy as np
from instructions import PLAIN, Bench, figures, serial
from rig import missing_tools
from rig.tools import WORK
from speed_cases import CASES
from suite_programs import PROGRAMS

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets.cuda import Cuda
from metafork.comprehensive.emit.targets.ptx import Ptx
from metafork.comprehensive.emit.targets.target import NoCodeError
from metafork.comprehensive.optimize import optimize

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "bench" / "gpucc.md"


class Set:
    """Programs, where their figures are kept, and the marks around their table."""

    def __init__(self, name, programs):
        self.programs, self.results = programs, ROOT / "bench" / "results" / f"{name}.json"
        self.marks = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"

    def known(self):
        """The figures so far, by name."""
        rows = json.loads(self.results.read_text())["programs"] if self.results.exists() else []
        return {row["name"]: row for row in rows}

    def save(self, known):
        """Write the figures of all programs, and their table into the page."""
        rows = [known[one.name] for one in self.programs if one.name in known]
        document = {"format": "metafork-bench-executed", "version": 1, "architecture": "sm_80", "programs": rows}
        self.results.write_text(json.dumps(document, indent=1) + "\n")
        first, last = self.marks
        before, rest = PAGE.read_text().split(first)
        PAGE.write_text(before + first + table(rows) + last + rest.split(last)[1])


class Llvm(Cuda, frozen=True):
    """The back end for CUDA with every kernel as PTX."""

    def leaf_code(self, variant, analyses):
        """Return the code that the PTX back end has of a variant."""
        return Ptx(architecture="sm_80").leaf_code(variant, analyses)


def measure(bench, case):
    """Return the figures of one program, of nvcc's text and of LLVM's."""
    source = ROOT / case.source
    reference, shape = serial(source), case.shapes[0]
    result = optimize(source, reassociate=bool(case.options))
    found = {"name": case.name, "shape": shape}
    for name, target in (("nvcc", Cuda()), ("llvm", Llvm())):
        folder = WORK / f"{source.stem}.{name}.out"
        write_outputs(
            result, folder, target=target, code_of=lambda one, target=target: target.leaf_code(one, result.analyses)
        )
        want = case.arrays(np.random.default_rng(1), case.sizes)
        values = case.sizes | shape | want
        bench.device.serial(reference, case.function, *(values[one] for one in case.arguments.split()))
        launches, ulp = bench.ours(case, folder / f"{source.stem}.cu", PLAIN, shape, want)
        found[name] = figures(launches) | {"ulp": ulp}
    return found


def ratio(row, key="instructions"):
    """LLVM's over nvcc's."""
    return row["llvm"][key] / row["nvcc"][key]


def line(row):
    """A row of the table."""
    nvcc, llvm = row["nvcc"], row["llvm"]
    thousands = [f"{one['instructions'] / 1000:.0f} k" for one in (nvcc, llvm)]
    shape = " ".join(f"{key}={value}" for key, value in row["shape"].items())
    classes = sorted({*nvcc["classes"], *llvm["classes"]})
    more = sorted(classes, key=lambda one: nvcc["classes"].get(one, 0) - llvm["classes"].get(one, 0))[:3]
    words = ", ".join(
        f"{one} {(llvm['classes'].get(one, 0) - nvcc['classes'].get(one, 0)) / nvcc['instructions']:+.1%}"
        for one in more
    )
    registers = f"{nvcc['registers']} / {llvm['registers']}"
    return f"| {row['name']} | {shape} | {' | '.join(thousands)} | **{ratio(row):.3f}** | {registers} | {words} |"


HEAD = "| program | shape | nvcc | LLVM | ratio | registers | most more of |\n|---|---|---|---|---|---|---|"


def table(rows):
    """The table, and the geometric mean of its ratios."""
    mean = exp(sum(log(ratio(row)) for row in rows) / len(rows))
    return "\n".join([HEAD, *map(line, rows), "", f"Geometric mean of {len(rows)}: {mean:.3f}."]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--table", action="store_true", help="only write the table of gpucc.md from the figures")
    parser.add_argument("--write", action="store_true", help="write figures; other programs keep theirs")
    parser.add_argument("--suites", action="store_true", help="the programs of suite_programs.py instead")
    arguments = parser.parse_args()
    programs = Set("suites", PROGRAMS) if arguments.suites else Set("executed", CASES)
    known = programs.known()
    if arguments.table:
        programs.save(known)
        return
    missing = missing_tools()
    if missing:
        sys.exit(f"bench/executed.py needs {', '.join(missing)}")
    bench, failed = Bench(), []
    print(HEAD)
    for case in programs.programs:
        if arguments.programs and not any(part in case.name for part in arguments.programs):
            continue
        start = time.perf_counter()
        try:
            row = measure(bench, case)
        except (RuntimeError, NoCodeError) as error:
            failed.append(case.name)
            print(f"{case.name}: {error}", file=sys.stderr)
            continue
        print(line(row), f" {time.perf_counter() - start:.0f} s", flush=True)
        known[case.name] = row
        if arguments.write:
            programs.save(known)
    if known:
        print(table(list(known.values())).rpartition("\n\n")[2])
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
