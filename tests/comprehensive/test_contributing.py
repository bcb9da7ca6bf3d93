"""The counter and the strategy that CONTRIBUTING.md shows do what it says."""

import re
import sys
import textwrap
import types
from pathlib import Path

from comprehensive.optimize import discuss
from evaluators.threads_per_block import COUNTER as THREADS
from metafork.frontend import parse
from metafork.ir.source import Source

ROOT = Path(__file__).parents[2]


def shown_modules(monkeypatch):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
        module = types.ModuleType(f"shown_in_contributing_{number}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(textwrap.dedent(block), module.__name__, "exec"), module.__dict__)
        yield module


def test_the_worked_examples_make_a_tree(monkeypatch):
    counter, strategy = shown_modules(monkeypatch)
    unit = parse(Source("matmul.mf", (ROOT / "examples" / "matmul.mf").read_text(encoding="utf-8")))
    tree = discuss(unit.schedules[0].program, [THREADS, counter.COUNTER], [strategy.STRATEGY])
    leaves = [(leaf.strategies, [[str(c) for c in system] for system in leaf.systems]) for leaf in tree.leaves]
    assert leaves == [
        ((), [["B0*ub1 <= T", "1 <= P"]]),
        (("small_block",), [["64 <= T", "1 <= P", "T < B0*ub1"]]),
    ]
