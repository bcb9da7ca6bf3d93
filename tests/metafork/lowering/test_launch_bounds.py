"""``meta_min_blocks``: launch bounds of kernels, in each language that has them."""

import re
import subprocess

import pytest

import metafork
from metafork.comprehensive.emit import rendered_files, write_files
from metafork.comprehensive.emit.leaf_code import kernel_of
from metafork.comprehensive.emit.targets.table import target
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from tests.runtime.compiling import needs_nvcc

ROWS = "meta_for (int i = 0; i < n; i++) x[i] *= 2;"
TABLE = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) a[i][j] *= 2;"
HELD = """
  meta_for (int i = 0; i < n; i++) {
    float s[48];
    for (int k = 0; k < 48; k++) s[k] = a[k][i];
    for (int t = 0; t < m; t++)
      for (int k = 0; k < 48; k++) s[k] = s[k] * s[(k + 1) % 48] + x[t];
    for (int k = 0; k < 48; k++) a[k][i] = s[k];
  }
"""


def program(clauses, nest=ROWS, before=""):
    """Return a function with one schedule."""
    arrays = "float x[n], float a[n][m]"
    return f"void f(int n, int m, int B, int C, {arrays})\n{{ {before}\n  meta_schedule {clauses} {{ {nest} }}\n}}\n"


def optimized(text):
    """Return the tree of a program, without instances."""
    return metafork.optimize(Source("f.mf", text), static={}, counters=("threads_per_block",), strategies=())


BOUNDS = {
    "a constant": (program("meta_block(128) meta_min_blocks(4)"), (128, 4)),
    "two constants": (program("meta_min_blocks(2) meta_block(8, 48)", TABLE), (384, 2)),
    "a number of one's own": (program("meta_block(96) meta_min_blocks(N / 2)", before="enum { N = 16 };"), (96, 8)),
    "nothing is known": (program("meta_block(B) meta_min_blocks(2)"), (1024, 2)),
    "nothing is known, and too many": (program("meta_block(B) meta_min_blocks(3)"), None),
    "an assertion": (program("meta_block(B) meta_min_blocks(4)", before="assert(B <= 200);"), (256, 4)),
    "an assertion on two": (program("meta_block(B, C) meta_min_blocks(4)", TABLE, "assert(B * C <= 512);"), (512, 4)),
    "no clause": (program("meta_block(128)"), None),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_safe_and_as_asked(name):
    text, expected = BOUNDS[name]
    (leaf,) = optimized(text).schedules[0].leaves
    assert kernel_of(leaf.own).bounds == expected
    again = parse(Source("again.mf", metafork_text(leaf.version.program))).schedules[0].program
    assert again.min_blocks == leaf.version.program.min_blocks


LANGUAGES = {
    "cuda": "METAFORK_KERNEL(__global__ void METAFORK_LAUNCH_BOUNDS(128, 4), f_k0_leaf1,",
    "hip": "METAFORK_KERNEL(__global__ void METAFORK_LAUNCH_BOUNDS(128, 4), f_k0_leaf1,",
    "ptx": '".maxntid 128\\n"\n    ".minnctapersm 4\\n"',
    "opencl": None,
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_languages(name):
    way = target(name, [])
    bounded, free = (
        rendered_files(optimized(program(f"meta_block(128){clause}")), target=way)[way.device_name("f")]
        for clause in (" meta_min_blocks(4)", "")
    )
    said = LANGUAGES[name]
    kernels = [
        re.sub(r"0x[0-9a-f]{8}u", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)) for text in (bounded, free)
    ]
    assert said in bounded if said is not None else kernels[0] == kernels[1]
    assert said is None or said not in free


def test_instances_have_the_bounds_of_their_blocks():
    text = program("meta_block(B) meta_min_blocks(8)").replace("meta_schedule", "meta_static(B: 64, 256) meta_schedule")
    (tree,) = metafork.optimize(Source("f.mf", text)).schedules
    assert [kernel_of(one).bounds for one in tree.leaves[0].variants] == [(64, 8), (256, 8), None, None]


def test_blocks_that_no_multiprocessor_runs():
    with pytest.raises(DiagnosticsError) as refused:
        optimized(program("meta_block(512) meta_min_blocks(8)"))
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == ("MF0115", "no multiprocessor runs 8 blocks of 512 threads at once")
    assert found.way_out == "ask for at most 4 blocks."


@needs_nvcc
def test_nvcc_gives_fewer_registers(tmp_path):
    used = []
    for number, clause in enumerate(("", " meta_min_blocks(8)")):
        folder = tmp_path / str(number)
        write_files(folder, rendered_files(optimized(program(f"meta_block(256){clause}", HELD))))
        flags = ["-std=c++17", "-arch=sm_80", "-fmad=false", "-DMETAFORK_RUNTIME_APART", "-Iinclude", "-Xptxas", "-v"]
        command = ["nvcc", *flags, "-cubin", "f.cu", "-o", "f.cubin"]
        said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr
        used.append([int(one) for one in re.findall(r"Used (\d+) registers", said)])
    assert max(used[1]) <= 32 < min(used[0])
