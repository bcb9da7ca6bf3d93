"""How long ``metafork shuffle`` takes: eleven kernels as whole processes, and stencils of 10 to 2,000 loads.

    python bench/shuffle.py            print the figures
    python bench/shuffle.py --write    and write bench/results/shuffle.json and shuffle.svg
    python bench/shuffle.py --device   times of each kernel's versions on a GPU instead (shuffle_times.py)

Wall-clock seconds and peak resident memory of a fresh process for each kernel; the growth is measured in one process,
best of three, in processor seconds.  Register counts and SASS sizes come from ptxas, where there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shuffle_times import Driver, timed

from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.shuffles.synthesis import Variant

HERE = Path(__file__).parent
DATA = HERE.parent / "tests" / "metafork" / "ptx" / "data"
KERNELS = (
    "vecadd", "jacobi", "gameoflife", "gaussblur", "gradient", "divergence", "tricubic", "tricubic2", "matvec",
    "matmul", "sincos",
)  # fmt: skip
LIMIT_SECONDS = dict.fromkeys(KERNELS, 1.0) | {"tricubic": 3.0, "tricubic2": 3.0}
LIMIT_MEGABYTES = 300
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
RUN = "import sys; from metafork.comprehensive.cli import main; sys.argv[0] = 'metafork'; main()"


def generated_stencil(loads, row=5):
    """Return PTX of a stencil with that many loads: rows of ``row`` neighbours, each row with its own base."""
    lines = [
        ".version 8.0", ".target sm_80", ".address_size 64",
        ".visible .entry stencil(.param .u64 a, .param .u64 b, .param .u32 nx, .param .u32 n)", "{",
        f".reg .pred %p<4>; .reg .f32 %f<{loads + 2}>; .reg .b32 %r<{loads + 20}>; .reg .b64 %rd<{2 * loads + 20}>;",
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [nx]; ld.param.u32 %r2, [n];",
        "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;",
        "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r6, %r3, %r4, %r5;",
        "mov.u32 %r7, %ctaid.y; setp.ge.s32 %p1, %r6, %r2; @%p1 bra DONE;", "mov.f32 %f0, 0f00000000;",
    ]  # fmt: skip
    for index in range(loads):
        number, column = divmod(index, row)
        if column == 0:
            lines += [
                f"add.s32 %r{8}, %r7, {number}; mad.lo.s32 %r{9}, %r8, %r1, %r6;",
                f"mul.wide.s32 %rd{3}, %r9, 4; add.s64 %rd{10 + number}, %rd1, %rd3;",
            ]
        offset = 4 * (column - row // 2)
        lines.append(f"ld.global.nc.f32 %f{index + 1}, [%rd{10 + number}+{offset}]; add.f32 %f0, %f0, %f{index + 1};")
    lines += ["mul.wide.s32 %rd4, %r6, 4; add.s64 %rd5, %rd2, %rd4; st.global.f32 [%rd5], %f0;", "DONE: ret;", "}"]
    return "\n".join(lines) + "\n"


def whole_process(source, target):
    """Return (wall seconds, peak megabytes, processor seconds) of one run of the command in a fresh process."""
    command = [sys.executable, "-c", RUN, "shuffle", str(source), "-o", str(target), "--report", "json"]
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"metafork shuffle {source} failed with status {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def used_registers(path, directory):
    """Return the registers that ptxas reports for a PTX file, ``None`` without ptxas."""
    if shutil.which("ptxas") is None:
        return None
    done = subprocess.run(
        ["ptxas", "-arch=sm_80", "-v", str(path), "-o", str(Path(directory) / "k.cubin")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Used (\d+) registers", done.stderr).group(1))


def instructions(text):
    """Return how many instructions a PTX text has."""
    lines = (line.strip() for line in text.splitlines())
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


def kernels():
    """Measure the kernels of the table."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name in KERNELS:
            source, target = DATA / f"{name}.ptx", Path(directory) / f"{name}.ptx"
            seconds, megabytes, processor = min(whole_process(source, target) for _ in range(3))
            text = source.read_text()
            (report,) = shuffle_text(text).kernels
            (unmoved,) = shuffle_text(text, Options(hoist=False)).kernels
            rows.append(
                {
                    "kernel": name, "shuffles": len(report.shuffles), "loads": report.loads,
                    "mean_delta": report.mean_delta, "mean_delta_without_hoisting": unmoved.mean_delta,
                    "seconds": round(seconds, 3),
                    "processor_seconds": round(processor, 3), "limit_seconds": LIMIT_SECONDS[name],
                    "megabytes": round(megabytes, 1), "limit_megabytes": LIMIT_MEGABYTES,
                    "instructions": {"original": instructions(text)} | {
                        one.value: instructions(shuffle_text(text, Options(variant=one)).text) for one in Variant
                    },
                    "registers_before": used_registers(source, directory),
                    "registers_after": used_registers(target, directory),
                }
            )  # fmt: skip
    return rows


def growth():
    """Measure generated stencils in this process."""
    rows = []
    for loads in SIZES:
        text = generated_stencil(loads)
        times = []
        for _ in range(3):
            start = time.process_time()
            (report,) = shuffle_text(text).kernels
            times.append(time.process_time() - start)
        rows.append({"loads": loads, "shuffles": len(report.shuffles), "seconds": round(min(times), 4)})
    return rows


def drawing(rows):
    """Return an SVG of seconds over loads, both axes logarithmic, with the straight line through the last point."""
    from math import log10

    width, height, margin = 480, 320, 50
    low = min(row["seconds"] for row in rows) / 1.5
    high = max(row["seconds"] for row in rows) * 1.5

    def at(loads, seconds):
        x = margin + (log10(loads) - 1) / (log10(2000) - 1) * (width - 2 * margin)
        y = height - margin - (log10(seconds) - log10(low)) / (log10(high) - log10(low)) * (height - 2 * margin)
        return x, y

    points = [at(row["loads"], row["seconds"]) for row in rows]
    slope = rows[-1]["seconds"] / rows[-1]["loads"]
    first = max(10, low / slope)
    line = [at(first, slope * first), points[-1]]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<polyline fill="none" stroke="gray" stroke-dasharray="4" points="'
        + " ".join(f"{x:.1f},{y:.1f}" for x, y in line) + '"/>',
        '<polyline fill="none" stroke="black" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>',
    ]  # fmt: skip
    for row, (x, y) in zip(rows, points, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - margin + 16}" text-anchor="middle">{row["loads"]}</text>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y - 8:.1f}" text-anchor="end">{row["seconds"]:.3f} s</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">loads (dashed: linear)</text></svg>')
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write bench/results/shuffle.json and shuffle.svg")
    parser.add_argument("--device", action="store_true", help="time the versions on a GPU instead")
    arguments = parser.parse_args()
    if arguments.device:
        timed(Driver())
        return
    figures = {
        "format": "metafork-bench-shuffle", "version": 1,
        "machine": {
            "processor": platform.machine(), "cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
        },
        "kernels": kernels(), "growth": growth(),
        "peak_megabytes_of_the_growth": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }  # fmt: skip
    for row in figures["kernels"]:
        print(
            "{kernel:12} {shuffles:3}/{loads:<3} {seconds:6.3f} s (limit {limit_seconds}) {megabytes:6.1f} MB, "
            "instructions {instructions}".format(**row)
        )
    for row in figures["growth"]:
        print("{loads:5} loads {seconds:7.4f} s, {0:.1f} us a load".format(1e6 * row["seconds"] / row["loads"], **row))
    if arguments.write:
        results = HERE / "results"
        results.mkdir(exist_ok=True)
        (results / "shuffle.json").write_text(json.dumps(figures, indent=1) + "\n")
        (results / "shuffle.svg").write_text(drawing(figures["growth"]))
    slow = [row["kernel"] for row in figures["kernels"] if row["processor_seconds"] > row["limit_seconds"]]
    large = [row["kernel"] for row in figures["kernels"] if row["megabytes"] > row["limit_megabytes"]]
    sys.exit(f"over the limit: {slow + large}" if slow + large else 0)


if __name__ == "__main__":
    main()
