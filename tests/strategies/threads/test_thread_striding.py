from pathlib import Path

import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.analyses import WARP_SIZE, Analyses
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.thread_striding import STRATEGY
from tests.metafork import programs
from tests.sampling import sampled

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.mf"))


def test_a_version_strides_once():
    version = Version(programs.program(programs.MATMUL))
    applied = STRATEGY.apply(version, Analyses())
    assert isinstance(applied, Applied)
    assert applied.version.program.striding == WARP_SIZE
    assert isinstance(STRATEGY.apply(applied.version, Analyses()), NotApplied)


@pytest.mark.parametrize(
    ("counter", "leaves"),
    [("threads_per_block", [(), ("thread_striding",)]), ("shared_memory", [()])],
)
def test_threads_stride_where_there_are_too_few_and_only_there(counter, leaves):
    result = optimize(EXAMPLES[0], counters=[counter], strategies=["thread_striding"], machine="all")
    assert [leaf.own.strategies for leaf in result.schedules[0].leaves] == leaves


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_threads_leave_no_machine_with_a_warp_without_a_leaf(example):
    """Regions without a leaf for want of threads lie below one warp."""
    result = optimize(
        example,
        counters=["threads_per_block", "shared_memory"],
        strategies=["granularity", "caching", "thread_striding"],
    )
    for tree in result.schedules:
        threads = Polynomial.symbol(tree.machine["threads_per_block"])
        for region in tree.no_leaf_regions:
            if region.reason.startswith("threads_per_block"):
                known = Prover((*tree.start, *region.system), tree.derived)
                assert known.proves(at_most(threads, WARP_SIZE - 1)), region


@pytest.mark.parametrize("name", sampled(["center", "matvec"], 1))
@pytest.mark.slow
def test_striding_leaves_compute_what_the_program_means(name):
    path = next(example for example in EXAMPLES if example.stem == name)
    options = Options(points=12, optimization="-O0", dataflow_seconds=0)
    found = verify(
        path,
        counters=["threads_per_block", "shared_memory"],
        strategies=["caching", "thread_striding"],
        machine="all",
        options=options,
    )
    assert not found.failures, found.failures
    assert any("thread_striding" in row.strategies and row.points for row in found.rows)
