"""Arrays of threads: every leaf of programs with them against the serial elision, and where they are kept."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.explanation import explanation
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import IntConst, PrivateArray, walk_statements
from metafork.ir.rewriting import private_arrays
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.leaf_cases import leaf_cases
from tests.metafork.kernel_runs import grid, run

TILE = """
void tile(int n, int B, const float a[n][n], const float b[n][n], float c[n][n])
{
  assert(n % (2 * B) == 0);
  meta_schedule {
    meta_for (int i = 0; i < n / (2 * B); i++)
      meta_for (int j = 0; j < n / (2 * B); j++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {
            float acc[2][2] = {0};
            for (int k = 0; k < n; k++)
              for (int p = 0; p < 2; p++)
                for (int q = 0; q < 2; q++)
                  acc[p][q] += a[i * 2 * B + p * B + u][k] * b[k][j * 2 * B + q * B + v];
            for (int p = 0; p < 2; p++)
              for (int q = 0; q < 2; q++)
                c[i * 2 * B + p * B + u][j * 2 * B + q * B + v] = acc[p][q];
          }
  }
}
"""

GRANULAR = """
void granular(int n, int s, int B, const int x[n], int y[n])
{
  assert(n % (s * B) == 0);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n / (s * B); i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + j;
          int last[3];
          last[0] = x[p], last[1] = x[p], last[2] = k;
          for (int l = 0; l < 5; l++) last[(x[p] + l) & 1] += last[2] + l;
          y[p] = last[0] - last[1];
        }
  }
}
"""

CARRIED = """
void carried(int n, int s, int B, const int x[n], int y[n])
{
  assert(n % (s * B) == 0);
  meta_schedule {
    meta_for (int i = 0; i < n / (s * B); i++)
      meta_for (int j = 0; j < B; j++) {
        int seen[4] = {7, 7, 7, 7};
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + j;
          y[p] = seen[k & 3];
          seen[(k + 1) & 3] = x[p];
        }
      }
  }
}
"""

PHASES = """
static float middle(float a, float b, float c)
{
  float t[3] = {a, b, c};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2 - i; j++)
      if (t[j] > t[j + 1]) { float x = t[j]; t[j] = t[j + 1]; t[j + 1] = x; }
  return t[1];
}
static float dot(const float x[3], float y[3])
{
  float w[3] = {1, 2}, sum = 0;
  for (int k = 0; k < 3; k++) { y[k] += 1; sum += w[k] * x[k] * y[k]; }
  return sum;
}

void phases(int n, int m, int B, const float a[n], float c[n])
{
  meta_schedule cache(a) {
    meta_for (int i = 0; i < n / B; i++) {
      float shared[B];
      for (int t = 0; t < m; t++) {
        meta_for (int u = 0; u < B; u++) {
          float x[3], y[3] = {a[i * B + u], t, 1};
          for (int k = 0; k < 3; k++) x[k] = a[i * B + u] + k;
          float d = dot(x, y);
          shared[u] = d + y[2] + middle(x[0], y[1], 2);
        }
        meta_for (int u = 0; u < B; u++) {
          float x[20] = {1};
          for (int k = 0; k <= u % 20; k++) x[k] += shared[B - 1 - u];
          c[i * B + u] += x[19] + x[0];
        }
      }
    }
  }
}
"""


CASES = {
    "tile": (TILE, grid(n=[4, 12], B=[1, 2])),
    "granular": (GRANULAR, grid(n=[24], s=[1, 2, 3], B=[1, 4])),
    "carried": (CARRIED, grid(n=[24], s=[2, 6], B=[1, 4])),
    "phases": (PHASES, grid(n=[12], m=[0, 2], B=[1, 3, 6])),
}


def test_every_leaf_computes_what_the_serial_elision_does(tmp_path):
    cases, applied = [], set()
    for text, points in CASES.values():
        more, strategies = leaf_cases(text, points)
        cases += more
        applied |= strategies
    assert {"granularity", "caching", "thread_striding"} & applied >= {"granularity"}
    assert run(cases, tmp_path) == {}


def program(text):
    return parse(Source("own.mf", text)).schedules[0].program


def remarks(text):
    return explanation(program(text), registry.strategies(None), Analyses())


def test_an_array_carried_from_one_iteration_to_the_next_stays_in_its_block():
    found = [one for one in remarks(CARRIED) if one.topic == "grid" and one.subject == "the loop over k"]
    assert found
    assert not any(one.taken for one in found)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (TILE, {"acc": True}),
        (GRANULAR, {"last": False}),
        (CARRIED, {"seen": False}),
        (PHASES, {"w": True, "x": True, "y": True, "t_1": True, "x_2": False}),
    ],
)
def test_registers_are_for_arrays_of_which_every_index_is_a_number(text, kept):
    own = private_arrays(program(text).body)
    assert {one.subject: one.taken for one in remarks(text) if one.topic == "registers" and one.subject in own} == kept


def test_constants_of_the_program_are_numbers():
    text = """
enum { R = 4 };
static const int Q = 2 + 1;
void f(int n, int B, const float x[n][4], float y[n])
{
  const long H = 2;
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        const int K = R + 1, L = K - n;
        float a[R] = {1}, b[Q][H], c[K];
        for (int k = 0; k < Q; k++) { b[k][H - 1] = x[i * B + j][k]; c[k + H] = L; }
        y[i * B + j] = a[0] + b[Q - 1][1] + c[2];
      }
  }
}
"""
    extents = {
        s.array.name: s.array.extents for s in walk_statements(program(text).body) if isinstance(s, PrivateArray)
    }
    assert extents == {"a": (IntConst(4),), "b": (IntConst(3), IntConst(2)), "c": (IntConst(5),)}
    assert {one.subject for one in remarks(text) if one.topic == "registers" and one.taken} == {"a", "b", "c"}


@pytest.mark.parametrize("text", [TILE, GRANULAR, CARRIED, PHASES])
def test_printed_programs_read_back(text):
    first = program(text)
    assert program(metafork_text(first)).body == first.body
