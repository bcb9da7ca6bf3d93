"""The ten stencil kernels: counts of the table, assembled by ptxas, run bit for bit against the original."""

import shutil
import subprocess

import numpy as np
import pytest

from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.shuffles.synthesis import Variant
from metafork.ptx.text.parser import parse
from metafork.ptx.text.printer import print_module
from tests.metafork.ptx.kernels import CASES, DATA, launch

PTXAS = shutil.which("ptxas")
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="no ptxas on PATH")


def assemble(text, tmp_path):
    source = tmp_path / "kernel.ptx"
    source.write_text(text)
    done = subprocess.run(
        [PTXAS, "-arch=sm_80", "-v", str(source), "-o", str(tmp_path / "kernel.cubin")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "Used" in line or "stack frame" in line]


def case_id(case):
    return case.name


@pytest.mark.parametrize("case", CASES, ids=case_id)
class TestTable:
    def test_counts(self, case):
        (report,) = shuffle_text(case.text).kernels
        assert (len(report.shuffles), report.loads) == (case.shuffles, case.loads)
        assert (report.mean_delta is None) == (case.mean_delta is None)
        if case.mean_delta is not None:
            assert report.mean_delta <= case.mean_delta

    def test_counts_of_the_papers_rule(self, case):
        # The paper's rule moves nothing: the first load of the program serves.
        (report,) = shuffle_text(case.text, Options(hoist=False)).kernels
        assert len(report.shuffles) == case.shuffles
        if case.mean_delta is not None:
            assert report.mean_delta <= case.mean_delta

    @pytest.mark.parametrize("width", [32, 40, 96])
    def test_results_are_the_same_bits(self, case, width):
        shape = (70, 9) if case.dimensions == 2 else (70, 5, 5)
        block = (width, 1, 1)
        after = shuffle_text(case.text).text
        before_memory, _, before_run = launch(case, case.text, shape, block)
        after_memory, _, after_run = launch(case, after, shape, block)
        assert before_memory.snapshot() == after_memory.snapshot()
        assert bool(after_run.executed.get("shfl")) == bool(case.shuffles)
        assert after_run.lanes["ld.global"] <= before_run.lanes["ld.global"]
        if case.shuffles and width == 32:
            assert after_run.lanes["ld.global"] < before_run.lanes["ld.global"]

    @needs_ptxas
    def test_ptxas_accepts_it(self, case, tmp_path):
        for options in (Options(), Options(variant=Variant.NO_LOAD), Options(variant=Variant.NO_CORNER)):
            assert assemble(shuffle_text(case.text, options).text, tmp_path)

    @needs_ptxas
    def test_round_trip_assembles_to_the_same(self, case, tmp_path):
        printed = print_module(parse(case.text))
        assert assemble(printed, tmp_path) == assemble(case.text, tmp_path)


@pytest.mark.parametrize("block", [(24, 4, 1), (7, 5, 1), (33, 3, 1), (5, 4, 3), (64, 2, 1)])
@pytest.mark.parametrize("name", ["jacobi", "gameoflife", "gaussblur"])
def test_blocks_of_several_dimensions(name, block):
    case = next(case for case in CASES if case.name == name)
    after = shuffle_text(case.text).text
    before_memory, _, _ = launch(case, case.text, (75, 13), block)
    after_memory, _, _ = launch(case, after, (75, 13), block)
    assert before_memory.snapshot() == after_memory.snapshot()


def test_the_originals_compute_the_formulas():
    """A check of the interpreter and of the test data against NumPy, in double precision."""
    c0, c1, c2 = 0.5, 0.25, 0.125
    jacobi = next(case for case in CASES if case.name == "jacobi")
    memory, (w0, w1), _ = launch(jacobi, jacobi.text, (70, 9), (32, 1, 1))
    a = memory.read(w0, 70 * 9, "f4").reshape(9, 70).astype("f8")
    edges = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    corners = a[:-2, :-2] + a[:-2, 2:] + a[2:, :-2] + a[2:, 2:]
    result = memory.read(w1, 70 * 9, "f4").reshape(9, 70)[1:-1, 1:-1]
    np.testing.assert_allclose(result, c0 * a[1:-1, 1:-1] + c1 * edges + c2 * corners, atol=1e-5)

    sincos = next(case for case in CASES if case.name == "sincos")
    memory, (x, y, xy), _ = launch(sincos, sincos.text, (70, 5, 5), (32, 1, 1))
    count = 70 * 5 * 5
    expected = np.sin(memory.read(x, count, "f4").astype("f8")) + np.cos(memory.read(y, count, "f4").astype("f8"))
    np.testing.assert_allclose(memory.read(xy, count, "f4"), expected, atol=1e-6)

    matmul = next(case for case in CASES if case.name == "matmul")
    memory, (left, right, out), _ = launch(matmul, matmul.text, (33, 6, 7), (32, 1, 1))
    before = launch(matmul, matmul.text.replace("st.global", "ld.global.f32 %f1, [%rd1]; //"), (33, 6, 7), (32, 1, 1))
    old = before[0].read(before[1][2], 33 * 6, "f4").reshape(6, 33)
    m = memory.read(left, 33 * 7, "f4").reshape(7, 33).astype("f8")
    n = memory.read(right, 7 * 6, "f4").reshape(6, 7).astype("f8")
    np.testing.assert_allclose(memory.read(out, 33 * 6, "f4").reshape(6, 33), old + n @ m, atol=1e-4)


@pytest.mark.parametrize("variant", [Variant.NO_LOAD, Variant.NO_CORNER])
def test_measuring_variants_are_marked_invalid_and_are(variant):
    jacobi = next(case for case in CASES if case.name == "jacobi")
    result = shuffle_text(jacobi.text, Options(variant=variant))
    assert not result.valid
    assert result.text.startswith("// INVALID RESULTS")
    assert ("shfl" in result.text) == (variant is Variant.NO_CORNER)
    assert result.text.count("ld.global") == 3
    before, _, _ = launch(jacobi, jacobi.text, (70, 9), (40, 1, 1))
    after, _, _ = launch(jacobi, result.text, (70, 9), (40, 1, 1))
    assert before.snapshot() != after.snapshot()


@pytest.mark.parametrize(("max_delta", "shuffles"), [(1, 24), (31, 42)])
def test_six_comparisons_around_a_stencil(max_delta, shuffles, tmp_path):
    text = (DATA / "fluxes.ptx").read_text()
    result = shuffle_text(text, Options(max_delta=max_delta))
    (report,) = result.kernels
    assert (len(report.shuffles), report.loads) == (shuffles, 48)
    if PTXAS is not None:
        assert assemble(result.text, tmp_path)
    for block, shape in (((32, 2, 2), (71, 5, 5)), ((40, 1, 1), (67, 4, 5)), ((12, 3, 2), (37, 6, 4))):
        memories = []
        for version in (text, result.text):
            random = np.random.default_rng(7)
            memory = GlobalMemory()
            size = int(np.prod(shape))
            fields = [memory.upload(random.standard_normal(size).astype("f4")) for _ in range(6)]
            out = memory.allocate(4 * 5 * size)
            grid = tuple(-(-extent // threads) for extent, threads in zip(shape, block, strict=True))
            done = run_kernel(parse(version), "fluxes", grid, block, [*shape, 0.5, *fields, out], memory=memory)
            memories.append(memory.snapshot())
        assert memories[0] == memories[1]
        assert done.executed["shfl"]


STENCIL_IR = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
define ptx_kernel void @k(ptr addrspace(1) noalias readonly %a, ptr addrspace(1) noalias %b, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %c64 = zext i32 %c to i64
  %d64 = zext i32 %d to i64
  %cd = mul i64 %c64, %d64
  %i = add i64 %cd, %t64
  %ok = icmp slt i64 %i, %n
  br i1 %ok, label %body, label %exit
body:
  %p0 = getelementptr double, ptr addrspace(1) %a, i64 %i
  %p1 = getelementptr double, ptr addrspace(1) %p0, i64 1
  %p2 = getelementptr double, ptr addrspace(1) %p0, i64 2
  %v0 = load double, ptr addrspace(1) %p0
  %v1 = load double, ptr addrspace(1) %p1
  %v2 = load double, ptr addrspace(1) %p2
  %s = fadd double %v0, %v1
  %u = fadd double %s, %v2
  %q = getelementptr double, ptr addrspace(1) %b, i64 %i
  store double %u, ptr addrspace(1) %q
  br label %exit
exit:
  ret void
}
"""


@pytest.mark.parametrize("pipeline", [("O3",), ("O1",), ("sroa",)])
def test_what_llvm_emits(pipeline):
    before = emit_ptx(optimize(STENCIL_IR, pipeline))
    # 64-bit indices need no assumption.
    result = shuffle_text(before, Options(signed_index=False))
    (report,) = result.kernels
    assert sorted(shuffle.delta for shuffle in report.shuffles) == [-1, 1]
    for block in ((32, 1, 1), (45, 1, 1)):
        memories = []
        for text in (before, result.text):
            memory = GlobalMemory()
            a = memory.upload(np.random.default_rng(4).standard_normal(202))
            b = memory.allocate(8 * 200)
            run_kernel(parse(text), "k", (-(-200 // block[0]),), block, [a, b, 200], memory=memory)
            memories.append(memory.snapshot())
        assert memories[0] == memories[1]
