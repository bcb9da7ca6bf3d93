"""Ending what is being computed, by a signal or because the time is up.

A strategy or a counter may take long on one program, and nothing inside of it asks for the time.  ``until(deadline)``
raises ``OutOfTimeError`` there when the deadline passes.  Only pure computations may be wrapped: what they leave
undone, nobody reads.  It needs the main thread and a free interval timer; elsewhere what was begun is finished.

Where a run is worth nothing without what the block computes (the parsed file, the code of leaves that were found), it
has ``least`` seconds of processor time in any case: as much on a busy machine as on an idle one.

A handler may run between any two instructions of Python, also of a library that is just handing an object to C.  An
exception there would have the object counted wrongly, be taken for another one, or be dropped with a traceback.
Handlers of this module wait until such code is over.  Where what a deadline raises is dropped all the same, it is
raised again.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_LEAST = 0.001
_AGAIN = 0.25
"""Seconds until a deadline that passed is told again: more than it takes to leave a computation."""

_LONGEST = 1e8
"""Seconds for which a timer can be set everywhere."""

_NOT_WITHIN = frozenset({"z3", "llvmlite", "ctypes", "importlib", "weakref", "_weakrefset", "contextlib"})
"""Packages that would be left half done."""


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
    block, over = sys._getframe(2), False  # behind ``__enter__``

    def ended(_number: int, frame: FrameType | None) -> None:
        lacking = max(enough - time.process_time(), deadline - time.monotonic() - _LEAST)
        if over:
            return
        if lacking <= 0.0 and _may_end(frame, block):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            raise OutOfTimeError
        signal.setitimer(signal.ITIMER_REAL, min(max(_LEAST, lacking), _LONGEST))

    before = signal.signal(signal.SIGALRM, ended)
    try:
        signal.setitimer(signal.ITIMER_REAL, min(max(_LEAST, deadline - time.monotonic()), _LONGEST))
        yield
    finally:
        over = True  # before the timer is stopped: a signal that comes between must not start it again
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def unwind_when_asked_to_end() -> None:
    """Have signals that ask this process to end unwind it, so that files under temporary names are removed.

    SIGINT raises ``KeyboardInterrupt``, SIGTERM and SIGHUP ``SystemExit`` with the status that shells give.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:  # `nohup` ignores one
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    if _may_end(frame, None):
        _raise(number)
    # A timer of processor time: the one of real time may be in use, and code that is not over is running.
    signal.signal(signal.SIGVTALRM, lambda _, later: _end(number, later))
    signal.setitimer(signal.ITIMER_VIRTUAL, _LEAST)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _may_end(frame: FrameType | None, block: FrameType | None) -> bool:
    """Say whether an exception from ``frame`` reaches ``block`` (the process) and leaves nothing between half done."""
    of_collector = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None and frame is not block:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in _NOT_WITHIN or frame.f_code.co_name == "__del__" or frame.f_code in of_collector:
            return False
        frame = frame.f_back
    return True
