"""Random programs through the PTX back end: their drop-ins behind the stand-in driver, bit for bit."""

import pytest

from tests.comprehensive.emit.targets.random_programs import SEEDS, check
from tests.sampling import sampled


@pytest.mark.parametrize("seed", sampled(SEEDS, 2))
@pytest.mark.sampled(1)
def test_random_programs(driver, tmp_path, seed):
    check(seed, driver, tmp_path)
