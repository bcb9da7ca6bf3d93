"""Accesses that race, and what is a read of an element that was copied: ``metafork/race.h``."""

from pathlib import Path

import pytest

from tests.runtime.compiling import build, run

HARNESS = Path(__file__).with_name("race.cc")
WRITTEN, READ = "a[0] is written by thread 0 of block 0", "a[0] is read by thread 0 of block 0"


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    return build(tmp_path_factory.mktemp("race") / "race", [HARNESS], "-O0", "-DMETAFORK_CHECK")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("0.0w 0.1r", WRITTEN),
        ("0.0w / 0.1r", ""),
        ("0.0r 0.1w", READ),
        ("0.0r / 0.1w", ""),
        ("0.0w / 1.1r", WRITTEN),
        ("0.0w 0.1w", WRITTEN.replace("written", "written too")),
        ("0.0r 0.1r 1.0r", ""),
        ("0.0r 0.1r 1.0w", "a[0] is read by several other threads"),
        # A copy is a read once it is read, made when it was copied.
        ("0.0c 0.1w", ""),
        ("0.0c 0.0s 0.1w", READ),
        ("0.0c / 0.0s 0.1w", ""),
        ("0.0c 0.1w / 0.0s", WRITTEN.replace("thread 0", "thread 1")),
        ("0.0w 0.1c / 0.1s", WRITTEN),
        ("0.0w 0.1c / 0.1w / 0.1s", WRITTEN),
        ("0.0w / 0.1c / 0.1w / 0.1s", ""),
        ("0.0s", "uninitialised: s[0] is read before any thread of the block has written it"),
    ],
)
def test_accesses_that_race(harness, steps, said):
    done = run([harness, 2, 2, *steps.split()])
    assert said in done.stderr
    assert (done.returncode == 0) == (not said)
    assert done.stdout == ("" if said else "end\n")
