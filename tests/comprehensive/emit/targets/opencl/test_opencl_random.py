"""Random programs through the OpenCL back end: their drop-ins on PoCL, bit for bit."""

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.random_programs import SEEDS, check
from tests.sampling import sampled


@pytest.mark.parametrize("seed", sampled(SEEDS, 1))
@pytest.mark.slow
def test_random_programs(opencl, tmp_path, seed):
    check(seed, opencl, tmp_path, OPENCL)
