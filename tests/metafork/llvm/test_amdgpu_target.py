import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from msgspec.structs import replace

from metafork.comprehensive.emit.targets.hip import Hip
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.kernel import SHUFFLE as EXCHANGE
from metafork.ir.program import Assign, Call, IntConst, Var, binary
from metafork.llvm import amdgpu_target
from metafork.llvm.amdgpu_notes import NoMetadataError, Resources, resources_of
from metafork.llvm.amdgpu_target import amdgpu_object
from metafork.llvm.ptx_target import ExternalFunctionError, TargetError, parsed
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from tests.metafork.llvm.amd_run import run_as_amd
from tests.metafork.llvm.matrix_product import MATMUL
from tests.metafork.lowering.kernel_reader import read_kernel

GPUS = ("gfx90a", "gfx1100")
SPILLING = """
void k(int n, const double *x, double *y) {
  double kept[300];
  for (int i = 0; i < 300; ++i) kept[i] = x[i * n + threadIdx.x];
  for (int i = 0; i < 300; ++i) y[(i * n) % 7 + threadIdx.x] += kept[(i * i) % n] * kept[i];
}
"""
ARITHMETIC = """
void k(const float *x, const double *y, float *o, double *p) {
  int i = threadIdx.x;
  o[i] = x[i] * x[i + 1] + x[i + 2];
  p[i] = y[i] * y[i + 1] - y[i + 2];
}
"""


def assembly(kernel, gpu):
    """Return LLVM's text of what it makes an object of."""
    made = amdgpu_object(kernel, (), gpu)
    return str(amdgpu_target._machine(gpu).emit_assembly(parsed(made.ir)))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("text", [MATMUL, SPILLING, ARITHMETIC])
def test_notes_say_what_llvm_says_in_its_text(text, gpu):
    kernel = read_kernel(text)
    said = dict(re.findall(r"^ +(?:- )?\.(\w+): +(\d+)$", assembly(kernel, gpu), re.MULTILINE))
    assert amdgpu_object(kernel, (), gpu).resources == Resources(
        vgprs=int(said["vgpr_count"]),
        sgprs=int(said["sgpr_count"]),
        lds_bytes=int(said["group_segment_fixed_size"]),
        scratch_bytes=int(said["private_segment_fixed_size"]),
        spilled=int(said["vgpr_spill_count"]),
        wave_size=Hip(gpu).hardware.warp_size,
        most_threads=1024,
    )


def test_arrays_of_a_thread_are_scratch_memory():
    assert amdgpu_object(read_kernel(SPILLING)).resources.scratch_bytes >= 8 * 300
    assert amdgpu_object(read_kernel(ARITHMETIC)).resources.scratch_bytes == 0


@pytest.mark.parametrize("gpu", GPUS)
def test_nothing_is_contracted(gpu):
    """Neither are denormals flushed, which would let it use instructions that contract in two roundings."""
    text = assembly(read_kernel(ARITHMETIC), gpu)
    assert re.search(r"v_mul_f32|v_pk_mul_f32", text)
    assert not re.search(r"v_(dual_)?(pk_)?(fma|fmac|mad|mac)\w*_f(32|64)", text)
    assert re.findall(r"float_denorm_mode_\w+ (\d)", text) == ["3", "3"]
    fused = read_kernel("void k(const float *x, float *o) { o[0] = fmaf(x[0], x[1], x[2]); }")
    assert re.search(r"v_(fma|fmac)_f32", assembly(fused, gpu))


def test_blocks_read_what_they_are_and_share_memory():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 4, 4), np.float32)
    c, want = np.zeros((2, 4, 4), np.float32)
    run_as_amd(read_kernel(MATMUL), {"n": 4, "B": 2, "a": a, "b": b, "c": c}, (2, 2, 1), (2, 2, 1), 48)
    for k in range(4):
        want += a[:, k : k + 1] * b[k : k + 1, :]
    assert np.array_equal(c, want)
    assert "s_barrier" in assembly(read_kernel(MATMUL), "gfx90a")


def test_every_built_in_variable_in_each_direction():
    names = [f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"]
    stores = "".join(f"o[place * 12 + {at}] = {name};" for at, name in enumerate(names))
    text = f"""
    void k(unsigned *o) {{
      unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      unsigned place = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
      {stores}
    }}
    """
    grid, block = (2, 3, 1), (3, 1, 2)
    found = np.zeros((6 * 6, 12), np.uint32)
    run_as_amd(read_kernel(text), {"o": found}, grid, block)
    want = [
        (x, y, z, i, j, k, *block, *grid)
        for k in range(1) for j in range(3) for i in range(2) for z in range(2) for y in range(1) for x in range(3)
    ]  # fmt: skip
    assert np.array_equal(found, np.array(want, np.uint32))


@pytest.mark.parametrize("wave", [32, 64])
def test_lanes_exchange_in_groups_of_32(wave):
    kernel = read_kernel("void k(const int *x, const double *y, int *o, double *p) { o[threadIdx.x] = x[threadIdx.x]; p[threadIdx.x] = y[threadIdx.x]; }")  # fmt: skip  # noqa: E501
    lane = binary("+", binary("*", Var("threadIdx.x", ScalarType.UNSIGNED_INT), IntConst(5)), IntConst(3))
    body = [
        replace(one, value=Call(EXCHANGE, (one.value, lane), one.value.type)) if isinstance(one, Assign) else one
        for one in kernel.body
    ]
    kernel = replace(kernel, body=tuple(body))
    x, y = np.arange(64, dtype=np.int32) * 7 + 1, np.linspace(-1e300, 1e-300, 64)
    o, p = np.zeros_like(x), np.zeros_like(y)
    run_as_amd(kernel, {"x": x, "y": y, "o": o, "p": p}, block=(64, 1, 1), wave=wave)
    sources = [thread // 32 * 32 + (5 * thread + 3) % 32 for thread in range(64)]
    assert np.array_equal(o, x[sources])
    assert np.array_equal(p, y[sources])
    assert "ds_bpermute_b32" in assembly(kernel, "gfx90a")


def test_pipelines_are_run_for_this_target():
    kernel = read_kernel(MATMUL)
    assert amdgpu_object(kernel, PRESSURE[:1]).ir != amdgpu_object(kernel).ir
    assert amdgpu_object(kernel, PRESSURE[:1], "gfx1100").code != amdgpu_object(kernel, PRESSURE[:1]).code


def test_what_has_no_object_code():
    with pytest.raises(TargetError, match="gfx9zz is no GPU of AMD's; targets look like gfx90a"):
        amdgpu_object(read_kernel(MATMUL), (), "gfx9zz")
    with pytest.raises(TargetError, match="LLVM has no target gfx777"):
        amdgpu_object(read_kernel(MATMUL), (), "gfx777")
    with pytest.raises(TargetError, match="found in PTX"):
        amdgpu_object(read_kernel(MATMUL), (SHUFFLE,))
    waves = read_kernel("void k(const float *x, float *y) { y[0] = sinf(x[0]); }")
    with pytest.raises(ExternalFunctionError, match="no exact code without AMD's device library: sinf"):
        amdgpu_object(waves)


def test_llvmlite_without_the_target_is_told(monkeypatch):
    def missing(triple):
        raise RuntimeError("No available targets are compatible with triple")

    monkeypatch.setattr(llvm.Target, "from_triple", missing)
    amdgpu_target._machine.cache_clear()
    with pytest.raises(TargetError, match="this build of llvmlite has no AMDGPU target, so no object code for gfx908"):
        amdgpu_object(read_kernel(MATMUL), (), "gfx908")


def test_bytes_that_are_no_object_code():
    code = amdgpu_object(read_kernel(MATMUL)).code
    for wrong, said in ((b"", "no ELF file"), (code.replace(b"AMDGPU\0", b"UPGDMA\0"), "no metadata")):
        with pytest.raises(NoMetadataError, match=said):
            resources_of(wrong, "mm")
    with pytest.raises(NoMetadataError, match="no kernel other"):
        resources_of(code, "other")
