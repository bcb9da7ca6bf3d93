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

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program for these values."""
        for name, _ in self.values:
            if name not in static_parameters(program):
                return Refused(f"`{name}` is no program parameter that keeps its value", program.span)
        return with_static_values(program, dict(self.values))
