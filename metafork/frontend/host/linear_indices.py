"""Indices of host code as sums over the iterations of the loops around them.

    ``for (j = lo; j < hi; j += 2) ... A[i*n + j]``   -->   start ``i*n + lo``, 2 for each iteration, of which there are
    ``(hi - lo + 1) / 2``

A number has a text that C computes in 64 bits in front of the outermost loop, from variables that keep their values in
all of it.  C computes indices in the types of the program: where numbers may wrap around at 32 bits on the way
(``unsigned``), or lose something in a conversion, an index that varies is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from metafork.frontend.text import syntax
from metafork.frontend.text.loop_heads import comparison_of, step_of
from metafork.frontend.text.vocabulary import scalar_type
from metafork.ir.arithmetic.types import ScalarType, common_type, promoted

_NUMBER = r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]{0,3})"
_MOST = 2**31
"""Constants and their sums stay below this, so that texts of 64 bits do not overflow."""
_MOST_PRODUCTS = 32


class Amount(Struct, frozen=True):
    """A sum of products of C texts, each with a factor; the product of no texts is 1."""

    products: tuple[tuple[tuple[str, ...], int], ...] = ()

    @classmethod
    def of(cls, text: str) -> Amount:
        """Return the value of a text that can be an operand of a product."""
        return cls((((text,), 1),))

    @classmethod
    def number(cls, value: int) -> Amount:
        """Return a constant."""
        return cls((((), value),) if value else ())

    @property
    def constant(self) -> int:
        """What is added to the products of texts."""
        return dict(self.products).get((), 0)

    @property
    def is_constant(self) -> bool:
        """Whether there is no text."""
        return not any(texts for texts, _ in self.products)

    def __str__(self) -> str:
        """Return C text that can be an operand of a product."""
        if self.is_constant:
            return f"({self.constant}LL)" if self.constant < 0 else f"{self.constant}LL"
        text = ""
        for texts, factor in self.products:
            sign = "-" if factor < 0 else "+"
            size = [f"{abs(factor)}LL"] if abs(factor) != 1 or not texts else []
            text += f" {sign} {' * '.join([*size, *texts])}"
        plain = len(self.products) == 1 and self.products[0][1] == 1 and len(self.products[0][0]) == 1
        return text[3:] if plain else f"({text.removeprefix(' + ').removeprefix(' ')})"

    def plus(self, other: Amount, times: int = 1) -> Amount:
        """Return the sum, with the other so many times."""
        found = dict(self.products)
        for texts, factor in other.products:
            found[texts] = found.get(texts, 0) + times * factor
        return Amount(tuple(sorted(((texts, factor) for texts, factor in found.items() if factor), reverse=True)))

    def times(self, other: Amount) -> Amount:
        """Return the product."""
        if len(self.products) * len(other.products) > _MOST_PRODUCTS:
            return Amount.of(f"({self} * {other})")
        total = Amount()
        for left, factor in self.products:
            for right, size in other.products:
                total = total.plus(Amount(((tuple(sorted((*left, *right))), factor * size),)))
        return total

    @property
    def fits(self) -> bool:
        """Whether all of its factors are small enough for sums of 64 bits."""
        return all(abs(factor) < _MOST for _, factor in self.products)


class Trips(Struct, frozen=True):
    """A loop: how many iterations it has at most, and whether they are always all of them (``exact``)."""

    count: Amount
    exact: bool


class Linear(Struct, frozen=True):
    """``start`` and so much more for each iteration of some loops, by their numbers; ``type`` is the one of C."""

    start: Amount
    terms: tuple[tuple[int, Amount], ...]
    type: ScalarType


Stable = Callable[[syntax.Name], Linear | None]
"""What a name stands for: a variable that keeps its value, or that of a loop which is followed."""


def linear(expression: syntax.Expression, named: Stable, typedefs: dict[str, ScalarType]) -> Linear | None:
    """Return an integer expression as a sum over loops, ``None`` where it is none or may trap or wrap around."""
    match expression:
        case syntax.Constant(text=text):
            return _constant(text)
        case syntax.Name(uncertain=False):
            return named(expression)
        case syntax.Prefix(op="+" | "-" as op, operand=operand):
            inner = linear(operand, named, typedefs)
            if inner is None:
                return None
            inner = replace(inner, type=promoted(inner.type))
            return inner if op == "+" else _within(_scaled(inner, Amount.number(-1)))
        case syntax.Infix(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
            first, second = linear(left, named, typedefs), linear(right, named, typedefs)
            return None if first is None or second is None else _combined(op, first, second)
        case syntax.Conversion(type=type_, operand=operand):
            to = scalar_type(type_.words, typedefs)
            inner = linear(operand, named, typedefs)
            plain = to is not None and to.integer and not (type_.pointers or type_.extents or type_.function)
            return None if inner is None or to is None or not plain else converted(inner, to)
        case _:
            return None


def _constant(text: str) -> Linear | None:
    match = re.fullmatch(_NUMBER, text)
    if match is None:
        return None
    digits, suffix = match[1], match[2].lower()
    octal = len(digits) > 1 and digits.startswith("0") and digits.isdigit()
    if octal and not all(one in "01234567" for one in digits):
        return None
    value = int(digits, 8) if octal else int(digits, 0)
    if value >= _MOST:
        return None
    wide = ScalarType.UNSIGNED_LONG if "u" in suffix else ScalarType.LONG
    narrow = ScalarType.UNSIGNED_INT if "u" in suffix else ScalarType.INT
    return Linear(Amount.number(value), (), wide if "l" in suffix else narrow)


def _combined(op: str, left: Linear, right: Linear) -> Linear | None:
    type_ = common_type(left.type, right.type)
    # A signed operand becomes an unsigned one: at 64 bits that changes nothing of the sum, at 32 bits it may.
    match op:
        case "+":
            return _within(replace(_sum(left, right), type=type_))
        case "-":
            return _within(replace(_sum(left, _scaled(right, Amount.number(-1))), type=type_))
        case "*" if not right.terms:
            return _within(replace(_scaled(left, right.start), type=type_))
        case "*" if not left.terms:
            return _within(replace(_scaled(right, left.start), type=type_))
        case "/" | "%" if (
            not (left.terms or right.terms) and right.start.is_constant and type_.signed and right.start.constant > 0
        ):
            return Linear(Amount.of(f"({left.start} {op} {right.start})"), (), type_)
        case _:
            return None


def summed(left: Linear, right: Linear | None) -> Linear:
    """Return the sum of two numbers that address elements, of 64 bits."""
    return left if right is None else replace(_sum(left, right), type=ScalarType.LONG)


def zero() -> Linear:
    """Return the index 0."""
    return Linear(Amount(), (), ScalarType.LONG)


def iteration(loop: int) -> Linear:
    """Return the number of an iteration of a loop."""
    return Linear(Amount(), ((loop, Amount.number(1)),), ScalarType.LONG)


def converted(one: Linear, to: ScalarType) -> Linear | None:
    """Return a number as it is in an integer type; ``None`` where one that varies may not fit it."""
    if not to.integer or to is ScalarType.BOOL:
        return None
    if to.holds(one.type) or to.size == 8:
        return replace(one, type=to)
    return None if one.terms else Linear(_converted(one.start, to), (), to)


def _sum(left: Linear, right: Linear) -> Linear:
    terms = dict(left.terms)
    for loop, amount in right.terms:
        terms[loop] = terms[loop].plus(amount) if loop in terms else amount
    kept = tuple((loop, amount) for loop, amount in sorted(terms.items()) if amount != Amount())
    return replace(left, start=left.start.plus(right.start), terms=kept)


def _scaled(one: Linear, factor: Amount) -> Linear:
    terms = ((loop, amount.times(factor)) for loop, amount in one.terms)
    return replace(one, start=one.start.times(factor), terms=tuple(term for term in terms if term[1] != Amount()))


def _within(one: Linear) -> Linear | None:
    """Return a result of arithmetic as it is in its type; unsigned ones of 32 bits wrap around."""
    if not all(amount.fits for amount in (one.start, *(amount for _, amount in one.terms))):
        return None
    if one.type.signed or one.type.size == 8:
        return one
    return None if one.terms else replace(one, start=_converted(one.start, one.type))


class Counted(Struct, frozen=True):
    """A loop whose variable is followed.

    ``value`` is the variable in an iteration; the loop has its condition in front of everything else that its head
    reads where it is ``guarded``.
    """

    trips: Trips
    value: Linear


def counted(
    loop: syntax.ForStatement,
    number: int,
    variable: ScalarType,
    name: str,
    outer: dict[int, Trips],
    of: Callable[[syntax.Expression], Linear | None],
) -> Counted | None:
    """Return how often a loop over ``name`` runs at most, and what the variable is then; ``None`` where that varies.

    ``number`` is the loop's own, ``outer`` the loops around it; ``of`` reads expressions in front of it.  Whether the
    body leaves the variable alone, and its type ``variable``, is for the caller to know.
    """
    first = _first_value(loop)
    step = _step(loop.step, name)
    if first is None or step is None or loop.condition is None or variable.size < 4:
        return None
    start = of(first)
    found = _bound(loop.condition, name, up=step > 0)
    if start is None or found is None:
        return None
    op, bound, alone = found
    end = of(bound)
    if end is None or (op == "!=" and abs(step) != 1):
        return None
    if not (variable.signed and common_type(variable, end.type).signed):
        return _counted_unsigned(number, variable, (start, end), (op, step), alone)
    if not variable.holds(start.type) and start.terms:
        return None
    if not variable.holds(start.type):
        start = replace(start, start=_converted(start.start, variable))
    start = replace(start, type=variable)
    size = Amount.number(abs(step))
    span = _sum(end, _scaled(start, Amount.number(-1)))
    span = span if step > 0 else _scaled(span, Amount.number(-1))
    most, exact = _most(span, outer)
    if most is None:
        return None
    # The last value that is reached is one before the bound, or the bound itself.
    count = most.plus(Amount.number(abs(step) - (op not in ("<=", ">="))))
    count = count if abs(step) == 1 else Amount.of(f"({count} / {size})")
    return _as_counted(number, start, step, Trips(count, exact and alone))


def _converted(amount: Amount, to: ScalarType) -> Amount:
    if amount.is_constant and to.least <= amount.constant <= to.greatest:
        return amount
    return Amount.of(f"(long long)({to.spelling}){amount}")


def _as_counted(number: int, start: Linear, step: int, trips: Trips) -> Counted:
    value = replace(start, terms=tuple(sorted((*start.terms, (number, Amount.number(step))))))
    return Counted(trips, value)


def _counted_unsigned(
    number: int, variable: ScalarType, ends: tuple[Linear, Linear], how: tuple[str, int], alone: bool
) -> Counted | None:
    """Return the same for ``for (v = start; v < end; v++)`` where the comparison is one of unsigned numbers."""
    start, end = ends
    type_ = common_type(variable, end.type)
    if start.terms or end.terms or how != ("<", 1):
        return None
    value = start.start if variable.holds(start.type) or variable.size == 8 else _converted(start.start, variable)
    # A narrower variable that wraps around comes to 0 again.
    if type_.size != variable.size and not variable.signed and value != Amount():
        return None
    first, behind = (
        one if type_.holds(known) or type_.size == 8 else _converted(one, type_)
        for one, known in ((value, variable), (end.start, end.type))
    )
    kept = replace(start, start=value, type=variable)
    count = Amount.of(f"metafork_trips((unsigned long long){first}, (unsigned long long){behind})")
    return _as_counted(number, kept, 1, Trips(count, alone))


def _most(span: Linear, outer: dict[int, Trips]) -> tuple[Amount | None, bool]:
    """Return the greatest value of a span over the loops around, and whether it is always that."""
    most = span.start
    for loop, amount in span.terms:
        if not amount.is_constant:
            return None, False
        if amount.constant > 0:
            most = most.plus(outer[loop].count.plus(Amount.number(-1)).times(amount))
    return most, not span.terms


def _first_value(loop: syntax.ForStatement) -> syntax.Expression | None:
    match loop.init:
        case syntax.Declaration(declarators=(one,)):
            return one.value
        case syntax.Assignment(op="=", target=syntax.Name(uncertain=False), value=value):
            return value
        case _:
            return None


def _step(step: syntax.Expression | None, name: str) -> int | None:
    found = step_of(step)
    if found is None or found.variable != name:
        return None
    size = 1
    if found.by is not None:
        constant = _constant(found.by.text) if isinstance(found.by, syntax.Constant) else None
        if constant is None or constant.start.constant == 0:
            return None
        size = constant.start.constant
    return -size if found.down else size


def _bound(condition: syntax.Expression, name: str, up: bool) -> tuple[str, syntax.Expression, bool] | None:
    """Return how the first conjunct of a condition bounds a variable, and whether it is the whole condition."""
    match condition:
        case syntax.Infix(op="&&", left=left):
            found = _bound(left, name, up)
            return None if found is None else (found[0], found[1], False)
        case _:
            compared = comparison_of(condition, name)
            wanted = ("<", "<=", "!=") if up else (">", ">=", "!=")
            return None if compared is None or compared[0] not in wanted else (*compared, True)


def jumps(statement: syntax.Statement) -> bool:
    """Return whether some statement may be left in the middle, or entered there."""
    return any(isinstance(one, syntax.Jump | syntax.LabelledStatement) for one in syntax.walk_statements(statement))


def loop_name(loop: syntax.ForStatement) -> syntax.Name | None:
    """Return the name that the head of a loop gives its first value; that of a declaration has its span."""
    match loop.init:
        case syntax.Declaration(declarators=(one,)):
            return syntax.Name(one.name, one.name_span)
        case syntax.Assignment(op="=", target=syntax.Name() as name):
            return name
        case _:
            return None


def changed(parts: Iterable[syntax.Expression]) -> set[str]:
    """Return the names that some expressions may give another value, or whose addresses they take."""
    names: set[str] = set()
    for part in parts:
        for node in syntax.walk(part):
            match node:
                case (
                    syntax.Assignment(target=target)
                    | syntax.Postfix(operand=target)
                    | syntax.Prefix(op="++" | "--" | "&", operand=target)
                ):
                    while isinstance(target, syntax.Member) and not target.arrow:
                        target = target.base
                    if isinstance(target, syntax.Subscript | syntax.Member):
                        continue
                    if not (isinstance(target, syntax.Prefix) and target.op == "*"):
                        names |= syntax.names_in(target)
                case syntax.Unsupported(written=written):
                    names |= written
                case _:
                    pass
    return names
