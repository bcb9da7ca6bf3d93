"""Which load serves which: registers used again, the source of a row, and loads that are left alone."""

import pytest

from tests.metafork.ptx.snippets import assert_same_results, deltas, kernel, pair, shuffled


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
    @pytest.mark.sampled(12)
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
