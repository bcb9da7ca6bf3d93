"""Four iterations of a thread's loop at a time where each reads the thread's next element, from a multiple of four on.

``before --> after``, for rows of a sparse matrix::

                                                int from = first[i], past = first[i + 1];
    for (int k = first[i];                      int even = from + 3 < past ? from + (-from & 3) : past;
         k < first[i + 1]; k++)                 int tail = past - (past - even & 3);
      sum += value[k] * x[column[k]];   -->     for (int k = from; k < even; k++)
                                                  sum += value[k] * x[column[k]];
                                                for (int k = even; k < tail; k += 4) {
                                                  float part = value[k];  ...  // parts 0 to 3 of one access
                                                  int part_5 = column[k];  ...
                                                  sum += part * x[part_5];  ...
                                                }
                                                for (int k = tail; k < past; k++)
                                                  sum += value[k] * x[column[k]];

Threads that are neighbours in x read rows that lie anywhere.  One by one, each of the eight accesses to a sector asks
for it anew; four at a time, two do.

Legality.  Iterations keep their order and what each does; the body leaves what the loop's ends read as it is.  The
first element of four lies at a multiple of four of its array, since the loop before ends there: no row has to begin at
one.  Where arrays do not begin at multiples of 16 bytes, or a row is short, the first loop runs all iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import ALIGNED
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG
from metafork.ir.rewriting import arrays_read, assigned_variables, inlined, map_expression, substitute, variables
from metafork.unrolling.ahead import MOST_STATEMENTS, TOGETHER, LoopWalk, Scalars, four_iterations, unrolls
from metafork.unrolling.shared_loads import changing_scalars, exact_polynomial, read_always
from metafork.unrolling.vectors import THREAD, is_alike, stored_in, values_of, varies, wide_in, with_vectors

INT, UNSIGNED = ScalarType.INT, ScalarType.UNSIGNED_INT
ENDS = ("from", "past", "even", "tail")
"""What is declared of a loop, by the names behind its counter's."""
Body = tuple[ir.Stmt, ...]


def with_aligned_walks(body: Body, known: Mapping[str, Polynomial], arrays: Set[str], taken: set[str]) -> Body:
    """Return code of a thread whose innermost loops read four of its own elements of global memory by one access.

    ``known`` are scalars around it as polynomials, with ``THREAD`` in those that differ between neighbours in x;
    ``arrays`` are those in global memory.  ``taken`` grows by the names of scalars.
    """
    return _Walks(changing_scalars(body), taken, arrays).body(body, known)


class _Loop(Struct, frozen=True):
    """``for (int counter = first; counter < past; counter++)``, whose body leaves what ``past`` reads as it is."""

    stmt: ir.For
    counter: str
    first: ir.Expr
    past: ir.Expr


class _Walks(LoopWalk, frozen=True):
    arrays: Set[str]

    def instead(self, loop: ir.For, known: Mapping[str, Polynomial]) -> Body | None:
        """Return the three loops in place of one, ``None`` where its iterations read no next element of the thread."""
        walk = _counted(loop)
        if walk is None or loop.copies or unrolls(loop):
            return None
        if not all(isinstance(one, ir.Declare | ir.Assign | ir.If) for one in ir.walk_statements(loop.body)):
            return None
        if len(list(ir.walk_statements(loop.body))) * TOGETHER > MOST_STATEMENTS:
            return None
        body = _indices_first(loop.body, self.taken)
        walked = self._walked(walk, body, known)
        if walked is None:
            return None
        at_counter, rest = walked
        first, past, even, tail = [ir.Var(fresh(f"{walk.counter}_{name}", self.taken), INT) for name in ENDS]
        index = substitute(at_counter, {walk.counter: first})
        counter = ir.Var(walk.counter, INT)
        four = four_iterations(body, counter, self.taken)
        step = ir.Assign(counter, "+", ir.IntConst(TOGETHER))
        whole = ir.For(ir.Declare(counter.name, INT, even), ir.binary("<", counter, tail), step, four, loop.span)
        begins = dict.fromkeys(self.arrays, Polynomial())
        at = Polynomial.symbol(f"{THREAD} {even.name}") * TOGETHER - rest
        vectors = with_vectors((whole,), {**known, even.name: at}, (), begins, 1, self.taken)
        if not wide_in(vectors.body) & self.arrays:
            return None
        three = ir.IntConst(TOGETHER - 1)
        to_even = ir.binary("&", ir.Unary("-", index, index.type), three)
        enough = ir.binary("<", ir.binary("+", ir.Cast(LONG, first), three), past)
        aligned = ir.binary("&&", ir.Call(ALIGNED, (), INT), enough)
        begin = ir.binary("+", first, to_even if to_even.type is INT else ir.Cast(INT, to_even))
        behind = ir.binary("-", ir.Cast(UNSIGNED, past), ir.Cast(UNSIGNED, even))
        left = ir.binary("&", behind, ir.Cast(UNSIGNED, three))
        return (
            ir.Declare(first.name, INT, walk.first),
            ir.Declare(past.name, INT, walk.past),
            ir.Declare(even.name, INT, ir.Conditional(aligned, begin, past, INT)),
            ir.Declare(tail.name, INT, ir.binary("-", past, ir.Cast(INT, left))),
            self._part(walk, first, even),
            *vectors.body,
            self._part(walk, tail, past),
        )

    def _walked(self, loop: _Loop, body: Body, known: Mapping[str, Polynomial]) -> tuple[ir.Expr, Polynomial] | None:
        """Return the index of an element that each iteration reads, and what it is but for the counter.

        It is the next one in each, and all that are the thread's own next ones begin with it at a multiple.
        """
        counter = loop.counter
        read = self.arrays - {name for stmt in body for name in stored_in(stmt)}
        declared = [stmt.name for stmt in body if isinstance(stmt, ir.Declare)]
        inside = {*declared, *(f"{THREAD} {name}" for name in declared)}
        scalars = {**known, counter: Polynomial.symbol(counter)}
        apart = not is_alike(loop.first, known, self.changing)
        found: dict[Polynomial, tuple[ir.Expr, Polynomial]] = {}
        before: list[ir.Stmt] = []
        for stmt in body:
            for element in (one for expr in values_of(stmt) for one in read_always(expr) if one.array in read):
                (index,) = element.indices
                offset = exact_polynomial(index, scalars, self.changing)
                rest = None if offset is None else offset - Polynomial.symbol(counter)
                if rest is None or counter in rest.symbols or inside & set(rest.symbols) or not (apart or varies(rest)):
                    continue
                line = rest - rest.coefficients.get((), 0)
                found.setdefault(line, (inlined(index, tuple(before), {}), rest))
            if isinstance(stmt, ir.Declare):
                scalars[stmt.name] = Scalars(self.changing).value(stmt, scalars)
                before.append(stmt)
        return next(iter(found.values())) if len(found) == 1 else None

    def _part(self, loop: _Loop, begin: ir.Expr, end: ir.Expr) -> ir.For:
        counter = ir.Var(loop.counter, INT)
        return replace(
            loop.stmt,
            init=ir.Declare(counter.name, INT, begin),
            condition=ir.binary("<", counter, end),
            copies=ir.ROLLED,
        )


def _indices_first(body: Body, taken: set[str]) -> Body:
    """Return straight code that has elements by which others are read in scalars: ``x[column[k]]``."""
    result: list[ir.Stmt] = []
    for stmt in body:
        read = (one for expr in values_of(stmt) for one in read_always(expr))
        inner: dict[ir.Expr, None] = dict.fromkeys(
            part for one in read for index in one.indices for part in read_always(index)
        )
        names = {part: ir.Var(fresh("index", taken), part.type) for part in inner}
        if not names or not isinstance(stmt, ir.Declare | ir.Assign) or stmt.value is None:
            result.append(stmt)
            continue
        declared = tuple(ir.Declare(variable.name, variable.type, part) for part, variable in names.items())
        result += (*_indices_first(declared, taken), replace(stmt, value=map_expression(stmt.value, names.get)))
    return tuple(result)


def _counted(stmt: ir.For) -> _Loop | None:
    match stmt:
        case ir.For(
            init=ir.Declare(name=name, type=ScalarType.INT, value=begin),
            condition=ir.Binary(op="<" | "<=" as op, left=ir.Var(name=tested), right=last),
            step=ir.Assign(target=ir.Var(name=stepped), op="+", value=ir.IntConst(value=1)),
        ) if name == tested == stepped and begin is not None and begin.type is INT and last.type is INT:
            past = last if op == "<" else ir.binary("+", last, ir.IntConst(1))
            declared = {one.name for one in ir.walk_statements(stmt.body) if isinstance(one, ir.Declare)}
            changed = assigned_variables(stmt.body) | declared
            stored = {array for one in stmt.body for array in stored_in(one)}
            if name in changed or variables(past) & {name, *changed} or arrays_read(past) & stored:
                return None
            return _Loop(stmt, name, begin, past)
    return None
