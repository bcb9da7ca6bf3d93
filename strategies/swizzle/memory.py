"""A bound on memory that is kept: what would go over it is refused before it is allocated."""

from __future__ import annotations

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
