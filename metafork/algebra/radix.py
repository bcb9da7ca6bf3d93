"""Mixed radix: when loops are the digits of an index, equal indices mean equal iterations."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import Counted


def is_mixed_radix(index: Polynomial, digits: Sequence[Counted], prover: Prover) -> bool:
    """Say whether different values of the loop symbols ``digits`` are proved to give different values of ``index``.

    So it is when, in ascending order of their steps, the step of each is at least the span of those below it:
    ``i*B + u`` with ``u < B``.  Only the highest digit may have an unknown trip count.  A loop that counts the index
    down, ``n - 1 - u``, is a digit as well: from its last iteration to its first.
    """
    steps = {loop.var: _magnitude(index.coefficient(loop.var)) for loop in digits}
    if any(step is not None and loop.var in step.symbols for step in steps.values() for loop in digits):
        return False  # a step with another digit in it is another one for other values of that
    rest = list(digits)
    span: Polynomial | None = ONE
    while rest:
        for loop in rest:
            step = steps[loop.var]
            if span is None or step is None or not prover.proves(at_most(span, step)):
                continue
            others = [steps[other.var] for other in rest if other is not loop]
            if all(other is not None and prover.proves(at_most(step, other)) for other in others):
                span = None if loop.trips is None else span + step * (loop.trips - ONE)
                rest.remove(loop)
                break
        else:
            return False
    return True


def _magnitude(step: Polynomial | None) -> Polynomial | None:
    """Return a step whose terms are all negative as that of the loop in the other direction."""
    return -step if step and all(factor < 0 for factor in step.terms().values()) else step
