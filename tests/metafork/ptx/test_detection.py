"""Which loads become shuffles, and above all which do not: the anchor's faults and every invalidation."""

import time

import numpy as np
import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, run, shuffled

PAIR = """
    ld.global{nc}.f32 %f1, [%rd4];
    {between}
    ld.global{nc}.f32 %f2, [%rd4+4];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd5], %f3;
"""


def pair(between="", *, nc="", **options):
    return kernel(PAIR.format(between=between, nc=nc), **options)


def test_neighbouring_loads_become_a_shuffle():
    before = pair()
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert report.loads == 2
    assert_same_results(before, after)


def test_store_between_ends_the_load():
    # The anchor's first fault: it took the value from before the store.
    before = kernel("""
    ld.global.f32 %f1, [%rd4];
    st.global.f32 [%rd4+4], %f1;
    ld.global.f32 %f2, [%rd4+4];
    st.global.f32 [%rd5], %f2;
    """)
    after, report = shuffled(before)
    assert deltas(report) == []
    assert report.unchanged is not None
    assert_same_results(before, after)


def test_store_to_the_source_ends_it():
    before = kernel("""
    ld.global.f32 %f1, [%rd4];
    st.global.f32 [%rd4], 0f3F800000;
    ld.global.f32 %f2, [%rd4+4];
    st.global.f32 [%rd5], %f2;
    """)
    assert deltas(shuffled(before)[1]) == []


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


@pytest.mark.parametrize("nc", ["", ".nc"])
def test_unknown_opcode_only_makes_its_result_unknown(nc):
    # The anchor's fourth fault: it stopped.
    before = pair("frobnicate.b32 %r9, %r5;", nc=nc)
    after, report = shuffled(before)
    assert "frobnicate.b32 %r9, %r5;" in (after if nc else before)
    # It may have written memory, but not what is read-only.
    assert deltas(report) == ([1] if nc else [])


def test_unknown_opcode_may_change_the_address():
    before = pair("frobnicate.b64 %rd9, %rd4;", nc=".nc")
    assert deltas(shuffled(before)[1]) == []


@pytest.mark.parametrize(
    "between",
    [
        "bar.sync 0;",
        "barrier.sync 0;",
        "bar.warp.sync -1;",
        "membar.gl;",
        "fence.acq_rel.gpu;",
        "atom.global.add.u32 %r9, [%rd5], 1;",
        "red.global.add.f32 [%rd5], %f1;",
        "ld.volatile.global.f32 %f9, [%rd5];",
        "ld.relaxed.gpu.global.f32 %f9, [%rd5];",
        "st.volatile.global.f32 [%rd5+64], %f1;",
        "st.release.gpu.global.f32 [%rd5+64], %f1;",
        "call.uni frob, ();",
        "st.global.f32 [%rd5+64], %f1;",
        "st.f32 [%rd5+64], %f1;",
        "@%p2 st.global.f32 [%rd5+64], %f1;",
        "st.global.v4.f32 [%rd5+64], {%f1, %f1, %f1, %f1};",
        "cp.async.ca.shared.global [%r9], [%rd5], 4;",
        "griddepcontrol.wait;",
    ],
)
def test_what_orders_or_writes_memory_ends_a_load(between):
    extra = ".extern .func frob();"
    assert deltas(shuffled(pair(between, extra=extra))[1]) == []
    # A load that is asserted to be read-only stays valid, but for a dependency on an earlier grid.
    expected = [] if "griddep" in between else [1]
    assert deltas(shuffled(pair(between, nc=".nc", extra=extra))[1]) == expected


ENDS = [
    "st.global.f32 [%rd4+4], %f1;", "@%p2 st.global.f32 [%rd4+4], %f1;", "st.f32 [%rd5+64], %f1;",
    "fence.acq_rel.gpu;", "membar.gl;", "bar.sync 0;", "atom.global.add.u32 %r9, [%rd5], 1;", "call.uni frob, ();",
    "ld.acquire.gpu.global.f32 %f9, [%rd5];", "ld.volatile.global.f32 %f9, [%rd5];", "frobnicate.b32 %r9, %r5;",
]  # fmt: skip


class TestReadOnlyLoads:
    """That nothing writes the memory of a ``.nc`` load is believed of other ``.nc`` loads, never of a plain one."""

    BODY = """
    setp.gt.s32 %p2, %r1, 5;
    ld.global{first}.f32 %f1, [%rd4]; ld.global{first}.f32 %f2, [%rd4+4];
    {between}
    ld.global{second}.f32 %f3, [%rd4+4]; ld.global{second}.f32 %f4, [%rd4+8];
    add.f32 %f5, %f1, %f2; add.f32 %f3, %f3, %f4; add.f32 %f3, %f3, %f5; st.global.f32 [%rd5], %f3;
    """

    @pytest.mark.parametrize("between", ENDS)
    def test_a_plain_load_takes_nothing_from_before(self, between):
        before = kernel(self.BODY.format(first=".nc", second="", between=between), extra=".extern .func frob();")
        _, report = shuffled(before)
        # Only within the two pairs.
        assert ([abs(delta) for delta in deltas(report)], report.reuses) == ([1, 1], ())
        assert all(abs(s.span.line - s.source.line) < 1 for s in report.shuffles)

    @pytest.mark.parametrize("between", ENDS)
    def test_a_read_only_load_takes_nothing_from_a_plain_one_before(self, between):
        before = kernel(self.BODY.format(first="", second=".nc", between=between), extra=".extern .func frob();")
        _, report = shuffled(before)
        assert ([abs(delta) for delta in deltas(report)], report.reuses) == ([1, 1], ())

    @pytest.mark.parametrize(("first", "second"), [(".nc", ""), ("", ".nc"), (".nc", ".nc"), ("", "")])
    def test_without_a_write_the_kind_does_not_matter(self, first, second):
        before = kernel(self.BODY.format(first=first, second=second, between=""))
        after, report = shuffled(before)
        assert (len(report.shuffles), len(report.reuses)) == (2, 1)
        assert_same_results(before, after)

    def test_a_store_on_one_path_ends_it_on_both(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd4];
        setp.lt.s32 %p2, %r1, 50; @%p2 bra JOIN;
        st.global.f32 [%rd4], 0f3F800000;
        JOIN:
        ld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2;
        st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert report.reuses == ()
        assert_same_results(before, after, n=60)
        nc = before.replace("ld.global.f32 %f2", "ld.global.nc.f32 %f2")
        assert len(shuffled(nc)[1].reuses) == 1

    def test_a_store_elsewhere_ends_nothing(self):
        between = "st.global.f32 [%rd4+512], %f1;"
        before = kernel(self.BODY.format(first=".nc", second="", between=between))
        after, report = shuffled(before)
        assert len(report.reuses) == 1
        assert_same_results(before, after)


def test_a_load_of_the_second_level_cache_takes_no_earlier_value():
    before = kernel("""
    ld.global.f32 %f1, [%rd4]; ld.global.cg.f32 %f2, [%rd4+4]; ld.global.cg.f32 %f3, [%rd4];
    ld.global.f32 %f4, [%rd4+8]; add.f32 %f1, %f1, %f2; add.f32 %f3, %f3, %f4; add.f32 %f1, %f1, %f3;
    st.global.f32 [%rd5], %f1;
    """)
    after, report = shuffled(before)
    assert after.count("ld.global.cg") == 2
    assert (deltas(report), report.reuses) == ([2], ())
    assert_same_results(before, after)


@pytest.mark.parametrize(
    "between",
    [
        "st.shared.f32 [%r9], %f1;",
        "st.local.f32 [%rd9], %f1;",
        "ld.shared.f32 %f9, [%r9];",
        "ld.global.f32 %f9, [%rd5];",
    ],
)
def test_other_spaces_and_loads_end_nothing(between):
    assert deltas(shuffled(pair(between))[1]) == [1]


def test_restrict_pointers_do_not_alias():
    store = "st.global.f32 [%rd5+64], %f1;"
    assert deltas(shuffled(pair(store))[1]) == []
    assert deltas(shuffled(pair(store, pointer=".ptr .global .restrict"))[1]) == [1]


@pytest.mark.parametrize(("offset", "survives"), [(124, False), (128, True), (-124, False), (-128, True)])
def test_store_out_of_the_warps_reach_ends_nothing(offset, survives):
    # Lanes are at most 31 apart, so a[i + 31] of one lane is a[i] of another, and a[i + 32] of none.
    before = pair(f"st.global.f32 [%rd4+{offset}], %f1;")
    assert deltas(shuffled(before)[1]) == ([1] if survives else [])


def test_solver_proves_a_store_elsewhere():
    # 64 * (n & 1023) + 4096 bytes behind: no normal form says that this is never within the warp's reach.
    between = """
    and.b32 %r9, %r1, 1023; mul.wide.u32 %rd9, %r9, 64; add.s64 %rd9, %rd9, %rd4;
    st.global.f32 [%rd9+4096], %f1;
    """
    _, report = shuffled(pair(between))
    assert deltas(report) == [1]
    assert report.questions > 0
    unbounded = between.replace("and.b32 %r9, %r1, 1023", "mov.b32 %r9, %r1").replace("+4096", "")
    assert deltas(shuffled(pair(unbounded))[1]) == []


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


class TestFlow:
    def test_divergent_code_is_left_alone(self):
        before = kernel("""
        and.b32 %r9, %r4, 1; setp.eq.s32 %p2, %r9, 0; @%p2 bra DONE;
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        _, report = shuffled(before)
        assert deltas(report) == []
        assert [left.reason for left in report.left_alone] == ["it stands in divergent control flow"]

    def test_a_condition_on_loaded_data_is_divergent(self):
        before = kernel("""
        ld.global.nc.u32 %r9, [%rd5]; setp.eq.s32 %p2, %r9, 0; @%p2 bra DONE;
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        assert deltas(shuffled(before)[1]) == []

    def test_lanes_that_came_another_way_have_other_addresses(self):
        # Both arms give an address; moving %tid.x on one path says nothing of a lane that took the other.
        before = kernel("""
        and.b32 %r9, %r4, 1; setp.eq.s32 %p2, %r9, 0; mov.u64 %rd9, 0;
        @%p2 bra JOIN;
        mov.u64 %rd9, 400;
        JOIN:
        add.s64 %rd9, %rd9, %rd4;
        ld.global.nc.f32 %f1, [%rd9]; ld.global.nc.f32 %f2, [%rd9+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        assert_same_results(before, after)

    def test_lanes_agree_after_a_uniform_branch(self):
        before = kernel("""
        and.b32 %r9, %r1, 1; setp.eq.s32 %p2, %r9, 0; mov.u64 %rd9, 0;
        @%p2 bra JOIN;
        mov.u64 %rd9, 400;
        JOIN:
        add.s64 %rd9, %rd9, %rd4;
        ld.global.nc.f32 %f1, [%rd9]; ld.global.nc.f32 %f2, [%rd9+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert_same_results(before, after)

    def test_a_predicated_select_of_addresses_differs_between_lanes(self):
        before = kernel("""
        and.b32 %r9, %r4, 1; setp.eq.s32 %p2, %r9, 0; mov.u64 %rd9, %rd4;
        @%p2 add.s64 %rd9, %rd4, 400;
        ld.global.nc.f32 %f1, [%rd9]; ld.global.nc.f32 %f2, [%rd9+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        assert_same_results(before, after)

    def test_a_source_executed_on_one_path_only_is_none(self):
        before = kernel("""
        setp.lt.s32 %p2, %r1, 50; @%p2 bra JOIN;
        ld.global.nc.f32 %f1, [%rd4];
        JOIN:
        ld.global.nc.f32 %f2, [%rd4+4];
        st.global.f32 [%rd5], %f2;
        """)
        assert deltas(shuffled(before)[1]) == []

    def test_a_source_in_an_earlier_block_serves(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd4];
        setp.lt.s32 %p2, %r1, 50; @%p2 bra JOIN;
        add.f32 %f1, %f1, %f1;
        JOIN:
        ld.global.nc.f32 %f2, [%rd4+4]; ld.global.nc.f32 %f3, [%rd4+-8];
        add.f32 %f2, %f2, %f3; add.f32 %f2, %f2, %f1;
        st.global.f32 [%rd5], %f2;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1, -2]
        assert_same_results(before, after)

    LOOP = """
    mov.u32 %r9, 0; mov.f32 %f9, 0f00000000;
    LOOP:
    mad.lo.s32 %r10, %r9, 7, %r5; mul.wide.s32 %rd6, %r10, 4; add.s64 %rd7, %rd1, %rd6;
    ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4]; ld.global.nc.f32 %f3, [%rd7+-4];
    add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f9, %f2, %f3;
    {step}
    setp.lt.s32 %p2, %r9, {bound}; @%p2 bra LOOP;
    st.global.f32 [%rd5], %f9;
    """

    def test_shuffles_in_a_uniform_loop(self):
        before = kernel(self.LOOP.format(step="add.s32 %r9, %r9, 1;", bound=5))
        after, report = shuffled(before)
        assert sorted(deltas(report)) == [-1, 1]
        assert_same_results(before, after)

    def test_a_loop_that_lanes_leave_one_by_one(self):
        # A whole warp is in one pass: the first lane that leaves is missing from then on.
        before = kernel(self.LOOP.format(step="add.s32 %r9, %r9, 1;", bound="%r4"))
        after, report = shuffled(before)
        assert sorted(deltas(report)) == [-1, 1]
        assert_same_results(before, after)

    def test_none_in_a_loop_whose_lanes_part(self):
        # Lanes at the same instruction may be in different passes.
        step = "and.b32 %r11, %r4, 1; add.s32 %r9, %r9, 1; setp.eq.s32 %p3, %r11, 0; @%p3 add.s32 %r9, %r9, 1;"
        skip = "setp.lt.s32 %p4, %r9, %r4; @%p4 bra LOOP;"
        before = kernel(self.LOOP.format(step=step + skip, bound=9))
        after, report = shuffled(before)
        assert deltas(report) == []
        assert_same_results(before, after)

    STRIDE = """
    mul.lo.s32 %r12, %r3, 2; mov.u32 %r9, %r5; mov.f32 %f9, 0f00000000; {before}
    LOOP:
    mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6; {inside}
    ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
    add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f2, %f9, %f1;
    add.s32 %r9, %r9, %r12; setp.lt.s32 %p2, %r9, %r1; @%p2 bra LOOP;
    {behind}
    st.global.f32 [%rd5], %f9;
    """

    def test_a_strided_loop_that_lanes_only_leave(self):
        before = kernel(self.STRIDE.format(before="", inside="", behind=""))
        after, report = shuffled(before)
        assert deltas(report) == [1]
        for n in (100, 97, 300):
            assert_same_results(before, after, n=n)

    def test_behind_such_a_loop_lanes_have_made_different_passes(self):
        behind = """
        mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6;
        ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4]; fma.rn.f32 %f9, %f2, %f9, %f1;
        """
        before = kernel(self.STRIDE.format(before="", inside="", behind=behind))
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert report.shuffles[0].span.line < 30
        for n in (100, 97, 300):
            assert_same_results(before, after, n=n)

    def test_none_in_a_strided_loop_with_another_condition(self):
        inside = "and.b32 %r11, %r9, 1; setp.eq.s32 %p3, %r11, 0; @%p3 bra SKIP; add.f32 %f9, %f9, %f9; SKIP:"
        before = kernel(self.STRIDE.format(before="", inside=inside, behind=""))
        after, report = shuffled(before)
        assert deltas(report) == []
        assert after == before

    def test_none_in_a_strided_loop_within_another(self):
        behind = "add.s32 %r13, %r13, 1; mov.u32 %r9, %r5; setp.lt.s32 %p3, %r13, 3; @%p3 bra LOOP;"
        before = kernel(self.STRIDE.format(before="mov.u32 %r13, 0;", inside="", behind=behind))
        assert deltas(shuffled(before)[1]) == []

    def test_a_nest_is_walked_in_linear_time(self):
        # Each level of a nest walked anew in every pass of the one around it would be 3^12 walks.
        depth = 12
        opening = "".join(f"mov.u32 %r{20 + d}, 0; L{d}: " for d in range(depth))
        closing = "".join(
            f"add.s32 %r{20 + d}, %r{20 + d}, 1; setp.lt.s32 %p2, %r{20 + d}, {2 if d < 2 else 1}; @%p2 bra L{d};"
            for d in reversed(range(depth))
        )
        body = f"""
        mov.f32 %f9, 0f00000000; {opening}
        mad.lo.s32 %r9, %r20, 3, %r5; mad.lo.s32 %r9, %r31, 5, %r9; mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6;
        ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
        add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f2, %f9, %f1;
        {closing} st.global.f32 [%rd5], %f9;
        """
        before = kernel(body)
        start = time.process_time()
        after, report = shuffled(before)
        assert time.process_time() - start < 5
        assert deltas(report) == [1]
        assert run(before) == run(after)

    def test_a_step_that_an_outer_loop_changes(self):
        before = kernel("""
        mov.u32 %r9, 0; mov.u64 %rd7, %rd4; mov.u64 %rd8, 4; mov.f32 %f9, 0f00000000;
        OUTER: mov.u32 %r10, 0;
        INNER: ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
        add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f2, %f9, %f1;
        add.s64 %rd7, %rd7, %rd8; add.s32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, 3; @%p2 bra INNER;
        mov.u64 %rd7, %rd4; add.s64 %rd8, %rd8, 8; add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, 3; @%p2 bra OUTER;
        st.global.f32 [%rd5], %f9;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert_same_results(before, after)

    def test_none_over_a_variable_that_is_no_induction(self):
        step = "shl.b32 %r9, %r9, 1; add.s32 %r9, %r9, 1;"
        before = kernel(self.LOOP.format(step=step, bound=40))
        assert deltas(shuffled(before)[1]) == []

    def test_a_value_of_the_last_pass_is_no_source(self):
        before = kernel("""
        mov.u32 %r9, 0; mov.u64 %rd7, %rd4; mov.f32 %f9, 0f00000000;
        LOOP:
        ld.global.nc.f32 %f1, [%rd7]; add.f32 %f9, %f9, %f1;
        add.s64 %rd7, %rd7, 4; add.s32 %r9, %r9, 1;
        setp.lt.s32 %p2, %r9, 5; @%p2 bra LOOP;
        st.global.f32 [%rd5], %f9;
        """)
        assert deltas(shuffled(before)[1]) == []

    def test_infeasible_paths_are_pruned(self):
        # The store is reached only with n < 10 and n > 20.
        before = kernel("""
        ld.global.f32 %f1, [%rd4];
        setp.gt.s32 %p2, %r1, 9; @%p2 bra JOIN;
        setp.lt.s32 %p3, %r1, 21; @%p3 bra JOIN;
        st.global.f32 [%rd4+4], %f1;
        JOIN:
        ld.global.f32 %f2, [%rd4+4]; st.global.f32 [%rd5], %f2;
        """)
        assert deltas(shuffled(before)[1]) == [1]

    def test_a_cycle_with_two_entries_is_left_alone(self):
        before = kernel("""
        setp.lt.s32 %p2, %r1, 50; mov.u32 %r9, 0;
        @%p2 bra B;
        A: add.s32 %r9, %r9, 1;
        B: add.s32 %r9, %r9, 2; setp.lt.s32 %p3, %r9, 20; @%p3 bra A;
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f2, %f2, %f1; st.global.f32 [%rd5], %f2;
        """)
        after, report = shuffled(before)
        assert after == before
        assert report.unchanged == "the control flow has a cycle with two entries"

    def test_a_switch(self):
        before = kernel("""
        and.b32 %r9, %r1, 1;
        TABLE: .branchtargets ZERO, ONE;
        brx.idx %r9, TABLE;
        ZERO: add.s64 %rd4, %rd4, 64;
        ONE:
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f2, %f2, %f1; st.global.f32 [%rd5], %f2;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert_same_results(before, after)


class TestWhatIsLeftAlone:
    @pytest.mark.parametrize(
        "load",
        [
            "ld.volatile.global.f32 %f2, [%rd4+4];",
            "ld.global.lu.f32 %f2, [%rd4+4];",
            "ld.global.nc.v2.f32 {%f2, %f3}, [%rd4+8];",
            "ld.global.nc.u16 %r9, [%rd4+4];",
            "ld.global.nc.f32 %f2, [%rd4+2];",
            "ld.global.nc.f32 %f2, [%rd4+128];",
            "ld.f32 %f2, [%rd4+4];",
            "ld.shared.f32 %f2, [%r9];",
        ],
    )
    def test_loads(self, load):
        before = kernel(f"setp.gt.s32 %p2, %r1, 5; ld.global.nc.f32 %f1, [%rd4]; {load} st.global.f32 [%rd5], %f1;")
        assert deltas(shuffled(before)[1]) == []

    def test_old_versions(self):
        after, report = shuffled(pair(version="6.0"))
        assert report.unchanged == "activemask needs PTX ISA 6.2"
        assert after == pair(version="6.0")

    def test_an_index_that_was_loaded(self):
        before = kernel("""
        ld.global.nc.s32 %r9, [%rd5]; mul.wide.s32 %rd6, %r9, 4; add.s64 %rd7, %rd1, %rd6;
        ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4];
        add.f32 %f2, %f2, %f1; st.global.f32 [%rd5], %f2;
        """)
        _, report = shuffled(before)
        assert deltas(report) == []
        assert report.loads == 3


class TestReuse:
    def test_the_same_address_twice_is_a_register(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f1, %f1, %f2;
        ld.global.nc.f32 %f3, [%rd4]; ld.global.nc.u32 %r9, [%rd4+4];
        cvt.rn.f32.s32 %f4, %r9; add.f32 %f3, %f3, %f4; add.f32 %f3, %f3, %f1;
        st.global.f32 [%rd5], %f3;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert [reuse.delta for reuse in report.reuses] == [0, 0]
        assert_same_results(before, after)

    def test_narrow_loads_are_reused_with_the_same_extension_only(self):
        before = kernel("""
        ld.global.nc.u16 %h1, [%rd4]; ld.global.nc.u16 %h2, [%rd4]; ld.global.nc.s8 %r9, [%rd4];
        ld.global.nc.u8 %r10, [%rd4]; add.s32 %r9, %r9, %r10; cvt.u32.u16 %r11, %h2; add.s32 %r9, %r9, %r11;
        cvt.u32.u16 %r11, %h1; add.s32 %r9, %r9, %r11; ld.global.nc.u8 %r12, [%rd4]; add.s32 %r9, %r9, %r12;
        st.global.u32 [%rd5], %r9;
        """)
        after, report = shuffled(before)
        assert len(report.reuses) == 2
        assert "mov.b16" in after
        assert "mov.b8" not in after
        assert_same_results(before, after)

    @pytest.mark.parametrize("register", ["%r", "%rd"])
    @pytest.mark.parametrize("bits", [8, 16, 32])
    @pytest.mark.parametrize("nc", ["", ".nc"])
    @pytest.mark.parametrize("kinds", ["su", "us", "sb", "bs", "ub", "bu", "ss", "uu", "bb"])
    def test_an_extension_is_part_of_the_value(self, register, bits, nc, kinds):
        one, other = kinds
        before = kernel(f"""
        ld.global{nc}.{one}{bits} {register}9, [%rd4]; ld.global{nc}.{other}{bits} {register}10, [%rd4];
        cvt.u64.u32 %rd11, %r9; cvt.u64.u32 %rd12, %r10;
        {"" if register == "%r" else "mov.b64 %rd11, %rd9; mov.b64 %rd12, %rd10;"}
        mul.lo.s64 %rd12, %rd12, 3; xor.b64 %rd11, %rd11, %rd12; shr.u64 %rd12, %rd11, 32;
        xor.b64 %rd11, %rd11, %rd12; st.global.u32 [%rd5], %rd11;
        """).replace("st.global.u32 [%rd5], %rd11", "cvt.u32.u64 %r13, %rd11; st.global.u32 [%rd5], %r13")
        after, report = shuffled(before)
        extended = bits < (32 if register == "%r" else 64)
        same = not extended or ("s" in kinds) == (kinds == "ss")
        assert len(report.reuses) == same
        assert_same_results(before, after)

    def test_a_register_of_another_width_is_no_source(self):
        before = kernel("""
        ld.global.u32 %r9, [%rd4]; ld.global.u32 %rd9, [%rd4]; ld.global.f32 %f9, [%rd4]; ld.global.b32 %rd10, [%rd4];
        add.f32 %f9, %f9, %f9; cvt.u32.u64 %r10, %rd9; xor.b32 %r9, %r9, %r10; cvt.u32.u64 %r10, %rd10;
        add.s32 %r9, %r9, %r10; cvt.rn.f32.u32 %f10, %r9; add.f32 %f9, %f9, %f10; st.global.f32 [%rd5], %f9;
        """)
        after, report = shuffled(before)
        # The float takes the 32-bit register's bits, and one 64-bit register the other's.
        assert [(r.delta, r.size) for r in report.reuses] == [(0, 4), (0, 4)]
        assert_same_results(before, after)

    def test_a_uniform_address_counts_as_no_load(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd1]; ld.global.nc.f32 %f2, [%rd1+4]; ld.global.nc.f32 %f3, [%rd1];
        add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert report.loads == 0
        assert (deltas(report), len(report.reuses)) == ([], 1)
        assert_same_results(before, after)


class TestSources:
    def row(self, offsets, between=""):
        loads = "\n".join(f"ld.global.nc.f32 %f{i}, [%rd4+{4 * o}];{between}" for i, o in enumerate(offsets, 1))
        sums = "\n".join(f"add.f32 %f1, %f1, %f{i};" for i in range(2, len(offsets) + 1))
        return kernel(f"{loads}\n{sums}\nst.global.f32 [%rd5], %f1;")

    def test_the_middle_of_a_row_serves_it(self):
        before = self.row([-2, -1, 0, 1, 2])
        after, report = shuffled(before)
        assert sorted(deltas(report)) == [-2, -1, 1, 2]
        assert all(shuffle.hoisted for shuffle in report.shuffles)
        assert_same_results(before, after)

    def test_without_hoisting_the_first_serves(self):
        before = self.row([-2, -1, 0, 1, 2])
        after, report = shuffled(before, hoist=False)
        assert sorted(deltas(report)) == [1, 2, 3, 4]
        assert_same_results(before, after)

    def test_max_delta_makes_more_sources(self):
        before = self.row([0, 1, 2, 3, 4, 5])
        after, report = shuffled(before, max_delta=1)
        assert sorted(map(abs, deltas(report))) == [1, 1, 1, 1]
        assert_same_results(before, after)
        assert deltas(shuffled(before, max_delta=0)[1]) == []

    def test_thirty_one_lanes_are_the_most(self):
        assert sorted(deltas(shuffled(self.row([0, 31]))[1])) in ([-31], [31])
        assert deltas(shuffled(self.row([0, 32]))[1]) == []
        before = self.row([0, 31])
        assert_same_results(before, shuffled(before)[0])

    def test_no_hoisting_over_a_change_of_the_address(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd4];
        add.s64 %rd4, %rd4, 4; ld.global.nc.f32 %f2, [%rd4];
        add.s64 %rd4, %rd4, 4; ld.global.nc.f32 %f3, [%rd4];
        add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1, 2]
        assert not any(shuffle.hoisted for shuffle in report.shuffles)
        assert_same_results(before, after)

    def test_a_source_whose_register_is_written_again(self):
        before = kernel("""
        ld.global.nc.f32 %f1, [%rd4]; add.f32 %f1, %f1, %f1;
        ld.global.nc.f32 %f1, [%rd4+4];
        st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert_same_results(before, after)

    def test_a_load_into_its_own_address(self):
        before = kernel("""
        mul.wide.s32 %rd3, %r5, 8; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
        ld.global.nc.u64 %rd6, [%rd4]; ld.global.nc.u64 %rd4, [%rd4+8];
        add.s64 %rd6, %rd6, %rd4; st.global.u64 [%rd5], %rd6;
        """)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert_same_results(before, after, element="f8", size=1024)

    def test_transforming_twice_changes_nothing_more(self):
        once, _ = shuffled(self.row([-1, 0, 1]))
        twice, report = shuffled(once)
        assert twice == once
        assert deltas(report) == []

    def test_long_rows(self):
        before = self.row(range(37))
        after, report = shuffled(before)
        assert len(report.shuffles) == 36
        assert max(map(abs, deltas(report))) == 18
        assert_same_results(before, after)


def test_inline_assembly_scopes():
    asm = "{ .reg .pred p; .reg .b32 t; setp.ne.s32 p, %r1, 0; @!p bra SKIP; mov.b32 t, 4; add.s32 %r9, %r9, t; SKIP: }"
    before = kernel(f"""
    mov.u32 %r9, 0; {asm}
    ld.global.nc.f32 %f1, [%rd4];
    {asm}
    ld.global.nc.f32 %f2, [%rd4+4];
    add.f32 %f1, %f1, %f2; cvt.rn.f32.s32 %f2, %r9; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
    """)
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert_same_results(before, after)
