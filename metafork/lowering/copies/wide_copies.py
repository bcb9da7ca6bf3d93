"""Which copies into a window move several elements of a row by one access, of 16 or 8 bytes.

Windows of constant extents (those of kernels for values of parameters, mostly) of which each thread of a block copies
two elements or more are copied so where it is proved that

- in shared memory, the window, its buffers and its rows begin at multiples of the access and rows stand in order;
- in the array, a row of the window begins and ends at multiples of it, counted from the row of the array that it is in.

What is left is asked by the kernel where it copies: that memories begin at multiples of 16 bytes (``ALIGNED``), and
that rows of the array have such lengths.  Then no access lies half inside the array either.  Elsewhere elements go one
by one, in a loop that is not unrolled: nvcc would make of two copies that a condition chooses from one sequence of
predicated instructions, all of which each warp issues.
"""

from __future__ import annotations

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.windows import Window
from metafork.ir.kernel import ALIGNED, VECTOR_BYTES, VECTORS, Kernel, Space
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.polynomial_code import code_of, conjunction
from metafork.ir.program import Assign, Call, Element, Expr, IntConst, binary, walk_statements
from metafork.lazy_dataclass import dataclass
from metafork.lowering.copies.copy import INT, Site, bounds_of, product_of


@dataclass(frozen=True, slots=True)
class WideAccess:
    """So many elements go together where ``condition`` holds, the same in all threads."""

    lanes: int
    condition: Expr


def wide_access(window: Window, name: str, site: Site) -> WideAccess | None:
    """Return how many elements of a window, which is called ``name``, go together; ``None`` for one by one."""
    element = window.array.element
    in_order = window.layout == ROW_BY_ROW and window.kept is None and not any(window.periods)
    if not in_order or window.array.whole or element not in VECTORS or window.strides[-1] != 1:
        return None
    threads = site.exactly
    if threads is None or not window.elements.is_constant or not threads.is_constant:
        return None
    if window.elements.constant_value() < 2 * threads.constant_value():
        return None
    for lanes in (VECTOR_BYTES // element.size, VECTOR_BYTES // element.size // 2):
        rows = _is_multiple(window.extents[-1], lanes) and _is_multiple(window.lows[-1], lanes)
        if lanes > 1 and rows and _is_multiple(site.begins[name], lanes * element.size):
            condition = _asked(window, lanes, site)
            return None if condition is None else WideAccess(lanes, condition)
    return None


def _asked(window: Window, lanes: int, site: Site) -> Expr | None:
    """Return what the kernel has to ask, ``None`` where it cannot."""
    declared, code = site.extents[window.array.name], site.extent_code[window.array.name]
    lengths = [(declared[-1], code[-1])]
    if window.factors:
        lengths = [(window.factors[-1], code_of(window.factors[-1], site.symbols)), *lengths]
    elif len(declared) == 1 and _stays_inside(window, site):
        lengths = []
    tests: list[Expr] = [Call(ALIGNED, (), INT)]
    for length, expr in lengths:
        if length is None or not _is_multiple(length, lanes):
            if not expr.type.integer:
                return None
            tests.append(binary("==", binary("%", expr, IntConst(lanes)), IntConst(0)))
    return conjunction(tests)


def _stays_inside(window: Window, site: Site) -> bool:
    """Say whether a window of one dimension is proved to lie in its array."""
    index = LoopRange("element", product_of(window.extents), LoopKind.SERIAL)
    place = window.lows[0] + Polynomial.symbol(index.var)
    declared, code = site.extents[window.array.name], site.extent_code[window.array.name]
    bounds = bounds_of(place, declared[0], IntConst(0), code[0], [*window.fixed, index], site)
    return bounds == (None, None)


def _is_multiple(value: Polynomial, lanes: int) -> bool:
    """Say whether a polynomial in integers is a multiple of a number because each of its terms is."""
    return all(coefficient.denominator == 1 and coefficient % lanes == 0 for coefficient in value.terms().values())


def copies_text(kernel: Kernel) -> str:
    """Say by how many bytes an access copies into shared memory, array by array; empty where nothing is copied."""
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
        f"`{name}` by {size} bytes an access"
        + (f", by {own[name]} where its rows do not begin at multiples" if size > own[name] else "")
        for name, size in most.items()
    ]
    return f"copies into shared memory{', a step ahead' if ahead else ''}: {'; '.join(sizes)}"
