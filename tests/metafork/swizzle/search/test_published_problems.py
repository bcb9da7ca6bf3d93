"""Every problem of the papers' tables that they solved, and the larger ones: all solutions, counted and executed."""

import pytest

from tests.metafork.swizzle.running import all_solutions, check_c, check_cuda, problem_of

PROBLEMS = [
    ("crc", {"s": 1}, 1),
    ("crc", {"s": 2}, 2),
    ("crc", {"s": 3}, 2),
    ("crc", {"s": 4}, 5),
    ("crc", {"s": 5}, 2),
    ("crc", {"s": 7}, 2),
    ("crc", {"s": 8}, 8),
    ("crc", {"s": 9}, 2),
    ("crc", {"s": 11}, 2),
    ("crc", {"s": 13}, 2),
    ("crc", {"s": 6, "level": 4}, 2),
    ("crc", {"s": 10, "level": 4}, 2),
    ("sum", {"s": 2}, 2),
    ("sum", {"s": 4}, 11),
    ("sum", {"s": 7}, 2),
    ("rcr", {"n": 1}, 1),
    ("crc", {"n": 1}, 6),
    ("rcr", {"s": 3}, 3),
    ("rcr", {"s": 7}, 3),
    ("stencil1d", {"k": 3}, 2),
    ("conv1d", {"k": 3}, 1),
    ("conv1d", {"k": 11}, 1),
    ("stencil2d", {"k": 3}, 4),
    ("stencil2d", {"k": 7}, 4),
    ("stencil2d", {"k": 9}, 1),
    ("stencil2d", {"k": 11, "far": 8}, 1),
    ("conv2d", {"k": 3}, 1),
    ("polynomial", {"w": 4}, 2),
    ("polynomial", {"w": 32, "level": 1}, 2),
    ("polynomial_wide", {}, 2),
    ("polynomial_shared", {}, 8),
]


LARGE = [
    ("crc", {"s": 6, "level": 4}),
    ("polynomial", {"w": 32, "level": 1}),
    ("crc", {"s": 10, "level": 4}),
    ("rcr", {"s": 7}),
    ("stencil2d", {"k": 11, "far": 8}),
    ("polynomial_shared", {}),
]
"""Those that run with the slow tests."""


def case_of(name, constants, count):
    marks = pytest.mark.slow if (name, constants) in LARGE else ()
    return pytest.param(name, constants, count, marks=marks, id=f"{name}-{constants}-{count}".replace(" ", ""))


@pytest.mark.parametrize(("name", "constants", "count"), [case_of(*one) for one in PROBLEMS])
@pytest.mark.sampled(2)
def test_all_solutions_are_found_and_compute_the_goal(name, constants, count, tmp_path):
    problem = problem_of(name, **constants)
    found = all_solutions(problem)
    assert len(found) == count
    assert len({tuple(sorted(one.options.items())) for one in found}) == count
    check_cuda(problem, found, tmp_path)


def test_the_gaussian_filter_on_vector_registers(tmp_path):
    problem = problem_of("hvx_gaussian")
    found = all_solutions(problem)
    assert len(found) == 4
    check_c(problem, found, tmp_path)


@pytest.mark.parametrize(
    ("name", "constants"), [("crc", {"s": 4}), ("conv1d", {}), ("stencil2d", {}), ("polynomial_wide", {})]
)
def test_plain_c_computes_the_goal(name, constants, tmp_path):
    problem = problem_of(name, **constants)
    check_c(problem, all_solutions(problem), tmp_path)
