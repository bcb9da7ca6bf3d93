"""Directives, and the branches of conditionals that they open and end."""

from __future__ import annotations

import re

from msgspec import Struct, field

from metafork.frontend.text.tokens import (
    Token,
)
from metafork.ir.messages.source import Span

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"#\s*(?P<word>[A-Za-z_]*)\s*(?P<rest>.*)\Z", re.DOTALL)
CONDITIONAL_WORDS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})


class Directive(Struct, frozen=True):
    """A preprocessing directive: its word (``include``), the rest of its line, where it stands."""

    word: str
    rest: str
    span: Span


class Conditional(Struct, frozen=True):
    """A stretch from an ``#if`` to its ``#endif`` whose branches cannot be decided; ``marks`` are where they begin."""

    opening: Span
    start: int
    end: int
    marks: tuple[int, ...]


class Branch(Struct):
    """An open conditional: ``active`` is whether its current branch is read, ``decided`` whether that is certain."""

    opening: Directive
    active: bool
    decided: bool
    taken: bool
    later: bool = False
    marks: list[int] = field(default_factory=list)

    def next(self, directive: Directive, verdict: bool | None) -> None:
        """Go on to the branch that a directive begins; ``verdict``: its condition holds, or ``None``."""
        self.later = True
        self.marks.append(directive.span.start)
        if not self.decided:
            self.active = True
        elif directive.word == "else":
            self.active, self.taken = not self.taken, True
        elif self.taken:
            self.active = False
        else:
            self.active = verdict is not False
            self.taken = verdict is True
            self.decided = verdict is not None


class Place(Struct, frozen=True):
    """What the open conditionals say together: kept a level, for conditionals may be nested thousands deep.

    ``alternative``: inside a second or later branch of an undecided one; ``certain``: inside decided ones only.
    """

    active: bool
    alternative: bool
    certain: bool

    def inside(self, branch: Branch) -> Place:
        """Return the place in the current branch of a conditional that is opened here."""
        return Place(
            self.active and branch.active,
            self.alternative or (branch.later and not branch.decided),
            self.certain and branch.decided,
        )


def opened(directive: Directive, verdict: bool | None) -> Branch:
    """Return the first branch of a conditional."""
    if verdict is None:
        return Branch(directive, active=True, decided=False, taken=False)
    return Branch(directive, active=verdict, decided=True, taken=verdict)


def directive_of(token: Token) -> Directive:
    """Return the directive that a token is."""
    text = _COMMENT.sub(" ", token.text)
    match = _HEAD.match(text)
    assert match is not None
    return Directive(match["word"], match["rest"].rstrip(), token.span)
