"""Where index arithmetic is defined: divisors are positive, values fit into 32 bits; checked cell by cell.

Only what C would compute counts: the untaken side of ``?:``, and the right side of ``&&`` and ``||`` where the left one
decides, are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.model.index import Binary, Choose, Compare, Index, Name, Number, evaluate
from metafork.swizzle.model.problem import Case, Shape

MOST = 2**31 - 1
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class OutOfDomainError(Exception):
    """An operation is not defined at a cell; ``reason`` says why, with the values met there."""

    def __init__(self, operation: Index, cell: int, reason: str) -> None:
        self.operation, self.cell, self.reason = operation, cell, reason
        super().__init__(reason)


def check_cases(cases: Sequence[Case], shape: Shape) -> None:
    """Raise ``OutOfDomainError`` where a guard or an index that some cell uses is not defined there."""
    grid = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    values = {f"d{axis}": one for axis, one in enumerate(grid)}
    open_ = np.ones(grid.shape[1], dtype=bool)
    for case in cases:
        holds = open_ if case.guard is None else open_ & (defined(case.guard, values, open_) != 0)
        for index in () if case.read is None else case.read.indices:
            defined(index, values, holds)
        open_ = open_ & ~holds


def defined(expression: Index, values: Mapping[str, Ints], active: Bools) -> Ints:
    """Return the value at each active cell (anything elsewhere); raises ``OutOfDomainError``."""
    match expression:
        case Number(value):
            return np.full(active.size, value, dtype=np.int64)
        case Name(name):
            return values[name]
        case Binary(op, left, right):
            one, two = defined(left, values, active), defined(right, values, active)
            if op in {"/", "%"}:
                _require(expression, active & (two < 1), two, "division by {}, and divisors must be positive")
                two = np.maximum(two, 1)
            result = _computed(expression, one, two)
            _require(expression, active & (np.abs(result) > MOST), result, "the value {} does not fit into 32 bits")
            return result
        case Compare("&&" | "||" as op, left, right):
            first: Bools = defined(left, values, active) != 0
            second: Bools = defined(right, values, active & (first if op == "&&" else ~first)) != 0
            truth: Ints = np.where(first & second if op == "&&" else first | second, 1, 0)
            return truth
        case Compare(_, left, right):
            return _computed(expression, defined(left, values, active), defined(right, values, active))
        case Choose(condition, yes, no):
            test = defined(condition, values, active) != 0
            both: Ints = np.where(test, defined(yes, values, active & test), defined(no, values, active & ~test))
            return both
        case _:
            assert_never(expression)


def _computed(expression: Binary | Compare, left: Ints, right: Ints) -> Ints:
    sides: dict[str, Any] = {"left": left, "right": right}
    # mypy takes the operators of the two classes apart, and does not see that the operator is its own class's.
    one: Ints = np.asarray(evaluate(type(expression)(expression.op, Name("left"), Name("right")), sides))  # type: ignore[arg-type]
    return one


def _require(operation: Index, wrong: Bools, values: Ints, reason: str) -> None:
    if wrong.any():
        cell = int(np.flatnonzero(wrong)[0])
        raise OutOfDomainError(operation, cell, reason.format(int(values[cell])))
