"""Loads with predicates, and into vectors of one element, as Triton writes them."""

import itertools

import numpy as np
import pytest

from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.shuffles.synthesis import Variant
from tests.metafork.ptx.snippets import assert_assembles, assert_same_results, deltas, kernel, run, shuffled

GUARDS = ("", "@%p2 ", "@!%p2 ", "@%p3 ", "@%p4 ")
"""p2: all but the last lanes of the array; p3: every third lane; p4: a number that only the host knows."""

PREDICATES = """
    add.s32 %r9, %r1, -7; setp.lt.s32 %p2, %r5, %r9; rem.u32 %r9, %r4, 3; setp.ne.s32 %p3, %r9, 0;
    setp.gt.s32 %p4, %r1, 50; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000;
"""
SUM = "add.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f1, %f1, %f3; st.global.f32 [%rd5], %f1;"


@pytest.mark.parametrize(("first", "second", "third"), list(itertools.product(GUARDS, GUARDS, ("", "@%p2 "))))
@pytest.mark.sampled(10)
def test_every_pair_of_predicates(first, second, third):
    before = kernel(f"""
    {PREDICATES}
    {first}ld.global.nc.f32 %f1, [%rd4]; {second}ld.global.nc.f32 %f2, [%rd4+4]; {third}ld.global.nc.f32 %f3, [%rd4];
    {SUM}
    """)
    after, report = shuffled(before)
    assert (len(report.shuffles), len(report.reuses)) == (1, 1)
    assert_assembles(after)
    for n, block in ((100, (32, 1, 1)), (45, (33, 3, 1)), (97, (40, 1, 1))):
        assert run(before, n=n, block=block) == run(after, n=n, block=block)


def test_the_same_predicate_needs_no_second_load():
    before = kernel(f"{PREDICATES} @%p3 ld.global.nc.f32 %f1, [%rd4]; @%p3 ld.global.nc.f32 %f2, [%rd4]; {SUM}")
    after, _ = shuffled(before)
    assert after.count("ld.global") == 1
    assert_same_results(before, after)
    # Written in between, the predicate is another.
    changed = before.replace("%f1, [%rd4];", "%f1, [%rd4]; not.pred %p3, %p3;")
    after, _ = shuffled(changed)
    assert after.count("ld.global") == 2
    assert_same_results(changed, after)


def test_a_predicated_store_between_ends_the_load():
    before = kernel(f"""
    {PREDICATES} @%p2 ld.global.f32 %f1, [%rd4]; @%p3 st.global.f32 [%rd4+4], %f3; @%p2 ld.global.f32 %f2, [%rd4+4];
    {SUM}
    """)
    assert deltas(shuffled(before)[1]) == []


def test_doubles_and_loads_into_their_own_address():
    before = kernel(f"""
    {PREDICATES} mul.wide.s32 %rd3, %r5, 8; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.b64 %rd6, 5;
    @%p2 ld.global.nc.b64 %rd6, [%rd4]; mov.b64 %rd7, %rd4; mov.b64 %rd8, %rd4;
    @%p3 ld.global.nc.b64 %rd7, [%rd7+8]; @%p3 ld.global.nc.b64 %rd8, [%rd8];
    @!%p3 mov.b64 %rd7, 9; @!%p3 mov.b64 %rd8, 8;
    xor.b64 %rd6, %rd6, %rd7; add.s64 %rd6, %rd6, %rd8; st.global.b64 [%rd5], %rd6;
    """)
    after, report = shuffled(before)
    assert (len(report.shuffles), len(report.reuses)) == (1, 1)
    assert_same_results(before, after, element="f8", size=1024)


def test_transforming_twice_changes_nothing_more():
    before = kernel(f"{PREDICATES} @%p2 ld.global.nc.f32 %f1, [%rd4]; @%p3 ld.global.nc.f32 %f2, [%rd4+4]; {SUM}")
    once, _ = shuffled(before)
    twice, report = shuffled(once)
    assert twice == once
    assert report.shuffles == ()


@pytest.mark.parametrize("variant", [Variant.NO_LOAD, Variant.NO_CORNER])
def test_measuring_variants_assemble(variant):
    before = kernel(f"{PREDICATES} @%p2 ld.global.nc.f32 %f1, [%rd4]; @%p3 ld.global.nc.f32 %f2, [%rd4+4]; {SUM}")
    text = shuffle_text(before, Options(variant=variant)).text
    assert text.count("ld.global") == 1
    assert_assembles(text)


@pytest.mark.parametrize("guard", ["", "@%p2 "])
def test_vectors_of_one_element(guard):
    before = kernel(f"""
    {PREDICATES}
    {guard}ld.global.v1.b32 {{ %f1 }}, [ %rd4 + 0 ]; {guard}ld.global.v1.b32 {{ %f2 }}, [ %rd4 + 4 ];
    {guard}ld.global.v1.b32 {{ %f3 }}, [ %rd4 + 0 ]; {SUM}
    """).replace(".v1", "")
    after, report = shuffled(before)
    assert (len(report.shuffles), len(report.reuses)) == (1, 1)
    assert_same_results(before, after)


def test_random_rows_with_predicates():
    random = np.random.default_rng(11)
    for _ in range(12):
        loads = "\n".join(
            f"mov.f32 %f{i}, 0f00000000; {GUARDS[random.integers(5)]}ld.global.nc.f32 %f{i},"
            f"[%rd4+{4 * random.integers(-2, 3)}];"
            for i in range(1, 10)
        )
        sums = "".join(f"fma.rn.f32 %f10, %f10, %f11, %f{i};" for i in range(1, 10))
        body = f"{PREDICATES} {loads} mov.f32 %f10, 0f3F800000; mov.f32 %f11, 0f3F000000; {sums}"
        before = kernel(body + "st.global.f32 [%rd5], %f10;")
        after, report = shuffled(before)
        assert report.shuffles
        for block in ((32, 1, 1), (17, 3, 1), (96, 1, 1)):
            assert run(before, block=block) == run(after, block=block)
