"""Block-level loops whose windows are copied a step ahead, into two buffers in turn.

``before --> after``, for a window of step k (``metafork.analysis.memory.stages`` says when)::

    for (k = first; k < last; k += step) {            int buffer = 0;
      tile = array[..k..];                            if (first < last) tile[0] = array[..first..];     // asynchronous
      barrier;                                        for (k = first; k < last; k += step) {
      ... tile ...                            -->       barrier, which awaits copies;
      barrier;                                          if (k + step < last) tile[1 - buffer] = array[..k + step..];
    }                                                   ... tile[buffer] ...
                                                        buffer = 1 - buffer;
                                                      }

One barrier a step is enough.  In step k it comes when each thread has awaited its own copies of step k and is done with
step k - 1: so behind it the buffer of step k is whole, and nobody uses the other one any more.
"""

from __future__ import annotations

from msgspec import Struct

from metafork.ir import program as ir
from metafork.ir.rewriting import map_expression
from metafork.lowering.copies.copy import INT


class StagedLoop(Struct, frozen=True):
    """The head of a loop, lowered; ``buffer`` says which of the two buffers its step uses."""

    init: ir.Declare
    condition: ir.Expr
    step: ir.Assign
    buffer: ir.Var

    def before(self, copies: list[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        """Return the copies of the first step, where there is one."""
        assert self.init.value is not None
        first = _converted(self.init.value, self.init)
        return ir.Declare(self.buffer.name, INT, ir.IntConst(0)), ir.If(self._runs_at(first), tuple(copies))

    def ahead(self, copies: list[ir.Stmt]) -> ir.Stmt:
        """Return the copies of the next step, where there is one."""
        counter = ir.Var(self.init.name, self.init.type)
        following = self.step.value if not self.step.op else ir.binary(self.step.op, counter, self.step.value)
        return ir.If(self._runs_at(_converted(following, self.init)), tuple(copies))

    def around(self, body: list[ir.Stmt]) -> ir.For:
        """Return the loop, whose next step uses the other buffer."""
        return ir.For(self.init, self.condition, self.step, (*body, ir.Assign(self.buffer, "", self.other)))

    @property
    def other(self) -> ir.Expr:
        """The buffer of the next step."""
        return ir.binary("-", ir.IntConst(1), self.buffer)

    def _runs_at(self, value: ir.Expr) -> ir.Expr:
        """Return the loop's condition for a value of its counter."""
        counter = ir.Var(self.init.name, self.init.type)
        return map_expression(self.condition, lambda part: value if part == counter else None)


def _converted(value: ir.Expr, counter: ir.Declare) -> ir.Expr:
    return value if value.type is counter.type else ir.Cast(counter.type, value)
