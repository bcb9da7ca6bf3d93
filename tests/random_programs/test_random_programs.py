"""Random programs: each optimized, its tree's guards proved, all its leaves run against the serial elision.

A few of each kind are a sample for quick runs (some kinds in ``test_batch``); the others are slow.
"""

import pytest

from tests.random_programs.checking import check
from tests.random_programs.generator import file_text, function_text

REGRESSIONS = {
    3: "window loads may read elements in gaps that other blocks write, and must not use them",
    25: "private elements past the end of a row are another thread's",
    426: "private windows start from grid variables that are decoded at block level",
    21: "granularity compared accesses to arrays of different dimensions",
}


def assert_leaves_ran(rows):
    """All leaves have run but a few, of which it is said why."""
    idle = [row for row in rows if not row.points]
    assert all(row.not_run or row.left_out for row in idle)
    assert len(idle) <= 1 + len(rows) // 8


@pytest.mark.parametrize(
    ("kind", "first"), [("plain", 10), ("structures", 5012), ("mixed", 9000), ("constructs", 11001)]
)
@pytest.mark.slow
def test_a_few_random_programs(kind, first):
    found = check(list(range(first, first + 3)), kind=kind, optimization="-O0")
    assert [failure.text() for failure in found.failures] == []
    assert {row.schedule for row in found.rows} >= {f"input_k{number}" for number in range(3)}
    assert_leaves_ran(found.rows)
    for checks in found.guards.values():
        assert [check.name for check in checks if check.verdict.value == "no"] == []
    assert kind != "structures" or any("swizzle" in row.strategies for row in found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 104, 8))
def test_random_programs(first):
    seeds = list(range(first, first + 8))
    found = check(seeds)
    assert [failure.text() for failure in found.failures] == []
    assert {row.schedule for row in found.rows} == {f"input_k{number}" for number in range(len(seeds))}
    assert_leaves_ran(found.rows)
    for checks in found.guards.values():
        assert [check.name for check in checks if check.verdict.value == "no"] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5000, 5032, 8))
def test_random_programs_with_structures(first):
    found = check(list(range(first, first + 8)), kind="structures")
    assert [failure.text() for failure in found.failures] == []
    assert any("swizzle" in row.strategies for row in found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(9000, 9032, 8))
def test_random_programs_with_unsigned_and_mixed_indices(first):
    found = check(list(range(first, first + 8)), kind="mixed")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(11000, 11008, 4))
def test_random_programs_with_functions_and_early_ends(first):
    found = check(list(range(first, first + 4)), kind="constructs")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12000, 12016, 4))
def test_random_programs_with_sums_in_a_stated_order(first):
    found = check(list(range(first, first + 4)), kind="sums")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(14000, 14016, 4))
def test_random_programs_with_pointers(first):
    found = check(list(range(first, first + 4)), kind="pointers")
    assert [failure.text() for failure in found.failures] == []
    assert all(row.points for row in found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", [16000, 16016, 16024, 16032])  # groups in which loops are cut into strips
def test_random_programs_with_loops_in_strips(first):
    found = check(list(range(first, first + 8)), kind="strips")
    assert [failure.text() for failure in found.failures] == []
    assert any("strip_mining" in row.strategies for row in found.rows)
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(18000, 18024, 4))
def test_random_programs_over_elements(first):
    found = check(list(range(first, first + 4)), kind="elements")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(70000, 70024, 4))
def test_random_programs_with_what_programs_have_beside_their_work(first):
    found = check(list(range(first, first + 4)), kind="everyday")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(90000, 90024, 4))
def test_random_programs_in_forms_of_c(first):
    found = check(list(range(first, first + 4)), kind="forms")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(110000, 110008, 2))
def test_random_programs_with_tables_of_rows(first):
    found = check(list(range(first, first + 2)), kind="tables")
    assert [failure.text() for failure in found.failures] == []
    assert_leaves_ran(found.rows)


@pytest.mark.parametrize("seed", REGRESSIONS, ids=str)
@pytest.mark.slow
def test_programs_that_once_failed(seed):
    assert [failure.text() for failure in check([seed], points=24, optimization="-O0").failures] == []


def test_equal_seeds_give_equal_programs():
    assert function_text(7, "f") == function_text(7, "f")
    assert len({function_text(seed, "f") for seed in range(50)}) == 50
    assert file_text([1, 2]).count("meta_schedule") == 2
