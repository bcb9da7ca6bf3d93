"""Copies on the device and which side is newer: whatever is read was written last, with little memory as with much."""

from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, build, run

HARNESS = Path(__file__).with_name("residents.cu")


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    return build(tmp_path_factory.mktemp("residents") / "residents", [HARNESS], "-O1", *SANITIZE)


@pytest.mark.parametrize("memory", [(), (3,), (1,), (0,), (4, 150)])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_was_written_last(harness, seed, memory):
    done = run([harness, seed, *memory])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
