"""Recursive-descent parser of sketch texts; the grammar is in ``syntax``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

from metafork.ir.source import Source, Span
from metafork.swizzle.language.lexer import Token, fault, joined, tokens
from metafork.swizzle.language.syntax import (
    Assign,
    Call,
    Conditional,
    Definition,
    Element,
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
    Product,
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
_LEVELS = (("||",), ("&&",), ("^",), ("==", "!="), ("<", "<=", ">", ">="), ("+", "-"), ("*", "/", "%"))
_REDUCTIONS = {"sum": "+", "xor": "^"}
_FOLD_OPERATORS = "+*^&|"


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
        lines: list[Let | StatementLine | Definition | Goal] = []
        while self._token.kind != "end":
            following = self._tokens[self._next + 1]
            statement = following.kind == "mark" and following.text == ":"
            if self._is("name") and not statement:
                self._advance()
                name = self._name("after 'name'").text
            elif self._is("warp") and not statement:
                self._advance()
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
            return Goal(name, self._block(), self._since(start))
        wanted = self._function() if self._is("\\") else self._array()
        return Goal(name, wanted, self._since(start))

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
        if not self._is("=", "+=", "^="):
            raise self._wrong("'=', '+=' or '^='", "in an assignment")
        op = self._advance().text
        value = self._value()
        self._expect(";", "after an assignment")
        return Assign(target, op, value, self._since(start))

    def _function(self) -> Function:
        start = self._expect("\\", "before a function's parameters").span
        names = [self._name("for a function's parameter").text]
        while self._is(","):
            self._advance()
            names.append(self._name("for a function's parameter").text)
        self._expect(".", "after a function's parameters")
        return Function(tuple(names), self._value(), self._since(start))

    def _options(self) -> tuple[Option, ...]:
        if not self._is("{"):
            return ()
        self._advance()
        if self._is("}"):
            self._advance()
            return ()
        return self._list(self._option, "}", "after options")

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

    def _expression(self) -> Expression:
        left = self._primary()
        while self._is("*"):
            self._advance()
            right = self._primary()
            left = Product(left, right, joined(left.span, right.span))
        return left

    def _primary(self) -> Expression:
        start = self._token.span
        if self._is("["):
            return self._array()
        if self._is("\\"):
            return self._function()
        if self._is("fold"):
            return self._fold()
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
        return Call(name, hole, options, arguments, self._since(start))

    def _fold(self) -> FoldCall:
        start = self._advance().span
        op = "+"
        if self._is("("):
            self._advance()
            if self._token.kind == "mark" and self._token.text in _FOLD_OPERATORS:
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
        self._expect(")", "after what is folded")
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
        while self._is(*_LEVELS[level]):
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
            return Integer(int(token.text), token.span)
        name = self._name("or a number in a value")
        if name.text in _REDUCTIONS and self._is("("):
            return self._reduction(_REDUCTIONS[name.text], start)
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
