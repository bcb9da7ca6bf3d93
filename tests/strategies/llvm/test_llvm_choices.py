import json

import numpy as np
import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit.leaf_code import leaf_code
from metafork.comprehensive.optimize import optimize
from metafork.evaluators.instructions import instructions
from metafork.evaluators.registers_per_thread import registers
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.llvm.switches import SHARING, SPECULATION, STRAIGHT_LINE, UNROLLING
from metafork.lowering.lowering import lower
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.llvm.llvm_choices import STRATEGIES
from metafork.strategies.strategy import Applied, NotApplied

PRODUCT = """
void product(int n, int B, const double a[n][n], const double b[n][n], double c[n][n]) {
  int d = n / B;
  meta_schedule cache() {
    meta_for (int v = 0; v < d; v++)
      meta_for (int w = 0; w < d; w++)
        meta_for (int i = 0; i < B; i++)
          meta_for (int j = 0; j < B; j++) {
            int p = v * B + i;
            int q = w * B + j;
            for (int k = 0; k < n; k++) c[p][q] += a[p][k] * b[k][q];
          }
  }
}
"""
NAMES = ("straight_line", "speculate", "unroll", "sink", "rematerialize")
BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}


@pytest.fixture(scope="module")
def analyses():
    return Analyses()


@pytest.fixture(scope="module")
def start():
    return Version(parse(Source("product.mf", PRODUCT)).schedules[0].program)


@pytest.fixture(scope="module")
def rematerialized(start, analyses):
    applied = BY_NAME["rematerialize"].apply(start, analyses)
    assert isinstance(applied, Applied)
    return applied.version


def computed(version, n, block):
    """Run the leaf's PTX; return the product that it adds, and what is expected."""
    kernel = lower(version.program, "product")
    random = np.random.default_rng(n)
    a, b, c = (random.integers(-9, 9, (n, n)).astype(np.float64) for _ in range(3))
    memory = GlobalMemory()
    addresses = [memory.upload(one) for one in (a, b, c)]
    numbers = {"n": n, "B": block, "d": n // block}
    arguments = [*(numbers[scalar.name] for scalar in kernel.scalars), *addresses]
    text = leaf_ptx(kernel, version.ir_strategies).text
    grid = (n // block, n // block)
    run_kernel(parse_ptx(text), "product", grid, (block, block), arguments, memory=memory)
    return memory.read(addresses[2], n * n, np.float64).reshape(n, n), c + a @ b


def test_values_computed_anew_take_fewer_registers_and_more_instructions(start, rematerialized, analyses):
    assert registers(rematerialized, analyses) < registers(start, analyses)
    assert instructions(rematerialized, analyses)[0] > instructions(start, analyses)[0]
    assert rematerialized.ir_strategies[-1].without == (*STRAIGHT_LINE, SPECULATION, UNROLLING, SHARING)


@pytest.mark.parametrize("name", ["straight_line", "unroll"])
def test_what_is_put_back_takes_fewer_instructions(rematerialized, analyses, name):
    applied = BY_NAME[name].apply(rematerialized, analyses)
    assert isinstance(applied, Applied)
    assert instructions(applied.version, analyses)[0] < instructions(rematerialized, analyses)[0]
    assert registers(applied.version, analyses) >= registers(rematerialized, analyses)
    assert "instructions a warp, in a launch with n = 32, B = 16 instead of" in applied.note


@pytest.mark.parametrize("names", [("rematerialize",), ("rematerialize", "straight_line"), ("rematerialize", "unroll")])
@pytest.mark.parametrize(("n", "block"), [(6, 3), (9, 9), (8, 2)])
def test_the_kernels_compute_the_product(start, analyses, names, n, block):
    version = start
    for name in names:
        applied = BY_NAME[name].apply(version, analyses)
        assert isinstance(applied, Applied)
        version = applied.version
    got, want = computed(version, n, block)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_idempotent_and_lowers_its_counter_or_refuses(start, rematerialized, analyses, name):
    strategy = BY_NAME[name]
    (counter,) = strategy.improves - {"registers_per_block", "occupancy"}

    def count(version):
        return registers(version, analyses) if counter == "registers_per_thread" else instructions(version, analyses)[0]

    for version in (start, rematerialized):
        applied = strategy.apply(version, analyses)
        if isinstance(applied, Applied):
            assert count(applied.version) < count(version)
            assert isinstance(strategy.apply(applied.version, analyses), NotApplied)
        else:
            assert "already" in applied.reason or "no fewer than" in applied.reason


def test_what_has_no_exact_ptx_is_left_to_nvcc(analyses):
    text = PRODUCT.replace("a[p][k] * b[k][q]", "sin(a[p][k])")
    version = Version(parse(Source("product.mf", text)).schedules[0].program)
    refused = BY_NAME["rematerialize"].apply(version, analyses)
    assert isinstance(refused, NotApplied)
    assert "LLVM has no exact code for sin" in refused.reason


@pytest.fixture(scope="module")
def result():
    counters = ("registers_per_thread", "instructions")
    return optimize(Source("product.mf", PRODUCT), counters=counters, strategies=NAMES, order="paper")


def test_a_tree_forks_into_leaves_of_both_kinds(result):
    (tree,) = result.schedules
    chosen = [tuple(one.name for one in leaf.version.ir_strategies) for leaf in tree.leaves]
    assert () in chosen
    assert ("rematerialize",) in chosen
    report = result.to_report()
    assert "sampled: counted in a launch with n = 32, B = 16" in report
    assert "rematerialized" in report
    assert json.loads(result.to_json())


def test_every_leaf_of_ir_has_its_ptx_and_computes_the_product(result):
    for one in (one for leaf in result.schedules[0].leaves for one in leaf.variants):
        code = leaf_code(one, result.analyses)
        assert (code.ptx is None) == (not one.version.ir_strategies)
        if code.ptx is not None:
            assert f".visible .entry {one.kernel}(" in code.ptx
            got, want = computed(one.version, 6, 2)
            np.testing.assert_array_equal(got, want)
