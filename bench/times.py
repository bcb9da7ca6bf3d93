"""Times of our kernels beside an expert's on a GPU: needs one, nvcc and its runtime.

    python bench/times.py                    all programs of speed_cases.py at their large sizes
    python bench/times.py matmul transp      only programs whose names contain one of these
    python bench/times.py --write            also write results/times.json and the table of docs/speed.md

Our side is what a user's program does: the drop-in function is called with arrays that stay on the device
(`metafork_keep`), and the dispatcher chooses and shapes the launches.  Both sides are compiled by nvcc -O3 with
contraction allowed, and called for a tenth of a second, three times; the least mean counts.  Each block shape is tried,
and the best one once more with kernels compiled for its values.  Results of one call are compared with the
expert's, to 1e-4 of the largest.
"""

import argparse
import ctypes
import json
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from instructions import EXPERTS, PAGE, ROOT, optimized
from rig.device import argument
from rig.tools import WORK, command
from speed_cases import CASES, extents

from metafork.frontend import parse, read_source
from metafork.ir.static_values import static_parameters

RESULTS = ROOT / "bench" / "results" / "times.json"
CLOSE = 1e-4
SECONDS, BATCHES = 0.1, 3
TO_DEVICE, TO_HOST = 1, 2


def compiled(source, host=None, include=()):
    """Compile CUDA, and C of its host, for the device of this machine into a library; return its path."""
    target = (WORK / "times" / (f"expert.{source.stem}.out" if host is None else source.parent.name)).with_suffix(".so")
    target.parent.mkdir(parents=True, exist_ok=True)
    places = [f"-I{path}" for path in (source.parent, *include)]
    objects = [target.with_suffix(".o")]
    nvcc = ("nvcc", "-O3", "-std=c++17", "-arch=native", "-Xcompiler", "-fPIC")
    command(*nvcc, *places, "-c", source, "-o", objects[0])
    if host is not None:
        objects.append(target.with_suffix(".host.o"))
        command("gcc", "-std=gnu11", "-O2", "-w", "-fPIC", *places, "-c", host, "-o", objects[1])
    command("nvcc", "-shared", "-cudart", "shared", "-Xlinker", "-Bsymbolic", *objects, "-o", target)
    return target


def ours(case, static=None):
    """Optimize and compile a program; with an instance for these values where some are given."""
    folder = optimized(ROOT / case.source, static, case.options)
    name = Path(case.source).stem
    return compiled(folder / f"{name}.cu", folder / f"{name}_host.c", (folder / "include",))


class Runtime:
    """CUDA's runtime, as far as it is needed here."""

    def __init__(self, library):
        (found,) = set(re.findall(r"=> (\S*libcudart\S*)", command("ldd", library)))
        self.library = ctypes.CDLL(found, mode=ctypes.RTLD_GLOBAL)

    def check(self, error):
        if error != 0:
            self.library.cudaGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(self.library.cudaGetErrorString(error).decode())

    def finish(self):
        self.check(self.library.cudaDeviceSynchronize())

    def array(self, host):
        """Return a copy of an array on the device."""
        pointer = ctypes.c_void_p()
        self.check(self.library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(host.nbytes)))
        source = host.ctypes.data_as(ctypes.c_void_p)
        self.check(self.library.cudaMemcpy(pointer, source, ctypes.c_size_t(host.nbytes), TO_DEVICE))
        return pointer

    def fetch(self, pointer, host):
        target = host.ctypes.data_as(ctypes.c_void_p)
        self.check(self.library.cudaMemcpy(target, pointer, ctypes.c_size_t(host.nbytes), TO_HOST))

    def seconds(self, call):
        """The least mean time of a call, over some batches that each take a while."""
        call()
        calls = max(1, int(SECONDS / self._mean(call, 1)))
        return min(self._mean(call, calls) for _ in range(BATCHES))

    def _mean(self, call, calls):
        self.finish()
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        self.finish()
        return (time.perf_counter() - begun) / calls


class Program:
    """One program on the device: sizes, arrays, the expert's result and time, at the first shape where it has one."""

    def __init__(self, case, expert):
        runtime = Runtime(expert)
        self.case, self.runtime = case, runtime
        self.sizes = case.sizes | case.large
        self.arrays = case.arrays(np.random.default_rng(1), self.sizes)
        self.want, self.expert_seconds = self._expert(expert)

    def _expert(self, library):
        library = ctypes.CDLL(str(library))
        names = self.case.expert_arguments.split()
        copies = {name: self.runtime.array(self.arrays[name]) for name in names if name in self.arrays}
        values = self.sizes | self.case.shapes[0] | self.arrays
        function, words = (
            library[self.case.expert_function],
            [copies.get(name) or argument(values[name]) for name in names],
        )
        function(*words)
        self.runtime.finish()
        want = {name: np.empty_like(self.arrays[name]) for name in self.case.results}
        for name, host in want.items():
            self.runtime.fetch(copies[name], host)
        seconds = self.runtime.seconds(lambda: function(*words))
        for pointer in copies.values():
            self.runtime.check(self.runtime.library.cudaFree(pointer))
        return want, seconds

    def time(self, path, shape):
        """The time of a call of ours with a block shape, after its result was compared."""
        library = ctypes.CDLL(str(path))
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        values = self.sizes | shape | arrays
        words = [argument(values[name]) for name in self.case.arguments.split()]
        function = library[self.case.function]
        for array in arrays.values():
            library.metafork_keep(argument(array))
        function(*words)
        for name in self.case.results:
            library.metafork_drop(argument(arrays[name]))
            self._compare(name, arrays[name], shape)
            library.metafork_keep(argument(arrays[name]))
        seconds = self.runtime.seconds(lambda: function(*words))
        for array in arrays.values():
            library.metafork_drop(argument(array))
        return seconds

    def _compare(self, name, got, shape):
        want = self.want[name]
        if got.dtype.kind == "i":
            near = np.array_equal(got, want)
        else:
            most = float(np.abs(want).max())
            near = all(
                float(np.abs(got[at].astype(np.float64) - want[at]).max()) <= CLOSE * most for at in _pieces(got)
            )
        if not near:
            raise RuntimeError(f"{self.case.name}: {name} differs from the expert's at {shape}")


def _pieces(array):
    """Slices of the first axis that together are the array, so that few bytes are converted at once."""
    step = max(1, 2**24 // max(1, array[:1].size))
    return [slice(at, at + step) for at in range(0, len(array), step)]


def measure(case, library, expert, shapes):
    """Times of one program at some shapes, and of the expert's; in a process that does nothing else."""
    program = Program(case, expert)
    return {"expert": program.expert_seconds, "ours": [program.time(library, shape) for shape in shapes]}


def measured(case, library, expert, shapes):
    """The same, of a process of its own: a fault on the device ends all that its process does there."""
    words = [sys.executable, __file__, "--one", json.dumps([case.name, str(library), str(expert), shapes])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def static_values(case, shape):
    """The values of a shape for which kernels may be compiled."""
    schedules = parse(read_source(ROOT / case.source), reassociate=bool(case.options)).schedules
    names = set.union(*(set(static_parameters(one.program)) for one in schedules))
    return {name: value for name, value in shape.items() if name in names}


def amount(case):
    """The operations of a product, or the bytes that a program moves at least."""
    sizes = case.sizes | case.large
    texts = {"flops": case.flops, "bytes": case.bytes}
    return {key: extents(text, sizes)[0] for key, text in texts.items() if text}


PEAKS = {"NVIDIA H100 80GB HBM3": {"flops": 66.9e12, "bytes": 3.35e12}}
"""Operations on floats (no tensor cores) and bytes of memory a second, as the maker says."""


def of_peak(row, device):
    """What a second has of operations or bytes, and the share of the card's peak."""
    found = []
    for key, unit in (("flops", "TFLOP/s"), ("bytes", "TB/s")):
        if key in row:
            rate, peak = row[key] / row["seconds"], PEAKS.get(device, {}).get(key)
            found.append(f"{rate / 1e12:.3g} {unit}" + (f", {rate / peak:.0%}" if peak else ""))
    return " ".join(found)


def row_of(case, library, expert):
    """The figures of one program without its static instance."""
    found = measured(case, library, expert, case.shapes)
    best, shape = min(zip(found["ours"], case.shapes, strict=True), key=lambda one: one[0])
    sizes = case.sizes | case.large
    return {
        **amount(case),
        "name": case.name,
        "sizes": {key: value if isinstance(value, int) else float(value) for key, value in sizes.items()},
        "shape": shape,
        "seconds": best,
        "expertSeconds": found["expert"],
        "shapes": [{"shape": one, "seconds": s} for s, one in zip(found["ours"], case.shapes, strict=True)],
    }


def line(row, device):
    """A row of the table."""
    sizes = " ".join(f"{key}={value}" for key, value in row["sizes"].items() if isinstance(value, int))
    shape = " ".join(f"{key}={value}" for key, value in row["shape"].items())
    times = [f"{1000 * row[key]:.3g}" for key in ("seconds", "expertSeconds")]
    static = f"{row['staticSeconds'] / row['expertSeconds']:.2f}" if "staticSeconds" in row else ""
    ratios = [one["seconds"] / row["expertSeconds"] for one in row["shapes"]]
    others = f"{statistics.median(ratios):.2f} / {ratios[0]:.2f}"
    ratio = f"**{row['seconds'] / row['expertSeconds']:.2f}**"
    cells = [row["name"], sizes, shape, *times, ratio, others, static, of_peak(row, device)]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| program | sizes | shape | ours, ms | expert's, ms | ratio | median / first shape | ratio, static instance "
    "| ours of the peak |\n" + "|---" * 9 + "|"
)


def write(rows, device):
    """Write the figures, and their table into docs/speed.md; other programs keep theirs of the same device."""
    written = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"device": device, "programs": []}
    known = {row["name"]: row for row in written["programs"] if written["device"] == device}
    known |= {row["name"]: row for row in rows}
    rows = [known[case.name] for case in CASES if case.name in known]
    document = {"format": "metafork-bench-times", "version": 1, "device": device, "programs": rows}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    before, rest = PAGE.read_text().split("<!-- times -->\n")
    after = rest.split("<!-- end of times -->\n")[1]
    text = "\n".join([HEAD, *(line(row, device) for row in rows)])
    PAGE.write_text(f"{before}<!-- times -->\n{text}\n<!-- end of times -->\n{after}")


def _case(name):
    (case,) = (case for case in CASES if case.name == name)
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="parts of names; all programs where there are none")
    parser.add_argument("--write", action="store_true", help="write figures and table; other programs keep theirs")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=4, help="compilers at a time")
    arguments = parser.parse_args()
    if arguments.one is not None:
        name, library, expert, shapes = json.loads(arguments.one)
        print(json.dumps(measure(_case(name), library, expert, shapes)))
        return
    chosen = [case for case in CASES if not arguments.programs or any(part in case.name for part in arguments.programs)]
    device = command("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").strip()
    with ThreadPoolExecutor(arguments.jobs) as pool:  # compiled before anything is timed
        sources = {case.source: case for case in chosen}
        libraries = dict(zip(sources, pool.map(ours, sources.values()), strict=True))
        names = sorted({case.expert for case in chosen})
        experts = dict(zip(names, pool.map(compiled, [EXPERTS / name for name in names]), strict=True))
        rows, failed = {}, []
        for case in chosen:
            try:
                rows[case.name] = row_of(case, libraries[case.source], experts[case.expert])
                print(line(rows[case.name], device), file=sys.stderr, flush=True)
            except RuntimeError as error:
                failed.append(f"{case.name}: {error}")
        values = {name: static_values(_case(name), row["shape"]) for name, row in rows.items()}
        static = {name: pool.submit(ours, _case(name), given) for name, given in values.items() if given}
        paths = {name: future.result() for name, future in static.items()}
    for name, path in paths.items():
        case, row = _case(name), rows[name]
        (row["staticSeconds"],) = measured(case, path, experts[case.expert], [row["shape"]])["ours"]
    print("\n".join([device, HEAD, *(line(row, device) for row in rows.values())]))
    if arguments.write:
        write(list(rows.values()), device)
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
