"""Faults in tiles, planted in the text of a program after a schedule: the proof refutes each."""

import re

import pytest

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.verification.translation.translation import validate
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import applied
from metafork.transform.schedule import schedule_of
from tests.metafork.programs import MATMUL

STEPS = """
void steps(int n, int B, int T, float a[n][n], float b[n]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < T; k++)
          a[i * B + u][k] = b[i * B + u] + (k > 0 ? a[i * B + u][k - 1] : 0.0f);
  }
}
"""

FAULTS = [
    ("a guard that leaves the last row out", MATMUL, "tile(v, 4)", r"v_i < B0 - 4 \* v_o", "v_i < B0 - 4 * v_o - 1"),
    ("a row beyond the end", MATMUL, "tile(v, 4)", r"v_i < B0 - 4 \* v_o", "v_i <= B0 - 4 * v_o"),
    ("no guard", MATMUL, "tile(v, 4)", r"v_i < B0 - 4 \* v_o", "v_i >= 0"),
    ("the next row", MATMUL, "tile(v, 4)", r"4 \* v_o \+ v_i;", "4 * v_o + v_i + 1;"),
    ("another stride", MATMUL, "tile(v, 4)", r"4 \* v_o \+ v_i;", "3 * v_o + v_i;"),
    ("a row of each tile left out", MATMUL, "tile(v, 4)", r"v_i < 4;", "v_i < 3;"),
    ("no tile for what is left over", MATMUL, "tile(v, 4)", r"v_tiles = \(B0 \+ 3\)", "v_tiles = B0"),
    ("columns in another stride", MATMUL, "tile(u, 4, strided)", r"u_i \* u_tiles \+ u_o;", "u_i * 4 + u_o;"),
    ("a tile taken for full", MATMUL, "tile(u, 4, tail=peel)", r">= 4\)", ">= 3)"),
    ("blocks of the grid left out", MATMUL, "tile(j, 2)", r"j_tiles = \(dim1 \+ 1\)", "j_tiles = dim1"),
    ("an iteration of a serial loop twice", STEPS, "tile(k, 4)", r"4 \* k_o \+ k_i;", "4 * k_o + (k_i > 2 ? 2 : k_i);"),
    ("a recurrence in another order", STEPS, "tile(k, 4)", r"4 \* k_o \+ k_i;", "4 * k_o + 3 - k_i;"),
    ("tiles of a recurrence side by side", STEPS, "tile(k, 2)", r"2 \* k_o \+ k_i;", "k_o + k_i * k_tiles;"),
]


def scheduled(text, schedule):
    """Return a program and its text after a schedule."""
    program = parse(Source("test.mf", text)).schedules[0].program
    return program, metafork_text(applied(program, schedule_of(schedule), Analyses()))


@pytest.mark.parametrize(
    ("text", "schedule", "right", "wrong"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS]
)
def test_a_fault_is_refuted(text, schedule, right, wrong):
    source, after = scheduled(text, schedule)
    faulty, found = re.subn(right, wrong, after, count=1)
    assert found == 1
    assert validate(source, parse(Source("test.mf", faulty)).schedules[0].program).verdict is Verdict.NO


@pytest.mark.parametrize("schedule", ["tile(v, 4); tile(u, 4, strided, peel)", "tile(i, 2); tile(z, 4, tail=peel)"])
@pytest.mark.slow
def test_a_product_in_tiles_is_proved_beyond_one_tile(schedule):
    source, after = scheduled(MATMUL, schedule)
    found = validate(source, parse(Source("test.mf", after)).schedules[0].program, shapes=1)
    assert found.verdict is Verdict.YES
    (shape,) = found.shapes
    assert min(shape.values()) > 2
