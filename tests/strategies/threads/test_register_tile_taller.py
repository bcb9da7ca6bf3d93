"""Columns of a thread with twice the rows: which programs have them and where, and their kernels at odd sizes."""

from fractions import Fraction

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.comprehensive.optimize import optimize
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.multiple import Multiple
from metafork.evaluators.registers_per_thread import registers
from metafork.evaluators.sectors_of_loads import sectors_of_loads
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of
from metafork.ir.program import Var, Version
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.register_tile import MOST_REGISTERS, RegisterTile
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program
from tests.strategies.running import running

STRATEGY, COLUMNS = (RegisterTile(shapes=(name,)) for name in ("taller", "columns"))

TEXT = """
void {name}(int n, int m, int s, int B, int C, const {type} a[n + 4][m + 4], const {type} w[5][5],
            {type} c[n + 4][m + 4])
{{
  int down = n / (s * B), across = m / C;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < down; i++) meta_for (int j = 0; j < across; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < C; u++)
        for (int k = 0; k < s; k++) {{
          int y = (i * s + k) * B + v, x = j * C + u;
          {body}
        }}
  }}
}}"""
CONVOLUTION = (
    "float sum = 0; for (int p = 0; p < {0}; p++) for (int q = 0; q < {0}; q++) sum += w[p][q] * a[y + p][x + q];"
    " c[y][x] = sum;"
)
FIVE = "c[y + 1][x + 1] = a[y + 1][x + 1] + a[y + 1][x] + a[y + 1][x + 2] + a[y][x + 1] + a[y + 2][x + 1];"
TAKEN = {
    "a_convolution": ((8, 4), CONVOLUTION.format(3)),
    "five_points": ((16, 2), FIVE),
}
LEFT = {
    "too_long_to_unroll": (CONVOLUTION.format(17), "hardly less"),
    "no_columns": ("c[y][x] = ((((a[y][x] + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2;", "share no loads"),
}


def text(body, name="f", type_="float", cached=""):
    return TEXT.format(name=name, body=body, type=type_, cached=cached)


def applied(body, **how):
    return STRATEGY.apply(Version(program(text(body, **how))), Analyses())


@pytest.mark.parametrize("name", TAKEN)
def test_twice_the_rows_where_a_result_then_takes_fewer_sectors(name):
    results, body = TAKEN[name]
    found = applied(body)
    assert isinstance(found, Applied)
    assert results_of(found.version.program) == results
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


@pytest.mark.parametrize("name", LEFT)
def test_where_that_saves_little_threads_stay(name):
    body, why = LEFT[name]
    found = applied(body)
    assert isinstance(found, NotApplied)
    assert why in found.reason


def test_where_columns_do_not_apply_nor_do_more_rows():
    assert isinstance(applied(FIVE, cached="a"), NotApplied)
    short = Version(program(text(FIVE)), (Pipeline("rolled", ("O3-rolled",)),))
    assert isinstance(STRATEGY.apply(short, Analyses()), NotApplied)


def test_registers_are_not_spent_without_end():
    straight = text(FIVE).replace("for (int k = 0; k < s; k++)", "").replace("(i * s + k)", "i")
    version, analyses = Version(program(straight)), Analyses()
    plain, shorter = (registers(one, analyses) for one in (version, COLUMNS.apply(version, analyses).version))
    found = STRATEGY.apply(version, analyses)
    assert 2 * shorter - plain > MOST_REGISTERS
    assert isinstance(found, NotApplied)
    assert f"some {2 * shorter - plain} registers" in found.reason


def test_one_thread_loop_has_no_rows():
    line = (
        "void f(int n, int B, const float a[n + 2], float c[n]) { int d = n / B; meta_schedule { meta_for (int i = 0; "
    )
    line += "i < d; i++) meta_for (int u = 0; u < B; u++) c[i * B + u] = a[i * B + u] + a[i * B + u + 2]; } }"
    found = STRATEGY.apply(Version(program(line)), Analyses())
    assert isinstance(found, NotApplied)
    assert found.reason == "there are no rows"


def test_the_option_is_checked():
    with pytest.raises(ValueError, match="from 8 to 64"):
        RegisterTile(results=4)


SECTORS = {
    # Lanes are 8 bytes apart: 8.75 sectors an access.  Two accesses a row, of two above and below the eight too.
    "five_points": (FIVE, 2, 8, "float", Fraction(20) * Fraction(35, 4) / 16),
    "more_rows": (FIVE, 2, 16, "float", Fraction(36) * Fraction(35, 4) / 32),
    # 16 bytes: 16.5 sectors; six elements of six rows in two accesses each, four and two, and nine weights.
    "a_convolution": (CONVOLUTION.format(3), 4, 4, "float", (12 * Fraction(33, 2) + 9) / 16),
    # 32 bytes: every lane has a sector of its own.
    "wide_elements": (CONVOLUTION.format(3), 4, 4, "double", Fraction(18 * 32 + 9, 16)),
    # One trip of the loop over p, and in it all of q: 4 rows of 12 elements and 9 weights, nine times.
    "half_unrolled": (CONVOLUTION.format(9), 4, 4, "float", 9 * (4 * 3 * Fraction(33, 2) + 9) / 16),
    "columns_of_a_matrix": ("c[y][x] = a[x][y] + a[0][0];", 2, 4, "float", Fraction(8 * 32 + 1, 8)),
    "any_place": ("c[y][x] = a[(int)c[y][0] % 4][x];", 2, 4, "float", Fraction(8 * 32 + 4, 8)),
    "squares": ("if (x < 2 && y < 2) c[y][x] = a[y * y][x];", 2, 4, "float", Fraction(32)),
}


@pytest.mark.parametrize("name", SECTORS)
def test_sectors_of_loads_are_those_of_different_elements(name):
    body, columns, rows, type_, want = SECTORS[name]
    memory = block_memory(program(text(body, type_=type_)), Analyses())
    assert sectors_of_loads(memory, 0, rows, columns) == want


def test_whole_rows_are_a_multiple():
    version = Version(program(text(FIVE)))
    assert isinstance(Multiple(Var("k", ScalarType.INT), 16).evaluate(version, Analyses()), NotKnown)
    value = Multiple(Var("B", ScalarType.INT), 16).evaluate(version, Analyses())
    for extent in (1, 8, 16, 24, 32):
        point = {"B": extent, "n": 512, "m": 512, "s": 1, "C": 4}
        for symbol in value.derived:
            point[symbol.name] = symbol.evaluate(point)
        assert value.numerator.evaluate(point) == extent + 16
        assert value.denominator.evaluate(point) == 16 * -(-extent // 16) + 16


def shapes(points, **how):
    """The results per thread of what runs at blocks of B by C, on a machine with R registers."""
    names = ("register_tile",)
    (tree,) = optimize(text(FIVE), strategies=names, machine="all", **how).schedules
    found = {}
    for point in points:
        version = running(tree, n=512, m=512, s=1, **dict(zip("BCR", point, strict=False))).version
        found[point] = results_of(version.program)
    return found


def test_blocks_that_have_not_all_rows_have_columns_with_fewer():
    tall, short, few = (16, 2), (8, 2), (4, 2)
    assert shapes([(16, 64), (32, 32), (8, 64), (8, 128), (24, 32), (8, 32), (4, 32)]) == {
        (16, 64): tall,
        (32, 32): tall,
        (8, 64): short,
        (8, 128): short,
        (24, 32): short,
        (8, 32): few,
        (4, 32): (4, 1),
    }


def test_where_registers_are_short_there_are_columns_with_fewer_rows():
    assert shapes([(16, 64, 255), (16, 64, 64), (16, 64, 50), (16, 64, 40)]) == {
        (16, 64, 255): (16, 2),
        (16, 64, 64): (8, 2),
        (16, 64, 50): (4, 2),
        (16, 64, 40): (4, 1),
    }


def test_instances_have_all_rows_or_fewer():
    names = ("register_tile",)
    static = {"B": (8, 16), "C": (64,)}
    (tree,) = optimize(text(FIVE), counters=("threads_per_block",), strategies=names, static=static).schedules
    rows = {(one.values["B"], results_of(one.version.program)[0]) for leaf in tree.leaves for one in leaf.instances}
    assert rows >= {(8, 8), (16, 16)}
    assert (8, 16) not in rows


@pytest.mark.slow
def test_kernels_at_sizes_that_leave_rows_and_columns_over(tmp_path):
    points = grid(n=(16, 35), m=(8, 18), s=(1, 2), B=(5, 8), C=(3, 4)) + grid(
        n=(48,), m=(8,), s=(1,), B=(16, 24), C=(4, 8)
    )
    cases = [
        Case(text(body, name), points, program=applied(body, name=name).version.program)
        for name, (_, body) in TAKEN.items()
    ]
    assert run(cases, tmp_path) == {}
