"""Copies of windows that move 16 or 8 bytes at once: where that is proved, at rows whose lengths do and do not fit."""

import re

import pytest

from metafork.ir.mapping import Layout
from metafork.ir.static_values import with_static_values
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.lowering.copies.staged_programs import EARLY, LATE, product
from tests.metafork.programs import program

LINE = """
void line(int n, int B, const float a[n], float b[n])
{
  int blocks = BLOCKS;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < blocks; i++) meta_for (int u = 0; u < B; u++) for (int w = 0; w < 3; w++) {
      int p = (i * 3 + w) * B + u;
      if (p < n)
        b[p] = 2 * a[p];
    }
  }
}"""
FLAT = """
void flat(int n, int B, const int a[n * n], int b[n * n])
{
  int down = n / B, across = n / (4 * B);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < down; i++) meta_for (int j = 0; j < across; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        for (int w = 0; w < 4; w++)
          b[((j * 4 + w) * B + u) * n + i * B + v] = a[(i * B + v) * n + (j * 4 + w) * B + u];
  }
}"""
BEHIND = """
void behind(int n, int B, const float odd[n], const double a[n][n], float b[n][n])
{
  int down = n / B, across = n / (4 * B);
  meta_schedule cache(a, odd) {
    meta_for (int i = 0; i < down; i++) meta_for (int j = 0; j < across; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        for (int w = 0; w < 4; w++)
          b[(j * 4 + w) * B + u][i * B + v] = a[i * B + v][(j * 4 + w) * B + u] + odd[i * B + v];
  }
}"""
SHIFTED = FLAT.replace("(4 * B)", "(4 * B) - 1").replace("+ u];", "+ u + 1];")
NARROW = FLAT.replace("int a", "short a")
ONE_EACH = FLAT.replace("4", "1")


def fixed(text, **values):
    return with_static_values(program(text), values)


def accesses(one):
    """Return the memories that are copied into together, and how many elements by an access."""
    return set(re.findall(r"metafork_(?:move|copy)<([248])>\(&(\w+)\[", kernel_text(lower(one, "k"))))


SHAPES = grid(n=[8, 10, 15, 16], m=[16, 20, 32, 46])


def cases():
    """Yield cases with the accesses that their kernels have."""
    for kind in ("counted", "whole_tiles", "strided"):
        for stages in (1, 2):
            one = fixed(product(kind), K=16, B=8).mapped(stages=stages)
            points = [{**point, "K": 16, "B": 8} for point in SHAPES if kind == "strided" or stages == 1]
            yield (
                Case(product(kind), points, program=one, label=f"{kind} {stages}"),
                {("4", "shared_a"), ("4", "shared_b")},
            )
    doubles = fixed(product("counted", "double"), K=6, B=2).mapped(stages=2)
    expected = {("2", "shared_a"), ("2", "shared_b")}
    yield Case(product("counted", "double"), grid(n=[12, 13], m=[12, 7], K=[6], B=[2]), program=doubles), expected
    pairs = fixed(product("counted"), K=6, B=2)
    yield Case(product("counted"), grid(n=[12, 13], m=[12, 7], K=[6], B=[2]), program=pairs, label="8 bytes"), expected
    inside, outside = (LINE.replace("BLOCKS", blocks) for blocks in ("n / (3 * B)", "(n + 3 * B - 1) / (3 * B)"))
    outside = outside.replace("void line", "void past_the_end")
    for text in (inside, outside):
        points = grid(n=[91, 96, 192, 195], B=[32])
        yield Case(text, points, program=fixed(text, B=32)), {("4", "shared_a")}
    yield Case(FLAT, grid(n=[8, 9, 18, 24], B=[2]), program=fixed(FLAT, B=2)), {("4", "shared_a")}
    symbols = FLAT.replace("void flat", "void symbols")
    yield Case(symbols, grid(n=[8, 9, 18, 24], B=[1, 2, 3]), program=program(symbols)), {("4", "shared_a")}
    behind = fixed(BEHIND, B=3).mapped(cached=("odd", "a"))
    yield Case(BEHIND, grid(n=[8, 12, 13, 24], B=[3]), program=behind), {("2", "shared_a")}


@pytest.mark.slow
def test_neighbours_are_copied_together(tmp_path):
    found = list(cases())
    for case, expected in found:
        assert accesses(case.program) == expected, case.label or case.function.name
        assert lower(case.program, "k").aligned
    assert run([case for case, _ in found], tmp_path, environments=(LATE, EARLY)) == {}


LEFT = {
    "symbols, at the border": lambda: program(
        FLAT.replace("across = n / (4 * B)", "across = (n + 4 * B - 1) / (4 * B)")
    ),
    "symbols that begin elsewhere": lambda: program(SHIFTED),
    "rows that begin elsewhere": lambda: fixed(SHIFTED, B=4),
    "rows of odd length": lambda: fixed(FLAT.replace("4", "3"), B=7),
    "padded": lambda: fixed(FLAT, B=4).mapped(layouts=(("a", Layout(padding=1)),)),
    "turned": lambda: fixed(FLAT, B=4).mapped(layouts=(("a", Layout("row")),)),
    "narrow elements": lambda: fixed(NARROW, B=4),
    "one for each thread": lambda: fixed(ONE_EACH, B=4),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_proved_is_copied_one_by_one(name):
    assert accesses(LEFT[name]()) == set()
