"""Loops that read four elements of shared memory by one access: run at sizes that are and are not multiples of 4."""

import re

import pytest

from metafork.ir.mapping import Layout
from metafork.ir.static_values import with_static_values
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import ROWS, jammed, program

TILES = """
void NAME(int n, int B, int K, ELEMENT a[n][n], ELEMENT b[n][n], ELEMENT c[n][n])
{
  int dim0 = n / (B * 2), dim1 = n / (B * 4);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim0; i++) meta_for (int j = 0; j < dim1; j++)
      for (int k = 0; k < n / K; k++)
        meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < K; z++)
            for (int y = 0; y < 2; y++) for (int w = 0; w < 4; w++)
              c[i * 2 * B + y * B + v][j * 4 * B + w * B + u] +=
                  a[i * 2 * B + y * B + v][K * k + z] * b[K * k + z][j * 4 * B + w * B + u];
  }
}"""
ONE_RESULT = """
void NAME(int n, int B, int K, ELEMENT a[n][n], ELEMENT b[n][n], ELEMENT c[n][n])
{
  int dim = n / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < dim; j++)
      for (int k = 0; k < n / K; k++)
        meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < K; z++)
            c[i * B + v][j * B + u] += a[i * B + v][K * k + z] * b[K * k + z][j * B + u];
  }
}"""
OFTEN_READ = """
void NAME(int n, int B, int K, ELEMENT x[n], ELEMENT y[n], ELEMENT w[K])
{
  int blocks = (n - K) / B;
  meta_schedule cache(x, w) {
    meta_for (int i = 0; i < blocks; i++) meta_for (int u = 0; u < B; u++) {
      ELEMENT t = 0;
      for (int z = 0; z < K; z++) {
        int p = i * B + u + z;
        ELEMENT f = w[z];
        if (x[p] > 2)
          t += f * x[p];
        else
          t -= f;
      }
      y[i * B + u] = t;
    }
  }
}"""
FOUND_EARLY = ONE_RESULT.replace("for (int z = 0; z < K; z++)", "for (int z = 0; z < K; z++) {").replace(
    "[j * B + u];\n", "[j * B + u];\n            if (c[i * B + v][j * B + u] > 9) break; }\n"
)


def named(text, name, element="float"):
    return text.replace("NAME", name).replace("ELEMENT", element)


def tiled(text, **static):
    """Return a program as the strategies for register tiles leave it."""
    one = program(text)
    return jammed(with_static_values(one, static) if static else one).mapped(wide=True)


def together(one):
    """Return the memories of which the kernel reads several elements by one access, and how many."""
    text = kernel_text(lower(one, "k"))
    found = re.findall(r"metafork_load\(&(\w+)([^;]*);", text)
    return {(name, arguments.count(",")) for name, arguments in found}


def cases():
    """Yield cases with the accesses that their kernels have."""
    sizes = grid(n=[16, 24], B=[1, 2, 3], K=[1, 2, 4, 5, 8, 12])
    a = ("shared_a", 4)
    yield named(TILES, "tiles"), sizes, {}, {a}
    yield named(TILES, "tiles_of_integers", "int"), sizes, {}, {a}
    yield named(TILES, "tiles_of_doubles", "double"), sizes, {}, {("shared_a", 2)}
    yield named(ONE_RESULT, "one_result"), grid(n=[12, 16], B=[2, 3, 4], K=[1, 3, 4, 6, 8]), {}, {a}
    yield named(ONE_RESULT, "of_constants"), grid(n=[24], B=[2, 3], K=[12]), {"K": 12}, {a}
    yield named(OFTEN_READ, "often_read"), grid(n=[29, 32], B=[2, 4], K=[1, 3, 4, 8, 11]), {}, {("shared_w", 2)}


def test_four_elements_go_together(tmp_path):
    made = []
    for text, points, static, expected in cases():
        one = tiled(text, **static)
        assert together(one) == expected, one.name
        made.append(Case(text, points, program=one))
    assert run(made, tmp_path) == {}


def test_both_copies_of_a_window_share_the_places_of_threads():
    text = kernel_text(lower(tiled(named(ONE_RESULT, "f")), "k"))
    assert text.count("int wide = METAFORK_ALIGNED() && K % 4 == 0 && n % 4 == 0;") == 1
    assert "int row_length = wide ? K / 4 : K;" in text
    assert text.count("(unsigned int)row_length)") == 2  # of the place of a thread, and of their number
    assert text.count("if (wide) {") == 1


def test_the_compiler_is_asked_for_copies_of_loops_whose_trips_are_unknown():
    def asked(one):
        return re.findall(r"METAFORK_UNROLLED_BY\((\d)\)\s*for \(int z", kernel_text(lower(one, "k")))

    assert asked(tiled(named(ONE_RESULT, "f"))) == ["4"]
    assert asked(tiled(named(ONE_RESULT, "f"), K=12)) == []
    assert asked(program(named(ONE_RESULT, "f"))) == []


@pytest.mark.parametrize(("sums", "copies"), [(1, "4"), (8, "4"), (9, "2"), (16, "2"), (17, "")])
def test_a_long_body_is_copied_less_often(sums, copies):
    more = "".join(f" c[i * B + v][j * B + u] += z * {number}.5f;" for number in range(1, sums))
    text = ONE_RESULT.replace("for (int z = 0; z < K; z++)", "for (int z = 0; z < K; z++) {")
    text = named(text.replace("[j * B + u];\n", f"[j * B + u];{more} }}\n"), "f")
    found = kernel_text(lower(tiled(text), "k"))
    assert re.findall(r"METAFORK_UNROLLED_BY\((\d)\)\s*for \(int z", found) == list(copies)


LEFT = {
    "without register tiles": lambda: program(named(TILES, "f")),
    "narrow elements": lambda: tiled(named(ONE_RESULT, "f", "short")),
    "rows of odd length": lambda: tiled(named(ONE_RESULT, "f"), K=9),
    "few iterations": lambda: tiled(named(ONE_RESULT, "f"), K=8),
    "an end that moves": lambda: tiled(named(ONE_RESULT, "f").replace("z < K", "z < K - z")),
    "an early end": lambda: tiled(named(FOUND_EARLY, "f")),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_proved_is_read_one_by_one(name):
    assert together(LEFT[name]()) == set()


def test_kernels_ask_for_what_accesses_need():
    def loops(one):
        lines = map(str.strip, kernel_text(lower(one, "k")).splitlines())
        return [line for line in lines if line.startswith("for (int z") or line == "if (K % 4 == 0) {"]

    either = ["if (K % 4 == 0) {", "for (int z = 0; z < K; z += 4) {", "for (int z = 0; z < K; z++) {"]
    assert loops(tiled(named(ONE_RESULT, "f"))) == either
    assert loops(tiled(named(ONE_RESULT, "f"), K=12)) == ["for (int z = 0; z < 12; z += 4) {"]


def test_threads_walk_rows_that_are_padded_by_a_vector(tmp_path):
    text = ROWS.replace("ELEMENT", "float")
    padded = program(text).mapped(wide=True, cached=("a", "x"), layouts=(("a", Layout(padding=4)),))
    assert together(padded) == {("shared_a", 4), ("shared_x", 4)}
    assert "metafork_move<4>(&shared_a[" in kernel_text(lower(padded, "k"))
    points = grid(n=[48, 50, 64], B=[2, 4, 6, 8, 16])
    by_one = padded.mapped(layouts=(("a", Layout(padding=1)),))
    cases = [Case(text, points, program=one, label=name) for name, one in (("four", padded), ("one", by_one))]
    assert run(cases, tmp_path) == {}
