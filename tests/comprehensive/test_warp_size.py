"""The width of a warp is that of the machine, else that of the back end: in counters, strategies and instances."""

import re

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses, Hardware
from metafork.comprehensive.case_discussion.typical_values import typical_values
from metafork.comprehensive.emit.targets.hip import TARGET as HIP
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.evaluators.registers_per_block import COUNTER
from metafork.evaluators.registers_per_thread import registers
from metafork.ir.program import Version
from tests.comprehensive.metafork_command import metafork
from tests.metafork.programs import MATMUL, program

ROWS = """
void rows(int n, int B, const float a[n][n], const float w[n], float c[n][n]) {
  int dim = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < dim; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        c[i * B + v][j * B + u] = a[i * B + v][j * B + u] * w[j * B + u];
  }
}
"""
LINE = """
void thirds(int n, int B, const float x[n], float y[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++) meta_for (int j = 0; j < B; j++) y[i * B + j] = x[i * B + j] / 3;
  }
}
"""


@pytest.mark.parametrize("warp_size", [32, 64])
def test_registers_are_handed_out_to_four_whole_warps(warp_size):
    version, analyses = Version(program(MATMUL)), Analyses(Hardware(warp_size))
    value = COUNTER.evaluate(version, analyses)
    (quads,) = (symbol for symbol in value.derived if symbol.name == "quads")
    needed = registers(version, analyses)
    assert value.numerator == Polynomial.symbol(quads.name) * 4 * warp_size * (needed + -needed % 8)
    assert quads.operands[1] == Polynomial.constant(4 * warp_size)


@pytest.mark.parametrize(
    ("machine", "warp_size"),
    [("gfx90a", 64), ("gfx942,Z=100", 64), ("gfx1100", 32), ("sm_80", 32), ("sm_75..sm_120", 32), ("warp_size=16", 16),
     ("gfx942,warp_size=32", 32), ("T=512", 64), (None, 64)],
)  # fmt: skip
def test_a_machine_decides_before_the_back_end(machine, warp_size):
    """The back end's waves are 64 wide here."""
    result = optimize(LINE, counters=["registers_per_block"], strategies=[], machine=machine, hardware=Hardware(64))
    (tree,) = result.schedules
    assert [str(symbol.operands[1]) for symbol in tree.derived if symbol.name == "quads"] == [str(4 * warp_size)]


@pytest.mark.parametrize(
    ("options", "warp_size"),
    [((), 32), (("--backend", "hip"), 64), (("--backend", "hip", "--machine", "gfx1100"), 32)],
)
@pytest.mark.sampled(1)
def test_the_back_end_says_it_where_no_machine_does(tmp_path, options, warp_size):
    (tmp_path / "line.mf").write_text(LINE)
    chosen = ("--counters", "registers_per_block", "--strategies", "caching", "--static", "none", "--json")
    said = metafork("optimize", "line.mf", *chosen, *options, cwd=tmp_path).stdout
    assert re.findall(r'"definition": "ceil\(B/(\d+)\)"', said) == [str(4 * warp_size)]


def test_which_waves_are_wide():
    widths = {
        name: HIP.aimed_at(name).hardware.warp_size for name in ("gfx803", "gfx90c", "gfx942", "gfx1030", "gfx1201")
    }
    assert widths == {"gfx803": 64, "gfx90c": 64, "gfx942": 64, "gfx1030": 32, "gfx1201": 32}


def test_blocks_are_a_warp_at_least():
    assert {one["B"] for one in typical_values(program(LINE), 64)} == {256, 128, 64}
    assert {one["B"] for one in typical_values(program(LINE))} == {256, 128, 64, 32}
    # Several results per thread pay where a block still fills a warp.
    for machine, floor in (("gfx1100", 32), ("gfx90a", 64)):
        tree = optimize(ROWS, machine=machine, counters=["threads_per_block", "registers_per_thread"]).schedules[0]
        dearer = [one for leaf in tree.leaves for one in leaf.variants if "register_tile" in one.strategies]
        assert dearer
        assert all(any(str(floor) in str(limit) for limit in one.limits) for one in dearer)


@pytest.mark.slow
def test_a_striding_block_of_64_computes_what_the_program_means():
    found = verify(
        LINE,
        counters=["threads_per_block"],
        strategies=["thread_striding"],
        machine="gfx942,T=128",
        options=Options(points=8, optimization="-O0", dataflow_seconds=0),
    )
    assert not found.failures, found.failures
    (striding,) = (row for row in found.rows if "thread_striding" in row.strategies)
    assert striding.points
