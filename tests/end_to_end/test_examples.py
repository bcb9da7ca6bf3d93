"""The most important test: every leaf of every example, reached by its machine, against the serial elision.

Each leaf runs as users get it, on the CPU build under AddressSanitizer, UndefinedBehaviorSanitizer and bounds checks,
at sizes that divide and sizes that do not, on the boundaries of its conditions; results are compared bit for bit.

The quick tests compile a sample, without optimization; the slow ones compile all as ``metafork verify`` does.
"""

from pathlib import Path

import pytest

from metafork.comprehensive.verification import Options, verify
from tests.sampling import sampled

DIRECTORY = Path(__file__).parents[2] / "examples"
EXAMPLES = {path.stem: (path, {}) for path in sorted(DIRECTORY.glob("*.mf"))} | {
    f"{name}, swizzled": (DIRECTORY / f"{name}.mf", {"counters": ["+bank_degree"], "strategies": ["+swizzle"]})
    for name in ("aos", "transpose")
}
EXAMPLES["jacobi1d, in the paper's order"] = (DIRECTORY / "jacobi1d.mf", {"order": "paper"})
SAMPLE = ("smooth",)
CASES = {name: (EXAMPLES[name], "-O0") for name in SAMPLE} | {
    f"{name}, -O1": (one, "-O1") for name, one in EXAMPLES.items()
}
POINTS = 24


@pytest.fixture(scope="module", params=sampled({name: (one,) for name, one in CASES.items()}, SAMPLE))
def verification(request):
    (path, chosen), level = request.param
    every = {"machine": "all", "strategies": ["+register_pressure"]} | chosen
    return verify(path, **every, options=Options(points=POINTS, jobs=2, optimization=level))


def test_nothing_fails(verification):
    assert [failure.text() for failure in verification.failures] == []
    assert verification.passed


def test_every_leaf_ran_at_many_points(verification):
    assert verification.complete
    assert verification.rows
    for row in verification.rows:
        # Leaves that want many threads in three dimensions have few small points.
        assert row.points >= POINTS * 3 // 4, f"{row.kernel} ran at {row.points} points"
        assert row.raced_points == row.points


def test_every_leaf_ran_at_special_points(verification):
    for row in verification.rows:
        assert any(mark.endswith("divides") for mark in row.marks), row.kernel
        assert any(mark.endswith("does not divide") for mark in row.marks), row.kernel
        assert any(mark.endswith("= 1") for mark in row.marks), row.kernel
        assert any("is equal to the least" in mark for mark in row.marks), row.kernel
    warps = {"whole warps", "whole warps and a part of one"}
    assert any(warps & row.marks for row in verification.rows)
    # Kernels that shuffle do nothing special elsewhere.
    moved = [row for row in verification.rows if row.schedule.startswith("aos") and "swizzle" in row.strategies]
    assert all(warps & row.marks for row in moved)
    below = {mark for row in verification.rows for mark in row.marks if "one below" in mark}
    assert below or len(verification.rows) == 1


def test_every_guard_is_proved(verification):
    for checks in verification.guards.values():
        assert [check.name for check in checks if check.verdict.value != "yes"] == []


TALKATIVE = """
#include <stdio.h>
void f(int n, int B, float a[n])
{
  assert(B >= 1);
  int d = n / B;
  printf("this is f\\n");
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        a[i * B + u] = 2 * a[i * B + u];
  }
}
"""


@pytest.mark.slow
def test_a_program_that_prints_and_asserts_without_its_header():
    found = verify(
        TALKATIVE,
        counters=["threads_per_block"],
        strategies=[],
        options=Options(points=6, optimization="-O0"),
        machine="all",
    )
    assert not found.failures, found.failures
    assert all(row.points for row in found.rows)


INDIRECT = """
void f(int n, int B, int next[n], float a[n], float b[n])
{
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        b[i * B + u] = a[1000 * next[i * B + u] + 100000];
  }
}
"""


@pytest.mark.slow
def test_points_at_which_the_reference_itself_fails_say_nothing_of_a_leaf():
    found = verify(
        INDIRECT,
        counters=["threads_per_block"],
        strategies=[],
        options=Options(points=4, optimization="-O0"),
        machine="all",
    )
    assert not found.failures, found.failures
    assert all(row.points == 0 for row in found.rows)
    assert any("the serial program itself leaves an array" in note and "--init" in note for note in found.notes)
