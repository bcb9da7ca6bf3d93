"""Four iterations of a thread's loop at a time where each reads the next element of shared memory, by one access.

``before --> after``::

    for (int z = 0; z < K; z++)               if (K % 4 == 0)
      s += t[v * K + z] * w[z * B + u];         for (int z = 0; z < K; z += 4) {
                                                  float part = t[v * K + z];  ...  // parts 0 to 3 of one access
                                       -->        s += part * w[z * B + u];
                                                  ...
                                                  s += part_4 * w[(z + 3) * B + u];
                                                }
                                              else
                                                for (int z = 0; ...                   as before

An access of 16 bytes takes as many passes of shared memory as its four elements one by one at most, and one instruction
instead of four.

Legality.  Iterations keep their order and what each does; ``unrolling.vectors`` says which elements may go
together, and which of a kernel's scalars have to be multiples of 4 for that: this is asked where the loop begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.marks import counter_of
from metafork.ir.polynomial_code import conjunction
from metafork.unrolling.ahead import MOST_STATEMENTS, TOGETHER, LoopWalk, Scalars, four_together, unrolls
from metafork.unrolling.shared_loads import changing_scalars
from metafork.unrolling.short_loops import without_short_loops
from metafork.unrolling.vectors import divides, wide_in, with_vectors

INT = ScalarType.INT
MOST_ASSIGNED = 256
"""Most assignments in all copies of a loop's body that the compiler is asked for."""
Body = tuple[ir.Stmt, ...]


def with_wide_reads(body: Body, begins: Mapping[str, Polynomial], divisible: Sequence[str], taken: set[str]) -> Body:
    """Return code of a thread in which loops over elements of shared memory read several by one access.

    ``begins`` are the bytes at which shared memories begin; ``divisible`` are the kernel's scalars that may be asked to
    be multiples.  ``taken`` grows by the names of scalars.
    """
    hidden = {stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)}
    asked = [name for name in divisible if name not in hidden]
    return _Wide(changing_scalars(body), taken, begins, asked).body(body, {})


class _Wide(LoopWalk, frozen=True):
    begins: Mapping[str, Polynomial]
    divisible: Sequence[str]

    def instead(self, loop: ir.For, known: Mapping[str, Polynomial]) -> Body | None:
        """Return a loop with four iterations in one where that is possible, ``None`` where nothing is won by it."""
        variable = counter_of(loop)
        if variable is None or loop.copies or unrolls(loop):
            return None
        if not all(isinstance(one, ir.Declare | ir.Assign | ir.If | ir.For) for one in ir.walk_statements(loop.body)):
            return None
        straight = replace(loop, body=without_short_loops(loop.body, self.taken))
        inside = ir.walk_statements(straight.body)
        assigned = sum(not isinstance(one, ir.Declare) for one in inside)  # what is computed alike is computed once
        if assigned * TOGETHER > MOST_STATEMENTS or any(isinstance(one, ir.For) for one in inside):
            return None
        found = Scalars(self.changing).read_next(straight.body, variable, known, self.begins.keys())
        memories = {name for name, _ in found}
        if not memories:
            return None
        four, *rest = four_together(straight, self.taken)
        vectors = with_vectors((four,), known, self.divisible, self.begins, 1, self.taken)
        if not memories & wide_in(vectors.body):
            return None
        (wide,) = vectors.body
        assert isinstance(wide, ir.For)
        assert isinstance(loop.condition, ir.Binary)
        limit = loop.condition.right
        if not isinstance(limit, ir.IntConst):
            wide = replace(wide, copies=_copies(wide.body))
        if isinstance(limit, ir.Var) and vectors.divided.get(limit.name) == TOGETHER:
            wide, rest = replace(wide, condition=loop.condition), []
        test = conjunction([divides(number, ir.Var(name, INT)) for name, number in vectors.divided.items()])
        return (wide, *rest) if test is None else (ir.If(test, (wide, *rest), (loop,), widened=True),)


def _copies(body: Body) -> int:
    """Return how many copies of a loop's body are asked for: what is the same in several is computed once."""
    assigned = sum(isinstance(stmt, ir.Assign) for stmt in ir.walk_statements(body))
    return next((count for count in (4, 2) if count * assigned <= MOST_ASSIGNED), 0)
