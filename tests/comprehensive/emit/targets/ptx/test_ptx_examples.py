"""Examples through the PTX back end: kernels run by the PTX interpreter behind a stand-in driver, bit for bit."""

import pytest

from tests.comprehensive.emit.targets.programs import CASES, EXAMPLES, program
from tests.sampling import sampled


def test_all_examples_are_there():
    assert {file for file, _, _ in CASES.values()} == {path.stem for path in EXAMPLES.glob("*.mf")}


@pytest.mark.parametrize(("file", "function", "points"), sampled(CASES, {"smooth", "heat3d", "matmul", "moments"}))
@pytest.mark.sampled(2)
def test_drop_ins_give_what_the_serial_elision_gives(driver, tmp_path, file, function, points):
    counters = ("threads_per_block", "shared_memory")
    one = program((EXAMPLES / f"{file}.mf").read_text(), f"{file}.mf", tmp_path, counters=counters)
    assert not list(tmp_path.glob("*.cu"))
    done, said, calls = one.compare(driver, function, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == one.launched(done)
    assert len(calls.ran) >= len(points)
