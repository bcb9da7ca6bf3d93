"""A schedule as data: directives in the order in which they are applied, and their text.

``tile(u, 4, layout=strided); tile(v, 4); cache(a)``: the names of directives, their arguments in order or by name, and
semicolons between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from metafork.transform.align import Align
from metafork.transform.coarsen import Coarsen
from metafork.transform.cse import Cse
from metafork.transform.directive import Directive, Schedule, name_of
from metafork.transform.grow import Grow
from metafork.transform.interchange import Interchange
from metafork.transform.placement import Cache, Delinearize, LayOut, Stages, Transpose, Uncache, Vectorize
from metafork.transform.promote import Promote
from metafork.transform.reroll import Reroll
from metafork.transform.specialize import Specialize
from metafork.transform.stride import Stride
from metafork.transform.strips import Strips
from metafork.transform.tile import Tile
from metafork.transform.to_grid import ToGrid
from metafork.transform.unroll_and_jam import UnrollAndJam

DIRECTIVES: dict[str, type[Struct]] = {
    name_of(one): one
    for one in (
        Specialize, Tile, Grow, Interchange, Reroll, ToGrid, Strips, Align, Cse, Promote, Coarsen, UnrollAndJam, Stride,
        Delinearize, Cache, Uncache, LayOut, Transpose, Vectorize, Stages,
    )
}  # fmt: skip
"""By the name of their text."""

_DIRECTIVE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*(;|$)")


class ScheduleError(ValueError):
    """A text is no schedule; the message says which part of it and why."""


def schedule_of(text: str) -> Schedule:
    """Return the directives of a text; raises ``ScheduleError``."""
    found: list[Directive] = []
    position = 0
    while text[position:].strip():
        match = _DIRECTIVE.match(text, position)
        if match is None:
            part = text[position:].strip().partition(";")[0]
            raise ScheduleError(f"`{part}` is no directive: `tile(v, 4); cache(a)` are two")
        found.append(_directive(match[1], [part.strip() for part in match[2].split(",") if part.strip()]))
        position = match.end()
    return tuple(found)


def _pair(name: str, argument: str) -> tuple[str, int]:
    word, _, value = (part.strip() for part in argument.partition("="))
    if not value.isdecimal() or len(value) > 18:
        raise ScheduleError(f"`{name}({argument})`: `{argument}` gives no parameter a value, as `B=16` does")
    return word, int(value)


def _directive(name: str, arguments: Sequence[str]) -> Directive:
    if name not in DIRECTIVES:
        raise ScheduleError(f"there is no directive `{name}`; there are {', '.join(DIRECTIVES)}")
    of_type = DIRECTIVES[name]
    fields = [field.name for field in structs.fields(of_type)]
    values: dict[str, Any] = {}
    several = [field for field in structs.fields(of_type) if get_origin(field.type) is tuple]  # it is the only one
    for field in several if arguments else ():
        texts = get_args(field.type)[0] is str
        values[field.name] = arguments if texts else [_pair(name, argument) for argument in arguments]
    in_order = True
    for place, argument in enumerate(() if several else arguments):
        word, named, value = (part.strip() for part in argument.partition("="))
        in_order = in_order and not named
        of = word if named else fields[place] if in_order and place < len(fields) else ""
        if of not in fields or of in values:
            raise ScheduleError(f"`{argument}` has no place in `{name}({', '.join(fields)})`")
        values[of] = value if named else word
    missing = [field.name for field in structs.fields(of_type) if field.required and field.name not in values]
    try:
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        return cast("Directive", msgspec.convert(values, of_type, strict=False))
    except ValueError as error:
        raise ScheduleError(f"`{name}({', '.join(arguments)})`: {error}") from None
