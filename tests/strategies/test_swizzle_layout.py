from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.tile_layout import declare_masks, place_in_line, place_in_tile
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.evaluators.bank_degree import COUNTER
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.mapping import Layout
from metafork.ir.program import BlockArray, IntConst, Var, Version, walk_statements
from metafork.strategies.caching import STRATEGY as CACHING
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.swizzle_layout import STRATEGY
from tests.metafork.awkward import AWKWARD
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import JACOBI, MATMUL, TRANSPOSE, program

EXAMPLES = Path(__file__).parents[2] / "examples"
TWO = (EXAMPLES / "transpose.mf").read_text()
TRUE = "void transpose_true" + TWO.split("void transpose_true")[1]
WIDE = TRUE.replace("int a", "double a").replace("int c", "double c").replace("transpose_true", "transpose_double")
NARROW = TRUE.replace("int a", "char a").replace("int c", "char c").replace("transpose_true", "transpose_char")
COUNTERS = ("threads_per_block", "shared_memory", "bank_degree")

# Read along columns, and along the diagonal, where bits of the row would undo the column.
DIAGONAL = """
void diagonal(int N, int B, int b[N * B * B]) {
  assert(32 <= B);
  meta_schedule {
    meta_for (int i = 0; i < N; i++)
      meta_for (int h = 0; h < 1; h++) {
        int tile[B][B];
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < B; u++)
            tile[v][u] = u * 3 + v + i;
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < B; u++)
            b[(i * B + v) * B + u] = tile[u][v] + tile[u][u];
      }
  }
}
"""


def degree(version):
    return int(COUNTER.evaluate(version, Analyses()).numerator.constant_value())


def applied(text, number=0):
    result = STRATEGY.apply(Version(program(text, number)), Analyses())
    assert isinstance(result, Applied), result
    return result


def with_layout(case, layout):
    subject = case.lowered_program()
    blocks = [stmt.array.name for stmt in walk_statements(subject.body) if isinstance(stmt, BlockArray)]
    layouts = tuple((name, layout) for name in (*subject.mapping.cached, *blocks))
    label = f"{case.function.name} {layout}"
    return replace(case, program=subject.mapped(layouts=layouts), label=label, _parsed=[])


def test_the_transposition_loses_its_conflicts_and_needs_no_word_more():
    before = Version(program(TRUE))
    after = applied(TRUE)
    assert (degree(before), degree(after.version)) == (32, 1)
    assert (
        SHARED_MEMORY.evaluate(after.version, Analyses()).numerator
        == SHARED_MEMORY.evaluate(before, Analyses()).numerator
    )
    assert dict(after.version.program.mapping.layouts) == {"a": Layout("reversed"), "c": Layout("reversed")}
    assert "c (columns moved by the row's bits in reverse): 32 to 1" in after.note


def test_whole_warps_need_the_rows_own_bits_only():
    wide = applied(TRUE.replace("int dim0", "assert(32 <= B0 && 32 <= B1); int dim0"))
    assert dict(wide.version.program.mapping.layouts) == {"c": Layout("row")}
    assert degree(wide.version) == 1


@pytest.mark.parametrize("text", [WIDE, NARROW, MATMUL, TRANSPOSE])
@pytest.mark.sampled(2)
def test_other_elements_and_programs(text):
    before = degree(Version(program(text)))
    after = applied(text).version
    assert (before > 1, degree(after)) == (True, 1)


def test_it_is_idempotent():
    after = applied(TRUE).version
    assert isinstance(STRATEGY.apply(after, Analyses()), NotApplied)


def test_nothing_to_improve():
    assert isinstance(STRATEGY.apply(Version(program(JACOBI)), Analyses()), NotApplied)
    assert isinstance(STRATEGY.apply(Version(program(TRUE).mapped(cached=())), Analyses()), NotApplied)


def test_padding_where_bits_of_the_row_do_not_help():
    before = Version(program(DIAGONAL))
    after = applied(DIAGONAL).version
    assert dict(after.program.mapping.layouts) == {"tile": Layout(padding=1)}
    assert (degree(before), degree(after)) == (32, 2)
    words = [SHARED_MEMORY.evaluate(version, Analyses()).numerator for version in (before, after)]
    assert (words[1] - words[0]).text() == "B"


def test_taking_arrays_out_of_shared_memory_forgets_their_layouts():
    swizzled = CACHING.apply(applied(TRUE).version, Analyses()).version
    assert swizzled == CACHING.apply(Version(program(TRUE)), Analyses()).version


@pytest.mark.parametrize("turn", ["row", "reversed"])
@pytest.mark.parametrize("element", [ScalarType.CHAR, ScalarType.SHORT, ScalarType.FLOAT, ScalarType.DOUBLE])
def test_every_tile_is_permuted_row_by_row(turn, element):
    layout = Layout(turn)
    for constant in (True, False):
        for columns in (1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 33, 40, 48, 64, 96, 128, 100):
            extent = IntConst(columns) if constant else Var("C")
            symbols, values = {}, {"C": columns}
            for stmt in declare_masks([(layout, extent, element)], symbols, set()):
                values[stmt.name] = integer_value(stmt.value, values)
            place = place_in_tile(layout, element, Var("r"), Var("c"), extent, symbols)
            for row in (0, 1, 2, 5, 16, 31, 77):
                found = [integer_value(place, {**values, "r": row, "c": column}) for column in range(columns)]
                assert sorted(found) == list(range(row * columns, (row + 1) * columns))


@pytest.mark.parametrize("turn", ["row", "reversed"])
@pytest.mark.parametrize("element", [ScalarType.CHAR, ScalarType.SHORT, ScalarType.FLOAT, ScalarType.DOUBLE])
def test_every_line_is_permuted(turn, element):
    for bits, extent in product((1, 2, 5), (1, 2, 3, 4, 6, 8, 24, 32, 33, 36, 40, 64, 96, 100, 256)):
        layout, symbols, values = Layout(turn, bits), {}, {"E": extent}
        for stmt in declare_masks([(layout, Var("E"), element)], symbols, set()):
            values[stmt.name] = integer_value(stmt.value, values)
        place = place_in_line(layout, element, Var("e"), Var("E"), symbols)
        assert sorted(integer_value(place, {**values, "e": e}) for e in range(extent)) == list(range(extent))


def structures(stride, element="float"):
    """Return a sum of the first and the last field of structures with so many fields."""
    return f"""
void fields_{stride}_{element}(int N, int B, const {element} x[{stride} * N], {element} y[N]) {{
  int dim = N / B;
  meta_schedule cache(x) {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        int p = i * B + j;
        y[p] = x[{stride} * p] + x[{stride} * p + {stride - 1}];
      }}
  }}
}}"""


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("stride", range(2, 32))
def test_fields_of_structures(stride, element):
    before = Version(program(structures(stride, element)))
    conflicts = stride & -stride
    assert degree(before) == conflicts
    after = STRATEGY.apply(before, Analyses())
    if stride <= 4:  # at least half of the fields are used: they go through registers
        assert (
            degree(after.version) == SHARED_MEMORY.evaluate(after.version, Analyses()).numerator.constant_value() == 0
        )
        assert after.version.program.mapping.transposed == ("x",)
    elif conflicts == 1:
        assert isinstance(after, NotApplied)
        assert f"uses 2 of {stride} fields" in after.reason
    else:
        assert degree(after.version) == 1
        assert (
            SHARED_MEMORY.evaluate(after.version, Analyses()).numerator
            == SHARED_MEMORY.evaluate(before, Analyses()).numerator
        )


def test_fields_of_structures_are_the_right_ones(tmp_path):
    cases = [
        Case(structures(stride, element), grid(N=[5, 64, 77], B=[1, 3, 8, 32]))
        for stride, element in ((2, "float"), (4, "char"), (6, "double"), (8, "short"), (12, "int"))
    ]
    layouts = (Layout("row", 1), Layout("row", 2), Layout("row"), Layout("reversed"))
    assert run([with_layout(case, layout) for case in cases for layout in layouts], tmp_path) == {}


@pytest.mark.slow
def test_every_layout_computes_what_the_program_means(tmp_path):
    points = [
        {"N": n, "s": s, "B0": b, "B1": c}
        for n, s, (b, c) in product((13, 33), (1, 2), ((1, 5), (3, 2), (8, 4), (16, 8)))
    ]
    cases = [
        *[Case(text, points) for text in (TRUE, WIDE, NARROW)],
        Case(TRANSPOSE, [{"N": 13, "s": 2, "B0": 4, "B1": 2}]),
        Case(MATMUL, [{"n": n, "B0": b, "ub1": b, "s": 2} for n, b in ((13, 2), (16, 4))]),
        Case(DIAGONAL, grid(N=[1, 3], B=[32])),
        *AWKWARD,
    ]
    tiled = [case for case in cases if degree_matters(case)]
    assert len(tiled) > 10
    # The padding of a tile shows any access outside of it, and the other layouts any two at one place.
    laid_out = [with_layout(case, layout) for case in tiled for layout in (Layout("reversed"), Layout(padding=1))]
    strides = [
        replace(case, program=replace(case.program, striding=32), label=f"{case.label} striding")
        for case in laid_out
        if case.function.name == "transpose_true"
    ]
    found = run([*laid_out, *strides], tmp_path)
    assert found == {}


def degree_matters(case):
    """Say whether something of two dimensions goes through shared memory."""
    subject = case.lowered_program()
    blocks = [stmt.array for stmt in walk_statements(subject.body) if isinstance(stmt, BlockArray)]
    return any(len(array.extents) > 1 for array in [*blocks, *(subject.array(name) for name in subject.mapping.cached)])


def test_a_wrong_layout_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("metafork.analysis.memory.tile_layout.mask_of", lambda layout, columns, element: IntConst(3))
    case = with_layout(Case(TRUE, [{"N": 12, "s": 1, "B0": 3, "B1": 2}]), Layout("row"))
    assert len(run([case], tmp_path)) == 1


def test_the_tree_of_the_transposition():
    result = optimize(
        str(EXAMPLES / "transpose.mf"),
        counters=COUNTERS,
        strategies=("granularity", "caching", "swizzle"),
        machine="all",
    )
    leaves = result.schedules[1].leaves
    assert [leaf.own.strategies for leaf in leaves] == [
        (),
        ("swizzle",),
        ("granularity",),
        ("granularity", "swizzle"),
        ("granularity", "caching"),
    ]
    values = [leaf.counters["bank_degree"].numerator.constant_value() for leaf in leaves]
    assert values == [32, 1, 32, 1, 0]


def test_the_tree_of_an_array_of_structures():
    result = optimize(
        str(EXAMPLES / "aos.mf"), counters=COUNTERS, strategies=("granularity", "caching", "swizzle"), machine="all"
    )
    trees = [
        [(leaf.own.strategies, leaf.counters["bank_degree"].numerator.constant_value()) for leaf in schedule.leaves]
        for schedule in result.schedules
    ]
    # Three fields: an odd stride has no conflicts.  Four fields: four threads ask one bank.
    assert trees == [
        [((), 1), (("swizzle",), 0), (("caching",), 0)],
        [((), 4), (("swizzle",), 0), (("caching",), 0)],
    ]
    moved = [leaf.version.program.mapping.transposed for schedule in result.schedules for leaf in schedule.leaves]
    assert moved == [(), ("point",), (), (), ("particle",), ()]


def test_structures_leave_shared_memory_all_together_or_where_they_have_conflicts():
    mixed = """
void mixed(int N, int B, const float x[4 * N], const float y[3 * N], const float w[N + 2], float z[N]) {
  int dim = N / B;
  meta_schedule cache(x, y, w) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        z[p] = x[4*p] + x[4*p + 2] + y[3*p] + y[3*p + 1] + w[p] + w[p + 2];
      }
  }
}"""
    after = applied(mixed)
    assert after.version.program.mapping.transposed == ("x",)
    assert after.version.program.mapping.cached == ("y", "w")
    assert after.note == "bank degrees: x (through the registers of a warp): 2 to 0"
    again = STRATEGY.apply(after.version, Analyses())
    assert isinstance(again, NotApplied)
    assert "w is not moved through registers" in again.reason
    both = applied(mixed.replace("cache(x, y, w)", "cache(x, y)"))
    way = "(through the registers of a warp)"
    assert both.note == f"bank degrees: x {way}: 2 to 0; y {way}: 1 to 0"
    assert isinstance(STRATEGY.apply(both.version, Analyses()), NotApplied)


CHOSEN = {"counters": COUNTERS, "strategies": ("granularity", "caching", "swizzle")}
OPTIONS = Options(points=6, optimization="-O0", dataflow_seconds=0)


@pytest.mark.slow
def test_leaves_as_they_are_shipped():
    """The generated files, every leaf on points of its own, with bounds and races checked."""
    found = verify(EXAMPLES / "aos.mf", **CHOSEN, options=OPTIONS, machine="all")
    assert [failure.text() for failure in found.failures] == []
    assert {row.schedule for row in found.rows} == {"aos_k0", "aos_k1"}
    assert all(row.points == row.raced_points == 6 for row in found.rows)


@pytest.mark.slow
def test_a_wrong_transposition_is_noticed(monkeypatch):
    monkeypatch.setattr(
        "metafork.analysis.memory.lane_transpose.LaneTranspose.order", property(lambda self: tuple(range(self.stride)))
    )
    found = verify(EXAMPLES / "aos.mf", **CHOSEN, options=OPTIONS, machine="all")
    assert {(failure.schedule, failure.leaf) for failure in found.failures} == {("aos_k0", 2), ("aos_k1", 2)}
