import pytest

from metafork.analysis.analyses import Analyses
from metafork.evaluators.registers_per_thread import COUNTER
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.lowering.lowering import lower
from metafork.strategies.llvm.register_pressure import PIPELINES, STRATEGIES
from metafork.strategies.strategy import Applied, NotApplied


def version(expression):
    text = f"""
    void f(int n, int m, int B, const double a[n][m], const double x[m], double y[n]) {{
      int d = (n + B - 1) / B;
      meta_schedule cache() {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++) {{
            int p = i * B + j;
            if (p < n) {{
              double sum = 0.0;
              for (int k = 0; k < m; k++) sum += {expression};
              y[p] = sum;
            }}
          }}
      }}
    }}
    """
    return Version(parse(Source("f.mf", text)).schedules[0].program)


PRODUCT = version("a[p][k] * x[k]")
LEVELS = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)


def count(one):
    return COUNTER.evaluate(one, Analyses()).numerator.constant_value()


def test_there_are_three_levels_on_the_ir():
    assert [strategy.pipeline for strategy in STRATEGIES] == list(PIPELINES)
    assert [strategy.name for strategy in STRATEGIES] == [f"register_pressure{level}" for level in (1, 2, 3)]
    assert all(strategy.on_ir and not strategy.at_leaf for strategy in STRATEGIES)
    assert all("registers_per_thread" in strategy.improves for strategy in STRATEGIES)


@LEVELS
def test_a_level_is_kept_only_where_it_lowers_the_count(strategy):
    result = strategy.apply(PRODUCT, Analyses())
    changed = Version(PRODUCT.program, (strategy.pipeline,))
    if count(changed) < count(PRODUCT):
        assert isinstance(result, Applied)
        assert result.version == changed
        assert str(result.effect) == f"fewer registers (level {strategy.name[-1]})"
        assert str(count(changed)) in result.note
    else:
        assert isinstance(result, NotApplied)


def test_rolling_the_loop_helps_a_product():
    assert any(isinstance(strategy.apply(PRODUCT, Analyses()), Applied) for strategy in STRATEGIES)


@LEVELS
def test_a_level_is_idempotent(strategy):
    again = strategy.apply(Version(PRODUCT.program, (strategy.pipeline,)), Analyses())
    assert isinstance(again, NotApplied)
    assert "already" in again.reason


def test_in_sequence_the_count_only_falls():
    current, counts = PRODUCT, [count(PRODUCT)]
    for strategy in STRATEGIES:
        result = strategy.apply(current, Analyses())
        if isinstance(result, Applied):
            current = result.version
            counts.append(count(current))
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts)


def test_a_refusal_says_the_numbers():
    refused = [
        result for strategy in STRATEGIES if isinstance(result := strategy.apply(PRODUCT, Analyses()), NotApplied)
    ]
    lowest = min(count(Version(PRODUCT.program, (strategy.pipeline,))) for strategy in STRATEGIES)
    best = next(s for s in STRATEGIES if count(Version(PRODUCT.program, (s.pipeline,))) == lowest)
    # Nothing lowers the count below that of the best level.
    refused += [
        s.apply(Version(PRODUCT.program, (best.pipeline,)), Analyses()) for s in STRATEGIES if s.name != best.name
    ]
    assert refused
    assert all("no fewer than" in result.reason for result in refused)


@LEVELS
def test_what_llvm_cannot_emit_exactly_is_left_to_nvcc(strategy):
    result = strategy.apply(version("exp(a[p][k])"), Analyses())
    assert isinstance(result, NotApplied)


@LEVELS
def test_the_leaf_can_be_emitted(strategy):
    kernel = lower(PRODUCT.program, "f_k0_leaf2")
    ptx = emit_ptx(optimize(module_text(kernel), strategy.pipeline.passes))
    assert ".visible .entry f_k0_leaf2(" in ptx
    assert "fma" not in ptx
