"""Indices that wrap at a border: every leaf of programs with them against the serial elision, and what is cached."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.exactness import with_exactness
from metafork.analysis.races.races import race_report
from metafork.comprehensive import registry
from metafork.comprehensive.explanation import explanation
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from tests.comprehensive.constructs.leaf_cases import leaf_cases
from tests.metafork.kernel_runs import grid, run
from tests.sampling import sampled

RING = """
void ring(int n, int B, const float x[n], float y[n])
{
  meta_schedule cache(x) {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < n)
          y[p] = x[(p + n - 1) % n] + 2 * x[p] + x[p == n - 1 ? 0 : p + 1] + x[(p - 2 + 2 * n) % n];
      }
  }
}
"""

TORUS = """
void torus(int n, int m, int B, const int x[n][m], int y[n][m])
{
  meta_schedule cache(x) {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int k = 0; k < (m + B - 1) / B; k++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {
            int r = i * B + u, c = k * B + v;
            if (r >= n || c >= m) continue;
            int up = r == 0 ? n - 1 : r - 1;
            int down = r + 1;
            if (down == n) down = 0;
            int left = c - 1;
            if (left < 0) left += m;
            unsigned right = (c + 1u) % (unsigned)m;
            y[r][c] = x[up][left] + 2 * x[up][c] + 3 * x[r][right] + 5 * x[down][left] + 7 * x[down][right];
          }
  }
}
"""

FILTER = """
void filter(int n, int R, int B, const float x[n], const float w[R], float y[n])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        float sum = 0;
        for (int r = 0; r < R; r++)
          sum += w[r] * x[(i * B + j + r) % n];
        y[i * B + j] = sum;
      }
  }
}
"""

TURNED = """
void turned(int n, int k, int s, int B, const int x[n], int y[n])
{
  assert(n % (s * B) == 0);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n / (s * B); i++)
      for (int t = 0; t < s; t++)
        meta_for (int j = 0; j < B; j++) {
          int p = (i * s + t) * B + j;
          y[(p + 1) % n] = x[(p + k) % n] - x[p < n - 1 ? p + 1 : 0];
        }
  }
}
"""

ROWS = """
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
void rows(int g, int m, int B, const int x[g][m], int y[g][m])
{
  meta_schedule cache(x) {
    meta_for (int i = 0; i < g; i++) {
      int next = (i + 1) % g;
      for (int k = 0; k < m / B; k++) {
        int back = i > 0 ? i - 1 : g - 1;
        meta_for (int j = 0; j < B; j++) {
          int c = k * B + j;
          y[i][c] = x[next][c] - x[(i + k) % g][LEAST(c + 1, m - 1)] + 3 * x[back][c] + x[i][(2 * c + 1) % m];
        }
      }
    }
  }
}
"""

TRIPLES = """
void triples(int n, int B, const float x[n][3], float y[n])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        y[p] = x[(p + 1) % n][0] + x[(p + 1) % n][1] * x[(p + 1) % n][2] + x[p][(p + 2) % 3];
      }
  }
}
"""

FLAT = TORUS.replace("torus", "flat").replace("[n][m]", "[n * m]")
for _row, _column in (("up", "left"), ("up", "c"), ("r", "right"), ("down", "left"), ("down", "right")):
    FLAT = FLAT.replace(f"x[{_row}][{_column}]", f"x[{_row} * m + {_column}]")
FLAT = FLAT.replace("unsigned right = (c + 1u) % (unsigned)m", "int right = (c + 1) % m").replace(
    "y[r][c]", "y[r * m + c]"
)

LAYERS = """
void layers(int nx, int ny, int nz, int B, const float x[nx * ny * nz], float y[nx * ny * nz])
{
  meta_schedule cache(x) {
    meta_for (int i = 0; i < (ny + B - 1) / B; i++)
      meta_for (int k = 0; k < (nx + B - 1) / B; k++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {
            int r = i * B + u, q = k * B + v;
            if (q >= nx || r >= ny) continue;
            int c = q + r * nx;
            int W = (q == 0) ? c : c - 1, E = (q == nx - 1) ? c : c + 1;
            int N = (r == 0) ? c : c - nx, S = (r != ny - 1) ? c + nx : c;
            for (int z = 0; z < nz; z++) {
              int at = z * nx * ny;
              int up = z < nz - 1 ? at + nx * ny : at;
              y[at + c] = x[c + up] + 2 * x[W + at] + 3 * x[E + at] + 5 * x[at + N] + 7 * x[S + z * (ny * nx)];
            }
          }
  }
}
"""

CLAMPED = """
static inline int clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
void clamped(int w, int h, int B, const unsigned char x[h * w], int y[h * w])
{
  meta_schedule cache(x) {
    meta_for (int i = 0; i < (h + B - 1) / B; i++)
      meta_for (int k = 0; k < (w + B - 1) / B; k++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {
            int r = i * B + u, c = k * B + v;
            if (c >= w || r >= h) continue;
            int left = clamp(c - 1, 0, w - 1), right = clamp(c + 1, 0, w - 1);
            int above = clamp(r - 2, 0, h - 1) * w;
            y[r * w + c] = x[r * w + left] - x[above + right] + 3 * x[clamp(r + 1, 0, h - 1) * w + c];
          }
  }
}
"""

LEVELS = """
void levels(int n, int B, int now, float x[2][n])
{
  assert(now < 2);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < n)
          x[1 - now][p] = (x[now][(p + n - 1) % n] + x[now][p] + x[now][p == n - 1 ? 0 : p + 1]) / 3;
      }
  }
}
"""

SIZES = """
typedef unsigned long size;
#define AT(r, c) x[(r) * m + (c)]
void sizes(size n, size m, size B, const float x[n * m], float y[n * m])
{
  meta_schedule cache(x) {
    meta_for (size i = 0; i < n / B; i++)
      meta_for (size k = 0; k < m / B; k++)
        meta_for (size u = 0; u < B; u++)
          meta_for (size v = 0; v < B; v++) {
            size r = i * B + u, c = k * B + v;
            y[r * m + c] = AT((r + 1) % n, c) + 2 * AT(r, (c + m - 1) % m) + 3 * AT((r + n - 1) % n, (c + 1) % m);
          }
  }
}
"""

POINTS = {
    FLAT: grid(n=(1, 2, 7), m=(1, 3, 9), B=(1, 4)),
    LAYERS: grid(nx=(1, 2, 9), ny=(1, 5), nz=(1, 3), B=(1, 4)),
    CLAMPED: grid(w=(1, 2, 9), h=(1, 6), B=(1, 4)),
    LEVELS: grid(n=(1, 2, 9, 16), B=(1, 4), now=(0, 1)),
    SIZES: grid(n=(4, 8), m=(4, 12), B=(1, 4)),
    RING: grid(n=(1, 2, 5, 16, 19), B=(1, 3, 8)),
    TORUS: grid(n=(1, 2, 7), m=(1, 3, 9), B=(1, 4)),
    FILTER: grid(n=(1, 3, 24), R=(1, 3, 30), B=(1, 3)),
    ROWS: grid(g=(1, 2, 5), m=(4, 12), B=(1, 4)),
    TRIPLES: grid(n=(1, 2, 33, 64), B=(1, 2, 32)),
    TURNED: [p for p in grid(n=(1, 6, 24), k=(0, 1, 5, 40), s=(1, 2), B=(1, 3)) if p["n"] % (p["s"] * p["B"]) == 0],
}


STRATEGIES = {TORUS: None, FLAT: None, TRIPLES: ["+swizzle"]}


@pytest.mark.parametrize("first", sampled(range(2), 1))
@pytest.mark.slow
def test_every_leaf_with_wrapped_indices_is_the_serial_program(first, tmp_path):
    cases = []
    for text, points in list(POINTS.items())[first::2]:
        own, applied = leaf_cases(text, points, STRATEGIES.get(text, ["+thread_striding"]))
        assert "caching" in applied or text is TRIPLES
        cases += own
    assert run(cases, tmp_path) == {}


@pytest.mark.parametrize("text", [text for text in POINTS if text != TRIPLES])
def test_wrapped_indices_are_free_of_races_and_cached(text):
    program = with_exactness(parse(Source("f.mf", text)).schedules[0].program)
    report = race_report(program)
    assert not report.races
    assert not report.unproved
    remarks = explanation(program, registry.strategies(None), Analyses())
    assert [one.taken for one in remarks if (one.topic, one.subject) == ("shared memory", "x")] == [True]


@pytest.mark.parametrize(
    ("to", "of", "reason"),
    [
        ("x[1 - now][(p + 1) % n]", "x[now][p]", "wraps at a border where elements are written"),
        ("x[0][p]", "x[now][(p + 1) % n]", "elements are written that are not proved to be others"),
        ("x[now][p]", "x[now][(p + 1) % n]", "elements are written that are not proved to be others"),
    ],
)
def test_copies_of_written_elements_are_refused(to, of, reason):
    start = LEVELS.index("x[1 - now][p]")
    text = f"{LEVELS[:start]}{to} = {of};{LEVELS[LEVELS.index(';', start) + 1 :]}"
    program = parse(Source("f.mf", text)).schedules[0].program
    remarks = explanation(program, registry.strategies(None), Analyses())
    (remark,) = (one for one in remarks if (one.topic, one.subject) == ("shared memory", "x"))
    assert not remark.taken
    assert reason in remark.reason
