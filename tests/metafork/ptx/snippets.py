"""Small kernels for tests: a body on top of the usual index arithmetic, and comparing runs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.text.parser import parse

PTXAS = shutil.which("ptxas")

REGISTERS = """
    .reg .pred %p<10>; .reg .f32 %f<40>; .reg .f64 %fd<10>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
"""

INDEX = """
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
"""
"""%rd4 is the address of a[i], %rd5 of b[i], i = %r5 < n."""


def kernel(body, *, pointer="", target="sm_80", version="8.0", directives="", index=INDEX, extra=""):
    """Return a module with one kernel ``k(a, b, n)``; the label DONE ends it."""
    parameters = f".param .u64 {pointer} a, .param .u64 {pointer} b, .param .u32 n"
    return f"""
.version {version}
.target {target}
.address_size 64
{extra}
.visible .entry k({parameters}) {directives}
{{
{REGISTERS}{index}{body}
DONE:
    ret;
}}
"""


PAIR = """
    ld.global{nc}.f32 %f1, [%rd4];
    {between}
    ld.global{nc}.f32 %f2, [%rd4+4];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd5], %f3;
"""


def pair(between="", *, nc="", **options):
    """Return a kernel of two neighbouring loads with something between them."""
    return kernel(PAIR.format(between=between, nc=nc), **options)


def shuffled(text, **options):
    """Return (transformed text, report of the only kernel)."""
    result = shuffle_text(text, Options(**options))
    (report,) = result.kernels
    return result.text, report


def deltas(report):
    return [shuffle.delta for shuffle in report.shuffles]


def run(
    text, *, n=100, grid=(3, 1, 1), block=(40, 1, 1), aliased=False, seed=0, size=2048, element=np.float32, order=None
):
    """Run ``k`` on random data; return all of memory."""
    random = np.random.default_rng(seed)
    memory = GlobalMemory()
    a = memory.upload(random.standard_normal(size).astype(element))
    b = a if aliased else memory.upload(random.standard_normal(size).astype(element))
    base = 4096  # so that negative offsets stay inside
    run_kernel(parse(text), "k", grid, block, [a + base, b + base, n], memory=memory, limit=20_000, order=order)
    return memory.snapshot()


BLOCKS = ((32, 1, 1), (40, 1, 1), (96, 1, 1), (7, 5, 1), (33, 3, 1), (16, 4, 2), (1, 40, 1))


def assert_assembles(text):
    """Ask ptxas, where there is one, whether it takes the text."""
    if PTXAS is None:
        return
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "kernel.ptx"
        source.write_text(text)
        command = [PTXAS, "-arch=sm_80", str(source), "-o", str(Path(directory) / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def assert_same_results(before, after, **launch):
    """Both texts leave the same memory for blocks of many shapes, and ptxas takes the new one."""
    assert_assembles(after)
    for block in BLOCKS:
        assert run(before, block=block, **launch) == run(after, block=block, **launch), block
