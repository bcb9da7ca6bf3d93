"""Where threads of a block have to meet: one must not touch what another one wrote, nor write what it touched.

Memories are told apart by the names of arrays: those of a program do not overlap, and a window has its array's.
"""

from __future__ import annotations

from collections.abc import Set

from msgspec import Struct

from metafork.ir import program as ir


class Touched(Struct, frozen=True):
    """The arrays of which threads read elements, those that they write included, and those that they write."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    @classmethod
    def of(cls, body: tuple[ir.Stmt, ...], moved: Set[str] = frozenset()) -> Touched:
        """Return what code touches; arrays that are ``moved`` between memories are written where they are read."""
        read = frozenset(part.array for part in ir.parts_of(body) if isinstance(part, ir.Element))
        written = frozenset(
            stmt.target.array
            for stmt in ir.walk_statements(body)
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
        )
        return cls(read, written | (read & moved))

    @classmethod
    def of_values(cls, *values: ir.Expr) -> Touched:
        """Return what is read by all threads to know values."""
        return cls(
            frozenset(part.array for one in values for part in ir.walk_expression(one) if isinstance(part, ir.Element))
        )

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.read | other.read, self.written | other.written)

    def without(self, names: Set[str]) -> Touched:
        """Return what is touched but for some arrays."""
        return Touched(self.read - names, self.written - names)

    def meets(self, other: Touched) -> bool:
        """Say whether a thread that does the one may touch what another thread does in the other."""
        return bool(self.written & other.read or self.read & other.written)


NOTHING = Touched()
