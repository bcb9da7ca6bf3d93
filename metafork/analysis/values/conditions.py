"""What a condition says of parameters and loop variables: choices, of each of which one case holds.

``i != k`` is the choice between ``i < k`` and ``k < i``; ``a || b`` is that between the cases of ``a`` and of ``b``; a
plain comparison is a choice of one case.  What is no polynomial comparison says nothing: fewer choices are always true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, product
from typing import TypeGuard

from msgspec import Struct

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial, at_most, equal, less_than
from metafork.analysis.values.scope import Scope
from metafork.ir.program import COMPARISONS, Binary, Cast, Expr, IntConst, Unary

Case = tuple[Constraint, ...]
"""A conjunction."""
Choice = tuple[Case, ...]
"""A disjunction."""
MOST_CASES = 8
"""Cases of one choice that is made of several; a condition that needs more says nothing."""


class Meaning(Struct, frozen=True):
    """``choices`` hold, one case of each; ``exact`` where they say all that the condition says."""

    choices: tuple[Choice, ...]
    exact: bool

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What holds in any case: the choices of one case."""
        return tuple(constraint for choice in self.choices if len(choice) == 1 for constraint in choice[0])

    @property
    def alternatives(self) -> tuple[Choice, ...]:
        """The choices of several cases."""
        return tuple(choice for choice in self.choices if len(choice) > 1)

    @property
    def conjunction(self) -> tuple[Constraint, ...] | None:
        """Constraints whose conjunction is the condition; ``None`` where it is not one."""
        return self.constraints if self.exact and not self.alternatives else None

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of what is known."""
        return frozenset(name for choice in self.choices for case in choice for one in case for name in one.symbols)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Say whether what is known holds at a point, which gives every symbol a value."""
        return all(any(all(one.holds(values) for one in case) for case in choice) for choice in self.choices)

    def of_each(self, change: Callable[[Constraint], Constraint]) -> Meaning:
        """Return what is known with another constraint for each."""
        choices = tuple(tuple(tuple(map(change, case)) for case in choice) for choice in self.choices)
        return Meaning(choices, self.exact)


_NOTHING = Meaning((), False)


def meaning(scope: Scope, condition: Expr, truth: bool = True) -> Meaning:
    """Return what is known where the condition holds (or, with ``truth`` false, where it does not)."""
    match condition:
        case Unary(op="!", operand=operand):
            return meaning(scope, operand, not truth)
        case Binary(op="&&" | "||" as op, left=left, right=right):
            if op == ("&&" if truth else "||"):
                both = (meaning(scope, left, truth), meaning(scope, right, truth))
                return Meaning(both[0].choices + both[1].choices, both[0].exact and both[1].exact)
            return _either(*(_perhaps(scope, operand, truth) for operand in (left, right)))
        case Binary(op=op, left=left, right=right) if op in COMPARISONS:
            sides = scope.compared(left, right)
            if sides is not None:
                return _comparison(op if truth else _NEGATION[op], *sides)
            if op in ("<", "<=") and _turned(left, right):
                return _from_zero_to(scope, op, left.operand, right, truth)
            return _NOTHING
        case _ if condition.type.integer:
            value = scope.polynomial(condition)
            if value is None:
                return _NOTHING
            return _different(value, ZERO) if truth else Meaning((((equal(value, ZERO),),),), True)
        case _:
            return _NOTHING


def _turned(left: Expr, right: Expr) -> TypeGuard[Cast]:
    """Say whether a signed value is compared as an unsigned one of its size, with what a signed one has been or is."""
    if not isinstance(left, Cast):
        return False
    signed = left.operand.type
    if not signed.integer or left.type.signed or not signed.signed or signed.size != left.type.size:
        return False
    match right:
        case Cast(operand=operand):
            return operand.type == signed and right.type is left.type
        case IntConst(value=number):
            return number <= signed.greatest
        case _:
            return False


def _from_zero_to(scope: Scope, op: str, value: Expr, end: Expr, truth: bool) -> Meaning:
    """Return what ``(unsigned)value < end`` means: a value below 0 is larger than an end that is not."""
    least, most = scope.polynomial(value), scope.polynomial(end)
    if least is None or most is None:
        return _NOTHING
    within = less_than(least, most) if op == "<" else at_most(least, most)
    if truth:
        return Meaning((((at_most(ZERO, least),),), ((within,),)), True)
    return Meaning((((less_than(least, ZERO),), (within.negated(),)),), True)


def together(scope: Scope, conditions: Iterable[tuple[Expr, bool]]) -> Meaning:
    """Return what is known where conditions hold, or do not, as is said with each."""
    found = [meaning(scope, condition, truth) for condition, truth in conditions]
    return Meaning(tuple(choice for one in found for choice in one.choices), all(one.exact for one in found))


def where(scope: Scope, condition: Expr, truth: bool = True) -> Scope:
    """Return a scope of what runs where the condition holds (or, with ``truth`` false, where it does not)."""
    inner = scope.copy()
    inner.ranges.assume(meaning(scope, condition, truth).constraints)
    return inner


def _perhaps(scope: Scope, condition: Expr, truth: bool) -> Meaning:
    """Return what is known where a condition holds that is not evaluated, whole, wherever that is said."""
    before, scope.evaluated = scope.evaluated, False
    try:
        return meaning(scope, condition, truth)
    finally:
        scope.evaluated = before


_NEGATION = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


def _comparison(op: str, left: Polynomial, right: Polynomial) -> Meaning:
    match op:
        case "!=":
            return _different(left, right)
        case "==":
            said = equal(left, right)
        case "<" | ">":
            said = less_than(left, right) if op == "<" else less_than(right, left)
        case _:
            said = at_most(left, right) if op == "<=" else at_most(right, left)
    return Meaning((((said,),),), True)


def _different(left: Polynomial, right: Polynomial) -> Meaning:
    return Meaning((((less_than(left, right),), (less_than(right, left),)),), True)


def _either(first: Meaning, second: Meaning) -> Meaning:
    """Return the disjunction of two meanings, which says nothing where one of them may hold without being known to."""
    one, other = _cases(first.choices), _cases(second.choices)
    if one is None or other is None or len(one) + len(other) > MOST_CASES:
        return _NOTHING
    return Meaning(((*one, *other),), first.exact and second.exact)


def _cases(choices: Sequence[Choice]) -> Choice | None:
    """Return the cases of a conjunction of choices; ``None`` where it says nothing or has too many."""
    found = list(islice(product(*choices), MOST_CASES + 1))
    if not choices or len(found) > MOST_CASES:
        return None
    return tuple(tuple(constraint for case in cases for constraint in case) for cases in found)
