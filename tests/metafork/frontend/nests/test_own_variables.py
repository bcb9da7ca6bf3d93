"""Variables that a function declares and a schedule uses as its own, and those that are not its own."""

import pytest

from metafork.ir import program as ir
from tests.metafork.frontend.marked import diagnostics_of, program_of

HEAD = "void f(int n, int m, int B, float a[n][m], float x[n], int y[n])\n{\n  int i, j, k = 7;\n  float s, t;\n"


def text_of(body, before="", behind="", clause="meta_block(B)"):
    return f"{HEAD}{before}\n  meta_schedule {clause} {{ meta_for (i = 0; i < n; i++) {{ {body} }} }}\n{behind}\n}}\n"


OWN = {
    "a counter and a sum": ("s = 0; for (j = 0; j < m; j++) s += a[i][j]; x[i] = s;", "", ""),
    "a counter that is read behind its loop": ("for (j = 0; j < m && a[i][j] > 0; j++) {} x[i] = j;", "", ""),
    "two counters of a loop": ("s = 0; for (j = 0, k = m - 1; j < k; j++, k--) s += a[i][j]; x[i] = s;", "", ""),
    "in both branches": ("if (i > 2) s = 1; else s = 2; x[i] = s;", "", ""),
    "in one branch": ("if (i > 2) { s = a[i][0]; x[i] = s + s; }", "", ""),
    "in a loop": ("for (j = 0; j < m; j++) { s = a[i][j]; t = s * s; a[i][j] = s + t; }", "", ""),
    "in do": ("j = 0; do { s = a[i][j]; j++; } while (s > 0 && j < m); x[i] = s;", "", ""),
    "one assigned by another": ("s = t = 2; x[i] = s + t;", "", ""),
    "used by other loops of the host": (
        "x[i] = 1;",
        "for (i = 0; i < n; i++) y[i] = i;",
        "for (i = 0; i < n; i++) y[i] += i; i = 3; y[0] = i;",
    ),
    "declared again by the host": (
        "x[i] = 1;",
        "",
        "{ int i = 4; y[0] = i; }\n  for (int i = 1; i < n; i++) y[i] = i;",
    ),
    "declared again in the schedule": ("for (int i = 0; i < m; i++) x[0] += i; x[i] = 1;", "", ""),
    "written before": ("k = 2 * i; y[i] = k;", "k = n; y[0] = k;", ""),
}


@pytest.mark.parametrize("how", OWN)
def test_is_declared_in_the_schedule(how):
    body, before, behind = OWN[how]
    program = program_of(text_of(body, before, behind))
    given = {one.name for one in (*program.parameters, *program.values)}
    assert given.isdisjoint({"i", "j", "k", "s", "t"})


NOT_OWN = {
    "returned": ("s = x[i]; x[i] = s;", "", "x[0] = s;", "after the schedule"),
    "the counter itself": ("x[i] = 1;", "", "y[0] = i;", "after the schedule"),
    "read behind under a condition": ("s = x[i]; x[i] = s;", "", "if (n > 3) s = 0; x[0] = s;", "after the schedule"),
    "read in the next turn of a loop": (
        "s = 2; x[i] = s;",
        "for (j = 0; j < 3; j++) { y[0] = s;",
        "}",
        "after the schedule",
    ),
    "a counter of the loop around": ("j = i; x[i] = j;", "for (j = 0; j < 3; j++) {", "}", "after the schedule"),
    "a sum": ("s += x[i]; x[i] = s;", "", "", "before it assigns it"),
    "assigned in one branch": ("if (x[i] > 0) s = 1; x[i] = s;", "", "", "before it assigns it"),
    "assigned in one of ?:": ("y[i] = x[i] > 0 ? (k = 1) : 2; y[i] += k;", "", "", "before it assigns it"),
    "assigned behind &&": ("if (x[i] > 0 && (k = 1)) y[i] = 2; y[i] += k;", "", "", "before it assigns it"),
    "assigned in a loop": ("for (j = 0; j < m; j++) s = a[i][j]; x[i] = s;", "", "", "before it assigns it"),
    "kept from iteration to iteration": ("if (i > 0) x[i] = s; s = i;", "", "", "before it assigns it"),
    "skipped": (
        "for (j = 0; j < m; j++) { if (a[i][j] > 0) continue; s = 1; } x[i] = s;",
        "",
        "",
        "before it assigns it",
    ),
    "in a type": ("k = 2; y[i] = k;", "", "int (*p)[k] = 0; y[0] = sizeof *p;", "after the schedule"),
    "in a size": ("k = 2; y[i] = k;", "", "y[0] = sizeof(int[k]);", "after the schedule"),
    "in a conversion": ("k = 2; y[i] = k;", "", "y[0] = ((int (*)[k])y)[1][0];", "after the schedule"),
    "in what sizeof does not do": ("k = 2; y[i] = k;", "", "y[1] = sizeof(k = 3); y[0] = k;", "after the schedule"),
    "stepped": ("y[i] = k++;", "", "", "before it assigns it"),
}


@pytest.mark.parametrize("how", NOT_OWN)
def test_is_refused_with_a_reason(how):
    body, before, behind, reason = NOT_OWN[how]
    found = diagnostics_of(text_of(body, before, behind))
    assert {one.code for one in found} == {"MF0304"}
    assert all(reason in f"{one.message}: {one.reason}" for one in found)


UNKNOWN = {
    "its address": "float *p = &s; *p = 3;",
    "goto": "again: if (y[0] == 5) { y[0] = s; goto again; }",
    "a macro that is not known": "SHOW_ALL;",
    "static": "static float u; u = 2;",
    "a pragma": "\n#pragma omp parallel for num_threads(s)\n",
}


@pytest.mark.parametrize("how", UNKNOWN)
def test_what_may_be_seen_elsewhere_is_not_its_own(how):
    name = "u" if how == "static" else "s"
    found = diagnostics_of(text_of(f"{name} = x[i]; x[i] = {name};", before=UNKNOWN[how]).replace("(i =", "(int i ="))
    assert "MF0304" in {one.code for one in found}


def declared(statements):
    return [one.name for one in ir.walk_statements(statements) if isinstance(one, ir.Declare)]


def test_each_phase_has_a_variable_of_its_own():
    text = (
        HEAD + "meta_schedule { meta_for (i = 0; i < n / B; i++) { float c[B];\n"
        "meta_for (k = 0; k < B; k++) { j = B - 1 - k; c[j] = x[i * B + k]; }\n"
        "meta_for (k = 0; k < B; k++) { j = k / 2; x[i * B + k] = c[j]; } } }\n}\n"
    )
    program = program_of(text)
    phases = [one for one in ir.walk_statements(program.body) if isinstance(one, ir.Phase)]
    assert [len(declared(phase.body)) for phase in phases] == [1, 1]
    assert not [one for one in program.body if isinstance(one, ir.Declare)]


def test_one_for_all_phases_belongs_to_the_block():
    text = (
        HEAD + "meta_schedule { meta_for (i = 0; i < n / B; i++) { j = i * B;\n"
        "meta_for (k = 0; k < B; k++) x[j + k] = 1;\n"
        "meta_for (k = 0; k < B; k++) x[j + k] *= 2; } }\n}\n"
    )
    program = program_of(text)
    assert declared(program.body) == ["j"]


def test_threads_do_not_write_what_the_block_reads():
    text = (
        HEAD + "meta_schedule { meta_for (i = 0; i < n / B; i++) { j = 0;\n"
        "meta_for (k = 0; k < B; k++) { j = k; x[i * B + k] = j; }\n"
        "if (j > 2) meta_for (k = 0; k < B; k++) x[i * B + k] *= 2; } }\n}\n"
    )
    assert {one.code for one in diagnostics_of(text)} == {"MF0109"}
