import shutil
import subprocess

import pytest

from evaluators.registers.ptx_registers import Accesses, accesses, pressure, read_blocks
from metafork.ir.ir_strategies import SHUFFLE, STANDARD, Pipeline, passes_of
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import (
    ExternalFunctionError,
    TargetError,
    emit_ptx,
    external_functions,
    optimize,
    parsed,
)
from strategies.register_pressure import PIPELINES as PRESSURE
from tests.metafork.lowering.kernel_reader import read_kernel

SUM = """
void sums(int n, double scale, const double *a, const double *b, double *c)
{
  extern double t[blockDim.x];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0.0;
  for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k];
  t[threadIdx.x] = sum;
  __syncthreads();
  c[i] = t[blockDim.x - 1 - threadIdx.x] / scale;
}
"""
IR = module_text(read_kernel(SUM))


def test_pipelines_run_in_order_and_keep_the_kernel():
    plain = optimize(IR, ())
    assert "alloca" in plain
    assert "alloca" not in optimize(IR, ("sroa",))
    assert optimize(IR).count("load double, ptr addrspace(1)") > 2
    assert optimize(IR, ("O3-rolled",)).count("load double, ptr addrspace(1)") == 2


def test_ir_strategies_are_pipelines_and_the_last_decides():
    assert passes_of((PRESSURE[0], SHUFFLE, PRESSURE[2])) == PRESSURE[2].passes
    assert passes_of((SHUFFLE,)) == passes_of(()) == STANDARD


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimize(IR, ("licm!",)), "no pass or pipeline is called licm!"),
        (lambda: emit_ptx(IR, "gfx90a"), "gfx90a is no target"),
        (lambda: optimize("define void @k( {"), "expected"),
    ],
)
def test_what_llvm_cannot_do_is_an_error_with_its_reason(call, message):
    with pytest.raises(TargetError, match=message):
        call()


def test_a_function_without_exact_code_is_named():
    kernel = read_kernel("void k(const float *x, float *y) { y[0] = sinf(x[0]) + expf(x[1]) + sqrtf(x[2]); }")
    text = module_text(kernel)
    assert external_functions(parsed(text)) == ("expf", "sinf")
    with pytest.raises(ExternalFunctionError, match="expf, sinf") as caught:
        emit_ptx(optimize(text))
    assert caught.value.names == ("expf", "sinf")


def test_arguments_keep_their_order():
    ptx = emit_ptx(optimize(IR))
    assert ".visible .entry sums(" in ptx
    head = ptx[ptx.index(".visible .entry") : ptx.index("{")]
    kinds = [line.split()[1] for line in head.splitlines() if ".param" in line]
    assert kinds == [".u32", ".f64", ".u64", ".u64", ".u64"]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: the PTX is not assembled here")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_ptxas_takes_the_ptx(target, tmp_path):
    for pipeline in (Pipeline("standard", STANDARD), *PRESSURE):
        source = tmp_path / f"{pipeline.name}.ptx"
        source.write_text(emit_ptx(optimize(IR, pipeline.passes, target), target))
        command = ["ptxas", f"-arch={target}", "-Werror", source, "-o", tmp_path / "kernel.cubin"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


PTX = """
.visible .entry k(
)
{
	.reg .pred 	%p<2>;
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r9, %ctaid.x;
	mul.wide.s32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.b32 	%r2, [%rd3];
	st.shared.b32 	[%rd5], %r2;
	ld.global.b32 	%r3, [%rd3+4];
	add.s32 	%r4, %r2, %r3;
	setp.lt.s32 	%p1, %r4, %r9;
	@%p1 bra 	$L__BB0_2;
	div.rn.f32 	%r5, %r4, %r3;
	st.global.b32 	[%rd3], %r5;
$L__BB0_2:
	ret;
}
"""


def test_ptx_is_read_into_blocks():
    blocks = read_blocks(PTX)
    assert [block.successors for block in blocks] == [(2, 1), (2,), ()]
    load = next(one for one in blocks[0].instructions if one.loads)
    assert (load.opcode, load.defines, load.address) == ("ld.global.b32", ("%r2",), ("%rd3",))
    assert blocks[0].instructions[-1].guarded
    assert blocks[0].instructions[1].special == ("tid",)
    with pytest.raises(ValueError, match="no kernel body"):
        read_blocks(".version 7.0")


def test_pressure_follows_what_ptxas_does():
    measured = pressure(read_blocks(PTX))
    # In order: the address (two), one loaded value, the shared address (one register, its upper half is never needed).
    # The argument and the block index are uniform and take none.
    assert measured.in_order == 4
    # The second load comes before the store: both values and the address are live there, and the shared address.
    assert measured.hoisted == 5
    assert accesses(read_blocks(PTX)) == Accesses(2, 2, 1, 1)


def test_loads_of_an_unrolled_loop_are_counted_together():
    kernel = read_kernel(
        "void k(int n, int m, const float *a, float *b) {"
        " for (int i = 0; i < m; i++) b[i * n + threadIdx.x] = a[i * n + threadIdx.x]; }"
    )
    text = module_text(kernel)
    rolled, unrolled = (read_blocks(emit_ptx(optimize(text, (name,)))) for name in ("O3-rolled", "O3"))
    assert accesses(rolled).loads == 1
    assert accesses(unrolled).loads >= 4
    assert pressure(unrolled).hoisted >= pressure(rolled).hoisted + 4


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: the PTX is not assembled here")
def test_exact_functions_need_no_library(tmp_path):
    names = ["ceil", "fabs", "floor", "nearbyint", "rint", "round", "sqrt", "trunc"]
    lines = [f"y[{k}] = {name}(x[{k}]); g[{k}] = {name}f(f[{k}]);" for k, name in enumerate(names)]
    lines += [
        "y[9] = fmin(x[0], fmax(x[1], copysign(x[2], fdim(x[3], x[4]))));",
        "g[9] = fminf(f[0], fmaxf(f[1], f[2]));",
    ]
    lines += ["i[0] = abs(i[1]);", "l[0] = labs(l[1]) + llabs(l[2]);", "y[10] = fma(x[0], x[1], x[2]);"]
    kernel = read_kernel(
        f"void k(const double *x, const float *f, double *y, float *g, int *i, long *l) {{ {' '.join(lines)} }}"
    )
    source = tmp_path / "exact.ptx"
    source.write_text(emit_ptx(optimize(module_text(kernel))))
    command = ["ptxas", "-arch=sm_80", source, "-o", tmp_path / "exact.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
