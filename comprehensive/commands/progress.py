"""One line on a terminal about work that takes more than a second; it is gone when the work is done."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from metafork.comprehensive.streams import moves_its_cursor

if TYPE_CHECKING:
    from rich.live import Live

    from metafork.comprehensive.tree.schedule_tree import Statistics


class Progress:
    """Shows what it is told, on standard error where that is a terminal, from the second second on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + 1.0
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def explored(self, name: str, statistics: Statistics) -> None:
        """Say how far the tree of a schedule is."""
        if time.monotonic() >= self._next:
            self.show(f"{name}: {statistics.nodes} nodes, {statistics.paths} paths")

    def show(self, what: str) -> None:
        """Say what is done now, and for how long all has run."""
        if not moves_its_cursor(sys.stderr):
            return
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            # Without a thread: compilers and LLVM run in processes that are forked.
            self._live = Live(
                console=Console(stderr=True, highlight=False, force_terminal=True), auto_refresh=False, transient=True
            )
            self._live.start()
        now = time.monotonic()
        self._next = now + 0.2
        self._live.update(f"{what}, {now - self._began:.0f} s", refresh=True)
