"""Index arithmetic that wraps or is cut off: no proof counts on it, and what parameters decide is asked of Start."""

import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.analysis.exactness import exact_unit
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

COUNTERS = ["threads_per_block", "shared_memory"]
n, m, B, s, d = (Polynomial.symbol(name) for name in ("n", "m", "B", "s", "d"))


def nest(body, parameters="int n, int B, int s", arrays="int a[n]", clause=""):
    return f"""
void f({parameters}, {arrays})
{{
  int d = n / B;
  meta_schedule {clause} {{
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {{
        {body}
      }}
  }}
}}
"""


def repeated(index):
    """Every iteration of k touches the same element: the loop must not join the grid."""
    return nest(f"for (int k = 0; k < s; k++) {{ {index} a[p] = a[p] * 3 + k; }}")


WRAPS = {
    "unsigned product": repeated("unsigned p = (unsigned)(i * B + u) + (unsigned)k * 65536u * 65536u;"),
    "narrowing cast": repeated("int p = i * B + u + (int)((long)k * 4294967296L);"),
    "narrowing declaration": repeated("long q = (long)k * 4294967296L; int z = q; int p = i * B + u + z;"),
    "64-bit product": repeated(
        "unsigned long p = (unsigned long)(i * B + u) + (unsigned long)k * 4294967296ul * 4294967296ul;"
    ),
    "shift": repeated("unsigned p = (unsigned)(i * B + u) + ((unsigned)k << 30 << 2);"),
    "negation": repeated("unsigned z = (unsigned)k * 65536u; unsigned p = (unsigned)(i * B + u) - -(z * 65536u);"),
    "short": repeated("short z = k * 65536; int p = i * B + u + z;"),
}


@pytest.mark.parametrize("text", WRAPS.values(), ids=WRAPS)
def test_what_wraps_is_not_proved_free_of_races(text):
    with pytest.raises(DiagnosticsError, match="MF0403"):
        check_races(exact_unit(parse(Source("f.mf", text))), strict=True)


@pytest.mark.slow
def test_loops_that_wrap_do_not_join_the_grid():
    text = "\n".join(text.replace("void f(", f"void f{number}(") for number, text in enumerate(WRAPS.values()))
    found = verify(
        text, counters=COUNTERS, order="paper", options=Options(points=8, optimization="-O0", dataflow_seconds=0)
    )
    assert [failure.text() for failure in found.failures] == []
    assert len(found.rows) >= len(WRAPS)
    assert all(row.points and "granularity" not in row.strategies for row in found.rows)


@pytest.mark.parametrize(
    "body",
    [
        "int p = i * B + u; for (int k = 0; k < 2; k++) if (p >= k) a[(unsigned)p + 4294967295u * (unsigned)k] = p;",
        "unsigned p = (unsigned)(i * B + u); a[p * 2147483648u] = p;",
        "long p = i * B + u; a[(int)(p * 4294967296L)] = 1;",
    ],
)
def test_a_race_that_needs_the_wrap_around_is_not_taken_for_none(body):
    with pytest.raises(DiagnosticsError, match="MF0403"):
        check_races(exact_unit(parse(Source("f.mf", nest(body)))), strict=True)


@pytest.mark.slow
def test_a_window_does_not_start_where_only_a_wrap_around_leads():
    text = nest(
        "unsigned p = (unsigned)(i * B + u); if (p > 0) y[p] = x[p + 4294967295u];",
        "int n, int B",
        "const int x[n], int y[n]",
        "cache(x)",
    )
    found = verify(
        text, counters=COUNTERS, order="paper", options=Options(points=16, optimization="-O0", dataflow_seconds=0)
    )
    assert [failure.text() for failure in found.failures] == []
    [tree] = optimize(text, counters=COUNTERS, order="paper").schedules
    assert not any(leaf.counters["shared_memory"].numerator for leaf in tree.leaves)


ROWS = """
void f(unsigned m, unsigned n, unsigned B, const float a[m * n], float c[m * n])
{
  unsigned d = n / B;
  meta_schedule cache(a) {
    meta_for (unsigned i = 0; i < m; i++)
      meta_for (unsigned g = 0; g < d; g++)
        meta_for (unsigned v = 0; v < 1u; v++)
          meta_for (unsigned u = 0; u < B; u++) {
            unsigned p = (i + v) * n + g * B + u;
            c[p] = a[p] * 2;
          }
  }
}
"""
STENCIL = """
void f(unsigned n, unsigned B, unsigned s, const float a[n + 2u], float c[n])
{
  unsigned d = n / (s * B);
  meta_schedule cache(a) {
    meta_for (unsigned i = 0; i < d; i++)
      meta_for (unsigned u = 0; u < B; u++)
        for (unsigned k = 0; k < s; k++) {
          unsigned p = (i * s + k) * B + u;
          c[p] = a[p] + a[p + 1u] + a[p + 2u];
        }
  }
}
"""
SIZES = STENCIL.replace("unsigned", "unsigned long").replace("1u", "1ul").replace("2u", "2ul")
NARROWED = """
void f(unsigned long n, int B, const float a[n], float c[n])
{
  int d = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        c[i * B + u] = a[i * B + u];
  }
}
"""
DECIDED = {
    "rows": (ROWS, {at_most(m * n, 2**32 - 1)}, set()),
    "stencil": (STENCIL, {at_most(n + 2, 2**32 - 1)}, {"granularity"}),
    "sizes": (SIZES, set(), {"granularity"}),  # a parameter is below 2^63 wherever Start holds
    "narrowed": (NARROWED, {at_most(d, 2**31 - 1)}, set()),
}


@pytest.mark.parametrize(("text", "conditions", "strategies"), DECIDED.values(), ids=DECIDED)
def test_what_parameters_decide_joins_start_and_all_strategies_apply(text, conditions, strategies):
    assert check_races(exact_unit(parse(Source("f.mf", text))), strict=True) == ()
    [tree] = optimize(text, counters=COUNTERS, order="paper").schedules
    large = {c for c in tree.start if any(abs(x) >= 2**31 - 1 for x in c.difference.terms().values())}
    assert large == conditions
    assert all(leaf.counters["shared_memory"].numerator for leaf in tree.leaves if "caching" not in leaf.own.strategies)
    assert strategies <= {name for leaf in tree.leaves for name in leaf.own.strategies}


@pytest.mark.slow
def test_what_parameters_decide_is_right_within_start():
    texts = [text for text, _, _ in DECIDED.values()]
    text = "\n".join(text.replace("void f(", f"void f{number}(") for number, text in enumerate(texts))
    found = verify(
        text, counters=COUNTERS, order="paper", options=Options(points=8, optimization="-O0", dataflow_seconds=10)
    )
    assert [failure.text() for failure in found.failures] == []
    assert all(row.points for row in found.rows)


def test_signed_arithmetic_asks_for_nothing():
    text = ROWS.replace("unsigned", "int").replace("1u", "1")
    [schedule] = exact_unit(parse(Source("f.mf", text))).schedules
    assert schedule.program.exactness == ()


def test_what_is_only_computed_with_asks_for_nothing():
    text = nest("unsigned h = (unsigned)(i * B + u) * 7u + (unsigned)s; a[i * B + u] = h;")
    [schedule] = exact_unit(parse(Source("f.mf", text))).schedules
    assert schedule.program.exactness == ()
