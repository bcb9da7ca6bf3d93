import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.shared_memory import COUNTER
from metafork.ir.program import Version
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE, program

N, B, s, B0, B1, ub1, m = (Polynomial.symbol(name) for name in ("N", "B", "s", "B0", "B1", "ub1", "m"))


def words(text, cached=None):
    version = program(text)
    if cached is not None:
        version = version.mapped(cached=cached)
    return COUNTER.evaluate(Version(version), Analyses())


def schedule(body, cache="a, b", parameters="int N, int B, int m", arrays="const float a[N], float b[N]", before=""):
    return f"""
void f({parameters}, {arrays}) {{
  int dim = N / B;
  meta_schedule cache({cache}) {{
    meta_for (int i = 0; i < dim; i++) {{
      {before}
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
    }}
  }}
}}"""


def test_the_papers_values():
    assert words(JACOBI).numerator == 2 * s * B + 2
    assert words(TRANSPOSE).numerator == 2 * s * B0 * B1
    assert words(MATMUL).numerator == B0 * B0 + B0 * ub1 * s
    for text in (JACOBI, TRANSPOSE, MATMUL):
        assert words(text, ()).numerator == 0


def test_the_papers_reduced_granularities():
    assert words(JACOBI.replace("k < s", "k < 1").replace("s * B", "B")).numerator == 2 * B + 2
    assert words(TRANSPOSE.replace("k < s", "k < 1").replace("v1 * s + k", "v1").replace("s * B1", "B1")).numerator == (
        2 * B0 * B1
    )


def test_matrix_addition_shares_nothing():
    assert program(MATADD).mapping.cached == ()
    assert words(MATADD).numerator == 0


def test_jacobi_asked_for_explicitly():
    assert words(JACOBI.replace("meta_schedule {", "meta_schedule cache(a) {")).numerator == 2 * s * B + 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i * B + j] = a[i * B + j];", 2 * B),
        ("b[i * B + j] = a[i * B + j - 1] + a[i * B + j + 3];", 2 * B + 4),
        ("b[i * B + j] = a[i * B + j] + a[i * B + B - 1 - j];", 2 * B),
        ("b[2 * (i * B + j)] = a[0];", B + 1),
        ("b[2 * (i * B + j)] = b[2 * (i * B + j) + 1] + a[0];", 2 * B + 1),
        ("b[i] = a[j];", B + 1),
        (
            "for (int k = 0; k < m; k++) b[(i * B + j) * m + k] = a[k * B + j];",
            B * m,
        ),  # b is stored through: where m is 0, nothing is
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[i * B + j + k];", 2 * B + m - 1),
        ("for (int k = 0; k < 3; k++) for (int l = 0; l < 3; l++) b[i * B + j] += a[i * B + j + k + l];", 2 * B + 4),
        ("b[i * B + j] = a[i * B + j] + a[N - 1];", 2 * B + 1),
        ("b[i * B + j] = a[3];", B + 1),
    ],
)
def test_windows_of_one_dimension(body, expected):
    value = words(schedule(body, arrays="const float a[4 * N + 4 * m], float b[4 * N * m]"))
    assert value.numerator == expected


def test_coordinates_of_several_dimensions():
    text = """
void f(int N, int B0, int B1, const {type} a[{extent}], double b[N][N]) {{
  int d0 = (N - 2) / B0, d1 = (N - 2) / B1;
  meta_schedule cache(a) {{
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int u = 0; u < B0; u++)
          meta_for (int v = 0; v < B1; v++) {{
            int y = i * B0 + u + 1, x = j * B1 + v + 1;
            b[y][x] = {first} + {second};
          }}
  }}
}}"""
    box = (B0 + 2) * (B1 + 1)
    plain = text.format(type="float", extent="N][N", first="a[y - 1][x]", second="a[y + 1][x + 1]")
    assert words(plain).numerator == box
    assert words(plain.replace("const float", "const double")).numerator == 2 * box
    linear = text.format(type="float", extent="N * N", first="a[(y - 1) * N + x]", second="a[y * N + N + x + 1]")
    assert words(linear).numerator == box


def test_types_are_packed_and_rounded_up_to_words():
    (ceiling,) = words(schedule("b[i] = a[i * B + j];", "a", arrays="const char a[N], float b[N]")).derived[1:]
    assert ceiling.kind == "ceiling"
    assert ceiling.operands == (B, Polynomial.constant(4))
    halves = words(
        schedule(
            "b[i] = a[2 * i * B + 2 * j] + a[2 * i * B + 2 * j + 1];", "a", arrays="const short a[2 * N], float b[N]"
        )
    )
    assert halves.numerator == B
    assert words(schedule("b[i] = a[i * B + j];", "a", arrays="const double a[N], float b[N]")).numerator == 2 * B


def test_paths_count_by_their_maximum():
    body = "if (m > 3) b[i * B + j] = a[i * B + j] + a[i * B + j + 1]; else b[i * B + j] = 1.0f;"
    assert words(schedule(body)).numerator == 2 * B + 1
    unequal = "if (m > 3) b[i * B + j] = a[2 * (i * B + j)] + a[2 * (i * B + j) + 1];"
    unequal += " else for (int k = 0; k < m; k++) b[i * B + j] += a[j + k];"
    value = words(schedule(unequal, "a", arrays="const float a[2 * N + m], float b[N]"))
    symbol = value.derived[-1]
    assert value.numerator == Polynomial.symbol(symbol.name)
    assert (symbol.kind, set(symbol.operands)) == ("maximum", {2 * B, B + m - 1})


def test_windows_that_cannot_be_ordered_are_kept_apart_or_share_a_maximum():
    apart = words(schedule("b[i * B + j] = a[i * B + j] + a[i * B + j + m];"))
    assert apart.numerator == 3 * B


def test_arrays_of_the_block_are_counted():
    before = "float tile[B][4]; double sum[2]; char flags[3]; meta_for (int u = 0; u < B; u++) tile[u][0] = 1.0f;"
    assert words(schedule("b[i * B + j] = tile[j][1];", "", before=before)).numerator == 4 * B + 4 + 1


def test_an_array_of_the_block_of_unknown_size_is_not_known():
    before = "float tile[B > m ? B : m]; meta_for (int u = 0; u < B; u++) tile[u] = 1.0f;"
    value = words(schedule("b[i * B + j] = tile[B - 1 - j];", "", before=before))
    assert isinstance(value, NotKnown)
    assert "tile" in value.reason


def test_a_window_that_moves_with_a_block_level_loop_counts_once():
    before = "for (int k = 0; k < N / B; k++) meta_for (int u = 0; u < B; u++) b[i * B + u] += a[k * B + u];"
    assert words(schedule("b[i * B + j] += 1.0f;", "a", before=before)).numerator == B


def test_every_value_is_what_a_block_is_launched_with():
    from metafork.lowering.lowering import lower

    for text in (JACOBI, TRANSPOSE, MATMUL):
        value = words(text).numerator
        kernel = lower(program(text), "k")
        numbers = {"N": 12, "B": 3, "s": 2, "B0": 2, "B1": 3, "ub1": 4, "n": 12, "dim": 1, "t": 0, "T": 1}
        assert evaluate(kernel.shared_bytes, numbers) == 4 * value.evaluate(numbers)


def evaluate(expr, numbers):
    from metafork.printing.expressions import expression

    return eval(expression(expr).replace("(long long)", "").replace("LL", ""), {}, numbers)
