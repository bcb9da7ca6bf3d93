"""``meta_reduction`` of floating-point numbers: in the stated order, bit for bit, on every leaf and back end."""

import subprocess

import pytest

from metafork.analysis.races.races import race_report
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.comprehensive.verification.driver import ELISION_FLAGS, SERIAL_PREFIX, reference_text
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.dot_product import DOT, QUICK
from tests.comprehensive.metafork_command import metafork
from tests.metafork.frontend.marked import assert_refused
from tests.metafork.frontend.text.clauses.reduction_programs import blocks
from tests.runtime.compiling import succeed

# Variables of the host in a loop, a block's scalar, a grid and blocks of two dimensions, threads of two shapes.
NORMS = """
#include <math.h>
float norms(int n, int m, int B, int C, int rounds, const float a[n][m], double out[n], float *sum, int *count)
{
  double total = 1;
  float most = 0;
  for (int r = 0; r < rounds; r++) {
    meta_schedule {
      meta_reduction(+: total, *sum, count) meta_reduction(max: most)
      meta_for (int i = 0; i < n; i++)
        meta_for (int k = 0; k < (m + B * C - 1) / (B * C); k++) {
          float low = 1;
          for (int e = 0; e < 2; e++) {
            meta_reduction(*: low)
            meta_for (int u = 0; u < B; u++)
              meta_for (int v = 0; v < C; v++) {
                int p = (k * B + u) * C + v;
                if (p >= m) continue;
                total += a[i][p];
                *sum -= a[i][p] * 0.5f;
                *count += 1;
                low *= a[i][p];
              }
            if (low == 0) break;
          }
          meta_for (int u = 0; u < C; u++)
            meta_for (int v = 0; v < 3; v++)
              if (u + v + k < m) { most = fmaxf(most, a[i][u + v + k]); total += low; }
          meta_for (int u = 0; u < B; u++)
            meta_for (int v = 0; v < C; v++)
              if (u + v + k == 0) out[i] = low;
        }
    }
    if (total > 1000) break;
  }
  out[0] += total;
  return most;
}
"""

STRIDED = """
void strided(int n, int G, int B, const double x[n], double *low, double *product)
{
  meta_schedule {
    meta_reduction(min: low) meta_reduction(*: product)
    meta_for (int i = 0; i < G; i++)
      meta_for (int j = 0; j < B; j++)
        for (int p = i * B + j; p < n; p += G * B) {
          *low = x[p] < *low ? x[p] : *low;
          *product = *product * x[p];
        }
  }
}
"""


@pytest.mark.slow
def test_every_leaf_is_bit_identical_with_the_stated_order():
    found = verify(
        NORMS + DOT + STRIDED, **QUICK, options=Options(points=6, dataflow_seconds=0, optimization="-O0"), machine="all"
    )
    assert found.passed, found.table()
    assert {row.schedule for row in found.rows} == {f"input_k{number}" for number in range(6)}
    assert all(row.points for row in found.rows)
    assert all(check.verdict.value == "yes" for checks in found.guards.values() for check in checks)


@pytest.mark.slow
def test_every_strategy_keeps_the_order():
    strategies = ("granularity", "thread_striding", "register_tile", "cse1")
    found = verify(
        DOT,
        **{**QUICK, "strategies": strategies},
        options=Options(points=4, dataflow_seconds=0, optimization="-O0"),
        machine="all",
    )
    assert found.passed, found.table()
    assert {name for row in found.rows for name in row.strategies} >= {"thread_striding"}


# The order as the manual states it, written down once more, by hand.
BY_HAND = """
#include <stdio.h>
#include <string.h>
void PREFIXdot(int n, int B, const float *x, const float *y, float *sum, double *most);
static float folded(float *s, int length) {
  int half = 1;
  while (half < length) half *= 2;
  for (half /= 2; half > 0; half /= 2)
    for (int j = 0; j < half && j + half < length; j++) s[j] += s[j + half];
  return s[0];
}
int main(void) {
  static float x[5000], y[5000], own[5000], parts[5000], lanes[256];
  unsigned state = 1;
  for (int k = 0; k < 5000; k++) {
    state = state * 1664525u + 1013904223u, x[k] = (float)(state >> 8) / 1024;
    state = state * 1664525u + 1013904223u, y[k] = (float)(state >> 8) / 3;
  }
  int differing = 0;
  for (int n = 1; n < 5000; n = n * 3 + 1)
    for (int B = 1; B < 40; B += 6) {
      int blocks = (n + B - 1) / B;
      for (int i = 0; i < blocks; i++) {
        for (int j = 0; j < B; j++) own[j] = i * B + j < n ? 0 + x[i * B + j] * y[i * B + j] : 0;
        parts[i] = folded(own, B);
      }
      for (int l = 0; l < 256; l++) {
        lanes[l] = 0;
        for (int i = l; i < blocks; i += 256) lanes[l] += parts[i];
      }
      float expected = 3 + folded(lanes, 256), sum = 3, serial = 3;
      double most = 0;
      for (int k = 0; k < n; k++) serial += x[k] * y[k];
      PREFIXdot(n, B, x, y, &sum, &most);
      if (memcmp(&sum, &expected, sizeof sum)) return printf("n = %d, B = %d: %a, not %a\\n", n, B, sum, expected), 1;
      differing += sum != serial;
    }
  return differing == 0;
}
""".replace("PREFIX", SERIAL_PREFIX)


def test_the_reference_has_the_stated_order(tmp_path):
    (tmp_path / "reference.c").write_text(reference_text(parse(Source("dot.mf", DOT), reassociate=True)))
    (tmp_path / "main.c").write_text(BY_HAND)
    flags = ("-std=gnu11", "-O1", "-w", "-ffp-contract=off", "-fsanitize=address,undefined")
    sources = (tmp_path / "reference.c", tmp_path / "main.c")
    succeed(["gcc", *flags, *ELISION_FLAGS, *sources, "-lm", "-o", tmp_path / "main"])
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_both_programs_are_free_of_races_and_read_back():
    for schedule in parse(Source("norms.mf", NORMS), reassociate=True).schedules:
        report = race_report(schedule.program)
        assert report.races == report.unproved == ()
        (again,) = parse(Source("again.mf", metafork_text(schedule.program))).schedules
        assert again.program.body == schedule.program.body


def test_loops_without_iterations_run_in_the_order_of_the_text(tmp_path):
    """Nothing is added, not even 0, which would change the sign of a zero."""
    main = """
      #include <math.h>
      #include <stdio.h>
      void dot(int n, int B, const float *x, const float *y, float *sum, double *most);
      int main(void) {
        float sum = -0.0f; double most = -3;
        dot(0, 4, &sum, &sum, &sum, &most);
        printf("%d %g", !!signbit(sum), most);
        return 0;
      }"""
    (tmp_path / "main.c").write_text(main)
    reference = reference_text(parse(Source("dot.mf", DOT), reassociate=True)).replace(SERIAL_PREFIX, "")
    (tmp_path / "reference.c").write_text(reference)
    sources = (tmp_path / "reference.c", tmp_path / "main.c")
    succeed(["gcc", "-w", *ELISION_FLAGS, *sources, "-lm", "-o", tmp_path / "main"])
    assert subprocess.check_output([tmp_path / "main"], text=True) == "1 -3"


COUNT = "meta_schedule meta_block(B) { meta_reduction(+: s) meta_for (TYPE i = lo; i < hi; i++) *s += 1; }"
MOST = (
    "meta_schedule { meta_reduction(max: s) meta_for (int i = 0; i < G; i++) meta_for (int j = 0; j < B; j++) "
    "for (int k = i * B + j; k < n; k += G * B) UPDATE }"
)

EDGES = {
    "indices behind the last int": (COUNT, "int", "2147483597, 2147483647, 16", "50"),
    "indices behind the last long": (COUNT, "long", "0x7fffffffffffffcd, 0x7fffffffffffffff, 16", "50"),
    "blocks that are too long to count": (COUNT, "int", "0, 50, 2147483647", "50"),
    "no threads": (COUNT, "int", "0, 50, 0", "50"),
    "fewer than no threads": (COUNT, "int", "0, 50, -3", "50"),
    "blocks that a short cannot count": (COUNT, "short", "0, 32767, 60000", "32767"),
    "steps of none": (COUNT.replace("i++", "i += B - 4"), "int", "3, 3, 4", "0"),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_text_runs_where_the_order_has_no_meaning(name, tmp_path):
    body, type_, arguments, expected = EDGES[name]
    text = f"void f(TYPE lo, TYPE hi, int B, float *s)\n{{ {body} }}\n".replace("TYPE", type_)
    assert ran(text, f'float s = 0; f({arguments}, &s); printf("%g", s);', tmp_path) == expected


TILES = (
    "meta_schedule { meta_reduction(+: s) meta_for (int i = lo; i < hi; i += B) "
    "meta_for (int j = i; j < i + B; j++) *s += 1; }"
)


@pytest.mark.parametrize(("arguments", "expected"), [("3, 77, 8", "80"), ("2147483600, 2147483640, 8", "40")])
def test_indices_of_tiles_are_known_by_what_the_host_has(arguments, expected, tmp_path):
    """A block declares its first index, of which the host knows nothing."""
    text = f"void f(int lo, int hi, int B, float *s)\n{{ {TILES} }}\n"
    assert ran(text, f'float s = 0; f({arguments}, &s); printf("%g", s);', tmp_path) == expected


EXTREMES = {
    "what is not greater": ("s[0] = x[k] <= s[0] ? s[0] : x[k];", "NAN", "{1, 2}", "2"),
    "a last NaN": ("s[0] = x[k] <= s[0] ? s[0] : x[k];", "3", "{NAN}", "nan"),
    "the function": ("s[0] = fmaxf(s[0], x[k]);", "NAN", "{1, 5, 2, NAN, 3, 4}", "5"),
    "the function of nothing": ("s[0] = fmaxf(s[0], x[k]);", "NAN", "{NAN, NAN}", "nan"),
    "a first NaN that stays": ("if (x[k] > s[0]) s[0] = x[k];", "NAN", "{1, 5}", "nan"),
    "the last zero": ("if (x[k] >= s[0]) s[0] = x[k];", "0", "{-0.0f}", "-0"),
    "the first zero": ("if (x[k] > s[0]) s[0] = x[k];", "0", "{-0.0f}", "0"),
    "infinities": ("if (x[k] > s[0]) s[0] = x[k];", "-INFINITY", "{-INFINITY, -INFINITY, -INFINITY}", "-inf"),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_taken_as_the_text_takes_them(name, tmp_path):
    update, first, terms, expected = EXTREMES[name]
    body = MOST.replace("UPDATE", update)
    text = f"#include <math.h>\nvoid f(int n, int G, int B, const float x[n], float *s)\n{{ {body} }}\n"
    calls = f"float x[] = {terms}; for (int B = 1; B < 4; B++) for (int G = 1; G < 4; G++) {{ float s = {first}; "
    calls += 'f(sizeof x / sizeof *x, G, B, x, &s); printf("%g ", s); }'
    assert ran(text, calls, tmp_path).split() == 9 * [expected]


def ran(text, calls, folder):
    """Return what a main with some calls of the reference prints."""
    reference = reference_text(parse(Source("f.mf", text), reassociate=True)).replace(SERIAL_PREFIX, "")
    (folder / "main.c").write_text(f"{reference}\n#include <stdio.h>\nint main(void) {{ {calls} return 0; }}\n")
    flags = ("-std=gnu11", "-O1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    succeed(["gcc", *flags, *ELISION_FLAGS, folder / "main.c", "-lm", "-o", folder / "main"])
    return subprocess.check_output([folder / "main"], text=True)


def test_the_numbers_of_a_block_fit_the_stack():
    """Seventeen results of 65,536 threads were 8 MiB on the stack of the serial code."""
    names = [f"s{k}" for k in range(17)]
    parameters = ", ".join(f"double {name}[1]" for name in names)
    updates = " ".join(f"*{name} += x[i];" for name in names)
    text = (
        f"void f(int n, int B, const double x[n], {parameters}) {{ meta_schedule meta_block(B) {{ "
        f"meta_reduction(+: {', '.join(names)}) meta_for (int i = 0; i < n; i++) {{ {updates} }} }} }}"
    )
    reference = reference_text(parse(Source("f.mf", text), reassociate=True))
    assert f"(B) <= {(1 << 18) // (17 * 8)}" in reference


def test_the_report_states_the_order():
    report = optimize(DOT, **QUICK).to_report()
    assert "Floating-point numbers are added up in a stated order" in report
    assert "adds up every 256th of the blocks' parts" in report
    assert "stated order" not in optimize(blocks("+"), **QUICK).to_report()


@pytest.mark.slow
def test_the_option_is_named(tmp_path):
    source = tmp_path / "dot.mf"
    source.write_text(DOT)
    assert "help: allow it: add `--reassociate`" in metafork("check", source, status=1).stderr
    for command in (["check"], ["explain"], ["apply", "caching"]):
        metafork(*command, "--reassociate", source)


REFUSED = {
    "of several elements": DOT.replace("double *most", "double most[3]")
    .replace("*most", "most[p % 3]")
    .replace("meta_reduction(max: most)", "«meta_reduction(max: most)»"),
    "by bits": DOT.replace("meta_reduction(+: sum)", "«meta_reduction(^: sum)»"),
    "of a value that is used": DOT.replace("*sum += x[p] * y[p];", "*sum += x[p] * y[p]; if («*sum» > 3) continue;"),
    "of an array by the threads": """
void rows(int n, int B, const float a[n][B], float c[n]) {
  meta_schedule
    meta_for (int i = 0; i < n; i++) {
      «meta_reduction(+: c)»
      meta_for (int j = 0; j < B; j++)
        c[i] += a[i][j];
    }
}
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    assert_refused(REFUSED[name], "MF0225", reassociate=True)
