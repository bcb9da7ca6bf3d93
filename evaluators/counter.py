"""What a counter is: a named map from a program (with its IR strategies) to a symbolic value, or to "not known".

Resource counters (``kind == "resource"``) are accepted when ``value <= limit``.  A performance counter declares its
direction: a count is better when less and is accepted when ``value <= target``; a ratio is better when more and is
accepted when ``target <= value`` (DESIGN section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from metafork.algebra.polynomial import ONE, Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.ir.program import Version


@dataclass(frozen=True, slots=True)
class CounterValue:
    """``numerator / denominator`` where every constraint of ``domain`` holds; the denominator is positive there.

    ``derived`` are the fresh symbols that the polynomials use beyond those of the program itself.
    """

    numerator: Polynomial
    denominator: Polynomial = ONE
    derived: tuple[DerivedSymbol, ...] = ()
    domain: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class NotKnown:
    """The evaluator cannot say, and why; the counter is then left out, with this note in the report."""

    reason: str


class Counter(Protocol):
    """A counter.  ``symbol`` is the machine symbol of its limit or target (``Z``)."""

    @property
    def name(self) -> str:
        """The name used on the command line and in every output."""
        ...

    @property
    def kind(self) -> Literal["resource", "performance"]:
        """Whether the value is bounded by the hardware or wished for by the user."""
        ...

    @property
    def symbol(self) -> str:
        """The machine symbol of the limit or target."""
        ...

    @property
    def less_is_better(self) -> bool:
        """True for resources and cost counts, false for ratios."""
        ...

    @property
    def default_target(self) -> Fraction | None:
        """The target of a performance counter where the user gives none; ``None`` for resources."""
        ...

    def evaluate(self, version: Version) -> CounterValue | NotKnown:
        """Return the value of the counter on a version of the program."""
        ...
