"""Copies into shared memory from elements past 2^31: their indices need more than 32 bits."""

import numpy as np
import pytest

from metafork.analysis.memory.block_memory import block_memory
from metafork.ir.program import Element, expressions_of, walk_expression, walk_statements
from metafork.lowering.lowering import lower
from tests.metafork.host_run import run_on_host
from tests.metafork.programs import program

STEP = 1 << 30
ONE = """
void f(int d, int S, int B, const unsigned char a[(long)d * S], unsigned char b[d * B])
{
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        b[i * B + u] = a[(long)i * S + u];
  }
}
"""
TWO = ONE.replace("a[(long)d * S]", "a[2][(long)d * S]").replace("a[(long)i", "a[0][(long)i")
UNSIGNED = ONE.replace("(long)i * S", "(unsigned)i * (unsigned)S").replace("(long)d * S", "(unsigned)d * (unsigned)S")


@pytest.mark.parametrize("text", [ONE, TWO, UNSIGNED], ids=["one dimension", "two dimensions", "unsigned"])
def test_a_window_past_the_range_of_int(text):
    kernel = lower(program(text), "f")
    assert any(memory.space.value == "shared" for memory in kernel.memories)
    blocks, threads = 3, 4
    a = np.zeros(blocks * STEP, np.uint8)  # pages that nobody touches take no memory
    for block in range(blocks):
        a[block * STEP : block * STEP + threads] = 10 * block + np.arange(1, threads + 1)
    b = np.zeros(blocks * threads, np.uint8)
    arguments = {"d": blocks, "S": STEP, "B": threads, "a": a, "b": b}
    run_on_host(kernel, arguments, grid=(blocks, 1, 1), block=(threads, 1, 1), shared_bytes=64)
    assert b.tolist() == [10 * block + u + 1 for block in range(blocks) for u in range(threads)]


KEPT = """
void f(int d, int S, int B, int K, unsigned char a[3L * d * S], const unsigned char b[K])
{
  assert(B <= S);
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      for (int k = 0; k < K; k++)
        meta_for (int u = 0; u < B; u++)
          a[3L * i * S + u] += b[k] + u;
  }
}
"""


def test_a_register_holds_an_element_past_the_range_of_int():
    subject = program(KEPT)
    (plan,) = block_memory(subject).paths
    assert [window.array.name for window in plan.private] == ["a"]
    kernel = lower(subject, "f")
    # LLVM may compute an overflow with 64 bits, which another compiler need not do.
    parts = [part for s in walk_statements(kernel.body) for expr in expressions_of(s) for part in walk_expression(expr)]
    assert {one.indices[0].type.size for one in parts if isinstance(one, Element) and one.array == "a"} == {8}
    step = 2**32 + 2
    a = np.zeros(2 * step, np.uint8)
    arguments = {"d": 2, "S": step // 3, "B": 4, "K": 2, "a": a, "b": np.array([5, 6], np.uint8)}
    run_on_host(kernel, arguments, grid=(2, 1, 1), block=(4, 1, 1))
    assert a[:8].tolist() == a[step : step + 8].tolist() == [11, 13, 15, 17, 0, 0, 0, 0]


EDGE = """
void f(int n, int d, int S, int B, const unsigned char a[n], unsigned char b[d * B])
{
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * S + u;
        if (p < n - 5)
          b[i * B + u] = a[p] + a[p + 5];
      }
  }
}
"""


def test_a_window_that_reaches_past_the_range_of_int_while_the_program_does_not():
    kernel = lower(program(EDGE), "f")
    n = 2**31 - 1
    a = np.zeros(n, np.uint8)
    a[:9] = np.arange(9)
    b = np.full(8, 99, np.uint8)
    arguments = {"n": n, "d": 2, "S": n - 4, "B": 4, "a": a, "b": b}
    run_on_host(kernel, arguments, grid=(2, 1, 1), block=(4, 1, 1), shared_bytes=64)
    assert b.tolist() == [5, 7, 9, 11, 99, 99, 99, 99]
