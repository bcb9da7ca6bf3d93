import pytest

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.strategies.caching import STRATEGY, with_cached_arrays
from metafork.strategies.strategy import Applied, NotApplied
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
        ("b[i * B + j] = a[i * B + j] + a[i * B + j + 1];", ()),
        ("b[i * B + j] = a[N - 1 - (i * B + j)];", ()),
        ("b[i * B + j] = a[3 * (i * B + j)] + a[3 * (i * B + j) + 1] + a[3 * (i * B + j) + 2];", ("a",)),
        ("for (int k = 0; k < 4; k++) b[i * B + j] += a[4 * (i * B + j) + k];", ("a",)),
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[m * (i * B + j) + k];", ("a",)),
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[k];", ("a",)),
        ("for (int k = 0; k < m; k++) b[i * B + j] += a[i * B + j + k];", ("a",)),
        ("for (int k = 0; k < N; k++) b[i * B + j] += a[k];", ()),
        ("b[i * B + j] = a[(int)b[i * B + j]];", ()),
    ],
)
def test_without_a_clause_reuse_and_coalescing_decide(body, cached):
    assert choice(nest(body)).program.mapping.cached == cached


SERVED = {
    "a stencil": ("b[i * B + j] = a[i * B + j] + a[i * B + j + 1] + a[i * B + j + 2];", "the first-level cache serves"),
    "a stencil with a short loop": (
        "for (int k = 0; k < 3; k++) b[i * B + j] += a[i * B + j + k];",
        "only some of them",
    ),
    "every second": ("b[i * B + j] = a[2 * (i * B + j)] + a[2 * (i * B + j) + 1];", "every second element"),
    "one of four": ("b[i * B + j] = a[4 * (i * B + j)] * a[4 * (i * B + j)];", "read 1 of 4 elements"),
    "three of four": (
        "for (int k = 1; k < 4; k++) b[i * B + j] += a[4 * (i * B + j) + k];",
        "do not coalesce, but read 3 of 4 elements",
    ),
    "one element": ("b[i * B + j] = a[i];", "it is one element at a time"),
    "weights": ("for (int k = 0; k < m; k++) b[(i * m + k) * B + j] = a[0] + a[1] + a[2];", "only some of them"),
    "a factor a row": ("for (int k = 0; k < m; k++) b[(i * m + k) * B + j] *= a[i];", "one element at a time"),
}


@pytest.mark.parametrize(("body", "reason"), SERVED.values(), ids=SERVED)
def test_what_the_first_level_cache_serves_stays_out_and_the_clause_forces_it(body, reason):
    chosen = choice(nest(body))
    assert chosen.program.mapping.cached == ()
    assert reason in dict(chosen.reasons)["a"]
    (hint,) = [remark.hint for remark in chosen.remarks if remark.subject == "a"]
    assert hint == ""  # it would not be better
    assert choice(nest(body, "cache(a)")).program.mapping.cached == ("a",)


PLANES = """
void iso(int nx, int ny, int nz, int B0, int B1, const float p[nz][ny][nx], float q[nz][ny][nx], const float c[9]) {
  meta_schedule {
    meta_for (int by = 0; by < (ny - 16) / B0; by++)
      meta_for (int bx = 0; bx < (nx - 16) / B1; bx++)
        for (int z = 8; z < nz - 8; z++)
          meta_for (int ty = 0; ty < B0; ty++)
            meta_for (int tx = 0; tx < B1; tx++) {
              int y = by * B0 + ty + 8, x = bx * B1 + tx + 8;
              float v = p[z][y][x] * c[0];
              for (int r = 1; r <= 8; r++)
                v += c[r] * (p[z][y][x + r] + p[z][y][x - r] + p[z][y + r][x] + p[z][y - r][x] ALONG);
              q[z][y][x] = v;
            }
  }
}
"""


@pytest.mark.parametrize(("along", "cached"), [("", True), ("+ p[z + r][y][x] + p[z - r][y][x]", False)])
def test_planes_of_which_a_thread_reads_its_own_column_stay_out(along, cached):
    chosen = choice(PLANES.replace("ALONG", along))
    assert ("p" in chosen.program.mapping.cached) is cached
    assert cached or "is read by one thread once" in dict(chosen.reasons)["p"]


def test_no_hint_leads_to_a_window_far_larger_than_what_is_read():
    text = """
void wave(int n, int d, int B, float a[n + 1][n + 1]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (d - p >= 0 && d - p < n)
          a[p + 1][d - p + 1] = a[p][d - p] + a[p][d - p + 1] + a[p + 1][d - p];
      }
  }
}"""
    assert {remark.hint for remark in choice(text).remarks} == {""}


@pytest.mark.parametrize(
    "body",
    [
        "b[i * B + j] = a[i * B + j] + a[i * B + j + B];",
        "b[i * B + j] = a[2 * i * B + j] + a[2 * i * B + 2 * B - 1 - j];",
        "b[i * B + j] = a[i * B + j] + a[i * B + j + 3 * B] + a[i * B + j + 7 * B];",
    ],
)
def test_threads_of_one_block_that_never_meet_have_no_common_elements(body):
    assert "neighbours share no element" in dict(choice(nest(body)).reasons)["a"]


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 16; k++) b[i * B + j] += a[i * 16 + k];",  # an operand of a product
        "for (int k = 0; k < 9; k++) b[i * B + j] += a[i * B + j + k];",  # as many as a stencil seldom has
    ],
)
def test_what_a_thread_reads_many_of_is_cached(body):
    assert choice(nest(body)).program.mapping.cached == ("a",)


def test_a_window_that_stays_for_a_loop_around_is_cached():
    text = """
void f(int N, int B, int m, const float a[N + 2], float b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++)
      for (int t = 0; t < %s; t++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = b[i * B + j] / 2 + a[i * B + j] + a[i * B + j + 1];
  }
}"""
    assert choice(text % "m").program.mapping.cached == ("a",)
    assert choice(text % "2").program.mapping.cached == ()


COLUMN = """
void column(int n, int B, const float a[n][n], float b[n]) {
  int dim = n / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = a[i * B + j][0];
  }
}"""


def test_the_copy_of_a_column_would_coalesce_no_better():
    chosen = choice(COLUMN)
    assert chosen.program.mapping.cached == ()
    assert "neither would the copy of a column" in dict(chosen.reasons)["a"]
    several = COLUMN.replace(
        "b[i * B + j] = a[i * B + j][0]", "for (int k = 0; k < B; k++) b[i * B + j] += a[i * B + j][k]"
    )
    assert choice(several).program.mapping.cached == ("a",)


def test_a_box_of_which_few_elements_are_read_stays_out():
    """The B threads of an antidiagonal touch B elements of a box of B by B."""
    text = """
void wave(int n, int B, const float a[n][n], float b[n]) {
  int dim = n / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++)
      for (int d = 0; d < n - B; d++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += a[B + d - j][i * B + j];
  }
}"""
    chosen = choice(text)
    assert chosen.program.mapping.cached == ()
    assert "the box around what they touch has far more elements" in dict(chosen.reasons)["a"]


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
    from metafork.evaluators.shared_memory import COUNTER

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
