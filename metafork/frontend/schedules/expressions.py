"""Expressions: from syntax to ``metafork.ir.program``, with names resolved and C's types (section 6.5 of C11).

What is refused is reported with the span of the culprit; the operands of one operator are all looked at, so that
several faults of one expression are reported in one run.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from msgspec.structs import replace

from metafork.frontend.host.known_names import OF_HEADERS
from metafork.frontend.schedules.classification import CLASSIFICATIONS, classified
from metafork.frontend.schedules.moved_arrays import refuse_moved
from metafork.frontend.schedules.places import PlaceBuilder, count, is_zero
from metafork.frontend.schedules.symbols import (
    ArraySymbol,
    PointedSymbol,
    ScalarSymbol,
    UnusableSymbol,
    ValueSymbol,
)
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.constants import constant, named_constant, why_no_constant
from metafork.frontend.text.other_languages.words import power, unknown_name
from metafork.frontend.text.reporter import RefusedError
from metafork.frontend.text.vocabulary import CONVERSIONS, MATH_FUNCTIONS
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.messages.source import Span

_INTEGER_OPERATORS = frozenset({"%", "&", "|", "^", "<<", ">>"})


class ExpressionBuilder(PlaceBuilder):
    """Builds expressions of ``metafork.ir.program``."""

    def build(self, expression: syntax.Expression) -> ir.Expr:
        """Return the expression; raises ``RefusedError`` after reporting what is wrong with it."""
        if (number := self.complex.scalar(expression)) is not None:
            return number
        match expression:
            case syntax.Name(name=name, span=span, uncertain=uncertain):
                if uncertain:
                    raise self._reporter.refuse("MF0008", span, f"`{name}` may be a macro")
                return self._name(name, span)
            case syntax.Constant(text=text, span=span):
                value = constant(text, span)
                if value is None:
                    raise self._reporter.refuse("MF0314", span, why_no_constant(text))
                return value
            case syntax.String(span=span):
                raise self._reporter.refuse("MF0215", span, "a string stands in a schedule")
            case syntax.Prefix():
                return self._prefix(expression)
            case syntax.Postfix():
                return self._assigned(expression)
            case syntax.Infix(op="&&" | "||" as op, left=left, right=right, span=span):
                return self._logical(op, left, right, span)
            case syntax.Infix(op="==" | "!=" as op, left=left, right=right, span=span) if _is_null(right):
                return self._compared(op, left, right, span)
            case syntax.Infix(op="==" | "!=" as op, left=left, right=right, span=span) if _is_null(left):
                return self._compared(op, right, left, span)
            case syntax.Infix(op=op, left=left, right=right, span=span):
                if op == "*" and isinstance(right, syntax.Prefix) and right.op == "*":
                    self._refuse_power(left, right)
                first, second = self._all(left, right)
                if op in _INTEGER_OPERATORS:
                    self.require_integers(op, (first, second), span)
                return ir.binary(op, first, second, span)
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise, span=span):
                return self.choice(condition, lambda: self.build(then), lambda: self.build(otherwise), span)
            case syntax.Assignment():
                return self._assigned(expression)
            case syntax.Comma(span=span):
                raise self._reporter.refuse("MF0214", span, "a comma operator stands in a schedule")
            case syntax.Invocation():
                return self._call(expression)
            case syntax.Subscript():
                return self.element(expression)
            case syntax.Member():
                return self.member(expression)
            case syntax.Conversion(type=type_, operand=operand, span=span):
                target = self.named_type(type_)
                return ir.Cast(target, self.build(operand), span)
            case syntax.Literal(type=type_, braces=braces, span=span):
                (item,) = braces.items if len(braces.items) == 1 else (None,)
                if item is None or isinstance(item, syntax.Braces | syntax.Designated):
                    self.named_type(type_)  # reports a structure
                    raise self._reporter.refuse("MF0218", span, f"{syntax.COMPOUND_LITERAL} is not supported here")
                return ir.Cast(self.named_type(type_), self.build(item), span)
            case syntax.SizeOfType(type=type_, span=span):
                return ir.IntConst(self.named_type(type_).size, ScalarType.UNSIGNED_LONG, span)
            case syntax.Unsupported(what=what, span=span):
                if not what:  # reported where it was parsed
                    raise RefusedError
                raise self._reporter.refuse("MF0218", span, f"{what} is not supported in a schedule")

    def _compared(self, op: str, value: syntax.Expression, null: syntax.Expression, span: Span) -> ir.Expr:
        """Return whether something is 0, or not: of a number or a pointer."""
        return ir.binary(op, self.condition(value), ir.IntConst(0, span=null.span), span)

    def _refuse_power(self, left: syntax.Expression, right: syntax.Prefix) -> None:
        """Refuse ``x ** y``, to C a product with what a pointer leads to, where ``y`` is no pointer."""
        start = right.span.start
        scalars = (self._resolve(name) for name in syntax.names_in(right.operand))
        pointing = any(one is not None and not isinstance(one, ScalarSymbol | ValueSymbol) for one in scalars)
        if pointing or self._reporter.text(start - 1, start + 1) != "**":
            return
        span = replace(right.span, column=right.span.column - 1, start=start - 1, end=start + 1)
        span = replace(span, end_line=span.line, end_column=span.column + 2)
        base, exponent = (self._reporter.written(one.span) for one in (left, right.operand))
        raise self._reporter.advise("MF0010", span, power(base, exponent))

    def condition(self, expression: syntax.Expression) -> ir.Expr:
        """Return an expression of which only matters whether it is 0; raises ``RefusedError``."""
        match expression:
            case syntax.Invocation() if (expected := _expected(expression)) is not None:
                return self.condition(expected)
            case syntax.Prefix(op="!", operand=syntax.Prefix(op="!", operand=inner)):
                return self.condition(inner)
            case syntax.Ternary(condition=test, then=then, otherwise=other, span=span) if self._is_place(then):
                if _is_null(other):  # a place in an array is not null
                    return self.condition(test)
                return self.choice(test, lambda: self.condition(then), lambda: self.condition(other), span)
            case syntax.Infix(op="+", span=span) if self._is_place(expression):
                return ir.IntConst(1, span=span)
            case syntax.Invocation(callee=syntax.Name(name=name), arguments=(argument,), span=span) if self._classifies(
                name
            ):
                operand = self.build(argument)
                if operand.type.floating:
                    return classified(name, operand, span)
                message = f"`{name}` has an operand of type `{operand.type.spelling}`"
                way_out = f"give `{name}` a floating-point number."
                raise self._reporter.refuse("MF0206", argument.span, message, way_out=way_out)
            case syntax.Name(name=name, span=span) if (declared := self._pointer(name)) is not None:
                given = self.given(name)
                if given is not None:
                    return replace(given, span=span)
                message = f"the schedule asks whether the pointer `{name}` is null"
                reason = "the device has its own memory, where pointers of the host lead nowhere."
                flag = f"has_{name}" if f"has_{name}" not in self._visible() else f"use_{name}"
                way_out = (
                    f"hand over a flag that says whether there is one, `int {flag}`, and ask for that; an extent may "
                    f"ask for it, too: `#pragma metafork extents({name}[{flag} ? n : 0])`."
                )
                related = ((declared, "declared here"),)
                raise self._reporter.refuse("MF0201", span, message, reason=reason, way_out=way_out, related=related)
        return self.build(expression)

    def _is_place(self, expression: syntax.Expression) -> bool:
        """Say whether an expression is a pointer into an array: ``a + i``, ``a[i] + k`` of two dimensions."""
        indices = 0
        while isinstance(expression, syntax.Infix | syntax.Subscript):
            indices += isinstance(expression, syntax.Subscript)
            expression = expression.base if isinstance(expression, syntax.Subscript) else expression.left
        symbol = self._resolve(expression.name) if isinstance(expression, syntax.Name) else None
        return isinstance(symbol, ArraySymbol) and indices < len(symbol.extents) and not symbol.array.scalar

    def _pointer(self, name: str) -> Span | None:
        """Return where a pointer is declared, ``None`` for any other name."""
        if (known := self.given(name)) is not None:
            return known.span
        match self._resolve(name):
            case ArraySymbol(array=array, whole=whole) if not array.scalar and not whole:
                return array.span
            case UnusableSymbol(code="MF0201", span=span):
                return span
            case _:
                return None

    def _classifies(self, name: str) -> bool:
        return name in CLASSIFICATIONS and name not in self.functions and self._resolve(name) is None

    def choice(
        self,
        condition: syntax.Expression,
        then: Callable[[], ir.Expr],
        otherwise: Callable[[], ir.Expr],
        span: Span,
    ) -> ir.Expr:
        """Return one of two values; what must be done ahead of one of them is done where it is the one."""
        ((test, _), (yes, first), (no, second)) = self._each(lambda: self.condition(condition), then, otherwise)
        type_ = common_type(yes.type, no.type)
        if not first and not second:
            return ir.Conditional(test, yes, no, type_, span)
        chosen = ir.Var(self.fresh("chosen"), type_, span)
        self.ahead.append(ir.Declare(chosen.name, type_, None, span))
        branches = [(*early, ir.Assign(chosen, "", value, span)) for early, value in ((first, yes), (second, no))]
        self.ahead.append(ir.If(test, branches[0], branches[1], span))
        return chosen

    def _logical(self, op: str, left: syntax.Expression, right: syntax.Expression, span: Span) -> ir.Expr:
        ((first, _), (second, early)) = self._each(lambda: self.condition(left), lambda: self.condition(right))
        if not early:
            return ir.binary(op, first, second, span)
        holds = ir.Var(self.fresh("holds"), ir.INT, span)
        truth = [ir.binary("!=", value, ir.IntConst(0), span) for value in (first, second)]
        self.ahead.append(ir.Declare(holds.name, ir.INT, truth[0], span))
        test = holds if op == "&&" else ir.unary("!", holds, span)
        self.ahead.append(ir.If(test, (*early, ir.Assign(holds, "", truth[1], span)), (), span))
        return holds

    def _each(self, *builds: Callable[[], ir.Expr]) -> tuple[tuple[ir.Expr, tuple[ir.Stmt, ...]], ...]:
        """Build values, of which all but the first are evaluated under a condition, with what comes ahead of those."""
        built: list[tuple[ir.Expr, tuple[ir.Stmt, ...]]] = []
        for number, build in enumerate(builds):
            before = len(self.ahead)
            try:
                value = build()
            except RefusedError:
                continue
            early: tuple[ir.Stmt, ...] = ()
            if number:
                early = tuple(self.ahead[before:])
                del self.ahead[before:]
            built.append((value, early))
        if len(built) != len(builds):
            raise RefusedError
        return tuple(built)

    def _assigned(self, expression: syntax.Assignment | syntax.Prefix | syntax.Postfix) -> ir.Expr:
        """Return the value of an assignment to a scalar, ``++`` or ``--``, which are done ahead.

        C leaves open in which order the rest of an expression reads the scalar, so that nothing else there may.
        """
        refuse_moved(self._reporter, self._resolve, expression)
        update = self.assignment(expression)
        if update is None:
            span, op = expression.span, expression.op
            what = f"an assignment (`{op}`)" if isinstance(expression, syntax.Assignment) else f"`{op}`"
            message = f"{what} of something that is no scalar of the schedule stands inside an expression"
            raise self._reporter.refuse("MF0213", span, message)
        variable = update.target
        assert isinstance(variable, ir.Var)
        if not isinstance(expression, syntax.Postfix):
            self.ahead.append(update)
            return variable
        before = ir.Var(self.fresh("value"), variable.type, expression.span)
        self.ahead += [ir.Declare(before.name, before.type, variable, expression.span), update]
        return before

    def _name(self, name: str, span: Span) -> ir.Expr:
        symbol = self.symbol(name, span)
        if symbol is None:
            return named_constant(name, span)
        if isinstance(symbol, ScalarSymbol) and symbol.number is not None:
            return ir.IntConst(symbol.number, symbol.type, span)
        if isinstance(symbol, ScalarSymbol):
            return ir.Var(symbol.name, symbol.type, span)
        if isinstance(symbol, ValueSymbol):
            return symbol.value
        if isinstance(symbol, PointedSymbol):
            message = f"the pointer `{name}` stands without `*`"
            raise self._reporter.refuse("MF0201", span, message, related=((symbol.span, "declared here"),))
        assert isinstance(symbol, ArraySymbol)
        if symbol.array.scalar:
            return ir.Element(symbol.array.name, (ir.IntConst(0),), symbol.array.element, span)
        if symbol.whole:
            raise self._reporter.refuse("MF0205", span, f"the structure `{name}` stands without a member")
        message = f"the array `{name}` stands without {count(len(symbol.extents), 'index')}"
        raise self._reporter.refuse("MF0302", span, message, related=((symbol.array.span, "declared here"),))

    def _prefix(self, expression: syntax.Prefix) -> ir.Expr:
        span = expression.span
        match expression.op:
            case "&":
                raise self._reporter.refuse("MF0202", span, "an address is taken in a schedule")
            case "*":
                return self.element(expression)
            case "++" | "--":
                return self._assigned(expression)
            case "sizeof":
                return self._size(expression.operand, span)
        operand = (self.condition if expression.op == "!" else self.build)(expression.operand)
        if expression.op == "~":
            self.require_integers("~", (operand,), span)
        return ir.unary(expression.op, operand, span)

    def _size(self, operand: syntax.Expression, span: Span) -> ir.Expr:
        """Return what ``sizeof`` gives of an expression, which is not evaluated, or of an array of constant extents."""
        before = len(self.ahead)
        try:
            of = self.part(operand) if isinstance(operand, syntax.Name | syntax.Subscript) else None
            if of is None or of.array.scalar:
                return ir.IntConst(self.build(operand).type.size, ScalarType.UNSIGNED_LONG, span)
        finally:
            del self.ahead[before:]
        declared = ((of.array.span, "declared here"),)
        if of.array.slots:
            message = "the size of a structure with members of several types is asked for"
            raise self._reporter.refuse("MF0205", operand.span, message, related=declared)
        if of.pointer:
            raise self._reporter.refuse(
                "MF0302",
                operand.span,
                "this is a parameter, or a part of an array: C takes the size of a pointer here",
                related=declared,
                way_out="give the number of its elements by a macro, or by a parameter.",
            )
        try:
            elements = prod(integer_value(extent, {}) for extent in of.extents)
        except NoValueError:
            message = "the size of an array is asked for whose extents are no constants"
            raise self._reporter.refuse(
                "MF0302", operand.span, message, related=declared, way_out="write the product of its extents."
            ) from None
        return ir.IntConst(elements * of.array.element.size, ScalarType.UNSIGNED_LONG, span)

    def _call(self, call: syntax.Invocation) -> ir.Expr:
        if _expected(call) is not None:
            return ir.Cast(ScalarType.LONG, self.build(call.arguments[0]), call.span)
        if isinstance(call.callee, syntax.Member) and isinstance(call.callee.base, syntax.Name):
            self.symbol(call.callee.base.name, call.callee.base.span)  # reports one that no schedule can use
        if not isinstance(call.callee, syntax.Name):
            raise self._reporter.refuse("MF0206", call.span, "a function is called through an expression")
        name = call.callee.name
        if name in CONVERSIONS and name not in self.functions and len(call.arguments) == 1:
            return ir.Cast(CONVERSIONS[name], self.build(call.arguments[0]), call.span)
        if name.removeprefix("__builtin_") in MATH_FUNCTIONS:
            name = name.removeprefix("__builtin_")
        known = MATH_FUNCTIONS.get(name)
        found = self._resolve(name)
        if self.is_function(name):
            value = self.inline(call, name)
            if value is not None:
                return value
        if known is None or found is not None:
            if self._classifies(name) and len(call.arguments) == 1:
                raise self._reporter.refuse(
                    "MF0206",
                    call.span,
                    f"C does not say which number `{name}` gives besides 0",
                    way_out=f"use it as a condition, or compare it with 0, `{name}(x) != 0`.",
                )
            if known is None and name.lower() in ("min", "max") and len(call.arguments) == 2:
                self._refuse_minimum(call, name)
            self._refuse_foreign(call, name)
            spelled = known is not None or name in OF_HEADERS
            meant = None if spelled else similar(name, [*MATH_FUNCTIONS, *self.functions], 0.75)
            hint = f"; did you mean `{meant}`?" if meant else ""
            raise self._reporter.refuse("MF0206", call.callee.span, f"`{name}` cannot be called in a schedule{hint}")
        if len(call.arguments) != len(known.parameters):
            message = f"`{name}` takes {count(len(known.parameters), 'argument')}, {len(call.arguments)} given"
            raise self._reporter.refuse("MF0207", call.span, message)
        return ir.Call(name, self._all(*call.arguments), known.result, call.span)

    def _refuse_foreign(self, call: syntax.Invocation, name: str) -> None:
        """Refuse functions of CUDA and of C's library, with what a schedule has in their place."""
        from metafork.frontend.text.other_languages.calls import refused_call  # most files have none

        before = self._reporter.text(0, call.span.start)
        arguments = [self._reporter.written(one.span) for one in call.arguments]
        advice = refused_call(name, arguments, before) or unknown_name(name, before)
        if advice is not None:
            raise self._reporter.advise("MF0206", call.callee.span, advice)

    def _refuse_minimum(self, call: syntax.Invocation, name: str) -> None:
        """Refuse ``min`` and ``max``, which C has for floating operands only, with what to write instead."""
        left, right = self._all(*call.arguments)
        type_ = common_type(left.type, right.type)
        sign = "<" if name.lower() == "min" else ">"
        written = f"`a {sign} b ? a : b`"
        if type_.floating:
            written = f"`f{name.lower()}{'f' if type_ is ScalarType.FLOAT else ''}(a, b)`"
        raise self._reporter.refuse(
            "MF0206",
            call.callee.span,
            f"`{name}` is no function of C; did you mean {written}?",
            way_out=f"write {written}, or define `{name}` as a macro of the file.",
        )


def _expected(call: syntax.Invocation) -> syntax.Expression | None:
    """Return what ``__builtin_expect(e, c)`` gives, ``None`` for any other call."""
    named = isinstance(call.callee, syntax.Name) and call.callee.name == "__builtin_expect"
    return call.arguments[0] if named and len(call.arguments) == 2 else None


def _is_null(value: syntax.Expression) -> bool:
    """Say whether an expression is a null pointer to C, 0 as a number among them."""
    match value:
        case syntax.Conversion(type=syntax.TypeName(words=("void",), pointers=1), operand=operand):
            return _is_null(operand)
        case syntax.Name(name=name):
            return name == "NULL"
        case _:
            return is_zero(value)
