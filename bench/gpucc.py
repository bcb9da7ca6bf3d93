"""gpucc's eight optimizations, one after the other and each left out, over kernels of this project.

    python bench/gpucc.py                     print the tables (some minutes)
    python bench/gpucc.py matmul jacobi       only programs whose names contain one of these
    python bench/gpucc.py --write             also write results/gpucc.json and the tables of gpucc.md

A kernel is the leaf of a program with its arrays in shared memory, its loops over blocks and its common
subexpressions reduced as the default strategies do.  Its IR is made as gpucc's front end makes it: pointers do not
name the memory that they point into.  Each setting of LLVM is a process of its own.  Counted are the instructions of
the PTX, those of the SASS that ptxas makes of it for sm_80 (without padding), and registers.
"""

import argparse
import itertools
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from rig import cubin, missing_tools
from rig.tools import command, nvdisasm

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse, read_source
from metafork.ir.program import Version
from metafork.llvm.builder import pointer
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import external_functions, parsed
from metafork.llvm.switches import (
    ALIASES,
    DIVISIONS,
    INLINING,
    MEMORY_SPACES,
    POINTERS,
    REASSOCIATION,
    SPECULATION,
    STRENGTH,
    UNROLLING,
    ptx_without,
)
from metafork.llvm.targets import Nvptx
from metafork.lowering.lowering import lower
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.caching import with_cached_arrays
from metafork.strategies.cse import STRATEGIES as CSE
from metafork.strategies.granularity import STRATEGY as GRANULARITY
from metafork.strategies.strategy import Applied

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "gpucc.json"
PAGE = ROOT / "bench" / "gpucc.md"
TARGET = "sm_80"
COUNTS = ("ptx", "sass", "registers")
WITHOUT, EMITTED = "all but", "pointers that name their memory"

ORDER = (
    (UNROLLING, INLINING), (MEMORY_SPACES,), (POINTERS,), (STRENGTH,), (REASSOCIATION,), (SPECULATION,), (ALIASES,),
    (DIVISIONS,),
)  # fmt: skip
"""In which order they are added: that of the paper's Figure 10, with its straight-line optimizations taken apart."""

EVERY = tuple(name for group in ORDER for name in group)


class GenericPointers(Nvptx, frozen=True):
    """The device, with pointers into no memory in particular: what a front end for CUDA C++ makes."""

    def shared_base(self, place):
        """Return the address of the dynamic shared memory, cast to a generic one."""
        base = Nvptx.shared_base(self, place)
        with place.function.in_entry():
            return place.function.cast("addrspacecast", base, pointer())


@dataclass(frozen=True)
class Kernel:
    """A kernel: its program, and its IR with pointers that name no memory and with such that do."""

    name: str
    generic: str
    named: str


def settings():
    """Return what each setting is called and leaves out: cumulative ones, then all but one."""
    found = {"none": EVERY}
    for index, group in enumerate(ORDER):
        found[f"+ {' and '.join(group)}"] = tuple(name for later in ORDER[index + 1 :] for name in later)
    return found | {f"{WITHOUT} {' and '.join(group)}": group for group in ORDER}


def kernel_forms(chosen):
    """Yield the kernel of each schedule of examples/ and bench/programs/ that LLVM has exact code for, and its name."""
    paths = [path for folder in ("examples", "bench/programs") for path in sorted((ROOT / folder).glob("*.mf"))]
    for path in paths:
        if chosen and not any(part in path.stem for part in chosen):
            continue
        for schedule in parse(read_source(path)).schedules:
            version = Version(with_cached_arrays(schedule.program, Analyses()).program)
            for strategy in (GRANULARITY, *CSE):
                result = strategy.apply(version, Analyses())
                version = result.version if isinstance(result, Applied) else version
            kernel = lower(version.program, "kernel")
            if not external_functions(parsed(module_text(kernel))):
                yield schedule.program.name, kernel


def kernels(chosen):
    """Yield the IR of the same."""
    for name, kernel in kernel_forms(chosen):
        generic = module_text(kernel, GenericPointers(global_space=0, shared_space=0))
        yield Kernel(name, generic, module_text(kernel))


SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?!\s|NOP\b)", re.MULTILINE)


class Counter:
    """Counts what ptxas makes of PTX; equal texts are assembled once."""

    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def counts(self, ptx):
        """The instructions of the text, those of its SASS, and its registers."""
        if ptx not in self.known:
            source, binary = self.folder / "kernel.ptx", self.folder / "kernel.cubin"
            source.write_text(ptx)
            command("ptxas", f"-arch={TARGET}", "-O3", source, "-o", binary)
            (kernel,) = parse_ptx(ptx).kernels()
            self.known[ptx] = {
                "ptx": len(flatten(kernel).instructions),
                # A kernel ends with a jump to itself, which nothing reaches.
                "sass": len(SASS.findall(command(nvdisasm(), binary))) - 1,
                "registers": cubin.kernels(binary)["kernel"].registers,
            }
        return self.known[ptx]


def measure(chosen):
    """Return the counts of all kernels by setting."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(Path(folder))
        for kernel in kernels(chosen):
            row = {name: counter.counts(ptx_without(left, kernel.generic)) for name, left in settings().items()}
            row[EMITTED] = counter.counts(ptx_without((), kernel.named))
            rows.append({"kernel": kernel.name, "settings": row})
            print(
                kernel.name, *(row["none"][count] for count in COUNTS), "to", *(row[EMITTED][count] for count in COUNTS)
            )
    return rows


def against(rows, setting, base, count):
    """A setting's counts over another's: the geometric mean, how many kernels have fewer, and how many have more."""
    ratios = [row["settings"][setting][count] / row["settings"][base][count] for row in rows]
    mean = exp(sum(map(log, ratios)) / len(ratios))
    return mean, sum(one < 1 for one in ratios), sum(one > 1 for one in ratios)


def table(rows):
    """The cumulative settings, each beside the one before and beside none; then what is lost without each."""
    lines = [
        "| setting | PTX | SASS | registers | PTX to none | SASS to none | registers to none |",
        "|---|---|---|---|---|---|---|",
    ]
    names = list(settings())
    steps = [name for name in names if not name.startswith(WITHOUT)]
    for before, name in itertools.pairwise([*steps, EMITTED]):
        lines.append(_line(rows, name, (before, "none")))
    lines += ["", "| setting, to all | PTX | SASS | registers |", "|---|---|---|---|"]
    lines += [_line(rows, name, (steps[-1],)) for name in names if name.startswith(WITHOUT)]
    return "\n".join(lines) + "\n"


def _line(rows, name, bases):
    cells = []
    for base in bases:
        for count in COUNTS:
            mean, fewer, more = against(rows, name, base, count)
            cells.append(f"{mean:.3f} ({fewer} less, {more} more)" if base != "none" else f"{mean:.3f}")
    return f"| {name} | {' | '.join(cells)} |"


def small_kernels():
    """A table of one small kernel for each optimization: what it costs to leave it out.

    They are those of the paper's figures, in ``tests/metafork/llvm/switched_kernels.py``; one thread runs each.
    """
    from tests.metafork.llvm.switched_kernels import ALL, run

    lines = ["| optimization | executed | without it | generic accesses | without it |", "|---" * 5 + "|"]
    for one in ALL:
        launches = [run(text, one.ir, one.calls[0])[1] for text in one.texts()]
        cells = [sum(launch.executed.values()) for launch in launches]
        cells += [sum(n for key, n in launch.lanes.items() if key.endswith(".generic")) for launch in launches]
        lines.append(f"| {one.optimization} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--write", action="store_true", help="write figures and tables")
    parser.add_argument("--small", action="store_true", help="only the table of a small kernel for each optimization")
    arguments = parser.parse_args()
    missing = missing_tools()
    if missing:
        sys.exit(f"bench/gpucc.py needs {', '.join(missing)}")
    if arguments.small:
        sys.path.insert(0, str(ROOT))
        print(small_kernels())
        return
    rows = measure(arguments.programs)
    print(table(rows))
    if arguments.write and not arguments.programs:
        document = {"format": "metafork-bench-gpucc", "version": 1, "architecture": TARGET, "kernels": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        before, rest = PAGE.read_text().split("<!-- table -->\n")
        PAGE.write_text(
            f"{before}<!-- table -->\n{table(rows)}<!-- end of table -->\n{rest.split('<!-- end of table -->')[1]}"
        )


if __name__ == "__main__":
    main()
