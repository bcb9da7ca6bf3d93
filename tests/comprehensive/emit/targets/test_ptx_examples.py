"""Examples through the PTX back end: kernels run by the PTX interpreter behind a stand-in driver, bit for bit."""

import pytest

from tests.comprehensive.emit.targets.programs import EXAMPLES, launched, program

POINTS = {
    "smooth": [("", {"n": 1003, "s": 3, "B": 32}), ("Z=50", {"n": 517, "s": 5, "B": 33}),
               ("Z=3", {"n": 67, "s": 1, "B": 7})],
    "jacobi1d": [("", {"T": 3, "N": 102, "s": 2, "B": 25}), ("Z=4", {"T": 1, "N": 33, "s": 1, "B": 31})],
    "blur": [("", {"height": 19, "width": 35, "B0": 4, "B1": 7, "s": 2}),
             ("Z=9", {"height": 11, "width": 13, "B0": 3, "B1": 3, "s": 1})],
    "matvec": [("", {"m": 37, "n": 29, "B": 16}), ("Z=2", {"m": 5, "n": 7, "B": 5})],
    "heat3d": [("", {"n": 13, "steps": 2, "B0": 2, "B1": 3, "B2": 5})],
    "transpose": [("", {"N": 24, "s": 2, "B0": 4, "B1": 3}), ("Z=2", {"N": 9, "s": 1, "B0": 3, "B1": 3})],
    "matadd": [("", {"N": 21, "B0": 7, "B1": 3})],
    "center": [("", {"n": 101, "B": 17})],
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_drop_ins_give_what_the_serial_elision_gives(driver, tmp_path, name):
    counters = ("threads_per_block", "shared_memory")
    one = program((EXAMPLES / f"{name}.mf").read_text(), f"{name}.mf", tmp_path, counters=counters)
    assert not list(tmp_path.glob("*.cu"))
    points = POINTS[name]
    done, said, calls = one.compare(driver, name, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == launched(done)
    assert len(calls.ran) >= len(points)
