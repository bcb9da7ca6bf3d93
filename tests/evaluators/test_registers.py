import json
from importlib.resources import files
from itertools import pairwise

import pytest

from evaluators.counter import CounterValue, NotKnown
from evaluators.register_model import Measured, measure, model_from_json, shipped_model
from evaluators.registers_per_block import COUNTER as PER_BLOCK
from evaluators.registers_per_thread import COUNTER as PER_THREAD
from metafork.frontend import parse
from metafork.ir import Version
from metafork.polynomial import Polynomial
from metafork.ptx_registers import Pressure, Slow
from metafork.source import Source
from tests.metafork.kernel_reader import read_kernel


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
    value = PER_THREAD.evaluate(one)
    assert isinstance(value, CounterValue)
    return int(value.numerator.constant_value())


def test_the_counters_say_what_they_are():
    assert (PER_THREAD.name, PER_THREAD.kind, PER_THREAD.symbol) == ("registers_per_thread", "resource", "R")
    assert (PER_BLOCK.name, PER_BLOCK.kind, PER_BLOCK.symbol) == ("registers_per_block", "resource", "RB")


def test_the_value_is_a_constant_and_always_the_same():
    one = nest("b[p] = a[p] + a[n + p];")
    values = {PER_THREAD.evaluate(one).numerator for _ in range(3)}
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
    pressed = registers(Version(one.program, ("register_pressure3",)))
    assert pressed < plain


def test_registers_of_a_block_are_those_of_whole_warps():
    one = nest("b[p] = a[p];")
    value = PER_BLOCK.evaluate(one)
    (warps,) = [symbol for symbol in value.derived if symbol.kind == "ceiling"]
    assert warps.operands == (Polynomial.symbol("B"), Polynomial.constant(32))
    assert value.numerator == Polynomial.symbol(warps.name) * 32 * registers(one)
    assert [warps.evaluate({"B": b}) for b in (1, 32, 33)] == [1, 1, 2]


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
    value = PER_BLOCK.evaluate(one)
    assert value.numerator == Polynomial.constant(64 * registers(one))
    assert not [symbol for symbol in value.derived if symbol.kind == "ceiling"]


def test_what_has_no_kernel_has_no_count(monkeypatch):
    from evaluators import registers_per_thread as module
    from metafork.lowering import CannotLowerError

    def refuse(program, name):
        raise CannotLowerError("the extent of t is no polynomial")

    monkeypatch.setattr(module, "lower", refuse)
    value = PER_THREAD.evaluate(nest("b[p] = a[p] + 0.123;"))
    assert isinstance(value, NotKnown)
    assert "the extent of t" in value.reason


def test_external_functions_are_counted():
    one = nest("b[p] = exp(a[p]);")
    assert registers(one) > registers(nest("b[p] = a[p];"))
    kernel = read_kernel("void k(const double *a, double *b) { b[0] = exp(a[0]); }")
    assert Slow.CALL in measure(kernel).ptx.at


def measured(live, hoisted, *slow, loads=0):
    return Measured(live, Pressure(live, hoisted, dict.fromkeys(slow, live), loads))


@pytest.mark.parametrize("kind", ["text", "ptx"])
def test_nothing_that_is_counted_makes_the_estimate_smaller(kind):
    model = shipped_model(kind)
    previous = 0
    for live in range(0, 600, 3):
        count = model.registers(measured(live, 2 * live))
        assert previous <= count <= 255
        previous = count
    assert previous == 255
    assert model.registers(measured(0, 0)) >= 8
    few = measured(10, 10)
    assert model.registers(few) < model.registers(measured(10, 60))
    assert model.registers(few) < model.registers(measured(10, 10, loads=8))
    assert model.latency(few) < model.latency(measured(10, 10, Slow.DIVIDE_DOUBLE))


@pytest.mark.parametrize("kind", ["text", "ptx"])
def test_a_little_above_32_registers_is_32(kind):
    model = shipped_model(kind)
    counts = {model.registers(measured(live, 2 * live)) for live in range(5, 120)}
    assert 32 in counts
    assert not counts.intersection(range(33, 38))
    assert max(counts) > 60


@pytest.mark.parametrize("kind", ["text", "ptx"])
def test_what_lives_across_a_division_of_doubles_is_kept(kind):
    model = shipped_model(kind)
    one = Measured(5, Pressure(5, 5, {Slow.DIVIDE_DOUBLE: 40}, 0))
    assert model.registers(one) > 40


@pytest.mark.parametrize("kind", ["text", "ptx"])
def test_what_lives_at_once_in_either_order_bounds_the_estimate(kind):
    model = shipped_model(kind)
    assert model.registers(measured(150, 0)) >= 0.6 * 150
    # The IR CFG has as much to say as the PTX: an order with few live values is one that ptxas can take.
    one_order = Measured(20, Pressure(150, 0, {}, 0))
    other_order = Measured(150, Pressure(20, 0, {}, 0))
    assert model.need(one_order) == model.need(other_order) < model.need(measured(150, 0))


def test_a_model_of_another_version_is_refused():
    document = json.loads(files("evaluators").joinpath("register_model.json").read_text(encoding="utf-8"))
    assert model_from_json(document, "text") == shipped_model("text")
    with pytest.raises(ValueError, match="not a register model"):
        model_from_json(document | {"version": 1}, "text")
    for kind in ("text", "ptx"):
        model = shipped_model(kind)
        assert min(*model.exponents, model.need_base, model.need_slope, model.scale) >= 0
        assert model.exponents[1] > 0
        assert min(model.slow.values()) >= 1
