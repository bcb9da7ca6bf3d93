"""Examples through the OpenCL back end: kernels run by PoCL, bit for bit against the serial elision."""

import pytest

from comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.programs import EXAMPLES, launched, program
from tests.comprehensive.emit.targets.test_ptx_examples import POINTS
from tests.sampling import sampled


@pytest.mark.parametrize("name", sampled(POINTS.keys(), {"transpose"}))
def test_drop_ins_give_what_the_serial_elision_gives(opencl, tmp_path, name):
    counters = ("threads_per_block", "shared_memory")
    one = program((EXAMPLES / f"{name}.mf").read_text(), f"{name}.mf", tmp_path, OPENCL, counters=counters)
    points = POINTS[name]
    done, said, calls = one.compare(opencl, name, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == launched(done)
    assert len(calls.ran) >= len(points)
