"""The kernel for launches with the program's grid and short offsets computes what the kernel for any launch does."""

import sys
from pathlib import Path

import numpy as np
import pytest

from metafork.analysis.analyses import Analyses
from metafork.frontend import parse, read_source
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.messages.source import Source
from metafork.ir.program import Barrier, walk_statements
from metafork.llvm import switches
from metafork.llvm.addresses import weighed_instructions, whole_grid_ptx_of_choice
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import TargetError, emit_ptx, optimize
from metafork.llvm.whole_grids import for_whole_grids, whole_grid_ptx
from metafork.lowering.lowering import lower
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.caching import with_cached_arrays
from tests.metafork.host_scalars import with_host_scalars

EXAMPLES = Path(__file__).parents[3] / "examples"

SKIPPING = """
void skip(int n, int B, const int a[n], int c[n]) {
  int d = (n + B - 1) / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p >= n) continue;
        int s = 0;
        for (int k = 0; k < 5; k++) {
          if (a[p] == k) break;
          s += a[p] * k;
        }
        if (s > 20) continue;
        c[p] = s + 1;
      }
  }
}
"""


def kernel_of(source):
    schedule = parse(source).schedules[0]
    return lower(with_cached_arrays(schedule.program, Analyses()).program, "k")


def ran(ptx, kernel, numbers, grid, block, shared_bytes, arrays):
    memory = GlobalMemory()
    addresses = [memory.upload(array) for array in arrays]
    values = with_host_scalars(kernel, numbers)
    arguments = [*(values[scalar.name] for scalar in kernel.scalars), *addresses]
    run_kernel(parse_ptx(ptx), "k", grid, block, arguments, memory=memory, shared_bytes=shared_bytes)
    return [memory.read(at, array.size, array.dtype) for at, array in zip(addresses, arrays, strict=True)]


@pytest.fixture(scope="module")
def product():
    return kernel_of(read_source(EXAMPLES / "matmul.mf"))


def test_a_product_in_shared_memory(product):
    n, tile, s = 24, 4, 2
    numbers = {"n": n, "B0": tile, "ub1": tile, "s": s, "dim0": n // tile, "dim1": n // (tile * s)}
    grid, block = (n // (tile * s), n // tile), (tile, tile)
    random = np.random.default_rng(3)
    arrays = [random.integers(-9, 9, (n, n)).astype(np.float32) for _ in range(3)]
    texts = [emit_ptx(optimize(module_text(one))) for one in (for_whole_grids(product), product)]
    words = 4 * (tile * tile * s + tile * tile) * s
    whole, large = (ran(text, product, numbers, grid, block, words, arrays) for text in texts)
    for left, right in zip(whole, large, strict=True):
        np.testing.assert_array_equal(left, right)
    a, b, c = arrays
    assert any(np.array_equal(one.reshape(n, n), want) for one in whole for want in (c + a @ b, a + b @ c, b + a @ c))


def test_it_walks_no_grid_and_computes_offsets_of_32_bits(product):
    whole, large = (emit_ptx(optimize(module_text(one))) for one in (for_whole_grids(product), product))
    assert "%nctaid" in large
    assert "%nctaid" not in whole
    assert whole.count("mul.lo.s64") == 0 < large.count("mul.lo.s64")
    barriers = [sum(isinstance(stmt, Barrier) for stmt in walk_statements(one.body)) for one in
                (for_whole_grids(product), product)]  # fmt: skip
    assert barriers[0] <= barriers[1]


@pytest.mark.parametrize(("n", "block"), [(23, 8), (64, 32), (5, 40)])
def test_iterations_that_end_early(n, block):
    kernel = kernel_of(Source("skip.mf", SKIPPING))
    numbers = {"n": n, "B": block, "d": -(-n // block)}
    a = np.random.default_rng(n).integers(0, 7, n).astype(np.int32)
    arrays = [a, np.zeros(n, np.int32)]
    texts = [emit_ptx(optimize(module_text(one))) for one in (for_whole_grids(kernel), kernel)]
    results = [ran(text, kernel, numbers, (numbers["d"],), (block,), 0, arrays)[1].tolist() for text in texts]
    sums = [sum(value * k for k in range(min(value, 5))) for value in a.tolist()]
    assert results[0] == results[1] == [0 if s > 20 else s + 1 for s in sums]


def test_shuffles_have_a_way_for_whole_grids_themselves(product):
    assert whole_grid_ptx(product, (SHUFFLE,), "sm_80") is None


def test_no_block_asks_for_the_grid():
    for name in ("aos", "heat3d", "transpose", "matvec"):
        for schedule in parse(read_source(EXAMPLES / f"{name}.mf")).schedules:
            kernel = lower(with_cached_arrays(schedule.program, Analyses()).program, "k")
            assert "nctaid" in module_text(kernel)
            assert "nctaid" not in module_text(for_whole_grids(kernel))


def test_addresses_keep_their_constants_where_that_takes_fewer_instructions():
    stencil = kernel_of(read_source(EXAMPLES / "heat3d.mf"))
    plain, chosen = (make(stencil, (), "sm_80") for make in (whole_grid_ptx, whole_grid_ptx_of_choice))
    assert weighed_instructions(chosen) < 0.9 * weighed_instructions(plain)
    n, extents = 8, (1, 2, 3)
    numbers = {"n": n, "c": 0.25, "B0": 1, "B1": 2, "B2": 3}
    numbers |= {f"d{axis}": (n - 2) // extent for axis, extent in enumerate(extents)}
    grid = tuple(numbers[f"d{axis}"] for axis in (2, 1, 0))
    arrays = [np.random.default_rng(k).standard_normal((n, n, n)) for k in range(2)]
    shared = 8 * 3 * 4 * 5
    results = [ran(text, stencil, numbers, grid, extents[::-1], shared, arrays) for text in (plain, chosen)]
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(results[0][1], arrays[1].ravel())


def test_a_product_has_them_apart(product):
    assert whole_grid_ptx_of_choice(product, (), "sm_80") == whole_grid_ptx(product, (), "sm_80")


def test_without_a_second_process_there_is_no_choice(product, monkeypatch):
    monkeypatch.setattr(switches, "_SERVER", switches._Server(command=(sys.executable, "-c", "")))
    assert whole_grid_ptx_of_choice(product, (), "sm_80") == whole_grid_ptx(product, (), "sm_80")
    with pytest.raises(TargetError, match="the process that runs LLVM with switches ended"):
        switches.ptx_without((switches.POINTERS,), module_text(product))


def test_instructions_of_loops_weigh_more():
    loop = "  add.s32 %r1, %r1, -1;\n  setp.gt.s32 %p1, %r1, 0;\n  @%p1 bra $again;\n"
    head = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 n)\n{\n"
    body = f"  .reg .pred %p<2>;\n  .reg .b32 %r<2>;\n  ld.param.u32 %r1, [n];\n$again:\n{loop}  ret;\n}}\n"
    assert weighed_instructions(head + body) == 1 + 3 * 8 + 1
