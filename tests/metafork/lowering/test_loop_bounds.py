"""Guards that cut a loop off become its bound, where they are the same for all threads; kernels compute the same."""

import pytest

from metafork.ir.program import For, If, walk_statements
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

TEXT = """
void {name}(int n, int m, int B, int K, const float a[m], const float w[n], float y[n]) {{
  int blocks = (n + B - 1) / B;
  meta_schedule cache() {{
    meta_for (int i = 0; i < blocks; i++)
      for (int t = 0; t < (m + K - 1) / K; t++)
        meta_for (int u = 0; u < B; u++) {{
          int row = i * B + u;
          if (row < n) {{ float sum = y[row]; {body} y[row] = sum; }}
        }}
  }}
}}"""
CUT = {
    "a_column": "for (int k = 0; k < K; k++) { int column = t * K + k; if (column < m) sum += a[column]; }",
    "by_itself": "for (int k = 0; k < K; k++) if (k + t * K < m) sum += a[t * K + k];",
    "at_most": "for (int k = 0; k < K; k++) { int q = k + 1; if (t * K + q <= m) sum += q * a[t * K + k]; }",
    "two_bounds": "for (int k = 0; k < K; k++) if (t * K + k < m && k < n - 2) sum += a[t * K + k];",
    "and_another": "for (int k = 0; k < K; k++) if (t * K + k < m && (k + u) % 2 == 0) sum += a[t * K + k];",
    "the_counter": "for (int k = 0; k < K; k++) if (k < m - t * K) sum += a[t * K + k];",
}
LEFT = {
    "of_a_thread": "for (int k = 0; k < K; k++) if (row + k < n) sum += w[row + k];",
    "behind_another": "for (int k = 0; k < K; k++) if (k % 2 == 0 && t * K + k < m) sum += a[t * K + k];",
    "upwards": "for (int k = 0; k < K; k++) if (m - k > t * K) sum += a[t * K + k];",
    "two_steps": "for (int k = 0; k < K; k++) if (t * K + 2 * k < m) sum += a[t * K + 2 * k];",
    "with_an_else": "for (int k = 0; k < K; k++) if (t * K + k < m) sum += a[t * K + k]; else sum *= 2;",
    "more_behind": "for (int k = 0; k < K; k++) { if (t * K + k < m) sum += a[t * K + k]; sum *= 2; }",
    "changing": "for (int k = 0; k < K; k++) { int q = t * K; q += k; if (q < m) sum += a[q]; }",
    "few_trips": "for (int k = 0; k < 4; k++) if (t * K + k < m) sum += a[t * K + k];",
}
POINTS = grid(n=[9, 12], m=[1, 7, 16], B=[4], K=[1, 3, 8])


def guards(body):
    """The conditions in the loop over k of a kernel."""
    kernel = lower(program(TEXT.format(name="f", body=body)), "k")
    loops = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For) and stmt.init.name == "k"]
    assert loops
    return [stmt for loop in loops for stmt in walk_statements(loop.body) if isinstance(stmt, If)]


@pytest.mark.parametrize("name", CUT)
def test_uniform_guards_are_bounds(name):
    assert len(guards(CUT[name])) == (name == "and_another")


@pytest.mark.parametrize("name", LEFT)
def test_others_stay(name):
    assert guards(LEFT[name])


def test_kernels_compute_what_the_program_means(tmp_path):
    cases = [Case(TEXT.format(name=name, body=body), POINTS) for name, body in (CUT | LEFT).items()]
    assert run(cases, tmp_path) == {}
