"""Random programs through the OpenCL back end: their drop-ins on PoCL, bit for bit."""

import pytest

from comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.test_ptx_random import check


def test_one(opencl, tmp_path):
    assert len(set(check(3, opencl, tmp_path, OPENCL))) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many(opencl, tmp_path, seed):
    check(seed, opencl, tmp_path, OPENCL)
