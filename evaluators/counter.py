"""What a counter is: a named map from a program (with its IR strategies) to a symbolic value, or to "not known".

Resource counters (``kind == "resource"``) are accepted when ``value <= limit``.  A performance counter declares its
direction: a count is better when less and is accepted when ``value <= target``; a ratio is better when more and is
accepted when ``target <= value`` (DESIGN section 4).
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from fractions import Fraction
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.ir.program import Version
from metafork.runtime.machine import OwnLimit

MACHINE_MARK = "$"
"""Stands before a machine symbol in the value of a performance counter (``$R``): no name of C starts so."""


class CounterValue(Struct, frozen=True):
    """``numerator / denominator`` where every constraint of ``domain`` holds; the denominator is positive there.

    ``derived`` are the fresh symbols that the polynomials use beyond those of the program itself.  ``sampled`` says on
    what a value was tried that is not proved of every point of its domain; empty where it is.
    """

    numerator: Polynomial
    denominator: Polynomial = ONE
    derived: tuple[DerivedSymbol, ...] = ()
    domain: tuple[Constraint, ...] = ()
    sampled: str = ""


class NotKnown(Struct, frozen=True):
    """The evaluator cannot say, and why; the counter is then left out, with this note in the report."""

    reason: str


class Measure(Enum):
    """What the dispatcher reads from a compiled kernel; it then takes the place of a counter's estimate."""

    REGISTERS_PER_THREAD = "registers_per_thread"
    REGISTERS_PER_BLOCK = "registers_per_block"


class Details(Struct, frozen=True):
    """What a counter may say of itself beside its value, in the attribute ``details``.

    ``unit`` stands behind its values in reports.  ``measure`` is what the dispatcher may measure in its place.
    ``limit`` gives numbers to a machine symbol of its own, one that is no field of
    ``metafork.runtime.machine.Machine``. ``accepted`` and ``used`` are signs of the paper's traces (section 5): for a
    limit that was accepted, and for a value that is not zero.  ``machine`` are fields of the machine that values depend
    on, as symbols that start with ``MACHINE_MARK``.
    """

    unit: str = ""
    measure: Measure | None = None
    limit: OwnLimit | None = None
    accepted: str = ""
    used: str = ""
    machine: tuple[str, ...] = ()


V_contra = TypeVar("V_contra", bound=Hashable, contravariant=True)


class CounterOf(Protocol[V_contra]):
    """A counter of any kind of version.  ``symbol`` is the machine symbol of its limit or target (``Z``)."""

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

    def evaluate(self, version: V_contra, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the value of the counter on a version."""
        ...


Counter = CounterOf[Version]
"""A counter of programs."""


def details_of(counter: object) -> Details:
    """Return what a counter says of itself; it may leave it out."""
    details = getattr(counter, "details", None)
    return details if isinstance(details, Details) else Details()
