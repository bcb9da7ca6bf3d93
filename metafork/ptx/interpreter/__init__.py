"""Runs PTX on NumPy lanes: one function, ``run_kernel``, and the memory it works on.

    memory = GlobalMemory()
    a = memory.upload(np.arange(1024, dtype=np.float32))
    b = memory.allocate(4 * 1024)
    run_kernel(parse(text), "scale", grid=(4, 1, 1), block=(256, 1, 1), args=[a, b, 1024], memory=memory)
    memory.read(b, 1024, np.float32)

Blocks run in batches, all threads of a batch in lockstep where their control flow agrees; among threads at different
places those at the least one run first, so that lanes reconverge as early as they can.  Barriers, shared (static and
dynamic), local, constant and parameter memory, shuffles, votes, atomics and device functions are there.  Arithmetic is
exact: round to nearest even, no contraction.  An opcode or form that is not known raises ``PtxError`` with its line
and column; so do misaligned and out-of-range accesses, barriers that some thread never reaches, and shuffles whose
mask names a lane that is elsewhere.
"""

from metafork.ptx.interpreter.machine import Launch, run_kernel
from metafork.ptx.interpreter.memory import AccessError, GlobalMemory

__all__ = ["AccessError", "GlobalMemory", "Launch", "run_kernel"]
