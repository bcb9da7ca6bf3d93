"""The paper's abbreviations for the decisions that led to a leaf (section 5, Figures 7 and 8).

(1) no register pressure optimization, (2) CSE is applied, (3a) granularity not reduced, (3b) reduced granularity,
(4a) use shared memory, (4b) do not use it.  A register pressure strategy, for which the paper has no sign, stands by
its name.  The signs stand in the order of the decisions: (1) where the registers were accepted, (3b) and (4b) where a
refusal led to them; what was never decided otherwise, (4a) and (3a), follows, and CSE at the leaf ends the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from comprehensive.case_discussion.quintuple import Step

REGISTERS = frozenset({"registers_per_thread", "registers_per_block"})


def trace(
    steps: Sequence[Step], applied: Sequence[str], available: Sequence[str], shares_memory: bool
) -> tuple[str, ...]:
    """Return the signs of a leaf.

    ``steps`` lead to it, ``applied`` are all its strategies, ``available`` those of the run; ``shares_memory`` says
    whether its shared-memory counter was evaluated and is not zero.
    """
    signs: list[str] = []
    pressed = any(_family(name) == "register_pressure" for name in applied)
    decided = 0
    for step in steps:
        if step.strategy is not None:
            signs.append(_sign(step.strategy))
            decided += 1
        elif step.counter in REGISTERS and not pressed and "1" not in signs:
            signs.append("1")
    if shares_memory:
        signs.append("4a")
    if "granularity" in available and "granularity" not in applied:
        signs.append("3a")
    return (*signs, *(_sign(name) for name in applied[decided:]))


def _family(name: str) -> str:
    return name.rstrip("0123456789")


def _sign(strategy: str) -> str:
    return {"cse": "2", "granularity": "3b", "caching": "4b"}.get(_family(strategy), strategy)
