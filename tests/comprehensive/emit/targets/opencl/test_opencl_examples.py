"""Examples through the OpenCL back end: kernels run by PoCL, bit for bit against the serial elision."""

import os
import subprocess

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.programs import CASES, EXAMPLES, program
from tests.comprehensive.metafork_command import METAFORK
from tests.sampling import sampled


@pytest.mark.parametrize(("file", "function", "points"), sampled(CASES, {"transpose"}))
def test_drop_ins_give_what_the_serial_elision_gives(opencl, tmp_path, file, function, points):
    counters = ("threads_per_block", "shared_memory")
    one = program((EXAMPLES / f"{file}.mf").read_text(), f"{file}.mf", tmp_path, OPENCL, counters=counters)
    done, said, calls = one.compare(opencl, function, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == one.launched(done)
    assert len(calls.ran) >= len(points)


@pytest.mark.slow
def test_the_makefile_of_the_examples(opencl, tmp_path):
    variables = {"LD_LIBRARY_PATH": str(opencl.directory), "STANDIN_POCL": str(opencl.vendor), "METAFORK_STRICT": "1"}
    variables["METAFORK_CACHE"] = "0"
    arguments = [f"METAFORK={METAFORK}", f"BUILD={tmp_path}", "BACKEND=opencl"]
    done = subprocess.run(
        ["make", "-C", EXAMPLES, "run-matadd", *arguments],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "agrees with the serial program, bit for bit" in done.stdout
    assert (tmp_path / "opencl" / "matadd" / "out" / "matadd_opencl.c").exists()
