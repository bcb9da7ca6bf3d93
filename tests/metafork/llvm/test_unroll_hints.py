import pytest

from metafork.ir.program import For, walk_statements
from metafork.llvm.unroll_hints import unroll_factor
from tests.metafork.lowering.kernel_reader import read_kernel


def factor(loop, depth=1):
    kernel = read_kernel(f"void k(int n, int s, const float *a, float *b) {{ float sum = 0.0f; {loop} b[0] = sum; }}")
    (found,) = [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For)]
    return unroll_factor(found, {"n", "s"}, depth)


def body(terms):
    return " + ".join(f"a[k + {at}] * {at}.5f" for at in range(terms))


@pytest.mark.parametrize(("terms", "expected"), [(1, 4), (5, 4), (15, 2), (40, 0)])
def test_larger_bodies_are_copied_less(terms, expected):
    assert factor(f"for (int k = 0; k < n; k += s) sum += {body(terms)};") == expected


def test_loops_that_count_by_the_block():
    copy = "for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x) b[k] = a[k];"
    assert factor(copy, depth=1) == 4
    assert factor(copy, depth=2) == 1


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < 8; k++) sum += a[k];",
        "for (int k = 0; k < n; k++) sum += k;",
        "for (int k = 1; k < n; k *= 2) sum += a[k];",
        "for (int k = 0; k < n; k++) { if (a[k] > 1.0f) break; }",
    ],
)
def test_what_is_left_to_llvm(loop):
    assert factor(loop) == 0
