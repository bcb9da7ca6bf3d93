"""Local pointers into arrays: what they lead to is written out, where they cannot lead anywhere else."""

import pytest

from metafork.printing.metafork_text import metafork_text
from tests.metafork.frontend.marked import diagnostics_of, program_of

HEAD = (
    "typedef struct { float x, mass; } Body;\n"
    "static float total(const float *v, int n) "
    "{ const float *w = v + 1, *u = &w[-1]; float s = 0; for (int i = 0; i < n; i++) s += u[i]; return s; }\n"
    "void f(int n, int m, int B, float a[n][m], float x[n], float flat[n * m], int y[n], Body p[n])\n{\n"
)


def text_of(body):
    return f"{HEAD}  meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n; i++) {{ {body} }} }}\n}}\n"


SAME = {
    "a row": ("float *r = a[i]; r[2] = r[m - 1];", "a[i][2] = a[i][m - 1];"),
    "a row of a flat array": (
        "const float *r = flat + i * m; for (int k = 0; k < m; k++) x[i] += r[k];",
        "for (int k = 0; k < m; k++) x[i] += flat[i * m + k];",
    ),
    "the address of an element": ("float *r = &a[i][1]; *r = 3; *(r + 2) = 4;", "a[i][1] = 3; a[i][1 + 2] = 4;"),
    "less": ("float *restrict const r = x + i - 1; r[1] = 3;", "x[i - 1 + 1] = 3;"),
    "a pointer of a pointer": (
        "const float *r = flat + i * m, *s = r + 2; x[i] = s[1] - s[-2];",
        "x[i] = flat[i * m + 2 + 1] - flat[i * m + 2 + -2];",
    ),
    "with other variables": (
        "float s = 2, *r = a[i], t = r[1]; r[0] = s * t;",
        "float s = 2, t = a[i][1]; a[i][0] = s * t;",
    ),
    "a structure": ("Body *me = &p[i]; me->x += 2 * me->mass;", "p[i].x += 2 * p[i].mass;"),
    "an array of the thread": (
        "float t[3] = {1, 2, 3}, *u = t + 1; x[i] = u[1];",
        "float t[3] = {1, 2, 3}; x[i] = t[1 + 1];",
    ),
    "handed to a function": (
        "const float *r = flat + i * m; x[i] = total(r, m);",
        "x[i] = total(flat + i * m, m);",
    ),
    "an offset that changes": (
        "int k = i; const float *r = flat + k; k++; x[i] = r[k];",
        "int k = i; long r_first = k; k++; x[i] = flat[r_first + k];",
    ),
    "an offset from memory": (
        "const float *r = flat + y[i]; y[i] = 0; x[i] = r[1];",
        "long r_first = y[i]; y[i] = 0; x[i] = flat[r_first + 1];",
    ),
    "one that steps": (
        "float *r = flat + i * m; for (int k = 0; k < m; k++) *r++ = k;",
        "long r_at = i * m; for (int k = 0; k < m; k++) { flat[r_at + (long)(k - 0) * 1] = k; }",
    ),
    "one that goes on": (
        "float *r = x; for (int k = 0; k < m; k++) r += 2; *r = 1;",
        "long r_at = 0; for (int k = 0; k < m; k++) ; r_at += (long)(m > 0 ? m - 0 : 0) * 2; x[r_at] = 1;",
    ),
    "one that is set": (
        "float *r = x + i; if (i > 2) r = x; *r = 1;",
        "long r_at = i; if (i > 2) r_at = 0; x[r_at] = 1;",
    ),
    "one of two": (
        "const float *r = n > 3 ? x : flat + i; x[i] = r[1];",
        "x[i] = n > 3 ? x[1] : flat[i + 1];",
    ),
    "written to one of two": (
        "float *r = n > 3 ? x + i : flat; *r = 1;",
        "if (n > 3) x[i] = 1; else flat[0] = 1;",
    ),
    "in a loop": (
        "for (int k = 0; k < m; k++) { float *r = &flat[k * n]; r[i] = 1; }",
        "for (int k = 0; k < m; k++) { flat[k * n + i] = 1; }",
    ),
}


@pytest.mark.parametrize("how", SAME)
def test_a_pointer_is_the_place_that_it_leads_to(how):
    pointed, written = (metafork_text(program_of(text_of(body))) for body in SAME[how])
    assert pointed == written


CHANGED = {
    "into another array": "float *r = x + i; if (i > 2) r = flat; *r = 1;",
    "multiplied": "float *r = x; r = r + i; r *= 2; *r = 1;",
    "its address": "float *r = x + i; float **q = &r; **q = 1;",
    "of another type": "int *r = (int *)x; r[i] = 1;",
    "of another type, without a cast": "float *r = y + i; r[0] = 1;",
    "a row that changes": "int k = i; float *r = a[k]; k = 0; r[0] = k;",
    "a row from memory": "float *r = a[y[i]]; y[i] = 0; r[0] = 1;",
    "static": "static float *r = 0; r[i] = 1;",
    "its size": "int t[6] = {1}; int *r = t; y[i] = sizeof(r) + r[0];",
    "a difference that wraps": "unsigned v = 2; const float *r = x + i - v; x[i] = r[m];",
    "a name that is hidden": "int k = i; float *r = x + k; { int k = 3; r[0] = k; }",
}


@pytest.mark.parametrize("how", CHANGED)
def test_a_pointer_that_may_lead_elsewhere_is_refused(how):
    codes = {one.code for one in diagnostics_of(text_of(CHANGED[how]))}
    assert codes & {"MF0201", "MF0217"}
