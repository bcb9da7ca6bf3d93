"""Runs LLVM with switches (``python -m metafork.llvm.switched``): a request a line, and an answer a line, in JSON.

Every request gets a child of its own, which sets the switches before LLVM does anything; an assertion of LLVM ends the
child alone.  Where a system has no ``fork``, a request ends the process, and the next one starts another.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm

from metafork.llvm.ptx_target import TargetError, emit_ptx, optimize


def _answer(request: Mapping[str, Any]) -> dict[str, str]:
    for option in request["options"]:
        llvm.set_option("", option)
    try:
        ir = optimize(request["ir"], request["passes"], request["target"])
        return {"ir": ir, "ptx": emit_ptx(ir, request["target"])}
    except TargetError as error:
        return {"error": str(error)}


def _say(answer: Mapping[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _in_a_child(request: Mapping[str, Any]) -> None:
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _say(_answer(request))
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        _say({"error": f"LLVM does not end with {' '.join(request['options'])}"})


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends this process by closing its input
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for line in sys.stdin:
        request = json.loads(line)
        if not hasattr(os, "fork"):
            _say(_answer(request))
            return
        _in_a_child(request)


if __name__ == "__main__":
    main()
