"""Where a text says that its lines come from: line markers of a preprocessor (``# 6 "small.c"``) and ``#line``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile

from msgspec.structs import replace

from metafork.ir.messages.diagnostics import Diagnostic
from metafork.ir.messages.source import Span

_MARKER = re.compile(r'^[ \t]*#[ \t]*(?:line[ \t]+)?(?P<line>\d+)(?:[ \t]+"(?P<name>(?:\\.|[^"\\\n])*)")?', re.M)


def with_presumed_places(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str]) -> list[Diagnostic]:
    """Return diagnostics that also say which line of which file it is, for texts (by name) with line markers."""
    markers = {name: list(_MARKER.finditer(text)) for name, text in texts.items()}
    found: list[Diagnostic] = []
    for one in diagnostics:
        note = _presumed(one.span, texts.get(one.source_name, ""), markers.get(one.source_name, []))
        found.append(replace(one, message=f"{one.message} ({note})") if note else one)
    return found


def presumed_lines(text: str, name: str) -> list[tuple[str, int]]:
    """Return which line of which file each line of a text is; names stand as in literals of C.

    ``name`` is the text's own.
    """
    places: list[tuple[str, int]] = []
    line = 0
    for written in text.split("\n"):
        line += 1
        places.append((name, line))
        if (marker := _MARKER.match(written)) is not None:
            line = int(marker["line"]) - 1
            name = name if marker["name"] is None else marker["name"]
    return places


def _presumed(span: Span, text: str, markers: list[re.Match[str]]) -> str:
    before = list(takewhile(lambda marker: marker.start() < span.start, markers))
    if not before:
        return ""
    names = [marker["name"] for marker in before if marker["name"] is not None]
    further = span.line - 2 - text.count("\n", 0, before[-1].start())
    where = f" of {names[-1]}" if names else ""
    return f"line {int(before[-1]['line']) + further}{where}"
