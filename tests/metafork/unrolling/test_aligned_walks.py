"""Loops that read four elements of a thread's own row by one access: rows that begin at any element, of any length."""

import re

import pytest

from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import Case, grid, run, wrong
from tests.metafork.programs import program

AROUND = """
void NAME(int n, int B, int s, const ELEMENT x[17 * n + s * n], const int at[17 * n], const ELEMENT w[8], ELEMENT y[n])
{
  int blocks = (n + B - 1) / B;
  meta_schedule {
    meta_for (int b = 0; b < blocks; b++) meta_for (int u = 0; u < B; u++) {
      int i = b * B + u;
      if (i < n) {
        ELEMENT sum = 1;
        BODY
        y[i] = sum;
      }
    }
  }
}"""
BODIES = {
    "a_chunk_each": "for (int k = 0; k < s; k++) sum += x[i * s + k];",
    "rows_anywhere": "for (int k = 3 * i; k < 3 * i + i % 14; k++) sum = sum / 2 + x[k];",
    "to_the_last": "for (int k = 3 * i; k <= 3 * i + i % 14 - 1; k++) sum = sum / 2 + x[k];",
    "gathered": "for (int k = 3 * i; k < 3 * i + i % 14; k++) sum += x[k] * w[at[k] & 7];",
    "below_zero": "for (int k = -5; k < s - 5; k++) { int p = k + 5; sum = sum / 2 + x[i * s + p]; }",
    "on_condition": "for (int k = i; k < i + s; k++) if (x[k] > 2) sum -= x[k]; else sum += x[k] / 2;",
    "a_loop_around": "for (int t = 0; t < 3; t++) for (int k = t; k < s; k++) sum = sum / 2 + x[i * s + k];",
    "neighbours_too": "for (int k = i; k < i + s; k++) sum = sum / 2 + (x[k + 2] - x[k]);",
    "ends_before_it_begins": "for (int k = s + i; k < 9 - i; k++) sum += x[k];",
}
OTHER = {
    "the same in all threads": "for (int k = 0; k < s; k++) sum += x[k];",
    "far from one another": "for (int k = 0; k < s; k++) sum += x[k * n + i];",
    "of another": "for (int k = 0; k < s; k++) { int c = at[k]; sum += x[c + k]; }",
    "two of its rows": "for (int k = 0; k < s; k++) sum += x[i * s + k] * x[(n - i) * s + k];",
    "of few iterations": "for (int k = 0; k < 8; k++) sum += x[i * 8 + k];",
    "on condition alone": "for (int k = i; k < i + s; k++) if (sum > 2) sum -= x[k];",
    "stored in between": "for (int k = i; k < i + 1; k++) { sum += y[k]; y[k] = sum; }",
    "up to an end that moves": "for (int k = i; k < i + s - k; k++) sum += x[k];",
    "with an early end": "for (int k = i; k < i + s; k++) { if (x[k] > 2) break; sum += x[k]; }",
}


def text_of(body, name="f", element="float"):
    return AROUND.replace("BODY", body).replace("NAME", name).replace("ELEMENT", element)


def with_vectors(text):
    return program(text).mapped(wide=True, cached=())


def together(text):
    """Return the arrays of which the kernel reads several elements by one access, and how many."""
    kernel = kernel_text(lower(with_vectors(text), "k"))
    found = re.findall(r"metafork_load\(&(\w+)([^;]*);", kernel)
    return {(name, arguments.count(",")) for name, arguments in found}


def test_four_elements_go_together_wherever_rows_begin(tmp_path):
    made = []
    for name, body in BODIES.items():
        for element, lanes in (("float", 4), ("double", 2)):
            text = text_of(body, f"{name}_{element}", element)
            others = {"gathered": {("at", 4)}, "neighbours_too": {("x", 2)}}  # behind the vector: the half of one
            assert together(text) == {("x", lanes)} | others.get(name, set()), name
            points = grid(n=[1, 13, 33], B=[4, 32], s=[0, 1, 3, 4, 7, 8, 13])
            made.append(Case(text, points, program=with_vectors(text)))
    assert run(made, tmp_path) == {}
    assert wrong(made, tmp_path, grid_limit=1) == {}


@pytest.mark.parametrize("name", OTHER)
def test_other_elements_are_read_one_by_one(name):
    assert together(text_of(OTHER[name])) == set()
