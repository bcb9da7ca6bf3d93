"""A bound on memory that is kept: what would go over it is refused before it is allocated.

Large arrays are counted against the bound before they are made, so that the message can name them.  What is not
counted is held back by the operating system's limit on the data of the process (``bounded_process``, Linux only).
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

MEGABYTE = 1 << 20


class DoesNotFitError(Exception):
    """The problem needs more memory than was allowed; the message says what for, and how much."""


class MemoryBudget:
    """Counts the large arrays of a search, in bytes, against a bound."""

    def __init__(self, megabytes: int | None) -> None:
        self._bound = None if megabytes is None else megabytes * MEGABYTE
        self._held = 0
        self.peak = 0

    def reserve(self, size: int, purpose: str) -> None:
        """Count ``size`` bytes; raises ``DoesNotFitError`` when the bound would be passed."""
        held = self._held + size
        if self._bound is not None and held > self._bound:
            message = (
                f"{purpose} would take {size / MEGABYTE:.1f} MB on top of {self._held / MEGABYTE:.1f} MB, more than "
                f"the {self._bound // MEGABYTE} MB allowed; raise --memory, lower the level of a hole, or make the "
                "arrays smaller"
            )
            raise DoesNotFitError(message)
        self._held = held
        self.peak = max(self.peak, held)

    def release(self, size: int) -> None:
        """Stop counting ``size`` bytes."""
        self._held -= size


@contextmanager
def bounded_process(megabytes: int | None) -> Iterator[None]:
    """Let the data of this process grow by so many megabytes at most while the block runs.

    Raises ``DoesNotFitError`` where an allocation fails.  Without a bound, or where the system does not say how much
    data a process has, only the counted arrays are bounded.
    """
    if megabytes is None:
        yield
        return
    # The matrix library takes its buffers at its first product, and ends the process when it gets none.
    square = np.ones((256, 256))
    float(np.linalg.norm(square @ square))
    single = square.astype(np.float32)
    float(np.linalg.norm(single @ single))
    held = _data_of_process()
    if held is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = held + megabytes * MEGABYTE
    if hard != resource.RLIM_INFINITY:
        bound = min(bound, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    except MemoryError as error:
        why = str(error) or "no memory left"
        message = f"more than the {megabytes} MB allowed ({why}); raise --memory or lower the level of a hole"
        raise DoesNotFitError(message) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_of_process() -> int | None:
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    match = re.search(r"^VmData:\s+(\d+) kB", status.read_text(), re.MULTILINE)
    return None if match is None else int(match.group(1)) * 1024
