import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.evaluators.registers import model
from metafork.evaluators.registers.model import (
    ANY_SIGN,
    NAMES,
    NVCC_UNROLLS_BY,
    Terms,
    measure,
    model_from_json,
    model_to_json,
    shipped_model,
)
from metafork.evaluators.registers_per_block import COUNTER as PER_BLOCK
from metafork.evaluators.registers_per_thread import COUNTER as PER_THREAD
from metafork.frontend import parse
from metafork.ir.kernel import QUOTIENT
from metafork.ir.messages.source import Source
from metafork.ir.program import Call, Version
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx
from metafork.llvm.targets import Nvptx
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from tests.metafork.lowering.kernel_reader import read_kernel


def version(text):
    return Version(parse(Source("test.mf", text)).schedules[0].program)


def nest(body, parameters="const double a[8 * n], double b[8 * n]"):
    return version(
        f"""
        void f(int n, int B, {parameters}) {{
          int d = n / B;
          meta_schedule cache() {{
            meta_for (int i = 0; i < d; i++)
              meta_for (int j = 0; j < B; j++) {{
                int p = i * B + j;
                {body}
              }}
          }}
        }}
        """
    )


def registers(one):
    value = PER_THREAD.evaluate(one, Analyses())
    assert isinstance(value, CounterValue)
    return int(value.numerator.constant_value())


def test_the_counters_say_what_they_are():
    assert (PER_THREAD.name, PER_THREAD.kind, PER_THREAD.symbol) == ("registers_per_thread", "resource", "R")
    assert (PER_BLOCK.name, PER_BLOCK.kind, PER_BLOCK.symbol) == ("registers_per_block", "resource", "RB")


def test_the_value_is_a_constant_and_always_the_same():
    one = nest("b[p] = a[p] + a[n + p];")
    values = {PER_THREAD.evaluate(one, Analyses()).numerator for _ in range(3)}
    assert len(values) == 1
    assert values.pop().is_constant


def test_more_live_values_take_more_registers():
    counts = []
    for live in (1, 4, 8):
        loads = "".join(f"double x{k} = a[{k} * n + p];" for k in range(live))
        uses = "".join(
            f"b[{k} * n + p] = " + " + ".join(f"{j + k + 1}.5 * x{j}" for j in range(live)) + ";" for k in range(live)
        )
        counts.append(registers(nest(loads + uses)))
    assert all(less < more for less, more in pairwise(counts))
    # Eight doubles are sixteen registers.
    assert counts[-1] >= 24


def test_a_leaf_with_ir_strategies_is_counted_as_the_ptx_it_is():
    one = nest("double sum = 0.0; for (int k = 0; k < n; k++) sum += a[k] * a[n + k]; b[p] = sum;")
    plain = registers(one)
    pressed = registers(Version(one.program, PRESSURE[2:]))
    assert pressed < plain


def test_registers_of_a_block_are_those_handed_out_to_groups_of_four_warps():
    one = nest("b[p] = a[p];")
    value = PER_BLOCK.evaluate(one, Analyses())
    (quads,) = [symbol for symbol in value.derived if symbol.kind == "ceiling"]
    assert quads.operands == (Polynomial.symbol("B"), Polynomial.constant(128))
    assert value.numerator == Polynomial.symbol(quads.name) * 128 * (registers(one) + -registers(one) % 8)
    assert [quads.evaluate({"B": b}) for b in (1, 128, 129)] == [1, 1, 2]


def test_a_constant_block_has_a_constant_number_of_registers():
    one = version(
        """
        void f(int n, float a[64 * n]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++)
              meta_for (int j = 0; j < 40; j++)
                a[i * 40 + j] = 1.0f;
          }
        }
        """
    )
    value = PER_BLOCK.evaluate(one, Analyses())
    assert value.numerator == Polynomial.constant(128 * (registers(one) + -registers(one) % 8))
    assert not [symbol for symbol in value.derived if symbol.kind == "ceiling"]


def test_what_has_no_kernel_has_no_count(monkeypatch):
    from metafork.evaluators import kernels as module
    from metafork.lowering.lowering import CannotLowerError

    def refuse(program, name, analyses):
        raise CannotLowerError("the extent of t is no polynomial")

    monkeypatch.setattr(module, "lower", refuse)
    value = PER_THREAD.evaluate(nest("b[p] = a[p] + 0.123;"), Analyses())
    assert isinstance(value, NotKnown)
    assert "the extent of t" in value.reason


def test_external_functions_are_counted():
    one = nest("b[p] = exp(a[p]);")
    assert registers(one) > registers(nest("b[p] = a[p];"))
    called, plain = (
        measure(read_kernel(f"void k(const double *a, double *b) {{ b[0] = {value}; }}"))
        for value in ("exp(a[0])", "a[0]")
    )
    assert (called.slow, plain.slow) == (1, 0)


def terms(**counts):
    return Terms(**(dict.fromkeys(NAMES, 0) | counts))


@pytest.mark.parametrize("from_text", [0, 1])
@pytest.mark.parametrize("name", sorted(set(NAMES) - ANY_SIGN))
def test_live_values_and_slow_operations_never_make_the_estimate_smaller(name, from_text):
    model = shipped_model()
    start = {"from_text": from_text, "wanted": 20}
    counts = [model.registers(terms(**start | {name: start.get(name, 0) + more})) for more in range(0, 400, 5)]
    assert counts == sorted(counts)
    assert (counts[0] < counts[-1]) == (model.exponents[NAMES.index(name)] > 0)


def test_the_estimate_is_a_number_of_registers():
    model = shipped_model()
    assert model.registers(terms()) == 8
    assert model.registers(terms(wanted=5000)) == 255
    assert 24 <= model.registers(terms(wanted=32, across=16, region_loads=4)) <= 40


def test_both_ends_of_a_kernel_are_counted():
    plain = measure(read_kernel("void k(const double *a, double *b) { b[threadIdx.x] = a[threadIdx.x]; }"))
    divided = measure(read_kernel("void k(const double *a, double *b) { b[threadIdx.x] = 1.0 / a[threadIdx.x]; }"))
    assert (plain.from_text, plain.loads, plain.stores, plain.shared, plain.region_loads) == (1, 1, 1, 0, 1)
    assert divided.wanted >= plain.wanted + 8
    assert measure(read_kernel("void k(int *b) { b[threadIdx.x] = 1; }"), PRESSURE[:1]).from_text == 0


def test_a_model_of_another_version_is_refused():
    document = json.loads(files("metafork.evaluators.registers").joinpath("model.json").read_text(encoding="utf-8"))
    model = shipped_model()
    assert model_from_json(document) == model
    assert model_to_json(model, document["target"]) == document
    with pytest.raises(ValueError, match="not a register model"):
        model_from_json(document | {"version": 2})
    with pytest.raises(ValueError, match="shorter"):
        model_to_json(replace(model, exponents=model.exponents[1:]), document["target"])
    assert all(a >= 0 for a, name in zip(model.exponents, NAMES, strict=True) if name not in ANY_SIGN)


def test_kernels_that_differ_by_names_alone_are_counted_once():
    counted = []

    class Memory:
        """Counts what is not remembered."""

        def __init__(self):
            self.known = {}

        def of(self, analysis, subject):
            if (analysis, subject) not in self.known:
                counted.append(subject)
                self.known[analysis, subject] = analysis(subject, self)
            return self.known[analysis, subject]

    memory = Memory()
    text = "void k(const double *a, double *b) { double x = a[threadIdx.x] * 2.0; b[threadIdx.x] = x; }"
    first = measure(read_kernel(text), (), memory)
    assert measure(read_kernel(text.replace("x =", "other =").replace("= x", "= other")), (), memory) == first
    assert len(counted) == 2  # from the IR, and from the PTX
    # Here the IR is another one; the PTX is the same.
    assert measure(read_kernel(text.replace("a[threadIdx.x] * 2.0", "2.0 * a[threadIdx.x]")), (), memory) == first
    assert len(counted) == 3
    assert measure(read_kernel(text.replace("2.0", "3.0")), (), memory) == first
    assert len(counted) == 5


def test_kernels_that_swap_their_arrays_and_names_are_counted_once(monkeypatch):
    text = """
    void {name}(int n, float *{one}, float *{other})
    {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      {written}[i] = {read}[i] + {read}[i + n] * 2.0f;
    }}
    """
    there = read_kernel(text.format(name="there", one="a", other="b", read="a", written="b"))
    back = read_kernel(text.format(name="back", one="a", other="b", read="b", written="a"))
    other = read_kernel(text.format(name="there", one="x", other="y", read="x", written="x"))
    runs = []
    made = model.run_pipeline
    monkeypatch.setattr(model, "run_pipeline", lambda *subject: runs.append(subject) or made(*subject))
    memory = Analyses()

    assert measure(there, (), memory) == measure(back, (), memory) == measure(there) == measure(back)
    assert len(runs) == 3  # once for both in the memory, twice without
    assert measure(other, (), memory) == measure(other)
    assert len(runs) == 5


def test_places_of_threads_are_divided_as_nvcc_is_told_to():
    kernel = read_kernel("void k(unsigned int n, int *o) { o[threadIdx.x] = (int)(threadIdx.x / n); }")
    assert measure(kernel).slow == 1

    (store,) = kernel.body
    exact = store.value.operand
    kernel = replace(kernel, body=(replace(store, value=Call(QUOTIENT, (exact.left, exact.right), store.value.type)),))
    assert measure(kernel).slow == 0
    assert measure(kernel, PRESSURE[:1]).slow == 1  # a leaf that is PTX divides exactly
    ptx = emit_ptx(module_text(kernel, Nvptx(unroll=NVCC_UNROLLS_BY)))
    for length in (1, 3, 7, 511, 1023):
        memory = GlobalMemory()
        found = memory.upload(np.zeros(1024, np.int32))
        run_kernel(parse_ptx(ptx), "k", grid=(1, 1, 1), block=(1024, 1, 1), args=[length, found], memory=memory)
        assert np.array_equal(memory.read(found, 1024, np.int32), np.arange(1024) // length)
