"""Compilers that run side by side within the time that is left."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

from metafork.comprehensive.signals import OutOfTimeError

Left = Callable[[float], float]
"""How much time is left for all, if programs that run have taken so many seconds of the processors."""
LOOKS = 0.1
"""Seconds between two looks at the time that is left to a compiler."""


class BuildError(Exception):
    """A compiler did not accept a file, or there is none; the message has the command and the first lines it said."""


class Commands:
    """Runs commands in a directory, ``jobs`` at a time; those that run when no time is ``left`` are ended."""

    def __init__(self, directory: Path, jobs: int = 2, left: Left = lambda under_way: float("inf")) -> None:
        self.directory = directory
        self.jobs = jobs
        self.left = left
        self._running: set[int] = set()
        """Each leads a group of processes."""
        self._given_up = False

    def run_all(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """Run commands and return what each said.  Raises ``BuildError`` and ``OutOfTimeError``."""
        with ThreadPoolExecutor(max(1, self.jobs)) as pool:
            try:
                return list(pool.map(self.run, commands))
            except BaseException:
                self._given_up = True
                raise

    def run(self, command: Sequence[str]) -> str:
        """Run one command and return what it said on both streams.  Raises ``BuildError`` and ``OutOfTimeError``."""
        self._go_on()
        try:
            process = subprocess.Popen(
                command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as missing:
            raise BuildError(f"{command[0]} is not installed") from missing
        self._running.add(process.pid)
        try:
            said = self._said(process)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)  # what it started too
            process.communicate()
            raise
        finally:
            self._running.discard(process.pid)
        if process.returncode != 0:
            first = "\n".join(said.splitlines()[:12])
            raise BuildError(f"{shlex.join(command)}\n{first}")
        return said

    def _said(self, process: subprocess.Popen[str]) -> str:
        """Return what a command said once it has ended."""
        while True:
            try:
                return process.communicate(timeout=LOOKS)[0]
            except subprocess.TimeoutExpired:
                self._go_on()

    def _go_on(self) -> None:
        if self._given_up or self.left(_processor_seconds(frozenset(self._running))) <= 0:
            raise OutOfTimeError


def _processor_seconds(groups: frozenset[int]) -> float:
    """Return the processor time that groups of processes have taken so far, as far as the system tells."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat") if groups else ():
        with suppress(OSError):  # it ended
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) in groups:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
