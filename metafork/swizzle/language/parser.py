"""Recursive-descent parser of sketch texts; the grammar is in ``syntax``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

from metafork.ir.messages.source import Source, Span
from metafork.swizzle.language.lexer import Token, fault, joined, tokens
from metafork.swizzle.language.syntax import (
    Assign,
    Call,
    Conditional,
    Definition,
    Element,
    Elementwise,
    Expression,
    FoldCall,
    For,
    Function,
    Goal,
    If,
    InputArray,
    Integer,
    Let,
    ListValue,
    Operation,
    Option,
    Reference,
    SketchText,
    StatementLine,
    Step,
    Sum,
    Value,
    Variable,
)

_Item = TypeVar("_Item")
# Weakest first.
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%")
)  # fmt: skip
_ELEMENTWISE = (("|",), ("^",), ("&",), ("+", "-"), ("*",))
_REDUCTIONS = {"sum": "+", "product": "*", "xor": "^", "and": "&", "or": "|", "max": "max", "min": "min"}
_FOLD_OPERATORS = ("+", "*", "^", "&", "|", "max", "min")
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "^=", "&=", "|=")
_LARGEST = 2**31 - 1


def parse(source: Source) -> SketchText:
    """Parse a sketch; raises ``DiagnosticsError`` (MF0901) with the place of the first error."""
    return _Parser(source).sketch()


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = tokens(source)
        self._next = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _is(self, *texts: str) -> bool:
        return self._token.kind in {"mark", "name"} and self._token.text in texts

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _expect(self, text: str, where: str) -> Token:
        if not self._is(text):
            raise self._wrong(f"'{text}'", where)
        return self._advance()

    def _name(self, where: str) -> Token:
        if self._token.kind != "name":
            raise self._wrong("a name", where)
        return self._advance()

    def _wrong(self, wanted: str, where: str) -> Exception:
        found = self._token.text if self._token.kind == "end" else f"'{self._token.text}'"
        return fault(self._source, "MF0901", self._token.span, f"expected {wanted} {where}, found {found}")

    def _since(self, start: Span) -> Span:
        return joined(start, self._tokens[self._next - 1].span)

    def _list(self, item: Callable[[], _Item], close: str, where: str) -> tuple[_Item, ...]:
        items = [item()]
        while self._is(","):
            self._advance()
            items.append(item())
        self._expect(close, where)
        return tuple(items)

    def sketch(self) -> SketchText:
        name = PurePath(self._source.name).stem
        warp: Value | None = None
        named = False
        lines: list[Let | StatementLine | Definition | Goal] = []
        while self._token.kind != "end":
            following = self._tokens[self._next + 1]
            statement = following.kind == "mark" and following.text == ":"
            if self._is("name") and not statement:
                self._advance()
                named = self._once(named, "name")
                name = self._name("after 'name'").text
            elif self._is("warp") and not statement:
                self._advance()
                self._once(warp is not None, "warp")
                warp = self._value()
            elif self._is("let") and not statement:
                lines.append(self._let())
            elif self._is("define") and not statement:
                lines.append(self._definition())
            elif self._is("goal") and not statement:
                lines.append(self._goal())
            else:
                lines.append(self._statement())
        return SketchText(name, warp, tuple(lines))

    def _once(self, before: bool, what: str) -> bool:
        if before:
            raise fault(self._source, "MF0904", self._tokens[self._next - 1].span, f"'{what}' is given twice")
        return True

    def _distinct(self, names: list[Token], what: str) -> None:
        for number, name in enumerate(names):
            if name.text in {one.text for one in names[:number]}:
                raise fault(self._source, "MF0904", name.span, f"'{name.text}' is {what} twice")

    def _let(self) -> Let:
        start = self._advance().span
        name = self._name("after 'let'")
        self._expect("=", "after the name of a constant")
        value = self._value()
        return Let(name.text, value, self._since(start))

    def _shape(self) -> tuple[Value, ...]:
        self._expect("[", "before a shape")
        return self._list(self._value, "]", "after a shape")

    def _statement(self) -> StatementLine:
        name = self._name("at the start of a statement")
        self._expect(":", "after the name of an array")
        shape_start = self._token.span
        shape = self._shape()
        shape_span = self._since(shape_start)
        self._expect("=", "after the shape of an array")
        expression = self._expression()
        return StatementLine(name.text, shape, expression, self._since(name.span), shape_span)

    def _definition(self) -> Definition:
        start = self._advance().span
        name = self._name("after 'define'").text
        self._expect("(", "after the name of a gather")
        parameter = self._name("for the gather's argument").text
        self._expect(":", "after the gather's argument")
        source = self._shape()
        self._expect(")", "after the gather's argument")
        self._expect("->", "before the shape that a gather makes")
        shape = self._shape()
        self._expect("=", "before a gather's function")
        alternatives = [self._function()]
        while self._is("|"):
            self._advance()
            alternatives.append(self._function())
        return Definition(name, parameter, source, shape, tuple(alternatives), self._since(start))

    def _goal(self) -> Goal:
        start = self._advance().span
        name = self._name("after 'goal'").text
        if self._is("=="):
            self._advance()
        else:
            self._expect("=", "after the goal's array")
        if self._is("spec"):
            self._advance()
            return self._placed(name, self._block(), start)
        return self._placed(name, self._function() if self._is("\\") else self._array(), start)

    def _placed(self, name: str, wanted: Function | ListValue | tuple[Step, ...], start: Span) -> Goal:
        if not self._is("->"):
            return Goal(name, wanted, self._since(start))
        arrow = self._advance().span
        names = wanted.parameters if isinstance(wanted, Function) else ()
        if self._is("\\"):
            names = self._parameters()
        self._expect("out", "after '->': a goal's cells go to places of 'out'")
        self._expect("[", "after 'out'")
        place = self._value()
        self._expect("]", "after a place of 'out'")
        return Goal(name, wanted, self._since(start), Function(names, place, self._since(arrow)))

    def _block(self) -> tuple[Step, ...]:
        self._expect("{", "before the steps of a specification")
        steps: list[Step] = []
        while not self._is("}"):
            steps.append(self._step())
        self._advance()
        return tuple(steps)

    def _step(self) -> Step:
        start = self._token.span
        if self._is("for"):
            self._advance()
            variable = self._name("after 'for'").text
            self._expect("<", "after a loop's variable")
            bound = self._value()
            return For(variable, bound, self._block(), self._since(start))
        if self._is("if"):
            self._advance()
            self._expect("(", "after 'if'")
            condition = self._value()
            self._expect(")", "after a condition")
            return If(condition, self._block(), self._since(start))
        array = self._name("at the start of a step").text
        self._expect("[", "after the array of an assignment")
        indices = self._list(self._value, "]", "after the indices of an assignment")
        target = Element(array, indices, self._since(start))
        if not self._is(*_ASSIGNMENTS):
            raise self._wrong(f"one of {' '.join(_ASSIGNMENTS)}", "in an assignment")
        op = self._advance().text
        value = self._value()
        self._expect(";", "after an assignment")
        return Assign(target, op, value, self._since(start))

    def _function(self) -> Function:
        start = self._token.span
        return Function(self._parameters(), self._value(), self._since(start))

    def _parameters(self) -> tuple[str, ...]:
        self._expect("\\", "before a function's parameters")
        where = "after a function's parameters"
        names = self._list(lambda: self._name("for a function's parameter"), ".", where)
        self._distinct(list(names), "a parameter")
        return tuple(name.text for name in names)

    def _options(self) -> tuple[Option, ...]:
        if not self._is("{"):
            return ()
        self._advance()
        if self._is("}"):
            self._advance()
            return ()
        options = self._list(self._option, "}", "after options")
        for number, option in enumerate(options):
            if option.name in {one.name for one in options[:number]}:
                raise fault(self._source, "MF0904", option.span, f"the option '{option.name}' is given twice")
        return options

    def _option(self) -> Option:
        name = self._name("for an option")
        value: Value | None = None
        if self._is("="):
            self._advance()
            value = self._array() if self._is("[") else self._value()
        return Option(name.text, value, self._since(name.span))

    def _array(self) -> ListValue:
        start = self._expect("[", "before an array").span
        items = self._list(lambda: self._array() if self._is("[") else self._value(), "]", "after an array")
        return ListValue(items, self._since(start))

    def _expression(self, level: int = 0) -> Expression:
        if level == len(_ELEMENTWISE):
            return self._signed()
        left = self._expression(level + 1)
        while self._operator(_ELEMENTWISE[level]):
            op = self._advance().text
            right = self._expression(level + 1)
            left = Elementwise(op, left, right, joined(left.span, right.span))
        return left

    def _operator(self, texts: tuple[str, ...]) -> bool:
        """Say whether an operator follows, and not the ``|`` before another function of a definition."""
        return self._is(*texts) and not (self._is("|") and self._tokens[self._next + 1].text == "\\")

    def _signed(self) -> Expression:
        if not self._is("-"):
            return self._primary()
        start = self._advance().span
        inner = self._signed()
        return Elementwise("*", Integer(-1, start), inner, self._since(start))

    def _primary(self) -> Expression:
        start = self._token.span
        if self._is("["):
            return self._array()
        if self._is("\\"):
            return self._function()
        if self._is("fold"):
            return self._fold()
        if self._token.kind == "number":
            return Integer(int(self._advance().text), start)
        if self._is("("):
            return self._primary_or_group()
        hole = self._is("?")
        if hole:
            self._advance()
        name = self._name("of an array or a gather").text
        if name == "input" and not hole and not self._is("("):
            return InputArray(self._options(), self._since(start))
        options = self._options()
        if not self._is("("):
            if hole or options:
                raise self._wrong("'('", f"after '{name}'")
            return Reference(name, self._since(start))
        self._advance()
        if name == "range" and not hole:
            low = self._value()
            self._expect(",", "between the ends of a range")
            high = self._value()
            self._expect(")", "after a range")
            size = Option("first", low, low.span), Option("end", high, high.span)
            return InputArray(size, self._since(start))
        arguments = self._list(self._expression, ")", "after the arguments")
        if name in {"max", "min"} and not hole and not options and len(arguments) == 2:
            return Elementwise(name, *arguments, self._since(start))
        return Call(name, hole, options, arguments, self._since(start))

    def _fold(self) -> FoldCall:
        start = self._advance().span
        op = "+"
        if self._is("("):
            self._advance()
            if self._is(*_FOLD_OPERATORS):
                op = self._advance().text
            else:
                raise self._wrong(f"one of {' '.join(_FOLD_OPERATORS)}", "as the operator of a fold")
            self._expect(")", "after the operator of a fold")
        options = self._options()
        return FoldCall(op, options, self._primary_or_group(), self._since(start))

    def _primary_or_group(self) -> Expression:
        if not self._is("("):
            return self._primary()
        self._advance()
        inner = self._expression()
        self._expect(")", "after a parenthesis")
        return inner

    def _value(self) -> Value:
        condition = self._binary(0)
        if not self._is("?"):
            return condition
        self._advance()
        yes = self._value()
        self._expect(":", "between the branches of a condition")
        no = self._value()
        return Conditional(condition, yes, no, joined(condition.span, no.span))

    def _binary(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._operator(_LEVELS[level]):
            op = self._advance().text
            right = self._binary(level + 1)
            left = Operation(op, left, right, joined(left.span, right.span))
        return left

    def _unary(self) -> Value:
        start = self._token.span
        if self._is("-"):
            self._advance()
            inner = self._unary()
            return Operation("-", Integer(0, start), inner, self._since(start))
        if self._is("("):
            self._advance()
            inner = self._value()
            self._expect(")", "after a parenthesis")
            return inner
        if self._token.kind == "number":
            token = self._advance()
            if len(token.text) > len(str(_LARGEST)) or int(token.text) > _LARGEST:
                raise fault(self._source, "MF0901", token.span, f"numbers go up to {_LARGEST}")
            return Integer(int(token.text), token.span)
        name = self._name("or a number in a value")
        if name.text in _REDUCTIONS and self._is("("):
            variable = [token.text if token.kind == "mark" else token.kind for token in self._tokens[self._next :][1:3]]
            if name.text not in {"max", "min"} or variable == ["name", "<"]:
                return self._reduction(_REDUCTIONS[name.text], start)
            self._advance()
            left = self._value()
            self._expect(",", f"between the operands of '{name.text}'")
            right = self._value()
            self._expect(")", f"after the operands of '{name.text}'")
            return Operation(name.text, left, right, self._since(start))
        if self._is("["):
            self._advance()
            indices = self._list(self._value, "]", "after indices")
            return Element(name.text, indices, self._since(start))
        return Variable(name.text, name.span)

    def _reduction(self, op: str, start: Span) -> Sum:
        self._advance()
        variable = self._name("that a sum runs over").text
        self._expect("<", "after the variable of a sum")
        bound = self._value()
        condition = None
        if self._is(","):
            self._advance()
            condition = self._value()
        self._expect(")", "after the range of a sum")
        # The body of a sum is a product: sum(i < 3) a[i] * b[i] + c is (sum ...) + c.
        return Sum(op, variable, bound, condition, self._binary(len(_LEVELS) - 1), self._since(start))
