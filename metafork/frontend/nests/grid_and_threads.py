"""From nests as people write them to those that a program is built from: ``meta_for``s of a grid, and of threads.

Heads are brought to ``(int v = 0; v < extent; v++)``, and the variables that people named are declared in the bodies.
``meta_schedule meta_block(B0, B1)`` cuts the innermost loops of a nest into blocks of that shape (*strip-mining* and
interchange; what is left over at the border is left out by a condition):

    meta_for (int y = 1; y < n - 1; y++)          meta_for (y_block < (n - 1 - 1 + B0 - 1) / B0)
      meta_for (int x = 0; x < m; x++)     -->      meta_for (x_block < (m + B1 - 1) / B1)
        S;                                            meta_for (y_thread < B0)
                                                        meta_for (x_thread < B1) {
                                                          int y = 1 + (y_block * B0 + y_thread);
                                                          int x = x_block * B1 + x_thread;
                                                          if (y < n - 1 && x < m) S;
                                                        }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.nests.head_types import TypeOf, counts_numbers
from metafork.frontend.nests.heads import (
    Bound,
    Head,
    Range,
    combined,
    head_of,
    infix,
    is_number,
    name,
    number,
    quotient,
    same,
)
from metafork.frontend.nests.shape import border, fresh, items_of, meta_loops, written
from metafork.frontend.text import syntax
from metafork.frontend.text.free_names import free_names
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.syntax_changes import with_statements
from metafork.ir.arithmetic.types import ScalarType

LARGEST_GROWTH = 32
"""How many blocks may become one along each dimension."""


class Known(NamedTuple):
    """What is known where a schedule stands: types of variables, and of type names, and what only computes a value."""

    type_of: TypeOf
    named_type: Callable[[syntax.TypeName], ScalarType | None]
    is_library: Callable[[str], bool]


def with_grid_and_threads(schedule: syntax.ScheduleStatement, reporter: Reporter, known: Known) -> PlainNest:
    """Return a schedule with plain heads, cut into blocks where it says so.

    What it cannot bring to that form it leaves, for a diagnostic; raises ``RefusedError`` after reporting what is wrong
    with ``meta_block``.
    """
    nests = [one for one in items_of(schedule.body) if isinstance(one, syntax.ForStatement) and one.meta]
    if len(nests) != 1 or len(items_of(schedule.body)) != 1:
        return PlainNest(schedule)
    rewriting = _Rewriting(schedule, reporter, known)
    if schedule.block is not None:
        return rewriting.cut(nests[0], schedule.block)
    return PlainNest(rewriting.plain(nests[0]))


class _Opened(Struct, frozen=True):
    """A loop whose head is plain, and what its body begins with for that: declarations, conditions for the rest."""

    loop: syntax.ForStatement
    declarations: tuple[syntax.Statement, ...] = ()
    conditions: tuple[syntax.Expression, ...] = ()


class PlainNest(NamedTuple):
    """A schedule with plain heads, and conditions on the host under which it is what was written."""

    schedule: syntax.ScheduleStatement
    conditions: tuple[syntax.Expression, ...] = ()


class _Rewriting:
    def __init__(self, schedule: syntax.ScheduleStatement, reporter: Reporter, known: Known) -> None:
        self._schedule = schedule
        self._reporter = reporter
        self._known = known
        self._taken = free_names(schedule.body)
        shape = () if schedule.block is None else schedule.block.shape
        self._taken |= {text for size in shape for text in syntax.names_in(size)}
        self._inside: dict[str, ScalarType | None] = {}
        for declarator in syntax.declarators_in(schedule.body):
            scalar = not (declarator.type.pointers or declarator.type.extents)
            type_ = self._known.named_type(declarator.type) if scalar else None
            other = self._inside.get(declarator.name, type_)
            self._inside[declarator.name] = type_ if other is type_ else None

    # --- plain heads ------------------------------------------------------------------------------------------

    def plain(self, outermost: syntax.ForStatement) -> syntax.ScheduleStatement:
        """Return the schedule with plain heads of its grid and its threads."""
        schedule = self._schedule
        counts = meta_loops(schedule.body)
        loops = [one for one in syntax.walk_statements(outermost) if isinstance(one, syntax.ForStatement) and one.meta]
        if len(counts) != 1 or all((head := head_of(one)) is None or head.is_plain for one in loops):
            return schedule
        (total,) = counts
        grid = border(outermost, total) if schedule.grid is None else schedule.grid.loops
        if grid is None or not 0 < grid < total:
            return schedule
        nest = self._chain(outermost, grid, lambda body: self._phases(body, total - grid))
        return replace(schedule, body=nest, grid=schedule.grid or syntax.GridClause(grid, schedule.keyword))

    def _phases(self, statement: syntax.Statement, loops: int) -> syntax.Statement:
        """Return a statement of the block level with plain heads of its threads."""
        if isinstance(statement, syntax.ForStatement) and statement.meta:
            return self._chain(statement, loops, lambda body: body)
        return with_statements(statement, lambda one: self._phases(one, loops))

    def _chain(
        self, outermost: syntax.ForStatement, loops: int, inside: Callable[[syntax.Statement], syntax.Statement]
    ) -> syntax.ForStatement:
        """Return loops that follow each other with plain heads; ``inside`` changes the body of the innermost."""
        opened = self._opened(outermost)
        items = items_of(outermost.body)
        following = items[-1] if items else None
        if loops > 1 and isinstance(following, syntax.ForStatement) and following.meta:
            inner = self._chain(following, loops - 1, inside)
            # What a condition leaves out it leaves out in the innermost body, so that loops follow each other.
            if opened.conditions:
                inner = _innermost(inner, loops - 1, lambda body: _where(opened.conditions, body))
            body: syntax.Statement = syntax.Block((*items[:-1], inner), outermost.body.span)
        else:
            body = _where(opened.conditions, inside(outermost.body))
        return replace(opened.loop, body=_behind(opened.declarations, body))

    def _opened(self, loop: syntax.ForStatement) -> _Opened:
        """Return a loop with a plain head, or as it is."""
        head = head_of(loop)
        if head is None or head.is_plain or self._is_strange(loop, head):
            return _Opened(loop)
        counting = head.counting(self._inside)
        if counting is None:
            return _Opened(loop)
        counted, count = counting
        index = self._fresh(f"{head.name}_number")
        others = tuple(bound for bound in head.bounds if bound is not counted or self._is_unsigned(head))
        return _Opened(
            _with_head(loop, head, index, count),
            (_declared(head, head.value(name(index, head.span))),),
            self._conditions(head, others),
        )

    def _is_strange(self, loop: syntax.ForStatement, head: Head) -> bool:
        """Return whether a head is not what its numbers say, or names what another variable hides in the body."""
        below = {one.name for one in syntax.declarators_in(loop.body)}
        if not head.names.isdisjoint(below) or head.name in head.names:
            return True
        own = self._known.named_type(head.declarator.type)
        return not counts_numbers(head, own, self._type, self._known.named_type)

    def _is_unsigned(self, head: Head) -> bool:
        type_ = self._known.named_type(head.declarator.type)
        return type_ is None or not type_.signed

    def _type(self, text: str) -> ScalarType | None:
        return self._inside[text] if text in self._inside else self._known.type_of(text)

    def _conditions(self, head: Head, bounds: Sequence[Bound]) -> tuple[syntax.Expression, ...]:
        found = [head.condition(bound) for bound in bounds]
        if self._is_unsigned(head) and bounds and not is_number(head.start, 0):
            found.append(infix(">=", name(head.name, head.span), head.start))
        return tuple(found)

    # --- blocks -----------------------------------------------------------------------------------------------

    def cut(self, outermost: syntax.ForStatement, clause: syntax.BlockClause) -> PlainNest:
        """Return the schedule with its innermost loops cut into blocks."""
        schedule = self._schedule
        loops, between, body = self._followed(outermost)
        shape = clause.shape
        if schedule.grid is not None:
            raise self._reporter.refuse("MF0101", schedule.grid.span, "`meta_block` says what the grid's loops are")
        if len(shape) > len(loops) and not meta_loops(body):
            raise self._refuse_shape(clause, loops)
        if len(shape) > len(loops) or len(loops) > 3:
            message = f"a block of {len(shape)} dimensions, and {len(loops)} `meta_for`s that follow each other"
            raise self._reporter.refuse("MF0101", clause.span, message, reason=_REASON, way_out=_WAY_OUT)
        if meta_loops(body):
            message = "`meta_for`s that do not follow each other directly cannot be cut into blocks"
            place = next(iter(meta_loops(body).values())).head
            raise self._reporter.refuse("MF0101", place, message, reason=_REASON, way_out=_WAY_OUT)
        for extent in shape:
            self._check_extent(extent)
        grid: list[syntax.ForStatement] = []
        threads: list[syntax.ForStatement] = []
        declarations: list[syntax.Statement] = []
        conditions: list[syntax.Expression] = []
        ranges: dict[str, Range] = {}
        premises: list[syntax.Expression] = []
        for loop, size in zip(loops, (*(None,) * (len(loops) - len(shape)), *shape), strict=True):
            head = head_of(loop)
            # The limit of a plain head may be of any type, but its names are those of the host.
            clear = head is not None and head.is_plain and head.names.isdisjoint(self._inside)
            strange = head is None or (not clear and self._is_strange(loop, head))
            box = None if head is None or strange else self._box(head, ranges)
            counting = None if box is None else box.counting(self._inside)
            if head is None or box is None or counting is None:
                raise self._refuse_head(loop, head)
            counted, count = counting
            ranges[head.name] = box.range(counted)
            if size is None and box is head and head.is_plain:
                grid.append(loop)
                continue
            block = self._fresh(f"{head.name}_block")
            index: syntax.Expression = name(block, head.span)
            if size is None:
                grid.append(_with_head(loop, head, block, count))
            else:
                thread = self._fresh(f"{head.name}_thread")
                grid.append(_with_head(loop, head, block, quotient(count, size)))
                threads.append(replace(_with_head(loop, head, thread, size), reductions=()))
                index = infix("+", infix("*", index, size), name(thread, head.span))
                premises += self._reach(box, counted, size)
            declarations.append(_declared(head, box.value(index)))
            conditions += self._conditions(head, head.bounds)
            if box is not head:
                factors = (factor for text, factor in head.factors.items() if text not in ranges)
                premises += [infix("<=", number(0, factor.span), factor) for factor in factors]
            if not same(head.start, box.start):
                conditions.append(infix(">=", name(head.name, head.span), head.start))
        body = _behind(declarations, _where(conditions, _behind(between, body)))
        nest: syntax.Statement = body
        for loop in reversed((*grid, *threads)):
            nest = replace(loop, body=nest)
        cut = replace(schedule, body=nest, grid=syntax.GridClause(len(grid), clause.span), block=None)
        return PlainNest(cut, tuple(premises))

    def _refuse_shape(self, clause: syntax.BlockClause, loops: Sequence[syntax.ForStatement]) -> RefusedError:
        """Refuse a block of more dimensions than there are loops."""
        texts = [self._reporter.written(one.span) for one in clause.shape]
        kept = texts[: len(loops)]
        if len(loops) == 1 and all(text.isdecimal() for text in texts):
            kept = [str(min(prod(map(int, texts)), 1024))]
        each = "the loop" if len(loops) == 1 else "each loop"
        numbers = ("no", "one", "two", "three")
        had = f"{numbers[len(loops)]} loop{'s' if len(loops) > 1 else ''}"
        return self._reporter.refuse(
            "MF0101",
            clause.span,
            f"the block has {numbers[len(texts)]} dimensions, and the nest has {had}",
            reason="a block has one size for each `meta_for` that is cut into blocks.",
            way_out=f"give one size for {each}, `meta_block({', '.join(kept)})`, or write another `meta_for` inside.",
            related=((loops[0].head, "the loop" if len(loops) == 1 else "the first loop"),),
        )

    def _check_extent(self, size: syntax.Expression) -> None:
        """Refuse an extent of a block that is no number of threads, or whose names mean something else inside."""
        if is_number(size, 0) or isinstance(size, syntax.Prefix):
            raise self._reporter.refuse("MF0101", size.span, "a block has at least one thread", way_out=_WAY_OUT)
        for one in syntax.walk(size):
            if isinstance(one, syntax.Name) and one.name in self._inside:
                message = f"`{one.name}` is another variable inside the schedule"
                raise self._reporter.refuse("MF0101", one.span, message, way_out="give one of them another name.")

    def _box(self, head: Head, ranges: Mapping[str, Range]) -> Head | None:
        """Return a head with all iterations of one, and none of the variables of the loops around it."""
        return head if head.names.isdisjoint(ranges) else head.within(ranges)

    def _reach(self, head: Head, counted: Bound, size: syntax.Expression) -> list[syntax.Expression]:
        """Return conditions by which a type has all indices of a loop that is cut, with those that are left out.

        Blocks may grow later (``metafork.transform.grow``).
        """
        type_ = self._known.named_type(head.declarator.type)
        if type_ is None or type_.size > ScalarType.INT.size:
            return []
        _, last = head.range(counted)
        ends = [last]
        if any(isinstance(one, syntax.Prefix | syntax.Infix) and one.op == "-" for one in syntax.walk(head.start)):
            # Iterations are numbered from 0 wherever they start.
            ends.append(combined(last.span, (True, last), (False, head.start)))
        beyond = infix("*", syntax.Constant(str(LARGEST_GROWTH), size.span), size)
        if not is_number(head.step, 1):
            beyond = infix("*", head.step, beyond)
        # Computed in 64 bits, where it does not wrap around itself.
        most = infix("-", syntax.Constant(f"{type_.greatest}L", size.span), beyond)
        return [syntax.Infix("<=", end, most, end.span) for end in ends]

    def _followed(
        self, outermost: syntax.ForStatement
    ) -> tuple[list[syntax.ForStatement], list[syntax.Statement], syntax.Statement]:
        """Return loops that follow each other, the declarations between them, and the body of the innermost."""
        loops = [outermost]
        between: list[syntax.Statement] = []
        while True:
            items = items_of(loops[-1].body)
            following = next((one for one in items if isinstance(one, syntax.ForStatement) and one.meta), None)
            if following is None:
                return loops, between, loops[-1].body
            changed = {one.name for one in written(following)}
            stored = self._stored(following)
            for item in items:
                if item is following:
                    continue
                if not isinstance(item, syntax.Declaration) or item.span.start > following.span.start:
                    message = "this statement stands among loops that are to be cut into blocks"
                    raise self._reporter.refuse("MF0106", item.span, message, way_out=_INTO_THE_LOOP)
                for declarator in item.declarators:
                    if declarator.type.extents or declarator.type.words == ("struct",) or declarator.name in changed:
                        message = f"`{declarator.name}` is declared between loops that are to be cut into blocks"
                        raise self._reporter.refuse("MF0109", declarator.span, message, way_out=_INTO_THE_LOOP)
                    if declarator.value is not None and not stored.isdisjoint(_read(declarator.value)):
                        message = f"`{declarator.name}` is read once, from memory that the loop behind it writes"
                        raise self._reporter.refuse("MF0106", declarator.span, message, way_out=_ANOTHER_ARRAY)
                between.append(item)
            loops.append(following)

    def _stored(self, statement: syntax.Statement) -> set[str]:
        """Return the names of what a statement may write: targets, and what it hands to functions of the file."""
        found: set[str] = set()
        for part in syntax.expressions_in(statement):
            match part:
                case (
                    syntax.Assignment(target=target)
                    | syntax.Postfix(operand=target)
                    | syntax.Prefix(op="++" | "--" | "&", operand=target)
                ):
                    found |= _roots(target)
                case syntax.Invocation(callee=syntax.Name(name=called)) if self._known.is_library(called):
                    pass
                case syntax.Invocation(arguments=arguments):
                    found.update(text for argument in arguments for text in syntax.names_in(argument))
                case _:
                    pass
        return found

    def _refuse_head(self, loop: syntax.ForStatement, head: Head | None) -> RefusedError:
        """Report a loop that cannot be cut into blocks."""
        if any(isinstance(one, syntax.Unsupported) and not one.what for one in (loop.init, loop.condition, loop.step)):
            return RefusedError("reported where it was parsed")
        if (refused := self._refuse_pointer(loop)) is not None:
            return refused
        if head is None or not any(one.op for one in head.bounds):
            message = "this head does not say how many iterations there are"
            way_out = "write `meta_for (int v = first; v < last; v++)`, with any step."
            return self._reporter.refuse("MF0103", loop.head, message, way_out=way_out)
        parts = (head.start, *(part for bound in head.bounds for part in bound.parts))
        inside = [one for part in parts for one in syntax.walk(part)]
        if (member := next((one for one in inside if isinstance(one, syntax.Member)), None)) is not None:
            written = self._reporter.written(member.span)
            message = f"this head reads `{written}`, which the function may change"
            way_out = f"copy it to a variable in front of the schedule: `int {member.field} = {written};`."
            return self._reporter.refuse("MF0103", member.span, message, way_out=way_out)
        names = {one.name: one.span for one in inside if isinstance(one, syntax.Name) and one.name in self._inside}
        if not names or self._is_strange(loop, head):
            message = "types and names in this head may make it another range than its numbers say"
            way_out = "use signed integers of one type, and names that the body does not declare again."
            return self._reporter.refuse("MF0103", loop.head, message, way_out=way_out)
        found = next(iter(names))
        return self._reporter.refuse("MF0105", names[found], f"the number of iterations depends on `{found}`")

    def _refuse_pointer(self, loop: syntax.ForStatement) -> RefusedError | None:
        """Refuse a loop whose variable is a pointer that walks through an array."""
        # As written: a pointer that walks may stand as its index by now.
        declared = re.match(
            r"[^=;]*\*\s*(\w+)\s*(?:=\s*(\w+))?", self._reporter.written(loop.init.span) if loop.init else ""
        )
        if declared is None or loop.init is None:
            return None
        pointer, array, count = declared[1], declared[2] or "x", "n"
        if isinstance(loop.condition, syntax.Infix):
            found = re.fullmatch(rf"{array}\s*\+\s*(\w+)", self._reporter.written(loop.condition.right.span))
            count = count if found is None else found[1]
        index = next(name for name in ("i", "j", "k", "index") if name not in self._inside)
        return self._reporter.refuse(
            "MF0103",
            loop.init.span,
            f"the variable of a `meta_for` is an integer, and `{pointer}` is a pointer",
            reason="iterations become block and thread indices.",
            way_out=f"count elements: `meta_for (int {index} = 0; {index} < {count}; {index}++)`, where `{count}` is "
            f"their number. Write `{array}[{index}]` in place of `*{pointer}`.",
        )

    def _fresh(self, text: str) -> str:
        found = fresh(text, self._taken | self._inside.keys())
        self._taken.add(found)
        return found


_REASON = "`meta_block(B0, B1)` cuts the innermost loops of a nest into blocks of this shape: three dimensions at most."
_WAY_OUT = "give an entry for each loop of elements, outermost first; loops further out are the grid's alone."
_INTO_THE_LOOP = "move it into the innermost `meta_for`."
_ANOTHER_ARRAY = (
    "copy what it reads to another array, in a schedule before; or write blocks and threads as loops of their own."
)


def _roots(place: syntax.Expression) -> set[str]:
    """Return the names of the variables of which a place is a part."""
    while isinstance(place, syntax.Subscript | syntax.Member):
        place = place.base
    return syntax.names_in(place)


def _read(expression: syntax.Expression) -> set[str]:
    """Return the names of what an expression reads in memory, or hands to a function."""
    found: set[str] = set()
    for part in syntax.walk(expression):
        match part:
            case syntax.Subscript() | syntax.Member() | syntax.Prefix(op="*" | "&"):
                found |= _roots(part)
            case syntax.Invocation(arguments=arguments):
                found.update(text for argument in arguments for text in syntax.names_in(argument))
            case _:
                pass
    return found


def _with_head(loop: syntax.ForStatement, head: Head, variable: str, extent: syntax.Expression) -> syntax.ForStatement:
    """Return a loop with the head ``(type variable = 0; variable < extent; variable++)``."""
    span = head.declarator.span
    declarator = replace(head.declarator, name=variable, value=number(0, span))
    return replace(
        loop,
        init=syntax.Declaration((declarator,), span),
        condition=infix("<", name(variable, span), extent),
        step=syntax.Postfix("++", name(variable, span), span),
    )


def _declared(head: Head, value: syntax.Expression) -> syntax.Declaration:
    return syntax.Declaration((replace(head.declarator, value=value),), head.declarator.span)


def _where(conditions: Sequence[syntax.Expression], body: syntax.Statement) -> syntax.Statement:
    if not conditions:
        return body
    condition = reduce(lambda left, right: infix("&&", left, right), conditions)
    return syntax.IfStatement(condition, body, None, body.span)


def _behind(first: Sequence[syntax.Statement], body: syntax.Statement) -> syntax.Statement:
    if not first:
        return body
    return syntax.Block((*first, *(body.items if isinstance(body, syntax.Block) else (body,))), body.span)


def _innermost(
    loop: syntax.ForStatement, loops: int, change: Callable[[syntax.Statement], syntax.Statement]
) -> syntax.ForStatement:
    """Return a nest of loops that follow each other with the body of the innermost changed."""
    if loops == 1:
        return replace(loop, body=change(loop.body))
    items = items_of(loop.body)
    inner = items[-1]
    assert isinstance(inner, syntax.ForStatement)
    return replace(loop, body=syntax.Block((*items[:-1], _innermost(inner, loops - 1, change)), loop.body.span))
