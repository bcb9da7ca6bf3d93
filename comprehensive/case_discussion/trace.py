"""The paper's abbreviations for the decisions that led to a leaf (section 5, Figures 7 and 8).

(1) no register pressure optimization, (2) CSE is applied, (3a) granularity not reduced, (3b) reduced granularity,
(4a) use shared memory, (4b) do not use it.  Counters and strategies bring their signs along (``Details``, ``Sign``);
what the paper has no sign for stands by its name.  The signs stand in the order of the decisions: (1) where the
registers were accepted, (3b) and (4b) where a refusal led to them; what was never decided otherwise, (4a) and (3a),
follows, and CSE at the leaf ends the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from metafork.comprehensive.case_discussion.quintuple import Step
from metafork.evaluators.counter import Counter, CounterValue, details_of
from metafork.strategies.strategy import Strategy


def trace(
    steps: Sequence[Step],
    applied: Sequence[str],
    counters: Sequence[Counter],
    strategies: Sequence[Strategy],
    values: Mapping[str, CounterValue],
) -> tuple[str, ...]:
    """Return the signs of a leaf.

    ``steps`` lead to it and ``applied`` are the names of all its strategies; ``counters`` and ``strategies`` are those
    of the run, ``values`` those of the counters at the leaf.
    """
    known = {one.name: replace(one.sign, applied=one.sign.applied or one.name) for one in strategies}
    details = {counter.name: details_of(counter) for counter in counters}
    denied = {known[name].denies for name in applied}
    signs: list[str] = []
    for step in steps:
        sign = known[step.strategy].applied if step.strategy is not None else details[step.counter].accepted
        if step.strategy is not None or (sign and sign not in denied and sign not in signs):
            signs.append(sign)
    signs += [details[name].used for name, value in values.items() if value.numerator and details[name].used]
    signs += [sign.left_out for name, sign in known.items() if sign.left_out and name not in applied]
    decided = sum(step.strategy is not None for step in steps)
    return (*signs, *(known[name].applied for name in applied[decided:]))
