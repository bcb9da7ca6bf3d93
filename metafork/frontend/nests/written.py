"""What is known at a place of a thread's code: elements of an array that surely are written, and values of scalars."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

Index = int | str
"""A number, or the text of what is one as long as the variables in it keep their values."""

Path = tuple[Index, ...]


class Range(Struct, frozen=True):
    """The elements ``w[path]...`` with the last index from ``first`` to ``behind``."""

    path: Path
    first: Index
    behind: Index


class Written(Struct, frozen=True):
    """Elements that surely are written, and ranges of them; ``whole`` where it is all of them.

    ``numbers`` are values that scalars are known to have at the same place.
    """

    elements: frozenset[Path] = frozenset()
    ranges: frozenset[Range] = frozenset()
    whole: bool = False
    numbers: frozenset[tuple[str, int]] = frozenset()

    def both(self, other: Written) -> Written:
        """Return what is written on two ways."""
        numbers = self.numbers & other.numbers
        if self.whole or other.whole:
            return replace(other if self.whole else self, numbers=numbers)
        return Written(self.elements & other.elements, self.ranges & other.ranges, numbers=numbers)

    def without(self, names: set[str]) -> Written:
        """Return what is known once variables have other values."""

        def kept(*indices: Index) -> bool:
            return not any(isinstance(one, str) and names & set(one.split()) for one in indices)

        elements = frozenset(one for one in self.elements if kept(*one))
        return replace(
            self,
            elements=elements,
            ranges=frozenset(one for one in self.ranges if kept(*one.path, one.first, one.behind)),
            numbers=frozenset(one for one in self.numbers if one[0] not in names),
        )


MOST_COUNTED = 128
"""Numbers below it are the same in every integer type."""


def with_number(written: Written, name: str, number: Index) -> Written:
    """Return what is known once a scalar has a value."""
    if not isinstance(number, int) or not 0 <= number < MOST_COUNTED:
        return written
    return replace(written, numbers=written.numbers | {(name, number)})


def values_of(written: Written, values: Mapping[str, int]) -> dict[str, int]:
    """Return the values of scalars: those that are given, and those that are known."""
    return {**dict(written.numbers), **values}
