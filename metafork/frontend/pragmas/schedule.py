"""``#pragma metafork schedule(...)`` before a schedule: directives for it, which C ignores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.tokens import Token, end_before
from metafork.ir.messages.source import Span


def schedule_pragma(
    directives: Iterable[Directive], tokens: Sequence[Token], places: Iterable[Span | None]
) -> Directive | None:
    """Return the last such pragma that stands right in front of one of some places, without a token between."""
    for start in (place.start for place in places if place is not None):
        last = end_before(tokens, start)
        for directive in reversed(list(directives)):
            stands = directive.word == "pragma" and last <= directive.span.start < start
            if stands and re.match(r"metafork\s+schedule\b", directive.rest):
                return directive
    return None
