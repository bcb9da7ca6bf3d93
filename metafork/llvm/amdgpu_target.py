"""The AMDGPU target of LLVM: object code of kernels, and what it takes of the GPU.

The objects are relocatable ELF files with one kernel each, as ``clang -c`` makes them; ``ld.lld -shared`` makes of them
what ``hipModuleLoad`` takes.  A kernel's arguments are those of the CUDA text, in order, and the implicit ones of code
object version 5 and later.  llvmlite may be built without this target: that is a ``TargetError``, as is a GPU that LLVM
does not know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm
from msgspec import Struct

from metafork.ir.ir_strategies import SHUFFLE, IrStrategy, passes_of
from metafork.ir.kernel import Kernel
from metafork.llvm.amdgpu_notes import Resources, resources_of
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import ExternalFunctionError, TargetError, external_functions, parsed, run_passes
from metafork.llvm.targets import AMDGPU_TRIPLE, Amdgpu

DEFAULT = "gfx90a"


class AmdgpuObject(Struct, frozen=True):
    """``code`` is an ELF file, ``ir`` the optimized IR that it was made of."""

    ir: str
    code: bytes
    resources: Resources


@cache  # as for NVPTX: constants of LLVM, a few of them
def _machine(target: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if not re.fullmatch(r"gfx[0-9]+[0-9a-f]{2}", target):
        raise TargetError(f"{target} is no GPU of AMD's; targets look like gfx90a")
    try:
        machine = llvm.Target.from_triple(AMDGPU_TRIPLE).create_target_machine(cpu=target, features="", opt=3)
    except RuntimeError as error:
        raise TargetError(f"this build of llvmlite has no AMDGPU target, so no object code for {target}") from error
    # For a processor unknown to it LLVM makes code, and may stop the process at a kernel; the flags name none then.
    nothing = machine.emit_object(llvm.parse_assembly(f'target triple = "{AMDGPU_TRIPLE}"'))
    if nothing[48] == 0:
        raise TargetError(f"LLVM has no target {target}")
    return machine


def amdgpu_object(kernel: Kernel, ir_strategies: Sequence[IrStrategy] = (), target: str = DEFAULT) -> AmdgpuObject:
    """Return the object code of a kernel under the pipelines of its leaf.

    Raises ``ExternalFunctionError`` where a function without exact code is called, ``TargetError`` where LLVM does not
    know the GPU or any of AMD's, and for warp shuffles in place of loads, which are found in PTX.
    """
    machine = _machine(target)
    if SHUFFLE in ir_strategies:
        raise TargetError("warp shuffles in place of loads are found in PTX")
    module = parsed(module_text(kernel, Amdgpu()))
    names = external_functions(module)
    if names:
        raise ExternalFunctionError(names, "no exact code without AMD's device library")
    module = run_passes(module, passes_of(ir_strategies), machine)
    text = str(module)
    # The code generator transforms the IR that it is given.
    code = machine.emit_object(module)
    return AmdgpuObject(text, code, resources_of(code, kernel.name))
