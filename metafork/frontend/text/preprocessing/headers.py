"""The input's own headers: where an ``#include`` leads, as far as the folders of ``-I`` and the input's own tell.

A header is looked for beside the file that names it, in the folders of ``-I``, and beside the input, as a compiler does
that is given the input's folder last.  Headers of the system are not read.  Whatever cannot be read (no such file, no
regular file, too large, too many, too deep) is unknown, and no error by itself: a compiler may know more folders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from metafork.frontend.text.tokens import Token, TokenKind, UnterminatedCommentError, tokenize

MOST_HEADERS = 500
"""Headers that one file may include, each time counted."""
DEEPEST = 40
"""Headers that may stand inside each other."""
MOST_LETTERS = 4_000_000
"""Letters of all headers that are read."""

OWN = "metafork.h"
"""The header that defines the words away for C: to metafork it is empty."""

_SYSTEM = ("/usr/include", "/usr/local/include")
_STANDARD = frozenset(
    {
        *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
        *("omp", "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio"),
        *("stdlib", "stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "unistd", "wchar", "wctype"),
    }
)
"""Headers of C, and those that nearly every compiler has."""
_STANDARD_FOLDERS = frozenset({"arpa", "asm", "bits", "linux", "net", "netinet", "sys"})

_NAMED = r"\s*(?:\"(?P<own>[^\"\n]+)\"|<(?P<system>[^>\n]+)>)\s*\Z"
_GUARD = r"#\s*(?:ifndef\s+(\w+)|if\s+!\s*defined\s*(?:\(\s*(\w+)\s*\)|\s(\w+)))\s*\Z"
_DEFINES = r"#\s*define\s+(\w+)\b"
_OPENS = re.compile(r"#\s*if")
_CLOSES = re.compile(r"#\s*endif\b")


class Header(Struct, frozen=True):
    """A header: where it lies, its tokens, and the macro that guards it against being read twice, if any."""

    path: Path
    tokens: tuple[Token, ...]
    guard: str


class Headers:
    """Finds and reads headers for one input, which lies in the folder ``home``; ``folders`` are those of ``-I``."""

    def __init__(self, home: Path, folders: Sequence[str] = ()) -> None:
        self.home = home
        self._folders = tuple(map(Path, folders))
        self.found: list[Path] = []
        self._once: set[Path] = set()
        self._seen: set[Path] = set()
        self._count = 0
        self._letters = 0

    def read(self, named: str, beside: Path, depth: int) -> Header | None:
        """Return the header that the rest of an ``#include`` names, ``None`` where it cannot be read.

        One that says ``#pragma once`` is empty from the second time on.
        """
        match = re.match(_NAMED, named)
        if match is not None and OWN in (match["own"], match["system"]):
            return Header(self.home / OWN, (), "")
        if match is None or depth > DEEPEST or self._count >= MOST_HEADERS:
            return None
        folders = (*((beside,) if match["own"] else ()), *self._folders, self.home)
        for folder in folders:
            path = folder / (match["own"] or match["system"])
            try:
                if path.is_file() and path.stat().st_size + self._letters <= MOST_LETTERS:
                    return self._header(path)
            except (OSError, ValueError):
                continue  # a name that no file can have, or a folder that may not be read
        return None

    def _header(self, path: Path) -> Header | None:
        self._count += 1
        place = path.resolve()
        if place in self._once:
            return Header(path, (), "")
        text = path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")
        self._letters += len(text)
        try:
            tokens = tuple(tokenize(text))
        except UnterminatedCommentError:
            return None
        if place not in self._seen:
            self._seen.add(place)
            self.found.append(path)
        directives = (token.text for token in tokens if token.kind is TokenKind.DIRECTIVE)
        if any(re.fullmatch(r"#\s*pragma\s+once", text) for text in directives):
            self._once.add(place)
        return Header(path, tokens, _guard(tokens))


def missing(named: str) -> str:
    """Return the header that the rest of an ``#include`` names if no compiler has it of its own, and empty if it may.

    The header is one that was not found.
    """
    match = re.match(_NAMED, named)
    name = "" if match is None else match["own"] or match["system"]
    if not name or name.removesuffix(".h") in _STANDARD or name.partition("/")[0] in _STANDARD_FOLDERS:
        return ""
    return "" if any(Path(folder, name).is_file() for folder in _SYSTEM) else named.strip()


def is_of_the_system(named: str) -> bool:
    """Return whether the rest of an ``#include`` names a header in angle brackets."""
    match = re.match(_NAMED, named)
    return match is not None and match["system"] is not None


def _guard(tokens: Sequence[Token]) -> str:
    """Return the macro of ``#ifndef M``, ``#define M``, ..., ``#endif`` around a whole file, empty without one."""
    if len(tokens) < 3 or any(token.kind is not TokenKind.DIRECTIVE for token in (*tokens[:2], tokens[-1])):
        return ""
    opening, defining = re.match(_GUARD, tokens[0].text), re.match(_DEFINES, tokens[1].text)
    if opening is None or defining is None:
        return ""
    name = opening[1] or opening[2] or opening[3]
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind is not TokenKind.DIRECTIVE:
            continue
        depth += bool(_OPENS.match(token.text)) - bool(_CLOSES.match(token.text))
        if depth == 0 and index + 1 < len(tokens):
            return ""  # the condition ends before the file does
        if depth == 1 and index and re.match(r"#\s*(?:else|elif)", token.text):
            return ""
    return name if defining[1] == name and depth == 0 else ""
