"""Narrow loads and vectors: 8 and 16 bits through shuffles of 32, elements of vectors each through its own."""

import itertools

import numpy as np
import pytest

from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.shuffles.synthesis import Variant
from tests.metafork.ptx.snippets import BLOCKS, assert_assembles, assert_same_results, deltas, kernel, run, shuffled

REGISTERS = {16: "%h", 32: "%r", 64: "%rd"}


def narrow(one, other, widths, size, guard="", nc=".nc"):
    """Two neighbours of ``size`` bits, extended by two types into registers of two widths, and a mix of all bits."""
    byte = size // 8
    first, second = (f"{REGISTERS[width]}{number}" for width, number in zip(widths, (6, 7), strict=True))
    wide = "".join(
        f"mov.b64 %rd{to}, {register};" if width == 64 else f"cvt.u64.u{width} %rd{to}, {register};"
        for register, width, to in ((first, widths[0], 11), (second, widths[1], 12))
    )
    return kernel(f"""
    rem.u32 %r9, %r4, 3; setp.ne.s32 %p2, %r9, 0; mov.b{widths[1]} {second}, 5;
    mul.wide.s32 %rd3, %r5, {byte}; add.s64 %rd4, %rd1, %rd3;
    ld.global{nc}.{one}{size} {first}, [%rd4]; {guard}ld.global{nc}.{other}{size} {second}, [%rd4+{byte}];
    {wide} mul.lo.s64 %rd12, %rd12, 3; xor.b64 %rd11, %rd11, %rd12; shr.u64 %rd12, %rd11, 32;
    xor.b64 %rd11, %rd11, %rd12; cvt.u32.u64 %r13, %rd11; st.global.u32 [%rd5], %r13;
    """)


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize(("one", "other"), list(itertools.product("sub", repeat=2)))
@pytest.mark.sampled(6)
def test_every_pair_of_extensions_and_widths(size, one, other):
    for widths in itertools.product([width for width in REGISTERS if width >= size], repeat=2):
        before = narrow(one, other, widths, size)
        after, report = shuffled(before)
        assert deltas(report) == [1]
        assert report.shuffles[0].size == size // 8
        assert_assembles(after)
        for n, block in ((100, (32, 1, 1)), (45, (33, 3, 1))):
            assert run(before, n=n, block=block) == run(after, n=n, block=block), widths


@pytest.mark.parametrize("guard", ["@%p2 ", "@!%p2 "])
@pytest.mark.parametrize(("size", "widths"), [(8, (16, 16)), (8, (32, 32)), (16, (16, 64)), (32, (64, 64))])
def test_narrow_loads_with_predicates(size, widths, guard):
    before = narrow("u", "s", widths, size, guard)
    after, report = shuffled(before)
    assert deltas(report) == [1]
    assert_same_results(before, after)


def test_bytes_at_clamped_borders():
    before = kernel("""
    add.s32 %r6, %r5, -1; max.s32 %r7, %r6, 0; cvt.s64.s32 %rd6, %r7; add.s64 %rd6, %rd1, %rd6;
    cvt.s64.s32 %rd3, %r5; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.nc.u8 %h1, [%rd4]; ld.global.nc.s8 %h2, [%rd6]; ld.global.nc.s8 %h3, [%rd4+1];
    sub.s16 %h1, %h1, %h2; mul.lo.s16 %h1, %h1, %h3; shr.s16 %h1, %h1, 3; st.global.u8 [%rd5], %h1;
    """)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1]
    assert_same_results(before, after)


def test_two_extensions_of_one_byte_are_two_values():
    before = kernel("""
    cvt.s64.s32 %rd3, %r5; add.s64 %rd4, %rd1, %rd3;
    ld.global.nc.u8 %r6, [%rd4]; ld.global.nc.s8 %r7, [%rd4]; ld.global.nc.s8 %r8, [%rd4+1];
    shl.b32 %r7, %r7, 3; xor.b32 %r6, %r6, %r7; shl.b32 %r8, %r8, 7; xor.b32 %r6, %r6, %r8; st.global.u32 [%rd5], %r6;
    """)
    after, report = shuffled(before)
    # The other lane's byte serves both, each with its own extension.
    assert [abs(delta) for delta in deltas(report)] == [1, 1]
    assert report.reuses == ()
    assert_same_results(before, after)


VECTOR = """
    mul.wide.s32 %rd3, %r5, {bytes}; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
"""
SUMS = "add.f32 %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f4, %f1; {more} st.global.f32 [%rd5], %f3;"


def vectors(body, size=16):
    return kernel(VECTOR.format(bytes=size) + body)


@pytest.mark.parametrize("block", BLOCKS)
def test_neighbours_of_a_vector(block):
    # nvcc writes the element that it needs of the next float4 as a load of its own.
    before = vectors("""
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4]; ld.global.nc.f32 %f5, [%rd4+16]; ld.global.nc.f32 %f6, [%rd4+-4];
    ld.global.nc.v2.f32 {%f7, %f8}, [%rd4+24]; ld.global.nc.f32 %f9, [%rd4+8];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f4, %f1; fma.rn.f32 %f3, %f3, %f5, %f6; fma.rn.f32 %f3, %f3, %f7, %f8;
    add.f32 %f3, %f3, %f9; st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 1, 1]
    assert [shuffle.size for shuffle in report.shuffles] == [4, 4, 8]
    assert len(report.reuses) == 1
    assert_assembles(after)
    for n in (100, 37):
        assert run(before, block=block, n=n) == run(after, block=block, n=n)


@pytest.mark.parametrize(
    ("kind", "count", "part"), [("f32", 2, 4), ("b32", 4, 4), ("f64", 2, 8), ("u32", 2, 4), ("b64", 2, 8)]
)
def test_whole_vectors(kind, count, part):
    name = {"f32": "%f", "b32": "%f", "f64": "%fd", "u32": "%r", "b64": "%rd"}[kind]
    first = {"%f": 6, "%fd": 0}.get(name, 16)
    rows = [[f"{name}{first + count * row + element}" for element in range(count)] for row in range(3)]
    stride = count * part
    loads = "".join(
        f"ld.global.nc.v{count}.{kind} {{{', '.join(row)}}}, [%rd4+{offset * stride}];"
        for row, offset in zip(rows, (-1, 0, 2), strict=True)
    )
    stores = "".join(
        f"st.global.v{count}.{kind} [%rd5+{2048 * number}], {{{', '.join(row)}}};" for number, row in enumerate(rows)
    )
    before = vectors(loads + stores, stride)
    after, report = shuffled(before)
    assert sorted(deltas(report)) == [-1, 2]
    assert_assembles(after)
    for n, block in ((40, (32, 1, 1)), (30, (11, 3, 1)), (5, (32, 1, 1))):
        assert run(before, n=n, block=block, size=8192) == run(after, n=n, block=block, size=8192)


def test_vectors_with_predicates_and_borders():
    before = vectors("""
    rem.u32 %r9, %r4, 3; setp.ne.s32 %p2, %r9, 0; add.s32 %r6, %r5, 1; add.s32 %r7, %r1, -1; min.s32 %r6, %r6, %r7;
    mul.wide.s32 %rd6, %r6, 16; add.s64 %rd6, %rd1, %rd6; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
    @%p2 ld.global.nc.v2.f32 {%f1, %f2}, [%rd4+8]; ld.global.nc.v2.f32 {%f3, %f4}, [%rd6+8];
    mov.b64 %rd7, %rd4; @!%p2 ld.global.nc.v2.b64 {%rd7, %rd8}, [%rd7]; ld.global.nc.v2.b64 {%rd9, %rd6}, [%rd6];
    @%p2 mov.b64 %rd7, 1; @%p2 mov.b64 %rd8, 3; xor.b64 %rd7, %rd7, %rd8; xor.b64 %rd9, %rd9, %rd6;
    add.s64 %rd7, %rd7, %rd9; st.global.b64 [%rd5+8], %rd7;
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f4, %f1; st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert deltas(report) == [1, 1]
    assert_same_results(before, after, size=8192, n=40)


@pytest.mark.parametrize(
    "loads",
    [
        # The value that is asked for is dropped.
        "ld.global.nc.v4.f32 {%f1, %f2, %f4, _}, [%rd4]; ld.global.nc.f32 %f3, [%rd4+-4];",
        # It begins in one lane's vector and ends in the next one's.
        "ld.global.nc.v2.f32 {%f1, %f2}, [%rd4]; ld.global.nc.f32 %f4, [%rd4]; ld.global.nc.f64 %fd1, [%rd4+8];",
        # Elements of other sizes.
        "ld.global.nc.v2.f64 {%fd1, %fd2}, [%rd4]; ld.global.nc.f32 %f1, [%rd4+16];",
        # Vectors of bytes would take a shuffle a byte.
        "ld.global.nc.v4.u8 {%h1, %h2, %h3, %h4}, [%rd4]; ld.global.nc.v4.u8 {%h1, %h2, %h3, %h4}, [%rd4+16];",
        # Written in between.
        "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4]; st.global.f32 [%rd4+12], %f1; ld.global.f32 %f2, [%rd4+-4];",
    ],
)
def test_what_is_left_alone(loads):
    start = "setp.gt.s32 %p2, %r1, 5; mov.f32 %f2, 0f3F800000; mov.f32 %f3, %f2; mov.f32 %f4, %f2;"
    before = vectors(start + loads + SUMS.format(more=""))
    after, report = shuffled(before)
    assert deltas(report) == []
    assert run(before) == run(after)


def test_the_elements_that_are_not_dropped():
    before = vectors("""
    ld.global.nc.v4.f32 {%f1, _, %f4, %f2}, [%rd4]; ld.global.nc.f32 %f3, [%rd4+-4]; ld.global.nc.f32 %f5, [%rd4+-8];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f4, %f1; add.f32 %f3, %f3, %f5; st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert deltas(report) == [-1, -1]
    for n in (100, 37):
        assert run(before, n=n) == run(after, n=n)


def test_a_vector_that_goes_serves_nobody():
    # The second vector comes from the first; so the third load takes the first's, two lanes away.
    before = vectors("""
    ld.global.nc.v2.f32 {%f1, %f2}, [%rd4]; ld.global.nc.v2.f32 {%f3, %f4}, [%rd4+16]; ld.global.nc.f32 %f5, [%rd4+36];
    add.f32 %f1, %f1, %f2; fma.rn.f32 %f3, %f3, %f4, %f1; add.f32 %f3, %f3, %f5; st.global.f32 [%rd5], %f3;
    """)
    after, report = shuffled(before)
    assert deltas(report) == [1, 2]
    assert_same_results(before, after)
    assert sorted(deltas(shuffled(before, max_delta=1)[1])) == [1]


@pytest.mark.parametrize("variant", [Variant.NO_LOAD, Variant.NO_CORNER])
def test_measuring_variants_assemble(variant):
    before = vectors("""
    ld.global.nc.v2.f32 {%f1, %f2}, [%rd4]; ld.global.nc.v2.f32 {%f3, %f4}, [%rd4+16]; ld.global.nc.u8 %h1, [%rd4];
    ld.global.nc.s8 %h2, [%rd4+16]; st.global.v2.f32 [%rd5], {%f3, %f4}; st.global.u8 [%rd5+64], %h2;
    """)
    text = shuffle_text(before, Options(variant=variant)).text
    assert text.count("ld.global") == 2
    assert_assembles(text)


def test_random_rows_of_elements():
    random = np.random.default_rng(3)
    found = 0
    for _ in range(15):
        loads, sums = [], []
        for i in range(1, 8):
            width = (1, 2, 4)[random.integers(3)]
            names = [f"%f{4 * i + k}" for k in range(width)]
            guard = ("", "", "@%p2 ")[random.integers(3)]
            loads += [f"mov.f32 {name}, 0f3F800000;" for name in names]
            target = f"{{{', '.join(names)}}}" if width > 1 else names[0]
            vector = f".v{width}" if width > 1 else ""
            offset = 4 * width * random.integers(-16 // width, 20 // width)
            loads.append(f"{guard}ld.global.nc{vector}.f32 {target}, [%rd4+{offset}];")
            sums += [f"fma.rn.f32 %f1, %f1, 0f3F000000, {name};" for name in names]
        start = "rem.u32 %r9, %r4, 3; setp.ne.s32 %p2, %r9, 0; mov.f32 %f1, 0f3F800000;"
        before = vectors(start + "\n".join(loads) + "".join(sums) + "st.global.f32 [%rd5], %f1;")
        after, report = shuffled(before, hoist=bool(random.integers(2)))
        found += len(report.shuffles)
        assert_assembles(after)
        for n, block in ((100, (32, 1, 1)), (37, (13, 3, 1))):
            assert run(before, n=n, block=block) == run(after, n=n, block=block), before
    assert found > 30
