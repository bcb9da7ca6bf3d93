"""DESIGN section 6 on random counters and strategies: every property is proved by Z3 on every tree."""

from hypothesis import given, settings

from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.case_discussion.properties import (
    Judge,
    Subject,
    commuting,
    consistent,
    covers_start,
    disjoint,
    height_bound,
    idempotence,
    optimality,
)
from tests.comprehensive.case_discussion.made_up import start
from tests.comprehensive.case_discussion.random_problems import LIMITS, problems


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_every_property_is_proved(problem):
    counters, strategies = problem
    targets = tuple(c.symbol for c in counters if c.kind == "performance")
    ratios = tuple(c.symbol for c in counters if c.kind == "performance" and not c.less_is_better)
    begin = start(machine=LIMITS, targets=targets, ratios=ratios)
    outcome = Discussion(begin, counters, strategies).run(())
    subject = Subject.of_outcome(outcome, begin)
    judge = Judge(subject)
    checks = consistent(subject, judge) + disjoint(subject, judge) + covers_start(subject, judge)
    checks.append(height_bound(outcome.root, len(strategies), len(counters)))
    versions = [case.version for case in outcome.cases]
    checks += idempotence(versions, counters, strategies)
    if commuting((), counters, strategies).verdict is Verdict.YES and len(counters) == 1:
        checks += optimality(outcome.counters, [case.version for case in outcome.cases], strategies)
    for check in checks:
        assert check.verdict is Verdict.YES, check
    for case in outcome.cases:
        assert case.witness is not None
        for path in case.paths:
            for counter in counters:
                judged = Discussion(begin, counters, strategies)
                value = judged.measured.value(counter, judged.measured.keep(case.version))
                accepted = judged.measured.condition(counter, value)
                assert judge.empty((*path, accepted.negated())).verdict is Verdict.YES
