"""Solvers as hosts drive them: loops that converge, norms, pivots, borders, sources and centroids computed by the host.

Arguments, sizes and counts are those of ``transfer_cases``.
"""

from tests.end_to_end.transfer_cases import ONCE, Case, schedule

ALL = "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) { BODY } }"
PRODUCT = schedule("y[i] = 0; for (int j = 0; j < n; j++) y[i] = y[i] + A[i][j] * x[j];")


def grid(body):
    """A schedule over all of A."""
    return ALL.replace("BODY", body)


def each(body):
    """A loop of the host over all i."""
    return "for (int i = 0; i < n; i++) { " + body + " } "


SOLVERS = {
    "Jacobi with a residual of the host": Case(
        "float far = 1; for (int s = 0; s < 6 && far > 1e-6f; s++) { "
        + schedule("y[i] = z[i]; for (int j = 0; j < n; j++) if (j != i) y[i] = y[i] - A[i][j] / 3000 * x[j];")
        + " far = 0; "
        + each("far += fabsf(y[i] - x[i]);")
        + " float *swap = x; x = y; y = swap; } z[0] = far;",
        {"A": {2304: 1}, "x": ONCE, "z": ONCE},
        {"x": {96: 3}, "y": {96: 3}},
    ),
    "power iteration, scaled by the host": Case(
        "for (int s = 0; s < 5; s++) { " + PRODUCT + " float size = norm(n, y); " + each("x[i] = y[i] / size;") + " }",
        {"A": {2304: 1}, "x": {96: 5}},
        {"y": {96: 5}},
    ),
    "power iteration, scaled by the device": Case(
        "for (int s = 0; s < 5; s++) { "
        + PRODUCT
        + " float size = norm(n, y); "
        + schedule("x[i] = y[i] / size;")
        + ' if (s % 2) fprintf(stderr, "%g after %d\\n", size, s); }',
        {"A": {2304: 1}, "x": ONCE},
        {"x": ONCE, "y": {96: 5}},
    ),
    "Gram-Schmidt by columns": Case(
        "for (int k = 0; k < 4; k++) { float size = 0; "
        + each("size += A[i][k] * A[i][k];")
        + " size = sqrtf(size) + 1; "
        + schedule("A[i][k] = A[i][k] / size;")
        + schedule(
            "if (i > k) { float r = 0; for (int j = 0; j < n; j++) r = r + A[j][k] * A[j][i];"
            " for (int j = 0; j < n; j++) A[j][i] = A[j][i] - A[j][k] * r / 1000; }"
        )
        + " }",
        {"A": {2304: 1}},
        {"A": {96: 3, 2304: 1, 92: 1}},
    ),
    "LU with pivots of the host": Case(
        "for (int k = 0; k < 5; k++) { int best = k; float most = fabsf(A[k][k]);"
        " for (int i = k + 1; i < n; i++) if (fabsf(A[i][k]) > most) { most = fabsf(A[i][k]); best = i; }"
        " if (best != k) for (int j = 0; j < n; j++) { float h = A[k][j]; A[k][j] = A[best][j]; A[best][j] = h; }"
        " float pivot = A[k][k] + 1; "
        + schedule("if (i > k) A[i][k] = A[i][k] / pivot;")
        + grid("if (i > k && j > k) A[i][j] = A[i][j] - A[i][k] * A[k][j];")
        + " }",
        {"A": {2304: 1, 192: 1, 96: 6}},
        {"A": {96: 7, 8: 5, 4: 4, 28: 4, 20: 2, 92: 1, 88: 1, 84: 1, 80: 1, 76: 1, 1808: 1, 44: 1, 32: 1}},
    ),
    "a source in a field": Case(
        "for (int s = 0; s < 7; s++) { "
        + grid("if (i > 0) A[i][j] = A[i][j] + 0.25f * x[j];")
        + schedule("x[i] = x[i] - 0.5f * A[n / 2][i];")
        + " A[n / 2][n / 2] += sinf(0.1f * s); }",
        {"A": {2304: 1, 4: 6}, "x": ONCE},
        {"A": {4: 7, 1104: 1, 1100: 1}, "x": ONCE},
    ),
    "borders of the host": Case(
        "for (int s = 0; s < 4; s++) { "
        + each("A[i][0] = A[i][n - 1] = s; A[0][i] = A[n - 1][i] = 2 * s;")
        + schedule("if (i > 0 && i < n - 1) for (int j = 1; j < n - 1; j++) A[i][j] = A[i][j] + A[i][j - 1] / 4;")
        + schedule("if (i > 0 && i < n - 1) for (int j = 1; j < n - 1; j++) A[j][i] = A[j][i] + A[j - 1][i] / 4;")
        + " }",
        {"A": {2304: 1, 96: 6, 88: 6}},
        {"A": {1936: 1}},
    ),
    "means of clusters": Case(
        "for (int k = 0; k < 4; k++) y[k] = x[5 * k]; for (int s = 0; s < 5; s++) { "
        + schedule(
            "int best = 0; for (int k = 1; k < 4; k++)"
            " if ((x[i] - y[k]) * (x[i] - y[k]) < (x[i] - y[best]) * (x[i] - y[best])) best = k; z[i] = best;"
        )
        + " float sums[4] = {0}; int counts[4] = {0, 0, 0, 0}; "
        + each("sums[(int)z[i]] += x[i]; counts[(int)z[i]]++;")
        + " for (int k = 0; k < 4; k++) if (counts[k]) y[k] = sums[k] / counts[k]; }",
        {"x": ONCE, "y": {96: 1, 16: 4}},
        {"z": {96: 5}},
    ),
    "levels of a graph and a flag of the host": Case(
        "z[0] = 0; for (int i = 1; i < n; i++) z[i] = -1; int going = 1; for (int level = 0; going; level++) { "
        + schedule("y[i] = 0; if (z[i] < 0) for (int j = 0; j < n; j++) if (x[j] == level && A[j][i] > 33) y[i] = 1;")
        + schedule("if (y[i] > 0) z[i] = level + 1; x[i] = z[i];")
        + " going = 0; "
        + each("if (y[i] > 0) going = 1;")
        + " }",
        {"A": {2304: 1}, "x": ONCE, "z": ONCE},
        {"x": ONCE, "y": ONCE, "z": ONCE},
    ),
    "a wave of three times, and a probe": Case(
        "for (int s = 0; s < T; s++) { "
        + schedule("z[i] = 2 * y[i] - x[i] / 2;")
        + " float *h = x; x = y; y = z; z = h; if (s % 5 == 0) total += y[n / 2]; }",
        {"x": ONCE, "y": ONCE},
        {"x": {4: 1, 96: 1}, "y": {4: 2, 96: 1}, "z": {4: 2, 96: 1}},
    ),
    "conjugate gradients": Case(
        "for (int s = 0; s < 4; s++) { "
        + PRODUCT
        + " float a = norm(n, z) / (norm(n, y) + 1); "
        + schedule("z[i] = z[i] - a * y[i]; x[i] = z[i] + a * x[i];")
        + " if (norm(n, z) < 1e-9f) break; }",
        {"A": {2304: 1}, "x": ONCE, "z": ONCE},
        {"x": ONCE, "y": {96: 4}, "z": {96: 4}},
    ),
    "a driver that has no schedule of its own": Case(
        "float before = norm(n, y); for (int s = 0; s < T; s++) { add(n, B, x, y); add(n, B, y, x);"
        " if (s % 10 == 0) { float now = norm(n, y); if (now < before) break; before = now; } }",
        {"x": ONCE, "y": ONCE},
        {"x": ONCE, "y": {96: 3}},
    ),
}
