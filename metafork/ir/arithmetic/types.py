"""Scalar types of C as the accepted language has them, on an LP64 host and on the device alike.

The rules are those of C11: section 6.3.1.1 (integer promotion) and 6.3.1.8 (usual arithmetic conversions).
"""

from __future__ import annotations

from enum import Enum
from functools import cache


class ScalarType(Enum):
    """A C scalar type: its spelling, its size in bytes, whether it is signed, whether it is floating."""

    BOOL = ("_Bool", 1, False, False, 0)
    CHAR = ("char", 1, True, False, 1)
    SIGNED_CHAR = ("signed char", 1, True, False, 1)
    UNSIGNED_CHAR = ("unsigned char", 1, False, False, 1)
    SHORT = ("short", 2, True, False, 2)
    UNSIGNED_SHORT = ("unsigned short", 2, False, False, 2)
    INT = ("int", 4, True, False, 3)
    UNSIGNED_INT = ("unsigned int", 4, False, False, 3)
    LONG = ("long", 8, True, False, 4)
    UNSIGNED_LONG = ("unsigned long", 8, False, False, 4)
    LONG_LONG = ("long long", 8, True, False, 5)
    UNSIGNED_LONG_LONG = ("unsigned long long", 8, False, False, 5)
    HALF = ("half", 2, True, True, 4)
    BFLOAT16 = ("bfloat16", 2, True, True, 5)
    FLOAT = ("float", 4, True, True, 6)
    DOUBLE = ("double", 8, True, True, 7)

    def __init__(self, spelling: str, size: int, signed: bool, floating: bool, rank: int) -> None:
        self.spelling = spelling
        self.size = size
        self.signed = signed
        self.floating = floating
        self.rank = rank

    __hash__ = object.__hash__  # that of enumerations is a function in Python, and types are looked up everywhere

    @property
    def small(self) -> bool:
        """Whether this is a floating type that values have in memory alone: whatever reads one reads a ``float``."""
        return self.floating and self.size < 4

    @property
    def stored(self) -> ScalarType:
        """The type that memory of this type has in programs: for a ``small`` one its bits, an integer."""
        return ScalarType.UNSIGNED_SHORT if self.small else self

    @property
    def integer(self) -> bool:
        """Whether this is an integer type."""
        return not self.floating

    @property
    def least(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (8 * self.size - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The largest value of an integer type."""
        if self is ScalarType.BOOL:
            return 1
        return (1 << (8 * self.size - (1 if self.signed else 0))) - 1

    def holds(self, other: ScalarType) -> bool:
        """Say whether every value of another integer type is one of this type."""
        return self.least <= other.least and other.greatest <= self.greatest


@cache  # of a few types, asked for each operation of each kernel
def promoted(type_: ScalarType) -> ScalarType:
    """Return the type after promotion: integers narrower than ``int`` become ``int``, small floats ``float``."""
    if type_.small:
        return ScalarType.FLOAT
    return ScalarType.INT if type_.integer and type_.rank < ScalarType.INT.rank else type_


_UNSIGNED_OF_RANK = {3: ScalarType.UNSIGNED_INT, 4: ScalarType.UNSIGNED_LONG, 5: ScalarType.UNSIGNED_LONG_LONG}


@cache
def common_type(left: ScalarType, right: ScalarType) -> ScalarType:
    """Return the type in which C computes ``left op right`` (the usual arithmetic conversions)."""
    left, right = promoted(left), promoted(right)
    if left.floating or right.floating:
        return max((left, right), key=lambda type_: type_.rank)
    if left.signed == right.signed:
        return max((left, right), key=lambda type_: type_.rank)
    unsigned, signed = (right, left) if left.signed else (left, right)
    if unsigned.rank >= signed.rank:
        return unsigned
    return signed if signed.size > unsigned.size else _UNSIGNED_OF_RANK[signed.rank]
