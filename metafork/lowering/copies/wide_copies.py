"""Which copies into a window move several elements of a row by one access, of 16 or 8 bytes.

Windows of which threads of a block may copy two elements or more are copied so where

- in shared memory, the window, its buffers and its rows begin at multiples of the access and rows stand in order;
- in the array, a row of the window begins and ends at multiples of it, counted from the row of the array that it is in.

Each is a sum of terms, which are multiples because of their coefficients, or because a scalar of the kernel is one.
The kernel asks for the latter where it copies, and that memories begin at multiples of 16 bytes (``ALIGNED``), and rows
of the array have such lengths.  Then no access lies half inside the array either.  Windows whose extents are no
constants are copied so by 16 bytes only, and where they are proved to lie in the array: to keep to its borders costs
more than is won.

Elsewhere elements go one by one, in a loop that is not unrolled: nvcc would make of two copies that a condition chooses
from one sequence of predicated instructions, all of which each warp issues.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.analysis.memory.windows import Window
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir.kernel import ALIGNED, VECTOR_BYTES, VECTORS, Kernel, Space
from metafork.ir.polynomial_code import code_of, conjunction
from metafork.ir.program import Assign, Call, Element, Expr, IntConst, Var, walk_statements
from metafork.lowering.copies.copy import INT, Site, bounds_of, row_bounds
from metafork.unrolling.vectors import divides, multiples_needed


class WideAccess(Struct, frozen=True):
    """So many elements go together where ``condition`` holds, the same in all threads."""

    lanes: int
    condition: Expr


def wide_access(window: Window, name: str, site: Site) -> WideAccess | None:
    """Return how many elements of a window, which is called ``name``, go together; ``None`` for one by one."""
    element = window.array.element
    in_order = window.layout.turn == "none" and window.kept is None and not any(window.periods)
    if not in_order or window.array.whole or element not in VECTORS or window.strides[-1] != 1:
        return None
    if site.exactly is None or not _has_several(window.elements, site.exactly, site):
        return None
    if not window.elements.is_constant and not _stays_inside(window, site):
        return None
    scalars = sorted(name for name in site.rows.host if isinstance(site.symbols.get(name), Var))
    most = VECTOR_BYTES // element.size
    for lanes in (most, most // 2) if window.elements.is_constant else (most,):
        begin = site.begins[name] * Fraction(1, element.size)
        values = (window.extents[-1], Polynomial.constant(window.layout.padding), window.lows[-1], begin)
        names = multiples_needed(values, lanes, scalars) if lanes > 1 else None
        if names is not None:
            condition = _asked(window, lanes, names, site)
            return None if condition is None else WideAccess(lanes, condition)
    return None


def _has_several(elements: Polynomial, threads: Polynomial, site: Site) -> bool:
    """Say whether a thread copies two elements or more, or may do so."""
    if elements.is_constant and threads.is_constant:
        return elements.constant_value() >= 2 * threads.constant_value()
    return not site.prover.certifies(at_most(elements, threads))


def _asked(window: Window, lanes: int, names: Sequence[str], site: Site) -> Expr | None:
    """Return what the kernel has to ask, ``None`` where it cannot."""
    declared, code = site.extents[window.array.name], site.extent_code[window.array.name]
    lengths = [(declared[-1], code[-1])]
    if window.factors:
        lengths = [(window.factors[-1], code_of(window.factors[-1], site.symbols)), *lengths]
    elif len(declared) == 1 and _stays_inside(window, site):
        lengths = []
    asked = [site.symbols[name] for name in names]
    for length, expr in lengths:
        if length is None or not _is_multiple(length, lanes):
            if not expr.type.integer:
                return None
            asked.append(expr)
    return conjunction([Call(ALIGNED, (), INT), *(divides(lanes, one) for one in dict.fromkeys(asked))])


def _stays_inside(window: Window, site: Site) -> bool:
    """Say whether a window is proved to lie in its array."""
    axes = range(len(window.extents))
    loops = [LoopRange(f"element {axis}", window.extents[axis], LoopKind.SERIAL) for axis in axes]
    places = [window.lows[axis] + window.strides[axis] * Polynomial.symbol(loops[axis].var) for axis in axes]
    around, anywhere = [*window.fixed, *loops], IntConst(0)
    if window.factors:
        ends: Sequence[Polynomial | None] = window.factors
        if row_bounds(window, [anywhere] * len(places), places, around, site) != (None, None):
            return False
        places = places[1:]
    else:
        ends = site.extents[window.array.name]
    return all(
        bounds_of(place, end, anywhere, anywhere, around, site) == (None, None)
        for place, end in zip(places, ends, strict=True)
    )


def _is_multiple(value: Polynomial, lanes: int) -> bool:
    """Say whether a polynomial in integers is a multiple of a number because each of its terms is."""
    return all(coefficient.denominator == 1 and coefficient % lanes == 0 for coefficient in value.terms().values())


def copies_text(kernel: Kernel) -> str:
    """Say by how many bytes per access copies into shared memory, array by array; empty where nothing is copied."""
    most: dict[str, int] = {}
    ahead = False
    for stmt in walk_statements(kernel.body):
        match stmt:
            case Assign(target=Element(array=to), op="", value=Element(array=source, type=type_, part=part)):
                if (kernel.memory(to).space, kernel.memory(source).space) == (Space.SHARED, Space.GLOBAL):
                    size = type_.size * (1 if part is None else part.lanes)
                    most[source] = max(size, most.get(source, 0))
                    ahead = ahead or stmt.asynchronous
            case _:
                pass
    if not most:
        return ""
    own = {name: kernel.memory(name).element.size for name in most}
    sizes = [
        f"`{name}` by {size} bytes per access"
        + (f", by {own[name]} where its rows do not begin at multiples" if size > own[name] else "")
        for name, size in most.items()
    ]
    return f"copies into shared memory{', a step ahead' if ahead else ''}: {'; '.join(sizes)}"
