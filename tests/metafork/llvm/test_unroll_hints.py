import pytest
from msgspec.structs import replace

from metafork.evaluators.registers.model import measure
from metafork.ir.program import ROLLED, For, walk_statements
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import optimize
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


def test_loops_that_the_text_keeps_rolled_are_not_unrolled():
    kernel = read_kernel("void k(int n, const float *a, float *b) { for (int k = 0; k < n; k++) b[k] = a[k]; }")
    (loop,) = kernel.body
    rolled = replace(kernel, body=(replace(loop, copies=ROLLED),))
    count = measure(kernel)
    assert (count.loads, count.stores) == (5, 5)  # four iterations at once, and one for the rest
    count = measure(rolled)
    assert (count.loads, count.stores) == (1, 1)


def test_no_vectors_are_made_of_iterations():
    copy = "void k(int n, const unsigned char *a, unsigned char *b) { for (int k = 0; k < n; k++) b[k] = a[k] + 1; }"
    kernel = read_kernel(copy)
    assert "<4 x i8>" in optimize(module_text(kernel))  # as LLVM does on its own
    assert measure(kernel).loads == 5


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
