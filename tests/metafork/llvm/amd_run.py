"""Runs the IR of AMD's target on the host: its intrinsics are functions of the test, every thread a Python thread.

Address spaces, the calling convention and the scopes of fences are taken out of the text; all else is as compiled.
"""

import ctypes
import itertools
import re
import threading

import llvmlite.binding as llvm

from metafork.ir.kernel import Space
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import parsed
from metafork.llvm.targets import Amdgpu
from tests.metafork.host_run import CTYPES
from tests.metafork.host_scalars import with_host_scalars

_INT = ctypes.c_int32


class _Gpu:
    """What the intrinsics answer: to a thread by its numbers, with one block at a time."""

    def __init__(self, grid, block, wave):
        self.here = threading.local()
        self.block, self.wave = block, wave
        # hidden_block_count_x at 0, 32 bits each; hidden_group_size_x at 12, 16 bits each.
        self.implicit = b"".join(n.to_bytes(4, "little") for n in grid)
        self.implicit += b"".join(n.to_bytes(2, "little") for n in block)
        count = block[0] * block[1] * block[2]
        self.barrier = threading.Barrier(count)
        self.waves = {first: threading.Barrier(min(wave, count - first)) for first in range(0, count, wave)}
        self.words = [0] * count

    def functions(self):
        """Return the intrinsics by name, with the types of result and arguments."""
        found = {"s.barrier": (None, (), lambda: self.barrier.wait())}
        for axis, letter in enumerate("xyz"):
            found[f"workitem.id.{letter}"] = (_INT, (), lambda axis=axis: self.here.thread[axis])
            found[f"workgroup.id.{letter}"] = (_INT, (), lambda axis=axis: self.here.group[axis])
        found["implicitarg.ptr"] = (ctypes.c_void_p, (), lambda: ctypes.cast(self.implicit, ctypes.c_void_p).value)
        found["mbcnt.lo"] = (_INT, (_INT, _INT), lambda mask, base: base + min(self._lane(), 32))
        found["mbcnt.hi"] = (_INT, (_INT, _INT), lambda mask, base: base + max(self._lane() - 32, 0))
        found["ds.bpermute"] = (_INT, (_INT, _INT), self._permuted)
        return found

    def _number(self):
        x, y, z = self.here.thread
        return (z * self.block[1] + y) * self.block[0] + x

    def _lane(self):
        return self._number() % self.wave

    def _permuted(self, address, word):
        number = self._number()
        first = number // self.wave * self.wave
        self.words[number] = word
        self.waves[first].wait()
        found = self.words[first + address // 4 % self.wave]
        self.waves[first].wait()
        return found


def run_as_amd(kernel, arguments, grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, wave=64):
    """Run a whole grid as ``run_on_host`` does."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = module_text(kernel, Amdgpu())
    parsed(text)
    text = re.sub(r',? ?addrspace\(\d\)|amdgpu_kernel |syncscope\("\w+"\) ', "", text)
    text = text.replace("amdgcn-amd-amdhsa", llvm.get_process_triple()).replace("llvm.amdgcn.", "amd.")
    text = text.replace("external global [0 x i8]", f"internal global [{max(shared_bytes, 1)} x i8] zeroinitializer")
    gpu, kept = _Gpu(grid, block, wave), []
    for name, (result, types, function) in gpu.functions().items():
        kept.append(ctypes.CFUNCTYPE(result, *types)(function))
        llvm.add_symbol(f"amd.{name}", ctypes.cast(kept[-1], ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    pointers = [memory for memory in kernel.memories if memory.space is Space.GLOBAL]
    types = [CTYPES[scalar.type] for scalar in kernel.scalars] + [ctypes.c_void_p] * len(pointers)
    numbers = with_host_scalars(kernel, arguments)
    values = [numbers[scalar.name] for scalar in kernel.scalars]
    values += [arguments[memory.name].ctypes.data for memory in pointers]
    call = ctypes.CFUNCTYPE(None, *types)(engine.get_function_address(kernel.name))

    def thread(index, group):
        gpu.here.thread, gpu.here.group = index, group
        call(*values)

    for z, y, x in itertools.product(*map(range, reversed(grid))):
        inside = itertools.product(*map(range, reversed(block)))
        threads = [threading.Thread(target=thread, args=((u, v, w), (x, y, z))) for w, v, u in inside]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
