"""Sums, numbers of 16 bits and complex ones, through the back ends that a C compiler alone builds."""

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.constructs import scattering
from tests.comprehensive.constructs.dot_product import DOT, QUICK
from tests.comprehensive.constructs.half_programs import CASES
from tests.comprehensive.emit.targets.programs import PTX, program
from tests.comprehensive.emit.targets.small_programs import COMPLEX

POINTS = [("", {"n": n, "B": B}) for n, B in ((1, 1), (5, 4), (100, 32), (3000, 7))]


BACKENDS = pytest.mark.parametrize(("backend", "fixture"), [(PTX, "driver"), (OPENCL, "opencl")], ids=["ptx", "opencl"])


@BACKENDS
@pytest.mark.sampled(1)
def test_other_back_ends(backend, fixture, tmp_path, request):
    one = program(DOT, "dot.mf", tmp_path, backend, **QUICK)
    points = [*POINTS, ("grid_dim_x=1", {"n": 100, "B": 8})]
    done, said, _ = one.compare(request.getfixturevalue(fixture), "dot", points)
    assert said == ["same"] * len(points), done.stderr
    assert {name.split("_leaf")[0] for name in one.launched(done)} == {"dot_k0", "dot_k1"}
    assert len(one.launched(done)) == 2 * len(points)


@BACKENDS
@pytest.mark.sampled(1)
def test_terms_in_any_order(backend, fixture, tmp_path, request):
    """The driver compares with the bound."""
    one = program(scattering.SCATTER, "scatter.mf", tmp_path, backend, **scattering.QUICK)
    done, said, _ = one.compare(request.getfixturevalue(fixture), "scatter", scattering.POINTS)
    assert said == ["same"] * len(scattering.POINTS), done.stderr
    assert len(one.launched(done)) == len(scattering.POINTS)


@BACKENDS
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(2)
def test_small_floats_have_the_bits_of_the_serial_code(backend, fixture, name, tmp_path, request):
    text, points = CASES[name]
    one = program(text, "half.mf", tmp_path, backend, counters=("shared_memory",), strategies=("caching",))
    done, said, _ = one.compare(request.getfixturevalue(fixture), name, points)
    assert said == ["same"] * len(points), done.stderr
    assert len(one.launched(done)) == len(points) * len(one.result.schedules)


@BACKENDS
@pytest.mark.sampled(1)
def test_complex_numbers_have_the_bits_of_the_serial_code(backend, fixture, tmp_path, request):
    one = program(COMPLEX, "complex.mf", tmp_path, backend, counters=("shared_memory",), strategies=("caching",))
    points = [("", {"n": n, "m": m, "B": B}) for n, m, B in ((1, 1, 1), (37, 20, 8), (100, 3, 32))]
    done, said, _ = one.compare(request.getfixturevalue(fixture), "rotated", points)
    assert said == ["same"] * len(points), done.stderr
    assert len(one.launched(done)) == len(points) * len(one.result.schedules)
