"""gpucc's eight optimizations as LLVM has them today, each with the switch that leaves it out (paper 002, section 3).

LLVM's switches belong to a process, and some are read once in its life.  Whoever leaves something out has it done by
a ``metafork.llvm.switched`` process, which makes a fresh child for every request; nothing that is compiled in this
process is touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from metafork.ir.ir_strategies import STANDARD
from metafork.llvm.ptx_target import (
    ExternalFunctionError,
    TargetError,
    emit_ptx,
    external_functions,
    optimize,
    parsed,
)

UNROLLING, INLINING = "unrolling", "inlining"
MEMORY_SPACES, ALIASES = "memory spaces", "memory-space aliases"
POINTERS, STRENGTH, REASSOCIATION = "pointer arithmetic", "straight-line strength", "global reassociation"
SPECULATION, DIVISIONS = "speculation", "64-bit divisions"

PASSES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        UNROLLING: ("loop-unroll", "loop-unroll-full"),
        INLINING: ("inline",),
        MEMORY_SPACES: ("infer-address-spaces",),
        POINTERS: ("separate-const-offset-from-gep",),
        STRENGTH: ("slsr",),
        REASSOCIATION: ("nary-reassociate",),
        # The one of the pipeline, and the one of the code generator, which has no name but this.
        SPECULATION: ("speculative-execution", "Speculatively execute instructions"),
        DIVISIONS: ("codegenprepare",),
    }
)
"""The passes of each optimization.  The one of ``DIVISIONS`` has other duties, which no switch parts from it."""

_OPTIONS = {ALIASES: ("-nvptx-traverse-address-aliasing-limit=0",)}
"""The space of a pointer that names it is known in any case; of one that does not, it is looked for along its casts."""

SHARING = "sharing"
_SHARING = ("gvn", "early-cse", "machine-cse", "licm", "early-machinelicm", "loop-reduce")
"""No optimization of gpucc's: what keeps a value for its next use instead of computing it again."""

STRAIGHT_LINE = (POINTERS, STRENGTH, REASSOCIATION)
"""The optimizations of straight-line code (section 3.4)."""

EVERY = (*PASSES, ALIASES)


def options(without: Collection[str]) -> tuple[str, ...]:
    """Return the options of LLVM that leave out optimizations: some of ``EVERY``, and ``SHARING``.

    Raises ``KeyError`` for other names.
    """
    unknown = set(without) - {*EVERY, SHARING}
    if unknown:
        raise KeyError(f"no optimization is called {', '.join(sorted(unknown))}")
    passes = [name for one in EVERY if one in without for name in PASSES.get(one, ())]
    passes += _SHARING if SHARING in without else ()
    others = [option for one in EVERY if one in without for option in _OPTIONS.get(one, ())]
    return (*([f"-opt-disable={','.join(passes)}"] if passes else []), *others)


def made_without(
    without: Collection[str], ir_text: str, passes: Sequence[str] = STANDARD, target: str = "sm_80"
) -> tuple[str, str]:
    """Return the IR after passes and its PTX, while LLVM leaves out optimizations in both.

    Raises ``ExternalFunctionError`` and ``TargetError``, also where LLVM ends the process that it is in.
    """
    if not without:
        ir = optimize(ir_text, passes, target)
        return ir, emit_ptx(ir, target)
    names = external_functions(parsed(ir_text))
    if names:
        raise ExternalFunctionError(names)
    answer = _SERVER.ask({"options": options(without), "ir": ir_text, "passes": list(passes), "target": target})
    return answer["ir"], answer["ptx"]


def ptx_without(without: Collection[str], ir_text: str, passes: Sequence[str] = STANDARD, target: str = "sm_80") -> str:
    """Return the PTX alone."""
    return made_without(without, ir_text, passes, target)[1]


class _Server(Struct):
    """The process that makes children; it ends when this one does, which closes its input."""

    command: tuple[str, ...] = (sys.executable, "-m", "metafork.llvm.switched")
    process: subprocess.Popen[str] | None = None
    owner: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: Mapping[str, object]) -> dict[str, str]:
        """Return what a child answers; raise what it raised as ``TargetError``."""
        with self.lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError as error:
                self._end()
                raise TargetError(f"the process that runs LLVM with switches ended: {error}") from error
            except BaseException:
                # Interrupted between a question and its answer: the next question would get this one's.
                self._end()
                raise
            if not line:
                self._end()
                raise TargetError("the process that runs LLVM with switches ended")
        answer: dict[str, str] = json.loads(line)
        if "error" in answer:
            raise TargetError(answer["error"])
        return answer

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            # It finds this very package, also where a program has extended its path.
            places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, env=places)
            self.owner = os.getpid()
        return self.process

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


_SERVER = _Server()
