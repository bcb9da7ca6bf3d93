"""Where things stand in the input: a text with a name, and spans in it.  Every node of the IR carries a span."""

from __future__ import annotations

import os
from pathlib import PurePath

from msgspec import Struct


def base_name(path: str) -> str:
    """Return the name of a file without its folders, as text: bytes that are no UTF-8 are replaced."""
    return os.fsencode(PurePath(path).name).decode("utf-8", errors="replace")


class Source(Struct, frozen=True):
    """One input text.  ``name`` is what diagnostics print (a path as the user typed it).

    ``definitions`` and ``folders`` are what a compiler of this text is given by ``-D`` (``NAME``, ``NAME=VALUE``) and
    ``-I``.
    """

    name: str
    text: str
    definitions: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Span(Struct, frozen=True, order=True):
    """A half-open range of the input; lines and columns count from 1, in characters.

    ``start`` and ``end`` are character offsets into the text, so that a passage can be cut out or replaced.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int


NOWHERE = Span(1, 1, 1, 1, 0, 0)
"""The span of nodes that no input stands behind (made by tests or by a strategy)."""
