"""Ending what is being computed when the time is up.

A strategy or a counter may take long on one program, and nothing inside of it asks for the time.  ``until(deadline)``
raises ``OutOfTimeError`` there when the deadline passes.  Only pure computations may be wrapped: what they leave
undone, nobody reads.  It needs the main thread and a free interval timer; elsewhere what was begun is finished.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LEAST = 0.001


class OutOfTimeError(BaseException):
    """The deadline has passed.  No ``Exception``: code that is being ended must not take it for a fault of its own."""


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Raise ``OutOfTimeError`` in the block when ``deadline`` (of ``time.monotonic``) passes; ``None``: never."""
    free = threading.current_thread() is threading.main_thread() and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    if deadline is None or not free:
        yield
        return

    def ended(_number: int, _frame: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, ended)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST, deadline - time.monotonic()))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
