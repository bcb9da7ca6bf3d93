"""Swizzle synthesis: time and memory of the whole command for each published problem, and how they grow.

    python bench/swizzle.py            print the figures
    python bench/swizzle.py --write    also write bench/results/swizzle.json and bench/results/swizzle.svg
    python bench/swizzle.py --naive    what executing every choice would take instead; with --write, into docs/papers.md
    python bench/swizzle.py --transposes 64    Swizzle Inventor's Table 3 for all m, n up to 64 (bench/transposes.py)

Each figure is one run of ``metafork swizzle FILE --all`` as a process of its own, start of Python included: wall time,
processor time and the largest resident memory, from wait4.  The published times of the two papers' systems were
measured on another machine (see docs/swizzle.md); they are anchors, not a race under equal conditions.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from math import prod
from pathlib import Path

import numpy as np
import transposes

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
SKETCHES = ROOT / "examples" / "swizzle"
RESULTS = ROOT / "bench" / "results"
PAGE, MARKS = ROOT / "docs" / "papers.md", ("<!-- naive -->\n", "<!-- end of naive -->")
# Problems of Swizzle Inventor's Table 1, and choices of each that are executed for --naive.
NAIVE = ("CRC 3", "CRC 5", "CRC 7", "Sum 7", "1D stencil 3", "1D convolution 3", "2D stencil 3", "polynomial, w = 8")
EXECUTED = 200
LIMIT_SECONDS, LIMIT_MEGABYTES = 2.0, 300


# Name, sketch, constants, solutions, seconds of Swizzle Inventor and of Swizzleflow on two cores (None: not solved).
PUBLISHED = [
    ("CRC 1", "crc", {"s": 1}, 1, 1.0, None),
    ("CRC 2", "crc", {"s": 2}, 2, None, None),
    ("CRC 3", "crc", {"s": 3}, 2, 18.6, 2.2),
    ("CRC 4", "crc", {"s": 4}, 5, None, None),
    ("CRC 5", "crc", {"s": 5}, 2, 44.6, 10.1),
    ("CRC 7", "crc", {"s": 7}, 2, 119.7, 51.1),
    ("CRC 9", "crc", {"s": 9}, 2, None, None),
    ("CRC 11", "crc", {"s": 11}, 2, None, None),
    ("CRC 13", "crc", {"s": 13}, 2, None, None),
    ("CRC 6, level 4", "crc", {"s": 6, "level": 4}, 2, None, None),
    ("CRC 10, level 4", "crc", {"s": 10, "level": 4}, 2, None, None),
    ("Sum 7", "sum", {"s": 7}, 2, 66.3, 11.4),
    ("RCR 1", "rcr", {"s": 1}, 892, 1.0, None),
    ("RCR 7", "rcr", {"s": 7}, 3, None, 62.8),
    ("1D stencil 3", "stencil1d", {"k": 3}, 2, 29.5, 1.8),
    ("1D convolution 3", "conv1d", {"k": 3}, 1, 61.6, 1.75),
    ("1D convolution 11", "conv1d", {"k": 11}, 1, None, 38.8),
    ("2D stencil 3", "stencil2d", {"k": 3}, 4, 22.4, 0.11),
    ("2D stencil 7", "stencil2d", {"k": 7}, 4, None, 105.6),
    ("2D stencil 9", "stencil2d", {"k": 9}, 1, None, None),
    ("2D stencil 11", "stencil2d", {"k": 11, "far": 8}, 1, None, None),
    ("2D convolution 3", "conv2d", {"k": 3}, 1, 39.0, None),
    ("polynomial, w = 4", "polynomial", {"w": 4}, 2, None, None),
    ("polynomial, w = 8", "polynomial_wide", {}, 2, 985.0, 1.8),
    ("polynomial, shared, w = 8", "polynomial_shared", {}, 8, 479.0, 3600.0),
    ("polynomial, 32 lanes", "polynomial", {"w": 32, "level": 1}, 2, None, None),
    ("HVX Gaussian", "hvx_gaussian", {}, 4, None, 0.46),
]
GROWTH = {
    "CRC, size s on 32 lanes": ("crc", "s", [3, 5, 7, 9, 11, 13, 17, 21, 25, 31], {}),
    "CRC, size s on 64 lanes": ("crc", "s", [3, 5, 7, 9, 11, 13], {"n": 64}),
    "1D convolution, k weights": ("conv1d", "k", [3, 5, 7, 9, 11, 13, 15], {}),
    "2D stencil, k by k": ("stencil2d", "k", [3, 5, 7, 9], {}),
}


def measure(sketch, constants):
    """Run the command once; return its figures and its JSON."""
    options = [word for name, value in constants.items() for word in ("-D", f"{name}={value}")]
    code = "from metafork.comprehensive.cli import main; main()"
    path = str(SKETCHES / f"{sketch}.swz")
    command = [sys.executable, "-c", code, "swizzle", path, "--all", "--emit", "json", *options]
    # One thread: the figures are of one core, whatever numpy was built with.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed")
    document = json.loads(text)
    figures = {
        "wallSeconds": round(wall, 3),
        "cpuSeconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peakMegabytes": round(usage.ru_maxrss / 1024, 1),
        "solutions": len(document["solutions"]),
    }
    return {**figures, **document["statistics"]}


def plot(growth):
    """Draw processor seconds against size, both logarithmic, as SVG."""
    from math import log10

    width, height, left, bottom = 560, 360, 50, 40
    low, high = -2.0, 1.0
    colours = ["#06c", "#c60", "#093", "#909"]
    parts = []
    for number, (title, points) in enumerate(growth.items()):
        places = []
        for point in points:
            x = left + (log10(point["size"]) - log10(2)) / (log10(40) - log10(2)) * (width - left - 10)
            y = height - bottom - (log10(point["cpuSeconds"]) - low) / (high - low) * (height - bottom - 10)
            places.append((x, y))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[number]}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colours[number]}"/>' for x, y in places]
        parts.append(f'<text x="{left + 10}" y="{20 + 15 * number}" fill="{colours[number]}">{title}</text>')
    for power in (-2, -1, 0, 1):
        y = height - bottom - (power - low) / (high - low) * (height - bottom - 10)
        parts.append(f'<line x1="{left}" x2="{width}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="5" y="{y + 4}">{10.0**power:g} s</text>')
    for size in (2, 4, 8, 16, 32):
        x = left + (log10(size) - log10(2)) / (log10(40) - log10(2)) * (width - left - 10)
        parts.append(f'<text x="{x}" y="{height - 20}">{size}</text>')
    parts.append(f'<text x="{left}" y="{height - 5}">size; whole process, start of Python included</text>')
    style = "<style>text{font-family:sans-serif;font-size:12px}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
    return head + style + "\n".join(parts) + "</svg>\n"


def naive(write):
    """Print how many choices each problem has, and the seconds to execute them all, from some of them."""
    from metafork.ir.messages.source import Source
    from metafork.swizzle.language.elaborate import load
    from metafork.swizzle.model.problem import hole_table, solves
    from metafork.swizzle.search.search import solutions

    lines = ["| problem | choices | executing each | the search for all |", "|---|---|---|---|"]
    random = np.random.default_rng(1)
    for name in NAIVE:
        _, sketch, constants, *_ = next(row for row in PUBLISHED if row[0] == name)
        path = SKETCHES / f"{sketch}.swz"
        problem = load(Source(path.name, path.read_text()), constants)
        holes = problem.holes()
        began = time.process_time()
        for _ in range(EXECUTED):
            solves(problem, {one.name: hole_table(one, int(random.integers(len(one.options)))) for one in holes})
        each = (time.process_time() - began) / EXECUTED
        began = time.process_time()
        solutions(problem)
        seconds = time.process_time() - began
        choices = prod(len(one.options) for one in holes)
        lines.append(f"| {name} | {choices:.1e} | {choices * each:.0e} s | {seconds:.2f} s |")
        print(lines[-1], flush=True)
    if write:
        before, rest = PAGE.read_text().split(MARKS[0])
        PAGE.write_text(before + MARKS[0] + "\n".join(lines) + "\n" + MARKS[1] + rest.split(MARKS[1])[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write bench/results/swizzle.json and swizzle.svg")
    parser.add_argument("--naive", action="store_true", help="count what executing every choice would take instead")
    parser.add_argument("--transposes", type=int, metavar="MOST", help="write Table 3 for all m, n up to MOST instead")
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="processor time for each of these (0.1 unless given)"
    )
    arguments = parser.parse_args()
    if arguments.naive:
        naive(arguments.write)
        return
    if arguments.transposes:
        transposes.write(arguments.transposes, arguments.seconds)
        return
    rows, late = [], []
    for name, sketch, constants, solutions, inventor, swizzleflow in PUBLISHED:
        row = {"name": name, **measure(sketch, constants), "swizzleInventor": inventor, "swizzleflow": swizzleflow}
        rows.append(row)
        if row["solutions"] != solutions:
            raise RuntimeError(f"{name}: {row['solutions']} solutions, {solutions} expected")
        if row["cpuSeconds"] >= LIMIT_SECONDS or row["peakMegabytes"] >= LIMIT_MEGABYTES:
            late.append(name)
        print(f"{name:28} {row['cpuSeconds']:7.2f} s {row['peakMegabytes']:7.1f} MB {row['solutions']:3} solutions")
    growth = {}
    for title, (sketch, constant, sizes, rest) in GROWTH.items():
        growth[title] = [{"size": size, **measure(sketch, {**rest, constant: size})} for size in sizes]
        figures = ", ".join(f"{point['size']}: {point['cpuSeconds']:.2f} s" for point in growth[title])
        print(f"{title}: {figures}")
    print(f"over {LIMIT_SECONDS} s or {LIMIT_MEGABYTES} MB: {', '.join(late) or 'none'}")
    if arguments.write:
        RESULTS.mkdir(exist_ok=True)
        document = {
            "format": "metafork-bench-swizzle",
            "version": 1,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "problems": rows,
            "growth": growth,
        }
        (RESULTS / "swizzle.json").write_text(json.dumps(document, indent=1) + "\n")
        (RESULTS / "swizzle.svg").write_text(plot(growth))


if __name__ == "__main__":
    main()
