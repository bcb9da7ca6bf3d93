from pathlib import Path

import pytest

from comprehensive.optimize import optimize
from comprehensive.verification.optimality import (
    commuting_check,
    idempotence_checks,
    optimality_checks,
    optimality_notes,
)
from metafork.algebra.prover import Verdict
from tests.sampling import sampled

EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parents[3] / "examples").glob("*.mf"))}


@pytest.mark.parametrize("example", sampled(EXAMPLES, ("aos", "jacobi1d", "matadd", "smooth")))
def test_strategies_are_idempotent_and_counters_optimal_where_strategies_commute(example):
    result = optimize(example)
    for tree in result.schedules:
        for check in idempotence_checks(tree, *result.used):
            assert check.verdict is Verdict.YES, check
        checks = optimality_checks(tree, *result.used)
        if commuting_check(tree, *result.used).verdict is Verdict.YES:
            assert all(check.verdict is Verdict.YES for check in checks), checks
        notes = optimality_notes(tree, *result.used)
        for check, note in zip(checks, notes, strict=True):
            assert ("is not optimal" in note) == (check.verdict is not Verdict.YES)
