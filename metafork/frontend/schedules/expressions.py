"""Expressions: from syntax to ``metafork.ir.program``, with names resolved and C's types (section 6.5 of C11).

What is refused is reported with the span of the culprit; the operands of one operator are all looked at, so that
several faults of one expression are reported in one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from msgspec.structs import replace

from metafork.frontend.host.known_names import OF_HEADERS
from metafork.frontend.host.variables import OF_CONDITIONAL_TYPES
from metafork.frontend.schedules.classification import CLASSIFICATIONS, classified
from metafork.frontend.schedules.symbols import (
    ArraySymbol,
    PointedSymbol,
    ScalarSymbol,
    Symbol,
    UnusableSymbol,
    ValueSymbol,
)
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.constants import constant, integer_constant, named_constant, why_no_constant
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import StructureType, TypeNames, structure_of
from metafork.frontend.text.vocabulary import CONSTANTS, MATH_FUNCTIONS, scalar_type
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.messages.source import Span

_INTEGER_OPERATORS = frozenset({"%", "&", "|", "^", "<<", ">>"})


class ExpressionBuilder:
    """Builds expressions of ``metafork.ir.program``.

    ``resolve`` maps a name to what it stands for (``None``: not declared); ``visible`` lists the names in scope for
    suggestions.  A name that is not declared, or cannot be used, is reported at its first use (``undeclared``,
    ``unusable``).  ``inline`` gives what a call of one of the ``functions`` of the file gives, ``None`` for any other
    call, and ``assignment`` what an expression assigns to a scalar, or ``None`` where it assigns to anything else; what
    is to be done before the value is there goes to ``ahead``, with ``fresh`` names.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        resolve: Callable[[str], Symbol | None],
        visible: Callable[[], list[str]],
    ) -> None:
        self._reporter = reporter
        self._typedefs = typedefs
        self._resolve = resolve
        self._visible = visible
        self.undeclared: set[str] = set()
        self.unusable: list[UnusableSymbol] = []
        self.inline: Callable[[syntax.Invocation, str], ir.Expr | None] = lambda _call, _name: None
        self.assignment: Callable[[syntax.Expression], ir.Assign | None] = lambda _expression: None
        self.fresh: Callable[[str], str] = lambda name: name
        self.functions: list[str] = []
        self.ahead: list[ir.Stmt] = []

    def build(self, expression: syntax.Expression) -> ir.Expr:
        """Return the expression; raises ``RefusedError`` after reporting what is wrong with it."""
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
            case syntax.Infix(op="==" | "!=" as op, left=left, right=right, span=span) if _is_zero(right):
                return ir.binary(op, self.condition(left), self.build(right), span)
            case syntax.Infix(op=op, left=left, right=right, span=span):
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
            case syntax.SizeOfType(type=type_, span=span):
                return ir.IntConst(self.named_type(type_).size, ScalarType.UNSIGNED_LONG, span)
            case syntax.Unsupported(what=what, span=span):
                if not what:  # reported where it was parsed
                    raise RefusedError
                raise self._reporter.refuse("MF0218", span, f"{what} is not supported in a schedule")

    def condition(self, expression: syntax.Expression) -> ir.Expr:
        """Return an expression of which only matters whether it is 0; raises ``RefusedError``."""
        match expression:
            case syntax.Invocation(callee=syntax.Name(name=name), arguments=(argument,), span=span) if self._classifies(
                name
            ):
                operand = self.build(argument)
                if operand.type.floating:
                    return classified(name, operand, span)
                message = f"`{name}` has an operand of type `{operand.type.spelling}`"
                way_out = f"give `{name}` a floating-point number."
                raise self._reporter.refuse("MF0206", argument.span, message, way_out=way_out)
        return self.build(expression)

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

    def named_type(self, type_: syntax.TypeName) -> ScalarType:
        """Return the scalar type that a type name stands for; raises ``RefusedError`` for any other type."""
        if type_.pointers or type_.function:
            raise self._reporter.refuse("MF0201", type_.span, "a pointer type stands in a schedule")
        structure = self.structure_type(type_)
        if structure is not None or type_.words == ("struct",):
            raise self._reporter.refuse("MF0205", type_.span, "a structure type stands in a schedule")
        found = scalar_type(type_.words, self._typedefs)
        if found is None or type_.extents:
            words = " ".join(type_.words)
            if words in self._typedefs.conditional and not type_.extents:
                reason, way_out = OF_CONDITIONAL_TYPES
                message = f"the type `{words}` is declared under a condition"
                raise self._reporter.refuse("MF0216", type_.span, message, reason=reason, way_out=way_out)
            raise self._reporter.refuse("MF0216", type_.span, f"the type `{words}` is not supported in a schedule")
        return found

    def require_integers(self, op: str, operands: tuple[ir.Expr, ...], span: Span) -> None:
        """Refuse floating operands of an operator that C defines on integers only."""
        for operand in operands:
            if operand.type.floating:
                message = f"`{op}` has an operand of type `{operand.type.spelling}`"
                raise self._reporter.refuse("MF0306", span, message)

    def symbol(self, name: str, span: Span) -> Symbol | None:
        """Return what a name stands for; ``None`` for a constant of a header; raises ``RefusedError`` for neither."""
        found = self._resolve(name)
        if found is None and name not in CONSTANTS:
            if name in self.undeclared:
                raise RefusedError  # once is enough
            self.undeclared.add(name)
            meant = similar(name, self._visible())
            hint = f"; did you mean `{meant}`?" if meant else ""
            way_out = None
            if name.isupper() and not meant:
                way_out = "declare it; if it is a macro of a header, run the preprocessor first: gcc -E -x c FILE."
            raise self._reporter.refuse("MF0301", span, f"`{name}` is not declared{hint}", way_out=way_out)
        if isinstance(found, UnusableSymbol):
            if found in self.unusable:
                raise RefusedError
            self.unusable.append(found)
            raise self._reporter.refuse(
                found.code,
                span,
                found.message,
                reason=found.reason,
                way_out=found.way_out,
                related=((found.span, "declared here"),),
            )
        return found

    def structure_type(self, type_: syntax.TypeName) -> StructureType | None:
        """Return the structure that a type name stands for, ``None`` for any other type.

        Raises ``RefusedError`` for one that is no row of scalars of one type.
        """
        found = structure_of(type_, self._typedefs)
        if found is not None and found.fault:
            raise self._reporter.refuse(
                "MF0205", type_.span, f"`{found.name or 'struct'}` is a structure: {found.fault}"
            )
        return found

    def member(self, expression: syntax.Member, further: Sequence[syntax.Expression] = ()) -> ir.Element:
        """Return a member of a structure, or an element of one that is an array; raises ``RefusedError``."""
        path, base = expression.field, expression
        while isinstance(base.base, syntax.Member) and not base.arrow:
            base = base.base
            path = f"{base.field}.{path}"
        owner = base.base
        if base.arrow:
            owner = syntax.Subscript(owner, syntax.Constant("0", owner.span), owner.span)
        structure = self.structure(owner)
        if structure is None and isinstance(owner, syntax.Invocation | syntax.Unsupported):
            self.no_structure(owner)
        if structure is None:
            raise self._reporter.refuse("MF0205", expression.span, "this is no member of a structure of the schedule")
        if path in structure.members and not further:
            return structure.member(structure.members.index(path), expression.span)
        inside = [name for name in structure.members if name.startswith((f"{path}[", f"{path}."))]
        if not inside:
            meant = similar(path, list(structure.members))
            hint = f"; did you mean `{meant}`?" if meant else ""
            message = f"the structure has no member `{path}`{hint}"
            raise self._reporter.refuse("MF0301", expression.span, message)
        extents = _extents_of(path, inside)
        if not further or len(extents) != len(further):
            what = (
                "a structure itself" if inside[0][len(path)] == "." else f"an array of {_count(len(extents), 'extent')}"
            )
            raise self._reporter.refuse("MF0205", expression.span, f"the member `{path}` is {what}")
        place: ir.Expr | None = None
        for extent, index in zip(extents, further, strict=True):
            value = self._counted(index)
            place = value if place is None else ir.binary("+", ir.binary("*", place, ir.IntConst(extent)), value)
        return structure.member(structure.members.index(inside[0]), expression.span, place)

    def no_structure(self, expression: syntax.Expression) -> None:
        """Report what an expression is that stands for a structure, and cannot."""
        if isinstance(expression, syntax.Unsupported) and expression.what == syntax.COMPOUND_LITERAL:
            way_out = "declare a variable that is initialised by braces, `struct s v = {...};`."
            message = f"{expression.what} stands in a schedule"
            raise self._reporter.refuse("MF0218", expression.span, message, way_out=way_out)
        self.build(expression)  # a function that returns a structure, and what else is no value

    def structure(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the one structure that an expression is, ``None`` for anything else; raises ``RefusedError``."""
        match expression:
            case syntax.Prefix(op="*", operand=syntax.Infix(op="+", left=base, right=index)):
                return self.structure(syntax.Subscript(base, index, expression.span))
            case syntax.Prefix(op="*", operand=base):
                return self.structure(syntax.Subscript(base, syntax.Constant("0", base.span), expression.span))
            case syntax.Name(name=name, uncertain=False) if self._resolve(name) is not None:
                symbol = self.symbol(name, expression.span)
                return symbol if isinstance(symbol, ArraySymbol) and symbol.whole else None
            case syntax.Subscript():
                found = self.part(expression)
                return found if found is not None and found.whole else None
            case _:
                return None

    def element(self, expression: syntax.Subscript | syntax.Prefix) -> ir.Element | ir.Var:
        """Return an element of an array (or the scalar that a parameter points to); raises ``RefusedError``."""
        indices: list[syntax.Expression] = []
        base: syntax.Expression = expression
        while isinstance(base, syntax.Subscript | syntax.Prefix):
            match base:
                case syntax.Subscript(base=inner, index=index):
                    indices.append(index)
                case syntax.Prefix(op="*", operand=syntax.Infix(op="+", left=inner, right=index)):
                    indices.append(index)
                case syntax.Prefix(op="*", operand=inner):
                    indices.append(syntax.Constant("0", base.span))
                case _:
                    break
            base = inner
        if not isinstance(base, syntax.Name):
            if isinstance(base, syntax.Member):
                return self.member(base, indices[::-1])
            raise self._reporter.refuse("MF0203", expression.span, "what is indexed here is no array")
        symbol = self.symbol(base.name, base.span)
        if isinstance(symbol, ArraySymbol) and symbol.members:
            raise self._reporter.refuse(
                "MF0205", expression.span, f"`{base.name}` has structures, not scalars, for elements"
            )
        if isinstance(symbol, PointedSymbol) and len(indices) == 1 and _is_zero(indices[0]):
            return ir.Var(symbol.scalar.name, symbol.scalar.type, expression.span)
        if not isinstance(symbol, ArraySymbol):
            if isinstance(expression, syntax.Prefix):
                raise self._reporter.refuse("MF0203", expression.span, f"`{base.name}` is no array and no pointer")
            related = ((symbol.span, "declared here"),) if symbol is not None else ()
            raise self._reporter.refuse(
                "MF0310", expression.span, f"`{base.name}` is a scalar and has no elements", related=related
            )
        array = symbol.array
        if len(indices) != len(symbol.extents):
            had, given = _count(len(symbol.extents), "extent"), _count(len(indices), "index")
            message = f"`{base.name}` has {had} and is given {given}"
            raise self._reporter.refuse("MF0302", expression.span, message, related=((array.span, "declared here"),))
        built = self._all(*reversed(indices))
        for index, value in zip(reversed(indices), built, strict=True):
            if value.type.floating:
                message = f"this index of `{base.name}` has type `{value.type.spelling}`"
                raise self._reporter.refuse("MF0303", index.span, message)
        return ir.Element(array.name, symbol.indices(built), array.element, expression.span)

    def part(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the array, or the part of one, that an expression gives to a function; ``None`` for anything else.

        ``a``, ``a[i]`` with fewer indices than extents, ``a + i`` and ``&a[i]`` are parts.  Raises ``RefusedError``.
        """
        match expression:
            case syntax.Name(name=name, span=span, uncertain=False):
                if name in CONSTANTS and self._resolve(name) is None:
                    return None
                symbol = self.symbol(name, span)
                return symbol if isinstance(symbol, ArraySymbol) else None
            case syntax.Prefix(op="&", operand=syntax.Name(name=name) as whole) if self._resolve(name) is not None:
                of = self.part(whole)
                return replace(of, single=False) if of is not None and of.single else None
            case syntax.Subscript(base=base, index=index):
                of = self.part(base)
                return None if of is None or of.single or len(of.extents) < 2 else of.part(self._counted(index))
            case syntax.Infix(op="+", left=base, right=index):
                of = self.part(base)
                return None if of is None else of.moved(self._counted(index))
            case syntax.Prefix(op="&", operand=syntax.Subscript(base=base, index=index)):
                of = self.part(base)
                return None if of is None else of.moved(self._counted(index))
            case _:
                return None

    def _counted(self, index: syntax.Expression) -> ir.Expr:
        built = self.build(index)
        if built.type.floating:
            raise self._reporter.refuse("MF0303", index.span, f"this index has type `{built.type.spelling}`")
        return built

    def _all(self, *expressions: syntax.Expression) -> tuple[ir.Expr, ...]:
        built: list[ir.Expr] = []
        for expression in expressions:
            try:
                built.append(self.build(expression))
            except RefusedError:
                continue
        if len(built) != len(expressions):
            raise RefusedError
        return tuple(built)

    def _assigned(self, expression: syntax.Assignment | syntax.Prefix | syntax.Postfix) -> ir.Expr:
        """Return the value of an assignment to a scalar, ``++`` or ``--``, which are done ahead.

        C leaves open in which order the rest of an expression reads the scalar, so that nothing else there may.
        """
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
        message = f"the array `{name}` stands without {_count(len(symbol.extents), 'index')}"
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
        if not isinstance(call.callee, syntax.Name):
            raise self._reporter.refuse("MF0206", call.span, "a function is called through an expression")
        name = call.callee.name
        known = MATH_FUNCTIONS.get(name)
        found = self._resolve(name)
        if found is None or (isinstance(found, UnusableSymbol) and found.code == "MF0206"):
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
            spelled = known is not None or name in OF_HEADERS
            meant = None if spelled else similar(name, [*MATH_FUNCTIONS, *self.functions], 0.75)
            hint = f"; did you mean `{meant}`?" if meant else ""
            raise self._reporter.refuse(
                "MF0206", call.callee.span, f"`{name}` is no function that can be called in a schedule{hint}"
            )
        if len(call.arguments) != len(known.parameters):
            message = f"`{name}` takes {_count(len(known.parameters), 'argument')}, {len(call.arguments)} given"
            raise self._reporter.refuse("MF0207", call.span, message)
        return ir.Call(name, self._all(*call.arguments), known.result, call.span)

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


def _is_zero(index: syntax.Expression) -> bool:
    return isinstance(index, syntax.Constant) and integer_constant(index.text) == (0, ScalarType.INT)


def _count(number: int, word: str) -> str:
    plural = "indices" if word == "index" else word + "s"
    return f"{number} {word if number == 1 else plural}"


def _extents_of(path: str, members: Sequence[str]) -> list[int]:
    """Return the extents of the array of scalars that a member of a structure is, by the names of its elements."""
    last = members[-1].removeprefix(path)
    found = re.fullmatch(r"(?:\[\d+\])+", last)
    return [] if found is None else [int(number) + 1 for number in re.findall(r"\d+", last)]
