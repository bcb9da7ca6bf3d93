"""Unroll and jam: which loops run several iterations together, and that kernels then compute what the program means."""

import pytest
from msgspec.structs import replace

from metafork.ir.marks import jammed_loops, unmarked
from metafork.ir.program import For, walk_statements
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import jammed, program

TEXT = """
void {name}(int n, int m, int B, int s, int e, const float a[n + m], const float b[m][n], float c[n], float d[n]) {{
  int dim = n / (B * s);
  meta_schedule {cache} {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int u = 0; u < B; u++) {{
        {body}
      }}
  }}
}}"""
PLACE = "c[(i * s + w) * B + u]"
OF_B = "b[z][(i * s + w) * B + u]"
W = "for (int w = 0; w < s; w++)"
Z = "for (int z = 0; z < m; z++)"

JAMMED = {
    "a_row": f"{W} {Z} {PLACE} += a[z] * {OF_B};",
    "with_a_scalar": f"{W} {{ float t = {PLACE}; {Z} t += a[z] * {OF_B}; {PLACE} = t; }}",
    "two_loops_inside": f"{W} {{ float t = 0.0f; {Z} t += a[z]; {Z} {{ float t2 = t * a[z + 1]; {PLACE} -= t2; }} }}",
    "a_bound_of_its_own": f"{W} for (int z = 0; z < w + 1; z++) {PLACE} += a[z];",
    "a_condition": f"{W} {Z} {{ float t = a[z]; if (z < e) t = t + 1.0f; {PLACE} += t; }}",
    "a_condition_of_its_own": f"{W} {Z} {{ float t = a[z]; if (w < e) {{ float r = t; t = r + r; }} {PLACE} += t; }}",
    "a_condition_in_memory": f"{W} {Z} if ({PLACE} < 2.0f) {PLACE} += a[z];",
    "a_name_twice": f"{W} {{ {Z} {{ float t = a[z]; {PLACE} += t; }} {{ float t = 3.0f; {PLACE} *= t; }} }}",
    "two_arrays": f"{W} {Z} {{ {PLACE} += a[z]; d[(i * s + w) * B + u] -= a[z + 1]; }}",
    "constant": "for (int w = 0; w < 3; w++) for (int z = 0; z < m; z++) c[(i * 3 + w) * B + u] += a[z];",
    "many": "for (int w = 0; w < 10; w++) for (int z = 0; z < m; z++) c[(i * 10 + w) * B + u] += a[z];",
    "one_by_one": f"{W} for (int y = 0; y < 2; y++) {Z} if (y < e) {PLACE} += a[z];",
}
LEFT = {
    "an_element_twice": f"{W} {Z} c[(i * s + w / 2) * B + u] += a[z];",
    "the_next_one": f"{W} {Z} {{ {PLACE} += a[z]; c[(i * s + (w + 1) % s) * B + u] += 1.0f; }}",
    "one_element": f"{W} {Z} c[i * s * B + u] += a[z] * w;",
    "carried": f"float t = 0.0f; {W} {Z} {{ t += a[z]; {PLACE} += t; }}",
    "nothing_shared": f"{W} {Z} {PLACE} += {OF_B};",
    "left_early": f"{W} {Z} {{ if (z > e) break; {PLACE} += a[z]; }}",
    "from_one_on": f"for (int w = 1; w < s; w++) {Z} {PLACE} += a[z];",
    "inner_digits_overlap": f"{W} for (int z = 0; z < 2; z++) c[(i * s + w) * B + u + z] += a[z];",
}
POINTS = [
    {"n": n, "m": m, "B": B, "s": s, "e": e}
    for n, m, B, s, e in ((12, 3, 2, 6, 1), (20, 1, 1, 10, 3), (21, 4, 7, 3, 0), (30, 2, 3, 1, 2), (40, 5, 2, 9, 4))
]


def case(name, body, cache="cache()", most=4):
    text = TEXT.format(name=name, body=body, cache=cache)
    for count in ("3", "10"):
        if f"w < {count};" in body:
            text = text.replace("(B * s)", f"(B * {count})").replace("int s, ", "")
    points = [{key: value for key, value in point.items() if f"int {key}," in text} for point in POINTS]
    return Case(text, points, program=jammed(program(text), most), label=f"{name} {cache} {most}")


def loops(one):
    return sum(isinstance(stmt, For) for stmt in walk_statements(lower(one, "k").body))


@pytest.mark.parametrize("name", JAMMED)
def test_independent_iterations_that_share_loads_run_together(name):
    assert jammed_loops(case(name, JAMMED[name]).program)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_proved_independent_or_shares_nothing_stays(name):
    assert not jammed_loops(case(name, LEFT[name]).program)


def test_a_loop_of_few_iterations_goes_away():
    one = case("constant", JAMMED["constant"]).program
    assert loops(one) == loops(replace(one, body=unmarked(one.body))) - 1


def test_nested_loops_make_at_most_sixteen_results():
    text = (
        "for (int x = 0; x < s; x++) for (int y = 0; y < s; y++) for (int w = 0; w < s; w++) "
        "for (int z = 0; z < m; z++) c[x][y][w] += a[z];"
    )
    whole = TEXT.format(name="f", cache="cache()", body=text).replace("float c[n]", "float c[n][n][n]")
    one = program(whole.replace("meta_for (int u = 0; u < B; u++)", "meta_for (int u = 0; u < 1; u++)"))
    # Each loop that is jammed stands twice, and so do those in it: w and y by 4, x too by 2.
    assert [loops(each) for each in (one, jammed(one, 4), jammed(one, 2))] == [5, 2 + 10, 1 + 22]


@pytest.mark.slow
def test_kernels_with_tiles_compute_what_the_program_means(tmp_path):
    cases = [
        replace(case(f"{name}_{most}", body, most=most), _parsed=[])
        for name, body in JAMMED.items()
        for most in (2, 4, 5)
    ]
    cases += [case(f"{name}_cached", JAMMED[name], "cache(a)") for name in ("a_row", "two_loops_inside", "many")]
    assert run(cases, tmp_path) == {}
