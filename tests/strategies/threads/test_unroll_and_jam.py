import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit.leaf_code import leaf_code
from metafork.comprehensive.optimize import optimize
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import jammed_loops
from metafork.ir.program import For, Version, walk_statements
from metafork.strategies.scalar_replacement import STRATEGY as SCALAR_REPLACEMENT
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.unroll_and_jam import STRATEGY, UnrollAndJam
from tests.metafork.programs import MATADD, MATMUL, program

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
