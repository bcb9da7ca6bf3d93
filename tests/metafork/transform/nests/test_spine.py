import pytest
from msgspec.structs import replace

from metafork.ir.hidden_names import shadowed_name
from metafork.ir.program import For
from metafork.printing.statements import statements
from metafork.transform.nests.spine import spine_of
from tests.metafork.programs import program


def nest(body, before=""):
    return f"""
    void f(int N, int s, int B, float a[8 * N], float b[8 * N], const int lim[N]) {{
      int d = N / B;
      meta_schedule cache() {{
        meta_for (int i = 0; i < d; i++) {{
          {before}
          meta_for (int j = 0; j < B; j++) {{ {body} }}
        }}
      }}
    }}"""


def names(loops):
    return [loop.init.name for loop in loops]


@pytest.mark.parametrize(
    ("body", "loops", "uncounted"),
    [
        ("for (int k = 0; k < s; k++) for (int l = 0; l < k; l++) a[k] = b[l];", ["k", "l"], []),
        ("int q = j; if (q < s) { int r = q; for (int k = 0; k < s; k++) a[r] = b[k]; }", ["k"], []),
        ("if (j < s) { } else { for (int k = 0; k < s; k++) a[j] = b[k]; }", ["k"], []),
        ("for (int k = 1; k < s; k++) for (int l = 0; l < s; l += 2) a[k] = b[l];", [], ["k", "l"]),
        # Bounds that are read from what is only read are as good as numbers; those that change are not.
        ("for (int k = 0; k < lim[j]; k++) a[k] = 1;", ["k"], []),
        ("for (int k = 0; k < a[j]; k++) a[k] = 1;", [], []),
        ("for (int k = (int)a[j]; k < s; k++) a[k] = 1;", [], []),
        ("if (a[j] > 1) for (int k = 0; k < s; k++) a[k] = 1;", [], []),
        # A loop that is left, or that changes its own variable, and two loops side by side.
        ("for (int k = 0; k < s; k++) { if (k > j) break; a[k] = 1; }", [], []),
        ("for (int k = 0; k < s; k++) { a[k] = 1; if (k > j) k = k + 1; }", [], []),
        ("for (int k = 0; k < s; k++) a[k] = 1; for (int l = 0; l < s; l++) b[l] = 1;", [], []),
        ("if (j < s) { for (int k = 0; k < s; k++) a[k] = 1; } else { b[j] = 1; }", [], []),
    ],
)
def test_loops_that_hold_all_the_work_of_a_block(body, loops, uncounted):
    found = spine_of(program(nest(body)))
    assert (names(found.loops), names(found.uncounted)) == (loops, uncounted)


def test_what_the_spine_holds():
    text = nest("int q = j; for (int k = 0; k < s; k++) { int r = k + q; a[r] = 1; b[r] = 2; }", "int g = i + 1;")
    spine = spine_of(program(text))
    assert [stmt.name for stmt in spine.declarations] == ["g", "q"]
    assert statements(spine.innermost, 0) == ["int r = k + q;", "a[r] = 1;", "b[r] = 2;"]
    assert statements(spine.work, 0) == ["a[r] = 1;", "b[r] = 2;"]
    assert not any(isinstance(stmt, For) for stmt in spine.work)


@pytest.mark.parametrize("name", ["N", "d", "i", "j", "a", "q"])
def test_a_local_that_hides_another_name_is_found(name):
    text = nest("int q = 1; for (int k = 0; k < s; k++) { int w = k; b[0] = a[k]; }")
    subject = program(text)
    assert shadowed_name(subject) is None
    # Of what is read, names are told apart.
    (phase,) = subject.body
    declared, loop = phase.body
    hiding = replace(loop, body=(replace(loop.body[0], name=name), *loop.body[1:]))
    found = shadowed_name(replace(subject, body=(replace(phase, body=(declared, hiding)),)))
    assert found is not None
    assert found[0] == name
    assert text[found[1].start : found[1].end].startswith("w = k")


def test_names_of_scopes_side_by_side_hide_nothing():
    text = nest("if (j) { int q = 1; b[0] = q; } else { int q = 2; b[1] = q; } int q = 3; b[2] = q;")
    assert shadowed_name(program(text)) is None
