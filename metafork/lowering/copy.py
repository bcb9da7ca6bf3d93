"""The code that moves windows: all threads of a block copy together, neighbours in x touching neighbours in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.bounds import stays_within
from metafork.analysis.memory.tile_layout import place_in_line, place_in_tile
from metafork.analysis.memory.window_store import Digit, WrittenBox
from metafork.analysis.memory.windows import Window
from metafork.analysis.references import LoopKind, LoopRange
from metafork.ir.polynomial_code import LONG, code_of, condition_of, conjunction, may_be_negative
from metafork.ir.program import Assign, Cast, Declare, Element, Expr, FloatConst, For, If, IntConst, Stmt, Var, binary
from metafork.ir.types import ScalarType

UNSIGNED = ScalarType.UNSIGNED_INT
INT = ScalarType.INT


def builtin(name: str) -> Var:
    """Return a built-in variable of the device."""
    return Var(name, UNSIGNED)


@dataclass(frozen=True, slots=True)
class Site:
    """Where copies stand: expressions of the symbols in scope, array extents, threads, and what is known.

    ``extents`` are the declared extents of the arrays as polynomials (``None`` where one is none); ``axes`` is the
    number of dimensions of the block.
    """

    symbols: Mapping[str, Expr]
    extents: Mapping[str, tuple[Polynomial | None, ...]]
    extent_code: Mapping[str, tuple[Expr, ...]]
    axes: int
    prover: Prover


def linear_offset(indices: tuple[Expr, ...], extents: tuple[Expr, ...]) -> Expr:
    """Return the row-major offset of an element in elements; 64-bit where there is more than one dimension."""
    offset = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        wide = as_long(offset)
        offset = binary("+", binary("*", wide, extent), index)
    return offset


def as_long(expr: Expr) -> Expr:
    """Return the expression as ``long long``."""
    return expr if expr.type == LONG else Cast(LONG, expr)


def window_offset(window: Window, offsets: tuple[Expr, ...], symbols: Mapping[str, Expr]) -> Expr:
    """Return the offset in a window, in elements, of the element with these window coordinates."""
    if len(offsets) == 1:
        return place_in_line(
            window.layout, window.array.element, offsets[0], code_of(window.extents[0], symbols), symbols
        )
    offset = offsets[0]
    for axis, (index, extent) in enumerate(zip(offsets[1:], window.extents[1:], strict=True), 1):
        columns = code_of(extent, symbols)
        if axis == len(offsets) - 1:
            return place_in_tile(window.layout, window.array.element, offset, index, columns, symbols)
        offset = binary("+", binary("*", offset, columns), index)
    return offset


def load(window: Window, name: str, site: Site) -> list[Stmt]:
    """Return the loops that fill a window from global memory, staying inside the array."""
    counters = tuple(Var(f"{name}_{axis}", INT) for axis in range(len(window.extents)))
    values, declarations, guards = _global_coordinates(
        window, window.lows, window.strides, window.extents, counters, site
    )
    target = Element(name, (window_offset(window, counters, site.symbols),), window.array.element)
    source = Element(window.array.name, (_global_offset(window, values, site),), window.array.element)
    copy: Stmt = Assign(target, "", source)
    guard = conjunction(guards)
    body = (*declarations, copy if guard is None else If(guard, (copy,)))
    return [_nest(counters, window.extents, body, site)]


def store(window: Window, box: WrittenBox, name: str, site: Site) -> list[Stmt]:
    """Return the loops that copy back what one reference wrote, under its guards."""
    counters = tuple(Var(f"{name}_{axis}", INT) for axis in range(len(box.extents)))
    values, declarations, _ = _global_coordinates(window, box.lows, box.scales, box.extents, counters, site)
    symbols = dict(site.symbols)
    needed = {symbol for constraint in box.guards for symbol in constraint.symbols}
    decoded: list[Stmt] = []
    for counter, digits in zip(counters, box.digits, strict=True):
        for digit in digits:
            if digit.symbol in needed:
                variable = Var(f"{name}_{digit.symbol}", INT)
                decoded.append(Declare(variable.name, INT, _decode(counter, digit, digits[-1], site.symbols)))
                symbols[digit.symbol] = variable
    conditions: list[Expr] = [
        condition_of(guard, symbols, wide=may_be_negative(guard.left) or may_be_negative(guard.right))
        for guard in box.guards
    ]
    shifts = []
    for axis, counter in enumerate(counters):
        shift = (box.lows[axis] - window.lows[axis]).divide_exactly(Polynomial.constant(window.strides[axis]))
        assert shift is not None
        shifts.append(counter if not shift else binary("+", counter, code_of(shift, site.symbols)))
    source = Element(name, (window_offset(window, tuple(shifts), site.symbols),), window.array.element)
    target = Element(window.array.name, (_global_offset(window, values, site),), window.array.element)
    copy: Stmt = Assign(target, "", source)
    guard = conjunction(conditions)
    body = (*decoded, *declarations, copy) if guard is None else (*decoded, If(guard, (*declarations, copy)))
    return [_nest(counters, box.extents, body, site)]


def _decode(counter: Var, digit: Digit, highest: Digit, symbols: Mapping[str, Expr]) -> Expr:
    value: Expr = counter
    if digit.weight != 1:
        value = binary("/", value, code_of(digit.weight, symbols))
    if digit != highest:
        value = binary("%", value, code_of(digit.trips, symbols))
    return value


def _global_coordinates(
    window: Window,
    lows: tuple[Polynomial, ...],
    strides: tuple[int, ...],
    extents: tuple[Polynomial, ...],
    counters: tuple[Var, ...],
    site: Site,
) -> tuple[tuple[Expr, ...], list[Stmt], list[Expr]]:
    """Return the coordinates in the array, their declarations, and the conditions that keep them inside it."""
    values: list[Expr] = []
    declarations: list[Stmt] = []
    guards: list[Expr] = []
    polynomials: list[Polynomial] = []
    loops = [*window.fixed]
    for low, stride, extent, counter in zip(lows, strides, extents, counters, strict=True):
        loops.append(LoopRange(counter.name, extent, LoopKind.SERIAL))
        polynomial = low + stride * Polynomial.symbol(counter.name)
        polynomials.append(polynomial)
        symbols = {**site.symbols, **{other.name: other for other in counters}}
        wide = len(counters) == 1 or may_be_negative(polynomial)
        value = Var(f"{counter.name}_at", LONG if wide else INT)
        declarations.append(Declare(value.name, value.type, code_of(polynomial, symbols, wide=wide)))
        values.append(value)
    declared = site.extents[window.array.name]
    if not window.factors:
        for axis, index in enumerate(values):
            bound = declared[axis]
            guards += _bounds(polynomials[axis], bound, index, site.extent_code[window.array.name][axis], loops, site)
        return tuple(values), declarations, guards
    for factor, column, polynomial in zip(window.factors, values[1:], polynomials[1:], strict=True):
        guards += _bounds(polynomial, factor, column, code_of(factor, site.symbols), loops, site)
    linear = polynomials[0]
    for factor, polynomial in zip(window.factors, polynomials[1:], strict=True):
        linear = linear * factor + polynomial
    offset = _global_offset(window, tuple(values), site)
    guards += _bounds(linear, declared[0], offset, site.extent_code[window.array.name][0], loops, site)
    return tuple(values), declarations, guards


def _bounds(
    value: Polynomial, extent: Polynomial | None, code: Expr, extent_code: Expr, loops: list[LoopRange], site: Site
) -> list[Expr]:
    """Return those of ``0 <= code`` and ``code < extent`` that are not proved."""
    low, high = (False, False) if extent is None else stays_within(value, extent, loops, site.prover, cheaply=True)
    conditions: list[Expr] = []
    if not low:
        conditions.append(binary("<=", IntConst(0), code))
    if not high:
        conditions.append(binary("<", code, extent_code))
    return conditions


def _global_offset(window: Window, values: tuple[Expr, ...], site: Site) -> Expr:
    if not window.factors:
        return linear_offset(values, site.extent_code[window.array.name])
    factors = tuple(code_of(factor, site.symbols) for factor in window.factors)
    return linear_offset(values, (IntConst(1), *factors))


def _nest(counters: tuple[Var, ...], extents: tuple[Polynomial, ...], body: tuple[Stmt, ...], site: Site) -> Stmt:
    """Return loops over a box, spread over the threads: x takes the last dimension, y and z the one before it.

    A box of one dimension is spread over all threads, in their linear order.
    """
    rank = len(counters)
    result: tuple[Stmt, ...] = body
    for axis in reversed(range(rank)):
        if axis == rank - 1:
            start, step = _linear(site.axes if rank == 1 else 1, 0)
        elif axis == rank - 2 and site.axes > 1:
            start, step = _linear(site.axes, 1)
        else:
            start, step = None, None
        counter = counters[axis]
        first = IntConst(0) if start is None else as_int(start)
        condition = binary("<", counter, code_of(extents[axis], site.symbols))
        advance = Assign(counter, "+", IntConst(1) if step is None else as_int(step))
        result = (For(Declare(counter.name, INT, first), condition, advance, result),)
    return result[0]


def zero(type_: ScalarType) -> Expr:
    """Return the constant zero for a variable of that type."""
    if not type_.floating:
        return IntConst(0)
    return FloatConst("0.0f" if type_ is ScalarType.FLOAT else "0.0", type_)


def as_int(expr: Expr) -> Expr:
    """Return the expression as ``int``."""
    return Cast(INT, expr)


def _linear(axes: int, lowest: int) -> tuple[Expr, Expr]:
    """Return the linear index of a thread over dimensions ``lowest`` to ``axes - 1``, and how many there are."""
    letters = "xyz"[lowest:axes]
    index: Expr = builtin(f"threadIdx.{letters[-1]}")
    count: Expr = builtin(f"blockDim.{letters[0]}")
    for letter in reversed(letters[:-1]):
        index = binary("+", binary("*", index, builtin(f"blockDim.{letter}")), builtin(f"threadIdx.{letter}"))
    for letter in letters[1:]:
        count = binary("*", count, builtin(f"blockDim.{letter}"))
    return index, count
