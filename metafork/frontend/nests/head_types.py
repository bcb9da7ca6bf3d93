"""Types in the heads of ``meta_for``s: do the comparisons of C say there what the numbers say?

Counting iterations takes variable, start and bounds for numbers.  C compares what is negative with what is unsigned
otherwise, and a start may lose bits where it becomes the value of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from metafork.frontend.nests.heads import Head
from metafork.frontend.text import syntax
from metafork.frontend.text.constants import integer_constant
from metafork.ir.arithmetic.types import ScalarType

TypeOf = Callable[[str], ScalarType | None]
"""Says what type a variable has that a head names; ``None`` where it is no scalar, or not known."""

_NUMERIC = (syntax.Name, syntax.Constant, syntax.Infix, syntax.Prefix, syntax.Ternary)


def counts_numbers(head: Head, own: ScalarType | None, type_of: TypeOf) -> bool:
    """Say whether a head that runs from anywhere, by any step, has as many iterations as its numbers say."""
    if own is None or not own.integer or own is ScalarType.BOOL:
        return False
    limits = [bound.limit for bound in head.bounds]
    parts = (head.start, head.step, *limits)
    if not all(isinstance(one, _NUMERIC) for part in parts for one in syntax.walk(part)):
        return False
    start = list(_types(head.start, type_of))
    if any(one is None or not one.integer for part in parts for one in _types(part, type_of)):
        return False
    if any(one is not None and one.size > own.size for one in (*start, *_types(head.step, type_of))):
        return False
    if not own.signed:
        return own.size >= ScalarType.INT.size and not head.down
    if any(one is not None and not one.signed for one in (*start, *_types(head.step, type_of))):
        return False
    from_zero = isinstance(head.start, syntax.Constant) and not head.down
    for limit in limits:
        signs = {one.signed for one in _types(limit, type_of) if one is not None}
        if False in signs and (True in signs or not from_zero):
            return False
    return True


def _types(expression: syntax.Expression, type_of: TypeOf) -> Iterator[ScalarType | None]:
    """Yield the types of the variables in an expression, and of constants that are no plain numbers of type int."""
    for one in syntax.walk(expression):
        if isinstance(one, syntax.Name):
            yield type_of(one.name)
        elif isinstance(one, syntax.Constant):
            constant = integer_constant(one.text)
            if constant is None:
                yield None
            elif not constant[1].signed or constant[1].size > ScalarType.INT.size:
                yield constant[1]
