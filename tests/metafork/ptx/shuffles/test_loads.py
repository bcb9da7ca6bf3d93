"""How many loads a thread makes: against what the interpreter counts."""

import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles.loads import COUNTING_LOOPS, count_global_loads
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.kernels import CASES, launch
from tests.metafork.ptx.snippets import kernel, shuffled


def counted(text):
    (function,) = parse(text).kernels()
    return count_global_loads(function)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name not in ("matvec", "matmul", "sincos")], ids=lambda c: c.name
)
def test_kernels_without_loops(case):
    loads = counted(case.text)
    assert loads.count.value({}) == case.loads
    assert loads.corner.value({}) == 0
    after = shuffled_loads(case)
    assert after.count.value({}) == case.loads - case.shuffles
    assert after.corner.value({}) == case.shuffles
    assert after.assumptions == ()


def shuffled_loads(case):
    return counted(shuffled(case.text)[0])


def test_a_constant_loop():
    sincos = next(case for case in CASES if case.name == "sincos")
    # Two loads, and six words of 2/pi for each large argument.
    assert counted(sincos.text).count.value({}) == 14


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 64])
@pytest.mark.parametrize(("name", "parameter"), [("matvec", "matvec_param_0"), ("matmul", "matmul_param_2")])
def test_unrolled_loops_are_bounded(name, parameter, n):
    case = next(case for case in CASES if case.name == name)
    loads = counted(case.text)
    assert loads.assumptions == (COUNTING_LOOPS,)
    assert parameter in str(loads.count)
    shape = (n, 32) if name == "matvec" else (32, 1, n)
    _, _, done = launch(case, case.text, shape, (32, 1, 1))
    made = done.lanes["ld.global"] / 32
    assert made <= loads.count.value({parameter: n}) <= made + 10


LOOP = """
    mov.u32 %r9, {start}; mov.f32 %f9, 0f00000000;
    LOOP:
    ld.global.nc.f32 %f1, [%rd4]; add.f32 %f9, %f9, %f1; add.s32 %r9, %r9, {step};
    setp.{test} %p2, %r9, {bound}; @%p2 bra LOOP;
    st.global.f32 [%rd5], %f9;
"""


@pytest.mark.parametrize(
    ("start", "step", "test", "bound"),
    [
        ("0", "1", "lt.s32", "%r1"),
        ("0", "3", "lt.s32", "%r1"),
        ("0", "1", "ne.s32", "%r1"),
        ("%r1", "-1", "ne.s32", "0"),
        ("%r1", "-2", "gt.s32", "0"),
        ("1", "1", "le.s32", "%r1"),
        ("0", "5", "lo.u32", "77"),
        ("%r1", "-1", "ge.s32", "0"),
    ],
)
def test_loops_of_many_forms(start, step, test, bound):
    text = kernel(LOOP.format(start=start, step=step, test=test, bound=bound))
    loads = counted(text)
    for n in (1, 2, 10, 11, 12, 33):
        memory = GlobalMemory()
        a = memory.allocate(4096)
        done = run_kernel(parse(text), "k", (1,), (1,), [a, a, n], memory=memory)
        made = done.lanes["ld.global"]
        assert made <= loads.count.value({"n": n}) < made + 1.0, n


def test_nested_loops_multiply():
    body = """
    mov.u32 %r9, 0; mov.f32 %f9, 0f00000000;
    OUTER: mov.u32 %r10, 0;
    INNER: ld.global.nc.f32 %f1, [%rd4]; add.f32 %f9, %f9, %f1; add.s32 %r10, %r10, 1;
    setp.ne.s32 %p2, %r10, 5; @%p2 bra INNER;
    ld.global.nc.f32 %f1, [%rd4+4]; add.f32 %f9, %f9, %f1;
    add.s32 %r9, %r9, 1; setp.ne.s32 %p2, %r9, %r1; @%p2 bra OUTER;
    st.global.f32 [%rd5], %f9;
    """
    loads = counted(kernel(body))
    assert str(loads.count) == "6*n"


def test_the_longer_path_counts():
    body = """
    setp.lt.s32 %p2, %r1, 5; @%p2 bra B;
    ld.global.nc.f32 %f1, [%rd4]; ld.global.nc.f32 %f2, [%rd4+40]; bra DONE;
    B: ld.global.nc.f32 %f3, [%rd4+80];
    """
    assert counted(kernel(body)).count.value({}) == 2


@pytest.mark.parametrize(
    "body",
    [
        "L: ld.global.u32 %r9, [%rd4]; setp.ne.s32 %p2, %r9, 0; @%p2 bra L;",
        "mov.u32 %r9, 1; L: ld.global.u32 %r10, [%rd4]; shl.b32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %r1; @%p2 bra L;",
        "mov.u32 %r9, 0; L: ld.global.u32 %r10, [%rd4]; add.s32 %r9, %r9, 1; setp.gt.s32 %p2, %r9, %r1; @%p2 bra L;",
    ],
)
def test_other_loops_are_not_known(body):
    loads = counted(kernel(body))
    assert loads.count is None
    assert "the passes of the loop at" in loads.reason
