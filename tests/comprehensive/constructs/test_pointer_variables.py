"""Pointers of the host that are no parameters: arrays in each schedule, of as many elements as it touches."""

import pytest

from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression

LOOP = "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) { BODY } } "


def loop(body):
    return LOOP.replace("BODY", body)


def unit_of(body, before=""):
    return parse(
        Source("f.mf", f"{before}\nvoid f(int n, int m, int B, float *x, float *y, const int *at)\n{{ {body} }}\n")
    )


EXTENTS = {
    "float *p = x; " + loop("p[i] = 1;"): {"p": "n"},
    "float *p = &x[m]; " + loop("p[2 * i + 1] = 1;"): {"p": "2 * n"},
    "float *p = x, *q = y; " + loop("p[i] = q[i + m];").replace("meta_s", "assert(m >= 0); meta_s"): {
        "p": "n",
        "q": "m + n",
    },
    "const float *p = m ? x : y; " + loop("y[i] = p[0];"): {"p": "1", "y": "n"},
    "int k = n / 2; float *p = x + k; " + loop("p[i] = k;").replace("i < n", "i < k"): {"p": "k"},
    "float (*p)[8] = (float (*)[8])x; " + loop("p[i][3] = 1;"): {"p": "n"},
    "float *p = x;\n#pragma metafork extents(p[m])\n" + loop("y[i] = p[at[i]];"): {"p": "m", "y": "n", "at": "n"},
    "float *p = x;\n#pragma metafork extents(p[m])\n{ m++; " + loop("y[i] = p[at[i]];") + "}": {"p": "m"},
    "struct { float u, v; } *p = 0; " + loop("p[i].v = 1;"): {"p": "n"},
    "long k = m, h = k * n;\n#pragma metafork extents(x[h + 1])\n" + loop("x[at[i]] = 1;"): {"x": "(long)m * n + 1"},
}


@pytest.mark.parametrize("body", EXTENTS)
def test_a_pointer_has_as_many_elements_as_a_schedule_touches(body):
    program = unit_of(body).schedules[0].program
    said = {one.name: expression(one.extents[0]) for one in program.arrays}
    assert said.items() >= EXTENTS[body].items()


def test_each_schedule_has_extents_of_its_own():
    text = "float *p = x; " + loop("p[i] = 1;") + "p = y; " + loop("p[3 * i] += x[i];")
    first, second = unit_of(text).schedules
    assert [expression(one.extents[0]) for one in first.program.arrays] == ["n"]
    assert {one.name: expression(one.extents[0]) for one in second.program.arrays} == {"p": "3 * n - 2", "x": "n"}


def test_a_parameter_and_a_variable_may_have_one_name():
    text = "float *p = x; { float *x = p; " + loop("x[i] = 1;") + "} " + loop("x[2 * i] = 2;")
    first, second = unit_of(text).schedules
    assert [expression(one.extents[0]) for one in first.program.arrays] == ["n"]
    assert [expression(one.extents[0]) for one in second.program.arrays] == ["2 * n - 1"]


def test_a_sum_is_two_programs_and_one_schedule():
    body = "float s = 0, *p = x, *q = y; " + loop("s += p[i];").replace("meta_for", "meta_reduction(+: s) meta_for")
    body += loop("q[2 * i] = s;")
    source = Source("f.mf", f"void f(int n, int B, float *x, float *y)\n{{ {body} }}\n")
    schedules = parse(source, reassociate=True).schedules
    said = {one.name: expression(one.extents[0]) for each in schedules for one in each.program.arrays}
    assert (said["p"], said["q"]) == ("n", "2 * n - 1")


def test_functions_that_a_schedule_calls_reach_pointers_of_the_file():
    before = "static float *table;\nstatic float of(int k) { return table[k]; }"
    program = unit_of(loop("x[i] = of(i);"), before).schedules[0].program
    assert {one.name for one in program.arrays} == {"table", "x"}


NOT_KNOWN = {
    "float *p = x + 3; " + loop("y[i] = p[i - 1];"): "may be below 0",
    "float *p = x + 3; " + loop("y[i] = p[i - m];"): "may be below 0",
    loop("y[i] = x[i - 2];"): "may be below 0",
    "float *p = x; " + loop("y[i] = p[at[i]];"): "greatest index of `p` is not known",
    "float *p = x; " + loop("y[i] = p[at[i]];") + "\n#pragma metafork extents(p[m])\n": "greatest index of `p`",
}


@pytest.mark.parametrize("body", NOT_KNOWN)
def test_what_is_not_known_of_a_pointer_is_said(body):
    (warning,) = unit_of(body).warnings
    assert warning.code == "MF0405"
    assert NOT_KNOWN[body] in warning.reason


REFUSED = {
    "float **p = &x; " + loop("p[i][0] = 1; p[0] = p[1];"): "`p` is a table of pointers",
    "typedef struct { float u, v; } row[3]; row *p = 0; " + loop("p[i].u = 1;"): "`p` is a pointer",
    "float (*p)[m] = (float (*)[m])x; m++; " + loop("p[i][0] = 1;"): "`p` is a pointer",
    "float *p = x;\n#pragma metafork extents(q[n])\n" + loop("p[i] = 1;"): "`q` does not point to elements",
    "float *p = x, q = 1;\n#pragma metafork extents(q[n])\n" + loop("p[i] = q;"): "`q` does not point to elements",
    "float *p = x;\n#pragma metafork extents(p[n][m])\n" + loop("p[i] = 1;"): "`p` needs 1 extents",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_else_a_pointer_is_is_refused(body):
    with pytest.raises(DiagnosticsError) as error:
        unit_of(body)
    assert any(REFUSED[body] in f"{one.message} {one.reason}" for one in error.value.diagnostics)


FOLLOWED = {
    "float *p = x; " + loop("p[i] = 1;"): True,
    "float *p = malloc(n * sizeof *p); " + loop("p[i] = 1;") + "free(p);": True,
    "float *p, *q = y; p = m ? q : &x[m]; " + loop("p[i] = 1;") + "q = p; p = x;": True,
    "float own[n]; float *p = own; " + loop("p[i] = 1;"): True,
    "float sum, *p = &sum; " + loop("p[0] = 1;").replace("i < n", "i < 1"): False,
    "struct { float v[8]; } s; float *p = s.v; " + loop("p[i] = 1;"): False,
    "float *p = x; set(&p); " + loop("p[i] = 1;"): False,
    "float *p, *q = (float[]){1, 2}; p = q; " + loop("p[i] = 1;"): False,
    "float *p = x; " + loop("p[i] = 1;") + "p = *table;": False,
}


@pytest.mark.parametrize("body", FOLLOWED)
def test_arrays_stay_on_the_device_where_pointers_lead_to_arrays(body):
    before = "#include <stdlib.h>\nfloat **table;\nvoid set(float **p);"
    (function,) = (one for one in unit_of(body, before).functions if one.name == "f")
    assert (function.accesses is not None) == FOLLOWED[body]


def test_a_loop_whose_array_a_pointer_may_lead_to_keeps_nothing_on_the_device():
    """`own[k] = 1` in the loop writes what the schedule reads through `p`; the pragma keeps the function unfollowed."""
    text = (
        "float own[64]; float *p = own;\n#pragma omp task\n;\nfor (int k = 0; k < 3; k++) { STORE "
        + loop("p[i] += 1;")
        + "}"
    )
    assert not unit_of(text.replace("STORE", "own[k] = 1;")).transfers
    assert unit_of(text.replace("STORE", "")).transfers
