"""Lines of C that are not too wide: long ones go on in the next, where a person would break them.

    if (aaaa && bbbb(cccc, dddd)) {   -->   if (aaaa
                                                && bbbb(cccc, dddd)) {

A break stands behind a semicolon or a comma, or in front of an operator, at as few brackets around it as possible.
Preprocessor lines, literals and comments behind code stay whole, and so do lines that say from which line of the input
they come (``metafork.printing.input_lines``): the rest of a broken one would count as the input's next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from metafork.printing.input_lines import END

MOST_COLUMNS = 140
_INDENT = 4
_SHORT = 0.25
"""A first line that takes less of the room is a last resort."""
_DEEP = 0.5
"""What is in brackets that open behind this part of the room goes on at the line's own indentation."""
_TOKEN = re.compile(
    r"/\*.*?\*/|//.*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[\w.]+|<<=|>>=|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|->|\s+|.",
    re.DOTALL,
)
_WHOLE = re.compile(r"\s*/\*(?:(?!\*/).)*(?:\*/)?")
_COMMENT = re.compile(r"(\s*)(/\*|\*)( *)")
_RANKS = {
    rank: number
    for number, ranks in enumerate(
        (
            ";",
            ",",
            "= += -= *= /= %= &= |= ^= <<= >>=",
            "? :",
            "||",
            "&&",
            "| ^ &",
            "== != < > <= >=",
            "<< >>",
            "+ -",
            "* / %",
        )
    )
    for rank in ranks.split()
}
_BEHIND = frozenset([";", ",", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])


class _Break(Struct, frozen=True):
    """A space at which a line may end: how deep in brackets, how loosely its operator binds, what goes on where."""

    at: int
    depth: int
    rank: int
    column: int


def in_width(text: str, columns: int = MOST_COLUMNS) -> str:
    """Return text whose lines have at most so many columns, as far as they can be broken."""
    result: list[str] = []
    inside = directive = placed = False  # of a comment, of a preprocessor's, of statements with their places
    for line in text.split("\n"):
        directive = line.lstrip().startswith("#") or (directive and result[-1].endswith("\\"))
        placed = line != END and (placed or line.startswith(f"{END} "))
        if directive or placed:
            result.append(line)
            continue
        inside = inside or _WHOLE.fullmatch(line) is not None
        comment = _COMMENT.match(line) if inside else None
        result += _comment(line, comment, columns) if comment else [line] if inside else _broken(line, columns)
        inside = inside and "*/" not in line
    return "\n".join(result)


def _broken(line: str, columns: int) -> Iterator[str]:
    """Yield the lines that one becomes."""
    indent = len(line) - len(line.lstrip())
    brackets: list[int] = []
    while len(line) > columns:
        found = [one for one in _breaks(line, brackets, indent, columns) if one.at <= columns]
        if not found:
            break
        room = columns - indent
        best = min(found, key=lambda one: (one.at - indent < _SHORT * room, one.depth, one.rank, -one.at))
        first, rest = line[: best.at].rstrip(), line[best.at :].strip()
        brackets = _open(first, brackets, indent, columns)
        yield first
        line = " " * best.column + rest
    yield line


def _comment(line: str, opening: re.Match[str], columns: int) -> Iterator[str]:
    """Yield the lines that one of a comment becomes."""
    star = opening[2].replace("/*", " *")
    while len(line) > columns:
        at = line.rfind(" ", opening.end(), columns + 1)
        if at < 0:
            break
        yield line[:at]
        line = f"{opening[1]}{star}{opening[3]}{line[at + 1 :]}"
    yield line


def _column(bracket: int, indent: int, columns: int) -> int:
    """Return where text in a bracket goes on."""
    return bracket + 1 if bracket + 1 - indent <= _DEEP * (columns - indent) else indent + _INDENT


def _open(text: str, brackets: list[int], indent: int, columns: int) -> list[int]:
    """Return the columns at which text goes on that stands in brackets, the innermost last."""
    found = list(brackets)
    for token in _TOKEN.finditer(text):
        if token[0] in "([{":
            found.append(_column(token.start(), indent, columns))
        elif token[0] in ")]}" and found:
            found.pop()
    return found


def _breaks(line: str, brackets: list[int], indent: int, columns: int) -> Iterator[_Break]:
    tokens = list(_TOKEN.finditer(line))
    found = list(brackets)
    for number, token in enumerate(tokens):
        if token[0] in "([{":
            found.append(_column(token.start(), indent, columns))
        elif token[0] in ")]}" and found:
            found.pop()
        elif token[0] in _RANKS and 0 < number < len(tokens) - 1 and tokens[number + 1][0].isspace():
            at = tokens[number + 1].start() if token[0] in _BEHIND else tokens[number - 1].start()
            if (token[0] in _BEHIND or tokens[number - 1][0].isspace()) and line[:at].strip():
                yield _Break(at, len(found), _RANKS[token[0]], found[-1] if found else indent + _INDENT)
