"""The code of a private window: elements of a global array that a thread keeps in registers while the block runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.private_windows import THREAD_SYMBOLS, PrivateWindow, digits_of
from metafork.analysis.references import Reference
from metafork.ir.polynomial_code import code_of, conjunction, may_be_negative
from metafork.ir.program import Assign, Declare, Element, Expr, For, If, IntConst, Stmt, Var, binary
from metafork.lowering.copy import (
    INT,
    Site,
    array_extents,
    as_int,
    bounds_of,
    builtin,
    offset_inside,
    row_bounds,
    zero,
)


@dataclass(frozen=True, slots=True)
class PrivateCode:
    """A private window under its name in the kernel; ``flag`` names the variable that says "written", if one is due."""

    window: PrivateWindow
    name: str

    @property
    def flag(self) -> str | None:
        """The variable that becomes 1 at the first write, where not every thread is sure to write."""
        return None if self.window.certain else f"{self.name}_written"

    def prologue(self, site: Site) -> list[Stmt]:
        """Declare the registers and load them."""
        element = self.window.array.element
        result: list[Stmt] = []
        if self.flag is not None:
            result.append(Declare(self.flag, INT, IntConst(0)))
        if self.window.count == 1:
            result.append(Declare(self.name, element, zero(element)))
        if self.window.loaded:
            result += self._move(site, into_registers=True)
        return result

    def epilogue(self, site: Site) -> list[Stmt]:
        """Store the registers, if they were written."""
        move = self._move(site, into_registers=False)
        return move if self.flag is None else [If(Var(self.flag, INT), tuple(move))]

    def mark(self) -> list[Stmt]:
        """Return what follows a write."""
        return [] if self.flag is None else [Assign(Var(self.flag, INT), "", IntConst(1))]

    def access(self, reference: Reference, symbols: Mapping[str, Expr]) -> Element | Var:
        """Return the register that a reference means."""
        element = self.window.array.element
        if self.window.count == 1:
            return Var(self.name, element)
        index: Expr = IntConst(0)
        weight = 1
        for loop, (trips, _) in zip(digits_of(reference, self.window.factors), self.window.digits, strict=True):
            term = binary("*", symbols[loop.var], IntConst(weight)) if weight != 1 else symbols[loop.var]
            index = term if index == IntConst(0) else binary("+", index, term)
            weight *= trips
        return Element(self.name, (index,), element)

    def _move(self, site: Site, *, into_registers: bool) -> list[Stmt]:
        window = self.window
        digits = tuple(Var(f"{self.name}_{number}", INT) for number in range(len(window.digits)))
        symbols: dict[str, Expr] = {**site.symbols, **{digit.name: digit for digit in digits}}
        for name in THREAD_SYMBOLS:
            symbols[name] = as_int(builtin(name))
        values: list[Polynomial] = []
        for axis, base in enumerate(window.bases):
            value = base
            for digit, (_, steps) in zip(digits, window.digits, strict=True):
                value = value + Polynomial.symbol(digit.name) * steps[axis]
            values.append(value)
        code = tuple(code_of(value, symbols, wide=len(values) == 1 or may_be_negative(value)) for value in values)
        extents = array_extents(window.array.name, window.factors, site)
        own: Element | Var = Var(self.name, window.array.element)
        if window.count > 1:
            index: Expr = digits[0]
            weight = window.digits[0][0]
            for digit, (trips, _) in zip(digits[1:], window.digits[1:], strict=True):
                index = binary("+", index, binary("*", digit, IntConst(weight)))
                weight *= trips
            own = Element(self.name, (index,), window.array.element)
        outside = Element(window.array.name, (offset_inside(code, extents),), window.array.element)
        move: Stmt = Assign(own, "", outside) if into_registers else Assign(outside, "", own)
        if into_registers:
            guard = conjunction(self._guards(values, code, site))
            move = move if guard is None else If(guard, (move,))
        for digit, (trips, _) in zip(reversed(digits), reversed(window.digits), strict=True):
            move = For(
                Declare(digit.name, INT, IntConst(0)),
                binary("<", digit, IntConst(trips)),
                Assign(digit, "+", IntConst(1)),
                (move,),
            )
        return [move]

    def _guards(self, values: Sequence[Polynomial], code: tuple[Expr, ...], site: Site) -> list[Expr]:
        """Return what keeps a load inside the array where that is not proved: a thread may have no element at all."""
        window = self.window
        array = window.array.name
        threads = zip(THREAD_SYMBOLS, site.shape, strict=False)
        loops = [
            *(loop for loop in window.references[0].loops if loop.kind is LoopKind.GRID),
            *(LoopRange(name, extent, LoopKind.THREAD) for name, extent in threads),
            *(
                LoopRange(f"{self.name}_{number}", Polynomial.constant(trips), LoopKind.SERIAL)
                for number, (trips, _) in enumerate(window.digits)
            ),
        ]
        extents, extent_code = site.extents[array], site.extent_code[array]
        both: tuple[Expr | None, ...] = ()
        if window.factors:
            # A column past the end of its row is the next row's element: in the array, but another thread's.
            both = row_bounds(window, code, values, loops, site)
            values, code, extents = values[1:], code[1:], window.factors
            extent_code = tuple(code_of(factor, site.symbols) for factor in window.factors)
        for value, extent, one, limit in zip(values, extents, code, extent_code, strict=True):
            both = (*both, *bounds_of(value, extent, one, limit, loops, site))
        return [bound for bound in both if bound is not None]
