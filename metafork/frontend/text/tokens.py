"""Text into tokens with exact spans.

The scan is tolerant: whatever C there is outside schedules must pass.  Comments and line continuations vanish, a
preprocessing directive is one token, and what is no token of C is a ``STRAY``, which matters only where it is parsed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from metafork.ir.messages.source import Span


class TokenKind(Enum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATOR = "punctuator"
    DIRECTIVE = "directive"
    STRAY = "stray"


class Token(Struct, frozen=True):
    """A token.  One that a macro gave has the span of the macro's use.

    ``fault`` says why a macro's name was left as it is; it is ``unknown`` where what the macro does is not known.
    """

    kind: TokenKind
    text: str
    span: Span
    fault: str = ""
    unknown: bool = False


class LineMap:
    """Offsets of a text to lines and columns, which count from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> Span:
        """Return the span between two offsets."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end) - 1
        return Span(first + 1, start - self._starts[first] + 1, last + 1, end - self._starts[last] + 1, start, end)


def hull(*spans: Span) -> Span:
    """Return the smallest span that holds all of the given ones."""
    first = min(spans, key=lambda span: span.start)
    last = max(spans, key=lambda span: span.end)
    return Span(first.line, first.column, last.end_line, last.end_column, first.start, last.end)


def first_from(tokens: Sequence[Token], offset: int) -> int:
    """Return the index of the first token of a file, in the order of the text, that begins at an offset or behind."""
    return bisect_left(tokens, offset, key=lambda token: token.span.start)


def end_before(tokens: Sequence[Token], offset: int) -> int:
    """Return where the last token ends that begins before an offset; 0 if none does."""
    index = first_from(tokens, offset)
    return tokens[index - 1].span.end if index else 0


_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")  # gcc and clang take blanks behind the backslash, with a warning
_BLANK = re.compile(r"(?:[ \t\r\n\f\v\ufeff]|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_DIRECTIVE = re.compile(r"#(?:/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|[^\n])*", re.DOTALL)
_TOKEN = re.compile(
    r"""
    (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
  | (?P<character>(?:u8|[LuU])?'(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[A-Za-z0-9_.])*)
  | (?P<punctuator>\.\.\.|<<=|>>=|\+\+|--|->|&&|\|\||<<|>>|<=|>=|==|!=|[-*/%+&|^]=|\#\#|[-=+*/%|&~^!<>?()\[\]{},.;:\#])
  | (?P<stray>["'][^\n]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class UnterminatedCommentError(Exception):
    """A comment that starts at ``offset`` has no end."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"comment at offset {offset} is not closed")
        self.offset = offset


class _Joined:
    """A text without its line continuations, whose offsets lead back to places of the text as it was written."""

    def __init__(self, text: str, lines: LineMap) -> None:
        self._lines = lines
        self._seams: list[int] = []  # offsets in the joined text, and how much of the other one is gone there
        self._gone: list[int] = [0]
        for match in _SPLICE.finditer(text) if "\\" in text else ():
            self._seams.append(match.start() - self._gone[-1])
            self._gone.append(self._gone[-1] + len(match.group()))
        self.text = _SPLICE.sub("", text) if self._seams else text

    def start(self, offset: int) -> int:
        """Return where the character at an offset of the joined text was written."""
        return offset + self._gone[bisect_right(self._seams, offset)]

    def span(self, start: int, end: int) -> Span:
        """Return where a passage of the joined text, which is not empty, was written."""
        return self._lines.span(self.start(start), self.start(end - 1) + 1)


def tokenize(text: str, lines: LineMap | None = None) -> list[Token]:
    """Return the tokens of a text; raises ``UnterminatedCommentError``.

    Lines that end in a backslash are joined first, as C has it: a word may go on in the next line.
    """
    joined = _Joined(text, lines or LineMap(text))
    text = joined.text
    tokens: list[Token] = []
    position, end = 0, len(text)
    line_is_empty = True
    while position < end:
        if match := _BLANK.match(text, position):
            # Blanks may hold comments; a newline inside a block comment does not end the line for a directive, but
            # telling the two apart matters only for code that no one writes.
            line_is_empty = line_is_empty or "\n" in match.group()
            position = match.end()
            continue
        if text.startswith("/*", position):
            raise UnterminatedCommentError(joined.start(position))
        if text[position] == "#" and line_is_empty:
            match = _DIRECTIVE.match(text, position)
            assert match is not None
            stop = position + len(match.group().rstrip())
            tokens.append(Token(TokenKind.DIRECTIVE, text[position:stop], joined.span(position, stop)))
            position = match.end()
            continue
        match = _TOKEN.match(text, position)
        assert match is not None
        kind = TokenKind(match.lastgroup)
        tokens.append(Token(kind, match.group(), joined.span(position, match.end())))
        position = match.end()
        line_is_empty = False
    return tokens


OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = frozenset(OPENING.values())


class BracketError(Exception):
    """A bracket without its partner; ``token`` is the culprit, ``opened`` the bracket it fails to close."""

    def __init__(self, token: Token, opened: Token | None) -> None:
        super().__init__(f"unmatched {token.text}")
        self.token = token
        self.opened = opened


def match_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Return, for the index of every opening bracket, the index of its partner; raises ``BracketError``."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is not TokenKind.PUNCTUATOR:
            continue
        if token.text in OPENING:
            stack.append(index)
        elif token.text in CLOSING:
            if not stack or OPENING[tokens[stack[-1]].text] != token.text:
                raise BracketError(token, tokens[stack[-1]] if stack else None)
            partners[stack.pop()] = index
    if stack:
        raise BracketError(tokens[stack[-1]], None)
    return partners


WRITING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
"""Operators that assign to what stands beside them."""


def perhaps_written(tokens: Sequence[Token]) -> set[str]:
    """Return the names that a statement may write, of which only the tokens are known."""
    if any(token.text in ("asm", "__asm__", "__asm") for token in tokens):
        return {token.text for token in tokens if token.kind is TokenKind.NAME}
    found = addressed(tokens)
    for before, name, after in zip(("", *(one.text for one in tokens)), tokens, (*tokens[1:], None), strict=False):
        behind = "" if after is None else after.text
        if name.kind is TokenKind.NAME and (before in ("++", "--") or behind in WRITING):
            found.add(name.text)
    return found


def addressed(tokens: Sequence[Token]) -> set[str]:
    """Return the names after an ``&``, which may take their address; ``&a[i]`` takes that of an element."""
    return {
        name.text
        for before, name, after in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False)
        if before.text == "&" and name.kind is TokenKind.NAME and (after is None or after.text != "[")
    }


_ATTRIBUTES = frozenset({"__attribute__", "__attribute"})


def handlers(tokens: Sequence[Token]) -> list[Token]:
    """Return the words ``cleanup`` of attributes, ``__attribute__((cleanup(f)))`` and ``[[gnu::cleanup(f)]]``.

    Such a handler is called wherever the variable's block is left, and no text there says so.
    """
    found: list[Token] = []
    depth = 0  # of brackets, within an attribute
    for before, token in zip((None, *tokens), tokens, strict=False):
        opened = before is not None and (before.text in _ATTRIBUTES or before.text == token.text == "[")
        if token.text in OPENING and (depth or opened):
            depth += 1
        elif token.text in CLOSING and depth:
            depth -= 1
        elif depth and token.text in ("cleanup", "__cleanup__"):
            found.append(token)
    return found
