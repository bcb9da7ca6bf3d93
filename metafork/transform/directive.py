"""What a directive is: a named change of a program that keeps its meaning, or a refusal (DESIGN section 5)."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Program


class Refused(Struct, frozen=True):
    """A directive does not apply, or its legality is not proved: why, and where the program stands in the way."""

    reason: str
    span: Span = NOWHERE


class Directive(Protocol):
    """A frozen record whose fields are the arguments of its text, in their order."""

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the changed program, or why it stays as it is."""
        ...
