"""What a sketch's goal means: a function of indices, an array, or a sequential program, run on the input symbols."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import assert_never

import numpy as np

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source, Span
from metafork.swizzle.grammar.sketch import Sketch
from metafork.swizzle.language.lexer import fault
from metafork.swizzle.language.syntax import (
    Assign,
    Conditional,
    Element,
    For,
    Function,
    If,
    Integer,
    ListValue,
    Operation,
    Step,
    Sum,
    Value,
    Variable,
)
from metafork.swizzle.model.problem import Literal, Shape
from metafork.swizzle.model.specification import shape_text
from metafork.swizzle.model.terms import UNDEFINED, ZERO

_ELEMENT_OPERATORS = ("+", "-", "*", "^", "&", "|", "max", "min")
_NAME, _SHAPE, _MEANING = "MF0902", "MF0903", "MF0904"
# Iterations of loops and sums in one specification; terms that grow by one member at a time count a quarter each time.
MOST_STEPS = 1_000_000


def goal_terms(
    sketch: Sketch,
    wanted: Function | ListValue | tuple[Step, ...],
    shape: Shape,
    constants: Mapping[str, int],
    source: Source,
    name: str = "",
) -> list[int]:
    """Return the terms of the wanted array in row-major order; raises ``DiagnosticsError`` with the place."""
    evaluator = _Evaluator(sketch, constants, source)
    if isinstance(wanted, Function):
        if len(wanted.parameters) != len(shape):
            raise evaluator.fail(
                _SHAPE,
                wanted.span,
                f"a function of {len(wanted.parameters)} indices cannot fill the shape {shape_text(shape)}",
            )
        cells = np.ndindex(*shape)
        return [evaluator.term(wanted.body, dict(zip(wanted.parameters, cell, strict=True))) for cell in cells]
    if isinstance(wanted, ListValue):
        flat = list(_flattened(wanted))
        if len(flat) != prod(shape):
            raise evaluator.fail(
                _SHAPE, wanted.span, f"{len(flat)} values do not fill the shape {shape_text(shape)}"
            )  # fmt: skip
        return [evaluator.term(value, {}) for value in flat]
    return evaluator.run(wanted, name, shape)


def _flattened(value: ListValue) -> list[Value]:
    result: list[Value] = []
    for item in value.items:
        result.extend(_flattened(item) if isinstance(item, ListValue) else [item])
    return result


def has_elements(value: Value) -> bool:
    """Say whether a value reads arrays, and so is no integer."""
    match value:
        case Element() | Sum():
            return True
        case Variable(name):
            return name == "undefined"
        case Operation(_, left, right):
            return has_elements(left) or has_elements(right)
        case Conditional(_, yes, no):
            return has_elements(yes) or has_elements(no)
        case _:
            return False


class _Evaluator:
    def __init__(self, sketch: Sketch, constants: Mapping[str, int], source: Source) -> None:
        self._sketch, self._constants, self._source = sketch, constants, source
        self._result: tuple[str, Shape, list[int]] | None = None
        self._spent = 0

    def fail(self, code: str, span: Span, message: str, way_out: str = "") -> DiagnosticsError:
        return fault(self._source, code, span, message, way_out)

    def run(self, steps: tuple[Step, ...], name: str, shape: Shape) -> list[int]:
        terms = [ZERO] * prod(shape)
        self._result = name, shape, terms
        self._steps(steps, {})
        return terms

    def _steps(self, steps: tuple[Step, ...], names: dict[str, int]) -> None:
        for step in steps:
            match step:
                case For(variable, bound, body):
                    for value in range(self._integer(bound, names)):
                        self._spend(1, step.span)
                        self._steps(body, {**names, variable: value})
                case If(condition, body):
                    if self._integer(condition, names):
                        self._steps(body, names)
                case Assign(target, op, value, span):
                    self._assign(target, op, self.term(value, names), names, span)
                case _:
                    assert_never(step)

    def _assign(self, target: Element, op: str, term: int, names: dict[str, int], span: Span) -> None:
        assert self._result is not None
        name, shape, terms = self._result
        if target.array != name:
            raise self.fail(_NAME, span, f"this specification gives '{name}', not '{target.array}'")
        at = self._position(target, shape, names)
        terms[at] = term if op == "=" else self._combined(op[0], terms[at], term)
        self._spend(len(self._sketch.terms.members(terms[at], op[0])) // 4, span)

    def _combined(self, op: str, left: int, right: int) -> int:
        """Combine two elements; a difference is the sum with the negated second one."""
        terms = self._sketch.terms
        return terms.fold("+", (left, terms.negated(right))) if op == "-" else terms.fold(op, (left, right))

    def _spend(self, steps: int, span: Span) -> None:
        """Count the steps of a specification, so that an endless one ends with its place."""
        self._spent += steps
        if self._spent > MOST_STEPS:
            raise self.fail(
                _MEANING, span, f"this specification takes more than {MOST_STEPS} steps", "give smaller bounds"
            )

    def _position(self, element: Element, shape: Shape, names: dict[str, int]) -> int:
        at = tuple(self._integer(index, names) for index in element.indices)
        inside = len(at) == len(shape) and all(0 <= one < length for one, length in zip(at, shape, strict=True))
        if not inside:
            raise self.fail(
                _SHAPE,
                element.span,
                f"'{element.array}' has the shape {shape_text(shape)}; there is no element {shape_text(at)}",
            )
        flat = 0
        for one, length in zip(at, shape, strict=True):
            flat = flat * length + one
        return flat

    def term(self, value: Value, names: dict[str, int]) -> int:
        """Return the term of a value whose names are integers."""
        terms = self._sketch.terms
        match value:
            case Element(array, _, span):
                if array not in self._sketch.statements:
                    known = ", ".join(self._sketch.statements)
                    raise self.fail(_NAME, span, f"there is no array '{array}'", f"arrays: {known}")
                literal = self._sketch.statements[array]
                if not isinstance(literal, Literal):
                    if self._result is not None and array == self._result[0]:
                        # A specification may read what it has made; of an input that is the goal, the input is read.
                        _, shape, result = self._result
                        return result[self._position(value, shape, names)]
                    raise self.fail(_MEANING, span, f"'{array}' is computed by the sketch; a goal reads inputs only")
                return int(literal.terms[self._position(value, literal.shape, names)])
            case Conditional(condition, yes, no):
                return self.term(yes if self._integer(condition, names) else no, names)
            case Sum(op, variable, bound, condition, body, span):
                members = []
                for number in range(self._integer(bound, names)):
                    self._spend(1, value.span)
                    inner = {**names, variable: number}
                    if condition is None or self._integer(condition, inner):
                        members.append(self.term(body, inner))
                if not members and op in {"max", "min"}:
                    raise self.fail(_MEANING, span, f"a reduction by '{op}' of nothing has no value")
                return terms.fold(op, members)
            case Variable("undefined"):
                return UNDEFINED
            case Integer() | Variable():
                return terms.constant(self._integer(value, names))
            case Operation() if not has_elements(value):
                return terms.constant(self._integer(value, names))
            case Operation(op, left, right, span):
                if op not in _ELEMENT_OPERATORS:
                    raise self.fail(
                        _MEANING,
                        span,
                        f"'{op}' is no operator on elements",
                        f"elements are combined by {' '.join(_ELEMENT_OPERATORS)}",
                    )
                return self._combined(op, self.term(left, names), self.term(right, names))
            case ListValue(span=span):
                raise self.fail(_MEANING, span, "a value here is made of elements of inputs and integers")
            case _:
                assert_never(value)

    def _integer(self, value: Value, names: dict[str, int]) -> int:
        match value:
            case Integer(number):
                return number
            case Variable(name, span):
                known_number = names.get(name, self._constants.get(name))
                if known_number is None:
                    known = ", ".join([*names, *self._constants]) or "none"
                    raise self.fail(
                        _NAME, span, f"'{name}' is neither an index nor a constant here", f"known names: {known}"
                    )
                return known_number
            case Operation("&&" | "||" as op, left, right):
                if bool(self._integer(left, names)) == (op == "||"):
                    return int(op == "||")
                return int(bool(self._integer(right, names)))
            case Operation(op, left, right, span):
                return self._operation(op, self._integer(left, names), self._integer(right, names), span)
            case Conditional(condition, yes, no):
                return self._integer(yes if self._integer(condition, names) else no, names)
            case Element(span=span) | Sum(span=span) | ListValue(span=span):
                raise self.fail(_MEANING, span, "an integer is needed here")
            case _:
                assert_never(value)

    def _operation(self, op: str, left: int, right: int, span: Span) -> int:
        if op in {"/", "%"} and right < 1:
            raise self.fail(_MEANING, span, f"division by {right}, and divisors must be positive")
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left // right
            case "%":
                return left % right
            case "^":
                return left ^ right
            case "&":
                return left & right
            case "|":
                return left | right
            case "max":
                return max(left, right)
            case "min":
                return min(left, right)
            case _:
                comparisons = {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right}
                comparisons |= {">": left > right, ">=": left >= right}
                return int(comparisons[op])
