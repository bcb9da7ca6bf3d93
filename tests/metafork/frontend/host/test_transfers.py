"""Loops around which arrays move once."""

import pytest

from metafork.frontend import parse
from metafork.ir.messages.source import Source

LOOPS = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++)"
SCHEDULE = "meta_schedule { " + LOOPS + " a[i] = t + b[i]; }"


def transfers(code, declarations="", before=""):
    head = before + "int g;\nfloat table[8];\nvoid f(int n, int t, float a[n], float b[n], float c[n], float *p)\n"
    text = f"{head}{{\n{declarations}\n{code}\n}}\n"
    unit = parse(Source("test.mf", text))
    return [(text[one.span.start : one.span.end], one.schedules, one.arrays) for one in unit.transfers]


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < 3; k++) " + SCHEDULE,
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " }",
        "while (t > 0) { t--; " + SCHEDULE + " }",
        "do { " + SCHEDULE + " t++; } while (t < 4);",
        "for (;;) { " + SCHEDULE + " if (t) continue; t = (int)sqrt(n); }",
        'for (int k = 0; k < 3; k++) { printf("%d", k); ' + SCHEDULE + " double x = k; x += sin(x); }",
        "for (int k = 0; k < 3; k++) { for (int l = 0; l < 4; l++) { if (l) break; t += l; } " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { switch (k) { case 1: t = 2; break; } " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { int own[4]; own[0] = k; t = own[0]; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { assert(k < 3); " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { if (k) " + SCHEDULE + " else " + SCHEDULE + " }",
    ],
)
def test_the_arrays_stay(loop):
    (found,) = transfers(loop)
    assert found[0] == loop
    assert found[2] == ("a", "b")


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < 3; k++) { a[k] = 1; " + SCHEDULE + " }",
        "for (int k = 0; k < (int)b[0]; k++) " + SCHEDULE,
        "for (int k = 0; k < 3; k++) { c[k] = 1; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { t = c[k]; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { t = table[k]; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { t = g; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { *p = 1; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { p[k] = 1; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { float *q = a; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { step(); " + SCHEDULE + " }",
        'for (int k = 0; k < 3; k++) { printf("%f", a[0]); ' + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " if (t) break; }",
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " if (t) return; }",
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " if (t) goto end; } end: ;",
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " again: t++; }",
        "for (int k = 0; k < 3; k++) { " + SCHEDULE + " weird y z; }",
        'for (int k = 0; k < 3; k++) { asm("nop"); ' + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { t = ({ a[0]; }); " + SCHEDULE + " }",
        SCHEDULE,
        "if (t) " + SCHEDULE,
    ],
)
def test_the_arrays_must_move(loop):
    assert transfers(loop) == []


KNOWN = (
    "#define BELOW(t, m) for (int t = 0; t < m; t++)\n#define LOG(...) printf(__VA_ARGS__)\n#define STEPS (2 + 1)\n"
    "#ifndef MOST\n#define MOST 7\n#endif\n#ifdef A\n#define LEAST(a, b) ((a) < (b) ? (a) : (b))\n#endif\n"
)


@pytest.mark.parametrize(
    "loop",
    [
        "BELOW(k, STEPS) { " + SCHEDULE + " }",
        'for (int k = 0; k < 3; k++) { LOG("%d %d", k, t); ' + SCHEDULE + " }",
        "for (int k = 0; k < MOST; k++) { " + SCHEDULE + " }",
        "for (int k = 0; k < LEAST(t, MOST); k++) { " + SCHEDULE + " }",
    ],
)
def test_macros_that_leave_the_arrays_alone(loop):
    ((_, _, arrays),) = transfers(loop, before=KNOWN)
    assert arrays == ("a", "b")


UNKNOWN = "#ifdef A\n#define ONE b[0]\n#define TWO(v) (*(v))\n#define THREE t = 1\n#endif\n"


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < ONE; k++) { " + SCHEDULE + " }",
        "for (int k = 0; k < TWO(b); k++) { " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { THREE; " + SCHEDULE + " }",
        "for (int k = 0; k < 3; k++) { NEVER_SEEN; " + SCHEDULE + " }",
        "for (int k = 0; k < NEVER_SEEN; k++) { " + SCHEDULE + " }",
        'char *s = (char *)a; for (int k = 0; k < 3; k++) { printf("%s", s); ' + SCHEDULE + " }",
        "\n#ifdef A\nfor (int k = 0; k < 3; k++)\n#endif\n{ " + SCHEDULE + " }",
    ],
)
def test_what_is_not_known_may_touch_them(loop):
    assert transfers(loop, before=UNKNOWN) == []


def test_a_header_that_cannot_be_read_may_define_anything():
    loop = 'for (int k = 0; k < 3; k++) { printf("%d", k); ' + SCHEDULE + " }"
    assert len(transfers(loop, before="#include <stdio.h>\n")) == 1
    assert transfers(loop, before='#include "no/such/header.h"\n') == []


def test_the_outermost_loop_that_will_do():
    inner = "for (int k = 0; k < 3; k++) { " + SCHEDULE + " }"
    outer = "for (int l = 0; l < 3; l++) { " + inner + " }"
    assert [one[0] for one in transfers(outer)] == [outer]
    with_output = "for (int l = 0; l < 3; l++) { " + inner + " show(a); }"
    assert [one[0] for one in transfers(with_output)] == [inner]


def test_several_schedules_and_loops():
    other = "meta_schedule { " + LOOPS + " c[i] = a[i]; }"
    both = "for (int k = 0; k < 3; k++) { " + SCHEDULE + " t++; " + other + " }"
    alone = "while (t--) " + other
    assert transfers(both + alone) == [(both, (0, 1), ("a", "b", "c")), (alone, (2,), ("a", "c"))]


def test_an_array_that_lives_in_the_loop():
    schedule = "meta_schedule { " + LOOPS + " own[i] = t; }"
    assert transfers("for (int k = 0; k < 3; k++) { float own[n]; " + schedule + " }") == []
    assert len(transfers("for (int k = 0; k < 3; k++) { " + schedule + " }", "float own[n];")) == 1
