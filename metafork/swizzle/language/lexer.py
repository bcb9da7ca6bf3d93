"""Tokens of sketch texts, with spans; comments run from ``#`` to the end of the line."""

from __future__ import annotations

import re

from msgspec import Struct

from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import Source, Span

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|\#[^\n]*)|(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<mark>->|\.\.|==|!=|<=|>=|&&|\|\||[-+*^&|]=|[-+*/%^?:=<>(){}\[\],.;\\&|])"
)


class Token(Struct, frozen=True):
    """One token; ``kind`` is ``number``, ``name``, ``mark`` or ``end``."""

    kind: str
    text: str
    span: Span


class Positions:
    """Line and column of each offset of a text, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> Span:
        """Return the span of a range of offsets."""
        (line, column), (end_line, end_column) = self._at(start), self._at(end)
        return Span(line, column, end_line, end_column, start, end)

    def _at(self, offset: int) -> tuple[int, int]:
        from bisect import bisect_right

        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def fault(source: Source, code: str, span: Span, message: str, way_out: str = "") -> DiagnosticsError:
    """Return the error of one diagnostic."""
    return DiagnosticsError([Diagnostic(code, Severity.ERROR, message, span, source.name, "", way_out)])


def tokens(source: Source) -> list[Token]:
    """Split a text; raises ``DiagnosticsError`` (MF0901) at a character that starts no token."""
    positions = Positions(source.text)
    result: list[Token] = []
    offset = 0
    while offset < len(source.text):
        match = _TOKEN.match(source.text, offset)
        if match is None:
            span = positions.span(offset, offset + 1)
            raise fault(source, "MF0901", span, f"'{source.text[offset]}' starts nothing that a sketch may contain")
        kind = match.lastgroup or "mark"
        if kind != "space":
            result.append(Token(kind, match.group(), positions.span(match.start(), match.end())))
        offset = match.end()
    end = len(source.text)
    result.append(Token("end", "end of the file", positions.span(end, end)))
    return result


def joined(first: Span, last: Span) -> Span:
    """Return the span from the start of one to the end of another."""
    return Span(first.line, first.column, last.end_line, last.end_column, first.start, last.end)
