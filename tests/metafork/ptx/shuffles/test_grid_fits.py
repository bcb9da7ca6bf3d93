"""32-bit thread numbers widened to addresses, under the condition that the grid is not too large, which is checked."""

import numpy as np
import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles import shuffle
from metafork.ptx.shuffles.shuffle import shuffle_text
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.snippets import assert_assembles, assert_same_results, deltas, kernel, run, shuffled

UNSIGNED = kernel("""
    mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s32 %r9, %r5, 1; mul.wide.u32 %rd6, %r9, 4;
    add.s64 %rd6, %rd1, %rd6; add.s32 %r9, %r5, 2; mul.wide.u32 %rd7, %r9, 4; add.s64 %rd7, %rd1, %rd7;
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; ld.global.nc.f32 %f3, [%rd7];
    ld.global.nc.f32 %f4, [%rd4+8];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f1, %f3, %f4; st.global.f32 [%rd5], %f1;
""")
"""a[i], a[i + 1u], a[i + 2u] with i = blockIdx.x * blockDim.x + threadIdx.x, and *(&a[i] + 2)."""


def test_unsigned_indices():
    after, report = shuffled(UNSIGNED)
    assert len(report.shuffles) == 3
    assert report.reuses == ()  # a[i + 2u] is *(&a[i] + 2) only where the sum does not wrap
    assert report.assumptions == ("signed-index", "grid-fits")
    for n in (100, 97):
        assert_same_results(UNSIGNED, after, n=n)
    _, without = shuffled(UNSIGNED, grid_fits=False)
    assert len(without.shuffles) < 3
    assert without.assumptions == ("signed-index",)


def test_larger_grids_make_the_original_loads(monkeypatch):
    monkeypatch.setattr(shuffle, "MOST_BLOCKS", 2)
    after, _ = shuffled(UNSIGNED)
    arguments = {"n": 128, "block": (32, 1, 1)}
    loads = {}
    for grid in ((2, 1, 1), (3, 1, 1)):
        assert run(UNSIGNED, grid=grid, **arguments) == run(after, grid=grid, **arguments)
        for text in (UNSIGNED, after):
            memory = GlobalMemory()
            a, b = memory.upload(np.ones(256, "f4")), memory.allocate(1024)
            done = run_kernel(parse(text), "k", grid, (32, 1, 1), [a, b, 96], memory=memory)
            loads[grid[0], text is after] = done.lanes["ld.global"]
    assert loads[2, True] < loads[2, False]
    assert loads[3, True] == loads[3, False]


def test_nothing_is_assumed_that_changes_nothing():
    _, report = shuffled(
        kernel("""
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
    """)
    )
    assert report.assumptions == ("signed-index",)


def test_sums_that_wrap_in_small_grids_are_none_of_it():
    # i - 1u is 2^32 - 1 in the first thread, and i + n may be anything.
    for index in ("add.s32 %r9, %r5, -1;", "add.s32 %r9, %r5, %r1;"):
        before = kernel(f"""
        {index} mul.wide.u32 %rd6, %r9, 4; add.s64 %rd6, %rd1, %rd6;
        mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;
        setp.gt.s32 %p2, %r1, 9999; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F800000;
        ld.global.nc.f32 %f1, [%rd4]; @%p2 ld.global.nc.f32 %f2, [%rd6+4]; add.f32 %f1, %f1, %f2;
        st.global.f32 [%rd5], %f1;
        """)
        _, report = shuffled(before)
        assert (deltas(report), report.reuses) == ([], ())


def test_one_less_needs_no_condition():
    """The lane before has the index one less in 32 bits, whatever the grid, and the guard keeps 0 out."""
    before = kernel("""
    add.s32 %r9, %r5, -1; mul.wide.u32 %rd6, %r9, 4; add.s64 %rd6, %rd1, %rd6;
    mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; ld.global.nc.f32 %f1, [%rd4]; mov.f32 %f2, 0f3F800000;
    setp.gt.u32 %p2, %r5, 0; @!%p2 bra JOIN; ld.global.nc.f32 %f2, [%rd6];
    JOIN: add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
    """)
    after, report = shuffled(before)
    assert (deltas(report), report.assumptions) == ([-1], ("signed-index",))
    assert "setp.lt.s32" not in after
    for n in (100, 97):
        assert_same_results(before, after, n=n)


TRITON = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry shifted(.param .u64 .ptr .global .align 1 in, .param .u64 .ptr .global .align 1 out, .param .u32 n)
.reqntid 64, 1, 1
{
    .reg .pred %p<5>; .reg .b32 %r<30>; .reg .f32 %f<9>; .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r2, 7;
    mov.u32 %r4, %tid.x; and.b32 %r5, %r4, 63;
    or.b32 %r6, %r3, %r5; or.b32 %r7, %r6, 64;
    setp.lt.s32 %p1, %r6, %r1; setp.lt.s32 %p2, %r7, %r1;
    mul.wide.s32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd4, 256;
    mov.u32 %r10, 0x0; @%p1 ld.global.b32 { %r10 }, [ %rd4 + 0 ];
    mov.u32 %r11, 0x0; @%p2 ld.global.b32 { %r11 }, [ %rd5 + 0 ];
    add.s64 %rd6, %rd4, 4; add.s64 %rd7, %rd5, 4;
    mov.u32 %r12, 0x0; @%p1 ld.global.b32 { %r12 }, [ %rd6 + 0 ];
    mov.u32 %r13, 0x0; @%p2 ld.global.b32 { %r13 }, [ %rd7 + 0 ];
    xor.b32 %r10, %r10, %r12; mul.lo.s32 %r11, %r11, 3; add.s32 %r11, %r11, %r13;
    add.s64 %rd8, %rd2, %rd3;
    @%p1 st.global.b32 [ %rd8 + 0 ], { %r10 };
    @%p2 st.global.b32 [ %rd8 + 256 ], { %r11 };
    ret;
}
"""


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 200, 301, 384])
def test_a_masked_kernel_of_blocks(n):
    result = shuffle_text(TRITON)
    (report,) = result.kernels
    assert deltas(report) == [1, 1]
    assert_assembles(result.text)
    memories = []
    for text in (TRITON, result.text):
        memory = GlobalMemory()
        a = memory.upload(np.random.default_rng(3).integers(0, 2**31, n + 1, dtype=np.int32))
        b = memory.allocate(4 * n)
        done = run_kernel(parse(text), "shifted", (3,), (64,), [a, b, n], memory=memory)
        memories.append(memory.snapshot())
    assert memories[0] == memories[1]
    if n >= 64:
        assert done.lanes["ld.global"] < 2 * n
