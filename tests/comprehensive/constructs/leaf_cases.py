"""Every variant's program of a tree as cases of ``tests.metafork.kernel_runs``: all of them in one build."""

from metafork.analysis.exactness import with_exactness
from metafork.comprehensive import registry
from metafork.comprehensive.optimize import discuss
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from tests.metafork.kernel_runs import Case

COUNTERS = ("threads_per_block", "shared_memory", "global_loads")


def leaf_cases(text, points, strategies=None):
    """Return the cases of a text with one schedule, a variant's program once, and the strategies of all."""
    program = with_exactness(parse(Source("case.mf", text)).schedules[0].program)
    tree = discuss(program, registry.counters(COUNTERS), registry.strategies(strategies), time_limit=20)
    programs = {one.version.program: one.strategies for leaf in tree.leaves for one in leaf.variants}
    cases = [
        Case(text, points, program=program, label=f"{program.name} {' '.join(applied)}")
        for program, applied in programs.items()
    ]
    return cases, {name for applied in programs.values() for name in applied}
