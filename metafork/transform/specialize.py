"""specialize: parameters that have values."""

from __future__ import annotations

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Program
from metafork.ir.static_values import static_parameters, with_static_values
from metafork.transform.directive import Refused


class Specialize(Struct, frozen=True):
    """Let program parameters be constants (``metafork.ir.static_values``).

    specialize(s=4)::

        for (int w = 0; w < s; w++)          -->   for (int w = 0; w < 4; w++)

    The program is then for these values alone: it assumes that the parameters have them.
    """

    values: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if any(value < 1 for _, value in self.values):
            raise ValueError("values are at least 1")

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program for these values."""
        types = {one.name: one.type for one in program.parameters if one.name in static_parameters(program)}
        for name, value in self.values:
            if name not in types:
                return Refused(f"`{name}` is no program parameter that keeps its value", program.span)
            if value > types[name].greatest:
                return Refused(f"`{name}` has the type `{types[name].spelling}`, without {value}", program.span)
        return with_static_values(program, dict(self.values))
