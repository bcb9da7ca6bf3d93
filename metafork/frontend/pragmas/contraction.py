"""``#pragma STDC FP_CONTRACT ON``: the source allows that sums of products are fused (``metafork.ir.contraction``).

As in C, it holds from where it stands to the end of its block, or of the file, or to the next one; ``DEFAULT`` leaves
the choice to the command line.  Inside a schedule ``OFF`` alone is heeded, for the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.tokens import Token, first_from
from metafork.ir.messages.source import Span

_STATES = {"ON": True, "OFF": False, "DEFAULT": None}


def contraction_at(directives: Iterable[Directive], tokens: Sequence[Token], schedule: Span) -> bool | None:
    """Return whether the source allows contraction in a schedule, or forbids it; ``None`` where it says nothing."""
    allowed: bool | None = None
    for directive in directives:
        words = directive.rest.split()
        if directive.word != "pragma" or words[:2] != ["STDC", "FP_CONTRACT"] or len(words) != 3:
            continue
        if words[2] not in _STATES or directive.span.start >= schedule.end:
            continue
        state = _STATES[words[2]]
        if directive.span.start >= schedule.start:
            allowed = False if state is False else allowed
        elif _still_holds(directive.span.end, schedule.start, tokens):
            allowed = state
    return allowed


def _still_holds(since: int, at: int, tokens: Sequence[Token]) -> bool:
    """Say whether no block that was open at one place was left before another."""
    depth = 0
    for token in tokens[first_from(tokens, since) : first_from(tokens, at)]:
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0:
            return False
    return True
