"""Clamped and periodic borders: neighbours by shuffles, border lanes by their own loads, in every spelling."""

from random import Random

import numpy as np
import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.snippets import INDEX, assert_assembles, deltas, kernel, run, shuffled

SIGNED = "mul.wide.s32 %rd{d}, {r}, 4; add.s64 %rd{d}, %rd1, %rd{d};"
UNSIGNED = SIGNED.replace("s32", "u32")
UNSIGNED_INDEX = INDEX.replace("mul.wide.s32", "mul.wide.u32").replace("setp.ge.s32", "setp.ge.u32")
LOADS = """
    ld.global.nc.f32 %f2, [%rd4]; ld.global.nc.f32 %f1, [%rd6]; ld.global.nc.f32 %f3, [%rd7];
    fma.rn.f32 %f1, %f2, 0f40000000, %f1; fma.rn.f32 %f1, %f3, %f1, %f3; st.global.f32 [%rd5], %f1;
"""

INDICES = {
    "max and min": """
        add.s32 %r6, %r5, -1; max.s32 %r7, %r6, 0; add.s32 %r8, %r1, -1; add.s32 %r9, %r5, 1;
        min.s32 %r10, %r9, %r8;
    """,
    "max and min into their operands": """
        add.s32 %r7, %r5, -1; max.s32 %r7, 0, %r7; add.s32 %r8, %r1, -1; add.s32 %r10, %r5, 1;
        min.s32 %r10, %r8, %r10;
    """,
    "both clamps on both sides": """
        add.s32 %r8, %r1, -1; add.s32 %r7, %r5, -1; max.s32 %r7, %r7, 0; min.s32 %r7, %r7,%r8; add.s32 %r10, %r5, 1;
        max.s32 %r10, %r10, 0; min.s32 %r10, %r10, %r8;
    """,
    "selections by order": """
        add.s32 %r6, %r5, -1; setp.gt.s32 %p2, %r5, 0; selp.b32 %r7, %r6, 0, %p2; add.s32 %r8, %r1,-1;
        setp.lt.s32 %p3, %r5, %r8; add.s32 %r9, %r5, 1; selp.b32 %r10, %r9, %r8, %p3;
    """,
    "selections by equality": """
        add.s32 %r6, %r5, -1; setp.eq.s32 %p2, %r5, 0; selp.b32 %r7, 0, %r6, %p2; add.s32 %r8,%r1, -1;
        setp.ne.s32 %p3, %r5, %r8; add.s32 %r9, %r5, 1; selp.b32 %r10, %r9, %r8, %p3;
    """,
    "a selected step": """
        setp.gt.s32 %p2, %r5, 0; selp.s32 %r6, -1, 0, %p2; add.s32 %r7, %r5, %r6; add.s32 %r9, %r5, 1;
        setp.lt.s32 %p3, %r9, %r1; selp.u32 %r10, 1, 0, %p3; add.s32 %r10, %r5, %r10;
    """,
    "predicated moves": """
        add.s32 %r7, %r5, -1; setp.lt.s32 %p2, %r7, 0; @%p2 mov.u32 %r7, 0; add.s32 %r10, %r5, 1;
        setp.lt.s32 %p3, %r10, %r1; @!%p3 add.s32 %r10, %r1, -1;
    """,
    "absolute value": """
        add.s32 %r7, %r5, -1; abs.s32 %r7, %r7; add.s32 %r10, %r5, 1; sub.s32 %r8, %r1, %r5; add.s32 %r8,%r8, -1;
        min.s32 %r8, %r8, 1; add.s32 %r10, %r5, %r8;
    """,
    "remainder": """
        add.s32 %r6, %r5, %r1; add.s32 %r6, %r6, -1; rem.s32 %r7, %r6, %r1; add.s32 %r9, %r5, 1;
        rem.s32 %r10, %r9, %r1;
    """,
    "remainder in place": """
        add.s32 %r7, %r5, %r1; add.s32 %r7, %r7, -1; rem.s32 %r7, %r7, %r1; add.s32 %r10, %r5, 1;
        rem.s32 %r10, %r10, %r1;
    """,
    "wrapped by selections": """
        setp.lt.s32 %p2, %r5, 1; selp.b32 %r6, %r1, 0, %p2; add.s32 %r7, %r5, %r6; add.s32 %r7, %r7,-1;
        add.s32 %r9, %r5, 1; setp.lt.s32 %p3, %r9, %r1; selp.b32 %r10, 0, %r1, %p3; sub.s32 %r10, %r9, %r10;
    """,
    "wrapped by equality": """
        setp.eq.s32 %p2, %r5, 0; selp.b32 %r6, %r1, %r5, %p2; add.s32 %r7, %r6, -1; add.s32 %r8, %r1,-1;
        setp.eq.s32 %p3, %r5, %r8; add.s32 %r9, %r5, 1; selp.b32 %r10, 0, %r9, %p3;
    """,
    "a mask": """
        add.s32 %r6, %r5, -1; add.s32 %r8, %r1, -1; and.b32 %r7, %r8, %r6; add.s32 %r9, %r5, 1;
        and.b32 %r10, %r9, %r8;
    """,
    "a constant power of two": """
        add.s32 %r6, %r5, 63; shr.s32 %r7, %r6, 31; shr.u32 %r8, %r7, 26; add.s32 %r9, %r6, %r8;
        and.b32 %r11, %r9, -64; sub.s32 %r7, %r6, %r11; add.s32 %r10, %r5, 1; and.b32 %r10, %r10, 63;
    """,
    "a constant divisor": """
        add.s32 %r10, %r5, 1; mul.hi.s32 %r11, %r10, 1374389535; shr.u32 %r12, %r11, 31; shr.s32 %r13,%r11, 5;
        add.s32 %r14, %r13, %r12; mul.lo.s32 %r15, %r14, 100; sub.s32 %r10, %r10, %r15; add.s32 %r7, %r5, 99;
        mul.hi.s32 %r11, %r7, 1374389535; shr.u32 %r12, %r11, 31; shr.s32 %r13, %r11, 5; add.s32 %r14, %r13, %r12;
        mul.lo.s32 %r15, %r14, 100; sub.s32 %r7, %r7, %r15;
    """,
    "reflected": """
        setp.lt.s32 %p2, %r5, 1; mov.u32 %r6, 1; sub.s32 %r7, %r6, %r5; add.s32 %r8, %r5, -1;
        selp.b32 %r7, %r7,%r8, %p2; add.s32 %r10, %r5, 1; setp.lt.s32 %p3, %r10, %r1; mov.u32 %r11, -3;
        sub.s32 %r12, %r11, %r5; shl.b32 %r13, %r1, 1; add.s32 %r14, %r12, %r13; selp.b32 %r10, %r10, %r14, %p3;
    """,
}
"""%r7 = left and %r10 = right neighbour of %r5 among %r1, as compilers write them."""

UNSIGNED_INDICES = {
    "selections": """
        add.s32 %r6, %r5, -1; setp.eq.s32 %p2, %r5, 0; selp.b32 %r7, 0, %r6, %p2; add.s32 %r8, %r1, -1;
        setp.lt.u32 %p3, %r5, %r8; add.s32 %r9, %r5, 1; selp.b32 %r10, %r9, %r8, %p3;
    """,
    "max and min": """
        max.u32 %r7, %r5, 1; add.s32 %r7, %r7, -1; add.s32 %r8, %r1, -1; add.s32 %r9, %r5, 1;
        min.u32 %r10, %r9, %r8;
    """,
    "remainder": """
        add.s32 %r6, %r5, %r1; add.s32 %r6, %r6, -1; rem.u32 %r7, %r6, %r1; add.s32 %r9, %r5, 1;
        rem.u32 %r10, %r9, %r1;
    """,
    "wrapped by equality": """
        setp.eq.s32 %p2, %r5, 0; selp.b32 %r6, %r1, %r5, %p2; add.s32 %r7, %r6, -1; add.s32 %r8, %r1,-1;
        setp.eq.s32 %p3, %r5, %r8; add.s32 %r9, %r5, 1; selp.b32 %r10, 0, %r9, %p3;
    """,
}

LAUNCHES = ((100, (32, 1, 1)), (100, (40, 1, 1)), (64, (64, 1, 1)), (33, (17, 3, 1)), (7, (32, 1, 1)), (1, (32, 1, 1)))


def body(indices, extension=SIGNED):
    return indices + extension.format(d=6, r="%r7") + extension.format(d=7, r="%r10") + LOADS


def loads(text, n=128):
    """Return the loads that the lanes of four whole warps make."""
    memory = GlobalMemory()
    a, b = memory.upload(np.arange(2048, dtype="f4")), memory.allocate(8192)
    done = run_kernel(parse(text), "k", (n // 32,), (32,), [a + 4096, b + 4096, n], memory=memory)
    return done.lanes["ld.global"]


def assert_same(before, after):
    assert_assembles(after)
    for n, block in LAUNCHES:
        for seed in (0, 1):
            launch = {"n": n, "block": block, "seed": seed}
            assert run(before, **launch) == run(after, **launch), launch


@pytest.mark.parametrize("spelling", INDICES)
@pytest.mark.sampled(5)
def test_signed_indices(spelling):
    before = kernel(body(INDICES[spelling]))
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert report.assumptions == ("signed-index",)
    assert all(shuffle.bordered for shuffle in report.shuffles)
    assert_same(before, after)
    # One load of each lane stays; of the others those of the lanes at the ends of a warp, the borders among them.
    n = {"a constant power of two": 64, "a constant divisor": 96}.get(spelling, 128)
    assert loads(before, n) == 3 * n
    assert loads(after, n) == n + 2 * n // 32


INSIDE = "add.s32 %r5, %r5, -9; add.s32 %r1, %r1, -40; mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;"
"""Borders in the midst of whole warps, where no other check sends a lane to its own load."""


@pytest.mark.parametrize("spelling", INDICES)
def test_borders_inside_of_warps(spelling):
    before = kernel(INSIDE + body(INDICES[spelling]))
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    for n, block in ((96, (32, 1, 1)), (128, (64, 1, 1)), (100, (40, 1, 1))):
        assert run(before, n=n, block=block) == run(after, n=n, block=block), (n, block)


@pytest.mark.parametrize("spelling", UNSIGNED_INDICES)
def test_unsigned_indices(spelling):
    before = kernel(body(UNSIGNED_INDICES[spelling], UNSIGNED), index=UNSIGNED_INDEX)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert report.assumptions == ("signed-index", "grid-fits")
    assert_same(before, after)
    assert loads(after) == 128 + 2 * 4
    assert deltas(shuffled(before, grid_fits=False)[1]) == []


def test_neighbours_without_the_middle():
    # Both are at borders somewhere: a warp that has a border in it asks its lanes, and loads.
    body = INDICES["max and min"] + SIGNED.format(d=6, r="%r7") + SIGNED.format(d=7, r="%r10")
    before = kernel(f"""{body}
    ld.global.nc.f32 %f1, [%rd6]; ld.global.nc.f32 %f2, [%rd7]; sub.f32 %f1, %f2, %f1; st.global.f32 [%rd5], %f1;
    """)
    after, report = shuffled(before)
    assert [abs(delta) for delta in deltas(report)] == [2]
    assert_same(before, after)
    assert loads(before) == 256
    assert loads(after) == 128 + 32 + 3 * 2


def test_a_nest_of_rows():
    """nine points, clamped along x and periodic along y, in 64 bits; x = %tid.x of rows that warps straddle."""
    before = kernel(
        """
    mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.y; cvt.u64.u32 %rd10, %r4; cvt.u64.u32 %rd11, %r2;
    mov.u32 %r6, %ntid.x; cvt.u64.u32 %rd12, %r6; cvt.u64.u32 %rd13, %r3; cvt.u64.u32 %rd14, %r1;
    setp.ge.u64 %p1, %rd10, %rd14; @%p1 bra DONE;
    add.s64 %rd15, %rd10, -1; max.s64 %rd15, %rd15, 0; add.s64 %rd16, %rd14, -1; add.s64 %rd17, %rd10, 1;
    min.s64 %rd16, %rd17, %rd16; add.s64 %rd18, %rd11, 1; rem.u64 %rd18, %rd18, %rd13;
    mul.lo.s64 %rd18, %rd18, %rd12; mul.lo.s64 %rd19, %rd11, %rd12; mov.f32 %f9, 0f3F800000;
    """
        + "".join(
            f"add.s64 %rd20, {row}, {x}; shl.b64 %rd20, %rd20, 2; add.s64 %rd20, %rd20, %rd1;"
            "ld.global.nc.f32 %f1, [%rd20]; fma.rn.f32 %f9, %f9, 0f3F000000, %f1;"
            for row in ("%rd18", "%rd19")
            for x in ("%rd15", "%rd10", "%rd16")
        )
        + "add.s64 %rd20, %rd19, %rd10; shl.b64 %rd20, %rd20, 2; add.s64 %rd5, %rd2, %rd20; st.global.f32 [%rd5], %f9;",
        index=INDEX.split("mad.lo")[0],
    )
    after, report = shuffled(before, signed_index=False)
    assert len(report.shuffles) == 4
    assert report.assumptions == ()
    assert_assembles(after)
    for block in ((32, 2, 1), (40, 3, 1), (7, 5, 1), (16, 4, 2)):
        for n in (block[0], block[0] - 2):
            assert run(before, n=n, block=block, grid=(1, 1, 1)) == run(after, n=n, block=block, grid=(1, 1, 1))


def test_a_grid_stride_loop():
    before = kernel(f"""
    mov.u32 %r20, %nctaid.x; mul.lo.s32 %r21, %r20, %r3;
    LOOP:
    {body(INDICES["remainder"])}
    add.s32 %r5, %r5, %r21; mul.wide.s32 %rd8, %r21, 4; add.s64 %rd4, %rd4, %rd8; add.s64 %rd5, %rd5, %rd8;
    setp.lt.s32 %p4, %r5, %r1; @%p4 bra LOOP;
    """)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert_assembles(after)
    for n, block in ((300, (32, 1, 1)), (301, (40, 1, 1)), (64, (32, 1, 1)), (130, (32, 1, 1))):
        assert run(before, n=n, block=block, grid=(2, 1, 1)) == run(after, n=n, block=block, grid=(2, 1, 1))


def test_passes_are_compared_where_lanes_may_be_in_different_ones():
    before = kernel(f"""
    mov.u32 %r20, %nctaid.x; mul.lo.s32 %r21, %r20, %r3; mov.u32 %r22, 0; mov.u32 %r23, %r5; mul.wide.s32 %rd8, %r21, 4;
    mov.u64 %rd10, %rd4; mov.u64 %rd11, %rd5;
    OUTER: mov.u32 %r5, %r23; mov.u64 %rd4, %rd10; mov.u64 %rd5, %rd11;
    INNER:
    {body(INDICES["max and min"])}
    ld.global.nc.f32 %f4, [%rd4+8]; ld.global.nc.f32 %f5, [%rd4+-8]; add.f32 %f4, %f4, %f5; st.global.f32 [%rd5], %f4;
    add.s32 %r5, %r5, %r21; add.s64 %rd4, %rd4, %rd8; add.s64 %rd5, %rd5, %rd8;
    setp.lt.s32 %p4, %r5, %r1; @%p4 bra INNER;
    add.s32 %r22, %r22, 1; setp.lt.s32 %p4, %r22, 2; @%p4 bra OUTER;
    """)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-2, -1, 1, 2]
    assert sum(shuffle.checked and shuffle.bordered for shuffle in report.shuffles) == 2
    assert_assembles(after)
    for n, block in ((100, (32, 1, 1)), (75, (40, 1, 1))):
        for order in (None, Random(1), Random(2)):
            launch = {"n": n, "block": block, "grid": (1, 1, 1), "order": order}
            assert run(before, n=n, block=block, grid=(1, 1, 1)) == run(after, **launch)


class TestWhatIsNoBorder:
    @pytest.mark.parametrize(
        "indices",
        [
            "and.b32 %r8, %r4, 1; setp.eq.s32 %p2, %r8, 0; add.s32 %r6, %r5, -1; selp.b32 %r7, %r6, 5, %p2;",
            "setp.eq.s32 %p2, %r5, 7; add.s32 %r6, %r5, -1; selp.b32 %r7, %r6, 5, %p2;",
            "ld.global.nc.u32 %r6, [%rd5]; setp.lt.s32 %p2, %r6, 0; add.s32 %r6, %r5, -1; selp.b32 %r7, %r6, 5, %p2;",
            "ld.global.nc.u32 %r6, [%rd5]; and.b32 %r6, %r6, 63; add.s32 %r7, %r5, 1; min.s32 %r7, %r7, %r6;",
            "add.s32 %r7, %r5, 1; and.b32 %r7, %r7, 15;",
            "add.s32 %r7, %r5, 1; rem.u32 %r7, %r7, 10;",
            "mul.lo.s32 %r7, %r5, 2; rem.s32 %r7, %r7, %r1;",
            "add.s32 %r6, %r5, -1; max.s32 %r6, %r6, 0; sub.s32 %r7, 30, %r6;",
        ],
    )
    def test_left_alone(self, indices):
        before = kernel(body(f"setp.gt.s32 %p2, %r1, 5; mov.u32 %r10, 0; {indices}"))
        after, report = shuffled(before)
        assert deltas(report) == []
        assert after == before

    def test_a_choice_of_an_earlier_pass(self):
        # %r7 is clamped in one pass and used in the next, where the comparison is another one's.
        before = kernel(f"""
        mov.u32 %r7, %r5; mov.u32 %r20, 0; mov.f32 %f9, 0f00000000;
        LOOP: {SIGNED.format(d=6, r="%r7")}
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; fma.rn.f32 %f9, %f9, %f1, %f2;
        sub.s32 %r6, %r5, %r20; max.s32 %r7, %r6, 0;
        add.s32 %r20, %r20, 1; setp.lt.s32 %p2, %r20, 4; @%p2 bra LOOP;
        st.global.f32 [%rd5], %f9;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        assert run(before) == run(after)

    def test_a_choice_behind_its_loop(self):
        before = kernel(f"""
        mov.u32 %r20, 0;
        LOOP: add.s32 %r6, %r5, %r20; max.s32 %r7, %r6, 1; add.s32 %r7, %r7, -1;
        add.s32 %r20, %r20, 1; setp.lt.s32 %p2, %r20, %r4; @%p2 bra LOOP;
        {SIGNED.format(d=6, r="%r7")}
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        assert run(before) == run(after)

    def test_a_choice_on_one_path_only(self):
        # What %border is where the maximum was not computed, nobody knows.
        before = kernel(f"""
        add.s32 %r7, %r5, -1; setp.gt.s32 %p2, %r1, 50; @%p2 bra JOIN; max.s32 %r7, %r7, 0;
        JOIN: {SIGNED.format(d=6, r="%r7")}
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        for n in (40, 90):
            assert run(before, n=n) == run(after, n=n)

    def test_a_store_between_ends_it(self):
        before = kernel(f"""
        {INDICES["max and min"]} {SIGNED.format(d=6, r="%r7")}
        ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd4], 0f00000000; ld.global.f32 %f2, [%rd6];
        add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
        """)
        assert deltas(shuffled(before)[1]) == []
        assert deltas(shuffled(before.replace("[%rd4], 0f", "[%rd4+64], 0f"))[1]) == []
        assert deltas(shuffled(before.replace("[%rd4], 0f", "[%rd4+128], 0f"))[1]) == [-1]
        without = before.replace("st.global.f32 [%rd4], 0f00000000;", "")
        assert deltas(shuffled(without)[1]) == [-1]

    def test_a_selection_under_a_predicate_that_the_path_decides(self):
        # The selection is made by %p3; that it is made at all, by %p2, which is true here.
        before = kernel(f"""
        setp.gt.s32 %p2, %r1, 50; @!%p2 bra DONE; setp.gt.s32 %p3, %r5, 9; add.s32 %r6, %r5, -1; mov.u32 %r7, %r5;
        @%p2 selp.b32 %r7, %r6, 0, %p3; {SIGNED.format(d=6, r="%r7")}
        ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
        """)
        after, _ = shuffled(before)
        for n in (40, 90):
            assert run(before, n=n, block=(32, 1, 1)) == run(after, n=n, block=(32, 1, 1))

    MADE_BEFORE = f"""
    setp.gt.s32 %p2, %r1, 50; @!%p2 bra DONE; add.s32 %r6, %r5, -1; mov.u32 %r7, %r5; setp.gt.s32 %p3, %r1, 90;
    @%p2 max.s32 %r7, %r6, 5; {SIGNED.format(d=6, r="%r7")}
    """
    """The maximum is known to be made, by an instruction that says that it may not be."""

    @pytest.mark.parametrize("paths", [("max.s32 %r9, %r6, 5;", "add.s32 %r9, %r6, 5;"), ("", "max.s32 %r9, %r6, 5;")])
    @pytest.mark.parametrize("turned", [False, True])
    def test_a_second_choice_of_the_value_on_one_path(self, paths, turned):
        one, other = reversed(paths) if turned else paths
        before = kernel(f"""
        {self.MADE_BEFORE} mov.u32 %r9, 0; @%p3 bra OTHER; {one} bra JOIN; OTHER: {other}
        JOIN: ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2;
        st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert deltas(report) == []
        assert after == before

    def test_a_second_choice_of_the_value_behind_the_first_load(self):
        # The middle one of the row would be the best source, but cannot be moved up to where its check is not made yet.
        before = kernel(f"""
        {self.MADE_BEFORE} ld.global.nc.f32 %f1, [%rd4]; max.s32 %r9, %r6, 5; ld.global.nc.f32 %f2, [%rd6];
        ld.global.nc.f32 %f3, [%rd4+-8]; add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; st.global.f32 [%rd5], %f1;
        """)
        after, report = shuffled(before)
        assert sorted(deltas(report)) == [-2, -1]
        for n in (60, 96):
            assert run(before, n=n, block=(32, 1, 1)) == run(after, n=n, block=(32, 1, 1))

    def test_an_address_of_doublings(self):
        # Written without sharing, the address has 2^60 operations.
        chain = "".join(f"sub.s32 %r8, %r7, {i}; max.s32 %r7, %r8, %r7;" for i in range(60))
        before = kernel(body(f"mov.u32 %r7, %r5; mov.u32 %r10, 0; {chain}"))
        assert deltas(shuffled(before)[1]) == []


def test_a_remainder_that_wraps_more_than_once():
    # i + 70 reaches over several periods of n; only lanes that wrapped never or once may take a shuffle.
    before = kernel(
        body(
            "add.s32 %r6, %r5, %r1; add.s32 %r6, %r6, -1; add.s32 %r11, %r6, %r1; rem.s32 %r7, %r11, %r1;"
            "add.s32 %r9, %r5, 1; rem.s32 %r10, %r9, 37;"
        )
    )
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert_same(before, after)


def test_transforming_twice_changes_nothing_more():
    once, _ = shuffled(kernel(body(INDICES["remainder"])))
    twice, report = shuffled(once)
    assert twice == once
    assert report.shuffles == ()


def test_a_remainder_of_unsigned_numbers_beyond_the_signed_ones():
    # (i + 2^31 + 5) % (2^31 - 100) is i + 105, which is no difference of the two as signed numbers.
    before = kernel(f"""
    add.s32 %r6, %r5, -2147483643; rem.u32 %r7, %r6, 2147483548; {SIGNED.format(d=6, r="%r7")}
    ld.global.nc.f32 %f1, [%rd4+416]; ld.global.nc.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;
    """)
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert_same(before, after)


@pytest.mark.slow
def test_random_borders():
    random = np.random.default_rng(5)
    found = 0
    for _ in range(20):
        one, other = (list(INDICES.values())[random.integers(len(INDICES))] for _ in range(2))
        shifts = random.integers(-2, 3, 3)
        guard = ("", "@%p5 ", "@!%p6 ")[random.integers(3)]
        lines = "".join(
            f"{indices} add.s32 %r7, %r7, {shifts[0]}; {SIGNED.format(d=6, r='%r7')}"
            f"{SIGNED.format(d=7, r='%r10')} {guard}ld.global.f32 %f{i}, [%rd6+{4 * shifts[1]}];"
            f"{guard}ld.global.f32 %f{i + 1}, [%rd7]; ld.global.f32 %f{i + 2}, [%rd4+{4 * shifts[2]}];"
            for i, indices in ((1, one), (4, other))
        )
        start = "".join(f"mov.f32 %f{i}, 0f3F800000;" for i in range(1, 8))
        sums = "".join(f"fma.rn.f32 %f7, %f7, 0f3F000000, %f{i};" for i in range(1, 7))
        predicates = "rem.u32 %r20, %r4, 3; setp.ne.s32 %p5, %r20, 0; setp.gt.s32 %p6, %r1, 80;"
        before = kernel(predicates + start + lines + sums + "st.global.f32 [%rd5], %f7;")
        after, report = shuffled(before, hoist=bool(random.integers(2)))
        found += len(report.shuffles)
        for n, block in ((100, (32, 1, 1)), (70, (13, 3, 1)), (20, (32, 1, 1))):
            assert run(before, n=n, block=block) == run(after, n=n, block=block), before
    assert found > 40
