"""Ending what is being computed when the time is up.

A strategy or a counter may take long on one program, and nothing inside of it asks for the time.  ``until(deadline)``
raises ``OutOfTimeError`` there when the deadline passes.  Only pure computations may be wrapped: what they leave
undone, nobody reads.  It needs the main thread and a free interval timer; elsewhere what was begun is finished.

Where a run is worth nothing without what the block computes (the parsed file, the code of leaves that were found), it
has ``least`` seconds of processor time in any case: as much on a busy machine as on an idle one.
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
def until(deadline: float | None, least: float = 0.0) -> Iterator[None]:
    """Raise ``OutOfTimeError`` in the block when ``deadline`` (of ``time.monotonic``) passes; ``None``: never.

    The block has ``least`` seconds of processor time before that.
    """
    free = threading.current_thread() is threading.main_thread() and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    if deadline is None or not free:
        yield
        return

    enough = time.process_time() + least

    def ended(_number: int, _frame: object) -> None:
        lacking = enough - time.process_time()
        if lacking <= 0.0:
            raise OutOfTimeError
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST, lacking))

    before = signal.signal(signal.SIGALRM, ended)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST, deadline - time.monotonic()))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
