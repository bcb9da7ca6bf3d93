"""Which brace a text probably forgets to close: the first whose ``}`` is indented less than its own line."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.tokens import Token
from metafork.ir.messages.source import Span


def refuse_unclosed(reporter: Reporter, opened: Token, tokens: Sequence[Token]) -> RefusedError:
    """Refuse a text that ends within braces; ``opened`` is one that has no partner."""
    last = tokens[-1].span
    end = Span(last.end_line, last.end_column, last.end_line, last.end_column, last.end, last.end)
    suspect = probably_unclosed(tokens)
    note = "this brace is not closed" if suspect is None else "the indentation says that this brace is not closed"
    return reporter.refuse(
        "MF0004",
        end,
        "the file ends, and one `}` is missing",
        reason="without it, the end of a function is not known.",
        way_out="add the missing `}`.",
        related=(((suspect or opened).span, note),),
    )


def probably_unclosed(tokens: Sequence[Token]) -> Token | None:
    """Return an opening brace that the indentation shows to be unclosed, ``None`` if it shows none."""
    indentation: dict[int, int] = {}
    for token in tokens:
        indentation.setdefault(token.span.line, token.span.column)
    opened: list[Token] = []
    for token in tokens:
        if token.text == "{":
            opened.append(token)
        elif token.text == "}" and opened:
            own = indentation[token.span.line]
            # A brace in a line with other text says nothing.
            if own == token.span.column and own < indentation[opened[-1].span.line]:
                return opened[-1]
            opened.pop()
    return None
