import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit.leaf_code import EMBEDDED_TARGET
from metafork.evaluators.registers.model import measure
from metafork.ir.ir_strategies import SHUFFLE, passes_of
from metafork.llvm import optimized, ptx_target
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.llvm.llvm_ir import module_text
from metafork.strategies.llvm.register_pressure import PIPELINES
from tests.metafork.lowering.kernel_reader import read_kernel

TEXT = """
void {name}(int n, const float *a, float *c)
{{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) {{ if (a[k] < 0.0f) break; sum += a[i * n + k]; }}
  c[i] = sum;
}}
"""


@pytest.mark.parametrize("ir_strategies", [(PIPELINES[0],), (PIPELINES[1],), (PIPELINES[2], SHUFFLE)])
def test_a_leaf_has_the_ir_that_was_counted_under_its_own_name(ir_strategies, monkeypatch):
    kernel, leaf = (read_kernel(TEXT.format(name=name)) for name in ("counted", "counted_leaf2"))
    runs, emissions, texts = [], [], []
    made, emit = ptx_target.run_pipeline, ptx_target.ptx_of
    monkeypatch.setattr(optimized, "ptx_of", lambda *subject: emissions.append(subject) or emit(*subject))
    monkeypatch.setattr(ptx_target, "run_pipeline", lambda *subject: runs.append(subject) or made(*subject))
    monkeypatch.setattr(optimized, "module_text", lambda *subject: texts.append(subject) or module_text(*subject))
    memory = Analyses()
    terms = measure(kernel, ir_strategies, memory)
    found = leaf_ptx(leaf, ir_strategies, EMBEDDED_TARGET, memory)

    assert not optimized.external_calls(leaf, memory)
    assert len(runs) == len(emissions) == len(texts) == 1
    assert found == leaf_ptx(leaf, ir_strategies, EMBEDDED_TARGET)
    assert terms == measure(leaf, ir_strategies)
    assert ".entry counted_leaf2(" in found.text
    assert optimized.NAME not in found.ir + found.plain
    if SHUFFLE not in ir_strategies:
        ir = ptx_target.optimize(module_text(leaf), passes_of(ir_strategies), EMBEDDED_TARGET)
        assert found.plain == ptx_target.emit_ptx(ir, EMBEDDED_TARGET)


def test_passes_that_might_abort_make_what_they_make_here(monkeypatch):
    text = module_text(read_kernel(TEXT.format(name="f")))
    apart = ptx_target.optimize(text, PIPELINES[1].passes)
    monkeypatch.setattr(ptx_target, "_ABORTING", frozenset())
    here = ptx_target.optimize(text, PIPELINES[1].passes)

    assert [line.partition(";")[0] for line in apart.splitlines()] == [
        line.partition(";")[0] for line in here.splitlines()
    ]
