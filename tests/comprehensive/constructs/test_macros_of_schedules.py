"""Schedules that macros give: run in every leaf, host code as before, and messages that point at the use."""

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.commands.explain import command
from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from tests.metafork.frontend.marked import assert_refused

MACROS = """
#define EACH(n, B, i, j, k, body) \\
  meta_schedule { \\
    meta_for (int i = 0; i < ((n) + (B) - 1) / (B); i++) \\
      meta_for (int j = 0; j < (B); j++) { \\
        int k = i * (B) + j; \\
        if (k >= (n)) continue; \\
        body; \\
      } \\
  }
#define ADD(n, B, a, c) EACH(n, B, i, j, k, a[k] += c)
#define PARALLEL meta_schedule meta_grid(1)
static const float w[3] = {1, 2, 4};
"""
USES = """
void f(int n, int B, int rounds, float a[n], float b[n])
{
  int half = n / 2;
  ADD(n, B, a, 1);
  for (int t = 0; t < rounds; t++)
    ADD(half, B, b, t)
  EACH(n, B, p, q, r, a[r] = a[r] * b[r / 2] + w[p % 3])
  if (rounds > 1)
    b[0] = a[n - 1];
  else
    ADD(n, B, a, b[0])
  PARALLEL {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] /= 3;
  }
}
"""


@pytest.mark.slow
def test_every_leaf_is_the_serial_program():
    options = Options(points=4, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(MACROS + USES, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert {row.schedule for row in found.rows} == {f"input_k{number}" for number in range(5)}
    assert "not checked" not in found.table()


def test_the_use_is_what_a_dispatch_stands_for():
    text = MACROS + USES
    host = rendered_files(optimize(text, counters=("shared_memory",), strategies=()))["input_host.c"]
    body = host[host.index("void f(") :]
    assert body.count("metafork_run_input_k") == 5
    for macro in ("ADD", "EACH", "PARALLEL", "meta_schedule {"):
        assert macro not in body
    assert "if (rounds > 1)" in body


def test_a_macro_of_a_header(tmp_path):
    (tmp_path / "each.h").write_text(MACROS)
    text = '#include "each.h"\n' + USES
    unit = parse(Source(str(tmp_path / "f.mf"), text))
    assert [schedule.span.line for schedule in unit.schedules] == [6, 8, 9, 13, 14]


def test_messages_point_at_the_use():
    text = MACROS + "void g(int n, int B, float a[n]) {\n  ADD(n, B, a, 1)\n  «ADD(n, B, a, a[i + 1])»\n}\n"
    plain = text.replace("«", "").replace("»", "")
    with pytest.raises(DiagnosticsError) as refused:
        check_races(parse(Source("g.mf", plain)), strict=True)
    (one,) = (one for one in refused.value.diagnostics if one.code == "MF0401")
    start = text.index("«")
    assert plain[one.span.start : one.span.end] in ("a", "a[i + 1]", plain[start : start + 22])
    assert_refused(MACROS + "void g(int n, int B, int a[n]) {\n  ADD(n, B, a, «m»)\n}\n", "MF0301")


def test_explain_shows_the_use(tmp_path):
    from click.testing import CliRunner

    (tmp_path / "f.mf").write_text(MACROS + USES)
    done = CliRunner().invoke(command, [str(tmp_path / "f.mf")])
    assert done.exit_code == 0, done.output
    assert "EACH(n, B, p, q, r, a[r] = a[r] * b[r / 2] + w[p % 3])" in done.output
