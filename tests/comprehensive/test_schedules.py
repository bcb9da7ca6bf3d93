"""The schedule of a kernel, as its text says it, makes the kernel's program of the program as it was written."""

from pathlib import Path

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.exactness import exact_unit
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.ir.contraction import contracted_unit
from metafork.ir.messages.source import Source
from metafork.transform.directive import Refused, applied, text_of
from metafork.transform.schedule import schedule_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.mf"))
OTHERS = sorted([*ROOT.glob("bench/programs/*.mf"), *ROOT.glob("tests/end_to_end/suites/*.mf")])


def compared(path, **options):
    """Compare the programs of all kernels with what their schedules make; return how many there are."""
    source = Source(path.name, path.read_text())
    trees = optimize(source, static="auto", reassociate=True, **options).schedules
    unit = contracted_unit(exact_unit(parse(source, reassociate=True)))
    written = {one.program.name: one.program for one in unit.schedules}
    variants = [(tree.program.name, one) for tree in trees for leaf in tree.leaves for one in leaf.variants]
    for name, variant in variants:
        program = applied(written[name], schedule_of(text_of(variant.schedule)), Analyses())
        assert not isinstance(program, Refused), program
        assert program.mapped(decided=True) == variant.version.program.mapped(decided=True), variant.kernel
    return len(variants)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_schedules_of_examples(path):
    assert compared(path) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"order": "paper", "machine": "all"}], ids=["by cost", "as in the paper"])
@pytest.mark.parametrize("path", [*EXAMPLES, *OTHERS], ids=lambda path: path.stem)
def test_schedules_of_all_programs(path, options):
    assert compared(path, **options) >= 1


def test_named_strategies_have_schedules_too():
    source = Source("transpose.mf", (ROOT / "examples/transpose.mf").read_text())
    names = ["+double_buffering", "+swizzle", "+thread_striding"]
    trees = optimize(source, counters=["+bank_degree"], strategies=names, order="paper", machine="all").schedules
    texts = " ".join(text_of(one.schedule) for tree in trees for leaf in tree.leaves for one in leaf.variants)
    assert "lay_out(" in texts
    assert "stride(32)" in texts
