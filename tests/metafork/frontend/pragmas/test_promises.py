import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.optimize import optimize
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

SCATTER = """void scatter(int n, int B, const int q[n], const float a[n], float b[n], float c[n])
{
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        FIRST
        b[q[p]] = a[p];
        SECOND
        c[q[p]] = b[q[p] / 2];
      }
  }
}
"""
B = "#pragma metafork disjoint(b)"
BOTH = "#pragma metafork disjoint(b, c)"


def text_of(first="", second=""):
    return SCATTER.replace("FIRST", first).replace("SECOND", second)


def warned(text):
    return {warning.message.split(" of `")[1].split("`")[0] for warning in check_races(parse(Source("f.mf", text)))}


def test_a_promise_is_about_one_array_in_one_statement():
    assert warned(text_of()) == {"b", "c"}
    assert warned(text_of(first=B)) == {"c"}  # every pair of accesses to b has one that is vouched for
    assert warned(text_of(second="#pragma metafork disjoint(c)")) == {"b"}
    assert warned(text_of(second=B)) == {"b", "c"}  # writes of b meet each other, for all that is known
    assert warned(text_of(first=B, second=BOTH)) == set()


def test_strict_accepts_a_promise():
    assert check_races(parse(Source("f.mf", text_of(B, BOTH))), strict=True) == ()
    with pytest.raises(DiagnosticsError):
        check_races(parse(Source("f.mf", text_of(B))), strict=True)


def test_a_race_that_is_found_stays_an_error():
    text = text_of(B, BOTH).replace("b[q[p]] = a[p];", "b[i] = a[p];")
    with pytest.raises(DiagnosticsError) as error:
        check_races(parse(Source("f.mf", text)))
    assert {one.code for one in error.value.diagnostics} == {"MF0402"}


@pytest.mark.parametrize(
    ("pragma", "reason"),
    [
        ("#pragma metafork disjoint(a, z)", "no array `z`"),
        ("#pragma metafork disjoint(c)", "no array `c`"),
        ("#pragma metafork disjoint", "names no arrays"),
        ("#pragma metafork disjoint(b", "names no arrays"),
        ("#pragma metafork disjoint()", "names no arrays"),
    ],
)
def test_a_promise_about_nothing_is_refused(pragma, reason):
    text = text_of(first=pragma)
    with pytest.raises(DiagnosticsError) as error:
        parse(Source("f.mf", text))
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "MF0322"
    assert reason in diagnostic.message
    assert text[diagnostic.span.start :].startswith("#pragma metafork disjoint")


def test_a_promise_stands_before_an_assignment_or_a_declaration():
    text = text_of().replace("meta_for (int u", f"{B}\n meta_for (int u")
    with pytest.raises(DiagnosticsError) as error:
        parse(Source("f.mf", text))
    assert [one.code for one in error.value.diagnostics] == ["MF0322"]


def test_the_report_lists_promises():
    report = optimize(text_of(B, BOTH), counters=["threads_per_block"], strategies=[]).to_report()
    assert "- line 9: accesses to `b` meet no other iteration's (promised in line 8)" in report
    assert "- line 11: accesses to `c` meet no other iteration's (promised in line 10)" in report
    assert "Taken on trust" not in optimize(text_of(), counters=["threads_per_block"], strategies=[]).to_report()


def test_a_promise_may_be_about_the_body_of_loops_over_elements():
    text = (
        "void f(int n, int B, const int at[n], float a[n]) { meta_schedule meta_block(B)\n"
        "meta_for (int i = 0; i < n; i++)\nPRAGMA\na[at[i]] = i; }"
    )
    assert check_races(parse(Source("f.mf", text.replace("PRAGMA", "#pragma metafork disjoint(a)"))), strict=True) == ()
    with pytest.raises(DiagnosticsError):
        check_races(parse(Source("f.mf", text.replace("PRAGMA", ""))), strict=True)
