"""Arrays of which nobody knows how many elements they have: what is said of them, and what is not done with them."""

import json

import pytest

from metafork import frontend
from metafork.analysis.exactness import exact_unit
from metafork.analysis.memory.block_memory import block_memory
from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from tests.end_to_end.commands import METAFORK, run

SPMV = """void spmv(int n, int B, const int *ptr, const int *col, const double *val, const double *x, double *y)
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      double s = 0;
      for (int k = ptr[i]; k < ptr[i + 1]; k++)
        s += val[k] * x[col[k]];
      y[i] = s;
    }
  }
}
"""
TABLE = """void pick(int n, int m, int B, const int *at, const float (*table)[m], float *y)
{
  meta_schedule {
    meta_for (int b = 0; b < n; b++)
      meta_for (int u = 0; u < B; u++)
        for (int k = u; k < m; k += B) y[b * m + k] = table[at[b]][k];
  }
}
"""


def endless(unit):
    return [one.name for each in unit.schedules for one in each.program.arrays if one.endless]


def test_the_warning_has_the_pragma_as_far_as_it_is_known():
    col, val, x = parse(Source("spmv.mf", SPMV)).warnings
    assert [one.message for one in (col, val, x)] == [
        f"it is not known how many elements `{n}` has" for n in ("col", "val", "x")
    ]
    assert {(one.code, one.severity.value, one.span.line) for one in (col, val, x)} == {("MF0405", "warning", 1)}
    assert "in front of the function" in x.way_out
    assert "`#pragma metafork extents(x[?])`" in x.way_out
    assert "metafork_extent(x, bytes)" in x.way_out
    (table,) = (one for one in parse(Source("pick.mf", TABLE)).warnings if "`table`" in one.message)
    assert "`#pragma metafork extents(table[?][m])`" in table.way_out


@pytest.mark.parametrize(
    ("text", "pragma", "names"),
    [
        (SPMV, "extents(col[?], val[ ? ], x[?])", ["col", "val", "x"]),
        (SPMV, "extents(col[n * 4], val[n * 4], x[?])", ["x"]),
        (TABLE, "extents(table[?][m])", ["table"]),
    ],
)
def test_what_nobody_knows_can_be_said(text, pragma, names):
    unit = parse(Source("f.mf", f"#pragma metafork {pragma}\n{text}"))
    assert (endless(unit), unit.warnings) == (names, ())


def test_it_can_be_said_at_a_schedule():
    text = "void f(int n, int B, float *x, const int *at) { float *p = x;\nPRAGMA\nmeta_schedule meta_block(B) "
    text += "{ meta_for (int i = 0; i < n; i++) p[at[i]] = 1; } }"
    (warning,) = parse(Source("f.mf", text.replace("PRAGMA", ""))).warnings
    assert "in front of the schedule" in warning.way_out
    unit = parse(Source("f.mf", text.replace("PRAGMA", "#pragma metafork extents(p[?])")))
    assert (endless(unit), unit.warnings) == (["p"], ())


@pytest.mark.parametrize("extents", ["x[??]", "x[? + 1]", "x[]", "table[?]", "n[?]"])
def test_other_question_marks_are_refused(extents):
    text = TABLE if "table" in extents else SPMV
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("f.mf", f"#pragma metafork extents({extents})\n{text}"))
    assert {one.code for one in refused.value.diagnostics} == {"MF0321"}


@pytest.mark.parametrize("text", [SPMV, TABLE])
def test_a_leaf_reads_back(text):
    program = parse(Source("f.mf", text)).schedules[0].program
    again = frontend.parse(Source("f.mf", metafork_text(program))).schedules[0].program
    assert again.arrays == program.arrays
    assert again.body == program.body


def test_a_copy_may_not_leave_an_array():
    text = "void f(int n, int B, const int *on, float *x, float *y)\n{ meta_schedule cache(x, on) { "
    text += "meta_for (int b = 0; b < n; b++) meta_for (int u = 0; u < B; u++) "
    text += "if (on[b]) y[b * B + u] = x[b * B + u] + x[b * B + u + 1]; } }"
    for pragma, cached in (("x[n * B + 1], y[n * B]", ["on", "x"]), ("x[?], y[n * B]", ["on"])):
        unit = parse(Source("f.mf", f"#pragma metafork extents({pragma})\n{text}"))
        plan = block_memory(exact_unit(unit).schedules[0].program)
        assert [held.window.array.name for path in plan.paths for held in path.windows] == cached
        assert [(one.array, "how many elements" in one.reason) for one in plan.left_out] == [("x", True)] * (
            2 - len(cached)
        )


def test_files_say_what_the_host_is_to_tell():
    result = optimize(Source("spmv.mf", SPMV), counters=("shared_memory",), strategies=())
    files = rendered_files(result)
    assert "How many elements col, val, x of spmv have is not known" in " ".join(files["spmv.h"].split())
    assert "1099511627776" not in files["spmv.h"] + files["spmv_host.c"]
    report = result.to_report()
    assert "`spmv` does not know how many elements some arrays have (col, val, x)" in report
    assert "the host looks at all indices (loops `i_block`, `i_thread`, `k`) before each launch unless" in report
    assert [leaf["id"] for leaf in json.loads(result.to_json())["schedules"][0]["leaves"]] == [1]


def test_check_warns_and_goes_on(tmp_path):
    (tmp_path / "spmv.mf").write_text(SPMV)
    done = run(METAFORK, "check", "spmv.mf", "--diagnostics", "json", cwd=tmp_path)
    found = json.loads(done.stdout)["diagnostics"]
    assert (done.returncode, [one["code"] for one in found]) == (0, ["MF0405"] * 3)
