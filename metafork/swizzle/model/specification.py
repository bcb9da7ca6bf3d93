"""Specifications as sequential functions over symbols (Swizzle Inventor, section 2), and errors of sketches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metafork.swizzle.model.problem import Literal, Shape
from metafork.swizzle.model.terms import ABSORBING_ZERO, ZERO, Terms


class SketchError(Exception):
    """A statement that makes no sense; ``reason`` says why and ``way_out`` what to do, where there is something."""

    def __init__(self, reason: str, way_out: str = "") -> None:
        self.reason, self.way_out = reason, way_out
        super().__init__(reason)


def shape_text(shape: Shape) -> str:
    """Spell a shape as sketches do: ``[32, 3]``."""
    return "[" + ", ".join(str(length) for length in shape) + "]"


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A term under the operators of a sequential specification."""

    terms: Terms
    term: int

    def _fold(self, op: str, other: Symbolic | int) -> Symbolic:
        if isinstance(other, int):
            if other == 0:
                return Symbolic(self.terms, ZERO if op in ABSORBING_ZERO else self.term)
            raise TypeError("the only constant in a specification is 0")
        return Symbolic(self.terms, self.terms.fold(op, (self.term, other.term)))

    def __add__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("+", other)

    __radd__ = __add__

    def __mul__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("*", other)

    __rmul__ = __mul__

    def __xor__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("^", other)

    __rxor__ = __xor__

    def __and__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("&", other)

    def __or__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("|", other)


@dataclass(frozen=True, slots=True)
class SymbolicArray:
    """An input array of symbols, indexed by integers."""

    terms: Terms
    literal: Literal

    def __getitem__(self, index: int | tuple[int, ...]) -> Symbolic:
        at = index if isinstance(index, tuple) else (index,)
        shape = self.literal.shape
        if len(at) != len(shape) or not all(0 <= one < length for one, length in zip(at, shape, strict=True)):
            raise SketchError(
                f"the specification reads '{self.literal.name}' at {shape_text(at)}; its shape is {shape_text(shape)}"
            )
        return Symbolic(self.terms, int(self.literal.terms[np.ravel_multi_index(at, shape)]))
