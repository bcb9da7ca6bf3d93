import pytest

from metafork.printing.metafork_text import metafork_text
from tests.metafork.interpreter import program
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE

OWN_TILE = """
void reverse(int n, int B, float scale, float a[n]) {
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++) {
      float tile[B];
      int first = i * B;
      meta_for (int j = 0; j < B; j++) tile[j] = a[first + j];
      meta_for (int j = 0; j < B; j++) a[first + j] = tile[B - 1 - j] * scale;
    }
  }
}
"""
TIME_LOOP = """
void f(int n, int steps, float a[n + 1][n]) {
  int m = n * 2;
  for (int t = 0; t < steps; t++) {
    int rest = n - t;
    assert(rest >= 1);
    meta_schedule cache() {
      meta_for (int i = 0; i < rest; i++)
        meta_for (int j = 0; j < n; j++)
          a[i + t / m][j] = (float)(i - (j - t)) * 2.0f;
    }
  }
}
"""
SIX_LOOPS = """
void g(int n, double x[n][n][n], long y[n]) {
  assert(n % 4 == 0);
  int d = n / 4;
  meta_schedule {
    meta_for (int a = 0; a < d; a++)
      meta_for (int b = 0; b < d; b++)
        meta_for (int c = 0; c < d; c++)
          meta_for (int p = 0; p < 4; p++)
            meta_for (int q = 0; q < 4; q++)
              meta_for (int r = 0; r < 4; r++) {
                double v = x[4*a + p][4*b + q][4*c + r];
                if (v > 0 && !(v > 1.5e3)) v = sqrt(v); else v = -v;
                x[4*a + p][4*b + q][4*c + r] = v > 2 ? v : y[4*c + r];
              }
  }
}
"""
ALL = [JACOBI, MATADD, MATMUL, TRANSPOSE, OWN_TILE, TIME_LOOP, SIX_LOOPS]


@pytest.mark.parametrize("text", ALL)
def test_the_text_is_read_as_an_equal_program(text):
    before = program(text)
    assert program(metafork_text(before)) == before


@pytest.mark.parametrize("text", ALL)
def test_printing_what_was_read_prints_the_same(text):
    once = metafork_text(program(text))
    assert metafork_text(program(once)) == once


def test_figure_8_as_text():
    assert (
        metafork_text(program(TRANSPOSE))
        == """\
void transpose(int N, int s, int B0, int B1, int a[N][N], int c[N * N])
{
  int dim0 = N / B0;
  int dim1 = N / (s * B1);
  meta_schedule cache(a, c) {
    meta_for (int v0 = 0; v0 < dim0; v0++)
      meta_for (int v1 = 0; v1 < dim1; v1++)
        meta_for (int u0 = 0; u0 < B0; u0++)
          meta_for (int u1 = 0; u1 < B1; u1++) {
            for (int k = 0; k < s; k++) {
              int i = v0 * B0 + u0;
              int j = (v1 * s + k) * B1 + u1;
              c[i * N + j] = a[i][j];
            }
          }
  }
}
"""
    )


def test_a_time_loop_gets_a_bound_and_keeps_what_depends_on_it_inside():
    lines = [line.strip() for line in metafork_text(program(TIME_LOOP)).splitlines()]
    assert lines[:7] == [
        "void f(int n, int T, float a[n + 1][n])",
        "{",
        "int m = n * 2;",
        "for (int t = 0; t < T; t++) {",
        "int rest = n - t;",
        "assert(rest >= 1);",
        "meta_schedule cache() {",
    ]


def test_the_bound_of_a_time_loop_clashes_with_nothing():
    text = JACOBI.replace("int T,", "int steps,").replace("t < T", "t < steps").replace("N", "T")
    assert "void jacobi1d(int T, int s, int B, int T1, int a[2 * T])" in metafork_text(program(text))
    assert program(metafork_text(program(text))) == program(text)


def test_the_cache_clause_says_what_is_cached_now():
    before = program(JACOBI.replace(" cache(a)", ""))
    assert "meta_schedule {" in metafork_text(before)
    assert "meta_schedule cache(a) {" in metafork_text(before.mapped(cached=("a",)))
    assert "meta_schedule cache() {" in metafork_text(program(TRANSPOSE).mapped(cached=()))
