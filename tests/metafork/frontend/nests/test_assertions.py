"""Assertions in a schedule: facts about parameters, and others, which the report names."""

import os
import subprocess
import sys

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression

TEXT = """#include <assert.h>
static int valid(int k) { return k > 0; }
void f(int n, int m, int B, const float *x, float *y)
{
  int i, limit = 7;
  meta_schedule meta_block(B) {
    meta_for (i = 0; i < n; i++) {
      SAID
      float s = 0;
      for (int k = 0; k < m; k++) { INSIDE; s += x[i * m + k]; }
      y[i] = s;
    }
  }
}
"""
CASES = {
    "of a parameter": ("assert(m % 4 == 0);", ["m % 4 == 0"], 0),
    "of several": ("assert(m > 2 && n >= m && i < n);", ["m > 2", "n >= m"], 1),
    "what a compiler is told": ("__builtin_assume(m < 100);", ["m < 100"], 0),
    "behind a guard": ("if (i == 3) continue; assert(m > 1);", ["m > 1"], 0),
    "of an element": ("assert(x[i * m] >= 0);", [], 1),
    "of a variable of the loop, which the function declares": ("assert(i < 100);", [], 1),
    "of a variable of the thread": ("int t = m; assert(t > 0);", [], 1),
    "of a name that is hidden": ("{ int m = i; assert(m > 0); }", [], 1),
    "under a condition": ("if (n > 4) assert(m > 4);", [], 1),
    "of a function": ("assert(valid(m));", ["m > 0"], 0),
}


def schedule(said="", inside=""):
    text = TEXT.replace("SAID", said).replace("INSIDE", inside)
    return parse(Source("said.mf", text)).schedules[0]


@pytest.mark.parametrize("name", CASES)
def test_facts_are_assumptions(name):
    said, facts, left = CASES[name]
    found = schedule(said)
    before = [expression(one) for one in schedule().program.assumptions]
    assert [text for one in found.program.assumptions if (text := expression(one)) not in before] == facts
    assert len(found.left_out) == left


def test_an_assertion_in_a_serial_loop_is_left_out_and_said():
    text = TEXT.replace("SAID", "assert(m > 0);").replace("INSIDE", "assert(m < 1000)")
    assert [one.line for one in schedule("assert(m > 0);", "assert(m < 1000)").left_out] == [10]
    assert (
        "Kernels leave out what is asserted in line 10: it is not about parameters alone" in optimize(text).to_report()
    )


RUN = """
import sys, numpy as np, metafork
f = metafork.load(sys.argv[1], cpu=True).f
n, m = 8, int(sys.argv[2])
x, y = np.ones(n * m, np.float32), np.zeros(n, np.float32)
f(n, m, 4, x, y)
print(y.sum())
"""


@pytest.mark.parametrize(("m", "strict", "status"), [(3, "0", -6), (3, "1", -6), (4, "0", 0)])
@pytest.mark.sampled(1)
def test_where_a_fact_does_not_hold_the_serial_code_runs(m, strict, status):
    text = TEXT.replace("SAID", "assert(m % 4 == 0);").replace("INSIDE", "")
    environment = {**os.environ, "METAFORK_STRICT": strict}
    words = [sys.executable, "-c", RUN, text, str(m)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stdout == ("32.0\n" if status == 0 else "")
    assert ("Assertion" in done.stderr) is (status != 0 and strict == "0")
