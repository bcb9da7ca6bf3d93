"""The point at which a tree is shown: one that people could have, also for schedules in loops of the host."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.examples import another, for_gpus, gpus_for, point_to_show, question
from metafork.comprehensive.tree.selection import select
from metafork.runtime.machine import PRESETS
from tests.comprehensive.tree.pages import QUICK

STEPS = """
void steps(int n, int B, float a[n][n])
{
  for (int k = 0; k < n; k++) {
    int blocks = (n - k + B - 1) / B;
    meta_schedule {
      meta_for (int i = 0; i < blocks; i++)
        meta_for (int u = 0; u < B; u++)
          if (k + i * B + u < n)
            a[k][k + i * B + u] = a[k][k + i * B + u] * 2;
    }
  }
}
"""
TILE = """
void tile(int n, int K, int B0, int B1, int s, const float x[n][K], float y[n][n])
{
  int rows = n / B0, columns = n / (B1 * s);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < rows; i++)
      meta_for (int j = 0; j < columns; j++)
        meta_for (int v = 0; v < B0; v++)
          meta_for (int u = 0; u < B1; u++)
            for (int w = 0; w < s; w++) {
              float sum = 0;
              for (int k = 0; k < K; k++)
                sum += x[i * B0 + v][k];
              y[i * B0 + v][(j * s + w) * B1 + u] = sum;
            }
  }
}
"""


def shown(text, **options):
    (schedule,) = optimize(text, static=None, **QUICK, **options).document.schedules
    return schedule, point_to_show(schedule, dict(gpus_for(schedule)))


def test_a_block_has_many_threads_and_the_data_many_blocks():
    schedule, one = shown(TILE)
    assert (one.gpu, one.chosen.leaf) == ("sm_80", 1)
    assert {name: one.point[name] for name in ("B0", "B1", "s")} == {"B0": 16, "B1": 16, "s": 4}
    assert one.point["n"] >= 1024
    assert question([schedule], "here", [one]).startswith("metafork select here --machine sm_80 n=")


def test_in_a_loop_of_the_host_sizes_are_large_and_the_step_is_early():
    schedule, one = shown(STEPS)
    assert {name: one.point[name] for name in (*schedule.data, *schedule.program)} == {"n": 4096, "B": 256, "k": 4}
    assert one.chosen.leaf == 1


@pytest.mark.parametrize("text", [TILE, STEPS])
def test_the_other_point_is_one_at_which_something_else_runs(text):
    schedule, one = shown(text)
    other = another(schedule, one)
    if other is None:
        assert len(schedule.leaves) == len(schedule.leaves[0].variants) == 1
    else:
        assert other.chosen == select(schedule, other.point)
        assert (other.chosen.leaf, other.chosen.variant) != (one.chosen.leaf, one.chosen.variant)


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ((), ""),
        (tuple(PRESETS), ""),
        (("sm_80",), " for sm_80"),
        (("sm_80", "sm_86"), " for sm_80, sm_86"),
        (("sm_80", "sm_86", "sm_87", "sm_88", "sm_89"), " for sm_80 to sm_89"),
        (("sm_75", "sm_86", "sm_89"), " for sm_75, sm_86, sm_89"),
    ],
)
def test_gpus_in_words(gpus, said):
    assert for_gpus(gpus) == said
