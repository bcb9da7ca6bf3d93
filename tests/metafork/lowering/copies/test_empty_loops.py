"""Loops of a thread without iterations: kernels with windows of arrays in shared memory do what the text does."""

from tests.metafork.kernel_runs import Case, grid, run

HEAD = "meta_schedule meta_block(B) { meta_for (int p = 0; p < n; p++) {"
TEXTS = {
    "a window behind the element": (
        "const int x[n + m], int y[n]",
        "int s = 3; for (int k = 0; k < m; k++) s += x[p + k]; y[p] = s;",
    ),
    "the element, and a window behind it": (
        "const int x[n + m], int y[n]",
        "int s = x[p]; for (int k = 0; k < m; k++) s += x[p + k]; y[p] = s;",
    ),
    "steps of 4 in an index, and another array": (
        "const int x[4 * m + n], const int z[n + 2], int y[n]",
        "int s = z[p] + z[p + 2]; for (int k = 0; k < m; k++) s += x[4 * k] - z[p + 1]; y[p] = s;",
    ),
    "steps of 4 in a head": (
        "const int x[n + m], int y[n]",
        "int s = 3; for (int k = 0; k < m - 1; k += 4) s += x[p + k]; y[p] = s;",
    ),
    "from a start to an end": (
        "const int x[m + l], const int z[n + 1], int y[n]",
        "int s = z[p] - z[p + 1]; for (int k = l; k < m; k++) s += x[k]; y[p] = s;",
    ),
    "downwards": (
        "const int x[n + m], int y[n]",
        "int s = 3; for (int k = m - 2; k >= 0; k--) s = 2 * s + x[p + k]; y[p] = s;",
    ),
    "loops in each other": (
        "const int x[n + m + l], int y[n]",
        "int s = 3; for (int k = 0; k < m; k++) for (int q = 0; q < k - l; q++) s += x[p + k + q]; y[p] = s;",
    ),
    "rows and columns": (
        "const int x[m + 1][n + l], int y[n]",
        "int s = 3; for (int k = 0; k < m; k++) for (int q = 0; q < l; q++) s += x[k][p + q] + x[k + 1][p + q];"
        " y[p] = s;",
    ),
    "a sum in memory": (
        "const int x[n + m], int y[n]",
        "for (int k = 0; k < m; k++) y[p] += x[p + k];",
    ),
    "a sum in memory that begins": (
        "const int x[n + m], int y[n]",
        "y[p] = 1; for (int k = 0; k < m; k++) y[p] += x[p + k];",
    ),
    "elements that a loop writes": (
        "const int x[n + 1], int y[n * m + 1]",
        "for (int k = 0; k < m; k++) y[p * m + k] += x[p] * x[p + 1] + k;",
    ),
}
BLOCKS = {
    "as many as the number of the thread": (
        "const int x[B], const int z[B + n], int y[n]",
        "int s = z[j] + z[j + 1]; for (int k = 0; k < j - 2; k++) s += x[k]; y[i * B + j] = s;",
    ),
}
CASES = [
    Case(
        f"void empty_{number}(int n, int m, int l, int B, {arrays}) {{ {HEAD} {body} }} }} }}",
        grid(n=(1, 7), m=(0, 1, 3), l=(0, 1, 2), B=(1, 4)),
        cached=tuple(name for name in ("x", "y", "z") if f"{name}[" in arrays),
        label=label,
    )
    for number, (label, (arrays, body)) in enumerate(TEXTS.items())
] + [
    Case(
        f"void blocks_{number}(int n, int m, int l, int B, {arrays}) {{ meta_schedule {{ "
        f"meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < B; j++) {{ {body} }} }} }}",
        grid(n=(4, 8), m=(0,), l=(0,), B=(1, 4)),
        cached=("x", "z"),
        label=label,
    )
    for number, (label, (arrays, body)) in enumerate(BLOCKS.items())
]


def test_kernels_with_loops_that_do_not_run(tmp_path):
    assert run(CASES, tmp_path) == {}
