"""Occupancy: equal to CUDA's calculator, and a fork of a tree."""

import os
import shutil
import subprocess
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import pytest

from metafork.analysis.analyses import Analyses, Hardware
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.selection import machine_point, select
from metafork.evaluators.occupancy import COUNTER
from metafork.evaluators.registers_per_block import COUNTER as REGISTERS_PER_BLOCK
from metafork.ir.program import Version
from metafork.runtime.machine import PRESETS, compute_capability, given_values
from tests.metafork.programs import program

PROGRAM = """
void f(int n, int B, int W, const float x[n], float y[n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++) {
      float row[W];
      meta_for (int u = 0; u < B; u++)
        row[u] = x[i * B + u];
      meta_for (int u = 0; u < B; u++)
        y[i * B + u] = row[B - 1 - u];
    }
  }
}"""


WITHOUT = """
void f(int n, int B, const float x[n], float y[n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++)
        y[i * B + u] = x[i * B + u];
  }
}"""


@cache
def measured(registers, text):
    """Return the counter's value on a program whose threads take these registers."""
    hardware = Hardware(count_registers=lambda kernel, _: registers)
    return COUNTER.evaluate(Version(program(text)), Analyses(hardware))


def occupancy(machine, registers, threads, words):
    """Return the counter's value on a machine."""
    value = measured(registers, PROGRAM if words else WITHOUT)
    point = {"$" + name: number for name, number in machine.fields().items()}
    point |= {"n": 1 << 20, "B": threads, "W": words}
    for symbol in value.derived:
        point[symbol.name] = symbol.evaluate(point)
    return Fraction(value.numerator.at(point)) / value.denominator.at(point)


def by_the_rules(machine, registers, threads, words):
    """Return it once more, by the rules as people state them."""
    warps = -(-threads // 32)
    a_warp = -(-registers * 32 // 256) * 256
    fitting = 4 * (machine.registers_per_sm // 4 // a_warp)
    limits = [machine.blocks_per_sm, machine.warps_per_sm // warps, fitting // warps]
    if words:
        granules = -(-(words + machine.shared_words_reserved) // machine.shared_words_unit)
        limits.append(machine.shared_words_per_sm // (granules * machine.shared_words_unit))
    return Fraction(min(limits) * warps, machine.warps_per_sm)


MODERN = [name for name in PRESETS if compute_capability(name) >= 75]


def cases():
    """Yield 20 cases for each GPU from sm_75 to sm_121: registers, threads and words of shared memory."""
    random = Random(1)
    for name in MODERN:
        most = PRESETS[name].shared_words
        for registers, threads in product((16, 32, 83, 168, 255), (32, 96, 256, 736)):
            yield name, registers, threads, random.choice((0, 1, 32, 1000, most // 3, most // 2, most))


def test_200_combinations_follow_the_rules():
    found = list(cases())
    assert len(found) >= 200
    for name, *case in found:
        assert occupancy(PRESETS[name], *case) == by_the_rules(PRESETS[name], *case), (name, case)


def test_23_warps_of_83_registers_do_not_fit():
    """Each partition has 16,384 registers, and a warp takes 2,816."""
    assert [occupancy(PRESETS["sm_80"], 83, 32 * warps, 0) for warps in (20, 23)] == [Fraction(20, 64), 0]


@pytest.mark.parametrize("registers", [16, 32, 64, 65, 83, 96, 128, 168, 255])
def test_a_block_whose_registers_fit_is_one_that_can_be_active(registers):
    """``registers_per_block`` and ``occupancy`` follow one rule."""
    hardware = Hardware(count_registers=lambda kernel, _: registers)
    value = REGISTERS_PER_BLOCK.evaluate(Version(program(WITHOUT)), Analyses(hardware))
    for threads in range(32, 1025, 32):
        point = {"n": 1 << 20, "B": threads}
        for symbol in value.derived:
            point[symbol.name] = symbol.evaluate(point)
        fits = value.numerator.at(point) <= PRESETS["sm_80"].registers_per_block
        assert fits == (occupancy(PRESETS["sm_80"], registers, threads, 0) > 0), threads


HEADER = "cuda_occupancy.h"


def toolkit():
    """Return the folder with the headers of CUDA's toolkit, ``None`` where there is none."""
    nvcc = shutil.which("nvcc")
    folders = [] if nvcc is None else [Path(nvcc).resolve().parent.parent]
    folders += [Path(one) for one in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if one]
    found = [one for folder in folders for one in (folder / "include", *folder.glob("targets/*/include"))]
    return next((one for one in found if (one / HEADER).exists()), None)


@pytest.mark.skipif(toolkit() is None, reason=f"there is no {HEADER}")
def test_the_toolkits_calculator_says_the_same(tmp_path):
    built = tmp_path / "occupancy"
    source = Path(__file__).with_name("occupancy_by_cuda.cpp")
    subprocess.run(["g++", "-w", f"-I{toolkit()}", "-o", built, source], check=True)
    rows, found = [], list(cases())
    for name, registers, threads, words in found:
        machine = PRESETS[name]
        shared = 4 * machine.shared_words_per_sm, 4 * machine.shared_words, 4 * machine.shared_words_reserved
        sizes = machine.warps_per_sm, machine.registers_per_sm, *shared, registers, threads, 4 * words
        rows.append(" ".join(map(str, (compute_capability(name), *sizes))))
    run = subprocess.run([built], input="\n".join(rows), capture_output=True, text=True, check=True)
    told = [int(line) for line in run.stdout.split()]
    assert len(told) == len(found)
    for (name, *case), blocks in zip(found, told, strict=True):
        warps = -(-case[1] // 32)
        assert occupancy(PRESETS[name], *case) == Fraction(blocks * warps, PRESETS[name].warps_per_sm), (name, case)


SMOOTH = Path(__file__).parents[2] / "examples" / "smooth.mf"


@pytest.fixture(scope="module")
def smooth():
    """Return the tree of an example with the counter, for the GPUs that nvcc compiles for."""
    options = {"counters": ("shared_memory", "occupancy"), "strategies": ("granularity", "caching"), "order": "paper"}
    return optimize(SMOOTH, machine="sm_75..sm_120", **options).document.schedules[0]


@pytest.mark.parametrize(
    ("machine", "s", "width", "target", "leaf"),
    [
        ("sm_80", 4, 64, "1/4", 1),  # 258 words: 32 blocks of 2 warps
        ("sm_80", 128, 64, "1/4", 2),  # 8,194 words and 256 of the system's: 4 blocks of 2 warps
        ("sm_80", 128, 64, "1/8", 1),
        ("sm_86", 4, 32, "1/2", 0),  # 16 blocks of a warp, whatever they keep
        ("sm_90", 4, 32, "1/2", 1),
    ],
)
def test_a_tree_forks_where_too_few_warps_are_active(smooth, machine, s, width, target, leaf):
    point = machine_point(smooth, given_values(machine)) | {"O": Fraction(target)}
    assert select(smooth, point | {"n": 1_000_002, "s": s, "B": width}).leaf == leaf


def test_a_tree_shows_its_fork(smooth):
    fits = smooth.root.accept
    conditions = [node.condition.text(smooth.order) for node in (smooth.root, fits, fits.refuse.accept)]
    assert conditions == [
        "s*B + 2 <= Z",
        "warps_per_sm*O <= warps*blocks2",
        "warps_per_sm*O <= warps*blocks3",
    ]
    defined = {one.name: one.definition(smooth.order) for one in smooth.derived}
    assert defined["blocks2"] == "min(blocks_per_sm, floor1, floor2)"
    assert defined["floor2"] == "shared_words_per_sm/(units*shared_words_unit)"


@pytest.mark.parametrize("machine", ["all", "sm_86"])
def test_other_machines_have_the_counter_too(machine):
    found = optimize(SMOOTH, counters=("shared_memory", "occupancy"), strategies=("caching",), machine=machine)
    assert [one.name for one in found.schedules[0].counters] == ["shared_memory", "occupancy"]
