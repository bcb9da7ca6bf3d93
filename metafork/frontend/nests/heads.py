"""Heads of ``meta_for``s as people write them: how many iterations there are, and the variable from their number.

``for (i = lo; i < hi; i += step)`` has ``(hi - lo + step - 1) / step`` iterations, of which number k has
``i == lo + step * k``.  ``i + 1 < hi`` is a bound as ``i < hi`` is.  Of several upper bounds, ``i < hi && i < n`` or
the lesser one by ``?:``, one that is known before the nest counts them, and the others become conditions in the body.
Downwards likewise.  A head that is no such thing stays as it is, for a diagnostic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.loop_heads import comparison_of, step_of
from metafork.frontend.text.vocabulary import CONSTANTS
from metafork.ir.messages.source import Span

Range = tuple[syntax.Expression, syntax.Expression]
"""The least and the greatest value of a variable."""


class Bound(Struct, frozen=True):
    """``variable op limit``, or ``variable + offset op limit``, with the span of the whole comparison."""

    op: str
    limit: syntax.Expression
    span: Span
    offset: syntax.Expression | None = None

    @property
    def parts(self) -> tuple[syntax.Expression, ...]:
        """What stands beside the variable."""
        return (self.limit,) if self.offset is None else (self.limit, self.offset)

    @property
    def alone(self) -> syntax.Expression:
        """The limit of the variable alone, as numbers have it."""
        if self.offset is None:
            return self.limit
        return combined(self.limit.span, (True, self.limit), (False, self.offset))


class Head(Struct, frozen=True):
    """The head of a loop over ``name``: it runs from ``start`` by ``step``, downwards or not, while all bounds hold.

    It is ``usual`` where it has one bound, ``name < limit``, and a step like ``name++``.
    """

    declarator: syntax.Declarator
    start: syntax.Expression
    step: syntax.Expression
    down: bool
    bounds: tuple[Bound, ...]
    usual: bool
    span: Span

    @property
    def name(self) -> str:
        """The variable."""
        return self.declarator.name

    @property
    def is_plain(self) -> bool:
        """Whether it is ``(int v = 0; v < extent; v++)``."""
        return self.usual and is_number(self.start, 0) and is_number(self.step, 1)

    def count(self, bound: Bound, expanded: bool = False) -> syntax.Expression:
        """Return the number of iterations as one bound has it; 0 or less where there are none."""
        first, last = (bound.alone, self.start) if self.down else (self.start, bound.alone)
        if expanded:
            first, last = products(first), products(last)
        closed = int(bound.op in ("<=", ">="))
        return quotient(combined(bound.limit.span, (True, last), (False, first), constant=closed), self.step)

    def condition(self, bound: Bound) -> syntax.Expression:
        """Return a bound as a condition on the variable."""
        op = bound.op if bound.op != "!=" else ">" if self.down else "<"
        variable: syntax.Expression = name(self.name, bound.span)
        return infix(op, variable if bound.offset is None else infix("+", variable, bound.offset), bound.limit)

    def value(self, index: syntax.Expression) -> syntax.Expression:
        """Return the value of the variable in the iteration of a number."""
        steps = index if is_number(self.step, 1) else infix("*", self.step, index)
        start = combined(self.start.span, (True, self.start))
        if self.down:
            return infix("-", start, steps)
        return steps if is_number(start, 0) else infix("+", start, steps)

    def counting(self, inside: Collection[str]) -> tuple[Bound, syntax.Expression] | None:
        """Return a bound and its count, which has none of the names declared inside; ``None`` where all have some."""
        # The greatest value of a type is the last to say how many there are.
        bounds = sorted(
            self.bounds, key=lambda one: bool(names := syntax.names_in(one.limit)) and names <= set(CONSTANTS)
        )
        for expanded in (False, True):
            for bound in bounds:
                count = self.count(bound, expanded)
                if syntax.names_in(count).isdisjoint(inside):
                    return bound, count
        return None

    def within(self, ranges: Mapping[str, Range]) -> Head | None:
        """Return a head without the variables of outer loops that has all iterations of this one, in steps of 1.

        ``None`` where an outer variable is used otherwise than in sums, and products by what ``factors`` has.
        """
        if self.down or not is_number(self.step, 1):
            return None
        start = _extreme(self.start, ranges, 0)
        bounds: list[Bound] = []
        for bound in self.bounds:
            limit = _extreme(bound.limit, ranges, 1)
            offset = None if bound.offset is None else _extreme(bound.offset, ranges, 0)
            if limit is not None and (offset is not None or bound.offset is None):
                bounds.append(replace(bound, limit=limit, offset=offset))
        return replace(self, start=start, bounds=tuple(bounds)) if start is not None and bounds else None

    @property
    def names(self) -> set[str]:
        """The names that it uses, but for its variable."""
        parts = (self.start, self.step, *(part for bound in self.bounds for part in bound.parts))
        return {name for part in parts for name in syntax.names_in(part)}

    @property
    def factors(self) -> dict[str, syntax.Name]:
        """The names by which something is multiplied in the range; ``within`` takes them not to be negative."""
        parts = (self.start, *(part for bound in self.bounds for part in bound.parts))
        products = [
            one for part in parts for one in syntax.walk(part) if isinstance(one, syntax.Infix) and one.op == "*"
        ]
        return {one.name: one for it in products for one in (it.left, it.right) if isinstance(one, syntax.Name)}

    def range(self, counted: Bound) -> Range:
        """Return the least and the greatest value of the variable, as one bound has it."""
        beyond = int(counted.op not in ("<=", ">="))
        last = combined(counted.span, (True, counted.alone), constant=beyond if self.down else -beyond)
        return (last, self.start) if self.down else (self.start, last)


def _extreme(expression: syntax.Expression, ranges: Mapping[str, Range], end: int) -> syntax.Expression | None:
    """Return the least (0) or the greatest (1) value of an expression over ranges, ``None`` where it is not known."""
    match expression:
        case syntax.Name(name=text) if text in ranges:
            return ranges[text][end]
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            first = _extreme(left, ranges, end)
            second = _extreme(right, ranges, end if op == "+" else 1 - end)
            return None if first is None or second is None else syntax.Infix(op, first, second, expression.span)
        case syntax.Infix(op="*", left=left, right=right):
            for factor, other in ((left, right), (right, left)):
                if isinstance(factor, syntax.Constant) or (
                    isinstance(factor, syntax.Name) and factor.name not in ranges
                ):
                    product = _extreme(other, ranges, end)
                    return None if product is None else syntax.Infix("*", product, factor, expression.span)
            return None
        case _:
            return expression if syntax.names_in(expression).isdisjoint(ranges) else None


def head_of(loop: syntax.ForStatement) -> Head | None:
    """Return the head of a loop that declares its variable, ``None`` where it is of another form."""
    init = loop.init
    if not isinstance(init, syntax.Declaration) or len(init.declarators) != 1 or loop.condition is None:
        return None
    (declarator,) = init.declarators
    type_ = declarator.type
    if declarator.value is None or type_.extents or type_.pointers or isinstance(declarator.value, syntax.Unsupported):
        return None
    step = step_of(loop.step)
    if step is None or step.variable != declarator.name:
        return None
    by, down = number(1, loop.head) if step.by is None else step.by, step.down
    if isinstance(by, syntax.Prefix) or declarator.name in syntax.names_in(by):
        return None
    bounds = tuple(_bounds(loop.condition, declarator.name, not is_number(declarator.value, 0)))
    wanted = {">", ">="} if down else {"<", "<="}
    if is_number(by, 1):
        wanted.add("!=")
    if any(bound.op not in wanted for bound in bounds) or _changes(
        declarator.value, by, *(part for one in bounds for part in one.parts)
    ):
        return None
    if len(bounds) > 1 and any(bound.op == "!=" for bound in bounds):
        return None  # it may be passed by
    match loop.condition, loop.step:
        case (
            syntax.Infix(op="<", left=syntax.Name(name=left)),
            syntax.Postfix() | syntax.Prefix() | syntax.Assignment(op="+="),
        ):
            usual = left == declarator.name
        case _:
            usual = False
    return Head(declarator, declarator.value, by, down, bounds, usual, loop.head)


def _bounds(condition: syntax.Expression, variable: str, apart: bool) -> Iterator[Bound]:
    """Yield the bounds that a condition consists of; one with an empty operator where a part is none.

    The lesser of two is two bounds where they are wanted ``apart``.
    """
    match condition:
        case syntax.Infix(op="&&", left=left, right=right):
            yield from _bounds(left, variable, apart)
            yield from _bounds(right, variable, apart)
        case _:
            op, limit, offset = _compared(condition, variable)
            both = _lesser_of(limit) if apart and op in ("<", "<=") else None
            yield from (Bound(op, one, condition.span, offset) for one in both or (limit,))


def _compared(condition: syntax.Expression, variable: str) -> tuple[str, syntax.Expression, syntax.Expression | None]:
    """Return operator, limit and offset of ``variable + offset op limit``; an empty operator where it is none."""
    found = comparison_of(condition, variable)
    if found is not None:
        return *found, None
    if isinstance(condition, syntax.Infix):
        for left in (True, False):
            offset = _beside(condition.left if left else condition.right, variable)
            if offset is None:
                continue
            alone = name(variable, condition.span)
            changed = replace(condition, left=alone) if left else replace(condition, right=alone)
            found = comparison_of(changed, variable)
            if found is not None:
                return *found, offset
    return "", condition, None


def _beside(expression: syntax.Expression, variable: str) -> syntax.Expression | None:
    """Return what is added to a variable in ``v + 1``, ``1 + v`` or ``v - 1``, ``None`` where it is no such sum."""
    match expression:
        case syntax.Infix(op="+" | "-" as op, left=syntax.Name(name=left), right=other) if left == variable:
            offset = other if op == "+" else syntax.Prefix("-", other, other.span)
        case syntax.Infix(op="+", left=offset, right=syntax.Name(name=right)) if right == variable:
            pass
        case _:
            return None
    return None if variable in syntax.names_in(offset) else offset


def _lesser_of(expression: syntax.Expression) -> tuple[syntax.Expression, syntax.Expression] | None:
    """Return the two expressions of which one is the lesser, ``a < b ? a : b``."""
    match expression:
        case syntax.Ternary(
            condition=syntax.Infix(op="<" | "<=" | ">" | ">=" as op, left=left, right=right),
            then=then,
            otherwise=otherwise,
        ):
            less, greater = (left, right) if op in ("<", "<=") else (right, left)
            return (then, otherwise) if same(less, then) and same(greater, otherwise) else None
        case _:
            return None


def _changes(*expressions: syntax.Expression) -> bool:
    """Return whether something in a head has an effect, or is not understood."""
    return any(
        isinstance(one, syntax.Assignment | syntax.Postfix | syntax.Unsupported | syntax.Invocation)
        or (isinstance(one, syntax.Prefix) and one.op in ("++", "--", "&", "*"))
        for expression in expressions
        for one in syntax.walk(expression)
    )


# --- expressions ------------------------------------------------------------------------------------------------------


def name(text: str, span: Span) -> syntax.Name:
    """Return a name."""
    return syntax.Name(text, span)


def number(value: int, span: Span) -> syntax.Expression:
    """Return a number."""
    constant = syntax.Constant(str(abs(value)), span)
    return constant if value >= 0 else syntax.Prefix("-", constant, span)


def is_number(expression: syntax.Expression, value: int) -> bool:
    """Return whether an expression is a number as it is usually written."""
    return isinstance(expression, syntax.Constant) and expression.text == str(value)


def infix(op: str, left: syntax.Expression, right: syntax.Expression) -> syntax.Infix:
    """Return ``left op right`` at the place of the right operand, which is the one that people wrote."""
    return syntax.Infix(op, left, right, right.span)


def quotient(left: syntax.Expression, right: syntax.Expression) -> syntax.Expression:
    """Return the least number of parts of length ``right`` that make up ``left``: ``(left + right - 1) / right``."""
    if is_number(right, 1):
        return left
    return syntax.Infix("/", combined(left.span, (True, left), (True, right), constant=-1), right, left.span)


def combined(span: Span, *parts: tuple[bool, syntax.Expression], constant: int = 0) -> syntax.Expression:
    """Return a sum of expressions, each with whether it is added, and a constant; what cancels out is left out."""
    terms: list[tuple[bool, syntax.Expression]] = []
    for sign, part in parts:
        for inner, term in _terms(part):
            added = sign == inner
            opposite = next((one for one in terms if one[0] != added and same(one[1], term)), None)
            if isinstance(term, syntax.Constant) and term.text.isdecimal() and not term.text.startswith("0"):
                constant += int(term.text) if added else -int(term.text)
            elif opposite is None:
                terms.append((added, term))
            else:
                terms.remove(opposite)
    terms.sort(key=lambda one: not one[0])  # those that are added first
    result: syntax.Expression | None = None
    for added, term in terms:
        if result is None:
            result = term if added else syntax.Prefix("-", term, span)
        else:
            result = syntax.Infix("+" if added else "-", result, term, span)
    if result is None:
        return number(constant, span)
    if constant:
        result = syntax.Infix("+" if constant > 0 else "-", result, number(abs(constant), span), span)
    return result


def products(expression: syntax.Expression) -> syntax.Expression:
    """Return a sum of products for an expression, the factors of each in an order of their own."""
    found: syntax.Expression | None = None
    for positive, factors in _multiplied(expression):
        product = reduce(lambda left, right: infix("*", left, right), factors)
        if found is None:
            found = product if positive else syntax.Infix("-", number(0, product.span), product, product.span)
        else:
            found = syntax.Infix("+" if positive else "-", found, product, expression.span)
    return number(0, expression.span) if found is None else found


def _multiplied(expression: syntax.Expression) -> Iterator[tuple[bool, list[syntax.Expression]]]:
    """Yield the terms of a sum of products, each with whether it is added, and its factors."""
    match expression:
        case syntax.Infix(op="*", left=left, right=right):
            for left_sign, some in _multiplied(left):
                for right_sign, others in _multiplied(right):
                    factors = [one for one in (*some, *others) if not is_number(one, 1)]
                    yield left_sign == right_sign, sorted(factors, key=_spelled) or [number(1, expression.span)]
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            yield from _multiplied(left)
            for sign, factors in _multiplied(right):
                yield sign == (op == "+"), factors
        case _:
            if not is_number(expression, 0):
                yield True, [expression]


def _terms(expression: syntax.Expression) -> Iterator[tuple[bool, syntax.Expression]]:
    """Yield the terms of a sum, each with whether it is added; 0 has none."""
    match expression:
        case syntax.Infix(op="+" | "-" as op, left=left, right=right):
            yield from _terms(left)
            for sign, term in _terms(right):
                yield sign == (op == "+"), term
        case syntax.Prefix(op="-", operand=operand):
            for sign, term in _terms(operand):
                yield not sign, term
        case _:
            if not is_number(expression, 0):
                yield True, expression


def same(left: syntax.Expression, right: syntax.Expression) -> bool:
    """Return whether two expressions are written alike."""
    return _spelled(left) == _spelled(right)


def _spelled(expression: syntax.Expression) -> str:
    """Return a text that expressions written alike have in common; one of its own for what is not compared."""
    match expression:
        case syntax.Name(name=text) | syntax.Constant(text=text):
            return text
        case syntax.Infix(op=op) | syntax.Prefix(op=op):
            word = op
        case syntax.Subscript():
            word = "[]"
        case syntax.Member(field=field, arrow=arrow):
            word = f"->{field}" if arrow else f".{field}"
        case _:
            return f"?{id(expression)}"
    return f"({word} {' '.join(_spelled(one) for one in syntax.operands(expression))})"
