"""Which loads become shuffles: values of every width, and what index arithmetic may be taken for exact."""

import numpy as np

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, pair, shuffled


def test_neighbouring_loads_become_a_shuffle():
    before = pair()
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert report.loads == 2
    assert_same_results(before, after)


def test_loads_four_gibibytes_apart_are_different():
    # The anchor's second fault: 32-bit addresses.
    before = kernel("""
    ld.global.nc.f32 %f1, [%rd4];
    add.s64 %rd6, %rd4, 4294967300;
    ld.global.nc.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert deltas(report) == []
    memory = GlobalMemory()
    a = memory.upload(np.arange(64, dtype=np.float32))
    memory.upload(np.full(64, 1000, np.float32), address=a + 2**32)
    b = memory.allocate(256)
    run_kernel(parse(after), "k", (1,), (32,), [a, b, 32], memory=memory)
    assert memory.read(b, 32, "f4").tolist() == [1000 + i for i in range(32)]


def test_doubles_take_two_shuffles():
    # The anchor's third fault: an invalid shfl.b32 of 64 bits.
    before = kernel("""
    mul.wide.s32 %rd3, %r5, 8; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.nc.f64 %fd1, [%rd4];
    ld.global.nc.f64 %fd2, [%rd4+-8];
    ld.global.nc.f64 %fd3, [%rd4+16];
    add.f64 %fd4, %fd1, %fd2; add.f64 %fd4, %fd4, %fd3;
    st.global.f64 [%rd5], %fd4;
    """)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 2]
    assert after.count("shfl.sync") == 4
    assert_same_results(before, after, element="f8", size=1024)


def test_solver_finds_a_delta_that_no_normal_form_shows():
    before = kernel("""
    xor.b32 %r9, %r5, 1431655765; xor.b32 %r10, %r9, -1; xor.b32 %r10, %r10, 1431655765; not.b32 %r10, %r10;
    mul.wide.u32 %rd9, %r5, 4; add.s64 %rd9, %rd1, %rd9;
    mul.wide.u32 %rd10, %r10, 4; add.s64 %rd10, %rd1, %rd10;
    ld.global.f32 %f1, [%rd9];
    ld.global.f32 %f2, [%rd10];
    add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert len(report.reuses) == 1
    assert_same_results(before, after)


class TestSignExtension:
    """base + 4·sext(x + 1) is base + 4·sext(x) + 4 only if x + 1 does not wrap."""

    SHARED_BASE = pair(nc=".nc")
    SEPARATE = kernel("""
    add.s32 %r9, %r5, 1; mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6;
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd7];
    add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
    """)
    UNSIGNED = SHARED_BASE.replace("mul.wide.s32", "mul.wide.u32")
    BITS = SHARED_BASE.replace("mul.wide.s32", "xor.b32 %r5, %r5, 0; shl.b32 %r5, %r5, 2; mul.wide.s32")

    def test_the_assumption_is_named_and_on_by_default(self):
        _, report = shuffled(self.SHARED_BASE)
        assert deltas(report) == [1]
        assert report.assumptions == ("signed-index",)

    def test_without_it_only_what_cannot_wrap_is_proved(self):
        _, report = shuffled(self.SHARED_BASE, signed_index=False, grid_fits=False)
        assert deltas(report) == []
        assert report.assumptions == ()
        _, report = shuffled(self.SHARED_BASE, signed_index=False)
        assert (deltas(report), report.assumptions) == ([1], ("grid-fits",))
        # The same 32-bit sum in both lanes is equal whether it wraps or not.
        assert deltas(shuffled(self.SEPARATE, signed_index=False)[1]) == [1]

    def test_it_does_not_hold_for_unsigned_or_untyped_arithmetic(self):
        assert deltas(shuffled(self.UNSIGNED, grid_fits=False)[1]) == []
        assert deltas(shuffled(self.BITS, grid_fits=False)[1]) == []

    def test_a_bound_on_the_block_excludes_a_wrap(self):
        # 2^23 · tid wraps at 1024 threads, and cannot at 256; .maxntid bounds the product of the extents only.
        before = """
        mul.lo.u32 %r9, %r4, 8388608; mul.wide.u32 %rd6, %r9, 1; mad.wide.u32 %rd6, %r4, 4, %rd6;
        mul.wide.u32 %rd7, %r4, 8388612; sub.s64 %rd6, %rd6, %rd7; add.s64 %rd7, %rd4, %rd6;
        ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """
        assert deltas(shuffled(kernel(before))[1]) == []
        assert deltas(shuffled(kernel(before, directives=".reqntid 256"))[1]) == [1]
        assert deltas(shuffled(kernel(before, directives=".maxntid 16, 16, 1"))[1]) == [1]
        assert deltas(shuffled(kernel(before, directives=".maxntid 32, 32, 1"))[1]) == []

    def test_a_thread_index_alone_cannot_wrap(self):
        before = kernel("""
        mul.wide.u32 %rd6, %r4, 4; add.s64 %rd7, %rd1, %rd6;
        ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        assert deltas(shuffled(before, signed_index=False)[1]) == [1]
