"""Loads in loops that lanes are in different passes of: replaced where the code compares the passes, and right."""

import random
import re

import numpy as np
import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.kernels import DATA
from tests.metafork.ptx.snippets import assert_assembles, assert_same_results, deltas, kernel, run, shuffled
from tests.sampling import sampled

LOOPS = (DATA / "loops.ptx").read_text()
COUNTS = {"nest": (18, 27), "outer": (16, 25), "strips": (8, 12), "guarded": (10, 23)}
DIMENSIONS = {"nest": 3, "outer": 2, "strips": 2, "guarded": 2}


def launched(text, name, shape, grid, block, order=None):
    """Run a kernel of loops.cu on random data; return memory and what was executed."""
    values = np.random.default_rng(5).standard_normal(int(np.prod(shape))).astype("f4")
    memory = GlobalMemory()
    arrays = [memory.upload(values), memory.upload(np.zeros_like(values))]
    sizes = shape[: DIMENSIONS[name]]
    schedule = None if order is None else random.Random(order)
    done = run_kernel(parse(text), name, grid, block, [*sizes, *arrays], memory=memory, order=schedule)
    return memory.snapshot(), done


def test_counts():
    result = shuffle_text(LOOPS)
    assert {r.name: (len(r.shuffles), r.loads) for r in result.kernels} == COUNTS
    # Lanes of the outermost loop only leave it: nothing is compared there.
    assert {r.name for r in result.kernels if any(s.checked for s in r.shuffles)} == {"nest", "strips", "guarded"}
    assert_assembles(result.text)
    without = shuffle_text(LOOPS, Options(check_passes=False))
    assert {r.name: len(r.shuffles) for r in without.kernels} == {"nest": 0, "outer": 16, "strips": 0, "guarded": 0}
    assert "%shuffle_pass" not in without.text


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(
    ("shape", "grid", "block"),
    sampled(
        {
            "a warp": ((77, 7, 5), (1, 1, 1), (32, 1, 1)),
            "rows of warps": ((150, 6, 5), (2, 1, 2), (16, 2, 2)),
            "parts of warps": ((101, 5, 6), (1, 2, 1), (45, 2, 1)),
        },
        ("parts of warps",),
    ),
)
@pytest.mark.sampled(2)
def test_results_are_the_same_bits(name, shape, grid, block):
    after = shuffle_text(LOOPS).text
    grid, block = (grid, block) if name == "nest" else ((4, 1, 1) if name == "guarded" else (2, 1, 1), (block[0], 1, 1))
    shape = shape if name == "nest" else (shape[0], shape[1] * shape[2], 1)
    before_memory, before_run = launched(LOOPS, name, shape, grid, block)
    after_memory, after_run = launched(after, name, shape, grid, block)
    assert before_memory == after_memory
    if block[0] * block[1] * block[2] >= 32:
        assert after_run.executed["shfl"]
        assert after_run.lanes["ld.global"] < before_run.lanes["ld.global"]
    if name == "outer":
        return
    # Lanes that part and meet anywhere: what is compared does not rest on where they reconverge.
    for order in range(3):
        assert launched(after, name, shape, grid, block, order)[0] == before_memory


MEETING = """
    mov.u32 %r9, 0; mov.f32 %f9, 0f00000000; and.b32 %r11, %r4, 1; setp.eq.s32 %p3, %r11, 0;
    LOOP:
    mad.lo.s32 %r10, %r9, 7, %r5; mul.wide.s32 %rd6, %r10, 4; add.s64 %rd7, %rd1, %rd6;
    add.s32 %r9, %r9, 1; setp.eq.and.s32 %p4, %r9, 1, %p3;
    @%p4 bra LOOP;
    ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4]; ld.global.nc.f32 %f3, [%rd7+-4];
    add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f9, %f2, %f3;
    setp.lt.s32 %p2, %r9, 4; @%p2 bra LOOP;
    st.global.f32 [%rd5], %f9;
"""
"""Even lanes skip the loads of the first pass, and then meet the odd ones there, one pass ahead."""


def test_lanes_that_meet_in_different_passes():
    # Written without the condition that splits warps, which is a reason of its own to leave loads alone.
    before = kernel(MEETING.replace("setp.eq.s32 %p3, %r11, 0", "sub.s32 %r11, 0, %r11; setp.ge.s32 %p3, %r11, 0"))
    before = before.replace("and.b32 %r11, %r4, 1;", "add.s32 %r11, %r4, -5;")
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert all(shuffle.checked for shuffle in report.shuffles)
    assert_same_results(before, after)
    # Without the comparison values would travel between passes.
    careless = re.sub(r"or\.pred %shuffle_corner, %shuffle_corner, %shuffle_apart;", "", after)
    assert careless != after
    assert run(before, block=(32, 1, 1)) != run(careless, block=(32, 1, 1))


def test_a_comparison_dearer_than_the_loads_is_not_made():
    before = kernel(
        MEETING.replace("setp.eq.s32 %p3, %r11, 0", "setp.gt.s32 %p3, %r4, 5").replace(", [%rd7+-4]", ", [%rd5]")
    )
    _, report = shuffled(before)
    assert deltas(report) == []
    assert "comparing the lanes' passes of 1 loops is dearer than 1 loads" in {
        left.reason for left in report.left_alone
    }


def test_decisions_of_a_pass_do_not_tell_how_lanes_left():
    # In odd passes %rd9 is another array; lanes leave in passes of their own, so neighbours may hold either.
    before = kernel("""
    mov.u32 %r9, 0; mul.lo.s32 %r12, %r3, 1; mov.u32 %r13, %r5;
    LOOP:
    and.b32 %r10, %r9, 1; setp.eq.s32 %p2, %r10, 0; mov.u64 %rd9, %rd4;
    @%p2 bra EVEN;
    mov.u64 %rd9, %rd5;
    EVEN:
    add.s32 %r9, %r9, 1; add.s32 %r13, %r13, %r12; setp.lt.s32 %p3, %r13, %r1; @%p3 bra LOOP;
    ld.global.f32 %f1, [%rd9]; ld.global.f32 %f2, [%rd9+4]; ld.global.f32 %f3, [%rd9+-4];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f1, %f2, %f3; st.global.f32 [%rd5+1024], %f1;
    """)
    after, report = shuffled(before)
    assert deltas(report) == []
    for n in (50, 100, 115):
        assert_same_results(before, after, n=n, grid=(1, 1, 1))


def test_counts_of_inner_loops_begin_anew():
    # Lane l makes l % 4 + 1 inner passes in outer pass 0, all the same number in pass 1.
    before = kernel("""
    mov.u32 %r9, 0; mov.f32 %f9, 0f00000000;
    OUTER: mov.u32 %r10, 0; mov.u32 %r11, 3; setp.eq.s32 %p5, %r9, 0; @%p5 mov.u32 %r11, %r4;
    INNER: mad.lo.s32 %r12, %r9, 5, %r5; mad.lo.s32 %r12, %r10, 3, %r12; mul.wide.s32 %rd6, %r12, 4;
    add.s64 %rd7, %rd1, %rd6;
    ld.global.nc.f32 %f1, [%rd7]; ld.global.nc.f32 %f2, [%rd7+4]; ld.global.nc.f32 %f3, [%rd7+-4];
    ld.global.nc.f32 %f4, [%rd7+8];
    add.f32 %f9, %f9, %f1; fma.rn.f32 %f9, %f9, %f2, %f3; add.f32 %f9, %f9, %f4;
    add.s32 %r10, %r10, 1; setp.lt.s32 %p2, %r10, 3; @%p2 bra INNER;
    setp.lt.s32 %p3, %r10, %r4; @%p3 bra INNER;
    add.s32 %r9, %r9, 1; setp.lt.s32 %p4, %r9, 3; @%p4 bra OUTER;
    st.global.f32 [%rd5], %f9;
    """)
    after, report = shuffled(before)
    assert len(report.shuffles) == 3
    assert_same_results(before, after)
    for seed in range(4):
        assert run(before, block=(32, 1, 1)) == run(after, block=(32, 1, 1), order=random.Random(seed))
