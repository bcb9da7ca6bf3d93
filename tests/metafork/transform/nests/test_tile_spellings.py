# ruff: noqa: E501 (a spelling a line)
"""A matrix product by tiles, in every spelling of its loops, bounds and extents, gets the same leaves."""

import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.memory.block_memory import block_memory
from metafork.strategies.caching import with_cached_arrays
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import program

T = Polynomial.symbol("T")
SQUARE = "int n, int T, const float A[n][n], const float B[n][n], float C[n][n]"
POINTS = [{"n": n, "T": t} for n, t in ((4, 2), (7, 3), (3, 1), (5, 4))]
WHOLE = [{"n": n, "T": t} for n, t in ((4, 2), (9, 3), (3, 1), (8, 4))]
UPDATE = "C[i * T + u][j * T + v] += A[i * T + u][k] * B[k][j * T + v];"
BY_TILE = "C[i * T + u][j * T + v] += A[i * T + u][kk * T + k] * B[kk * T + k][j * T + v];"


def nest(name, tiles, inner, signature=SQUARE, before="", extent="n / T", macros=""):
    return f"""{macros}
void {name}({signature})
{{
  {before}
  meta_schedule {{
    meta_for (int i = 0; i < {extent}; i++)
      meta_for (int j = 0; j < {extent}; j++)
        for ({tiles})
          meta_for (int u = 0; u < T; u++)
            meta_for (int v = 0; v < T; v++) {{
              {inner}
            }}
  }}
}}
"""


STEPS = "int k0 = 0; k0 < n; k0 += T"
TO_END = f"for (int k = k0; k < k0 + T && k < n; k++) {UPDATE}"
EXACT = "assert(n % T == 0);"
MIN = "#define min(a, b) ((a) < (b) ? (a) : (b))\n"
Q_SQUARE = "int q, int T, const float A[q * T][q * T], const float B[q * T][q * T], float C[q * T][q * T]"
LINEAR = "int n, int T, const float A[n * n], const float B[n * n], float C[n * n]"
LINEAR_UPDATE = "C[(i * T + u) * n + j * T + v] += A[(i * T + u) * n + k] * B[k * n + j * T + v];"
Q_LINEAR = "int q, int T, const float A[q * T * q * T], const float B[q * T * q * T], float C[q * T * q * T]"
Q_LINEAR_UPDATE = "C[(i * T + u) * (q * T) + j * T + v] += A[(i * T + u) * (q * T) + k] * B[k * (q * T) + j * T + v];"
UNSIGNED = SQUARE.replace("int n, int T", "unsigned n, unsigned T")
Q_POINTS = [{"q": q, "T": t} for q, t in ((2, 2), (3, 1), (1, 3))]

OF_THE_BLOCK = nest("of_the_block", STEPS, f"for (int k = k0; k < end; k++) {UPDATE}").replace(
    "k0 += T)", "k0 += T) {\n          int end = k0 + T; if (end > n) end = n;"
)
OF_THE_BLOCK = OF_THE_BLOCK.replace("            }\n", "            }\n        }\n")

SPELLINGS = {
    "of_the_block": (OF_THE_BLOCK, POINTS),
    "tiles": (nest("tiles", "int kk = 0; kk < n / T; kk++", f"for (int k = 0; k < T; k++) if (kk * T + k < n) {BY_TILE}"), POINTS),
    "steps": (nest("steps", STEPS, f"for (int k = k0; k < k0 + T; k++) if (k < n) {UPDATE}"), POINTS),
    "steps_both": (nest("steps_both", STEPS, TO_END), POINTS),
    "steps_exact": (nest("steps_exact", STEPS, f"for (int k = k0; k < k0 + T; k++) {UPDATE}", before=EXACT), WHOLE),
    "whole_tiles": (nest("whole_tiles", "int k0 = 0; k0 + T <= n; k0 += T", f"for (int k = k0; k < k0 + T; k++) {UPDATE}"), POINTS),
    "from_0": (nest("from_0", STEPS, f"for (int m = 0; m < T; m++) {{ int k = k0 + m; if (k < n) {UPDATE} }}"), POINTS),
    "assigned": (nest("assigned", "int k0 = 0; k0 < n; k0 = k0 + T", TO_END), POINTS),
    "from_the_right": (nest("from_the_right", "int k0 = 0; n > k0; k0 = T + k0", f"for (int k = k0; k0 + T > k && n > k; ++k) {UPDATE}"), POINTS),
    "at_most": (nest("at_most", "int k0 = 0; k0 <= n - 1; k0 += T", f"for (int k = k0; k <= k0 + T - 1 && k <= n - 1; k += 1) {UPDATE}"), POINTS),
    "unequal": (nest("unequal", "int k0 = 0; k0 != n; k0 += T", f"for (int k = k0; k != k0 + T; k++) {UPDATE}", before=EXACT), WHOLE),
    "products": (nest("products", "int kk = 0; kk * T < n; kk++", f"for (int k = kk * T; k < kk * T + T && k < n; k++) {UPDATE}"), POINTS),
    "ceiling": (nest("ceiling", "int kk = 0; kk < (n + T - 1) / T; kk++", f"for (int k = kk * T; k < (kk + 1) * T && k < n; k++) {UPDATE}"), POINTS),
    "macro": (nest("macro", STEPS, f"for (int k = k0; k < min(k0 + T, n); k++) {UPDATE}", macros=MIN), POINTS),
    "least": (nest("least", STEPS, f"for (int k = 0; k < (T < n - k0 ? T : n - k0); k++) {UPDATE.replace('[k]', '[k0 + k]')}"), POINTS),
    "local": (nest("local", STEPS, f"int end = k0 + T > n ? n : k0 + T; for (int k = k0; k < end; k++) {UPDATE}"), POINTS),
    "corrected": (nest("corrected", STEPS, f"int end = k0 + T; if (end > n) end = n; for (int k = k0; k < end; k++) {UPDATE}"), POINTS),
    "downward": (nest("downward", "int kk = n / T - 1; kk >= 0; kk--", f"for (int k = 0; k < T; k++) {BY_TILE}"), POINTS),
    "steps_down": (nest("steps_down", "int k0 = n - T; k0 >= 0; k0 -= T", f"for (int k = k0 + T - 1; k >= k0; k--) {UPDATE}"), POINTS),
    "from_the_end": (nest("from_the_end", "int k0 = n; k0 > 0; k0 -= T", f"for (int m = 1; m <= T && m <= k0; m++) {UPDATE.replace('[k]', '[k0 - m]')}"), POINTS),
    "unsigned_steps": (nest("unsigned_steps", "unsigned k0 = 0; k0 < n; k0 += T", TO_END.replace("int k", "unsigned k")), POINTS),
    "long_steps": (nest("long_steps", "long long k0 = 0; k0 < n; k0 += T", TO_END.replace("int k", "long long k")), POINTS),
    "size_steps": (nest("size_steps", "size_t k0 = 0; k0 < n; k0 += T", TO_END.replace("int k", "size_t k"), macros="#include <stddef.h>\n"), POINTS),
    "extents": (nest("extents", "int kk = 0; kk < q; kk++", f"for (int k = 0; k < T; k++) {BY_TILE}", Q_SQUARE, extent="q"), Q_POINTS),
    "extents_steps": (nest("extents_steps", "int k0 = 0; k0 < q * T; k0 += T", f"for (int k = k0; k < k0 + T; k++) {UPDATE}", Q_SQUARE, extent="q"), Q_POINTS),
    "linear": (nest("linear", STEPS, TO_END.replace(UPDATE, LINEAR_UPDATE), LINEAR), POINTS),
    "linear_extents": (nest("linear_extents", "int k0 = 0; k0 < q * T; k0 += T", f"for (int k = k0; k < k0 + T; k++) {Q_LINEAR_UPDATE}", Q_LINEAR, extent="q"), Q_POINTS),
    "guarded": (nest("guarded", STEPS, f"if (i * T + u < n && j * T + v < n) {TO_END}", extent="(n + T - 1) / T"), POINTS),
    "left": (nest("left", STEPS, f"for (int k = k0; k < k0 + T; k++) {{ if (k >= n) break; {UPDATE} }}"), POINTS),
    "rows": (nest("rows", STEPS, f"int r = i * T + u, c = j * T + v; {TO_END.replace('i * T + u', 'r').replace('j * T + v', 'c')}"), POINTS),
    "all_unsigned": (nest("all_unsigned", "unsigned k0 = 0; k0 < n; k0 += T", TO_END.replace("int k", "unsigned k"), UNSIGNED), POINTS),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_caches_a_and_b_and_keeps_c_in_a_register(name):
    chosen = with_cached_arrays(program(SPELLINGS[name][0])).program
    assert chosen.mapping.cached == ("A", "B")
    memory = block_memory(chosen)
    assert memory.words == 2 * T * T
    for path in memory.paths:
        assert [window.array.name for window in path.private] == ["C"]
        assert path.private[0].count == 1


@pytest.mark.slow
def test_every_spelling_computes_the_product(tmp_path):
    assert run([Case(text, points) for text, points in SPELLINGS.values()], tmp_path) == {}


OTHER_LOOPS = """
void {name}(int n, int s, int B, const float x[n + 8], float y[n])
{{
  meta_schedule cache(x) {{
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++) {{
        int p = i * B + u, q = n;
        float t = 0;
        {body}
        y[p] = t;
      }}
  }}
}}
"""


@pytest.mark.parametrize("strided", [False, True])
def test_loops_with_steps_and_loops_whose_bound_changes(strided, tmp_path):
    bodies = {
        "second": "for (int k = 0; k < s; k += 2) if (p + k < n) t += x[p + k];",
        "from_1": "for (int k = 1; k <= s; k += 3) t = 2 * t + x[p + k];",
        "apart": "for (int k = 1; k < 4; k++) t += x[p + k]; for (int k = 3; k < 6; k++) t = 3 * t - x[p + k];",
        "changing": "q = 2; for (int k = 0; k < q; k++) { if (k < 3) q = q + 1; t += x[p + k]; }",
        "by_threads": "for (int k = u; k < n; k += B) t = 2 * t + x[k];",
        "by_threads_down": "for (int k = n - 1 - u; k >= 0; k -= B) t = 2 * t + x[k];",
        "until": "for (int k = 0; k < s && x[p] > 0; k++) t += x[p + k];",
    }
    cases = []
    for name, body in bodies.items():
        case = Case(OTHER_LOOPS.format(name=name, body=body), [{"n": 7, "s": 3, "B": 3}, {"n": 4, "s": 1, "B": 2}])
        chosen = with_cached_arrays(program(case.text)).program
        cases.append(replace(case, program=replace(chosen, striding=2) if strided else chosen))
    assert run(cases, tmp_path) == {}


def test_a_loop_of_threads_touches_as_much_as_all_of_them():
    text = OTHER_LOOPS.format(name="whole", body="for (int k = u; k < s; k += B) t += x[k];")
    chosen = with_cached_arrays(program(text)).program
    assert block_memory(chosen).words == Polynomial.symbol("s")
