"""``meta_static(s: 1, 2, 4, B: 64)`` in front of a schedule: the values that its kernels may be compiled for.

A clause names one parameter or several, separated by commas or semicolons; a name with a colon begins the next one.
Several clauses may follow each other.  What the names and values mean is seen in
``metafork.frontend.schedules.values.static_values``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from metafork.frontend.text import syntax
from metafork.frontend.text.tokens import OPENING, Token, TokenKind
from metafork.ir.messages.source import Span

WORD = "meta_static"

Report = Callable[[Span, str], None]


def is_static_keyword(tokens: Sequence[Token], index: int, partners: Mapping[int, int]) -> bool:
    """Return whether a statement begins with ``meta_static`` used as a word of the language."""
    if tokens[index].text != WORD or index + 1 >= len(tokens) or tokens[index + 1].text != "(":
        return False
    if begins(tokens, index + 2, len(tokens)):
        return True
    behind = partners[index + 1] + 1
    return behind < len(tokens) and tokens[behind].text in (WORD, "meta_schedule")


def begins(tokens: Sequence[Token], index: int, end: int) -> bool:
    """Return whether a parameter's name and its colon stand at an index: no expression begins so."""
    return index + 1 < end and tokens[index].kind is TokenKind.NAME and tokens[index + 1].text == ":"


def clauses(
    tokens: Sequence[Token],
    inside: tuple[int, int],
    whole: Span,
    partners: Mapping[int, int],
    expression: Callable[[int, int], syntax.Expression],
    report: Report,
) -> tuple[syntax.StaticClause, ...]:
    """Return what stands ``inside`` the brackets of one ``meta_static``; a part with a fault is reported."""
    found: list[syntax.StaticClause] = []
    name: syntax.Name | None = None
    values: list[syntax.Expression] = []
    for first, behind in _pieces(tokens, *inside, partners):
        if begins(tokens, first, behind):
            if name is not None:
                found.append(syntax.StaticClause(name, tuple(values)))
            name, values = syntax.Name(tokens[first].text, tokens[first].span), []
            first += 2
        if name is None:
            report(whole, "`meta_static(...)` names a parameter and its values: `meta_static(s: 1, 2, 4)`")
            return ()
        if first == behind:
            report(name.span, f"a value of `{name.name}` is missing")
            return ()
        values.append(expression(first, behind))
    if name is not None:
        found.append(syntax.StaticClause(name, tuple(values)))
    return tuple(found)


def _pieces(tokens: Sequence[Token], index: int, end: int, partners: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the stretches of tokens between commas and semicolons that stand in no further brackets."""
    pieces: list[tuple[int, int]] = []
    start = index
    while index < end:
        text = tokens[index].text
        if text in (",", ";"):
            pieces.append((start, index))
            start = index + 1
        index = partners[index] + 1 if text in OPENING and index in partners else index + 1
    return [*pieces, (start, end)]
