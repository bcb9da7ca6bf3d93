"""``meta_reduction`` of floating-point numbers (``--reassociate``): a program that adds up in one stated order.

``before --> after``, of a result ``sum`` (an array of one element)::

    meta_reduction(+: sum)                 meta_for (int i = 0; i < n / B; i++) {
    meta_for (int i = 0; i < n / B; i++)     float sum_own[B];
      meta_for (int j = 0; j < B; j++)       meta_for (int j = 0; j < B; j++) {
        *sum += x[i * B + j];                  float sum_here = 0;
                                               sum_here += x[i * B + j];
                                    -->        sum_own[j] = sum_here;
                                             }
                                             FOLD(sum_own, B)
                                             meta_for (int j = 0; j < 1; j++)
                                               sum_of_block[i] = sum_own[0];
                                           }

    FOLD(s, B):   int b = B - 1;                                 // with all bits below its first one:
                  b |= b >> 1; b |= b >> 2; b |= b >> 4; ...
                  for (int h = b ^ (b >> 1); h > 0; h /= 2)      // from the greatest power of two below B
                    meta_for (int j = 0; j < B; j++)
                      if (j < h && j + h < B) s[j] += s[j + h];

Where loops add up again and again, elements are 0 first, and ``sum_here`` begins with its element.

A second program, of one block, adds up ``sum_of_block``: each of its ``WIDTH`` threads every ``WIDTH``-th element, then
the same fold; its last thread adds the outcome to ``sum``.  What is added up in a scalar of the block needs no second
program.  Nothing here is atomic, so that the order is that of the text: it depends on the extents of the loops alone,
and every strategy and every back end keeps it.

Of ``x > m ? x : m``, ``m > x ? m : x`` and ``fmaxf(m, x)``, which differ in NaN and in zeros of two signs, a maximum is
taken as the text has it by threads, and of what they found in the form that the text has first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.reductions import Reductions, over_phases
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import map_expression, names_in

WIDTH = 256
"""Threads of the block that adds up what the blocks have added up."""


class SecondPass(Struct, frozen=True):
    """What the blocks leave for a second program: its loops, its code, the arrays that both have, and the results."""

    grid: tuple[ir.MetaFor, ...]
    body: tuple[ir.Stmt, ...]
    parts: tuple[ir.Array, ...]
    targets: tuple[str, ...]


class _Own(Struct, frozen=True):
    """An array of parts of one result, the clause that it is for, and the ``forms`` in which the text takes them up.

    ``again``: threads may add to their parts more than once, or never.
    """

    array: ir.Array
    clause: syntax.Reduction
    forms: list[_Form]
    again: bool = True

    def element(self, index: ir.Expr) -> ir.Element:
        return ir.Element(self.array.name, (index,), self.array.element, self.clause.span)

    def combined(self, one: ir.Expr, other: ir.Expr) -> ir.Expr:
        """Return two outcomes as one; what no term has changed is none."""
        if self.forms:
            none = ir.binary("==", other, neutral(self.clause.op, self.array.element))
            return ir.Conditional(none, one, self.forms[0](one, other), self.array.element, self.clause.span)
        return ir.binary(self.clause.op, one, other, self.clause.span)

    def taken_up(self, target: ir.Var | ir.Element, value: ir.Expr) -> ir.Assign:
        """Return a statement that takes an outcome up in a target."""
        if self.forms:
            return ir.Assign(target, "", self.combined(target, value), self.clause.span)
        return ir.Assign(target, self.clause.op, value, self.clause.span)


_Form = Callable[[ir.Expr, ir.Expr], ir.Expr]
"""The greater, or the lesser, of what was found and another value, as the text writes it."""


class OrderedSums(Struct, frozen=True):
    """Rewrites statements that were built; ``fresh`` gives names that nothing in the program has."""

    reductions: Reductions
    fresh: Callable[[str], str]

    def of_block(
        self, phase: ir.Phase, results: Sequence[tuple[ir.Var, syntax.Reduction]]
    ) -> tuple[tuple[ir.Stmt, ...], ir.Phase, tuple[ir.Stmt, ...]]:
        """Return a phase that adds up in scalars of the block, and what stands before and behind it."""
        owns: list[_Own] = []
        ends: list[ir.Stmt] = []
        threads = phase.threads
        for variable, clause in results:
            own = replace(self._own(variable.name, variable.type, threads, clause), again=False)
            phase = self._accumulated(phase, variable, own)
            owns.append(own)
            ends.append(own.taken_up(variable, own.element(ir.IntConst(0))))
        return self._begun(owns, threads), phase, (*self._folded(owns, threads), *ends)

    def of_grid(
        self,
        body: tuple[ir.Stmt, ...],
        grid: tuple[ir.MetaFor, ...],
        results: Sequence[tuple[ir.Array, syntax.Reduction]],
    ) -> tuple[tuple[ir.Stmt, ...], SecondPass | None]:
        """Return block-level code whose blocks leave what they added up in arrays, and what comes then."""
        nests: dict[tuple[ir.Expr, ...], tuple[tuple[ir.MetaFor, ...], list[_Own]]] = {}
        length = product([loop.extent for loop in grid])
        parts: list[_Own] = []
        targets: list[ir.Element] = []
        ends: list[ir.Stmt] = []
        for array, clause in results:
            target = ir.Element(array.name, (ir.IntConst(0),) * len(array.extents), array.element, clause.span)
            phases = [one for one in ir.walk_statements(body) if isinstance(one, ir.Phase)]
            adding = [one for one in phases if array.name in names_in(one.body)]
            owns: dict[tuple[ir.Expr, ...], _Own] = {}
            for phase in adding:
                if _shape(phase) not in owns:
                    once = phase in body and [_shape(one) for one in adding].count(_shape(phase)) == 1
                    own = replace(self._own(array.name, array.element, phase.threads, clause), again=not once)
                    owns[_shape(phase)] = own
                    nests.setdefault(_shape(phase), (phase.threads, []))[1].append(own)
            if owns:
                body = over_phases(body, partial(self._within, target=target, owns=owns))
                first, *others = owns.values()
                total: ir.Expr = first.element(ir.IntConst(0))
                for own in others:
                    total = first.combined(total, own.element(ir.IntConst(0)))
                name = self.fresh(f"{array.name}_of_block")
                parts.append(_Own(ir.Array(name, array.element, (length,), clause.span), clause, first.forms))
                targets.append(target)
                ends.append(ir.Assign(parts[-1].element(linear(grid)), "", total, clause.span))
        if not ends:
            return body, None
        for threads, found in nests.values():
            body = (*self._begun(found, threads), *body, *self._folded(found, threads))
        rank = len(next(iter(nests.values()))[0])
        end = ir.Phase(self._single(rank), tuple(ends), results[0][1].span)
        return (*body, end), self._second(length, parts, targets)

    # --- the pieces -------------------------------------------------------------------------------------------

    def _own(self, name: str, type_: ScalarType, threads: Sequence[ir.MetaFor], clause: syntax.Reduction) -> _Own:
        """Return the array in which each thread of a nest has an element."""
        length = product([loop.extent for loop in threads])
        return _Own(ir.Array(self.fresh(f"{name}_own"), type_, (length,), clause.span), clause, [])

    def _begun(self, owns: Sequence[_Own], threads: Sequence[ir.MetaFor]) -> tuple[ir.Stmt, ...]:
        """Return the declarations of such arrays, and what is in them at first."""
        arrays = tuple(ir.BlockArray(own.array, own.clause.span) for own in owns)
        before = [own for own in owns if own.again]
        if not before:
            return arrays
        inner = self._threads(threads)
        lane = linear(inner)
        starts = tuple(
            ir.Assign(own.element(lane), "", neutral(own.clause.op, own.array.element), own.clause.span)
            for own in before
        )
        return (*arrays, ir.Phase(inner, starts, before[0].clause.span))

    def _within(self, phase: ir.Phase, target: ir.Element, owns: Mapping[tuple[ir.Expr, ...], _Own]) -> ir.Phase:
        if target.array not in names_in(phase.body):
            return phase
        return self._accumulated(phase, target, owns[_shape(phase)])

    def _accumulated(self, phase: ir.Phase, target: ir.Var | ir.Element, own: _Own) -> ir.Phase:
        """Return a phase whose threads add up in registers, and leave that in their elements."""
        name = target.name if isinstance(target, ir.Var) else target.array
        span = own.clause.span
        here = ir.Var(self.fresh(f"{name}_here"), own.array.element, span)

        def kept(update: ir.Assign, written: ir.Assign) -> ir.Assign:
            if own.clause.op not in ("min", "max"):
                return ir.Assign(here, update.op, update.value, update.span)
            own.forms.append(_form(written, update.value))
            return ir.Assign(here, "", own.forms[-1](here, update.value), update.span)

        place = own.element(linear(phase.threads))
        body = self.reductions.updates(phase.body, name, own.clause, kept)
        start = ir.Declare(here.name, here.type, place if own.again else neutral(own.clause.op, here.type), span)
        return replace(phase, body=(start, *body, ir.Assign(place, "", here, span)))

    def _folded(self, owns: Sequence[_Own], threads: Sequence[ir.MetaFor]) -> tuple[ir.Stmt, ...]:
        """Return what folds the elements of arrays of one length into the first, the upper half onto the lower."""
        length = product([_as_int(loop.extent) for loop in threads])
        if not owns or (isinstance(length, ir.IntConst) and length.value <= 1):
            return ()
        span = owns[0].clause.span
        inner = self._threads(threads)
        lane = linear(inner)
        half = ir.Var(self.fresh("half"), ir.INT, span)
        other = ir.binary("+", lane, half)
        paired = ir.binary("&&", ir.binary("<", lane, half), ir.binary("<", other, length))
        steps = tuple(own.taken_up(own.element(lane), own.element(other)) for own in owns)
        phase = ir.Phase(inner, (ir.If(paired, steps, (), span),), span)
        halved = ir.Assign(half, "/", ir.IntConst(2), span)
        going = ir.binary(">", half, ir.IntConst(0))
        if isinstance(length, ir.IntConst):
            most = ir.IntConst(1 << (length.value - 1).bit_length() - 1)
            return (ir.For(ir.Declare(half.name, ir.INT, most, span), going, halved, (phase,), span),)
        below = ir.Var(self.fresh("below"), ir.INT, span)  # of as many bits as it has, all become 1
        return (
            ir.Declare(below.name, ir.INT, ir.binary("-", length, ir.IntConst(1)), span),
            *(
                ir.Assign(below, "|", ir.binary(">>", below, ir.IntConst(bits)), span)
                for bits in (1, 2, 4, 8, 16)
            ),
            ir.For(
                ir.Declare(half.name, ir.INT, ir.binary("^", below, ir.binary(">>", below, ir.IntConst(1))), span),
                going, halved, (phase,), span,
            ),
        )  # fmt: skip

    def _threads(self, threads: Sequence[ir.MetaFor]) -> tuple[ir.MetaFor, ...]:
        """Return loops of the same extents with variables of their own, of type ``int``: a block has few threads."""
        return tuple(
            replace(loop, var=self.fresh(loop.var), type=ir.INT, extent=_as_int(loop.extent)) for loop in threads
        )

    def _single(self, rank: int) -> tuple[ir.MetaFor, ...]:
        """Return loops of one iteration."""
        return tuple(ir.MetaFor(self.fresh("one"), ir.IntConst(1)) for _ in range(rank))

    def _second(self, length: ir.Expr, parts: Sequence[_Own], targets: Sequence[ir.Element]) -> SecondPass:
        """Return the program that adds up arrays of one length in other ones' elements."""
        span = parts[0].clause.span
        lane = ir.Var(self.fresh("lane"), ir.INT, span)
        block = ir.Var(self.fresh("block"), length.type, span)
        threads = (ir.MetaFor(lane.name, ir.IntConst(WIDTH), ir.INT, span),)
        owns: list[_Own] = []
        starts: list[ir.Stmt] = []
        steps: list[ir.Stmt] = []
        stores: list[ir.Stmt] = []
        ends: list[ir.Stmt] = []
        for part, target in zip(parts, targets, strict=True):
            own = replace(self._own(target.array, target.type, threads, part.clause), forms=part.forms)
            here = ir.Var(self.fresh(f"{target.array}_here"), target.type, span)
            owns.append(own)
            starts.append(ir.Declare(here.name, here.type, neutral(part.clause.op, here.type), span))
            steps.append(part.taken_up(here, part.element(block)))
            stores.append(ir.Assign(own.element(lane), "", here, span))
            ends.append(own.taken_up(target, own.element(ir.IntConst(0))))
        loop = ir.For(
            ir.Declare(block.name, block.type, lane, span),
            ir.binary("<", block, length),
            ir.Assign(block, "+", ir.IntConst(WIDTH), span),
            tuple(steps),
            span,
        )
        body = (
            *(ir.BlockArray(own.array, span) for own in owns),
            ir.Phase(threads, (*starts, loop, *stores), span),
            *self._folded(owns, threads),
            ir.Phase(self._single(1), tuple(ends), span),
        )
        names = tuple(target.array for target in targets)
        return SecondPass(self._single(1), body, tuple(part.array for part in parts), names)


def neutral(op: str, type_: ScalarType) -> ir.Expr:
    """Return what changes no value by an operation, but for the sign of a zero that is added to it."""
    suffix = "f" if type_ is ScalarType.FLOAT else ""
    match op:
        case "+":
            return ir.FloatConst(f"0.0{suffix}", type_)
        case "*":
            return ir.FloatConst(f"1.0{suffix}", type_)
        case "min" | "max":
            infinite: ir.Expr = ir.FloatConst("INFINITY", ScalarType.FLOAT)
            if op == "max":
                infinite = ir.unary("-", infinite)
            return infinite if type_ is ScalarType.FLOAT else ir.Cast(type_, infinite)
        case _:
            raise AssertionError(op)


def _as_int(extent: ir.Expr) -> ir.Expr:
    return extent if ScalarType.INT.holds(extent.type) else ir.Cast(ir.INT, extent)


def product(extents: Sequence[ir.Expr]) -> ir.Expr:
    """Return the product of the extents of loops."""
    others = [one for one in extents if not (isinstance(one, ir.IntConst) and one.value == 1)]
    found: ir.Expr = others[0] if others else ir.IntConst(1)
    for one in others[1:]:
        found = ir.binary("*", found, one)
    return found


def linear(loops: Sequence[ir.MetaFor]) -> ir.Expr:
    """Return the number of an iteration of a nest, the innermost loop the fastest."""
    found: ir.Expr | None = None
    for loop in loops:
        variable = ir.Var(loop.var, loop.type, loop.span)
        if isinstance(loop.extent, ir.IntConst) and loop.extent.value == 1:
            continue
        found = variable if found is None else ir.binary("+", ir.binary("*", found, loop.extent), variable)
    return ir.IntConst(0) if found is None else found


def _shape(phase: ir.Phase) -> tuple[ir.Expr, ...]:
    return tuple(loop.extent for loop in phase.threads)


def _form(written: ir.Assign, value: ir.Expr) -> _Form:
    """Return how an assignment takes a value up in its target."""

    def form(one: ir.Expr, other: ir.Expr) -> ir.Expr:
        def changed(part: ir.Expr) -> ir.Expr | None:
            return one if part == written.target else other if part == value else None

        return map_expression(written.value, changed)

    return form
