"""Specifications as sequential functions over symbols (Swizzle Inventor, section 2), and errors of sketches."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from metafork.swizzle.model.problem import Literal, Shape
from metafork.swizzle.model.terms import Terms


class SketchError(Exception):
    """A statement that makes no sense; ``reason`` says why and ``way_out`` what to do, where there is something."""

    def __init__(self, reason: str, way_out: str = "") -> None:
        self.reason, self.way_out = reason, way_out
        super().__init__(reason)


def shape_text(shape: Shape) -> str:
    """Spell a shape as sketches do: ``[32, 3]``."""
    return "[" + ", ".join(str(length) for length in shape) + "]"


class Symbolic(Struct, frozen=True):
    """A term under the operators of a sequential specification."""

    terms: Terms
    term: int

    def _fold(self, op: str, other: Symbolic | int) -> Symbolic:
        term = self.terms.constant(other) if isinstance(other, int) else other.term
        return Symbolic(self.terms, self.terms.fold(op, (self.term, term)))

    def __add__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("+", other)

    __radd__ = __add__

    def __neg__(self) -> Symbolic:
        return Symbolic(self.terms, self.terms.negated(self.term))

    def __sub__(self, other: Symbolic | int) -> Symbolic:
        return self + -other

    def __rsub__(self, other: int) -> Symbolic:
        return -self + other

    def __mul__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("*", other)

    __rmul__ = __mul__

    def __xor__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("^", other)

    __rxor__ = __xor__

    def __and__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("&", other)

    __rand__ = __and__

    def __or__(self, other: Symbolic | int) -> Symbolic:
        return self._fold("|", other)

    __ror__ = __or__

    def maximum(self, other: Symbolic | int) -> Symbolic:
        """Return the larger of the two."""
        return self._fold("max", other)

    def minimum(self, other: Symbolic | int) -> Symbolic:
        """Return the smaller of the two."""
        return self._fold("min", other)


class SymbolicArray(Struct, frozen=True):
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
