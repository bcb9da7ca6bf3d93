"""What ends a load: stores that may overlap it, what orders memory, and how far read-only loads are believed."""

import pytest

from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, pair, shuffled


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
