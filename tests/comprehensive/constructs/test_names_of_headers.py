"""Macros of ``math.h`` that classify numbers, limits of types, and ``sizeof`` of arrays, on every leaf."""

import pytest

from tests.comprehensive.constructs.leaf_cases import leaf_cases
from tests.metafork.frontend.marked import assert_refused, diagnostics_of, thread
from tests.metafork.kernel_runs import grid, run

CLASSIFIED = """
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
static const float odd[] = {0, -0.0f, 1, -2.5f, INFINITY, NAN, FLT_TRUE_MIN, FLT_MIN, FLT_MAX, -FLT_MAX};
static const double wide[][2] = {{DBL_MAX, -DBL_TRUE_MIN}, {DBL_MIN, HUGE_VAL}, {-1e39, FLT_MAX}};
static int bad(float x) { return isnan(x) || isinf(x); }
void classified(int n, int B, const int x[n], int y[n], float z[n])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j, r = 0, zeros[3] = {0};
        float sum = 0;
        for (int k = 0; k < COUNT(odd); k++) {
          float v = (x[p] & 1) ? -odd[k] : odd[k];
          if (isnan(v)) r += 1;
          else if (isinf(v)) r += 10;
          else if (!isfinite(v * 2)) r += 100;
          r += isnormal(v) ? 1000 : signbit(x[p] + 0.5f) != 0;
          if (!isnan(v)) r += 10000 * (signbit(v) == 0);
          if (isfinite(v)) sum += v / 16;
          r += 7 * bad(v * v) + zeros[k % (int)COUNT(zeros)];
        }
        for (int k = 0; k < COUNT(wide); k++)
          for (int l = 0; l < COUNT(wide[0]); l++) {
            double w = wide[k][l] * x[p];
            while (isnormal(w) && r < INT_MAX / 2) { w = w * 1e30; r += 3; }
            r ^= isinf(w) ? 64 : isnan(w) ? 128 : (float)w == 0 && w != 0;
          }
        y[p] = r + (x[p] == 0 ? INT_MIN : SCHAR_MIN) / 3 + (int)(UINT64_MAX >> 40) + (int)sizeof(zeros);
        int q = 0;
        y[p] += (int)sizeof(zeros[q++]) + q;
        z[p] = sum;
      }
  }
}
"""


def test_every_leaf_classifies_numbers_as_the_serial_elision_does(tmp_path):
    cases, _ = leaf_cases(CLASSIFIED, grid(n=[12], B=[1, 6]))
    assert run(cases, tmp_path) == {}


@pytest.mark.parametrize(
    "code",
    [
        "if (isnan(a[i])) a[i] = isinf(alpha) ? 1 : !isfinite(a[i]);",
        "a[i] = isnan(alpha) || isinf(alpha);",
        "a[i] = (isnan(alpha) != 0) + (isnormal(a[i]) == 0);",
        "for (int k = 0; isfinite(a[i]) && k < 9; k++) a[i] *= a[i];",
        "do a[i] *= 2; while (!isinf(a[i]));",
    ],
)
def test_classifications_are_conditions(code):
    assert not diagnostics_of(thread(code))


def test_what_else_a_classification_gives_is_refused():
    for code in ("idx[i] = «isnan(alpha)»;", "idx[i] += 2 * «signbit(alpha)»;", "if («isinf(alpha)» == 1) a[i] = 0;"):
        (found,) = assert_refused(thread(code), "MF0206")
        assert "!= 0" in found.way_out
    assert_refused(thread("if (isnan(«n»)) a[i] = 0;"), "MF0206")
    assert not diagnostics_of("static int isnan(float x) { return x == 3; }\n" + thread("a[i] = isnan(alpha);"))


@pytest.mark.parametrize(
    "code",
    [
        "idx[i] = sizeof(t) + sizeof t / sizeof t[0];",
        "idx[i] = sizeof(w) / sizeof(w[0]) + sizeof(w[0]) + sizeof w[0][i];",
        "float s[sizeof(w) / sizeof(w[0])]; s[0] = 1; a[i] = s[0];",
    ],
)
def test_sizes_of_arrays_of_constant_extents(code):
    table = "static const short w[][4] = {{1}, {2}, {3}, {4}};\n"
    text = table + thread(f"float t[3]; t[0] = 1; a[i] = t[0]; {code}")
    assert not diagnostics_of(text)


@pytest.mark.parametrize("operand", ["«a»", "«b»", "«b[0]»"])
def test_sizes_of_what_may_be_a_pointer_or_has_no_constant_size_are_refused(operand):
    assert_refused(thread(f"idx[i] = sizeof({operand});"), "MF0302")


def test_an_array_that_a_function_is_given_is_a_pointer_to_it():
    function = "static int size(const float x[4]) { return sizeof(«x»); }\n"
    assert_refused(f"{function}{thread('float t[4]; t[0] = 1; a[i] = t[0]; idx[i] = size(t);')}", "MF0302")
