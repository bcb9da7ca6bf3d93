"""Typical values: what parameters are for, which leaves have instances for them, and that these run."""

import pytest

from metafork.analysis.analyses import NVIDIA
from metafork.comprehensive.case_discussion.instances import CHOSEN, NOTHING_TYPICAL
from metafork.comprehensive.case_discussion.typical_values import MOST_TYPICAL, typical_values
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.options import StaticValueError, asked_static
from metafork.comprehensive.verification import Options, verify
from tests.comprehensive.instances.shift_program import SHIFT
from tests.metafork.programs import MATADD, MATMUL, program

QUICK = {"counters": ("threads_per_block", "shared_memory"), "strategies": ("granularity", "scalar_replacement")}
SUMS = """
void sums(int n, TYPE s, int B, int K, int skip, const float a[n], float b[n]) {
  int dim = n / (EXTENT * s);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < n / K; k++)
        meta_for (int u = 0; u < EXTENT; u++)
          for (int z = 0; z < K; z++)
            for (int w = 0; w < s; w++)
              if (z != skip)
                b[(i * s + w) * EXTENT + u] += a[k * K + z];
  }
}
"""
LINE = """
void triple(int n, int s, int B, const int a[n], int b[n]) {
  int dim = n / (s * B);
  meta_schedule cache() {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < s; k++)
          b[(i * s + k) * B + u] = 3 * a[(i * s + k) * B + u];
  }
}
"""


def sums(extent="B", type_="int"):
    return program(SUMS.replace("EXTENT", extent).replace("TYPE", type_))


def test_values_follow_from_what_parameters_are_for():
    first, *others = typical_values(sums())
    assert first == {"B": 256, "s": 4, "K": 16}  # skip is for nothing that is known
    assert all(sum(one[name] != first[name] for name in first) == 1 for one in others)
    assert len({tuple(one.items()) for one in (first, *others)}) == 1 + len(others) <= MOST_TYPICAL
    assert typical_values(program(MATMUL))[0] == {"B0": 16, "ub1": 16, "s": 4}


def test_blocks_are_neither_too_small_nor_too_large():
    (first, *_) = typical_values(sums(extent="4 * B"))
    assert first == {"s": 4, "K": 16}  # of what the extent is, nothing is said
    assert all("B" not in one for one in typical_values(sums(extent="64")))
    wide = (
        LINE.replace("B", "width")
        .replace("int width,", "int B,")
        .replace("  int dim", "  int width = 2 * B;\n  int dim")
    )
    assert typical_values(program(wide)) == ({"s": 4}, {"s": 2})  # a variable is no parameter
    text = MATADD.replace("B1", "64").replace("int 64, ", "")
    assert [one["B0"] for one in typical_values(program(text))] == [16, 8, 4, 2]


def test_values_fit_the_types_of_parameters():
    assert {one["s"] for one in typical_values(sums(type_="signed char"))} == {4, 2}
    assert [one["B"] for one in typical_values(program(LINE.replace("int B", "signed char B")))] == [64, 32]


def test_a_leaf_has_instances_where_they_make_its_code_simpler():
    result = optimize(LINE, static="auto", **QUICK)
    (tree,) = result.schedules
    assert [one.values for one in tree.leaves[0].instances] == list(typical_values(program(LINE)))
    assert ("instances", CHOSEN) in tree.notes
    assert "- variant 1, `input_k0_leaf1_v1`: for B = 256, s = 4" in result.to_report()
    (tree,) = optimize(MATADD, static="auto", counters=("threads_per_block",), strategies=()).schedules
    assert tree.leaves[0].instances == ()  # its loops are those of the grid alone
    note = "none: no kernel is simpler for typical values (B0 = 16, B1 = 16 and others); --static names others"
    assert ("instances", note) in tree.notes
    text = LINE.replace("int s, int B, ", "").replace("(s * B)", "64").replace("* B", "* 64").replace("< B", "< 64")
    (tree,) = optimize(text.replace("< s", "< 1").replace("* s", "* 1"), static="auto", **QUICK).schedules
    assert ("instances", NOTHING_TYPICAL) in tree.notes


def test_a_leaf_that_no_supported_machine_chooses_with_the_values_has_none():
    options = {**QUICK, "strategies": ("granularity", "caching"), "order": "paper"}
    (tree,) = optimize(SHIFT, static="auto", machine=NVIDIA.machines, **options).schedules
    assert [len(leaf.instances) for leaf in tree.leaves] == [4, 0]
    # Where the machine is named, it is that one which counts: it has not the words for leaf 1 where B = 256.
    (tree,) = optimize(SHIFT, static="auto", machine="Z=300,T=1024", **options).schedules
    chosen = {leaf.id: [(one.values["B"], one.values["s"]) for one in leaf.instances] for leaf in tree.leaves}
    assert chosen == {1: [(64, 4)], 2: [(256, 4), (128, 4), (256, 2)], 3: []}


def test_nobody_is_given_instances_unasked_by_the_library():
    assert not any(leaf.instances for leaf in optimize(LINE, **QUICK).schedules[0].leaves)


@pytest.mark.slow
def test_instances_for_typical_values_are_verified():
    options = Options(points=2, optimization="-O0", races=False, dataflow_seconds=0)
    found = verify(LINE, static="auto", options=options, **QUICK, machine="all")
    assert found.passed
    assert any(row.for_values and row.points for row in found.rows)


def test_the_option_takes_words_or_values():
    assert asked_static((), "auto") == "auto"
    assert asked_static(("none",), "auto") == "none"
    assert asked_static(("auto",), {}) == "auto"
    assert asked_static(("s=1,2", "B=8"), "auto") == {"s": (1, 2), "B": (8,)}
    with pytest.raises(StaticValueError, match="stands alone"):
        asked_static(("s=1", "none"), "auto")
