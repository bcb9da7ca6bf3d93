import contextlib
import os
import shutil
import subprocess

import pytest

from metafork.ir.ir_strategies import SHUFFLE, STANDARD, Pipeline, passes_of
from metafork.llvm import ptx_target
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import (
    ExternalFunctionError,
    TargetError,
    emit_ptx,
    external_functions,
    optimize,
    parsed,
)
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
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


def test_an_assertion_of_llvm_is_an_error_too(monkeypatch):
    monkeypatch.setattr(ptx_target, "_passed", lambda *_: os.abort())
    text = (
        "void k(int n, const int *a, int *b) { for (int i = 0; i < n; i += 1) { if (a[i] > 3) break; b[i] = a[i]; } }"
    )
    with pytest.raises(TargetError, match="LLVM does not end loop-reduce on its loops"):
        optimize(module_text(read_kernel(text)), PRESSURE[1].passes)


def test_a_loop_that_goes_on_where_another_ended_ends_no_process():
    text = (
        "void k(int n, const int *a, int *b) "
        "{ int i = a[0]; for (; i < 4; i += 1) b[i] = 1; for (; i < 8; i += 1) b[i] = 2; }"
    )
    with contextlib.suppress(TargetError):
        assert "br i1" in optimize(module_text(read_kernel(text)), PRESSURE[1].passes)


def test_loops_that_are_left_at_one_place_need_no_process_apart(monkeypatch):
    expected = optimize(IR, PRESSURE[1].passes)
    monkeypatch.setattr(ptx_target, "_made_apart", lambda _: None)
    assert optimize(IR, PRESSURE[1].passes) == expected
    monkeypatch.undo()
    monkeypatch.setattr(ptx_target, "leave_once", lambda _: False)
    assert optimize(IR, PRESSURE[1].passes) == expected


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


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (".param .u32 n,\n.param .u64 .ptr .global .align 8 x", 16),
        (".param .u64 x,\n.param .u32 n,\n.param .f64 v", 24),
        (".param .align 8 .b8 s[24],\n.param .u16 h", 26),
        ("", 0),
    ],
)
def test_bytes_of_parameters(parameters, expected):
    assert ptx_target.parameter_bytes(parameters) == expected


@pytest.mark.parametrize(("count", "version"), [(540, None), (600, "8.1")])
def test_many_parameters_need_a_later_version(count, version):
    arguments = ", ".join(f"double %v{number}" for number in range(count))
    module = f'target triple = "nvptx64-nvidia-cuda"\ndefine ptx_kernel void @f({arguments}) {{\n  ret void\n}}\n'
    few = emit_ptx(module.replace(arguments, ""), "sm_75").splitlines()
    usual = next(line for line in few if line.startswith(".version"))
    assert f"{usual if version is None else f'.version {version}'}\n" in emit_ptx(module, "sm_75")
