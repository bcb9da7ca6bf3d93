"""Rows that blocks add up by trees: a thread has several places of a tree, and reads vectors."""

from pathlib import Path

import pytest

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse
from metafork.ir.marks import results_of
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied
from metafork.strategies.threads.register_tile import STRATEGY
from metafork.strategies.threads.trees import adds_up_rows

PROGRAMS = Path(__file__).parents[3] / "bench" / "programs"

TEXT = """
void f(int n, int m, int B, const float x[n][m], float y[n])
{
  meta_schedule {
    meta_for (int i = 0; i < n; i++) {
      float s[B];
      meta_for (int u = 0; u < B; u++) {
        float sum = 0;
        for (int k = u; k < m; k += B)
          sum += VALUE;
        s[u] = sum;
      }
      for (int h = 512; h > 0; STEP)
        meta_for (int u = 0; u < B; u++)
          if (u < h && u + h < B) s[u] += s[u + h];
      meta_for (int u = 0; u < 1; u++)
        y[i] = s[0];
    }
  }
}
"""


def parsed(text):
    return parse(Source("case.mf", text), reassociate=True).schedules[0].program


def sums(value="x[i][k]", step="h /= 2"):
    return parsed(TEXT.replace("VALUE", value).replace("STEP", step))


@pytest.mark.parametrize(
    "name", ["dot", "layer_norm", "softmax", "row_product", "layer_norm_reduction", "dot_reduction", "scan"]
)
def test_threads_have_four_places_then_two(name):
    """With one place each where blocks are small."""
    version, analyses, strategy, counts = (
        Version(parsed((PROGRAMS / f"{name}.mf").read_text())),
        Analyses(),
        STRATEGY,
        [],
    )
    while strategy is not None:
        applied = strategy.apply(version, analyses)
        assert isinstance(applied, Applied)
        counts += results_of(applied.version.program)
        strategy = applied.otherwise
    assert counts == [4, 2]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (sums(), True),
        (sums("sqrtf(x[i][k])"), True),
        (sums("(x[i][k] * x[i][k] + 1) * (x[i][k] + 2) * x[i][k]"), False),
        (sums(step="h /= 3"), False),
        (parsed((PROGRAMS / "nbody_tiled.mf").read_text()), False),
        (parsed((PROGRAMS / "scan.mf").read_text()), True),
        (parsed((PROGRAMS / "jacobi3d.mf").read_text()), False),
    ],
    ids=["sums", "roots", "much is computed", "no halves", "no tree", "upwards", "planes"],
)
def test_blocks_that_add_up_rows(program, expected):
    assert adds_up_rows(program) == expected


def test_a_phase_may_have_fewer_places_than_the_block():
    """How many groups of four ``B - 1`` places are has no name."""
    text = (PROGRAMS / "scan.mf").read_text()
    fewer = text.replace("meta_for (int u = 0; u < B; u++)\n        y", "meta_for (int u = 1; u < B; u++)\n        y")
    assert fewer != text
    applied = STRATEGY.apply(Version(parsed(fewer)), Analyses())
    assert isinstance(applied, Applied)
    assert results_of(applied.version.program) == (4,)
