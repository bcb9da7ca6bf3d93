from pathlib import Path

import pytest

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses, Hardware
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.optimality import (
    commuting_check,
    idempotence_checks,
    optimality_checks,
    optimality_notes,
)
from tests.sampling import sampled

EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parents[3] / "examples").glob("*.mf"))}


@pytest.mark.parametrize("example", sampled(EXAMPLES, ("aos", "jacobi1d", "matadd", "smooth")))
@pytest.mark.sampled(2)
def test_strategies_are_idempotent_and_counters_optimal_where_strategies_commute(example):
    result = optimize(example, machine="all", strategies=["+register_pressure"])
    for tree in result.schedules:
        for check in idempotence_checks(tree, *result.used, result.analyses):
            assert check.verdict is Verdict.YES, check
        checks = optimality_checks(tree, *result.used, result.analyses)
        if commuting_check(tree, *result.used, result.analyses).verdict is Verdict.YES:
            assert all(check.verdict is Verdict.YES for check in checks), checks
        notes = optimality_notes(tree, *result.used, result.analyses)
        for check, note in zip(checks, notes, strict=True):
            assert ("is not optimal" in note) == (check.verdict is not Verdict.YES)


def test_counters_are_evaluated_for_the_hardware_of_the_run():
    hardware = Hardware(64, lambda kernel, ir_strategies: 40)
    chosen = {"counters": ["registers_per_thread"], "strategies": ["cse1", "granularity"]}
    result = optimize(EXAMPLES["smooth"], **chosen, hardware=hardware)
    (tree,) = result.schedules
    (check,) = optimality_checks(tree, *result.used, result.analyses)
    assert (check.verdict, check.ground) == (Verdict.YES, f"at {tree.leaves[0].name}")
    # By NVIDIA's count the strategies change it.
    (check,) = optimality_checks(tree, *result.used, Analyses())
    assert check.verdict is Verdict.NO, check
