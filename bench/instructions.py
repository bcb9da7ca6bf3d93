"""Instructions of our kernels beside an expert's, counted by executing their SASS: no GPU, the same on every machine.

    python bench/instructions.py                    print the figures of all programs (about ten minutes)
    python bench/instructions.py matmul transp      only programs whose names contain one of these
    python bench/instructions.py --write            also write results/instructions.json and the table of docs/speed.md
    python bench/instructions.py --static           also kernels compiled for the values of the shape

A program is optimized, its CUDA compiled by nvcc for sm_80, and its own drop-in function called: the dispatcher chooses
and shapes the launches as on a GPU of that kind.  Of the block shapes of a program the one with the fewest warp
instructions counts, of those that reach the goal where there are such.  Results are compared with the program compiled
as C: with -fmad=false bit for bit (or in units in the last place, where it calls other functions of math.h than sqrt),
with contraction allowed to 1e-5 of the largest.
"""

import argparse
import ctypes
import fcntl
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rig import Device, missing_tools
from rig.tools import WORK, command
from speed_cases import CASES
from speed_reasons import REASONS

from metafork.frontend import parse, read_source
from metafork.ir.static_values import static_parameters

ROOT = Path(__file__).parents[1]

RESULTS = ROOT / "bench" / "results" / "instructions.json"
PAGE = ROOT / "docs" / "speed.md"
EXPERTS = ROOT / "bench" / "experts"
FUSED, PLAIN = (), ("-fmad=false",)
CLOSE = 1e-5
FAR = 1.5
"""Ratios above it are explained where there is no goal."""
SECTORS = 1.02
"""What our kernel may take of the expert's sectors."""


class WrongResultError(RuntimeError):
    """A kernel computed something else than the serial program."""


def serial(source):
    """Compile a program as C with its annotations defined away, and load it."""
    target = WORK / f"{source.stem}.serial.so"
    words = ("-I", ROOT / "metafork/runtime/include", "-include", "metafork.h", "-include", "assert.h")
    options = ("-std=gnu11", "-O2", "-w", "-ffp-contract=off", "-shared", "-fPIC")
    command("gcc", *options, *words, "-x", "c", source, "-x", "none", "-lm", "-o", target)
    return ctypes.CDLL(str(target))


def optimized(source, static=None, options=()):
    """Run ``metafork optimize``, with an instance for these values where some are given, and return its folder."""
    values = {} if static is None else static
    folder = WORK / "".join([source.stem, *(f".{name}{value}" for name, value in values.items()), ".out"])
    code = "from metafork.comprehensive.cli import main; main()"
    words = [sys.executable, "-c", code, "optimize", source, "-o", folder, *options]
    words += [f"--static={name}={value}" for name, value in values.items()] or ["--static=none"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return folder


def instance_kernels(folder):
    """The kernels of a folder that are compiled for values."""
    (tree,) = folder.glob("*.tree.json")
    leaves = [leaf for schedule in json.loads(tree.read_text())["schedules"] for leaf in schedule["leaves"]]
    return {one["kernel"] for leaf in leaves for one in leaf["variants"] if "values" in one}


def difference(got, want):
    """The largest difference in units in the last place of the serial result (integers: 0 or infinite)."""
    if got.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else float("inf")
    if np.array_equal(got, want):
        return 0.0
    return float(np.abs((got.astype(np.float64) - want) / np.spacing(np.abs(want))).max())


def check(case, got, want, exact, who):
    """Compare results; return the largest difference in units in the last place, or raise `WrongResultError`."""
    worst = 0.0
    for name in case.results:
        ulp = difference(got[name], want[name])
        worst = max(worst, ulp)
        near = float(np.abs(got[name].astype(np.float64) - want[name]).max()) <= CLOSE * float(np.abs(want[name]).max())
        if not (ulp <= case.ulp if exact else near):
            raise WrongResultError(f"{case.name}: {who} differs from the serial program in {name} by {ulp:g} ulp")
    return worst


# nvcc gives an unnamed namespace a number that depends on the folder.
_UNNAMED = re.compile(r"_GLOBAL__N__[0-9a-f]{8}_")


def figures(launches):
    """The counts of all launches of a call together; registers are the most, occupancy the least."""
    counts = [launch.counts for launch in launches]
    mix = {}
    for one in counts:
        for key, value in one["mix"].items():
            mix[key] = mix.get(key, 0) + value
    total = {key: sum(one[key] for one in counts) for key in counts[0] if isinstance(counts[0][key], int)}
    return {
        "kernels": sorted({_UNNAMED.sub("_GLOBAL__N__", launch.kernel) for launch in launches}),
        "launches": len(launches),
        "block": launches[-1].block,
        "registers": max(launch.registers for launch in launches),
        "stackBytes": max(launch.stack_bytes for launch in launches),
        "sharedBytes": max(launch.shared_bytes for launch in launches),
        "occupancy": min(launch.occupancy for launch in launches),
        "instructions": total["warp_instructions"],
        "classes": {key: value for key, value in sorted(mix.items()) if value},
        "sectors": total["global_load_sectors"] + total["global_store_sectors"],
        "wavefronts": total["shared_load_wavefronts"] + total["shared_store_wavefronts"],
        "barriers": total["barriers"],
        "localRequests": total["local_requests"],
    }


class Bench:
    """Compiled programs and experts, kept for the programs that follow."""

    def __init__(self):
        self.device = Device()
        self._modules = {}

    def module(self, source, flags, host=None, include=()):
        key = (source, source.stat().st_mtime_ns, flags)
        if key not in self._modules:
            self._modules[key] = self.device.load(source, host=host, include=include, flags=flags)
        return self._modules[key]

    def run(self, case, module, function, names, shape, want, exact, who, on_device):
        """Call a function on fresh arrays, check what it computed and return its launches and the difference."""
        arrays = case.arrays(np.random.default_rng(1), case.sizes)
        values = case.sizes | shape | arrays
        launches = self.device.call(module, function, *(values[name] for name in names.split()), on_device=on_device)
        if not launches:
            raise WrongResultError(f"{case.name}: {who} launched nothing at {shape}")
        return launches, check(case, arrays, want, exact, who)

    def ours(self, case, source, flags, shape, want):
        host, include = source.parent / f"{source.stem}_host.c", (source.parent / "include",)
        module = self.module(source, flags, host, include)
        names = case.arguments
        exact = flags == PLAIN and not case.options
        return self.run(case, module, case.function, names, shape, want, exact, "our kernel", False)

    def expert(self, case, flags, shape, want):
        module = self.module(EXPERTS / case.expert, flags)
        exact = flags == PLAIN and not case.other_order
        function, names = case.expert_function, case.expert_arguments
        return figures(self.run(case, module, function, names, shape, want, exact, "the expert's", True)[0])

    def measure(self, case, static):
        """All figures of one program."""
        source = ROOT / case.source
        reference = serial(source)
        folder = optimized(source, options=case.options)
        text = folder / f"{source.stem}.cu"
        tried = []
        for shape in case.shapes:
            want = self._serial(case, reference, shape)
            launches, _ = self.ours(case, text, FUSED, shape, want)
            expert = self.expert(case, FUSED, shape, want) if case.expert_has_shape or not tried else tried[0][1]
            tried.append((figures(launches), expert, shape, want))
        best, expert, shape, want = min(tried, key=lambda one: _cost(case, *one[:2]))
        plain, ulp = self.ours(case, text, PLAIN, shape, want)
        row = {
            "name": case.name,
            "source": case.source,
            "sizes": {key: value if isinstance(value, int) else float(value) for key, value in case.sizes.items()},
            "goal": case.goal,
            "bound": round(case.bound),
            "shape": shape,
            "differenceUlp": ulp,
            "ours": best,
            "expert": expert,
            "oursUnfused": figures(plain),
            "expertUnfused": self.expert(case, PLAIN, shape, want),
            "shapes": [_tried(got, one, of) for got, of, one, _ in tried],
        }
        if static:
            row |= self._instances(case, reference, {str(one): of for _, of, one, _ in tried})
        return row

    def _instances(self, case, reference, experts):
        """The figures of kernels compiled for the values of the shape where they run, at the best of the shapes."""
        source, tried = ROOT / case.source, []
        unit = parse(read_source(source), reassociate=bool(case.options))
        names = set.union(*(set(static_parameters(one.program)) for one in unit.schedules))
        if not names & case.shapes[0].keys():
            return {}
        for shape in case.shapes:
            values = {name: value for name, value in shape.items() if name in names}
            folder = optimized(source, values, case.options)
            text = folder / f"{source.stem}.cu"
            want = self._serial(case, reference, shape)
            launches, _ = self.ours(case, text, FUSED, shape, want)
            constant = instance_kernels(folder)
            if not all(launch.kernel.removesuffix("_large") in constant for launch in launches):
                raise WrongResultError(f"{case.name}: no kernel for the values of {shape} ran")
            tried.append((figures(launches), shape, text, want))
        best, shape, text, want = min(tried, key=lambda one: _cost(case, one[0], experts[str(one[1])]))
        plain, _ = self.ours(case, text, PLAIN, shape, want)
        shapes = [_tried(got, one, experts[str(one)]) for got, one, _, _ in tried]
        return {
            "staticShape": shape,
            "expertStatic": experts[str(shape)],
            "oursStatic": best,
            "oursStaticUnfused": figures(plain),
            "staticShapes": shapes,
        }

    def _serial(self, case, reference, shape):
        arrays = case.arrays(np.random.default_rng(1), case.sizes)
        values = case.sizes | shape | arrays
        self.device.serial(reference, case.function, *(values[name] for name in case.arguments.split()))
        return arrays


def _cost(case, figures, expert):
    """By what shapes are compared: whether the goal is missed, then warp instructions over the expert's."""
    reached = case.goal is None or (
        figures["instructions"] <= case.goal * expert["instructions"]
        and figures["sectors"] <= SECTORS * expert["sectors"]
    )
    return not reached, figures["instructions"] / expert["instructions"]


def _tried(figures, shape, expert):
    both = {key: figures[key] for key in ("instructions", "sectors")}
    return {"shape": shape, **both, "expert": {key: expert[key] for key in both}}


def ratio(row, key="instructions", ours="ours", expert="expert"):
    """Ours over the expert's."""
    return row[ours][key] / row[expert][key] if row[expert][key] else None


def at_shapes(row, key="instructions"):
    """Ours over the expert's at the median of the shapes, and at the one that is listed first."""
    found = [one[key] / one["expert"][key] for one in row["shapes"]]
    return statistics.median(found), found[0]


def misses(row, ours="ours"):
    """What of the goal a row does not reach, in words; empty where it is reached or there is none."""
    found = []
    if row["goal"] is not None and ratio(row, ours=ours) > row["goal"]:
        found.append(f"instructions {ratio(row, ours=ours):.2f} > {row['goal']:g}")
    if row["goal"] is not None and ratio(row, "sectors", ours=ours) > SECTORS:
        found.append(f"sectors {ratio(row, 'sectors', ours=ours):.2f} > {SECTORS:g}")
    return found


def line(row):
    """A row of the table."""
    ours, expert = row["ours"], row["expert"]
    thousands = [f"{figure['instructions'] / 1000:.0f} k" for figure in (ours, expert)]
    shape = _shape_text(row["shape"])
    leaves = ", ".join(re.sub(r".*_leaf", "", name) for name in ours["kernels"])
    pairs = [f"{ours[key]} / {expert[key]}" for key in ("registers", "barriers")]
    resident = f"{ours['occupancy']:.0%} / {expert['occupancy']:.0%}"
    memory = [f"{ours[key] / 1000:.0f} / {expert[key] / 1000:.0f}" for key in ("sectors", "wavefronts")]
    goal = "" if row["goal"] is None else f"{row['goal']:g}"
    constants = f"{ratio(row, ours='oursStatic', expert='expertStatic'):.2f}" if "oursStatic" in row else ""
    unfused = f"{ratio(row, ours='oursUnfused', expert='expertUnfused'):.2f}"
    bound = f"{expert['instructions'] / row['bound']:.2f}"
    others = " / ".join(f"{one:.2f}" for one in at_shapes(row))
    cells = [row["name"], shape, leaves, *thousands, f"**{ratio(row):.2f}**", others, goal, unfused, constants, bound]
    return "| " + " | ".join([*cells, pairs[0], resident, *memory, pairs[1]]) + " |"


HEAD = (
    "| program | shape | leaf | ours | expert's | ratio | median / first shape | goal | ratio, `-fmad=false` "
    "| ratio, static instance | expert's / bound | registers | occupancy | sectors, k | wavefronts, k | barriers |\n"
    + "|---" * 16
    + "|"
)


def table(rows):
    """The table, and below it the reason of each figure above its goal."""
    missed = [
        f"- **{row['name']}** ({', '.join(misses(row))}): {REASONS.get(row['name'], 'not looked into')}"
        for row in rows
        if misses(row)
    ]
    lines = [HEAD, *(line(row) for row in rows), ""]
    lines += ["Above the goal:", "", *missed] if missed else ["No program is above its goal."]
    far = [
        f"- **{row['name']}** ({ratio(row):.2f}): {REASONS.get(row['name'], 'not looked into')}"
        for row in rows
        if row["goal"] is None and ratio(row) > FAR
    ]
    lines += ["", f"Without a goal, and above {FAR:g} of the expert's instructions:", "", *far] if far else []
    above = [
        f"{row['name']} ({', '.join(misses(row, 'oursStatic'))}; {_shape_text(row['staticShape'])})"
        for row in rows
        if "oursStatic" in row and misses(row, "oursStatic")
    ]
    lines += ["", _means([row for row in rows if row["goal"] is not None])]
    lines += [
        "",
        "Sectors are those of kernels without constants. Static instances reach the whole goal at one of their",
        f"shapes, but for: {', '.join(above)}." if above else "shapes.",
    ]
    return "\n".join(lines) + "\n"


def _means(rows):
    """A sentence with the geometric means of the ratios at the best, the median and the first shape."""
    parts = []
    for what, key in (("Instructions", "instructions"), ("Sectors", "sectors")):
        each = zip(*((ratio(row, key), *at_shapes(row, key)) for row in rows), strict=True)
        best, median, first = (statistics.geometric_mean(one) for one in each)
        parts.append(
            f"{what}: {best:.2f} at the best shape, {median:.2f} at the median, {first:.2f} at the first listed."
        )
    return "Geometric means of the programs with a goal. " + " ".join(parts)


def _shape_text(shape):
    return " ".join(f"{key}={value}" for key, value in shape.items())


def save(row):
    """Put a row into the figures, and the figures' table into docs/speed.md; other processes may do the same."""
    with (WORK / "instructions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = {row["name"]: row for row in json.loads(RESULTS.read_text())["programs"]} if RESULTS.exists() else {}
        known[row["name"]] = row
        rows = [known[case.name] for case in CASES if case.name in known]
        document = {"format": "metafork-bench-instructions", "version": 1, "architecture": "sm_80", "programs": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        write_table()


def write_table():
    """Put the table of the figures into docs/speed.md."""
    before, rest = PAGE.read_text().split("<!-- table -->\n")
    after = rest.split("<!-- end of table -->\n")[1]
    rows = json.loads(RESULTS.read_text())["programs"]
    PAGE.write_text(f"{before}<!-- table -->\n{table(rows)}<!-- end of table -->\n{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--write", action="store_true", help="write figures and table; other programs keep theirs")
    parser.add_argument("--static", action="store_true", help="also kernels compiled for the shape's values")
    parser.add_argument("--list", action="store_true", help="print the names of the programs")
    parser.add_argument("--table", action="store_true", help="only write the table of docs/speed.md from the figures")
    arguments = parser.parse_args()
    chosen = [case for case in CASES if not arguments.programs or any(part in case.name for part in arguments.programs)]
    if arguments.list:
        print("\n".join(case.name for case in chosen))
        return
    if arguments.table:
        write_table()
        return
    missing = missing_tools()
    if missing:
        sys.exit(f"bench/instructions.py needs {', '.join(missing)}")
    bench, rows, failed = Bench(), [], []
    print(HEAD)
    for case in chosen:
        start = time.perf_counter()
        try:
            rows.append(bench.measure(case, arguments.static))
        except RuntimeError as error:
            failed.append(case.name)
            print(f"{case.name}: {error}", file=sys.stderr)
            continue
        if arguments.write:
            save(rows[-1])
        print(line(rows[-1]), f" {time.perf_counter() - start:.0f} s", "; ".join(misses(rows[-1])), flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
