"""A kernel with a loop over blocks, and its code after pipelines of LLVM."""

from metafork.evaluators.registers.reading import read_code
from metafork.ir.ir_strategies import passes_of
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.strategies.llvm.register_pressure import PIPELINES
from tests.metafork.lowering.kernel_reader import read_kernel

ROLLED = PIPELINES[1:]


def code_of(text, *pipelines):
    return read_code(emit_ptx(optimize(module_text(read_kernel(text)), passes_of(pipelines))))


def loop_over_blocks(step="1", bound="n", value="a[k * n + p] * 2.0f"):
    return (
        "void k(int n, const float *a, float *b) { for (unsigned p = blockIdx.x; p < n; p += gridDim.x)"
        f" for (int k = 0; k < {bound}; k += {step}) b[p * n + k] = {value}; }}"
    )
