"""Stop a search by time or by the keyboard and keep what it found."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 0.25
"""Seconds after which the error is raised once more: Python drops one raised in a finalizer."""


class TimeLimitError(Exception):
    """The time limit was reached."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``TimeLimitError`` in the block after so many seconds, also in the midst of a long step of it.

    For the main thread of a process on a system with interval timers.
    """
    if seconds is None:
        yield
        return
    if seconds == 0:
        raise TimeLimitError

    def stop(_: int, __: FrameType | None) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
