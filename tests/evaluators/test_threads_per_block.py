from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.threads_per_block import COUNTER
from metafork.ir.program import Version
from tests.metafork.programs import JACOBI, MATADD, MATMUL, program

N, B, B0, B1, B2, ub1 = (Polynomial.symbol(name) for name in ("N", "B", "B0", "B1", "B2", "ub1"))


def threads(text):
    return COUNTER.evaluate(Version(program(text)), Analyses())


def test_the_counter_says_what_it_is():
    assert (COUNTER.name, COUNTER.kind, COUNTER.symbol) == ("threads_per_block", "resource", "T")
    assert COUNTER.less_is_better
    assert COUNTER.default_target is None


def test_the_product_of_the_thread_extents():
    assert threads(MATADD).numerator == B0 * B1
    assert threads(MATMUL).numerator == B0 * ub1
    assert threads(JACOBI).numerator == B


def phases(first, second):
    return f"""
void f(int N, int B, int B2, int b[N]) {{
  int dim = N / B;
  meta_schedule {{
    meta_for (int i = 0; i < dim; i++) {{
      int row[B + B2 + 1];
      meta_for (int u = 0; u < {first}; u++)
        row[u] = u;
      meta_for (int u = 0; u < {second}; u++)
        b[i * B + u] = row[u];
    }}
  }}
}}"""


def test_phases_of_one_shape():
    assert threads(phases("B", "B")).numerator == B


def test_phases_of_different_shapes_count_by_the_largest():
    assert threads(phases("B", "B + 1")).numerator == B + 1
    assert threads(phases("B + 1", "B")).numerator == B + 1


def test_phases_that_cannot_be_ordered_count_by_a_maximum():
    value = threads(phases("B", "B2"))
    assert [(d.kind, set(d.operands)) for d in value.derived if d.kind == "maximum"] == [("maximum", {B, B2})]
    assert value.numerator == Polynomial.symbol(value.derived[-1].name)


def test_a_derived_extent_counts_as_its_symbol():
    text = phases("half", "half").replace("int dim = N / B;", "int half = B / 2; int dim = N / B;")
    assert threads(text).numerator == Polynomial.symbol("half")


def test_an_extent_that_is_no_polynomial_is_not_known():
    value = threads(phases("(B > 3 ? B : 3)", "(B > 3 ? B : 3)"))
    assert isinstance(value, NotKnown)
    assert "u" in value.reason
