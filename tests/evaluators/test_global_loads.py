import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.global_loads import COUNTER
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.program import Version
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE, program

B, B0, s, m, dim0, ub1 = (Polynomial.symbol(name) for name in ("B", "B0", "s", "m", "dim0", "ub1"))


def loads(text, cached=None, striding=None, ir_strategies=()):
    version = replace(program(text), striding=striding)
    if cached is not None:
        version = version.mapped(cached=cached)
    return COUNTER.evaluate(Version(version, ir_strategies), Analyses())


def fresh(value):
    """The value with its fresh symbols replaced by their kinds and operands."""
    named = {symbol.name: symbol for symbol in value.derived}
    return {(named[name].kind, named[name].operands) for name in value.numerator.symbols if name in named}


def nest(body, clause="cache()", arrays="const float a[N + 9], float b[N + 9]"):
    return f"""
void f(int N, int B, int m, {arrays}) {{
  int dim = N / B;
  meta_schedule {clause} {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
  }}
}}"""


def test_it_is_a_cost_accepted_up_to_its_target():
    assert (COUNTER.kind, COUNTER.symbol, COUNTER.less_is_better) == ("performance", "L", True)
    assert COUNTER.default_target == 8


def test_it_takes_part_only_when_it_is_named():
    assert "global_loads" not in [counter.name for counter in registry.counters()]
    assert "shuffle" not in [strategy.name for strategy in registry.strategies()]
    assert [counter.name for counter in registry.counters(["global_loads"])] == ["global_loads"]
    assert [strategy.name for strategy in registry.strategies(["shuffle", "cse1"])] == ["shuffle", "cse1"]


def test_without_shared_memory_every_access_counts():
    assert loads(JACOBI, ()).numerator == 3 * s
    assert loads(TRANSPOSE, ()).numerator == s
    assert loads(MATADD).numerator == 4
    assert loads(MATMUL, ()).numerator == 3 * B0 * dim0 * s


def test_copies_into_shared_memory_are_shared_by_the_threads():
    value = loads(JACOBI)
    assert fresh(value) == {("ceiling", (B * s + 2, B))}
    assert list(value.numerator.terms().values()) == [1]
    value = loads(TRANSPOSE)
    assert value.numerator == s
    value = loads(MATMUL)
    (share,) = (symbol for symbol in value.derived if symbol.kind == "ceiling")
    assert share.operands == (B0, ub1)
    assert value.numerator == B0 * dim0 * s + Polynomial.symbol(share.name) * dim0 + dim0 * s
    point = {"B0": 8, "ub1": 5, "s": 2, "dim0": 3, share.name: share.evaluate({"B0": 8, "ub1": 5})}
    assert value.numerator.evaluate(point) == 8 * 3 * 2 + 2 * 3 + 3 * 2


def test_all_threads_copy_a_column_and_a_tile_that_is_narrower_than_the_block():
    column = """
void f(int N, int B, int m, const float a[N][m], float y[N]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < m; k++)
        meta_for (int t = 0; t < B; t++)
          y[i * B + t] -= a[i * B + t][k];
  }
}"""
    # One element a thread and step, and the load of y.
    assert loads(column).numerator == m + 1
    tile = column.replace(
        "y[i * B + t] -= a[i * B + t][k]", "for (int z = 0; z < 7; z++) y[i * B + t] -= a[i * B + t][7 * k + z]"
    )
    assert loads(tile).numerator == 7 * m + 1


def test_striding_threads_share_the_iterations():
    value = loads(MATADD, striding=32)
    (share,) = (symbol for symbol in value.derived if symbol.kind == "ceiling")
    assert share.operands == (B0 * Polynomial.symbol("B1"), Polynomial.constant(32))
    assert value.numerator == 4 * Polynomial.symbol(share.name)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i * B + j] = a[i * B + j];", 1),
        ("b[i * B + j] += a[i * B + j];", 2),
        ("b[i * B + j] = a[(int)a[j]];", 2),
        ("float t = 0; for (int k = 0; k < 3; k++) t += a[i * B + j + k]; b[i * B + j] = t;", 3),
        ("for (int k = 0; k < m; k++) b[i * B + j] = b[i * B + j] + a[k];", 2 * m),
        ("for (int k = 0; k < m; k++) for (int l = 0; l <= k; l++) b[i * B + j] += a[k + l];", 2 * m * m),
        ("for (int k = j; k < B; k++) b[i * B + j] += a[k];", 2 * B),
        ("for (int k = m; k > 0; k--) b[i * B + j] += a[k];", 2 * m),
        ("for (int k = 0; k < m; k++) { if (a[k] > 0) break; b[i * B + j] = k; }", m),
        ("if (j > 3) b[i * B + j] = a[j]; else b[i * B + j] = a[j] + a[j + 1] + a[j + 2];", 3),
        ("b[i * B + j] = j > 3 ? a[j] : a[j] + a[j + 1];", 2),
        ("if (a[j] > 0 && a[j + 1] > 0) b[i * B + j] = 1;", 2),
        ("float t = 0; int k = 0; while (k < m) { k++; t += 1; } b[i * B + j] = t + a[j];", 1),
    ],
)
def test_what_a_thread_reads(body, expected):
    assert loads(nest(body)).numerator == expected


def test_branches_that_cannot_be_compared_give_a_maximum():
    value = loads(
        nest(
            "if (j > 3) { for (int k = 0; k < m; k++) b[i * B + j] += a[k]; }"
            "else { for (int k = 0; k < B; k++) b[i * B + j] += a[k]; }"
        )
    )
    assert fresh(value) == {("maximum", (2 * B, 2 * m))}


def test_a_step_rounds_up():
    value = loads(nest("for (int k = 0; k <= m; k += 2) b[i * B + j] += a[k];"))
    assert fresh(value) == {("ceiling", (m + 1, Polynomial.constant(2)))}
    symbol = next(symbol for symbol in value.derived if symbol.name in value.numerator.symbols)
    assert isinstance(symbol, DerivedSymbol)
    assert value.numerator == 2 * Polynomial.symbol(symbol.name)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("int k = 0; while (a[k] > 0) k++; b[i * B + j] = k;", "unknown shape"),
        ("for (int k = m; k > 0; k /= 2) b[i * B + j] += a[k];", "unknown shape"),
        ("for (int k = 0; k < (int)a[j]; k++) b[i * B + j] += 1;", "no known polynomial"),
    ],
)
def test_loops_of_unknown_shape_are_not_counted(body, word):
    value = loads(nest(body))
    assert isinstance(value, NotKnown)
    assert word in value.reason


def test_other_strategies_on_the_ir_change_nothing():
    assert loads(JACOBI, (), ir_strategies=PRESSURE[:1]).numerator == 3 * s


STENCIL = "if (i * B + j + 1 < N) b[i * B + j] = a[i * B + j] + a[i * B + j + 1] + a[i * B + j + 2];"


def test_loads_that_shuffles_replace_are_not_counted():
    assert loads(nest(STENCIL)).numerator == 3
    assert loads(nest(STENCIL), ir_strategies=(SHUFFLE,)).numerator == 1
    assert loads(nest(STENCIL), ir_strategies=(SHUFFLE, *PRESSURE[2:])).numerator == 1


def test_shuffles_in_loops_of_a_thread_are_not_counted():
    value = loads(JACOBI, (), ir_strategies=(SHUFFLE,))
    assert isinstance(value, NotKnown)
    assert "loops of a thread" in value.reason


@pytest.mark.parametrize("size", ["int", "long"])
def test_ends_of_copies_of_extents_of_any_width_are_known(size):
    # In ``long`` an end is only known not to exceed the window: it is no minimum, but cut at 0 besides.
    text = f"""
void f({size} N, {size} M, int B, int m, const float a[N][M], float b[N][M]) {{
  meta_schedule cache(a) {{
    meta_for (int i = 0; i < m; i++)
      meta_for (int k = 0; k < m; k++)
        meta_for (int j = 0; j < B; j++)
          meta_for (int l = 0; l < B; l++) {{
            int p = i * B + j, q = k * B + l;
            if (p + 2 < N && q + 2 < M)
              b[p][q] = a[p][q] + a[p + 2][q + 2];
          }}
  }}
}}"""
    value = loads(text)
    assert fresh(value) == {("ceiling", (B + 2, B))}
    assert list(value.numerator.terms().values()) == [1]
