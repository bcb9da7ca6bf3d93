"""Random problems for the case discussion, of made-up counters and strategies."""

from fractions import Fraction

from hypothesis import strategies as st

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.evaluators.counter import CounterValue
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, symbol

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
