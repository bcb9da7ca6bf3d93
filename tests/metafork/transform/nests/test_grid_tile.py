import pytest

from metafork.printing.statements import statements
from metafork.transform.nests.grid_tile import without_zeros
from tests.metafork.interpreter import program
from tests.metafork.random_code import nest
from tests.metafork.transform.nests.grid_programs import POINTS, ROW, in_grid, joined

FINE = "int p = (i * s + k) * B + v;"


@pytest.mark.parametrize(
    ("text", "grid", "body"),
    [
        (
            in_grid(f"{ROW} {FINE} b[r][p] = a[r][p];"),
            [("g", "d"), ("i", "e * s")],
            ["int r = g * B + u;", "int p = i * B + v;", "b[r][p] = a[r][p];"],
        ),
        (
            in_grid(
                f"{ROW} int p = i * s * B + k * B + v; if (p + 1 < N && r > 0) b[r][p] = a[r][p + 1]; else b[r][p] = 0;"
            ),
            [("g", "d"), ("i", "e * s")],
            [
                "int r = g * B + u;",
                "int p = i * B + v;",
                "if (p + 1 < N && r > 0) {",
                "b[r][p] = a[r][p + 1];",
                "} else {",
                "b[r][p] = 0;",
                "}",
            ],
        ),
        (
            in_grid(f"{ROW} {FINE} for (int m = 0; m < p; m++) b[r][p] += a[r][m]; while (b[r][p] > p) b[r][p] = 0;"),
            [("g", "d"), ("i", "e * s")],
            [
                "int r = g * B + u;",
                "int p = i * B + v;",
                "for (int m = 0; m < p; m++) {",
                "b[r][p] += a[r][m];",
                "}",
                "while (b[r][p] > p) {",
                "b[r][p] = 0;",
                "}",
            ],
        ),
        (
            in_grid(
                f"{ROW} b[r][(i + k * (N / (2 * B))) * B + v] = a[r][(i + k * (N / (2 * B))) * B + v];",
                "assert(N % (2 * B) == 0 && s == 2); int d = N / B, e = N / (2 * B);",
            ).replace("k < s", "k < 2"),
            [("g", "d"), ("i", "e * 2")],
            ["int r = g * B + u;", "b[r][i * B + v] = a[r][i * B + v];"],
        ),
        (
            in_grid(f"{ROW} int p = v + B * (i * s + k + 1); if (i < e && p < N && u < B) b[r][p] = a[r][p];"),
            [("g", "d"), ("i", "e * s")],
            ["int r = g * B + u;", "int p = v + B * (i + 1);", "if (p < N && u < B) {", "b[r][p] = a[r][p];", "}"],
        ),
    ],
    ids=["fine", "fine_branches", "fine_loops", "coarse", "fine_always"],
)
def test_a_loop_joins_a_grid_variable_with_no_division(text, grid, body):
    points = [{**POINTS[0], "s": 2}] if "s == 2" in text else POINTS
    assert joined(text, points) == (grid, body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int z = 0; c[j + z] = 1;", ["c[j] = 1;"]),
        ("int z = i * 0; int y = z + j; c[y + z] = i;", ["c[j] = i;"]),
        ("int y; y = 0 + j; c[y] = 0 * i + 1;", ["int y;", "y = j;", "c[y] = 1;"]),
        # What is assigned has other values later.
        ("int z = 0; z += 1; c[z + 0] = j;", ["int z = 0;", "z += 1;", "c[z] = j;"]),
        # A copy that was one before keeps its name; what has become one does not.
        ("int y = j; c[y + 0] = 1;", ["int y = j;", "c[y] = 1;"]),
        ("int y = j + 0 * i; c[y] = 1;", ["c[j] = 1;"]),
        # In another type it would compute something else.
        ("long y = 0; c[y + j] = 1;", ["long y = 0;", "c[y + j] = 1;"]),
        ("long y = j + 0; c[y] = y;", ["long y = j;", "c[y] = y;"]),
        (
            "int y = j * 1 + 0 * s + 2; if (y + 0 < N) { int w = 0; c[w + y] = w; } else { c[y * 1] = 2; }",
            ["int y = j + 2;", "if (y < N) {", "  c[y] = 0;", "} else {", "  c[y] = 2;", "}"],
        ),
        (
            "while (j + 0 < s) { int z = 0; c[z + j] = 0; break; }",
            ["while (j < s) {", "  c[j] = 0;", "  break;", "}"],
        ),
        (
            "for (int k = 0; k < s; k++) { int z = 0; c[z + k] = 1; }",
            ["for (int k = 0; k < s; k++) {", "  c[k] = 1;", "}"],
        ),
    ],
)
def test_scalars_that_are_zero_or_a_copy_go_into_their_uses(body, expected):
    (phase,) = program(nest(body)).body
    assert statements(without_zeros(phase.body), 0) == expected


def test_a_condition_on_what_may_be_negative_stays():
    text = in_grid(f"{ROW} int h = (int)a[r][0] - 40; if (i < e + h) b[r][(i * s + k) * B + v] = 1;")
    grid, body = joined(text, POINTS)
    assert grid == [("g", "d"), ("ik", "e * s")]
    assert "if (i < e + h) {" in body
