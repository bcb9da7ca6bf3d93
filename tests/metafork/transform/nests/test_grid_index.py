from tests.metafork.transform.nests.grid_programs import POINTS, ROW, in_grid, joined


def test_a_loop_that_fits_no_grid_variable_is_decoded_from_the_innermost():
    text = in_grid(f"{ROW} int p = i * B + v; if (k < p) b[r][p * s + k] = a[r][p];")
    assert joined(text, POINTS) == (
        [("g", "d"), ("ik", "e * s")],
        [
            "int i = ik / s;",
            "int k = ik % s;",
            "int r = g * B + u;",
            "int p = i * B + v;",
            "if (k < p) {",
            "b[r][p * s + k] = a[r][p];",
            "}",
            "}",
        ],
    )
