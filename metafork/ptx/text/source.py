"""Where a piece of PTX text stands, and the error that points at it."""

from __future__ import annotations

from msgspec import Struct


class Span(Struct, frozen=True):
    """A place in a PTX text: line and column, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


NOWHERE = Span(0, 0)
"""The span of nodes that a transformation made."""


class PtxError(ValueError):
    """PTX text that cannot be read or run, with its place.

    Attributes:
        reason: what is wrong, in one sentence, without the place.
        span: the place; ``NOWHERE`` when the node was made by a transformation.
    """

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(f"{span}: {reason}")
        self.reason = reason
        self.span = span

    def render(self, text: str, file: str = "<ptx>") -> str:
        """Return the message with the offending line of ``text`` and a caret under the column."""
        lines = text.splitlines()
        head = f"{file}:{self.span}: error: {self.reason}"
        if not 1 <= self.span.line <= len(lines):
            return head
        line = lines[self.span.line - 1]
        indent = "".join("\t" if character == "\t" else " " for character in line[: self.span.column - 1])
        return f"{head}\n{line}\n{indent}^"
