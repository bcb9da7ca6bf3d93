"""The NVPTX target of LLVM: pass pipelines on IR text, and PTX.

A pipeline is a tuple of pass names, run in order.  ``O1``, ``O2`` and ``O3`` stand for LLVM's own pipelines;
``O3-rolled`` is ``O3`` without unrolling, ``O3-function`` the part of ``O3`` that simplifies functions one by one,
before loops become vectors or copies; all other names are single passes, spelled as LLVM spells them (``sroa``,
``instcombine``, ``sink``).  LLVM's process-wide options are never touched: all that is said here is said to a pass
manager or to a target machine of one call.
"""

from __future__ import annotations

import faulthandler
import os
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby

import llvmlite.binding as llvm

from metafork.ir.ir_strategies import STANDARD
from metafork.llvm.loop_exits import keep_counters, leave_once

TRIPLE = "nvptx64-nvidia-cuda"
_OLDEST = ("sm_20", "sm_21", "sm_30", "sm_35")
# Level, whether loops are unrolled, and whether the whole pipeline is meant.
_PIPELINES = {
    "O1": (1, True, True),
    "O2": (2, True, True),
    "O3": (3, True, True),
    "O3-rolled": (3, False, True),
    "O3-function": (3, True, False),
}
_PASSES = {
    "adce": "aggressive_dce",
    "aggressive-instcombine": "aggressive_instcombine",
    "dce": "dead_code_elimination",
    "dse": "dead_store_elimination",
    "instcombine": "instruction_combine",
    "instnamer": "instruction_namer",
    "jump-threading": "jump_threading",
    "lcssa": "lcssa",
    "loop-deletion": "loop_deletion",
    "loop-reduce": "loop_strength_reduce",
    "loop-rotate": "loop_rotate",
    "loop-simplify": "loop_simplify",
    "loop-unroll": "loop_unroll",
    "newgvn": "new_gvn",
    "reassociate": "reassociate",
    "sccp": "sccp",
    "simplifycfg": "simplify_cfg",
    "sink": "sinking",
    "sroa": "sroa",
}
_ABORTING = frozenset({"loop-reduce"})
"""Passes with assertions that code was seen to break: LLVM 22's loses the closed form of loops with several exits, and
of those whose counters are used behind them.

They run in a process apart where some loop is such.
"""


class TargetError(ValueError):
    """LLVM cannot do what was asked; the message says why."""


class ExternalFunctionError(TargetError):
    """A kernel calls functions that LLVM has no exact code for; ``names`` are theirs, sorted."""

    def __init__(self, names: Sequence[str], what: str = "no exact PTX without the CUDA device library") -> None:
        self.names = tuple(names)
        super().__init__(f"{what}: {', '.join(self.names)}")


_HINT = re.compile(r", !llvm\.loop !\d+")


@cache  # constants of LLVM that take a millisecond to make; there are a few targets, and two levels
def _machine(target: str, level: int) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if not target.startswith("sm_"):
        raise TargetError(f"{target} is no target; targets look like sm_80")
    try:
        machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=target, features="", opt=level)
    except RuntimeError as error:
        raise TargetError(f"LLVM has no target {target}: {error}") from error
    if level:
        _machine(target, 0)  # looks whether there is such a target, and in the least time
        return machine
    # For a processor that it does not know LLVM makes code all the same, in the oldest version of PTX.
    nothing = str(machine.emit_assembly(llvm.parse_assembly(f'target triple = "{TRIPLE}"')))
    if ".version 3.2\n" in nothing and target not in _OLDEST:
        raise TargetError(f"LLVM has no target {target}")
    return machine


def parsed(ir_text: str) -> llvm.ModuleRef:
    """Parse and verify IR text; raises ``TargetError``."""
    try:
        module = llvm.parse_assembly(ir_text)
        module.verify()
    except RuntimeError as error:
        raise TargetError(str(error)) from error
    return module


def run_pipeline(module: llvm.ModuleRef, pipeline: Sequence[str], target: str = "sm_80") -> llvm.ModuleRef:
    """Run a pipeline on a module for a GPU of NVIDIA's, as ``run_passes`` does."""
    return run_passes(module, pipeline, _machine(target, 3))


def run_passes(module: llvm.ModuleRef, pipeline: Sequence[str], machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Run a pipeline on a module for a target, and return what it makes of it; the module itself is used up.

    Raises ``TargetError`` for an unknown name of a pass, and where LLVM stops itself at a pass.
    """
    module.data_layout = str(machine.target_data)
    for single, names in groupby(pipeline, key=_PASSES.__contains__):
        if single:
            module = _after_passes(module, tuple(names), machine)
            continue
        for name in names:
            if name not in _PIPELINES:
                raise TargetError(f"no pass or pipeline is called {name}")
            level, unrolling, whole = _PIPELINES[name]
            if not unrolling:
                module = _without_hints(module)
            options = llvm.create_pipeline_tuning_options(speed_level=level)
            options.loop_unrolling = unrolling
            builder = llvm.create_pass_builder(machine, options)
            if whole:
                builder.getModulePassManager().run(module, builder)
            else:
                _run(builder.getFunctionPassManager(), module, builder)
    return module


def _without_hints(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """Return a module whose loops ask for nothing: LLVM complains where a pipeline does not do what they ask for."""
    text = str(module)
    return llvm.parse_assembly(_HINT.sub("", text)) if _HINT.search(text) else module


def _after_passes(module: llvm.ModuleRef, names: Sequence[str], machine: llvm.TargetMachine) -> llvm.ModuleRef:
    aborting = _ABORTING & {*names}
    first = min(map(names.index, aborting), default=len(names))
    if names[:first]:
        _run_passes(module, names[:first], machine)
    if not aborting:
        return module
    passed, before = partial(_passed, module, names[first:], machine), str(module)
    text = passed() if keep_counters(before) and leave_once(before) else _made_apart(passed)
    if text is None:
        raise TargetError(f"LLVM does not end {', '.join(sorted(aborting))} on its loops")
    return llvm.parse_assembly(text)


def _run_passes(module: llvm.ModuleRef, names: Sequence[str], machine: llvm.TargetMachine) -> None:
    passes = llvm.create_new_function_pass_manager()
    for name in names:
        getattr(passes, f"add_{_PASSES[name]}_pass")()
    _run(passes, module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3)))


def _run(passes: llvm.FunctionPassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _passed(module: llvm.ModuleRef, names: Sequence[str], machine: llvm.TargetMachine) -> str:
    _run_passes(module, names, machine)
    return str(module)


def _made_apart(make: Callable[[], str]) -> str | None:
    """Return a text that a process of its own makes: LLVM's assertions end the process they are in.

    ``None`` where that happened.
    """
    if not hasattr(os, "fork"):
        return make()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                pipe.write(make())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    return text if os.waitpid(child, 0)[1] == 0 else None


def optimize(ir_text: str, pipeline: Sequence[str] = STANDARD, target: str = "sm_80") -> str:
    """Return the IR after a pipeline, as text; raises ``TargetError``."""
    return str(run_pipeline(parsed(ir_text), pipeline, target))


def external_functions(module: llvm.ModuleRef) -> tuple[str, ...]:
    """Return the names of the functions that a module calls and does not define, intrinsics left out, sorted."""
    return tuple(
        sorted(
            function.name
            for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        )
    )


def emit_ptx(ir_text: str, target: str = "sm_80") -> str:
    """Return the PTX of IR, which should be optimized before; ``target`` is ``sm_75`` or later.

    Raises ``ExternalFunctionError`` where a function without exact code is called, ``TargetError`` for a target that
    LLVM does not know or IR that it rejects.
    """
    module = parsed(ir_text)
    names = external_functions(module)
    if names:
        raise ExternalFunctionError(names)
    return ptx_of(module, target)


def ptx_of(module: llvm.ModuleRef, target: str = "sm_80", level: int = 3) -> str:
    """Return the PTX of a module, which is used up, external calls included (they are counted, not run).

    ``level`` is that of the code generator; at 0 it keeps the order of the IR and adds no transformation of its own.
    """
    machine = _machine(target, level)
    module.data_layout = str(machine.target_data)
    return _for_its_parameters(str(machine.emit_assembly(module)))


_ENTRY = re.compile(r"\.entry[^(]*\((?P<parameters>[^)]*)\)")
_PARAMETER = re.compile(r"\.param(?: \.align \d+)? \.[a-z]+(?P<bits>\d+)[^,\[]*(?:\[(?P<count>\d+)\])?")
_FEW_BYTES = 4352
"""Bytes of parameters that kernels have in every version of PTX; more need 8.1."""


def _for_its_parameters(text: str) -> str:
    """Return PTX in a version that allows as many bytes of parameters as its kernels have."""
    if text.count(".param") * 8 <= _FEW_BYTES:
        return text
    most = max((parameter_bytes(entry["parameters"]) for entry in _ENTRY.finditer(text)), default=0)
    version = re.search(r"^\.version (\d+)\.(\d+)", text, re.MULTILINE)
    if most <= _FEW_BYTES or version is None or (int(version[1]), int(version[2])) >= (8, 1):
        return text
    return text.replace(version[0], ".version 8.1", 1)


def parameter_bytes(parameters: str) -> int:
    """Return the bytes of a kernel's parameters, as PTX declares them."""
    total = 0
    for one in _PARAMETER.finditer(parameters):
        size = int(one["bits"]) // 8
        total = -(-total // size) * size + size * int(one["count"] or 1)
    return total
