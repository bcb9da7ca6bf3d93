"""DESIGN section 6 on random counters and strategies: every property is proved by Z3 on every tree."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from comprehensive.case_discussion.discussion import Discussion
from comprehensive.case_discussion.properties import (
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
from evaluators.counter import CounterValue
from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Verdict
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, start, symbol

S, B = symbol("s"), symbol("B")
SHAPES = [Polynomial.constant(1), S, B, S * B, B * B]
LIMITS = ("R", "T", "Z")


@st.composite
def resource(draw, index, names):
    """A polynomial that each improving strategy lowers by its own amount, and others may raise."""
    shape = draw(st.sampled_from(SHAPES))
    improving = draw(st.sets(st.sampled_from(names), min_size=1))
    gains = {name: draw(st.integers(0, 3)) for name in improving}
    losses = {name: draw(st.integers(0, 1)) for name in names if name not in improving}
    base = 1 + sum(gains.values()) + draw(st.integers(0, 2))
    offset = draw(st.integers(0, 3))

    def value(version):
        size = base - sum(gains.get(name, 0) - losses.get(name, 0) for name in version)
        return size * shape + offset

    return MadeCounter(f"r{index}", LIMITS[index], value), improving


@st.composite
def performance(draw, names):
    improving = draw(st.sets(st.sampled_from(names), min_size=1))
    ratio = draw(st.booleans())
    step = draw(st.integers(1, 2))

    def value(version):
        better = step * sum(name in improving for name in version)
        if ratio:
            return CounterValue(B, (12 - better) * B + S, domain=(at_most(0, B),))
        return CounterValue((9 - better) * S, B)

    counter = MadeCounter("p1", "P", value, "performance", not ratio, Fraction(1, 2))
    return counter, improving


@st.composite
def problems(draw):
    names = [f"O{i}" for i in range(draw(st.integers(1, 3)))]
    made = [draw(resource(index, names)) for index in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        made.append(draw(performance(names)))
    strategies = [
        MadeStrategy(name, frozenset(counter.name for counter, improving in made if name in improving))
        for name in names
    ]
    return [counter for counter, _ in made], strategies


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
                value = judged._measured.value(counter, judged._measured.keep(case.version))
                accepted = judged._measured.condition(counter, value)
                assert judge.empty((*path, accepted.negated())).verdict is Verdict.YES
