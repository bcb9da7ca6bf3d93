"""Swizzle Inventor's Figures 10 to 13: synthesized kernels beside plain ones, by executing their SASS.

    python bench/moves.py            print warp instructions, sectors and passes of shared memory of each pair
    python bench/moves.py --write    also write results/moves.json and the table of docs/papers.md
    python bench/moves.py --device   times on a GPU instead, in milliseconds (results/moves_device.json)

The kernels are those that ``metafork swizzle`` prints for ``examples/swizzle``; the plain ones stand in
``experts/moves_by_warps.cu``: stencils and products of polynomials through shared memory, structures straight from
memory.  The results of both are compared.
"""

import argparse
import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from instructions import FUSED, Bench, figures
from rig import missing_tools
from rig.tools import WORK
from times import Runtime, compiled

ROOT = Path(__file__).parents[1]
PLAIN = ROOT / "bench" / "experts" / "moves_by_warps.cu"
RESULTS = ROOT / "bench" / "results" / "moves.json"
PAGE = ROOT / "docs" / "papers.md"
MARKS = "<!-- moves -->\n", "<!-- end of moves -->\n"
TILES, MANY = 256, 2**18
INCLUDE = (ROOT / "metafork/runtime/include",)


@dataclass(frozen=True)
class Pair:
    """A sketch at a size, the lanes of a tile, words of its inputs and of its result, those that all tiles share."""

    figure: str
    sketch: str
    size: int
    lanes: int
    inputs: dict
    result: int
    shared: tuple = ()
    type: str = "float"

    @property
    def name(self):
        """The name of both kernels."""
        return f"{self.sketch}{self.size}" if self.figure == "13" else self.sketch

    def arrays(self, tiles):
        """Return new arrays for so many tiles."""
        random = np.random.default_rng(1)
        kind = np.uint32 if self.type == "unsigned" else np.float32
        sizes = {name: words if name in self.shared else words * tiles + 128 for name, words in self.inputs.items()}
        return {name: (random.random(words) * 100).astype(kind) for name, words in sizes.items()} | {
            "out": np.zeros(self.result * tiles, kind)
        }


PAIRS = (
    Pair("10", "stencil1d", 3, 32, {"x": 32}, 32),
    Pair("10", "conv1d", 3, 32, {"x": 32, "w": 3}, 32, ("w",)),
    Pair("10", "stencil2d", 3, 16, {"x": 36}, 16),
    Pair("10", "conv2d", 3, 16, {"x": 36, "w": 9}, 16, ("w",)),
    Pair("11, 12", "finite_field", 32, 32, {"a": 32, "b": 32}, 64, (), "unsigned"),
    *(Pair("13", "sum", size, 32, {"x": 32 * size}, 32) for size in (3, 5, 7)),
    *(Pair("13", "rcr", size, 32, {"x": 32 * size}, 32 * size) for size in (3, 5, 7)),
)


def emitted(pair):
    """Return the CUDA text of a sketch."""
    code = "from metafork.comprehensive.cli import main; main()"
    source = ROOT / "examples" / "swizzle" / f"{pair.sketch}.swz"
    sizes = ("-D", f"s={pair.size}") if pair.figure == "13" else ()
    words = [sys.executable, "-c", code, "swizzle", source, "--emit", "cuda", *sizes]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def ours(pair, folder):
    """Write a file with a synthesized kernel and a C function that launches it, and return its path."""
    inputs = ", ".join(f"const {pair.type} *{name}" for name in pair.inputs)
    names = ", ".join(pair.inputs)
    blocks = f"(tiles * {pair.lanes} + 127) / 128"
    call = f"{pair.sketch}<{pair.type}><<<{blocks}, 128>>>({names}, out, tiles);"
    text = emitted(pair) + f'\nextern "C" void ours_{pair.name}({inputs}, {pair.type} *out, int tiles) {{ {call} }}\n'
    target = folder / f"move_{pair.name}.cu"
    target.write_text(text)
    return target


def measure(bench, pair, folder):
    """Return the counts of both kernels of a pair; raise RuntimeError where their results differ."""
    found, results = {}, []
    for who, source in (("ours", ours(pair, folder)), ("plain", PLAIN)):
        arrays = pair.arrays(TILES)
        module = bench.module(source, FUSED, include=INCLUDE)
        launches = bench.device.call(module, f"{who}_{pair.name}", *arrays.values(), TILES, on_device=True)
        found[who] = figures(launches)
        results.append(arrays["out"])
    if not np.allclose(*results, rtol=1e-6, atol=0):
        raise RuntimeError(f"{pair.name}: the results differ")
    return found


HEAD = "| figure | kernel | instructions | ratio | sectors | passes of shared memory |\n|---|---|---|---|---|---|"


def line(pair, row):
    """A row of the table."""
    one, other = row["ours"], row["plain"]
    pairs = [f"{one[key]} / {other[key]}" for key in ("instructions", "sectors", "wavefronts")]
    ratio = one["instructions"] / other["instructions"]
    return f"| {pair.figure} | {pair.name} | {pairs[0]} | **{ratio:.2f}** | {pairs[1]} | {pairs[2]} |"


def executed(write):
    """Print the counts of all pairs; ``write`` them too."""
    if missing := missing_tools():
        sys.exit(f"bench/moves.py needs {', '.join(missing)}")
    bench, rows = Bench(), {}
    print(HEAD)
    for pair in PAIRS:
        rows[pair.name] = measure(bench, pair, WORK)
        print(line(pair, rows[pair.name]), flush=True)
    if write:
        RESULTS.write_text(
            json.dumps({"format": "metafork-bench-moves", "tiles": TILES, "kernels": rows}, indent=1) + "\n"
        )
        before, rest = PAGE.read_text().split(MARKS[0])
        table = "\n".join([HEAD, *(line(pair, rows[pair.name]) for pair in PAIRS)])
        PAGE.write_text(f"{before}{MARKS[0]}{table}\n{MARKS[1]}{rest.split(MARKS[1])[1]}")


def timed():
    """Print the times of all pairs on a GPU, and write them."""
    rows = {}
    for pair in PAIRS:
        rows[pair.name], results = {}, []
        for who, source in (("ours", ours(pair, WORK)), ("plain", PLAIN)):
            library = compiled(source, include=INCLUDE)
            runtime, arrays = Runtime(library), pair.arrays(MANY)
            function = getattr(ctypes.CDLL(str(library)), f"{who}_{pair.name}")
            copies = [runtime.array(host) for host in arrays.values()]
            seconds = runtime.seconds(lambda f=function, c=copies: f(*c, MANY))
            runtime.fetch(copies[-1], arrays["out"])
            for copy in copies:
                runtime.check(runtime.library.cudaFree(copy))
            rows[pair.name][who] = 1000 * seconds
            results.append(arrays["out"])
        if not np.allclose(*results, rtol=1e-6, atol=0):
            raise RuntimeError(f"{pair.name}: the results differ")
        print(f"{pair.name}: {rows[pair.name]['ours']:.4f} ms, plain {rows[pair.name]['plain']:.4f} ms", flush=True)
    (RESULTS.parent / "moves_device.json").write_text(
        json.dumps({"tiles": MANY, "milliseconds": rows}, indent=1) + "\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write figures and table")
    parser.add_argument("--device", action="store_true", help="times on a GPU instead")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if arguments.device:
        timed()
    else:
        executed(arguments.write)


if __name__ == "__main__":
    main()
