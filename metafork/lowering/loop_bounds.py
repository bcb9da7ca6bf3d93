"""Guards that cut a thread's loop off become a bound of the loop.

``before --> after``::

    for (int k = 0; k < B; k++) {              long long left = (long long)n - t * B;
      int column = t * B + k;                  int end = left < B ? (left < 0 ? 0 : (int)left) : B;
      if (column < n)                  -->     for (int k = 0; k < end; k++) {
        y += a[column];                          int column = t * B + k;
    }                                            y += a[column];
                                               }

Iterations without a test are unrolled by compilers, and their loads stand side by side.

Legality.  The guard is what an iteration asks first, and the same for all threads.  Its left side grows by one from
iteration to iteration, in ``int``, so that it fails for all that follow one that fails.  Its parts are evaluated by the
first iteration; where there is none, the bound is not above the limit, whatever they are.
"""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from metafork.analysis.counted_loops import conjuncts
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.marks import counter_of
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, conjunction
from metafork.ir.rewriting import assigned_variables, substitute, variables
from metafork.unrolling.ahead import unrolls
from metafork.unrolling.coarsening import is_plain

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]


def bounded(loop: ir.For, varying: Set[str], taken: set[str]) -> Body:
    """Return a loop of a thread without the guards that cut it off, behind its bounds.

    ``varying`` are the names of what may be another value in each thread.  ``taken`` grows by new names.
    """
    counter = counter_of(loop)
    match loop.body:
        case (*scalars, ir.If(condition=condition, then=then, otherwise=()) as guard) if counter and not unrolls(loop):
            pass
        case _:
            return (loop,)
    changing, own = assigned_variables(loop.body), set[str]()
    known: dict[str, ir.Expr] = {}
    for one in scalars:
        if not isinstance(one, ir.Declare) or one.value is None or not is_plain(one.value):
            return (loop,)
        own.add(one.name)
        if one.name not in changing and one.type is one.value.type is INT:
            known[one.name] = substitute(one.value, known)
    cuts: list[ir.Expr] = []
    others: list[ir.Expr] = []
    for part in conjuncts(condition):
        bound = _bound(part, counter, known, varying | changing | own) if not others else None
        if bound is None:
            others.append(part)
        else:
            cuts.append(bound)
    if not cuts:
        return (loop,)
    assert isinstance(loop.condition, ir.Binary)
    before: list[ir.Stmt] = []
    limit = loop.condition.right
    for cut in cuts:
        left, end = ir.Var(fresh(f"{counter}_left", taken), LONG), ir.Var(fresh(f"{counter}_end", taken), INT)
        positive = ir.Conditional(ir.binary("<", left, ir.IntConst(0)), ir.IntConst(0), ir.Cast(INT, left), INT)
        before.append(ir.Declare(left.name, LONG, cut))
        before.append(ir.Declare(end.name, INT, ir.Conditional(ir.binary("<", left, limit), positive, limit, INT)))
        limit = end
    test = conjunction(others)
    inner = then if test is None else (replace(guard, condition=test),)
    condition = ir.binary("<", loop.condition.left, limit)
    return (*before, replace(loop, condition=condition, body=(*scalars, *inner)))


def _bound(part: ir.Expr, counter: str, known: dict[str, ir.Expr], varying: Set[str]) -> ir.Expr | None:
    """Return below what the counter stays where a guard holds, which is the same for all threads; ``None`` else."""
    match part:
        case ir.Binary(op="<" | "<=" as op, left=left, right=right) if left.type is INT and right.type is INT:
            pass
        case _:
            return None
    start = _behind(left, counter, known)
    if start is None or not is_plain(right):
        return None
    names = variables(right) | (set() if start == ir.IntConst(0) else variables(start))
    if names & (varying | {counter}):
        return None
    past = ir.Cast(LONG, right) if op == "<" else ir.binary("+", ir.Cast(LONG, right), ir.IntConst(1, LONG))
    return ir.binary("-", past, start)


def _behind(expr: ir.Expr, counter: str, known: dict[str, ir.Expr]) -> ir.Expr | None:
    """Return by how much an ``int`` is above the counter, where that is the same in all iterations."""
    match expr:
        case ir.Var(name=name) if name == counter:
            return ir.IntConst(0)
        case ir.Var(name=name) if name in known:
            return _behind(known[name], counter, known)
        case ir.Binary(op="+", left=left, right=right, type=ScalarType.INT):
            for one, other in ((left, right), (right, left)):
                rest = _behind(one, counter, known)
                if rest is not None and other.type is INT:
                    plain = substitute(other, known)
                    if is_plain(plain):
                        return plain if rest == ir.IntConst(0) else ir.binary("+", rest, plain)
    return None
