"""Which windows get two buffers, why others do not, and what leaves ask for."""

from pathlib import Path

import pytest

from comprehensive.optimize import optimize
from metafork.analysis.analyses import Analyses
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.program import Version
from strategies.double_buffering import STRATEGY
from strategies.strategy import Applied, NotApplied
from tests.metafork.programs import program

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


def test_a_leaf_is_split_where_two_buffers_have_room():
    text = filled()
    (tree,) = optimize(text, counters=("shared_memory",), strategies=("caching", "double_buffering")).schedules
    ahead, plain, *_ = tree.leaves
    assert (ahead.version.program.mapping.stages, plain.version.program.mapping.stages) == (2, 1)
    words = [leaf.counters["shared_memory"].numerator for leaf in (ahead, plain)]
    assert words[0] == words[1] * 2
    needs = [need for need in ahead.systems[0] if need.left == words[0]]
    assert len(needs) == 1
    assert needs[0].negated() in plain.systems[0]


def test_instances_take_no_more_memory_than_their_leaf():
    text = filled()
    chosen = {"counters": ("shared_memory",), "strategies": ("caching", "double_buffering")}
    (tree,) = optimize(text, static={"K": [4], "B": [32]}, machine="all", **chosen).schedules
    assert {
        (leaf.version.program.mapping.stages, one.version.program.mapping.stages)
        for leaf in tree.leaves
        for one in leaf.instances
    } == {(2, 2), (1, 1)}


def test_other_forks_stay_where_two_buffers_have_no_room():
    """Registers are one question, shared memory is another one: every answer to both has its leaf."""
    strategies = ("scalar_replacement", "register_tile", "caching", "double_buffering")
    counters = ("registers_per_thread", "shared_memory")
    (tree,) = optimize(EXAMPLE, counters=counters, strategies=strategies, machine="all").schedules
    mappings = [leaf.version.program.mapping for leaf in tree.leaves]
    cached = {(one.jammed is not None, one.stages) for one in mappings if one.cached}
    assert cached == {(True, 2), (True, 1), (False, 2), (False, 1)}
