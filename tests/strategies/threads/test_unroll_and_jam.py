import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit.leaf_code import leaf_code
from metafork.comprehensive.optimize import optimize
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.mapping import Layout
from metafork.ir.marks import jammed_loops
from metafork.ir.program import For, Version, walk_statements
from metafork.strategies.scalar_replacement import STRATEGY as SCALAR_REPLACEMENT
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.unroll_and_jam import STRATEGY, UnrollAndJam
from metafork.transform.placement import Vectorize
from tests.metafork.programs import MATADD, MATMUL, ROWS, program

CHOSEN = {"counters": ("registers_per_thread",), "strategies": ("scalar_replacement", "unroll_and_jam")}


def test_products_have_tiles_and_sums_have_none():
    applied = STRATEGY.apply(SCALAR_REPLACEMENT.apply(Version(program(MATMUL)), Analyses()).version, Analyses())
    assert isinstance(applied, Applied)
    assert jammed_loops(applied.version.program) == {"w": 4}
    assert isinstance(STRATEGY.apply(applied.version, Analyses()), NotApplied)
    assert isinstance(STRATEGY.apply(Version(program(MATADD)), Analyses()), NotApplied)


def test_where_registers_are_short_there_are_no_tiles():
    version = SCALAR_REPLACEMENT.apply(Version(program(MATMUL)), Analyses()).version
    short = Version(version.program, (Pipeline("rolled", ("O3-rolled",)),))
    assert isinstance(STRATEGY.apply(short, Analyses()), NotApplied)


def test_the_option_is_checked():
    with pytest.raises(ValueError, match="from 2 to 16"):
        UnrollAndJam(most=1)


def test_a_tile_goes_first_where_the_registers_are():
    (tree,) = optimize(MATMUL, machine="all", **CHOSEN).schedules
    (leaf,) = tree.leaves
    tiled, plain = leaf.variants
    assert (jammed_loops(tiled.version.program), jammed_loops(plain.version.program)) == ({"w": 4}, {})
    assert [limit.left for limit in tiled.limits] == [tiled.counters["registers_per_thread"].numerator]


def test_an_instance_has_its_tile_whatever_order_its_loops_stand_in():
    inside = "for (int w = 0; w < s; w++)"
    start = MATMUL.index("for (int z")
    head = MATMUL[start : MATMUL.index(")", start) + 1]
    turned = MATMUL.replace(head, "HERE").replace(inside, head).replace("HERE", inside)
    assert turned != MATMUL
    (tree,) = optimize(turned, machine="all", **CHOSEN, static={"s": (3,)}).schedules
    made = [instance for leaf in tree.leaves for instance in leaf.instances]
    assert made
    for one in made:
        counters = [stmt.init.name for stmt in walk_statements(leaf_code(one).kernel.body) if isinstance(stmt, For)]
        assert "z" in counters
        assert "w" not in counters


@pytest.mark.parametrize(("element", "forms"), [("float", (4, 1)), ("double", (2, 1)), ("short", (1,))])
def test_tiles_whose_rows_threads_walk_are_padded_by_a_vector_where_rows_are_whole_vectors(element, forms):
    leaf = optimize(ROWS.replace("ELEMENT", element), machine="all", static={}).schedules[0].leaves[0]
    layouts = [one.version.program.mapping.layouts for one in leaf.variants]
    assert layouts == [(("a", Layout(padding=count)),) for count in forms]
    evens = [limit for one in leaf.variants for limit in one.limits if "ceil" in str(limit)]
    assert [str(limit.left) for limit in evens] == [f"{2 * count}*ceil1 + {2 * count}" for count in forms if count > 1]


def test_a_thread_that_walks_a_row_of_its_own_reads_vectors():
    text = """
    void walks(int n, int m, int B, const int first[n + 1], const float x[m], float y[n])
    {
      meta_schedule meta_block(B) {
        meta_for (int i = 0; i < n; i++) {
          float sum = 0;
          for (int k = first[i]; k < first[i + 1]; k++)
            sum = sum / 2 + x[k];
          y[i] = sum;
        }
      }
    }"""
    applied = STRATEGY.apply(Version(program(text)), Analyses())
    assert isinstance(applied, Applied)
    assert (applied.schedule, applied.effect.what) == ((Vectorize(),), "vectors")
    assert isinstance(STRATEGY.apply(applied.version, Analyses()), NotApplied)
