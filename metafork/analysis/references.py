"""An access of a program to an array, with its indices as polynomials and the loops and conditions around it.

``metafork.analysis.reference_walk`` finds them.
"""

from __future__ import annotations

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.analysis.values.conditions import Meaning
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.ir import program as ir


class Guard(Struct, frozen=True):
    """A condition that held (or, with ``truth`` false, did not) where an access stands, and what it says.

    ``lasts``: it held in all iterations of the loop around it until then, for it ends the loop otherwise.
    """

    condition: ir.Expr
    truth: bool
    meaning: Meaning
    lasts: bool = False

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What follows from it in any case."""
        return self.meaning.constraints


class Reference(Struct, frozen=True):
    """One access.  ``indices`` hold ``None`` where an index is no known polynomial.

    ``loops`` are the enclosing loops outside in, grid loops first; ``bounded`` is false inside a loop of unknown shape
    (``while``) or past a ``break``, where an access may be skipped for reasons that no guard shows.  ``phase`` numbers
    the phases in textual order, ``None`` at block level.  ``number`` is that of its element (``metafork.ir.visitor``).
    ``atomic`` is the kind of an atomic update (``metafork.ir.atomic_updates``), empty for other accesses.  A
    ``certain`` one is made in exactly those iterations of its loops that the guards allow.
    """

    element: ir.Element
    indices: tuple[Polynomial | None, ...]
    reads: bool
    writes: bool
    loops: tuple[LoopRange, ...]
    guards: tuple[Guard, ...]
    bounded: bool
    phase: int | None
    number: int
    clamped: tuple[int, ...] = ()
    wrapped: tuple[int, ...] = ()
    atomic: str = ""
    certain: bool = False

    @property
    def distances(self) -> tuple[tuple[int, LoopRange], ...]:
        """The clamped axes, each with the range of its distance; ``low`` is the value that it is a distance from."""
        end = len(self.loops) - len(self.wrapped)
        return tuple(zip(self.clamped, self.loops[end - len(self.clamped) : end], strict=True))

    @property
    def turns(self) -> tuple[tuple[int, LoopRange], ...]:
        """The wrapped axes, each with the range of its turns: ``low`` is the value that wraps, ``-step`` the period."""
        return tuple(zip(self.wrapped, self.loops[len(self.loops) - len(self.wrapped) :], strict=True))

    @property
    def array(self) -> str:
        """The name of the array."""
        return self.element.array

    def commutes(self, other: Reference) -> bool:
        """Say whether both are atomic updates that may run in any order, whatever elements they touch."""
        return bool(self.atomic) and self.atomic == other.atomic

    def constraints(self) -> tuple[Constraint, ...]:
        """Return what holds where the access stands: ranges of loop symbols and guards."""
        ranges = tuple(c for loop in self.loops for c in loop.constraints())
        return ranges + tuple(c for guard in self.guards for c in guard.constraints)


def left_early(body: tuple[ir.Stmt, ...]) -> bool:
    """Say whether a ``break`` or ``continue`` belongs to the loop with this body."""
    return any(
        isinstance(stmt, ir.Break | ir.Continue)
        or (isinstance(stmt, ir.If) and (left_early(stmt.then) or left_early(stmt.otherwise)))
        for stmt in body
    )


def breaks(body: tuple[ir.Stmt, ...]) -> int:
    """Return how many ``break``s belong to the loop with this body."""
    found = 0
    for stmt in body:
        match stmt:
            case ir.Break():
                found += 1
            case ir.If(then=then, otherwise=otherwise):
                found += breaks(then) + breaks(otherwise)
            case ir.Phase(body=inner):
                found += breaks(inner)
            case _:
                pass
    return found
