"""From a parsed sketch to a problem: constants, shapes, gathers and holes by name, and the goal.

Swizzleflow's names for holes and loads are understood beside our own, so its sketches need few changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeVar, assert_never

import numpy as np

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source, Span
from metafork.swizzle.grammar.gathers import NAMED_GATHERS
from metafork.swizzle.grammar.levels import LEVELS
from metafork.swizzle.grammar.sketch import Sketch
from metafork.swizzle.language.goals import goal_terms, has_elements
from metafork.swizzle.language.lexer import fault
from metafork.swizzle.language.names import ALIASES, OPTION_NAMES
from metafork.swizzle.language.parser import parse
from metafork.swizzle.language.syntax import (
    Call,
    Conditional,
    Definition,
    Element,
    Elementwise,
    Expression,
    FoldCall,
    Function,
    Goal,
    InputArray,
    Integer,
    Let,
    ListValue,
    Operation,
    Option,
    Reference,
    StatementLine,
    Sum,
    Value,
    Variable,
    chain_of,
)
from metafork.swizzle.model.domains import Bools, Ints, OutOfDomainError, check_cases, defined
from metafork.swizzle.model.index import Binary, Index, Name, Number, binary, choose, compare
from metafork.swizzle.model.problem import Case, Problem, Read, Shape
from metafork.swizzle.model.specification import SketchError, shape_text

_Made = TypeVar("_Made")
SYNTAX, NAME, SHAPE, MEANING = "MF0901", "MF0902", "MF0903", "MF0904"


def load(source: Source, constants: Mapping[str, int] | None = None, level: int | None = None) -> Problem:
    """Return the problem of a sketch text; ``constants`` replace those of its ``let`` lines.

    ``level`` replaces the restriction level of every hole.
    Raises ``DiagnosticsError``: MF0901 syntax, MF0902 names, MF0903 shapes, MF0904 what makes no sense.
    """
    try:
        return _Elaboration(source, dict(constants or {}), level).problem()
    except RecursionError as error:
        raise fault(source, SYNTAX, Span(1, 1, 1, 1, 0, 0), "something here is nested too deeply to be read") from error


class _Elaboration:
    def __init__(self, source: Source, overrides: dict[str, int], level: int | None) -> None:
        self._source, self._overrides, self._level = source, overrides, level
        self._text = parse(source)
        self._constants: dict[str, int] = {}
        self._definitions: dict[str, Definition] = {}
        self._sketch = Sketch(self._text.name)
        self._temporaries = 0
        # Where each operation of an index stands, for errors of its domain.
        self._places: dict[Index, Span] = {}

    def problem(self) -> Problem:
        unknown = set(self._overrides) - {line.name for line in self._text.lines if isinstance(line, Let)}
        if unknown:
            raise self._fail(MEANING, self._start(), f"the sketch has no constant '{min(unknown)}' to set")
        for line in self._text.lines:
            match line:
                case Let(name, value, span):
                    self._once(name, self._constants, span)
                    self._constants[name] = self._overrides.get(name, self._integer(value))
                case Definition(name, span=span):
                    self._once(name, self._definitions, span)
                    self._definitions[name] = line
                case StatementLine():
                    self._statement(line)
                case Goal():
                    self._goal(line)
                case _:
                    assert_never(line)
        if self._text.warp is not None:
            self._sketch.warp = self._integer(self._text.warp)
        return self._guarded(self._start(), self._sketch.problem)

    def _once(self, name: str, known: Mapping[str, object], span: Span) -> None:
        if name in known:
            raise self._fail(MEANING, span, f"'{name}' is defined twice", "the first definition would be lost")

    def _start(self) -> Span:
        return Span(1, 1, 1, 1, 0, 0)

    def _fail(self, code: str, span: Span, message: str, way_out: str = "") -> DiagnosticsError:
        return fault(self._source, code, span, message, way_out)

    def _guarded(self, span: Span, make: Callable[[], _Made]) -> _Made:
        try:
            return make()
        except SketchError as error:
            missing = error.reason.startswith("there is no array")
            code = NAME if missing else SHAPE if "shape" in error.reason else MEANING
            raise self._fail(code, span, error.reason, error.way_out) from error

    def _integer(self, value: Value) -> int:
        index = self._index(value, {})
        try:
            return int(defined(index, {}, np.ones(1, dtype=bool))[0])
        except OutOfDomainError as error:
            raise self._out_of_domain(error, value.span) from error

    def _out_of_domain(self, error: OutOfDomainError, span: Span, shape: Shape = ()) -> DiagnosticsError:
        at = f" at {shape_text(tuple(map(int, np.unravel_index(error.cell, shape))))}" if shape else ""
        place = self._places.get(error.operation, span)
        return self._fail(MEANING, place, error.reason + at, "guard it, as in: j > 0 ? x[i / j] : 0" if shape else "")

    def _integers(self, value: Value | None, span: Span) -> list[int]:
        if not isinstance(value, ListValue):
            raise self._fail(MEANING, span, "a list of numbers is needed here", "as in: over=[0, 2]")
        return [self._integer(item) for item in value.items]

    def _index(self, value: Value, names: Mapping[str, Index]) -> Index:
        match value:
            case Integer(number):
                return Number(number)
            case Variable(name, span):
                if name in names:
                    return names[name]
                if name in self._constants:
                    return Number(self._constants[name])
                known = ", ".join([*names, *self._constants]) or "none"
                raise self._fail(
                    NAME, span, f"'{name}' is neither an index nor a constant here", f"known names: {known}"
                )
            case Operation(op, left, right, span):
                one, two = self._index(left, names), self._index(right, names)
                # The types of operators below are literals: for mypy, being in a set says nothing about a string.
                if op in {"/", "%"} and isinstance(two, Number) and two.value <= 0:
                    # Whether this is computed at all is seen cell by cell.
                    made: Index = Binary(op, one, two)  # type: ignore[arg-type]  # as said above
                elif op in {"max", "min"}:
                    return choose(compare(">" if op == "max" else "<", one, two), one, two)
                elif op in {"+", "-", "*", "/", "%", "^", "&", "|"}:
                    made = binary(op, one, two)  # type: ignore[arg-type]  # as said above
                else:
                    return compare(op, one, two)  # type: ignore[arg-type]  # as said above
                self._places.setdefault(made, span)
                return made
            case Conditional(condition, yes, no):
                return choose(self._index(condition, names), self._index(yes, names), self._index(no, names))
            case Element(array, _, span):
                raise self._fail(
                    MEANING, span, f"an index cannot read the array '{array}': swizzles do not depend on data"
                )
            case Sum(span=span) | ListValue(span=span):
                raise self._fail(MEANING, span, "an index is needed here")
            case _:
                assert_never(value)

    def _shape(self, shape: tuple[Value, ...]) -> Shape:
        return tuple(self._integer(length) for length in shape)

    def _statement(self, line: StatementLine) -> None:
        shape = self._shape(line.shape)
        self._guarded(line.shape_span, lambda: self._sketch.require_room(line.name, shape))
        made = self._expression(line.expression, line.name, shape)
        found = self._sketch.shape(made)
        if found != shape:
            raise self._fail(
                SHAPE,
                line.shape_span,
                f"'{line.name}' is declared with the shape {shape_text(shape)}, and what it is given has the shape "
                f"{shape_text(found)}",
            )
        if made != line.name:
            axes = tuple(Name(f"d{axis}") for axis in range(len(shape)))
            self._guarded(
                line.span,
                lambda: self._sketch.gather(line.name, shape, [made], [Case(None, Read(0, axes))], "copy"),
            )

    def _inner(self, expression: Expression, shape: Shape | None) -> str:
        """Elaborate an argument under a name of its own, unless it has one."""
        if isinstance(expression, Reference):
            self._guarded(expression.span, lambda: self._sketch.shape(expression.name))
            return expression.name
        self._temporaries += 1
        return self._expression(expression, f"t{self._temporaries}.", shape)

    def _expression(self, expression: Expression, name: str, shape: Shape | None) -> str:
        match expression:
            case Reference():
                return self._inner(expression, shape)
            case InputArray(options, span):
                return self._guarded(span, lambda: self._input(name, self._needed(shape, span), options, span))
            case ListValue(span=span):
                return self._guarded(span, lambda: self._literal(name, self._needed(shape, span), expression))
            case Function(span=span):
                return self._function(name, self._needed(shape, span), expression)
            case Elementwise(span=span):
                return self._elementwise(name, shape, expression)
            case Integer(span=span):
                raise self._fail(MEANING, span, "a number alone is no array", "an array of constants is a list: [1, 2]")
            case FoldCall(op, options, argument, span):
                values = self._options(options, {"axes"}, span)
                axes = self._integer(values["axes"]) if "axes" in values else 1
                inner = self._inner(argument, None)
                return self._guarded(span, lambda: self._sketch.fold(name, inner, op, axes=axes))
            case Call(span=span):
                if expression.hole:
                    return self._guarded(span, lambda: self._hole(name, shape, expression))
                return self._guarded(span, lambda: self._gather(name, shape, expression))
            case _:
                assert_never(expression)

    def _elementwise(self, name: str, shape: Shape | None, expression: Elementwise) -> str:
        op = "+" if expression.op == "-" else expression.op
        operands = [
            one.value if isinstance(one, Integer) and sign > 0 else self._signed(one, sign, shape)
            for sign, one in chain_of(expression, op)
        ]
        return self._guarded(expression.span, lambda: self._sketch.elementwise(name, operands, op))

    def _signed(self, operand: Expression, sign: int, shape: Shape | None) -> str | int:
        """Elaborate an operand of a sum; one that is subtracted is multiplied by -1."""
        if isinstance(operand, Integer):
            return -operand.value
        array = self._inner(operand, shape)
        if sign > 0:
            return array
        self._temporaries += 1
        name = f"t{self._temporaries}."
        return self._guarded(operand.span, lambda: self._sketch.elementwise(name, (-1, array), "*"))

    def _needed(self, shape: Shape | None, span: Span) -> Shape:
        if shape is None:
            raise self._fail(SHAPE, span, "the shape of this is not known here", "give it a statement of its own")
        return shape

    def _options(self, options: tuple[Option, ...], known: set[str], span: Span) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for option in options:
            if option.name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise self._fail(NAME, option.span, f"there is no option '{option.name}' here", f"options: {listed}")
            values[option.name] = Integer(1, span) if option.value is None else option.value
        return values

    def _input(self, name: str, shape: Shape, options: tuple[Option, ...], span: Span) -> str:
        values = self._options(options, {"step", "shared", "first", "end"}, span)
        if "first" in values:
            size = self._integer(values["end"]) - self._integer(values["first"])
            if size != prod(shape):
                raise SketchError(f"a range of {size} symbols does not fill the shape {shape_text(shape)} of '{name}'")
        step = self._integer(values["step"]) if "step" in values else None
        return self._sketch.input(name, shape, step=step, shared="shared" in values)

    def _literal(self, name: str, shape: Shape, value: ListValue) -> str:
        terms = goal_terms(self._sketch, value, (prod(shape),), self._constants, self._source)
        return self._sketch.literal(name, shape, terms)

    def _function(self, name: str, shape: Shape, function: Function, alias: tuple[str, str] | None = None) -> str:
        arguments, cases = self._cases(shape, function, alias)
        return self._guarded(function.span, lambda: self._sketch.gather(name, shape, arguments, cases, "function"))

    def _cases(self, shape: Shape, function: Function, alias: tuple[str, str] | None) -> tuple[list[str], list[Case]]:
        if len(function.parameters) != len(shape):
            raise self._fail(
                SHAPE,
                function.span,
                f"a function of {len(function.parameters)} indices cannot fill the shape {shape_text(shape)}",
            )
        names: dict[str, Index] = {name: Name(f"d{axis}") for axis, name in enumerate(function.parameters)}
        arguments: list[str] = []

        grids = _grids(shape)

        def leaves(value: Value, guard: Index | None, here: Bools) -> list[Case]:
            match value:
                case Conditional(condition, yes, no):
                    test = self._index(condition, names)
                    both = test if guard is None else compare("&&", guard, test)
                    holds: Bools = defined(test, grids, here) != 0
                    return leaves(yes, both, here & holds) + leaves(no, guard, here & ~holds)
                case Integer(0):
                    return [Case(guard, None)]
                case Integer() | Variable() | Operation() if not has_elements(value):
                    # Integers as elements: an array of constants, read at the cell itself.
                    spelled = np.where(here, defined(self._index(value, names), grids, here), 0)
                    arguments.append(self._constants_of(value.span, shape, spelled))
                    return [
                        Case(guard, Read(len(arguments) - 1, tuple(Name(f"d{axis}") for axis in range(len(shape)))))
                    ]
                case Element(array, indices, span):
                    actual = alias[1] if alias is not None and array == alias[0] else array
                    self._guarded(span, lambda: self._sketch.shape(actual))
                    if actual not in arguments:
                        arguments.append(actual)
                    at = tuple(self._index(index, names) for index in indices)
                    return [Case(guard, Read(arguments.index(actual), at))]
                case _:
                    raise self._fail(MEANING, value.span, "a gather gives an element of an array, or an integer")

        try:
            cases = leaves(function.body, None, np.ones(prod(shape), dtype=bool))
            check_cases(cases, shape)
        except OutOfDomainError as error:
            raise self._out_of_domain(error, function.span, shape) from error
        return arguments, cases

    def _constants_of(self, span: Span, shape: Shape, values: Ints) -> str:
        self._temporaries += 1
        name = f"t{self._temporaries}."
        return self._guarded(span, lambda: self._sketch.constant(name, shape, values))

    def _gather(self, name: str, shape: Shape | None, call: Call) -> str:
        definition = self._definitions.get(call.name)
        if definition is not None:
            if len(definition.alternatives) > 1:
                raise SketchError(f"'{call.name}' has several functions, so it is a hole", f"write ?{call.name}(...)")
            argument = self._defined_argument(definition, call)
            out = self._shape(definition.shape)
            return self._function(name, out, definition.alternatives[0], (definition.parameter, argument))
        if call.name == "shared":
            self._options(call.options, set(), call.span)
            if len(call.arguments) != 1:
                raise SketchError(f"'shared' takes one array, not {len(call.arguments)}")
            return self._sketch.share(name, self._inner(call.arguments[0], shape))
        if call.name not in NAMED_GATHERS:
            known = ", ".join([*NAMED_GATHERS, "shared", *self._definitions])
            raise self._fail(NAME, call.span, f"there is no gather '{call.name}'", f"gathers: {known}")
        values = {
            option: value if isinstance(value, ListValue) else self._integer(value)
            for option, value in self._options(call.options, {"group", "r", "l"}, call.span).items()
        }
        numbers = {
            option: [self._integer(item) for item in value.items] if isinstance(value, ListValue) else [value]
            for option, value in values.items()
        }
        arguments = [self._inner(argument, None) for argument in call.arguments]
        shapes = [self._sketch.shape(argument) for argument in arguments]
        out, cases = NAMED_GATHERS[call.name](shapes, self._needed(shape, call.span), numbers)
        return self._sketch.gather(name, out, arguments, cases, call.name)

    def _defined_argument(self, definition: Definition, call: Call) -> str:
        if len(call.arguments) != 1:
            raise SketchError(f"'{call.name}' takes one array, not {len(call.arguments)}")
        argument = self._inner(call.arguments[0], self._shape(definition.source))
        wanted, found = self._shape(definition.source), self._sketch.shape(argument)
        if wanted != found:
            raise SketchError(
                f"'{call.name}' takes the shape {shape_text(wanted)}, and '{argument}' has the shape "
                f"{shape_text(found)}"
            )
        return argument

    def _hole(self, name: str, shape: Shape | None, call: Call) -> str:
        definition = self._definitions.get(call.name)
        if definition is not None:
            argument = self._defined_argument(definition, call)
            out = self._shape(definition.shape)
            choices = []
            for number, function in enumerate(definition.alternatives):
                read, cases = self._cases(out, function, (definition.parameter, argument))
                if set(read) - {argument}:
                    raise SketchError(f"the functions of '?{call.name}' read '{definition.parameter}' only")
                choices.append((f"{call.name}_{number}", cases))
            return self._sketch.choose(name, argument, out, choices)
        kind, level = ALIASES.get(call.name, (call.name, 3))
        if kind not in OPTION_NAMES:
            known = ", ".join([*OPTION_NAMES, *ALIASES, *self._definitions])
            raise self._fail(NAME, call.span, f"there is no hole '?{call.name}'", f"holes: {known}")
        if len(call.arguments) != 1:
            raise SketchError(f"a hole takes one array, not {len(call.arguments)}")
        values = self._options(call.options, OPTION_NAMES[kind], call.span)
        argument = self._inner(call.arguments[0], None)
        return self._built_hole(name, shape, call, kind, argument, values, level)

    def _built_hole(
        self,
        name: str,
        shape: Shape | None,
        call: Call,
        kind: str,
        argument: str,
        values: dict[str, Value],
        level: int,
    ) -> str:  # fmt: skip
        sketch, span = self._sketch, call.span

        def given(options: tuple[str, ...]) -> str | None:
            present = [option for option in options if option in values]
            if len(present) > 1:
                listed = "' and '".join(present)
                raise self._fail(MEANING, span, f"'{listed}' say the same of '?{call.name}'", "give one of them")
            return present[0] if present else None

        def number(*options: str, default: int | None = None) -> int:
            option = given(options)
            if option is not None:
                return self._integer(values[option])
            if default is None:
                raise self._fail(MEANING, span, f"'?{call.name}' needs the option '{options[0]}'")
            return default

        def numbers(*options: str) -> list[int] | None:
            option = given(options)
            return None if option is None else self._integers(values[option], span)

        level = number("level", default=level) if self._level is None else self._level
        if level not in LEVELS:
            raise self._fail(MEANING, span, f"restriction levels are 0 to 4, not {level}")
        row = {"row_xforms": 1, "row_rots": 1, "col_xforms": 0, "col_rots": 0}.get(call.name)
        match kind:
            case "transform":
                axis = number("axis", "out", default=row)
                return sketch.transform(
                    name, argument, shape=shape, axis=axis, level=level, outside="outside" in values,
                    secondary=number("secondary", "second", default=None if row is None else 1 - row),
                    primary=number("primary", "main", default=axis),
                )  # fmt: skip
            case "rotate":
                return sketch.rotate(name, argument, shape=shape, axis=number("axis", "main", default=row), level=level)
            case "exchange":
                return sketch.exchange(name, argument, axis=number("axis"))
            case "shift":
                return sketch.shift(name, argument, axis=number("axis"))
            case "select":
                out = self._needed(shape, span)
                axis = number("axis", default=len(out) - 1)
                return sketch.select(
                    name, argument, shape=out, axis=axis, over=numbers("over", "dims"), level=level,
                    constants=numbers("constants", "consts"),
                )  # fmt: skip
            case "keep":
                flat = numbers("where", "restrict") or []
                if len(flat) % 2:
                    raise self._fail(MEANING, span, "'where' lists pairs of an axis and an index on it")
                where = list(zip(flat[::2], flat[1::2], strict=True))
                return sketch.keep(
                    name, argument, where=where, over=numbers("over"), level=level,
                    constants=numbers("constants", "consts"),
                )  # fmt: skip
            case "accumulate":
                return sketch.accumulate(
                    name, argument, count=number("count"), level=level, constants=numbers("constants")
                )  # fmt: skip
            case _:
                first = number("first", "in_lim", default=0)
                return sketch.append_vector(name, argument, first=first or None, mux="mux" in values)

    def _goal(self, line: Goal) -> None:
        shape = self._guarded(line.span, lambda: self._sketch.shape(line.name))
        terms = self._guarded(
            line.span,
            lambda: goal_terms(self._sketch, line.wanted, shape, self._constants, self._source, line.name),
        )
        place = None if line.place is None else self._place(line.place, shape)
        span = line.span if line.place is None else line.place.span
        self._guarded(span, lambda: self._sketch.goal(line.name, terms, place))

    def _place(self, function: Function, shape: Shape) -> Index:
        """Return a place over ``d0, d1, …``; ``lane`` is the number of the thread, the first axis running fastest."""
        if function.parameters and len(function.parameters) != len(shape):
            raise self._fail(
                SHAPE,
                function.span,
                f"a place over {len(function.parameters)} indices is none in the shape {shape_text(shape)}",
            )
        warp = 1 if self._text.warp is None else self._integer(self._text.warp)
        lane: Index = Number(0)
        for axis, length in reversed(list(enumerate(shape[:warp]))):
            lane = binary("+", binary("*", lane, Number(length)), Name(f"d{axis}"))
        names: dict[str, Index] = {name: Name(f"d{axis}") for axis, name in enumerate(function.parameters)}
        place = self._index(function.body, {"lane": lane, **names})
        try:
            defined(place, _grids(shape), np.ones(prod(shape), dtype=bool))
        except OutOfDomainError as error:
            raise self._out_of_domain(error, function.span, shape) from error
        return place


def _grids(shape: Shape) -> dict[str, Ints]:
    return {f"d{axis}": grid.ravel() for axis, grid in enumerate(np.indices(shape))}
