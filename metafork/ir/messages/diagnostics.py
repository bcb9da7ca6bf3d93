"""Diagnostics: what is wrong with an input, where, why, and what to do about it; as text, as JSON and as SARIF 2.1.0.

A diagnostic is a fault of the input and never of the tool.  Its ``code`` (``MF0103``) is stable; the codes are listed
in ``metafork.ir.messages.catalogue`` and in ``docs/diagnostics.md``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct

from metafork.ir.messages.source import Span


class Severity(Enum):
    """How bad it is: an error stops the file, a warning does not, and a note (which has no code) is no fault."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Diagnostic(Struct, frozen=True):
    """One finding: a sentence at a place, with its reason, a way out, and other places that explain it."""

    code: str
    severity: Severity
    message: str
    span: Span
    source_name: str
    reason: str = ""
    way_out: str = ""
    related: tuple[tuple[Span, str], ...] = ()


class DiagnosticsError(Exception):
    """The input is at fault; ``diagnostics`` are all findings, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = in_order(diagnostics)
        super().__init__("; ".join(f"{one.code}: {one.message}" for one in self.diagnostics))


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics sorted by file, position and code, each once."""
    unique = dict.fromkeys(diagnostics)
    return tuple(sorted(unique, key=lambda one: (one.source_name, one.span.start, one.span.end, one.code)))


_BOLD, _DIM, _RED, _YELLOW, _BLUE, _OFF = "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[34m", "\033[0m"


class _Painter:
    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, *styles: str) -> str:
        return "".join(styles) + text + _OFF if self._color else text


def _printable(text: str) -> str:
    """Replace what a terminal would act upon; tabs stay, so that carets line up under them."""
    return "".join(letter if letter == "\t" or letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


LONGEST = 240
"""Letters of a line that an excerpt shows; of a longer line it shows a part, marked with ``...``."""
BEFORE = 80
"""Letters shown before the caret in a line that is too long."""


def _excerpt(
    span: Span, lines: Sequence[str] | None, gutter: int, paint: _Painter, style: str, note: str = ""
) -> list[str]:
    if lines is None or not 1 <= span.line <= len(lines):
        return []
    line = lines[span.line - 1].rstrip("\r")
    first = min(span.column - 1, len(line))
    last = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    if len(line) > LONGEST:
        begin = max(0, first - BEFORE)
        opening = "..." if begin else ""
        closing = "..." if begin + LONGEST < len(line) else ""
        line = opening + line[begin : begin + LONGEST]
        first, last = (min(place - begin + len(opening), len(line)) for place in (first, last))
        line += closing
    line = _printable(line)
    width = max(1, min(last, len(line)) - first)
    # Tabs are repeated in the margin: whatever width the terminal gives them, the caret stands under its column.
    margin = "".join("\t" if letter == "\t" else " " for letter in line[:first])
    underline = "^" + "~" * (width - 1)
    number = str(span.line).rjust(gutter)
    return [
        f"{paint(f'{number} |', _BLUE)} {line}",
        f"{paint(' ' * gutter + ' |', _BLUE)} {margin}{paint(underline, style)}{' ' + note if note else ''}",
    ]


def excerpt(span: Span, text: str) -> str:
    """Return the line of a span with a caret below, as diagnostics show it."""
    lines = _excerpt(span, text.split("\n"), max(4, len(str(span.line))), _Painter(False), _BLUE)
    return "\n".join(lines)


def render_text(diagnostics: Iterable[Diagnostic], source_texts: Mapping[str, str], color: bool = False) -> str:
    """Return the diagnostics for people: place and message, the line with a caret, the reason and the help.

    A help may have lines of source below its first line.

    ``source_texts`` maps source names to their texts; the excerpt is left out for a source that is not among them.
    """
    paint = _Painter(color)
    blocks: list[str] = []
    lines_of = {name: text.split("\n") for name, text in source_texts.items()}
    for one in in_order(diagnostics):
        style = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.NOTE: _BLUE}[one.severity]
        text = lines_of.get(one.source_name)
        gutter = max(4, *(len(str(span.line)) for span in (one.span, *(where for where, _ in one.related))))
        place = f"{one.source_name}:{one.span.line}:{one.span.column}:"
        label = paint(f"{one.severity.value}{f'[{one.code}]' if one.code else ''}:", _BOLD, style)
        lines = [f"{paint(place, _BOLD)} {label} {paint(_printable(one.message), _BOLD)}"]
        lines += _excerpt(one.span, text, gutter, paint, style)
        for where, note in one.related:
            lines.append(f"{' ' * gutter} {paint('note:', _DIM)} {_printable(note)} (line {where.line})")
            lines += _excerpt(where, text, gutter, paint, _BLUE)
        if one.reason:
            lines.append(f"{' ' * gutter} = {paint('reason:', _BOLD)} {_printable(one.reason)}")
        if one.way_out:
            word = "hint:" if one.severity is Severity.NOTE else "help:"
            first, *further = one.way_out.split("\n")
            lines.append(f"{' ' * gutter} = {paint(word, _BOLD)} {_printable(first)}")
            lines += [f"{' ' * (gutter + 6)}{_printable(line)}" for line in further]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + ("\n" if blocks else "")


def _span_object(span: Span) -> dict[str, int]:
    return {
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "start": span.start,
        "end": span.end,
    }


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as a JSON object with a format name, a version and a list."""
    items = [
        {
            "code": one.code,
            "severity": one.severity.value,
            "message": one.message,
            "file": one.source_name,
            "span": _span_object(one.span),
            "reason": one.reason,
            "way_out": one.way_out,
            "related": [{"span": _span_object(span), "message": note} for span, note in one.related],
        }
        for one in in_order(diagnostics)
    ]
    return json.dumps({"format": "metafork-diagnostics", "version": 1, "diagnostics": items}, indent=2) + "\n"


def _uri(path: str) -> str:
    """Return a path as a URI, or as a reference that is relative to one (RFC 3986)."""
    from urllib.parse import quote_from_bytes  # for SARIF alone

    quoted = quote_from_bytes(os.fsencode(path.replace("\\", "/")))
    return f"file://{quoted}" if quoted.startswith("/") else quoted


def _sarif_location(source_name: str, span: Span) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(source_name)},
            "region": {
                "startLine": span.line,
                "startColumn": span.column,
                "endLine": span.end_line,
                "endColumn": span.end_column,
                "charOffset": span.start,
                "charLength": span.end - span.start,
            },
        }
    }


def render_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as a SARIF 2.1.0 log, for code hosts and editors."""
    ordered = in_order(diagnostics)
    rules: dict[str, dict[str, Any]] = {}
    results: list[dict[str, Any]] = []
    for one in ordered:
        rules.setdefault(
            one.code,
            {
                "id": one.code,
                "shortDescription": {"text": one.reason or one.message},
                "help": {"text": one.way_out or one.reason or one.message},
            },
        )
        sentence = one.message
        if one.reason:
            sentence += f" Reason: {one.reason}"
        if one.way_out:
            sentence += f" Help: {one.way_out}"
        result: dict[str, Any] = {
            "ruleId": one.code,
            "ruleIndex": list(rules).index(one.code),
            "level": one.severity.value,
            "message": {"text": sentence},
            "locations": [_sarif_location(one.source_name, one.span)],
        }
        if one.related:
            result["relatedLocations"] = [
                {"id": index, "message": {"text": note}, **_sarif_location(one.source_name, span)}
                for index, (span, note) in enumerate(one.related)
            ]
        results.append(result)
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "metafork", "rules": list(rules.values())}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"
