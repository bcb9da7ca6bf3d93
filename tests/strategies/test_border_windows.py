# ruff: noqa: E501 (a body a line)
"""Windows whose indices are clamped at the border of an array: by macros, conditions, locals and loops."""

import pytest

from metafork.analysis.memory.block_memory import block_memory
from metafork.strategies.caching import with_cached_arrays
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import program

MACROS = "#define max(a, b) ((a) > (b) ? (a) : (b))\n#define min(a, b) ((a) < (b) ? (a) : (b))\n"


def line(name, body, index="int"):
    return f"""{MACROS}
void {name}(int n, int B, const float x[n], float y[n])
{{
  meta_schedule cache(x) {{
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++) {{
        {index} p = i * B + u;
        {body}
      }}
  }}
}}
"""


PLANE = f"""{MACROS}
void plane(int n, int B, const float x[n][n], float y[n][n])
{{
  meta_schedule {{
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < n / B; j++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {{
            int p = i * B + u, q = j * B + v;
            float s = 0;
            for (int r = -1; r <= 1; r++)
              for (int t = -1; t <= 1; t++)
                s += x[max(min(p, n - 1), 0)][q];
            y[p][q] = s + x[p][q > 0 ? q - 1 : 0] + x[p][q + 1 < n ? q + 1 : n - 1] + x[p][q];
          }}
  }}
}}
"""
MEAN = "y[p] = (x[l] + x[p] + x[r]) / 3;"
POINTS = [{"n": n, "B": b} for n, b in ((6, 3), (7, 2), (1, 1), (5, 5), (4, 1))]
BORDERS = {
    "macros": (line("macros", "y[p] = x[max(p - 1, 0)] + x[p] + x[min(p + 1, n - 1)];"), "B + 2"),
    "choices": (line("choices", f"int l = p > 0 ? p - 1 : 0, r = p >= n - 1 ? n - 1 : p + 1; {MEAN}"), "B + 2"),
    "corrected": (line("corrected", f"int l = p - 1, r = p + 1; if (l < 0) l = 0; if (r >= n) r = n - 1; {MEAN}"), "B + 2"),
    "wide": (line("wide", f"long long l = p - 1 < 0 ? 0 : p - 1, r = p + 1 < n ? p + 1 : n - 1; {MEAN}", "long long"), "B + 2"),
    "one_side": (line("one_side", "y[p] = x[p] - x[max(p - 4, 0)];"), "B + 4"),
    "loop": (line("loop", "float s = 0; for (int k = max(p - 2, 0); k < min(p + 3, n); k++) s += x[k]; y[p] = s;"), "B + 4"),
    "loop_down": (line("loop_down", "float s = 0; for (int k = min(p + 2, n - 1); k >= max(p - 2, 0); k--) s += x[k]; y[p] = s;"), "B + 4"),
    "every_second": (line("every_second", "float s = 0; for (int k = max(p - 3, 0); k <= p; k += 2) s += x[k]; y[p] = s;"), "B + 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", BORDERS)
def test_a_clamped_window_is_as_large_as_one_that_is_not(name):
    text, words = BORDERS[name]
    chosen = with_cached_arrays(program(text)).program
    assert chosen.mapping.cached == ("x",)
    assert str(block_memory(chosen).words) == words


def test_an_index_that_may_lie_far_away_is_not_followed():
    far = program(line("far", "y[p] = x[p] + x[max(p - 100, 0)];")).mapped(cached=("x",))
    assert [one.array for one in block_memory(far).left_out] == ["x"]


def test_clamped_windows_hold_what_the_program_reads(tmp_path):
    cases = [Case(text, POINTS, cached=("x",)) for text, _ in BORDERS.values()]
    assert run([*cases, Case(PLANE, POINTS, cached=("x",))], tmp_path) == {}
