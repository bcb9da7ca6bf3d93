"""Whatever the front end is given, it says diagnostics or succeeds: no traceback, no hang, no gigabyte.

The inputs are functions of their numbers (``bad_input``), so that a number is all that a finding needs.  A batch is a
process of its own: a crash of a native library ends no more than that.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.bad_input import GIGABYTE, bad_input

ROOT = Path(__file__).parents[2]
BATCH = 250
QUICK_BATCHES = 4
"""Batches in every test run: 1,000 inputs, some 45 s of processor time."""
ALL_BATCHES = 80
"""Batches behind the marker ``slow``: 20,000 inputs."""


def tried(first, count, *more, seconds=900):
    command = [sys.executable, "-m", "tests.fuzz.bad_input", str(first), str(count), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    faults = [line for line in lines if "fault" in line]
    assert not faults, "\n".join(f"input {fault['number']}: {fault['fault']}\n{fault['trace']}" for fault in faults)
    assert done.returncode == 0, done.stderr[-2000:]
    assert lines[-1]["kilobytes"] * 1024 < GIGABYTE
    counts = lines[-1]["counts"]
    assert sum(counts.values()) == count
    return counts


def check_batch(number):
    counts = tried(number * BATCH, BATCH)
    # Neither everything nor nothing is refused: the inputs reach deep enough.
    assert counts["refused"] > BATCH // 4
    assert counts["parsed"] > 0


@pytest.mark.parametrize("number", range(QUICK_BATCHES))
def test_bad_input(number):
    check_batch(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(QUICK_BATCHES, ALL_BATCHES))
def test_bad_input_all(number):
    check_batch(number)


def test_what_parses_is_optimized():
    counts = tried(100_000, 60, "optimize")
    assert counts["optimized"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(110_000, 112_000, 100))
def test_what_parses_is_optimized_all(first):
    tried(first, 100, "optimize")


def test_an_input_is_a_function_of_its_number():
    assert bad_input(7) == bad_input(7)
    assert len({bad_input(number) for number in range(100)}) > 90
