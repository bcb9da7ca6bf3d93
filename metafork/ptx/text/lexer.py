"""Text → tokens of PTX, ISA 7.0 to 9.0.

Tokens are kept as three parallel tuples (kind, text, offset), because a kernel of two thousand loads has a hundred
thousand of them; line and column are found from the offset when somebody asks.  Comments and blanks are dropped.

An instruction of the form that nearly all have, ``@%p1 opcode.modifier %r1, [%rd2+4], 3;``, no vectors, is one token
of kind ``plain``, up to its semicolon.  In no directive and in no declaration does a word stand before another one.
"""

from __future__ import annotations

import bisect
import re
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from metafork.ptx.text.source import PtxError, Span

Kind = Literal["plain", "number", "word", "dot", "string", "punctuation", "end"]

# No repetition of characters gives back what it has (``++``, ``*+``): what may follow is nothing that it takes.  Groups
# are not repeated so: before Python 3.11.5 such a group matches where it should not (gh-106052).
_NAME = r"[A-Za-z_$%][\w$]*+"
_INTEGER = r"(?:0|[1-9][0-9]*+)"
_OPERAND = (
    rf"(?:{_NAME}(?:\.[a-z]++)?|-?{_INTEGER}|0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}}"
    rf"|\[{_NAME}(?:\+{_INTEGER})?\])"
)
_PLAIN = (
    rf"(?:@!?%\w++[ \t]++)?[a-z][a-z0-9]*+(?:\.[A-Za-z0-9_]++(?:::[A-Za-z0-9_]++)*)*"
    rf"[ \t]++{_OPERAND}(?:,[ \t]*+{_OPERAND})*;"
)

# What stands between tokens belongs to the match of the next one: half as many matches.
_TOKEN = re.compile(
    r"""
    [ \t\r\n\f\v]*+(?:(?://[^\n]*+|/\*.*?\*/)[ \t\r\n\f\v]*+)*
    (?:(?P<plain>PLAIN)
  | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
      |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?)
  | (?P<word>[A-Za-z_$%][\w$]*)
  | (?P<dot>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
  | (?P<string>"[^"\n]*")
  | (?P<punctuation><<|>>|[{}()\[\];:,@!|<>=+\-*/&~^?])
  | (?P<end>\Z)
  | (?P<none>.))
    """.replace("PLAIN", _PLAIN),
    re.VERBOSE | re.DOTALL,
)


class Tokens(Struct, frozen=True):
    """The tokens of one text; the last one has kind ``end``, and ``newlines`` has one more at the end of the text."""

    text: str
    kinds: tuple[Kind, ...]
    texts: tuple[str, ...]
    offsets: tuple[int, ...]
    newlines: tuple[int, ...]

    def span_at(self, offset: int) -> Span:
        """Return line and column of a character offset."""
        line = bisect.bisect_left(self.newlines, offset)
        start = self.newlines[line - 1] + 1 if line else 0
        return Span(line + 1, offset - start + 1)


def tokenize(text: str) -> Tokens:
    """Split PTX text into tokens.

    Raises:
        PtxError: at a character that starts no token.
    """
    newlines = tuple(accumulate(map(len, text.split("\n")), lambda end, size: end + 1 + size))
    kinds: list[Kind] = []
    texts: list[str] = []
    offsets: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        assert kind is not None  # an alternative always matches
        if kind == "end":
            break
        offset = match.start(kind)
        if kind == "none":
            span = Tokens(text, (), (), (), newlines).span_at(offset)
            raise PtxError(f"no PTX token starts with {text[offset]!r}", span)
        kinds.append(kind)  # type: ignore[arg-type]  # the group names are the kinds
        texts.append(match[kind])
        offsets.append(offset)
    kinds.append("end")
    texts.append("end of file")
    offsets.append(len(text))
    return Tokens(text, tuple(kinds), tuple(texts), tuple(offsets), newlines)
