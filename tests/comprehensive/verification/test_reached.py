"""Points at which the host code does not come to the schedule show nothing about a leaf, and are no failure of it."""

import re

import pytest

from metafork.comprehensive.verification import Options, verify
from metafork.comprehensive.verification.driver import reference_text, telling_reference_text
from metafork.frontend import parse
from metafork.ir.messages.source import Source

OPTIONS = Options(points=12, jobs=2, optimization="-O0", dataflow_seconds=0)

CONDITIONAL = """
void conditional(int n, int B, float a[n]) {
  if (n < 4)
    return;
  int d = n / B;
  if (B > 64)
    for (int i = 0; i < n; i++) a[i] += 1;
  else meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        a[i * B + u] += 1;
  }
}
"""

ELIMINATION = """
void eliminate(int n, int B, double a[n][n]) {
  int d = (n + B - 1) / B;
  int last = n;
  last--;
  for (int k = 0; k < last; k++)
    meta_schedule {
      meta_for (int b = 0; b < d; b++)
        meta_for (int u = 0; u < B; u++) {
          int i = b * B + u;
          if (i > k && i < n)
            a[i][k] = a[i][k] / 3;
        }
    }
}
"""

NEVER = """
void never(int n, int B, float a[n]) {
  int d = n / B;
  int more = n;
  more++;
  if (more < 1)
    meta_schedule {
      meta_for (int i = 0; i < d; i++)
        meta_for (int u = 0; u < B; u++)
          a[i * B + u] += 1;
    }
}
"""

FRAGMENT = """
int N, B;
float x[N];
int d = N / B;
int last = N;
last--;
if (last > 0)
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int t = 0; t < B; t++)
        x[i * B + t] = 1;
  }
"""


MODES = """
int modes(int n, int B, int mode, float a[n]) {
  int d = n / B;
  if (mode == 0)
    meta_schedule {
      meta_for (int i = 0; i < d; i++)
        meta_for (int u = 0; u < B; u++)
          a[i * B + u] = 1;
    }
  else if (mode == 17)
    meta_schedule {
      meta_for (int i = 0; i < d; i++)
        meta_for (int u = 0; u < B; u++)
          a[i * B + u] += 1;
    }
  else
    return -1;
  return mode;
}
"""


def verified(text):
    return verify(text, counters=("threads_per_block",), strategies=(), options=OPTIONS, machine="all")


@pytest.fixture(scope="module")
def functions():
    return verified(CONDITIONAL + ELIMINATION)


def check_that_some_points_are_left_out(found, number):
    row = found.rows[number]
    assert 0 < row.points < 12
    assert row.points == row.raced_points
    assert any(note.startswith(row.schedule) and "does not come to the schedule" in note for note in found.notes)


@pytest.mark.parametrize("number", [0, 1], ids=["conditional", "elimination"])
@pytest.mark.slow
def test_host_code_that_skips_a_schedule_fails_no_leaf(functions, number):
    assert functions.passed, functions.table()
    check_that_some_points_are_left_out(functions, number)


@pytest.mark.slow
def test_a_fragment_that_skips_its_schedule_fails_no_leaf():
    found = verified(FRAGMENT)
    assert found.passed, found.table()
    check_that_some_points_are_left_out(found, 0)


@pytest.mark.slow
def test_values_that_conditions_of_the_host_ask_for_are_tried():
    found = verified(MODES)
    assert found.passed
    assert [row.schedule[-1] for row in found.rows] == ["0", "1"]
    assert all(row.points == row.raced_points > 0 for row in found.rows)


def test_a_schedule_that_never_runs_is_not_called_verified():
    found = verified(NEVER)
    assert found.passed
    (row,) = found.rows
    assert row.points == row.raced_points == 0
    assert found.state("code", row) == found.state("races", row) == "-"


def test_the_reference_tells_each_schedule_where_it_stands():
    unit = parse(Source("eliminate.mf", ELIMINATION))
    (schedule,) = unit.schedules
    told = telling_reference_text(unit)
    call = re.search(r'driver_reached\("reached (\w+)([^"]*)\\n"(.*?)\), 1\)', told)
    assert call[1] == schedule.program.name
    names = [parameter.name for parameter in schedule.program.parameters]
    assert call[2] == "".join(f" {name}=%lld" for name in names)
    assert call[3] == "".join(f", (long long)({name})" for name in names)
    assert "driver_reached" not in reference_text(unit)
    assert reference_text(unit).count("\n") + 1 == told.count("\n")
