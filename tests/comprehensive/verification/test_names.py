"""``verify`` drives functions whatever they and their parameters are called."""

import pytest

from metafork.comprehensive.verification import Options, verify

LOOPS = """
  meta_schedule
    meta_for (int i = 0; i < values / compare; i++)
      meta_for (int j = 0; j < compare; j++)
        malloc[i * compare + j] += free[i * compare + j][0];
"""
PROGRAM = f"""
int line(int values, int point, int compare, int strtoll, const float free[values][point], float malloc[values])
{{ {LOOPS} return strtoll; }}

void index(int values, int compare, const float free[values][1], float malloc[values])
{{ {LOOPS} }}

void compare(int values, int compare, const float free[values][1], float malloc[values])
{{ {LOOPS} }}
"""


@pytest.mark.slow
def test_no_name_of_the_file_meets_one_of_the_driver():
    options = Options(points=3, dataflow_seconds=0, optimization="-O0")
    found = verify(PROGRAM, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert all(row.points for row in found.rows)
    assert len(found.rows) == 3


IDLE = """
#define SIZE (n + 0 * (spare != 0))
struct wide {{ double x; int y; }};
void f(int n, int B, const struct wide *table, void (*call)(int), const char *names[], float a[n]{more})
{{
  meta_schedule
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] += 1;
  {use}
}}
"""


@pytest.mark.parametrize(
    ("more", "use", "why"),
    [
        ("", "", ""),
        (", struct unknown *spare", "", "no values for the parameter"),
        ("", "if (n < 0) call(n);", "no values for the parameter void (*call)(int)"),
        (", struct wide lost", "", "no values for the parameter struct wide lost"),
    ],
    ids=["idle", "a_macro_reads_it", "the_body_reads_it", "no_pointer"],
)
@pytest.mark.slow
def test_pointers_that_a_function_has_no_use_for_are_null(more, use, why):
    options = Options(points=3, dataflow_seconds=0, optimization="-O0")
    text = IDLE.format(more=more, use=use)
    found = verify(text, counters=("threads_per_block",), strategies=(), options=options, machine="all")
    assert all(bool(row.points) != bool(why) for row in found.rows)
    assert why in "".join(found.notes)


FIXED = """
#include <math.h>
#include <stdint.h>
#define PLACES 8
typedef struct complex_number { float re, im; } complex_number;
void widths(int n, int B, uint32_t seed, uint64_t other, unsigned int a[n])
{
  meta_schedule
    meta_for (int b = 0; b < n / B; b++)
      meta_for (int t = 0; t < B; t++)
        a[b * B + t] = seed + t + (uint32_t)other;
}
void macro(int batch, complex_number x[batch][PLACES])
{
  meta_schedule
    meta_for (int b = 0; b < batch; b++)
      meta_for (int t = 0; t < PLACES; t++)
        x[b][t].re = 2 * x[b][t].im;
}
void no_numbers(int n, int B, const float a[n], const double c[n], float y[n], double z[n])
{
  meta_schedule
    meta_for (int b = 0; b < n / B; b++)
      meta_for (int t = 0; t < B; t++) {
        int i = b * B + t;
        float p = sqrtf(-1 - a[i] * a[i]), q = -p;
        double r = sqrt(-1 - c[i] * c[i]), s = -r;
        y[i] = p * q;
        z[i] = r - s;
      }
}
"""


@pytest.mark.slow
def test_types_and_extents_are_those_of_the_file_and_no_number_is_another():
    options = Options(points=3, dataflow_seconds=0)
    found = verify(FIXED, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert all(row.points for row in found.rows)
