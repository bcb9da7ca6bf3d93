"""Directives: what they make of a program, where they are refused, and that it computes the same."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.frontend import parse
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.invariants import check_program
from metafork.ir.messages.source import Source
from metafork.ir.program import Phase, walk_statements
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import Refused, applied
from metafork.transform.schedule import schedule_of
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import MATMUL


def scheduled(text, schedule):
    """Return the program of a text after a schedule, or the refusal."""
    return applied(parse(Source("test.mf", text)).schedules[0].program, schedule_of(schedule), Analyses())


SCALED = """void scaled(int n, int B, float a[n], float b[n])
{
  int blocks = (n + B - 1) / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        if (i * B + u < n)
          b[i * B + u] = 2 * a[i * B + u];
  }
}
"""

AFTER = {
    "tile(u, 4)": """
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u_o = 0; u_o < u_tiles; u_o++) {
        for (int u_i = 0; u_i < 4; u_i++) {
          if (u_i < B - 4 * u_o) {
            int u = 4 * u_o + u_i;
            if (i * B + u < n) {
              b[i * B + u] = 2 * a[i * B + u];
            }
          }
        }
      }
  }""",
    "tile(u, 4, layout=strided)": """
          if (u_i * u_tiles < B - u_o) {
            int u = u_i * u_tiles + u_o;""",
    "tile(u, 4, tail=peel)": """
        if (B - 4 * u_o >= 4) {
          for (int u_i = 0; u_i < 4; u_i++) {
            int u = 4 * u_o + u_i;
            if (i * B + u < n) {
              b[i * B + u] = 2 * a[i * B + u];
            }
          }
        } else {
          for (int u_i1 = 0; u_i1 < 4; u_i1++) {
            if (u_i1 < B - 4 * u_o) {
              int u1 = 4 * u_o + u_i1;""",
    "tile(i, 2)": """
    meta_for (int i_o = 0; i_o < i_tiles; i_o++)
      meta_for (int u = 0; u < B; u++) {
        for (int i_i = 0; i_i < 2; i_i++) {
          if (i_i < blocks - 2 * i_o) {
            int i = 2 * i_o + i_i;""",
    "cache(a)": "meta_schedule cache(a)",
    "stride(32)": "#pragma metafork schedule(stride(32))",
    "coarsen(u, 4)": "#pragma metafork schedule(coarsen(u, 4))",
}


@pytest.mark.parametrize("schedule", AFTER)
def test_the_program_afterwards(schedule):
    text = metafork_text(scheduled(SCALED, schedule))
    assert AFTER[schedule].strip("\n") in text
    assert metafork_text(scheduled_unit(parse(Source("test.mf", text))).schedules[0].program) == text  # it reads back


TWO_PHASES = """void two(int n, int B, int m, const float a[n], float b[n], float c[n][m])
{
  int blocks = (n + B - 1) / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      for (int r = 0; r < m; r++) {
        int half = r / 2;
        meta_for (int u = 0; u < B; u++)
          if (i * B + u < n)
            b[i * B + u] += half * a[i * B + u];
        meta_for (int v = 0; v < B; v++) {
          int p = i * B + v;
          for (int k = 0; k < m; k++)
            for (int l = 0; l < 3; l++)
              if (p < n)
                c[p][k] += l * b[p];
        }
      }
  }
}
"""

SHARED = """void shared(int n, int B, const float a[n], float b[n])
{
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++) {
      float t[B];
      meta_for (int u = 0; u < B; u++)
        t[B - 1 - u] = a[i * B + u];
      meta_for (int u = 0; u < B; u++)
        b[i * B + u] = t[u];
    }
  }
}
"""

LEFT = """void left(int n, int B, const float a[n], float b[n])
{
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {
        float sum = 0;
        for (int k = 0; k < 9; k++) {
          if (a[i * B + u] < k)
            break;
          sum += k;
        }
        for (int k = n; k > 0; k--)
          sum += k;
        int end = 4;
        for (int m = 0; m < end; m++)
          end = end - 1;
        b[i * B + u] = sum + end;
      }
  }
}
"""

REFUSED = {
    ("tile(z, 4)", SCALED): "there is no loop over `z`; loops are over `i`, `u`",
    ("tile(i, 2)", SHARED): "the block keeps `t`",
    ("tile(k, 4)", LEFT): "the loop over `k` is left early",
    ("tile(k_1, 4)", LEFT): "the loop over `k_1` is not `for (int k_1 = 0;",
    ("tile(m, 4)", LEFT): "the loop over `m` is not `for (int m = 0; m < limit; m++)` with a limit that stays",
    ("tile(k, 2, layout=strided)", MATMUL): "touch one element of c",
    ("tile(z, 4, layout=strided)", MATMUL): "touch one element of c",
    ("tile(r, 4, layout=strided)", TWO_PHASES): "touch one element of",
    ("interchange(k, z)", MATMUL): "the loop over `z` is not all that the loop over `k` does",
    ("interchange(u, z)", MATMUL): "grid and thread loops have no order",
    ("specialize(n=4)", SCALED): "`n` is no program parameter",
    ("specialize(B=4294967296)", SCALED): "`B` has the type `int`, without 4294967296",
    ("to_grid(z)", SCALED): "no loop over `z` holds all the work of a block",
    ("to_grid(k)", MATMUL): "touch one element of c",
    ("reroll(2)", SCALED): "no statements around all the work of a block repeat 2 times",
    ("align(4)", SCALED): "no loops are proved to begin elsewhere than at a multiple of 4",
    ("cse(1)", SHARED): "nothing is computed twice in one basic block",
    ("promote(a)", SCALED): "no loop of a thread updates one element of `a`",
    ("strips(k)", LEFT): "the ends of a loop over `k` are not the same for all threads",
    ("coarsen(u, 2); strips(k)", LEFT): "iterations run together already",
    ("strips(k, size=8)", LEFT): "a thread has no two tiles of results",
    ("uncache(a)", SCALED): "`a` does not go through shared memory",
    ("transpose(a)", SCALED): "",
    ("delinearize()", SCALED): "no flat array has rows",
    ("cache(q)", MATMUL): "there is no array `q`",
    ("cache(b)", "void gather(int n, int B, const int p[n], const float b[n], float c[n]) {\n"
     "  meta_schedule {\n    meta_for (int i = 0; i < n / B; i++)\n      meta_for (int u = 0; u < B; u++)\n"
     "        c[i * B + u] = b[p[i * B + u]];\n  }\n}\n"): "",
    ("stride(32); stride(64)", SCALED): "stride already",
    ("coarsen(u, 2); coarsen(u, 2)", SCALED): "has several results over `u` already",
    ("coarsen(u, 5)", SCALED): "no thread runs 5 iterations of `u`",
    ("coarsen(i, 2)", SCALED): "`i` is no thread loop",
    ("stride(32); coarsen(u, 2)", SCALED): "the threads of a block stride",
    ("unroll_and_jam(u, 2)", SCALED): "`u` is no loop of a thread",
    ("unroll_and_jam(k, 2)", MATMUL): "`k` is no loop of a thread",
    ("unroll_and_jam(z, 2)", MATMUL): "touch one element of c",
    ("unroll_and_jam(l, 4)", TWO_PHASES): "the loop over `l` has fewer than 4 iterations",
    ("unroll_and_jam(k, 2); unroll_and_jam(k, 2)", TWO_PHASES): "run together already",
    ("unroll_and_jam(k, 4)", LEFT): "cannot stand side by side",
}  # fmt: skip


@pytest.mark.parametrize(("case", "reason"), REFUSED.items(), ids=[case[0] for case in REFUSED])
def test_refused(case, reason):
    schedule, text = case
    refused = scheduled(text, schedule)
    assert isinstance(refused, Refused)
    assert reason in refused.reason


def test_a_recurrence_keeps_its_order():
    text = """
void first(int n, int B, float a[n][n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < n - 1; k++)
          for (int l = 0; l < n - 1; l++)
            a[k + 1][l] = a[k][l + 1];
  }
}
"""
    for schedule in ("interchange(k, l)", "tile(k, 2, layout=strided)"):
        assert isinstance(scheduled(text, schedule), Refused)
    assert not isinstance(scheduled(text, "tile(k, 2); tile(l, 3)"), Refused)


def test_copies_keep_the_types_of_their_loops():
    text = SCALED.replace("meta_for (int u", "for (int t = 0; t < 2; t++)\n      meta_for (long u")
    program = scheduled(text, "tile(t, 2, tail=peel); tile(i, 2, tail=peel)")
    check_program(program)
    phases = [stmt for stmt in walk_statements(program.body) if isinstance(stmt, Phase)]
    assert {loop.type for phase in phases for loop in phase.threads} == {ScalarType.LONG}
    assert "does not count `int`" in scheduled(text, "tile(u, 2)").reason


def test_what_an_iteration_hands_on_is_seen():
    text = SCALED.replace(
        "b[i * B + u] = 2 * a[i * B + u];",
        """{
            float sum = 0;
            for (int k = 0; k < 8; k++)
              sum = 2 * sum + a[i * B + u];
            b[i * B + u] = sum;
          }""",
    )
    assert "hand on `sum`" in scheduled(text, "tile(k, 2, layout=strided)").reason
    assert not isinstance(scheduled(text, "tile(k, 2)"), Refused)


def test_loops_of_equal_names_are_told_apart():
    program = scheduled(SHARED, "tile(u_1, 4)")
    phases = [stmt for stmt in walk_statements(program.body) if isinstance(stmt, Phase)]
    assert [phase.threads[0].var for phase in phases] == ["u_o", "u_1_o"]  # the same dimension of every phase


RUNS = {
    SCALED: (
        ["tile(u, 4)", "tile(u, 3, layout=strided, tail=peel)", "tile(i, 2)", "tile(i, 3, layout=strided)",
         "tile(i, 2, tail=peel); tile(u, 2, tail=peel)", "tile(u, 4); tile(u_i, 2); tile(u_o, 2)",
         "tile(u, 4); stride(2)", "tile(u, 1024)", "coarsen(u, 4)", "tile(u, 3); coarsen(u_o, 2)"],
        grid(n=[1, 7, 24], B=[1, 3, 4, 9]),
    ),
    TWO_PHASES: (
        ["tile(u, 4); tile(k, 2)", "tile(v, 2, layout=strided); tile(i, 2)", "tile(r, 2)", "tile(r, 3, tail=peel)",
         "tile(k, 3); tile(k_i, 2)", "tile(l, 2); tile(k, 4, tail=peel)", "interchange(k, l)",
         "tile(i, 2, layout=strided, tail=peel); tile(r, 2); tile(u, 2); tile(l, 3); cache(a)",
         "unroll_and_jam(k, 4)", "coarsen(u, 2); tile(k, 3); unroll_and_jam(k_o, 2)"],
        grid(n=[5, 12], B=[1, 4, 5], m=[0, 1, 3, 5]),
    ),
    MATMUL: (
        ["tile(v, 4); tile(u, 4, layout=strided); cache(a); cache(b)", "tile(v, 2, tail=peel); tile(z, 2)",
         "tile(j, 2); tile(i, 2, tail=peel)", "interchange(z, w); tile(w, 2)", "tile(k, 2); cache(b)",
         "coarsen(v, 4); interchange(z, w); unroll_and_jam(w, 4); cache(a); cache(b)", "coarsen(v, 2); coarsen(u, 4)"],
        [{"n": 12, "B0": b, "ub1": u, "s": s} for b, u, s in ((2, 3, 2), (4, 6, 1), (5, 5, 1), (3, 2, 3))],
    ),
    SHARED: (["tile(u, 4)", "tile(u, 3, layout=strided, tail=peel)", "stride(2)"], grid(n=[12, 20], B=[1, 4, 5])),
}  # fmt: skip


def test_everything_computes_what_it_did(tmp_path):
    cases = []
    for text, (schedules, points) in RUNS.items():
        for number, schedule in enumerate(schedules):
            program = scheduled(text, schedule)
            assert not isinstance(program, Refused), (schedule, program)
            cases.append(Case(text, points if number < 2 else points[-4:], program=program, label=schedule))
    assert run(cases, tmp_path, grid_limit=3) == {}
