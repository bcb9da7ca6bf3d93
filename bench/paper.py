"""The tables of the comprehensive-optimization paper: its programs, and the order of its block formats.

    python bench/paper.py                 warp instructions and sectors of each format, by executing SASS
    python bench/paper.py transpose       only programs whose names contain one of these
    python bench/paper.py --write         also write results/paper.json and the tables of docs/papers.md
    python bench/paper.py --device        speed-up over serial C on a GPU, at the paper's sizes

The kernels are those of ``--order paper`` for an sm_80.  A format is a row, the granularity s a column, as in Tables
1 to 3; the paper's speed-up stands beside, where it gives one.  Without a device sizes are smaller (``sizes``), since
every instruction is executed; figures are per 32 elements of the result.  Results are compared with the program
compiled as C.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from instructions import ROOT, figures, serial
from rig import Device, missing_tools
from rig.device import argument
from rig.tools import WORK

RESULTS = ROOT / "bench" / "results" / "paper.json"
PAGE = ROOT / "docs" / "papers.md"
TYPE = {"matmul": np.float32}


@dataclass(frozen=True, slots=True)
class Table:
    """A program with its formats: ``formats`` are the values of ``names``, ``paper`` its speed-ups, by format and s."""

    name: str
    function: str
    arguments: str
    arrays: dict
    result: str
    elements: str
    sizes: dict
    large: dict
    names: str
    formats: tuple
    granularities: tuple
    paper: dict


MATMUL = {
    (16, 4): (95, 128), (32, 4): (128, 157), (64, 4): (111, 145), (8, 8): (131, 151), (16, 8): (164, 194),
    (32, 8): (163, 187), (64, 8): (94, 143),
}  # fmt: skip
JACOBI = {
    (16,): (3.340, 4.357, 4.975), (32,): (4.785, 5.252, 5.206), (64,): (5.927, 6.264, 6.412),
    (128,): (10.400, 8.952, 5.793), (256,): (6.859, 6.246, None),
}  # fmt: skip
TRANSPOSE = {
    (4, 32): (103.281, 96.284, 75.211), (8, 32): (111.971, 90.625, 85.422), (16, 32): (78.476, 68.894, 48.822),
    (32, 32): (45.084, 46.425, 32.824),
}  # fmt: skip
TABLES = (
    Table("reverse", "reverse", "N s B a c", {"a": "N", "c": "N"}, "c", "N", {"N": 2**18}, {"N": 2**24}, "B",
          ((16,), (32,), (64,), (128,), (256,), (512,)), (1, 2, 4), {}),
    Table("matadd", "matadd", "N B0 B1 a b c", {"a": "N N", "b": "N N", "c": "N N"}, "c", "N*N", {"N": 512},
          {"N": 2**13}, "B0 B1", ((4, 32), (8, 32), (16, 32), (8, 64)), (2,), {}),
    Table("jacobi1d", "jacobi1d", "T N s B a", {"a": "2*N"}, "a", "T*N", {"N": 2**15 + 2, "T": 4},
          {"N": 2**15 + 2, "T": 4}, "B", tuple(JACOBI), (2, 4, 8), JACOBI),
    Table("transpose", "transpose", "N s B0 B1 a c", {"a": "N N", "c": "N*N"}, "c", "N*N", {"N": 512}, {"N": 2**14},
          "B0 B1", tuple(TRANSPOSE), (2, 4, 8), TRANSPOSE),
    Table("matmul", "matmul", "n B0 ub1 s a b c", {"a": "n n", "b": "n n", "c": "n n"}, "c", "n*n", {"n": 256},
          {"n": 2**10}, "ub1 B0", tuple(MATMUL), (2, 4), MATMUL),
)  # fmt: skip


def optimized(name):
    """Run ``metafork optimize`` as the paper has it, and return its folder."""
    folder = WORK / f"{name}.paper.out"
    code = "from metafork.comprehensive.cli import main; main()"
    words = [sys.executable, "-c", code, "optimize", ROOT / "examples" / f"{name}.mf", "-o", folder]
    words += ["--order", "paper", "--machine", "sm_80", "--static=none"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return folder


def arrays_of(table, sizes):
    """Fresh arrays of a table's program, the same each time."""
    random, kind = np.random.default_rng(1), TYPE.get(table.name, np.int32)
    found = {}
    for name, text in table.arrays.items():
        extents = tuple(int(eval(one, {}, sizes)) for one in text.split())
        found[name] = (random.random(extents) if kind is np.float32 else random.integers(-99, 99, extents)).astype(kind)
    return found


def cells(table):
    """The values of each format and granularity; a program without s has one column."""
    for row in table.formats:
        for s in table.granularities:
            yield row, s, dict(zip(table.names.split(), row, strict=True)) | {"s": s}


def hit_ratio(launches):
    """The hit ratio of a cache that keeps what a block loads: the share of sectors that the block loaded before."""
    asked, new = (sum(one.counts[f"global_load_{which}"] for one in launches) for which in ("sectors", "new_sectors"))
    return round(1 - new / asked, 3) if asked else 0.0


def executed(table, device):
    """Warp instructions and sectors per 32 elements of the result, and the hit ratio, of each format."""
    folder, reference = optimized(table.name), serial(ROOT / "examples" / f"{table.name}.mf")
    include = (folder / "include",)
    module = device.load(folder / f"{table.name}.cu", host=folder / f"{table.name}_host.c", include=include)
    warps = eval(table.elements, {}, table.sizes) / 32
    for row, s, values in cells(table):
        got, want = arrays_of(table, table.sizes), arrays_of(table, table.sizes)
        device.serial(
            reference, table.function, *((table.sizes | values | want)[one] for one in table.arguments.split())
        )
        passed = ((table.sizes | values | got)[one] for one in table.arguments.split())
        launches = device.call(module, table.function, *passed)
        if not np.allclose(got[table.result], want[table.result], rtol=1e-4):
            raise RuntimeError(f"{table.name} {values}: another result than the serial program's")
        found = figures(launches) if launches else None
        yield (
            row,
            s,
            None
            if found is None
            else {
                "instructions": round(found["instructions"] / warps, 1),
                "sectors": round(found["sectors"] / warps, 1),
                "hits": hit_ratio(launches),
                "leaf": ", ".join(sorted({name.split("_leaf")[1] for name in found["kernels"]})),
            },
        )


def timed(table):
    """Speed-up over serial C of each format: arrays on the device, the best of three batches."""
    from times import Runtime, compiled

    folder, reference = optimized(table.name), serial(ROOT / "examples" / f"{table.name}.mf")
    library = compiled(folder / f"{table.name}.cu", folder / f"{table.name}_host.c", (folder / "include",))
    runtime, kernels = Runtime(library), ctypes.CDLL(str(library))
    for row, s, values in cells(table):
        host = arrays_of(table, table.large)
        passed = [(table.large | values | host)[one] for one in table.arguments.split()]
        began = time.perf_counter()
        Device.serial(reference, table.function, *passed)
        seconds = time.perf_counter() - began
        words = [argument(one) for one in passed]
        function = kernels[table.function]
        for array in host.values():
            kernels.metafork_keep(argument(array))
        yield row, s, {"speedup": round(seconds / runtime.seconds(partial(function, *words)), 1)}
        for array in host.values():
            kernels.metafork_drop(argument(array))


def markdown(table, rows, what):
    """A table in the paper's form: formats down, granularities across, the paper's speed-up in brackets."""
    by = {(tuple(row["format"]), row["s"]): row for row in rows}
    names = f"({table.names.replace(' ', ', ')})" if " " in table.names else table.names
    lines = [f"| {names} | " + " | ".join(f"s = {s}" for s in table.granularities) + " |"]
    lines.append("|---" * (len(table.granularities) + 1) + "|")
    for one in table.formats:
        texts = []
        for place, s in enumerate(table.granularities):
            row = by[one, s]
            figure = " / ".join(str(row[key]) for key in what) if what[0] in row else "serial"
            told = table.paper[one][place] if table.paper else None
            texts.append(figure if told is None else f"{figure} [{told:g}]")
        lines.append(f"| {', '.join(map(str, one))} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def agreement(table, rows):
    """Of pairs of formats and granularities, how many the paper and the instructions put in the same order."""
    told = [(table.paper[tuple(r["format"])][table.granularities.index(r["s"])], r.get("instructions")) for r in rows]
    known = [(paper, ours) for paper, ours in told if paper is not None and ours is not None]
    pairs = [(a, b) for i, a in enumerate(known) for b in known[i + 1 :] if a[0] != b[0] and a[1] != b[1]]
    return sum((a[0] > b[0]) == (a[1] < b[1]) for a, b in pairs), len(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--write", action="store_true", help="also write the figures and the tables of docs/papers.md")
    parser.add_argument("--device", action="store_true", help="time on this machine's GPU instead")
    arguments = parser.parse_args()
    chosen = [one for one in TABLES if not arguments.programs or any(part in one.name for part in arguments.programs)]
    if not arguments.device and (missing := missing_tools()):
        sys.exit(f"not on this machine: {', '.join(missing)}")
    found, pages = {}, []
    device = None if arguments.device else Device()
    what = ("speedup",) if arguments.device else ("instructions", "sectors", "hits")
    for table in chosen:
        measured = timed(table) if arguments.device else executed(table, device)
        rows = [{"format": row, "s": s, **(cell or {})} for row, s, cell in measured]
        sizes = table.large if arguments.device else table.sizes
        found[table.name] = {"sizes": sizes, "rows": rows}
        heading = f"**{table.name}**, {', '.join(f'{name} = {size}' for name, size in sizes.items())}"
        if table.paper and not arguments.device:
            same, pairs = agreement(table, rows)
            found[table.name] |= {"sameOrder": same, "pairs": pairs}
            heading += f"; {same} of {pairs} pairs in the paper's order"
        pages.append(f"{heading}\n\n{markdown(table, rows, what)}")
        print(pages[-1], flush=True)
    if arguments.write:
        target = RESULTS.with_name("paper_device.json") if arguments.device else RESULTS
        target.write_text(json.dumps({"format": "metafork-bench-paper", "programs": found}, indent=1) + "\n")
    if arguments.write and not arguments.device and Path(PAGE).exists():
        before, rest = PAGE.read_text().split("<!-- paper -->\n")
        after = rest.split("<!-- end of paper -->\n")[1]
        PAGE.write_text(f"{before}<!-- paper -->\n{chr(10).join(pages)}<!-- end of paper -->\n{after}")


if __name__ == "__main__":
    main()
