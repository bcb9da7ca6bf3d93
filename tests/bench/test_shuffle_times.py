"""The times of PTXASW's figures, on the stand-in for CUDA's driver, whose kernels the PTX interpreter runs."""

import sys
from pathlib import Path

import pytest

from tests.comprehensive.emit.targets.standin import standin

BENCH = Path(__file__).parents[2] / "bench"
SMALL = """
import sys
sys.path[:0] = {places!r}
import shuffle_times
from tests.metafork.ptx.kernels import CASES
shuffle_times.SHAPES = {{2: (130, 6), 3: (130, 5, 6)}}
shuffle_times.SECONDS = 0
driver = shuffle_times.Driver()
case = next(one for one in CASES if one.name == {name!r})
print(list(shuffle_times.measured(driver, case)))
"""


@pytest.mark.parametrize("name", ["jacobi", "gradient"])
def test_versions_are_compiled_launched_and_compared(tmp_path, name):
    script = tmp_path / "script.py"
    script.write_text(SMALL.format(places=[str(BENCH), str(BENCH.parent)], name=name))
    with standin(tmp_path) as driver:
        done, calls = driver.run([sys.executable, script], log=tmp_path / "log")
    assert done.stdout.strip() == "['original', 'no-load', 'no-corner', 'full']", done.stderr
    assert calls.violations == []
    assert len(calls.ran) >= 4
