"""Groups of four iterations of a granularity loop: which programs have them, and their kernels at odd sizes."""

from pathlib import Path

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.comprehensive.optimize import optimize
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of, with_results
from metafork.ir.program import INT, For, If, Var, Version, walk_statements
from metafork.lowering.lowering import lower
from metafork.strategies.granularity_groups import STRATEGY, GranularityGroups
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.register_tile import STRATEGY as REGISTER_TILE
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import MATMUL, program

GOLDEN = Path(__file__).parent / "golden" / "granularity_groups"
PRODUCT, TILE, SCALARS, PHASES = (
    (GOLDEN / f"{name}.mf").read_text().partition("\n/* after")[0]
    for name in ("product", "rows_and_columns", "scalars_of_a_block", "several_phases")
)
TEXT = """
void f(int n, int m, int B, int s, const int a[m], int c[n], const int d[n])
{{
  int blocks = n / (B * s);
  meta_schedule {{
    meta_for (int i = 0; i < blocks; i++) {{
      {before}
      for (int k = 0; k < m; k++) {{
        {inside}
        meta_for (int u = 0; u < B; u++)
          for (int w = 0; w < s; w++) {{
            {thread}
            c[(i * s + w) * B + u] += a[k] * {factor};
          }}
      }}
    }}
  }}
}}"""


def text(before="", inside="", thread="", factor="k"):
    return TEXT.format(before=before, inside=inside, thread=thread, factor=factor)


def applied(source, strategy=STRATEGY):
    return strategy.apply(Version(program(source)), Analyses())


def with_tiles(version):
    for strategy in (REGISTER_TILE, REGISTER_TILE):
        result = strategy.apply(version, Analyses())
        version = result.version if isinstance(result, Applied) else version
    return version


def test_results_have_registers_that_had_none():
    version = Version(program(PRODUCT))
    assert not block_memory(version.program).paths[0].private
    found = STRATEGY.apply(version, Analyses())
    whole, rest = block_memory(found.version.program).paths
    assert [(one.array.name, one.count) for one in (*whole.private, *rest.private)] == [("z", 4), ("z", 1)]
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


def test_groups_are_proved_to_lie_in_the_arrays():
    """The blocks of a path are as many as its condition says: nothing is compared with the extent of an array."""
    kernel = lower(applied(PRODUCT).version.program, "k")
    stmts = list(walk_statements(kernel.body))
    tests = [stmt.condition for stmt in stmts if isinstance(stmt, If | For)]
    assert not [one for one in tests if one.op == "<" and one.right == Var("n", INT)]


def test_rows_and_columns():
    found = applied(TILE)
    counts = [one.count for path in block_memory(found.version.program).paths for one in path.private]
    assert counts == [16, 4, 4, 1]
    assert "s and of t" in found.note


def test_as_many_as_the_option_says():
    counts = [
        one.count
        for path in block_memory(applied(PRODUCT, GranularityGroups(most=6)).version.program).paths
        for one in path.private
    ]
    assert counts == [6, 1]
    assert isinstance(applied(TILE, GranularityGroups(most=5)), NotApplied)  # 25 results have no registers
    with pytest.raises(ValueError, match="from 2 to 16"):
        GranularityGroups(most=1)


LEFT = {
    "nothing_lacks_registers": text().replace("w < s", "w < 4").replace("* s", "* 4"),
    "an_array_of_the_block": text(inside="int t[B]; meta_for (int u = 0; u < B; u++) t[u] = a[k];", factor="t[u]"),
    "an_array_of_a_thread": text(thread="int t[2]; t[0] = a[k]; t[1] = k;", factor="t[u % 2]"),
    "a_bound_at_block_level": text().replace("k < m", "k < m - i * s"),
    "a_scalar_that_is_assigned": text(before="int p = i * s; p += B;", factor="(p + i * s)"),
}


@pytest.mark.parametrize("name", LEFT)
def test_other_programs_stay_as_they_are(name):
    assert isinstance(applied(LEFT[name]), NotApplied)


def test_the_text_that_others_differ_from_is_taken():
    assert isinstance(applied(text()), Applied)
    assert isinstance(applied(text(before="int p = i * s * B;").replace("(i * s + w) * B", "p + w * B")), Applied)
    assert isinstance(applied(text(before="int p = d[0];", factor="p")), Applied)


def test_where_threads_do_more_already_or_registers_are_short():
    version = Version(program(PRODUCT))
    for mapped in (with_results(version.program, {0: 4}), version.program.mapped(wide=True)):
        assert isinstance(STRATEGY.apply(Version(mapped), Analyses()), NotApplied)
    short = Version(version.program, (Pipeline("rolled", ("O3-rolled",)),))
    assert isinstance(STRATEGY.apply(short, Analyses()), NotApplied)


def test_it_goes_first_where_the_registers_are():
    strategies = ("scalar_replacement", "granularity_groups")
    (tree,) = optimize(MATMUL, counters=("registers_per_thread",), strategies=strategies, machine="all").schedules
    (leaf,) = tree.leaves
    grouped, plain = leaf.variants
    assert (grouped.strategies, plain.strategies) == (strategies, strategies[:1])
    assert [limit.left for limit in grouped.limits] == [grouped.counters["registers_per_thread"].numerator]


@pytest.mark.slow
def test_kernels_at_sizes_that_leave_iterations_over(tmp_path):
    cases = []
    for name, source, points in (
        ("product", PRODUCT, grid(n=(12, 17), B=(2, 5), b=(1, 2), s=(1, 2, 3, 5, 6))),
        ("rows_and_columns", TILE, grid(n=(13, 20), B=(1, 2), s=(1, 3, 5), t=(2, 4, 7))),
        ("scalars_of_a_block", SCALARS, grid(n=(9, 40), m=(1, 3), B=(1, 3), s=(1, 2, 5, 9))),
        ("several_phases", PHASES, grid(n=(9, 40), m=(1, 3), B=(1, 3), s=(1, 2, 5, 9))),
    ):
        version = applied(source).version
        cases.append(Case(source, points, program=version.program, label=name))
        cases.append(Case(source, points, program=with_tiles(version).program, label=f"{name}, tiled"))
    assert results_of(with_tiles(applied(PRODUCT).version).program) == (4, 1)
    assert run(cases, tmp_path / "whole") == {}
    assert run(cases[1:2], tmp_path / "walked", grid_limit=2) == {}
