import pytest

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from strategies.caching import STRATEGY, with_cached_arrays
from strategies.strategy import Applied, NotApplied
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE


def choice(text):
    return with_cached_arrays(parse(Source("test.mf", text)).schedules[0].program, Analyses())


def nest(body, clause="", arrays="const float a[4 * N], float b[N]"):
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


def test_the_papers_programs():
    assert choice(JACOBI).program.mapping.cached == ("a",)
    assert choice(TRANSPOSE).program.mapping.cached == ("a", "c")
    assert choice(MATADD).program.mapping.cached == ()
    assert choice(MATMUL).program.mapping.cached == ("a", "b")


@pytest.mark.parametrize(
    ("body", "cached"),
    [
        ("b[i * B + j] = a[i * B + j];", ()),
        ("b[i * B + j] = a[i * B + j] + a[i * B + j + 1];", ("a",)),
        ("b[i * B + j] = a[4 * (i * B + j)];", ("a",)),
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[k];", ("a",)),
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[i * B + j + k];", ("a",)),
        ("for (int k = 0; k < N; k++) b[i * B + j] += a[k];", ()),
        ("b[i * B + j] = a[(int)b[i * B + j]];", ()),
    ],
)
def test_without_a_clause_reuse_and_coalescing_decide(body, cached):
    assert choice(nest(body)).program.mapping.cached == cached


def test_a_clause_decides_by_itself():
    assert choice(nest("b[i * B + j] = a[i * B + j];", "cache(a)")).program.mapping.cached == ("a",)
    assert choice(nest("b[i * B + j] = a[i * B + j] + a[i * B + j + 1];", "cache()")).program.mapping.cached == ()


def test_what_cannot_be_cached_is_left_out_with_its_reason():
    chosen = choice(nest("b[i * B + j] = a[(int)b[i * B + j]];", "cache(a, b)"))
    assert chosen.program.mapping.cached == ("b",)
    assert "no known polynomial" in dict(chosen.reasons)["a"]


def test_every_array_has_a_reason():
    assert [name for name, _ in choice(MATMUL).reasons] == ["a", "b", "c"]
    assert [name for name, _ in choice(TRANSPOSE).reasons] == ["a", "c"]


def test_taking_out_is_idempotent():
    version = Version(choice(TRANSPOSE).program)
    once = STRATEGY.apply(version, Analyses())
    assert isinstance(once, Applied)
    assert once.version.program == version.program.mapped(cached=())
    assert "a, c" in once.note
    assert isinstance(STRATEGY.apply(once.version, Analyses()), NotApplied)


def test_arrays_of_the_block_stay():
    text = """
void f(int N, int B, float b[N]) {
  int dim = N / B;
  meta_schedule cache(b) {
    meta_for (int i = 0; i < dim; i++) {
      float row[B];
      meta_for (int j = 0; j < B; j++)
        row[j] = b[i * B + j];
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = row[B - 1 - j];
    }
  }
}"""
    from evaluators.shared_memory import COUNTER

    version = Version(choice(text).program)
    applied = STRATEGY.apply(version, Analyses())
    assert str(COUNTER.evaluate(version, Analyses()).numerator) == "2*B"
    assert str(COUNTER.evaluate(applied.version, Analyses()).numerator) == "B"


FILTER = """
void filter(int K, int C, int R, int P, int B, const float w[K][C][R], const float x[C][P + R - 1], float y[K][P]) {
  meta_schedule {
    meta_for (int k = 0; k < K; k++)
      meta_for (int i = 0; i < P / B; i++)
        for (int c = 0; c < C; c++)
          meta_for (int z = 0; z < 1; z++)
            meta_for (int u = 0; u < B; u++)
              for (int r = 0; r < R; r++)
                y[k][i * B + u] += w[k][c][r] * x[c][i * B + u + r];
  }
}"""
VECTOR = """
void vector(int n, int m, int B, const float a[n][m], const float x[m], float y[n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++)
        for (int r = 0; r < m; r++)
          y[i * B + u] += a[i * B + u][r] * x[r];
  }
}"""
BATCH = """
void batch(int b, int n, const float a[b][n][n], const float x[b][n][n], float y[b][n][n]) {
  meta_schedule {
    meta_for (int i = 0; i < b; i++)
      meta_for (int j = 0; j < 1; j++)
        meta_for (int u = 0; u < n; u++)
          meta_for (int v = 0; v < n; v++)
            for (int r = 0; r < n; r++)
              y[i][u][v] += a[i][u][r] * x[i][r][v];
  }
}"""


@pytest.mark.parametrize(
    ("text", "cached"),
    [
        (FILTER, ("w", "x")),
        (FILTER.replace("P / B", "P / (B * R)"), ()),  # the grid depends on R, which is therefore no filter's length
        (VECTOR, ()),
        (VECTOR.replace("a[n][m]", "a[n * m]").replace("a[i * B + u][r]", "a[(i * B + u) * m + r]"), ()),
        (BATCH, ("a", "x")),
    ],
)
def test_what_a_block_touches_decides_not_what_sizes_an_array(text, cached):
    assert choice(text).program.mapping.cached == cached
