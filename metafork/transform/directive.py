"""What a directive is: a named change of a program that keeps its meaning, or a refusal (DESIGN section 5).

A schedule is data: directives in the order in which they are applied, and their text, ``tile(v, 4); cache(a)``
(``metafork.transform.schedule`` reads it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, structs

from metafork.analysis.analyses import Analyses
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Program


class Refused(Struct, frozen=True):
    """A ``directive``, as text, does not apply, or is not proved to be legal: why, and what stands in the way."""

    reason: str
    span: Span = NOWHERE
    directive: str = ""


class Directive(Protocol):
    """A frozen record whose fields are the arguments of its text, in their order."""

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the changed program, or why it stays as it is."""
        ...


Schedule = tuple[Directive, ...]


def applied(program: Program, schedule: Sequence[Directive], analyses: Analyses) -> Program | Refused:
    """Return a program with all directives applied, in their order, or why one is not."""
    for directive in schedule:
        result = directive.apply(program, analyses)
        if isinstance(result, Refused):
            return structs.replace(result, directive=_text(directive))
        program = result
    return program


def then(first: Schedule | None, second: Schedule | None) -> Schedule | None:
    """Return one schedule behind another one; ``None``, what is not known, where one of them is that."""
    return None if first is None or second is None else (*first, *second)


def text_of(schedule: Schedule | None) -> str:
    """Return the text of a schedule, which reads back as the same; nothing for one that is not known."""
    return "; ".join(map(_text, schedule or ()))


def name_of(directive: type[object]) -> str:
    """Return the name of a kind of directive: ``to_grid`` of ``ToGrid``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", directive.__name__).lower()


def _text(directive: Directive) -> str:
    assert isinstance(directive, Struct)
    parts: list[str] = []
    for field in structs.fields(type(directive)):
        value = getattr(directive, field.name)
        if isinstance(value, tuple):
            parts += (one if isinstance(one, str) else "=".join(map(str, one)) for one in value)
        elif field.required:
            parts.append(str(value))
        elif value != field.default:
            parts.append(f"{field.name}={getattr(value, 'value', value)}")
    return f"{name_of(type(directive))}({', '.join(parts)})"
