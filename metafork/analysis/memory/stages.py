"""Windows with two buffers in turn: the copy of the next step of a block-level loop runs while this one computes.

Such a loop is ``for (k = first; conditions; k += step)``; its window of step k is copied before the step is computed.
With two buffers the copy of step k + 1 may be under way meanwhile (``metafork.lowering.copies.staged``).  What must be
known:

- no access in the loop writes the array, so that what is copied a step early is what would be copied in time (other
  arrays are other memory);
- the copy depends on the step alone: the window is that of one run through the loop's body, and its corner and extents
  are made of loop variables and of what lasts;
- the next step is known a step early: nothing in the body changes what the loop's conditions and its step read, and
  nothing ends a step or the loop early;
- elements have 4 or 8 bytes, which is what asynchronous copies move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.memory.windows import Window
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.ir.kernel import ASYNCHRONOUS_BYTES
from metafork.ir.program import Break, Continue, Declare, For, If, Program, Stmt, While, walk_statements
from metafork.ir.rewriting import arrays_read


def why_not_ahead(window: Window, program: Program, references: Iterable[Reference], scope: Scope) -> str | None:
    """Return why the copy of a window may not run a step ahead, ``None`` where it is proved that it may.

    ``references`` are all of the path that ``program`` is.
    """
    name = window.array.name
    if not window.level:
        return f"the window of {name} is that of a whole block: no loop copies it"
    if window.array.element.size not in ASYNCHRONOUS_BYTES:
        return f"elements of {name} have {window.array.element.size} bytes, and no asynchronous copy moves as many"
    variable = window.level[-1]
    loops = [loop for loop in _block_loops(program.body) if _counter(loop) == variable]
    if len(loops) != 1:
        return f"it is not one loop alone that copies {name} and declares {variable}"
    (loop,) = loops
    view = counted_loop(loop)
    if view is None or not view.declared or view.others or arrays_read(view.first):
        return f"what the next step of the loop over {variable} is, is not known a step early"
    if any(isinstance(stmt, Break | Continue) for stmt in _at_block_level(loop.body)):
        return f"the loop over {variable} may be left early"
    if window.writes or any(one.writes and one.array == name and _inside(one, variable) for one in references):
        return f"the loop over {variable} writes {name}"
    own = _declared(loop.body)
    around = {one.var for one in window.fixed} - own
    sizes = [*window.extents, *window.factors, *(period for period in window.periods if period is not None)]
    lasting = scope.constants - own
    if any(not low.symbols <= around | lasting for low in window.lows) or any(
        not size.symbols <= lasting for size in sizes
    ):
        return f"the window of {name} depends on what the loop over {variable} computes"
    return None


def _declared(body: tuple[Stmt, ...]) -> set[str]:
    return {stmt.name for stmt in walk_statements(body) if isinstance(stmt, Declare)}


def _counter(loop: For) -> str | None:
    return loop.init.name if isinstance(loop.init, Declare) else None


def _inside(reference: Reference, variable: str) -> bool:
    return any(loop.var == variable for loop in reference.loops)


def _block_loops(body: tuple[Stmt, ...]) -> Iterator[For]:
    return (stmt for stmt in _at_block_level(body) if isinstance(stmt, For))


def _at_block_level(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield the statements that a block runs as a whole, phases without what is in them."""
    for stmt in body:
        yield stmt
        match stmt:
            case If(then=then, otherwise=otherwise):
                yield from _at_block_level((*then, *otherwise))
            case For(body=inner) | While(body=inner):
                yield from _at_block_level(inner)
            case _:
                pass
