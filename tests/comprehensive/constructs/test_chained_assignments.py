"""``a = b = e``: what each of them holds then, converted as C does."""

from tests.metafork.frontend.marked import assert_refused, thread
from tests.metafork.kernel_runs import Case, grid, run

COVARIANCE = """
void chained(int n, int B, const float a[n], double c[n][n], signed char s[n], int t[n], float last[n])
{
  meta_schedule
    meta_for (int b = 0; b < (n + B - 1) / B; b++)
      meta_for (int x = 0; x < B; x++) {
        int i = b * B + x, k, l;
        if (i >= n) continue;
        for (int j = i; j < n; j++)
          c[i][j] = c[j][i] = a[i] * a[j] / 3;
        t[i] = s[i] = 100 * i + 77;
        t[i] += s[i] -= 3;
        k = l = i / 2 + 1;
        last[i] = c[i][k < n ? k : i] += l = k *= 2;
        if (i > 2) k = t[i] = l; else t[i] -= k = 7;
        last[i] += k + l;
      }
}
"""


def test_values_are_those_of_the_targets(tmp_path):
    assert run([Case(COVARIANCE, grid(n=[1, 6, 13], B=[1, 4]))], tmp_path) == {}


def test_refused():
    assert_refused(thread("a[i] = 1 + («a[j] = 2»);"), "MF0213")
