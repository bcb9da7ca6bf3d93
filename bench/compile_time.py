"""Source to cubin: a leaf by nvcc from its CUDA text, and by LLVM and ptxas from its kernel form, in turn.

    python bench/compile_time.py              27 kernels, three pairs each (some minutes)
    python bench/compile_time.py --write      also write results/compile_time.json

Both make the two kernels of a leaf (``metafork.printing.launches``) for sm_80 without contraction.  nvcc is one process
that makes a cubin.  LLVM runs in this process, as in `metafork optimize` (its import is not in the times), from the
kernel form to PTX, and two processes of ptxas assemble it.  Pairs alternate in order.  Times are those of the
processor, of this process and of its children, since other programs run here too; wall time is written beside it.
"""

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from math import exp, log
from pathlib import Path

from gpucc import ROOT, TARGET, kernel_forms
from rig import missing_tools
from rig.tools import command

from metafork.comprehensive.emit.leaf_code import ptx_code
from metafork.ir.ir_strategies import WHOLE
from metafork.printing.cuda import kernel_text

RESULTS = ROOT / "bench" / "results" / "compile_time.json"
INCLUDE = ROOT / "metafork" / "runtime" / "include"
PAIRS = 3


def by_nvcc(kernel, folder):
    """Make a cubin of the CUDA text."""
    source = folder / "kernel.cu"
    source.write_text('#include "metafork/device.h"\n' + kernel_text(kernel))
    command(
        "nvcc", f"-arch={TARGET}", "-O3", "-fmad=false", f"-I{INCLUDE}", "-cubin", "-o", folder / "nvcc.cubin", source
    )


def by_llvm(kernel, folder):
    """Make cubins of LLVM's PTX."""
    _, large, whole = ptx_code(kernel, (WHOLE,), TARGET)
    for name, text in (("large", large), ("whole", whole)):
        source = folder / f"{name}.ptx"
        source.write_text(text)
        command("ptxas", f"-arch={TARGET}", "-O3", "-o", folder / f"{name}.cubin", source)


def processor():
    """Seconds of the processor that this process and its children have had."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(work, kernel, folder):
    """Return what a way takes: seconds of the processor, and of the clock."""
    start, used = time.perf_counter(), processor()
    work(kernel, folder)
    return processor() - used, time.perf_counter() - start


def measure(kernel, folder):
    """Return the median times of both ways, over pairs in alternating order."""
    ways = {"nvcc": by_nvcc, "llvm": by_llvm}
    times = {name: [] for name in ways}
    for pair in range(PAIRS):
        for name in sorted(ways, reverse=pair % 2 == 0):
            times[name].append(timed(ways[name], kernel, folder))
    return {
        name: {
            "processor": round(statistics.median(one for one, _ in found), 4),
            "wall": round(statistics.median(one for _, one in found), 4),
        }
        for name, found in times.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--write", action="store_true", help="write figures")
    arguments = parser.parse_args()
    missing = [name for name in missing_tools() if name in ("nvcc", "ptxas")]
    if missing:
        sys.exit(f"bench/compile_time.py needs {', '.join(missing)}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, kernel in kernel_forms(arguments.programs):
            by_llvm(kernel, Path(folder))  # what LLVM makes once a process is no time of a kernel
            rows.append({"kernel": name, **measure(kernel, Path(folder))})
            nvcc, llvm = (rows[-1][way]["processor"] for way in ("nvcc", "llvm"))
            print(f"{name}: nvcc {nvcc:.3f} s, LLVM {llvm:.3f} s, {llvm / nvcc:.2f}", flush=True)
    for key in ("processor", "wall"):
        ratios = [row["llvm"][key] / row["nvcc"][key] for row in rows]
        mean = exp(sum(map(log, ratios)) / len(ratios))
        print(f"{key}: geometric mean {mean:.3f}, {min(ratios):.2f} to {max(ratios):.2f}, of {len(rows)} kernels")
    if arguments.write and not arguments.programs:
        document = {"format": "metafork-bench-compile-time", "version": 1, "architecture": TARGET, "kernels": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
