"""Transposing the words of a warp between registers and lanes, in closed form for every stride.

A warp of ``WARP`` lanes holds ``WARP * stride`` words.  In *memory order* register m of lane l holds word
``WARP*m + l``, as loads of neighbouring words leave them; in *structure order* register j of lane i holds word
``stride*i + j``: lane i has a structure whole.  One becomes the other in ``stride`` rounds.  In round r

- lane l hands in its register ``order[(r - l) mod stride]``,
- lane i takes from lane ``(stride*i + j) mod WARP``, where ``j = (r + i div period) mod stride``: it gets word j of its
  structure.

So what depends on the lane is a rotation of the registers before the exchange, by l, and one after it, by
``i div period``, which is 0 for every odd stride.  Both are made of selects, one level a bit.  The way back does the
same in the other direction.

For odd strides this is the closed form of Swizzle Inventor's transposition problem, ``order[t] = WARP^-1 * t mod
stride``; for others the decomposition of Catanzaro, Keller and Garland (PPoPP 2014, section 4) with the columns'
rotation, ``gcd(stride, WARP)`` of them.  A test compares every stride with the definition above.
"""

from __future__ import annotations

from math import gcd

from msgspec import Struct

WARP = 32
LARGEST_STRIDE = 31


class LaneTranspose(Struct, frozen=True):
    """The transposition for one stride, 2 to ``LARGEST_STRIDE``."""

    stride: int

    def __post_init__(self) -> None:
        """Refuse other strides with ``ValueError``."""
        if not 2 <= self.stride <= LARGEST_STRIDE:
            raise ValueError(f"no transposition for a stride of {self.stride}")

    @property
    def turns(self) -> int:
        """How many different rotations there are in structure order: ``gcd(stride, WARP)``."""
        return gcd(self.stride, WARP)

    @property
    def period(self) -> int:
        """How many neighbouring lanes rotate their structures alike."""
        return WARP // self.turns

    @property
    def order(self) -> tuple[int, ...]:
        """The register of memory order that lane 0 hands in, round by round."""
        result = [0] * self.stride
        for register in range(self.stride):
            lane, field = divmod(WARP * register, self.stride)
            result[(field - lane // self.period) % self.stride] = register
        return tuple(result)

    @property
    def inverse(self) -> int:
        """The inverse of ``stride div turns`` modulo ``period``, of use on the way back.

        There lane l takes in round r from lane ``period*u + inverse*((l - (r + u) mod stride) div turns) mod period``
        with ``u = (l - r) mod turns``: the only one that takes from lane l in that round on the way out.
        """
        return pow(self.stride // self.turns, -1, self.period)
