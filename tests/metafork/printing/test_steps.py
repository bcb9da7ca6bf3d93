"""Comments that say what a kernel does step by step stand where it does that, and there alone."""

import re
from pathlib import Path

import pytest

from metafork import optimize
from metafork.comprehensive.emit.leaf_code import leaf_code
from metafork.ir.messages.source import Source

EXAMPLES = Path(__file__).parents[3] / "examples"
COPIED = """
void f(int n, int B, float x[n], float y[n]) {
  meta_schedule cache(%s) {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++)
        %s
  }
}
"""
CASES = {
    "nothing is copied": (COPIED % ("", "y[i * B + u] = x[i * B + u];"), []),
    "what is read": (
        COPIED % ("x", "y[i * B + u] = x[i * B + (B - 1 - u)];"),
        ["copy x to shared memory", "copy y from shared memory"],
    ),
    "what is written": (
        COPIED % ("x", "x[i * B + u] = 2 * x[i * B + u];"),
        ["copy x to shared memory", "compute", "copy x from shared memory"],
    ),
    "two arrays": (
        COPIED % ("x, y", "y[i * B + u] += x[i * B + (B - 1 - u)] + 1;"),
        ["copy x to shared memory", "copy y to shared memory", "compute", "copy y from shared memory"],
    ),
}


def said(text):
    """Return the comments inside of a kernel, in order."""
    return re.findall(r"^ +/\* (.*) \*/$", text, re.MULTILINE)


@pytest.mark.parametrize("name", CASES)
def test_each_step_is_said_once(name):
    text, expected = CASES[name]
    (tree,) = optimize(Source("f.mf", text), counters=("threads_per_block",), strategies=(), static={}).schedules
    assert said(leaf_code(tree.leaves[0].own).text) == expected


def test_a_product_has_its_steps_in_every_kernel():
    (tree,) = optimize(EXAMPLES / "matmul.mf", static="auto").schedules
    steps = ["load c into registers", "copy a to shared memory", "copy b to shared memory", "compute"]
    found = [said(leaf_code(one).text) for one in tree.leaves[0].variants]
    assert found[0] == [*steps, "store c from registers"]
    assert all(one[:4] == steps for one in found[:4])
