"""The interpreter against NumPy and exact arithmetic, on single instructions and on what LLVM emits."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest

from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import PtxError
from tests.metafork.ptx.snippets import kernel

UNSIGNED = {"32": np.uint32, "64": np.uint64, "16": np.uint16}
TYPES = {
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f32": np.float32, "f64": np.float64,
}  # fmt: skip
EDGES = {
    "u32": [0, 1, 2, 31, 32, 33, 2**31 - 1, 2**31, 2**32 - 1, 0x12345678],
    "s32": [0, 1, -1, 5, -5, 31, 2**31 - 1, -(2**31), 100, -77],
    "u64": [0, 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 12345678901234567, 63, 64, 3],
    "s64": [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32), 7, -7, 10**17],
    "f32": [0.0, -0.0, 1.0, -1.5, 3.4e38, 1e-40, math.inf, -math.inf, math.nan, 0.1],
    "f64": [0.0, -0.0, 1.0, -1.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, 0.1],
}


def pairs(kind):
    """All pairs of edge values, and random ones."""
    name = kind.replace("b", "u")
    values = np.array(EDGES[name], TYPES[name])
    random = np.random.default_rng(5)
    if name[0] == "f":
        more = random.standard_normal(20).astype(TYPES[name])
    else:
        more = random.integers(0, 2**63, 20, dtype=np.uint64).astype(UNSIGNED[name[1:]]).view(TYPES[name])
    values = np.concatenate([values, more])
    left, right = np.meshgrid(values, values)
    return left.ravel(), right.ravel()


def execute(instruction, kind, left, right, result=None):
    """Run ``instruction`` with A, B for the sources and D for the destination on each pair."""
    result = result or kind
    size, out = np.dtype(TYPES[kind]).itemsize, np.dtype(TYPES[result]).itemsize
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u32 n) {{
  .reg .pred %p<3>; .reg .b{8 * size} %a, %b; .reg .b{8 * out} %d; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [d]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1; @%p1 exit;
  mad.wide.u32 %rd4, %r5, {size}, %rd1; mad.wide.u32 %rd5, %r5, {size}, %rd2; mad.wide.u32 %rd6, %r5, {out}, %rd3;
  ld.global.b{8 * size} %a, [%rd4]; ld.global.b{8 * size} %b, [%rd5];
  {instruction.replace("D", "%d").replace("A", "%a").replace("B", "%b")}
  st.global.b{8 * out} [%rd6], %d; ret; }}"""
    memory = GlobalMemory()
    a, b = memory.upload(left), memory.upload(right)
    d = memory.allocate(left.size * out)
    run_kernel(parse(text), "k", (-(-left.size // 64),), (64,), [a, b, d, left.size], memory=memory)
    return memory.read(d, left.size, TYPES[result])


def bits(values):
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def wrapped(value, kind):
    size = int(kind[1:])
    value %= 1 << size
    return value - (1 << size) if kind[0] == "s" and value >> (size - 1) else value


def towards_zero(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGERS = [
    ("add.s32 D, A, B;", "s32", lambda a, b: a + b),
    ("sub.u64 D, A, B;", "u64", lambda a, b: a - b),
    ("add.sat.s32 D, A, B;", "s32", lambda a, b: max(min(a + b, 2**31 - 1), -(2**31))),
    ("mul.lo.s64 D, A, B;", "s64", lambda a, b: a * b),
    ("mul.hi.s64 D, A, B;", "s64", lambda a, b: a * b >> 64),
    ("mul.hi.u64 D, A, B;", "u64", lambda a, b: a * b >> 64),
    ("mul.hi.u32 D, A, B;", "u32", lambda a, b: a * b >> 32),
    ("mad.lo.u32 D, A, B, A;", "u32", lambda a, b: a * b + a),
    (
        "mad24.lo.s32 D, A, B, B;",
        "s32",
        lambda a, b: wrapped(a << 8, "s32") // 256 * (wrapped(b << 8, "s32") // 256) + b,
    ),
    ("div.s32 D, A, B;", "s32", lambda a, b: towards_zero(a, b) if b else None),
    ("div.u64 D, A, B;", "u64", lambda a, b: a // b if b else None),
    ("rem.s64 D, A, B;", "s64", lambda a, b: a - towards_zero(a, b) * b if b else None),
    ("rem.u32 D, A, B;", "u32", lambda a, b: a % b if b else None),
    ("min.s64 D, A, B;", "s64", min),
    ("max.u32 D, A, B;", "u32", max),
    ("abs.s32 D, A;", "s32", lambda a, b: abs(a)),
    ("neg.s64 D, A;", "s64", lambda a, b: -a),
    ("not.b32 D, A;", "b32", lambda a, b: ~a),
    ("cnot.b32 D, A;", "b32", lambda a, b: int(a == 0)),
    ("xor.b64 D, A, B;", "b64", lambda a, b: a ^ b),
    ("and.b32 D, A, B;", "b32", lambda a, b: a & b),
    ("shl.b32 D, A, B;", "b32", lambda a, b: a << b if b < 32 else 0),
    ("shr.u32 D, A, B;", "u32", lambda a, b: a >> b if b < 32 else 0),
    ("sad.u32 D, A, B, A;", "u32", lambda a, b: abs(a - b) + a),
    ("popc.b32 D, A;", "b32", lambda a, b: a.bit_count()),
    ("clz.b32 D, A;", "b32", lambda a, b: 32 - a.bit_length()),
    ("brev.b64 D, A;", "b64", lambda a, b: int(f"{a:064b}"[::-1], 2)),
    ("bfind.u32 D, A;", "u32", lambda a, b: a.bit_length() - 1),
    ("bfind.s32 D, A;", "s32", lambda a, b: (a if a >= 0 else ~a).bit_length() - 1),
    ("bfe.u32 D, A, 7, 5;", "u32", lambda a, b: a >> 7 & 31),
    ("bfe.s32 D, A, 28, 9;", "s32", lambda a, b: wrapped(a, "s32") >> 28),
    ("bfi.b64 D, A, B, 12, 20;", "b64", lambda a, b: b & ~(0xFFFFF << 12) | (a & 0xFFFFF) << 12),
    ("shf.l.wrap.b32 D, A, B, 5;", "b32", lambda a, b: (b << 32 | a) << 5 >> 32),
    ("shf.r.clamp.b32 D, A, B, 40;", "b32", lambda a, b: b),
    ("prmt.b32 D, A, B, 0x7610;", "b32", lambda a, b: a & 0xFFFF | b & 0xFFFF0000),
    ("prmt.b32 D, A, B, 0x8888;", "b32", lambda a, b: 0xFFFFFFFF if a & 0x80 else 0),
    ("lop3.b32 D, A, B, A, 0x3c;", "b32", lambda a, b: a ^ b),
    ("setp.lt.s32 %p1, A, B; selp.s32 D, A, B, %p1;", "s32", min),
    ("setp.hi.u32 %p1|%p2, A, B; selp.b32 D, A, B, %p2;", "u32", min),
    ("set.ge.s32.s32 D, A, B;", "s32", lambda a, b: -1 if a >= b else 0),
    ("slct.s32.s32 D, A, B, A;", "s32", lambda a, b: a if a >= 0 else b),
    ("mul.lo.u32 D, A, B; add.cc.u32 %r6, A, B; addc.u32 D, D, 0;", "u32", lambda a, b: a * b + (a + b >> 32)),
    ("sub.cc.u32 %r6, A, B; subc.u32 D, A, 0;", "u32", lambda a, b: a - (a < b)),
    ("{ .reg .b16 h, l; mov.b32 {l, h}, A; mov.b32 D, {h, l}; }", "b32", lambda a, b: a >> 16 | a << 16),
    ("cvt.s32.s8 D, A;", "s32", lambda a, b: wrapped(a, "s8")),
    ("cvt.u32.u16 D, A;", "u32", lambda a, b: a & 0xFFFF),
]


@pytest.mark.parametrize(("instruction", "kind", "reference"), INTEGERS, ids=[i[0] for i in INTEGERS])
def test_integers(instruction, kind, reference):
    left, right = pairs(kind)
    results = execute(instruction, kind, left, right)
    for a, b, got in zip(left.tolist(), right.tolist(), results.tolist(), strict=True):
        expected = reference(a, b)
        if expected is not None:
            assert got == wrapped(expected, kind), (a, b)


WIDENING = [
    ("mul.wide.s32 D, A, B;", "s32", "s64", lambda a, b: a * b),
    ("mul.wide.u32 D, A, B;", "u32", "u64", lambda a, b: a * b),
    ("cvt.s64.s32 D, A;", "s32", "s64", lambda a, b: a),
    ("cvt.u64.u32 D, A;", "u32", "u64", lambda a, b: a),
    ("cvt.u32.u64 D, A;", "u64", "u32", lambda a, b: a),
    ("cvt.sat.s32.s64 D, A;", "s64", "s32", lambda a, b: max(min(a, 2**31 - 1), -(2**31))),
    ("mov.b64 D, {A, B};", "b32", "b64", lambda a, b: a | b << 32),
]


@pytest.mark.parametrize(("instruction", "kind", "result", "reference"), WIDENING, ids=[w[0] for w in WIDENING])
def test_widths(instruction, kind, result, reference):
    left, right = pairs(kind)
    results = execute(instruction, kind, left, right, result)
    for a, b, got in zip(left.tolist(), right.tolist(), results.tolist(), strict=True):
        assert got == wrapped(reference(a, b), result), (a, b)


def exact_fma(a, b, c, kind):
    """a·b + c by rationals, rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    if kind == "f64":
        return float(exact) if abs(exact) < 2**1024 - 2**970 else math.copysign(math.inf, 1 if exact > 0 else -1)
    # The nearest single: scale so that the 24-bit significand is an integer, round that to even.
    exponent = max(math.frexp(float(exact))[1] - 24, -149)
    scaled = exact / Fraction(2) ** exponent
    low = scaled.numerator // scaled.denominator
    rest = scaled - low
    low += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2)
    value = float(Fraction(low) * Fraction(2) ** exponent)
    return value if abs(value) < 2.0**128 else math.copysign(math.inf, value)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fused_multiply_add_rounds_once(kind):
    left, right = pairs(kind)
    random = np.random.default_rng(3)
    # Products that nearly cancel, where a second rounding shows.
    tight = random.standard_normal(400).astype(TYPES[kind])
    left = np.concatenate([left, tight, tight])
    right = np.concatenate([right, (1 / tight).astype(TYPES[kind]), tight])
    with np.errstate(all="ignore"):
        results = execute(f"fma.rn.{kind} D, A, B, -1.0;", kind, left, right)
        expected = np.array([exact_fma(a, b, -1.0, kind) for a, b in zip(left.tolist(), right.tolist(), strict=True)])
        expected = expected.astype(TYPES[kind])
    np.testing.assert_array_equal(results, expected)


FLOATS = [
    ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b),
    ("div.rn", lambda a, b: a / b), ("min", np.fmin), ("max", np.fmax), ("copysign", lambda a, b: np.copysign(b, a)),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(("opcode", "reference"), FLOATS, ids=[f[0] for f in FLOATS])
def test_floats(opcode, reference, kind):
    left, right = pairs(kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(execute(f"{opcode}.{kind} D, A, B;", kind, left, right), reference(left, right))


def test_directed_rounding():
    left, right = pairs("f32")
    exact = [Fraction(a) + Fraction(b) if math.isfinite(a) and math.isfinite(b) else None
             for a, b in zip(left.tolist(), right.tolist(), strict=True)]  # fmt: skip
    down = execute("add.rm.f32 D, A, B;", "f32", left, right)
    up = execute("add.rp.f32 D, A, B;", "f32", left, right)
    inexact = 0
    for low, high, true in zip(down.tolist(), up.tolist(), exact, strict=True):
        if true is None or not math.isfinite(low) or not math.isfinite(high):
            continue
        assert Fraction(low) <= true <= Fraction(high)
        inexact += low != high
        if low != high:
            assert np.nextafter(np.float32(low), np.float32(np.inf)) == np.float32(high)
    assert inexact > 50


@pytest.mark.parametrize(
    ("instruction", "kind", "result", "pairs_of_values"),
    [
        ("cvt.rni.s32.f32 D, A;", "f32", "s32", [(2.5, 2), (3.5, 4), (-2.5, -2), (1e20, 2**31 - 1), (math.nan, 0)]),
        ("cvt.rzi.u32.f32 D, A;", "f32", "u32", [(2.9, 2), (-1.0, 0), (5e9, 2**32 - 1), (math.inf, 2**32 - 1)]),
        ("cvt.rmi.s64.f64 D, A;", "f64", "s64", [(-0.5, -1), (1e19, 2**63 - 1), (2251799813685249.5, 2**51 + 1)]),
        ("cvt.rn.f32.s32 D, A;", "s32", "f32", [(16777217, 16777216.0), (16777219, 16777220.0), (-3, -3.0)]),
        ("cvt.rz.f32.u32 D, A;", "u32", "f32", [(16777219, 16777218.0), (2**32 - 1, 4294967040.0)]),
        ("cvt.rn.f64.u64 D, A;", "u64", "f64", [(2**53 + 1, 2.0**53), (2**64 - 1, 2.0**64)]),
        ("cvt.rn.f32.f64 D, A;", "f64", "f32", [(0.1, float(np.float32(0.1))), (1e300, math.inf)]),
        ("cvt.f64.f32 D, A;", "f32", "f64", [(0.5, 0.5), (math.inf, math.inf)]),
        ("cvt.rpi.f32.f32 D, A;", "f32", "f32", [(0.2, 1.0), (-0.7, -0.0)]),
        ("add.sat.f32 D, A, 0f00000000;", "f32", "f32", [(2.0, 1.0), (-2.0, 0.0), (0.25, 0.25), (math.nan, 0.0)]),
        ("mul.ftz.f32 D, A, 0f3F000000;", "f32", "f32", [(2.0**-126, 0.0), (2.0, 1.0)]),
        ("sqrt.rn.f64 D, A;", "f64", "f64", [(2.0, math.sqrt(2.0)), (-1.0, math.nan)]),
        ("rcp.rn.f32 D, A;", "f32", "f32", [(3.0, float(np.float32(1) / np.float32(3)))]),
        ("ex2.approx.f32 D, A;", "f32", "f32", [(3.0, 8.0)]),
        ("setp.ltu.f32 %p1, A, 0f40000000; selp.u32 D, 1, 0, %p1;", "f32", "u32", [(math.nan, 1), (1.0, 1), (3.0, 0)]),
        ("setp.ne.f32 %p1, A, A; selp.u32 D, 1, 0, %p1;", "f32", "u32", [(math.nan, 0), (1.0, 0)]),
        ("testp.subnormal.f32 %p1, A; selp.u32 D, 1, 0, %p1;", "f32", "u32", [(1e-40, 1), (1.0, 0), (0.0, 0)]),
    ],
)  # fmt: skip
def test_conversions_and_comparisons(instruction, kind, result, pairs_of_values):
    values = np.array([a for a, _ in pairs_of_values], TYPES[kind])
    with np.errstate(all="ignore"):
        got = execute(instruction, kind, values, values, result)
        np.testing.assert_array_equal(got, np.array([b for _, b in pairs_of_values], TYPES[result]))


def run_one(body, *, block=(32, 1, 1), grid=(1, 1, 1), shared_bytes=0, words=256, index=None, extra=""):
    """Run a body whose output array is %rd2, one word a thread at %rd5; return the words."""
    memory = GlobalMemory()
    a = memory.upload(np.arange(words, dtype=np.uint32))
    b = memory.allocate(4 * words)
    text = kernel(body, extra=extra) if index is None else kernel(body, index=index, extra=extra)
    run_kernel(parse(text), "k", grid, block, [a, b, 10**6], memory=memory, shared_bytes=shared_bytes, limit=5000)
    return memory.read(b, words, np.uint32)


class TestWarps:
    def test_shuffles(self):
        lanes = np.arange(32)
        for mode, by, clamp, source in (
            ("up", 3, 0, np.where(lanes >= 3, lanes - 3, lanes)),
            ("down", 5, 31, np.where(lanes < 27, lanes + 5, lanes)),
            ("bfly", 6, 31, lanes ^ 6),
            ("idx", 9, 31, np.full(32, 9)),
            ("down", 1, 0x1C1F, np.where(lanes % 4 < 3, lanes + 1, lanes)),  # segments of four lanes
        ):
            got = run_one(f"shfl.sync.{mode}.b32 %r9, %r4, {by}, {clamp}, -1; st.global.u32 [%rd5], %r9;")[:32]
            assert got.tolist() == source.tolist(), mode

    def test_the_predicate_of_a_shuffle(self):
        got = run_one("shfl.sync.up.b32 %r9|%p2, %r4, 3, 0, -1; selp.u32 %r9, 1, 0, %p2; st.global.u32 [%rd5], %r9;")
        assert got[:32].tolist() == [0] * 3 + [1] * 29

    def test_activemask_and_votes(self):
        body = """
        setp.lt.u32 %p2, %r4, 20; @!%p2 bra DONE;
        activemask.b32 %r9; setp.gt.u32 %p3, %r4, 4; vote.sync.ballot.b32 %r10, %p3, %r9;
        vote.sync.all.pred %p4, %p3, %r9; selp.u32 %r11, 1, 0, %p4; add.u32 %r10, %r10, %r11;
        redux.sync.add.u32 %r12, %r4, %r9; add.u32 %r10, %r10, %r12; st.global.u32 [%rd5], %r10;
        """
        assert run_one(body)[:21].tolist() == [((1 << 20) - 1 & ~31) + 190] * 20 + [0]

    def test_a_shuffle_that_names_an_absent_lane(self):
        with pytest.raises(PtxError, match="names a lane that is not here") as error:
            run_one(
                "setp.lt.u32 %p2, %r4, 20; @%p2 bra A; bra B;\nA: shfl.sync.up.b32 %r9, %r4, 3, 0, -1; B: bar.sync 0;"
            )
        assert error.value.span.column == 4

    def test_partial_warps_have_no_lanes_beyond_the_block(self):
        assert run_one("activemask.b32 %r9; st.global.u32 [%rd5], %r9;", block=(40, 1, 1))[32:40].tolist() == [255] * 8


class TestFlow:
    def test_lanes_reconverge_and_loops_count(self):
        body = """
        mov.u32 %r9, 0; mov.u32 %r10, 0;
        L: add.u32 %r10, %r10, %r9; add.u32 %r9, %r9, 1; setp.le.u32 %p2, %r9, %r4; @%p2 bra L;
        activemask.b32 %r11; popc.b32 %r11, %r11; mad.lo.u32 %r10, %r11, 1000, %r10; st.global.u32 [%rd5], %r10;
        """
        assert run_one(body)[:32].tolist() == [32000 + t * (t + 1) // 2 for t in range(32)]

    def test_a_switch(self):
        body = """
        and.b32 %r9, %r4, 3; T: .branchtargets A, B, C, A; brx.idx %r9, T;
        A: mov.u32 %r10, 5; bra E; B: mov.u32 %r10, 6; bra E; C: mov.u32 %r10, 7;
        E: st.global.u32 [%rd5], %r10;
        """
        assert run_one(body)[:4].tolist() == [5, 6, 7, 5]

    def test_device_functions(self):
        extra = """
        .func (.param .b32 out) triangle(.param .b32 n) { .reg .b32 %a, %s; .reg .pred %q;
          ld.param.u32 %a, [n]; mov.u32 %s, 0;
          L: add.u32 %s, %s, %a; sub.u32 %a, %a, 1; setp.gt.s32 %q, %a, 0; @%q bra L;
          st.param.b32 [out], %s; ret; }
        """
        body = """
        { .param .b32 x; .param .b32 y; add.u32 %r9, %r4, 1; st.param.b32 [x], %r9;
          call.uni (y), triangle, (x); ld.param.b32 %r10, [y]; } st.global.u32 [%rd5], %r10;
        """
        assert run_one(body, extra=extra)[:5].tolist() == [1, 3, 6, 10, 15]

    def test_an_endless_loop(self):
        with pytest.raises(PtxError, match="longer than the limit"):
            run_one("L: bra L;")

    def test_a_barrier_that_some_never_reach(self):
        with pytest.raises(PtxError, match="wait here for others") as error:
            run_one(
                "bar.sync 1; setp.lt.u32 %p2, %r4, 20; @!%p2 bra W;\n  bar.sync 0; bra DONE; W: bar.sync 1;",
                block=(64, 1, 1),
            )
        assert error.value.span.column in (3, 27)


class TestMemory:
    def test_shared_memory_and_barriers(self):
        extra = ".extern .shared .align 16 .b8 dyn[];"
        body = """
        .shared .align 4 .b32 fixed[64]; mov.u32 %r9, dyn; mad.lo.u32 %r9, %r4, 4, %r9; st.shared.u32 [%r9], %r5;
        mov.u32 %r10, fixed; mad.lo.u32 %r10, %r4, 4, %r10; st.shared.u32 [%r10], 7;
        bar.sync 0;
        mov.u32 %r9, dyn; sub.u32 %r11, 63, %r4; mad.lo.u32 %r9, %r11, 4, %r9; ld.shared.u32 %r12, [%r9];
        ld.shared.u32 %r13, [%r10]; add.u32 %r12, %r12, %r13; st.global.u32 [%rd5], %r12;
        """
        got = run_one(body, block=(64, 1, 1), grid=(2, 1, 1), shared_bytes=256, extra=extra)
        assert got[:128].tolist() == [70 - t for t in range(64)] + [134 - t for t in range(64)]
        with pytest.raises(PtxError, match="outside of shared memory"):
            run_one(body, block=(64, 1, 1), shared_bytes=252, extra=extra)

    def test_generic_addresses(self):
        body = """
        .shared .align 8 .b32 s[32]; .local .align 8 .b8 depot[16];
        mov.u64 %rd9, s; cvta.shared.u64 %rd9, %rd9; mad.wide.u32 %rd9, %r4, 4, %rd9;
        mov.u64 %rd10, depot; cvta.local.u64 %rd11, %rd10;
        and.b32 %r9, %r4, 1; setp.eq.u32 %p2, %r9, 0; selp.b64 %rd12, %rd9, %rd11, %p2;
        st.u32 [%rd12], %r4; ld.shared.u32 %r10, [s]; ld.local.u32 %r11, [%rd10]; ld.u32 %r12, [%rd12];
        mad.lo.u32 %r12, %r11, 100, %r12; st.u32 [%rd5], %r12;
        """
        assert run_one(body)[:5].tolist() == [0, 101, 2, 303, 4]

    def test_module_variables(self):
        extra = ".const .align 4 .b32 c[3] = {5, 0x10, -1}; .global .align 8 .f64 g[2] = {0d4000000000000000, 1.5};"
        body = """
        ld.const.u32 %r9, [c+4]; mov.u64 %rd9, g; ld.global.f64 %fd1, [%rd9+8]; cvt.rni.s32.f64 %r10, %fd1;
        add.u32 %r9, %r9, %r10; st.global.u32 [%rd5], %r9;
        """
        assert run_one(body, extra=extra)[0] == 18

    def test_atomics(self):
        body = """
        atom.global.add.u32 %r9, [%rd2], 2; red.global.max.u32 [%rd2+4], %r4; and.b32 %r10, %r4, 3;
        mad.wide.u32 %rd9, %r10, 4, %rd2; atom.global.inc.u32 %r11, [%rd9+8], 5;
        atom.global.cas.b32 %r12, [%rd2+24], 0, 9; mad.wide.u32 %rd9, %r4, 4, %rd2; st.global.u32 [%rd9+28], %r9;
        """
        got = run_one(body)
        assert got[:7].tolist() == [64, 31, 2, 2, 2, 2, 9]
        assert got[7:39].tolist() == list(range(0, 64, 2))

    def test_vectors(self):
        body = """
        mad.wide.u32 %rd9, %r4, 16, %rd1; ld.global.v4.u32 {%r9, %r10, _, %r12}, [%rd9]; add.u32 %r9, %r9, %r12;
        mad.wide.u32 %rd9, %r4, 8, %rd2; st.global.v2.u32 [%rd9], {%r9, %r10};
        """
        assert run_one(body)[:4].tolist() == [3, 1, 11, 5]

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("ld.global.u32 %r9, [%rd4+2];", "misaligned access of 4 bytes at address"),
            ("ld.global.u32 %r9, [%rd1+1024];", "access outside of global memory of 4 bytes"),
            ("st.global.u32 [%rd1+-4], %r9;", "access outside of global memory"),
            ("ld.global.v2.u32 {%r9, %r10}, [%rd1+4];", "misaligned vector access"),
        ],
    )
    def test_wrong_accesses_point_at_the_instruction(self, body, reason):
        with pytest.raises(PtxError, match=reason) as error:
            run_one(body)
        assert (error.value.span.line, error.value.span.column) == (19, 1)


@pytest.mark.parametrize(
    "instruction",
    ["frob.u32 %r9, %r1;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];",
     "dp4a.u32.u32 %r9, %r1, %r1, %r1;", "bar.red.popc.u32 %r9, 0, %p1;", "call.uni nowhere, ();", "trap;",
     "mov.u32 %r9, %smstate;"],
)  # fmt: skip
def test_what_is_not_known_says_so_with_its_place(instruction):
    with pytest.raises(PtxError) as error:
        run_one(f"\n   {instruction}")
    assert (error.value.span.line, error.value.span.column) == (20, 4)


def test_wrong_launches():
    module = parse(kernel(""))
    memory = GlobalMemory()
    with pytest.raises(ValueError, match="takes 3 arguments"):
        run_kernel(module, "k", (1,), (32,), [], memory=memory)
    with pytest.raises(ValueError, match="at most 1024 threads"):
        run_kernel(module, "k", (1,), (32, 33), [0, 0, 0], memory=memory)
    with pytest.raises(KeyError):
        run_kernel(module, "other", (1,), (32,), [], memory=memory)


def test_struct_arguments():
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 d, .param .align 8 .b8 s[16], .param .f32 f) {
  .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>; .reg .f64 %fd<3>;
  ld.param.u64 %rd1, [d]; ld.param.u32 %r1, [s]; ld.param.f64 %fd1, [s+8]; ld.param.f32 %f1, [f];
  st.global.u32 [%rd1], %r1; cvt.f64.f32 %fd2, %f1; add.f64 %fd1, %fd1, %fd2; st.global.f64 [%rd1+8], %fd1; ret; }"""
    memory = GlobalMemory()
    d = memory.allocate(16)
    run_kernel(parse(text), "k", (1,), (1,), [d, struct.pack("<iid", 7, 0, 1.25), 0.5], memory=memory)
    assert memory.read(d, 1, "u4")[0] == 7
    assert memory.read(d + 8, 1, "f8")[0] == 1.75


TILED = """
target triple = "nvptx64-nvidia-cuda"
@tile = external addrspace(3) global [0 x double], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare double @llvm.sqrt.f64(double)

define ptx_kernel void @window(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %n, i64 %reach) {
entry:
  %t32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d32 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t = sext i32 %t32 to i64
  %c = sext i32 %c32 to i64
  %d = sext i32 %d32 to i64
  %base = mul i64 %c, %d
  %i = add i64 %base, %t
  %from = getelementptr double, ptr addrspace(1) %in, i64 %i
  %value = load double, ptr addrspace(1) %from
  %root = call double @llvm.sqrt.f64(double %value)
  %place = getelementptr double, ptr addrspace(3) @tile, i64 %t
  store double %root, ptr addrspace(3) %place
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %offset = add i64 %t, %k
  %wrapped = srem i64 %offset, %d
  %other = getelementptr double, ptr addrspace(3) @tile, i64 %wrapped
  %x = load double, ptr addrspace(3) %other
  %y = fmul double %x, 3.0
  %more = fadd double %sum, %y
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %reach
  br i1 %again, label %loop, label %done
done:
  %q = fdiv double %more, 7.0
  %to = getelementptr double, ptr addrspace(1) %out, i64 %i
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %write, label %end
write:
  store double %q, ptr addrspace(1) %to
  br label %end
end:
  ret void
}
"""


@pytest.mark.parametrize("pipeline", [("O3",), ("O1",), ("sroa", "simplifycfg")])
def test_what_llvm_emits(pipeline):
    module = parse(emit_ptx(optimize(TILED, pipeline)))
    block, blocks, reach = 48, 3, 5
    data = np.random.default_rng(2).random(block * blocks)
    memory = GlobalMemory()
    source = memory.upload(data)
    target = memory.allocate(data.nbytes)
    arguments = [source, target, data.size - 4, reach]
    run_kernel(module, "window", (blocks,), (block,), arguments, memory=memory, shared_bytes=8 * block)
    expected = np.zeros_like(data)
    for first in range(0, data.size, block):
        roots = np.sqrt(data[first : first + block])
        total = np.zeros(block)
        for k in range(reach):
            total = total + np.roll(roots, -k) * 3.0
        expected[first : first + block] = total / 7.0
    expected[-4:] = 0
    np.testing.assert_array_equal(memory.read(target, data.size, "f8"), expected)
