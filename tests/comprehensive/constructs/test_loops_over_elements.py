"""Loops over elements, cut into blocks by ``meta_block``, with variables declared as in C89."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.ir.messages.source import Source

PROGRAMS = {
    "a vector, by a block of constant size": "void axpy(int n, float w, const float *x, float *y)\n{\n"
    "  meta_schedule meta_block(16) { meta_for (int i = 0; i < n; i++) y[i] = w * x[i] + y[i]; }\n}\n",
    "the inside of a grid": "void jacobi(int n, int m, int B0, int B1, const float a[n][m], float b[n][m])\n{\n"
    "  int y, x;\n  meta_schedule meta_block(B0, B1) {\n"
    "    meta_for (y = 1; y < n - 1; y++) meta_for (x = 1; x <= m - 2; x++)\n"
    "      b[y][x] = (a[y][x] + a[y][x - 1] + a[y][x + 1] + a[y - 1][x] + a[y + 1][x]) / 5; }\n}\n",
    "a product": "void product(int n, int m, int p, int B0, int B1, float a[n][p], float b[p][m], float c[n][m])\n{\n"
    "  int i, j, k;\n  float sum;\n  meta_schedule meta_block(B0, B1) {\n"
    "    meta_for (i = 0; i < n; i++) meta_for (j = 0; j < m; j++) {\n"
    "      sum = 0;\n      for (k = 0; k < p; k++) sum += a[i][k] * b[k][j];\n      c[i][j] = sum; } }\n}\n",
    "a batch whose loop is the grid's alone": "void turned(int q, int n, int m, int T, "
    "const int a[q][n][m], int b[q][m][n])\n{\n  meta_schedule meta_block(T, T) { meta_for (int k = 0; k < q; k++)\n"
    "    meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) b[k][j][i] = a[k][i][j]; }\n}\n",
    "a triangle": "void triangle(int n, int m, int B0, int B1, const float a[n][m], float c[n][n])\n{\n  int i, j, k;\n"
    "  meta_schedule meta_block(B0, B1) { meta_for (i = 0; i < n; i++) meta_for (j = i; j < n; j++)\n"
    "    for (k = 0; k < m; k++) c[i][j] += a[i][k] * a[j][k]; }\n}\n",
    "steps, downwards, with continue": "#pragma metafork extents(b[n])\n"
    "void odd(int n, int s, int B, const int *a, int *b)\n{\n"
    "  meta_schedule meta_block(B) { meta_for (long i = n - 1; i >= 1; i -= s) {\n"
    "    if (a[i] < 0) continue;\n    b[i] = a[i] - a[i - 1]; } }\n}\n",
    "a sum, and a histogram": "#pragma metafork extents(count[m])\n"
    "int total(int n, int m, int B, const unsigned char *a, int *count)\n{\n"
    "  int sum = 0, i;\n"
    "  for (i = 0; i < m; i++) count[i] = 0;\n  meta_schedule meta_block(B) {\n    meta_reduction(+: sum)\n"
    "    meta_for (i = 0; i < n; i++) { sum += a[i]; meta_atomic count[a[i] % m]++; } }\n  return sum;\n}\n",
    "scalars between the loops": "#include <math.h>\n"
    "void rows(int n, int m, int B, const float a[n][m], float b[n][m])\n{\n"
    "  meta_schedule meta_block(B) { meta_for (int i = 1; i < n; i++) {\n"
    "    int up = i - 1;\n    float w = a[i][0] + a[up][0];\n"
    "    meta_for (int j = 0; j < m; j++) b[i][j] = w * fabsf(a[up][j]); } }\n}\n",
    "tiles by their first elements": "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n"
    "void tiled(int n, int T, const float *a, const float *b, float *c)\n{\n  int i, j, k, i0, j0, k0;\n"
    "  meta_schedule { meta_for (i0 = 0; i0 < n; i0 += T) meta_for (j0 = 0; j0 < n; j0 += T)\n"
    "    for (k0 = 0; k0 < n; k0 += T)\n"
    "      meta_for (i = i0; i < MIN(i0 + T, n); i++) meta_for (j = j0; j < MIN(j0 + T, n); j++)\n"
    "        for (k = k0; k < MIN(k0 + T, n); k++) c[i * n + j] += a[i * n + k] * b[k * n + j]; }\n}\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.slow
def test_blocks_compute_what_the_loops_say(name):
    options = Options(points=8, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(
        Source("input.mf", PROGRAMS[name]), counters=("shared_memory",), strategies=(), options=options, machine="all"
    )
    assert found.passed, found.table()
    assert "not checked" not in found.table()
    assert all(row.points for row in found.rows)


def test_a_grid_of_elements_has_the_leaves_of_one_cut_by_hand():
    def leaves(text):
        (schedule,) = optimize(Source("input.mf", text), static="none").schedules
        (leaf,) = schedule.leaves
        return [one.effects for one in leaf.variants]

    by_hand = (
        "void jacobi(int n, int m, int B0, int B1, const float a[n][m], float b[n][m])\n{\n  meta_schedule {\n"
        "    meta_for (int v = 0; v < (n + B0 - 3) / B0; v++) meta_for (int p = 0; p < (m + B1 - 3) / B1; p++)\n"
        "      meta_for (int u = 0; u < B0; u++) meta_for (int q = 0; q < B1; q++) {\n"
        "        int y = 1 + (v * B0 + u), x = 1 + (p * B1 + q);\n        if (y < n - 1 && x <= m - 2)\n"
        "          b[y][x] = (a[y][x] + a[y][x - 1] + a[y][x + 1] + a[y - 1][x] + a[y + 1][x]) / 5; } }\n}\n"
    )
    fixed = [effects for effects in leaves(by_hand) if effects]
    found = [effects for effects in leaves(PROGRAMS["the inside of a grid"]) if effects]
    # Blocks that the clause gives may compute more, with the same threads: those variants come first.
    assert found[0] == fixed[0]
    assert not any("of fewer" in effect for effect in found[0])
