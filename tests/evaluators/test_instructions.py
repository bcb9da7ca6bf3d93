from fractions import Fraction

import numpy as np
import pytest

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.instructions import COUNTER, instructions
from metafork.frontend import parse
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.llvm.switches import UNROLLING
from metafork.lowering.lowering import lower
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx


def version(body, parameters="const double a[n], double y[n]", assertion=""):
    text = f"""
    void f(int n, int B, {parameters}) {{
      int d = n / B;
      {assertion}
      meta_schedule cache() {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++) {{
            int p = i * B + j;
            {body}
          }}
      }}
    }}
    """
    return Version(parse(Source("f.mf", text)).schedules[0].program)


SCALED = version("y[p] = a[p] * 3.0;")
SUMMED = version("double s = 0.0; for (int k = 0; k < n; k++) s += a[k]; y[p] = s;")


def test_the_value_is_what_a_warp_executes_in_the_sample_launch():
    analyses = Analyses()
    rolled = Version(SUMMED.program, (Pipeline("rolled", ("O3",), (UNROLLING,)),))
    found = COUNTER.evaluate(rolled, analyses)
    assert found.sampled == "counted in a launch with n = 32, B = 16"
    kernel = lower(rolled.program, "f")
    memory = GlobalMemory()
    a, y = memory.upload(np.ones(32)), memory.upload(np.zeros(32))
    numbers = {"n": 32, "B": 16, "d": 2}
    arguments = [*(numbers[scalar.name] for scalar in kernel.scalars), a, y]
    ptx = leaf_ptx(kernel, rolled.ir_strategies).text
    done = run_kernel(parse_ptx(ptx), "f", (2,), (16,), arguments, memory=memory)
    assert found.numerator.constant_value() == sum(done.executed.values()) / 2
    assert memory.read(y, 32, np.float64).tolist() == [32.0] * 32


def test_loops_count_by_their_iterations_and_unrolled_ones_take_less():
    analyses = Analyses()
    rolled = Version(SUMMED.program, (Pipeline("rolled", ("O3",), (UNROLLING,)),))
    counts = [instructions(one, analyses)[0] for one in (SCALED, SUMMED, rolled)]
    assert counts[0] < 40
    assert counts[0] + 32 * 2 < counts[1] < counts[2]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (version("y[p] = exp(a[p]);"), "no exact PTX without the CUDA device library: exp"),
        (version("y[p] = a[p];", assertion="assert(n > 1000000);"), "no sample of its parameters is a launch"),
        (version("double s = 0.0; while (s < 1.0) s += a[p]; y[p] = s;"), "does not end well"),
    ],
)
def test_what_cannot_be_tried_is_not_known(one, reason):
    found = COUNTER.evaluate(one, Analyses())
    assert isinstance(found, NotKnown)
    assert reason in found.reason


def test_it_is_a_cost_with_a_target():
    assert (COUNTER.kind, COUNTER.symbol, COUNTER.less_is_better) == ("performance", "I", True)
    assert COUNTER.default_target == Fraction(256)
