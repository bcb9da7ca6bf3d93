"""Messages about races speak of the program's variables, whatever other words the file has."""

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

PROGRAMS = {
    "of one": "meta_schedule meta_grid(2) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
    " meta_for (int u = 0; u < B; u++) x[i + u] = j; }",
    "blocks": "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[0] = i; }",
    "inner": "meta_schedule { meta_for (int i = 0; i < n; i++) { float t = i; meta_for (int u = 0; u < B; u++)"
    " { for (int t = 0; t < 2; t++) x[u + t] = t; } } }",
}
WORDS = "one i_block i_thread i_thread_1 u_1 t_1 t_2 one_1 j_block first zeroed half"


def message(body, before="", behind=""):
    text = f"{before}void f(int n, int B, float x[n])\n{{\n{body}\n}}\n{behind}"
    with pytest.raises(DiagnosticsError) as refused:
        check_races(parse(Source("f.mf", text)))
    return [one.message + one.reason for one in refused.value.diagnostics]


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_words_change_no_message(name):
    usual = message(PROGRAMS[name])
    assert not any(word in one for one in usual for word in ("one =", "_block =", "_thread =", "_1 ="))
    declared = "".join(f"int {word};\n" for word in ("one", "i_block", "i_thread", "first", "j_block"))
    shown = ", ".join(f"int {word}" for word in ("one", "i_block", "i_thread"))
    for before, behind in (
        (f"/* {WORDS} */\n", ""),
        ("", f"// {WORDS}\n"),
        (f'const char *said = "{WORDS}";\n', ""),
        (f"struct other {{\n{declared}}};\n", ""),
        ("", f"int other({shown})\n{{\n  return one + i_block * i_thread;\n}}\n"),
    ):
        assert message(PROGRAMS[name], before, behind) == usual


FILLED = "for (int k = 0; k < 2; k++) for (int l = 0; l < 2; l++) w[k][l] = x[i] + k * l; x[i] = w[2][1];"


@pytest.mark.parametrize(
    ("array", "filled", "told"),
    [
        ("float w[3][2];", FILLED, "`float w[3][2];`"),
        ("int w[40];", "w[i] = i; w[i + 1] = 2; x[i] = w[i + 2];", ""),
        ("int w[n];", "for (int k = 0; k < n; k++) w[k] = i; x[i] = w[n - 1];", ""),
    ],
    ids=["filled", "by the iteration", "of any size"],
)
def test_an_array_that_each_iteration_fills_is_declared_in_the_loop(array, filled, told):
    def program(before, inside):
        return f"{before} meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n; i++) {{ {inside} {filled} }} }}"

    text = "void f(int n, int B, float x[n])\n{\n%s\n}\n"
    with pytest.raises(DiagnosticsError) as refused:
        check_races(parse(Source("f.mf", text % program(array, ""))))
    found = refused.value.diagnostics
    assert all(("declare it in the loop" in one.way_out) == bool(told) and told in one.way_out for one in found)
    assert all(("`int w[64];`" in one.way_out) == ("w[n]" in array) for one in found)
    if told:
        assert check_races(parse(Source("f.mf", text % program("", array)))) == ()


def test_threads_that_meet_in_an_array_of_the_block_are_told():
    text = """void f(int n, int B, float x[n]) { meta_schedule { meta_for (int i = 0; i < n / B; i++) { float t[B];
    meta_for (int u = 0; u < B; u++) { t[u] = x[i * B + u]; x[i * B + u] = t[B - 1 - u]; } } } }"""
    with pytest.raises(DiagnosticsError) as refused:
        check_races(parse(Source("f.mf", text)))
    found = {one.message.split("`")[1].partition("[")[0]: one.way_out for one in refused.value.diagnostics}
    assert "two nests of thread loops" in found["t"]


def test_a_nest_of_threads_among_several_keeps_its_number_of_loops():
    text = """void f(int n, int B, int x[n]) { meta_schedule { meta_for (int i = 0; i < n / B; i++) { int t[B];
    meta_for (int u = 0; u < B; u++) t[u] = u; meta_for (int v = 0; v < B; v++) x[i] += t[v]; } } }"""
    with pytest.raises(DiagnosticsError) as refused:
        check_races(parse(Source("f.mf", text)))
    (one,) = refused.value.diagnostics
    assert "the loop over `v` touch the same element" in one.reason
    assert one.way_out == "make the update atomic: `meta_atomic x[i] += t[v];`"


def test_a_sum_of_floating_point_numbers_is_made_atomic_with_an_option():
    text = """void f(int n, int m, int B, const int c[n], const float v[n], float x[m]) { meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) x[c[i]] += v[i]; } }"""
    (one,) = check_races(parse(Source("f.mf", text)))
    way = "make the update atomic, and allow any order of additions (`--reassociate`): `meta_atomic x[c[i]] += v[i];`"
    assert one.way_out.startswith(f"if they may, {way}")
    allowed = text.replace("x[c[i]] +=", "meta_atomic x[c[i]] +=")
    assert check_races(parse(Source("f.mf", allowed), reassociate=True)) == ()
