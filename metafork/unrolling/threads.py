"""What a thread runs: the phases of a lowered path become its code, and marks are carried out.

``before --> after``, for ``coarsen(v, 4)``::

    phase (v < B, 4 at a time) (u < C) {            int u = threadIdx.x;
      s[v * C + u] = a[...];                  -->   int first = threadIdx.y * 4;
    }                                               if (first + 4 <= B) {
                                                      s[first * C + u] = a[...];  ...  // four rows side by side
                                                    } else
                                                      for (int v = first; v < B && v < first + 4; v++) ...

Memory, barriers and indices are as lowering has left them.  ``unrolling`` puts iterations side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.counted_loops import doubled, halved
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import builtin
from metafork.ir.names import fresh
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.unrolling.aligned_walks import with_aligned_walks
from metafork.unrolling.block_strides import BlockStrides
from metafork.unrolling.coarsening import coarsened
from metafork.unrolling.columns import Around, Several, in_columns
from metafork.unrolling.jam import jammed
from metafork.unrolling.shared_vectors import with_wide_reads
from metafork.unrolling.vectors import THREAD
from metafork.unrolling.warp_scans import with_warp_scan
from metafork.unrolling.warp_steps import Block, with_warp_steps

INT = ScalarType.INT


@dataclass
class ThreadCode(Rewriter):
    """Rewrites a lowered path of ``program``, with phases, to the code of a thread; use once.

    ``one_thread`` says of a dimension, x first, that a block has but one thread in it, ``begins`` where shared memories
    begin, in bytes, ``uneven`` of a thread loop and its number that it may not fill the block.  ``row`` is the scalar
    that numbers the rows of a thread in what it keeps in registers, ``own`` are the arrays that threads declare, and
    ``stepping`` the blocks of loops that halve or double their variable, by it.  ``positive`` says whether a value is
    proved not to be negative.  ``taken`` are the names that are in use.
    """

    program: ir.Program
    one_thread: Callable[[int], bool]
    begins: Mapping[str, Polynomial]
    uneven: Callable[[ir.MetaFor, int], bool]
    row: str | None
    own: Set[str]
    stepping: Mapping[str, Block]
    positive: Callable[[ir.Expr], bool]
    taken: set[str]
    _apart: bool = False

    def phase(self, node: ir.Phase) -> Body:
        """Return the code of a thread in a phase."""
        body = _Jammed(self.taken).body(node.body)
        if self.program.striding is not None:
            return self._strided(node, body)
        strides = BlockStrides(node.threads, self.positive, bool(self.stepping), self.taken)
        return strides.body(self._together(node, body))

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        """Return a loop of the block; it stays within warps as far as it can if it is a tree or a scan."""
        variable = node.init.name if isinstance(node.init, ir.Declare) else ""
        block = self.stepping.get(variable) if halved(node) or doubled(node) else None
        apart, self._apart = self._apart, block is not None
        new = changed(node, body=self.body(node.body))
        self._apart = apart
        if block is None:
            return new
        return with_warp_steps(new, block, self.taken) if halved(node) else with_warp_scan(new, block, self.taken)

    def _strided(self, phase: ir.Phase, body: Body) -> Body:
        """Return a phase that fewer threads walk: each takes every ``blockDim.x``-th iteration of the thread loops."""
        index = ir.Var(fresh("thread", self.taken), INT)
        declarations: list[ir.Stmt] = []
        total: ir.Expr | None = None
        for loop in reversed(phase.threads):
            value: ir.Expr = index if total is None else ir.binary("/", index, total)
            if loop is not phase.threads[0]:
                value = ir.binary("%", value, loop.extent)
            declarations.insert(0, ir.Declare(loop.var, loop.type, ir.Cast(loop.type, value)))
            total = loop.extent if total is None else ir.binary("*", loop.extent, total)
        assert total is not None
        first = ir.Declare(index.name, INT, ir.Cast(INT, builtin("threadIdx.x")))
        step = ir.Assign(index, "+", ir.Cast(INT, builtin("blockDim.x")))
        return (ir.For(first, ir.binary("<", index, ir.Cast(INT, total)), step, (*declarations, *body)),)

    def _together(self, phase: ir.Phase, body: Body) -> Body:
        """Return a phase that the threads of its loops run, some iterations together where the loops are marked."""
        several: list[Several] = []
        columns: Several | None = None
        declarations: list[ir.Stmt] = []
        guards: list[ir.Expr] = []
        for number, loop in enumerate(phase.threads):
            axis = len(phase.threads) - 1 - number
            thread = ir.IntConst(0) if self.one_thread(axis) else builtin(f"threadIdx.{'xyz'[axis]}")
            first: ir.Expr = ir.Var(loop.var, loop.type)
            if loop.results > 1:
                here = Several(loop, thread, loop.results)
                first = here.first
                if axis == 0:
                    columns = here
                else:
                    several.append(here)
            else:
                place = thread if thread.type is loop.type else ir.Cast(loop.type, thread)
                declarations.append(ir.Declare(loop.var, loop.type, place))
            if self.uneven(loop, number):
                guards.append(ir.binary("<", first, loop.extent))
        if columns is not None:
            arrays = {array.name for array in self.program.arrays}
            around = Around(self.own, arrays, self.begins, self._integers(), self.taken)
            body = in_columns(columns, several, body, around, apart=self._apart)
        else:
            for one in reversed(several):
                body = coarsened(one.loop, one.thread, one.count, body, self.own, self.taken, self.row)
        if self.program.mapping.wide:
            known = {
                loop.var: Polynomial.symbol(f"{THREAD} {loop.var}" if loop is phase.threads[-1] else loop.var)
                for loop in phase.threads
            }
            body = with_aligned_walks(body, known, {array.name for array in self.program.arrays}, self.taken)
        if self.begins and self.program.mapping.wide:
            wide = with_wide_reads((*declarations, *body), self.begins, self._integers(), self.taken)
            body = wide[len(declarations) :]
        if not guards:
            return (*declarations, *body)
        test = guards[0]
        for guard in guards[1:]:
            test = ir.binary("&&", test, guard)
        return (*declarations, ir.If(test, body))

    def _integers(self) -> Sequence[str]:
        """Return the scalars that a kernel is given as ``int``."""
        names = [one.name for one in self.program.parameters if one.type is INT]
        return [*names, *(one.name for one in self.program.derived if one.type is INT)]


class _Jammed(Rewriter):
    """Puts marked iterations of a thread's loops side by side, from the innermost loops on."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        new = changed(node, body=self.body(node.body))
        return jammed(changed(new, copies=0), new.copies, self._taken) if new.copies > ir.ROLLED else new
