"""``#pragma metafork mapping ...`` before a schedule: the parts of a ``Mapping`` that no clause can say.

Printed leaves carry it (``metafork.printing.metafork_text``), and C ignores it::

    #pragma metafork mapping layout(tile, reversed, 5, 1) transposed(x, y) wide() stages(2)

``layout`` gives an array's turn (``none``, ``row``, ``reversed``), the bits that take part and the columns of padding;
``wide`` says that threads read neighbours in shared memory together; ``stages`` how many buffers a window has whose
copy runs ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from metafork.frontend.text.preprocessing.branches import Directive
from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.tokens import Token, end_before
from metafork.ir.mapping import Layout, Mapping
from metafork.ir.messages.source import Span
from metafork.ir.program import BlockArray, Program, walk_statements

_ITEM = re.compile(r"\s*(\w+)\s*\(([^()]*)\)")
_TURNS: dict[str, Literal["none", "row", "reversed"]] = {"none": "none", "row": "row", "reversed": "reversed"}
MOST_BITS = 5
"""A row of a tile is a row of 32 banks at most."""


def pragma_before(
    directives: Iterable[Directive], tokens: Sequence[Token], places: Iterable[Span | None], word: str
) -> Directive | None:
    """Return the last ``#pragma metafork word`` that stands right in front of one of some places, without a token."""
    for start in (place.start for place in places if place is not None):
        last = end_before(tokens, start)
        for directive in reversed(list(directives)):
            stands = directive.word == "pragma" and last <= directive.span.start < start
            if stands and re.match(rf"metafork\s+{word}\b", directive.rest):
                return directive
    return None


def with_mapping(program: Program, directive: Directive, reporter: Reporter) -> Program:
    """Return the program with what the pragma says in its mapping; what it cannot say is a diagnostic (MF0320)."""
    reader = _Reader(program)
    try:
        mapping = reader.read(directive.rest.split("mapping", 1)[1])
    except ValueError as reason:
        reporter.error("MF0320", directive.span, str(reason))
        return program
    return replace(program, mapping=mapping)


class _Reader:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._global = {array.name for array in program.arrays}
        self._block = {stmt.array.name for stmt in walk_statements(program.body) if isinstance(stmt, BlockArray)}

    def read(self, text: str) -> Mapping:
        """Return the program's mapping with the items of the text; raises ``ValueError`` with what is wrong."""
        mapping = self._program.mapping
        position, seen = 0, set[str]()
        while text[position:].strip():
            found = _ITEM.match(text, position)
            if found is None:
                raise ValueError(f"`{text[position:].strip()}` is no item of a mapping")
            word, arguments = found[1], [part.strip() for part in found[2].split(",")]
            if word != "layout" and word in seen:
                raise ValueError(f"`{word}` stands twice")
            seen.add(word)
            mapping = self._with(mapping, word, arguments)
            position = found.end()
        return mapping

    def _with(self, mapping: Mapping, word: str, arguments: list[str]) -> Mapping:
        match word, arguments:
            case "wide", [""]:
                return replace(mapping, wide=True)
            case "stages", [count]:
                return replace(mapping, stages=_number(count, 2, 2))
            case "layout", [name, turn, bits, padding]:
                if name not in {*mapping.cached, *self._block}:
                    raise ValueError(f"`{name}` is not in shared memory")
                if turn not in _TURNS:
                    raise ValueError(f"`{turn}` is no turn of a layout; known: {', '.join(_TURNS)}")
                layout = Layout(_TURNS[turn], _number(bits, 0, MOST_BITS), _number(padding, 0, 1024))
                kept = tuple(pair for pair in mapping.layouts if pair[0] != name)
                return replace(mapping, layouts=(*kept, (name, layout)))
            case "transposed", names:
                for name in names:
                    if name not in self._global or name in mapping.cached:
                        raise ValueError(f"`{name}` is no array that stays out of shared memory")
                return replace(mapping, transposed=tuple(dict.fromkeys(names)))
            case _:
                raise ValueError(f"`{word}({', '.join(arguments)})` is no item of a mapping")


def _number(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or len(text) > 4 or not least <= int(text) <= most:
        raise ValueError(f"`{text}` is no number from {least} to {most}")
    return int(text)
