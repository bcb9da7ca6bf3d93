"""Runs a kernel's LLVM IR on the host: compiled by LLVM's JIT, every thread of a block a Python thread."""

import ctypes
import itertools
import threading

import llvmlite.binding as llvm
import numpy as np

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Space
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import run_pipeline
from metafork.llvm.targets import Host
from tests.metafork.host_scalars import with_host_scalars

CTYPES = {
    ScalarType.BOOL: ctypes.c_uint8,
    ScalarType.CHAR: ctypes.c_int8,
    ScalarType.SIGNED_CHAR: ctypes.c_int8,
    ScalarType.UNSIGNED_CHAR: ctypes.c_uint8,
    ScalarType.SHORT: ctypes.c_int16,
    ScalarType.UNSIGNED_SHORT: ctypes.c_uint16,
    ScalarType.INT: ctypes.c_int32,
    ScalarType.UNSIGNED_INT: ctypes.c_uint32,
    ScalarType.LONG: ctypes.c_int64,
    ScalarType.UNSIGNED_LONG: ctypes.c_uint64,
    ScalarType.LONG_LONG: ctypes.c_int64,
    ScalarType.UNSIGNED_LONG_LONG: ctypes.c_uint64,
    ScalarType.FLOAT: ctypes.c_float,
    ScalarType.DOUBLE: ctypes.c_double,
}


def run_on_host(kernel, arguments, grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, pipeline=(), named=True):
    """Run a whole grid; ``arguments`` maps names to numbers and (in place) to contiguous NumPy arrays."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(module_text(kernel, Host(llvm.get_process_triple()), named=named))
    module.verify()
    if pipeline:
        module = run_pipeline(module, pipeline)
        module.data_layout = ""
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointers = [memory for memory in kernel.memories if memory.space is Space.GLOBAL]
    types = [CTYPES[scalar.type] for scalar in kernel.scalars] + [ctypes.c_void_p] * len(pointers)
    numbers = with_host_scalars(kernel, arguments)
    values = [numbers[scalar.name] for scalar in kernel.scalars]
    values += [arguments[memory.name].ctypes.data for memory in pointers]
    hidden = [ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p, ctypes.c_void_p]
    function = ctypes.CFUNCTYPE(None, *hidden, *types)(engine.get_function_address(kernel.name))
    barrier = threading.Barrier(block[0] * block[1] * block[2])
    wait = ctypes.CFUNCTYPE(None)(barrier.wait)
    for z, y, x in itertools.product(*map(range, reversed(grid))):
        shared = np.zeros(max(shared_bytes, 1), np.uint8)

        def thread(index, at=(x, y, z), shared=shared):
            special = (ctypes.c_uint32 * 12)(*index, *at, *block, *grid)
            function(special, shared.ctypes.data, ctypes.cast(wait, ctypes.c_void_p), *values)

        threads = [
            threading.Thread(target=thread, args=((u, v, w),))
            for w, v, u in itertools.product(*map(range, reversed(block)))
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
