"""Marks of loops: how many iterations a thread runs side by side, and which loops and bodies can have them.

``MetaFor.results`` are those of a thread loop, ``For.copies`` those of a loop of a thread.  Directives make them
(``metafork.transform.coarsen``, ``metafork.transform.unroll_and_jam``), and lowering carries them out; what a program
computes is the same without.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import arrays_read, assigned_variables, names_in, variables
from metafork.ir.visitor import Body, Rewriter, changed, same

MOST_COLUMNS = 4
"""An access of 16 bytes has so many."""


def with_results(program: ir.Program, counts: Mapping[int, int]) -> ir.Program:
    """Return a program whose threads run so many neighbouring iterations of thread loops, by their numbers."""
    return replace(program, body=_Marked(counts).body(program.body))


def unmarked(body: Body) -> Body:
    """Return code without marks."""
    return _Marked(dict.fromkeys(range(3), 1), copies=0).body(body)


class _Marked(Rewriter):
    def __init__(self, counts: Mapping[int, int], copies: int | None = None) -> None:
        self._counts, self._copies = counts, copies

    def phase(self, node: ir.Phase) -> ir.Phase:
        heads = (changed(loop, results=self._counts.get(axis, loop.results)) for axis, loop in enumerate(node.threads))
        return changed(node, threads=same(heads, node.threads), body=self.body(node.body))

    def loop(self, node: ir.For) -> ir.For:
        return changed(node, copies=node.copies if self._copies is None else self._copies, body=self.body(node.body))


def phases(program: ir.Program) -> tuple[ir.Phase, ...]:
    """Return the phases of a program in textual order."""
    return tuple(stmt for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.Phase))


def results_of(program: ir.Program) -> tuple[int, ...]:
    """Return how many iterations of each thread loop one thread runs, outermost first; all phases have the same."""
    return next((tuple(loop.results for loop in phase.threads) for phase in phases(program)), ())


def several_results(program: ir.Program) -> dict[int, int]:
    """Return how many iterations of thread loops one thread runs, by number, of those of which it runs several."""
    return {axis: count for axis, count in enumerate(results_of(program)) if count > 1}


def rows_of(program: ir.Program) -> tuple[int, int] | None:
    """Return the outermost loop of which a thread runs several iterations, and how many; not the innermost of all."""
    last = len(program.grid) - 1
    return next(((axis, count) for axis, count in several_results(program).items() if axis < last), None)


def factors_of(program: ir.Program) -> frozenset[int]:
    """Return how many iterations run side by side, of any loop."""
    return frozenset({*results_of(program), *jammed_loops(program).values()} - {1})


def jammed_loops(program: ir.Program) -> dict[str, int]:
    """Return how many iterations of loops of a thread run side by side, by their variables."""
    return {
        loop.init.name: loop.copies
        for loop in ir.walk_statements(program.body)
        if isinstance(loop, ir.For) and isinstance(loop.init, ir.Declare) and loop.copies
    }


def is_coarsenable(program: ir.Program, loop: int, count: int) -> bool:
    """Say whether a thread may run so many iterations of a thread loop, counted from the outermost.

    Those that are count ``int``; of the innermost one there are 4 at most.
    """
    return all(
        0 <= loop < len(phase.threads)
        and _counts_int(phase.threads[loop])
        and (loop < len(phase.threads) - 1 or count <= MOST_COLUMNS)
        for phase in phases(program)
    )


def _counts_int(loop: ir.MetaFor) -> bool:
    return loop.type is ScalarType.INT and loop.extent.type is ScalarType.INT


def can_run_together(body: Body, own: Set[str]) -> bool:
    """Say whether copies of a body can stand side by side: it is straight but for counted loops and conditions.

    ``own`` are arrays of a thread, which it does not touch.
    """
    if names_in(body) & own:
        return False
    for stmt in ir.walk_statements(body):
        match stmt:
            case ir.Declare() | ir.Assign() | ir.If():
                pass
            case ir.For(init=ir.Declare(name=name), condition=condition, step=step, body=inner):
                if condition is None or step is None or name in assigned_variables(inner):
                    return False
            case _:
                return False
    return True


def counter_of(loop: ir.For) -> str | None:
    """Return the variable of ``for (int w = 0; w < limit; w++)`` with a limit that the body leaves as it is."""
    match loop:
        case ir.For(
            init=ir.Declare(name=name, type=ScalarType.INT, value=ir.IntConst(value=0)),
            condition=ir.Binary(op="<", left=ir.Var(name=tested), right=limit),
            step=ir.Assign(target=ir.Var(name=stepped), op="+", value=ir.IntConst(value=1)),
        ) if name == tested == stepped and limit.type is ScalarType.INT and not arrays_read(limit):
            changed = assigned_variables(loop.body) | {
                s.name for s in ir.walk_statements(loop.body) if isinstance(s, ir.Declare)
            }
            return None if name in changed or variables(limit) & {name, *changed} else name
    return None
