"""Bounds on processor time for what once took far too long: they grow with how slow the machine is in the same run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

REFERENCE_SECONDS = 0.04
"""What ``slowness`` counts takes on the machines for which the numbers of seconds were chosen."""


def slowness() -> float:
    """Return how often the reference's time this machine takes for a loop now, at least 1."""
    began, total = time.process_time(), 0
    for number in range(1_500_000):
        total += number & 3
    return max(1.0, (time.process_time() - began) / REFERENCE_SECONDS)


def assert_within(taken: float, seconds: float) -> None:
    """Fail when what took so much processor time takes more than so many seconds of a reference machine.

    The machine's speed is measured only when that time is over: what is quick pays nothing.
    """
    assert taken < seconds or taken < seconds * slowness(), f"{taken:.1f} s"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail when the block takes more processor time than so many seconds of a reference machine."""
    began = time.process_time()
    yield
    assert_within(time.process_time() - began, seconds)
