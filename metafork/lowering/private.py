"""The code of a private window: elements of a global array that a thread keeps in registers while the block runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Polynomial
from metafork.analysis.memory.private_windows import THREAD_SYMBOLS, PrivateWindow, digits_of
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir.kernel import builtin
from metafork.ir.polynomial_code import code_of, conjunction, may_be_negative
from metafork.ir.program import Assign, Declare, Element, Expr, For, If, IntConst, Stmt, Var, binary
from metafork.lowering.copies.copy import (
    INT,
    Site,
    array_extents,
    as_int,
    bounds_of,
    offset_inside,
    row_bounds,
    zero,
)


class PrivateCode(Struct, frozen=True):
    """A private window under its name in the kernel; ``flag`` names the variable that says "written", if one is due.

    Where a thread runs several iterations of a thread loop, ``row`` is the scalar that numbers them from 0.
    """

    window: PrivateWindow
    name: str
    row: str

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
        if self.window.registers == 1:
            result.append(Declare(self.name, element, zero(element)))
        if self.window.loaded:
            result += self._move(site, into_registers=True)
        return result

    def epilogue(self, site: Site) -> list[Stmt]:
        """Store the registers, if they were written."""
        if self.window.of_block:
            return []
        move = self._move(site, into_registers=False)
        return move if self.flag is None else [If(Var(self.flag, INT), tuple(move))]

    def mark(self) -> list[Stmt]:
        """Return what follows a write."""
        return [] if self.flag is None else [Assign(Var(self.flag, INT), "", IntConst(1))]

    def access(self, reference: Reference, symbols: Mapping[str, Expr]) -> Element | Var:
        """Return the register that a reference means."""
        element = self.window.array.element
        if self.window.registers == 1:
            return Var(self.name, element)
        return self._register([symbols[loop.var] for loop in digits_of(reference, self.window.factors)])

    def _register(self, digits: Sequence[Expr]) -> Element:
        """Return the register of an element, given its digits, lowest first."""
        index: Expr = IntConst(0)
        weight = 1
        rows = () if self.window.rows is None else ((Var(self.row, INT), self.window.rows[1]),)
        trips = (number for number, _ in self.window.digits)
        for digit, number in (*zip(digits, trips, strict=True), *rows):
            term = binary("*", digit, IntConst(weight)) if weight != 1 else digit
            index = term if index == IntConst(0) else binary("+", index, term)
            weight *= number
        return Element(self.name, (index,), self.window.array.element)

    def _move(self, site: Site, *, into_registers: bool) -> list[Stmt]:
        window = self.window
        digits = tuple(Var(f"{self.name}_{number}", INT) for number in range(len(window.digits)))
        symbols: dict[str, Expr] = {**site.symbols, **{digit.name: digit for digit in digits}}
        threads = self._threads()
        symbols |= {name: place for name, (place, _) in threads.items()}
        places = [
            ZERO if extent == ONE and site.has_one_thread(axis) else Polynomial.symbol(name)
            for axis, (name, (_, extent)) in enumerate(threads.items())
        ]
        values: list[Polynomial] = []
        for axis, base in enumerate(window.bases):
            value = base.substitute(dict(zip(THREAD_SYMBOLS, places, strict=False)))
            for digit, (_, steps) in zip(digits, window.digits, strict=True):
                value = value + Polynomial.symbol(digit.name) * steps[axis]
            values.append(value)
        code = tuple(code_of(value, symbols, wide=len(values) == 1 or may_be_negative(value)) for value in values)
        extents = array_extents(window.array.name, window.factors, site)
        own = Var(self.name, window.array.element) if window.registers == 1 else self._register(digits)
        outside = Element(window.array.name, (offset_inside(code, extents),), window.array.element)
        move: Stmt = Assign(own, "", outside) if into_registers else Assign(outside, "", own)
        if into_registers:
            guard = conjunction(self._guards(values, code, site))
            move = move if guard is None else If(guard, (move,))
        for digit, (trips, _) in zip(reversed(digits), reversed(window.digits), strict=True):
            move = _counted(digit, trips, (move,))
        return self._of_all_rows(move, site)

    def _threads(self) -> dict[str, tuple[Expr, Polynomial]]:
        """Return the names of the thread variables, innermost first, with what each is and its extent."""
        found: dict[str, tuple[Expr, Polynomial]] = {}
        for number, (name, extent) in enumerate(zip(THREAD_SYMBOLS, self.window.threads, strict=False)):
            if self.window.rows is not None and number == self.window.rows[0]:
                found[f"{self.row}_thread"] = Var(f"{self.row}_thread", INT), extent
            else:
                found[name] = as_int(builtin(name)), extent
        return found

    def _of_all_rows(self, move: Stmt, site: Site) -> list[Stmt]:
        """Return a move for all iterations of the thread loops that a thread has: it may have none, or not all rows."""
        rows = self.window.rows
        tests: list[Expr] = []
        for number, (place, extent) in enumerate(self._threads().values()):
            if site.shape[number] * (rows[1] if rows is not None and number == rows[0] else 1) != extent:
                tests.append(binary("<", place, code_of(extent, site.symbols)))
        body: tuple[Stmt, ...] = (move,) if (test := conjunction(tests)) is None else (If(test, (move,)),)
        if rows is None:
            return list(body)
        number, count = rows
        row = Var(self.row, INT)
        first = binary("*", as_int(builtin(THREAD_SYMBOLS[number])), IntConst(count))
        return [_counted(row, count, (Declare(f"{self.row}_thread", INT, binary("+", first, row)), *body))]

    def _guards(self, values: Sequence[Polynomial], code: tuple[Expr, ...], site: Site) -> list[Expr]:
        """Return what keeps a load inside the array where that is not proved: the grid may be larger than it."""
        window = self.window
        array = window.array.name
        loops = [
            *(loop for loop in window.references[0].loops if loop.kind is LoopKind.GRID),
            *(LoopRange(name, extent, LoopKind.THREAD) for name, (_, extent) in self._threads().items()),
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


def _counted(counter: Var, trips: int, body: tuple[Stmt, ...]) -> For:
    """Return ``for (int counter = 0; counter < trips; counter++)`` around a body."""
    return For(
        Declare(counter.name, INT, IntConst(0)),
        binary("<", counter, IntConst(trips)),
        Assign(counter, "+", IntConst(1)),
        body,
    )
