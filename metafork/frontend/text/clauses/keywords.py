"""Words of the language: where they are used as such, and what a word was probably meant to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.frontend.text.clauses.reductions import OPERATORS as REDUCTIONS
from metafork.frontend.text.clauses.static_clauses import WORD as STATIC
from metafork.frontend.text.tokens import WRITING, Token, TokenKind

TYPE_WORDS = frozenset({"char", "short", "int", "long", "float", "double", "signed", "unsigned", "const", "void"})
"""Those with which declarations of scalars begin."""
KEYWORDS = frozenset(
    {"if", "else", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue", "return"}
)
"""Those with which statements of C begin."""


def similar(word: str, candidates: Sequence[str], least: float = 0.7) -> str | None:
    """Return the candidate that a word was probably meant to be, ``None`` where none is close."""
    best = max(((_likeness(word, candidate), candidate) for candidate in candidates), default=(0.0, ""))
    return best[1] if best[0] >= least else None


def _likeness(word: str, candidate: str) -> float:
    """Return how alike two words are, from 0 to 1; letters in another order are a likely slip in short words."""
    from difflib import SequenceMatcher  # for those who mistype

    swapped = 0.9 if word != candidate and sorted(word) == sorted(candidate) else 0.0
    return max(swapped, SequenceMatcher(None, word, candidate).ratio())


def closest_clause(word: str) -> str:
    """Return the clause of a schedule that a word is most like."""
    return max(CLAUSES, key=lambda clause: _likeness(word, clause))


CLAUSES = ("cache", "meta_grid", "meta_block", "meta_min_blocks")
"""Words of what may stand between ``meta_schedule`` and its nest."""
AFTER_SCHEDULE = ("{", *CLAUSES, STATIC, "meta_for")
"""What follows ``meta_schedule`` where that is a word of the language."""


def is_schedule_keyword(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the token at an index is ``meta_schedule`` used as a word of the language."""
    token = tokens[index]
    if token.kind is not TokenKind.NAME or token.text != "meta_schedule":
        return False
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if after is not None and after.text in AFTER_SCHEDULE:
        return True
    before = tokens[index - 1] if index else None
    if before is not None and before.text not in ("{", "}", ";", ")", ":", "else", "do", "meta_schedule"):
        return False
    if after is not None and after.text == "(":  # no call is followed by these
        return _behind_parentheses(tokens, index + 1) in ("{", "meta_for")
    return after is None or after.text == ";" or after.kind is TokenKind.NAME


def _behind_parentheses(tokens: Sequence[Token], opening: int) -> str:
    depth = 0
    for index in range(opening, len(tokens) - 1):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return tokens[index + 1].text
    return ""


def is_reduction_keyword(tokens: Sequence[Token], index: int, end: int) -> bool:
    """Return whether a statement begins with ``meta_reduction`` used as a word of the language."""
    if tokens[index].text != "meta_reduction" or index + 2 >= end or tokens[index + 1].text != "(":
        return False
    return tokens[index + 2].text in REDUCTIONS or any(one.text == ":" for one in tokens[index + 2 : index + 5])


def is_atomic_keyword(tokens: Sequence[Token], index: int, end: int, partners: Mapping[int, int]) -> bool:
    """Return whether a statement begins with ``meta_atomic`` used as a word of the language."""
    if tokens[index].text != "meta_atomic" or index + 1 >= end:
        return False
    after = tokens[index + 1]
    if after.text == "(":  # no call is assigned to
        behind = partners[index + 1] + 1
        return behind < end and tokens[behind].text in WRITING
    if after.text in ("++", "--") and index + 2 < end:
        after = tokens[index + 2]
    return after.kind is TokenKind.NAME or after.text in ("*", "(")
