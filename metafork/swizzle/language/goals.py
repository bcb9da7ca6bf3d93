"""What a sketch's goal means: a function of indices, an array, or a sequential program, run on the input symbols."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import assert_never

import numpy as np

from metafork.ir.diagnostics import DiagnosticsError
from metafork.ir.source import Source, Span
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

_NAME, _SHAPE, _MEANING = "MF0902", "MF0903", "MF0904"


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


class _Evaluator:
    def __init__(self, sketch: Sketch, constants: Mapping[str, int], source: Source) -> None:
        self._sketch, self._constants, self._source = sketch, constants, source
        self._result: tuple[str, Shape, list[int]] | None = None

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
        terms[at] = term if op == "=" else self._sketch.terms.fold(op[0], (terms[at], term))

    def _position(self, element: Element, shape: Shape, names: dict[str, int]) -> int:
        at = tuple(self._integer(index, names) for index in element.indices)
        inside = len(at) == len(shape) and all(0 <= one < length for one, length in zip(at, shape, strict=True))
        if not inside:
            raise self.fail(
                _SHAPE,
                element.span,
                f"'{element.array}' has the shape {shape_text(shape)}; there is no element {shape_text(at)}",
            )
        return int(np.ravel_multi_index(at, shape))

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
                    raise self.fail(_MEANING, span, f"'{array}' is computed by the sketch; a goal reads inputs only")
                return int(literal.terms[self._position(value, literal.shape, names)])
            case Conditional(condition, yes, no):
                return self.term(yes if self._integer(condition, names) else no, names)
            case Sum(op, variable, bound, condition, body):
                members = []
                for number in range(self._integer(bound, names)):
                    inner = {**names, variable: number}
                    if condition is None or self._integer(condition, inner):
                        members.append(self.term(body, inner))
                return terms.fold(op, members)
            case Operation(op, left, right, span):
                if op not in {"+", "*", "^"}:
                    raise self.fail(
                        _MEANING, span, f"'{op}' is no operator on elements", "elements are combined by + * ^"
                    )
                return terms.fold(op, (self.term(left, names), self.term(right, names)))
            case Integer(0):
                return ZERO
            case Variable("undefined"):
                return UNDEFINED
            case Integer(span=span) | Variable(span=span) | ListValue(span=span):
                raise self.fail(_MEANING, span, "a value here is made of elements of inputs, and 0")
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
            case Operation(op, left, right, span):
                return self._operation(op, self._integer(left, names), self._integer(right, names), span)
            case Conditional(condition, yes, no):
                return self._integer(yes if self._integer(condition, names) else no, names)
            case Element(span=span) | Sum(span=span) | ListValue(span=span):
                raise self.fail(_MEANING, span, "an integer is needed here")
            case _:
                assert_never(value)

    def _operation(self, op: str, left: int, right: int, span: Span) -> int:
        if op in {"/", "%"} and right == 0:
            raise self.fail(_MEANING, span, "division by 0")
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
            case "&&":
                return int(bool(left) and bool(right))
            case "||":
                return int(bool(left) or bool(right))
            case _:
                comparisons = {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right}
                comparisons |= {">": left > right, ">=": left >= right}
                return int(comparisons[op])
