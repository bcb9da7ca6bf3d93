"""Which windows get two buffers, why others do not, and what leaves ask for."""

from pathlib import Path

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import jammed_loops
from metafork.ir.program import Version
from metafork.strategies.double_buffering import STRATEGY
from metafork.strategies.strategy import Applied, NotApplied
from tests.metafork.programs import program
from tests.strategies.running import running

EXAMPLE = Path(__file__).parents[2] / "examples" / "matmul.mf"
TEXT = """
void f(int n, int m, int K, int B, ELEMENT a[2 * n][m], const float b[m], float c[n], int stop[n])
{
  int blocks = n / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < blocks; i++) {
      BEFORE
      HEAD {
        meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < K; z++)
            c[i * B + u] += a[i * B + u][k * K + z] * b[k * K + z];
        AFTER
      }
    }
  }
}"""
HEAD = "for (int k = 0; k < m / K; k++)"


def filled(head=HEAD, element="float", before="", after="", text=TEXT):
    return text.replace("ELEMENT", element).replace("HEAD", head).replace("BEFORE", before).replace("AFTER", after)


def applied(**changes):
    return STRATEGY.apply(Version(program(filled(**changes))), Analyses())


def test_what_is_only_read_is_copied_ahead():
    found = applied()
    assert isinstance(found, Applied)
    assert found.version.program.mapping.stages == 2
    assert "windows of a, b are copied" in found.note
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


def test_what_is_written_in_front_of_the_loop_is_copied_ahead():
    before = "meta_for (int u = 0; u < B; u++) a[n + i * B + u][0] = 2;"
    assert "windows of a, b are copied" in applied(before=before).note


def test_other_windows_are_copied_in_time():
    found = applied(after="meta_for (int u = 0; u < B; u++) a[n + i * B + u][k * K] = c[i * B + u];")
    assert "windows of b are copied" in found.note
    assert "the loop over k writes a" in found.note
    assert "windows of b are copied" in applied(element="short").note
    assert "elements of a have 2 bytes" in applied(element="short").note


LEFT = {
    "left_early": {"after": "if (stop[i] > k) break;"},
    "data_in_the_condition": {"head": "for (int k = 0; k < m / K && stop[i] > 0; k++)"},
    "data_in_the_beginning": {"head": "for (int k = stop[i]; k < m / K; k++)"},
    "no_counter": {"head": "int k = 0; while (k < m / K)", "after": "k++;"},
    "counter_of_its_own": {"before": "int k;", "head": "for (k = 0; k < m / K; k++)"},
    "a_bound_that_moves": {
        "before": "int e = m / K;",
        "head": "for (int k = 0; k < e; k++)",
        "after": "if (k > 2) e = e - 1;",
    },
    "a_place_that_moves": {"before": "int p = 0;", "head": "for (int q = 0; q < m / K; q++)", "after": "p = q;"},
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_known_a_step_early_is_left(name):
    assert isinstance(applied(**LEFT[name], text=TEXT.replace("k *", "p *") if "place" in name else TEXT), NotApplied)


def test_ptx_is_left():
    version = Version(program(filled()))
    assert isinstance(
        STRATEGY.apply(Version(version.program, (Pipeline("rolled", ("O3-rolled",)),)), Analyses()), NotApplied
    )


def test_two_buffers_go_first_where_they_have_room():
    (tree,) = optimize(filled(), counters=("shared_memory",), strategies=("caching", "double_buffering")).schedules
    ahead, plain = tree.leaves[0].variants
    assert (ahead.version.program.mapping.stages, plain.version.program.mapping.stages) == (2, 1)
    words = [one.counters["shared_memory"].numerator for one in (ahead, plain)]
    assert words[0] == words[1] * 2
    assert [limit.left for limit in ahead.limits] == [words[0]]
    uncached = tree.leaves[1]
    assert [one.version.program.mapping.stages for one in uncached.variants] == [1]


@pytest.mark.parametrize(("room", "stages"), [(2 * 33 * 4, 2), (2 * 33 * 4 - 1, 1)])
def test_instances_take_no_more_memory_than_the_variant_that_would_run(room, stages):
    chosen = {"counters": ("shared_memory",), "strategies": ("caching", "double_buffering")}
    (tree,) = optimize(filled(), static={"K": [4], "B": [32]}, machine="all", **chosen).schedules
    for rows in (32, 31):
        found = running(tree, K=4, B=rows, n=64, m=64, Z=room - (32 - rows) * 8)
        assert found.version.program.mapping.stages == stages
        assert bool(found.values) == (rows == 32 and stages == 2)


def test_register_tiles_stay_where_two_buffers_have_no_room():
    strategies = ("scalar_replacement", "unroll_and_jam", "caching", "double_buffering")
    counters = ("registers_per_thread", "shared_memory")
    (tree,) = optimize(EXAMPLE, counters=counters, strategies=strategies, machine="all").schedules
    leaf = next(leaf for leaf in tree.leaves if leaf.version.program.mapping.cached)
    programs = [one.version.program for one in leaf.variants]
    assert [(bool(jammed_loops(one)), one.mapping.stages) for one in programs] == [(True, 2), (True, 1), (False, 1)]
