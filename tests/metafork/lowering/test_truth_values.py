"""Memories of truth values are memories of bytes to every back end; ``tests/end_to_end`` runs such kernels."""

import llvmlite.binding as llvm
import pytest

from metafork.ir.arithmetic.types import ScalarType
from metafork.llvm.llvm_ir import module_text
from metafork.lowering.lowering import lower
from metafork.printing.opencl import kernel_text
from tests.metafork.frontend.marked import program_of, thread

STORES = {
    "a[i] = x[i];": "fcmp une float",
    "a[i] ^= 4;": "icmp ne i32",
    "if (i) { while (x[i] > 0) { a[i]++; x[i] -= 1; } }": "icmp ne i32",
}


@pytest.mark.parametrize("code", STORES)
def test_what_is_stored_becomes_a_truth_value_first(code):
    text = thread(code).replace("float a[n]", "_Bool a[n], float x[n]")
    kernel = lower(program_of(text), "kernel")
    assert ScalarType.BOOL not in {memory.element for memory in kernel.memories}
    made = module_text(kernel)
    llvm.parse_assembly(made).verify()
    assert STORES[code] in made
    assert "bool *" not in kernel_text(kernel).text
    assert "= (bool)(" in kernel_text(kernel).text or "= (bool)x" in kernel_text(kernel).text
