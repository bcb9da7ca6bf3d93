"""Several inputs at a time, each in a process of its own; outcomes come in the order of the inputs."""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class EndedError(RuntimeError):
    """A process ended without an outcome: it was killed, say for the memory that it took."""


def in_order(work: Callable[[Item], Outcome], items: Sequence[Item], jobs: int) -> Iterator[Outcome]:
    """Yield ``work(item)`` for each item, ``jobs`` at a time; outcomes are pickled.

    What ``work`` raises is raised here, when the outcomes before it were yielded.  Whatever ends this iterator ends the
    processes, as SIGTERM does.  Raises ``EndedError`` too.
    """
    if min(jobs, len(items)) < 2:
        yield from map(work, items)
        return
    context = get_context("fork")  # nothing is imported twice, and no thread runs
    pending = deque(items)
    running: deque[tuple[ForkProcess, Connection]] = deque()
    try:
        while pending or running:
            alive = [process.sentinel for process, _ in running if process.is_alive()]
            if pending and len(alive) < jobs:
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_answer, args=(work, pending.popleft(), sender), daemon=True)
                process.start()
                sender.close()
                running.append((process, receiver))
                continue
            first, receiver = running[0]
            if receiver not in wait([receiver, *alive]):
                continue
            try:
                outcome = receiver.recv()
            except EOFError:
                first.join()
                raise EndedError(f"the process of an input ended with status {first.exitcode}") from None
            running.popleft()
            first.join()
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome
    finally:
        for process, _ in running:
            process.terminate()
        for process, _ in running:
            process.join()


def _answer(work: Callable[[Item], Outcome], item: Item, sender: Connection) -> None:
    """Send the outcome, or what was raised."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key's signal comes to all: the first process ends the others
    try:
        sender.send(work(item))
    except Exception as error:
        error.add_note(traceback.format_exc())
        sender.send(error)
        raise SystemExit(1) from error
