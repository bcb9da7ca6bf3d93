"""Shuffles in branches, loops and nests, and where lanes that came another way forbid them."""

import pytest

from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, run, shuffled
from tests.processor_time import within


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

    @pytest.mark.parametrize(("decides", "found"), [("%r4", []), ("%r1", [1])], ids=["thread", "block"])
    def test_lanes_agree_after_a_uniform_branch_alone(self, decides, found):
        # Both arms give an address; moving %tid.x on one path says nothing of a lane that took the other.
        before = kernel(f"""
        and.b32 %r9, {decides}, 1; setp.eq.s32 %p2, %r9, 0; mov.u64 %rd9, 0;
        @%p2 bra JOIN;
        mov.u64 %rd9, 400;
        JOIN:
        add.s64 %rd9, %rd9, %rd4;
        ld.global.nc.f32 %f1, [%rd9]; ld.global.nc.f32 %f2, [%rd9+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
        """)
        after, report = shuffled(before)
        assert deltas(report) == found
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

    NEIGHBOURS = """
        @%p9 bra DONE;
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+4];
        add.f32 %f3, %f1, %f2; st.global.f32 [%rd5], %f3;
    """

    # nvcc 13 branches around the last comparisons of a guard, or compares the lesser of two values at once.
    @pytest.mark.parametrize(
        ("guard", "found"),
        [
            (
                "setp.lt.s32 %p2, %r5, 3; mov.pred %p9, -1; @%p2 bra JOIN; add.s32 %r9, %r1, -2; "
                "setp.ge.s32 %p9, %r5, %r9; JOIN:",
                [1],
            ),
            (
                "setp.lt.s32 %p2, %r5, 3; mov.pred %p8, 0; @%p2 bra JOIN; setp.lt.s32 %p8, %r5, 90; @!%p8 bra JOIN; "
                "setp.lt.s32 %p8, %r5, 80; JOIN: not.pred %p9, %p8;",
                [1],
            ),
            ("mov.pred %p9, 0; setp.gt.s32 %p2, %r1, 60; @%p2 bra JOIN; setp.gt.s32 %p9, %r5, 50; JOIN:", [1]),
            ("setp.lt.s32 %p2, %r5, 9; setp.lt.s32 %p9, %r5, 3; @%p2 bra JOIN; setp.gt.s32 %p9, %r5, 70; JOIN:", [1]),
            ("add.s32 %r9, %r5, %r1; min.s32 %r10, %r5, %r9; setp.lt.s32 %p9, %r10, 3;", [1]),
            ("sub.s32 %r9, %r5, 9; max.s32 %r10, %r9, %r5; setp.ge.s32 %p9, %r10, 90;", [1]),
            ("min.s32 %r9, %r5, %r1; max.s32 %r10, %r9, 7; setp.gt.s32 %p9, 60, %r10;", [1]),
            ("min.u32 %r10, %r5, %r1; setp.lt.s32 %p9, %r10, 3;", []),
            (
                "setp.lt.s32 %p2, %r5, 3; mov.pred %p9, -1; @%p2 bra JOIN; and.b32 %r9, %r4, 1; "
                "setp.eq.s32 %p9, %r9, 0; JOIN:",
                [],
            ),
        ],
        ids=["around", "around twice", "uniform", "either", "least", "greatest", "clamped", "unsigned", "odd lanes"],
    )
    def test_guards_of_several_comparisons(self, guard, found):
        before = kernel(guard + self.NEIGHBOURS)
        after, report = shuffled(before)
        assert deltas(report) == found
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
        with within(5):
            after, report = shuffled(before)
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
