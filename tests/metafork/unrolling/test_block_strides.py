"""Loops that go by the places of a block: which run four iterations at once, and that they compute what they did."""

import pytest

from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.marks import with_results
from metafork.ir.messages.source import Source
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run

TEXT = """
void {name}(int m, int n, int B, const float x[m][n], float y[m][n])
{{
  meta_schedule {{
    meta_for (int i = 0; i < m; i++)
      meta_for (int u = 0; u < B; u++) {{
        float sum = u;
        for ({head}) {{
          {body}
        }}
        y[i][u % n] = sum;
      }}
  }}
}}
"""
SUM = "sum += x[i][k];"
BY_PLACES = "int k = u; k < n; k += B"


def text(name, head=BY_PLACES, body=SUM):
    return TEXT.format(name=name, head=head, body=body)


FOUR = {
    "sums": text("sums"),
    "tests": text("tests", body="float t = x[i][k]; if (t > sum) { sum = t * 2; }"),
    "a limit below 0": text("below", "int k = u - B; k < m - n; k += B", "sum += k;"),
    "from_elsewhere": text("from_elsewhere", "int k = 3 * u; k < n; k += B"),
}
BY_ONES = """
void by_ones(int m, int n, int B, const float x[m][n], float y[m][n])
{
  meta_schedule {
    meta_for (int i = 0; i < m; i++) {
      float s[B];
      meta_for (int u = 0; u < B; u++) {
        float sum = 0;
        for (int k = 0; k < n / B; k++)
          sum = sum * 2 + x[i][k * B + u];
        s[u] = sum;
      }
      for (int h = 512; h > 0; h /= 2)
        meta_for (int u = 0; u < B; u++)
          if (u < h && u + h < B) s[u] += s[u + h];
      meta_for (int u = 0; u < 1; u++)
        y[i][0] = s[0];
    }
  }
}
"""
OTHERS = {
    "another step": text("k", "int k = u; k < n; k += m"),
    "each element": text("k", "int k = 0; k < n; k++"),
    "every B-th element, without a tree": text("k", "int k = 0; k < n / B; k++", "sum += x[i][k * B + u];"),
    "every other element": text("k", "int k = 0; k < n / 2; k++", "sum += x[i][k * 2];"),
    "downwards": text("k", "int k = n - 1; k >= 0; k -= B"),
    "ends early": text("k", body=SUM + "if (sum > 9) break;"),
    "a loop in it": text("k", body="for (int j = 0; j <= k; j++) sum += x[i][j];"),
    "within a loop": text("k", "int j = 0; j < 2; j++", f"for ({BY_PLACES}) {SUM}"),
    "a limit that the loop changes": text("k", "int k = u; k < end; k += B", "sum += k; end = end - 1;").replace(
        "float sum = u;", "float sum = u; int end = n;"
    ),
    "a limit that changes": text("k", "int k = u; k < x[i][0]; k += B", "sum += k;"),
}


def strides(source):
    """How many loops of a kernel go on from where a loop before, or a scalar, has come to."""
    loops = ir.walk_statements(lower(parse(Source("case.mf", source)).schedules[0].program, "k").body)
    return sum(isinstance(one, ir.For) and one.init is None for one in loops)


@pytest.mark.parametrize("name", FOUR)
def test_loops_by_the_places_of_a_block(name):
    assert strides(FOUR[name]) == 2


def test_loops_by_ones_of_blocks_that_add_up_in_steps():
    body = lower(parse(Source("case.mf", BY_ONES)).schedules[0].program, "k").body
    steps = [one.step.value for one in ir.walk_statements(body) if isinstance(one, ir.For) and one.step is not None]
    assert steps.count(ir.IntConst(4)) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_stay(name):
    assert strides(OTHERS[name]) == 0


def test_they_compute_what_the_program_means(tmp_path):
    points = [{"m": 2, "n": n, "B": places} for places in (1, 4, 32) for n in (32, 33, 96, 127, 128, 300)]
    cases = []
    for name, source in {**FOUR, "by ones": BY_ONES}.items():
        program = parse(Source("case.mf", source)).schedules[0].program
        cases += [Case(source, points, program=with_results(program, {0: count}), label=name) for count in (1, 4)]
    assert run(cases, tmp_path) == {}
