"""Expressions: from syntax to ``metafork.ir.program``, with names resolved and C's types (section 6.5 of C11).

What is refused is reported with the span of the culprit; the operands of one operator are all looked at, so that
several faults of one expression are reported in one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from msgspec.structs import replace

from metafork.frontend.host.known_names import OF_HEADERS
from metafork.frontend.host.variables import OF_CONDITIONAL_TYPES, spelled_out
from metafork.frontend.schedules.classification import CLASSIFICATIONS, classified
from metafork.frontend.schedules.moved_arrays import refuse_moved
from metafork.frontend.schedules.structure_parts import (
    Whole,
    components,
    located,
    members_at,
    path_of,
    spelled,
    whole_of,
)
from metafork.frontend.schedules.symbols import (
    ArraySymbol,
    PointedSymbol,
    ScalarSymbol,
    Symbol,
    UnusableSymbol,
    ValueSymbol,
)
from metafork.frontend.schedules.values.conversions import taken_for
from metafork.frontend.schedules.values.initialisers import MisfitError
from metafork.frontend.schedules.values.structure_items import array_of, placed_members, shape_of
from metafork.frontend.schedules.values.unions import Unions
from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.constants import constant, integer_constant, named_constant, why_no_constant
from metafork.frontend.text.other_languages.indices import of_cast, of_dimensions
from metafork.frontend.text.other_languages.words import power, unknown_name
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import StructureType, TypeNames, structure_of
from metafork.frontend.text.vocabulary import CONSTANTS, CONVERSIONS, MATH_FUNCTIONS, scalar_type
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
    is to be done before the value is there goes to ``ahead``, with ``fresh`` names.  ``given`` says whether a pointer
    is not null, where that is known.
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
        self.unions = Unions(reporter, typedefs, resolve, self.build)
        self.undeclared: set[str] = set()
        self.unusable: list[UnusableSymbol] = []
        self.inline: Callable[[syntax.Invocation, str], ir.Expr | None] = lambda _call, _name: None
        self.inline_structure: Callable[[syntax.Invocation, str], Whole | None] = lambda _call, _name: None
        self.assignment: Callable[[syntax.Expression], ir.Assign | None] = lambda _expression: None
        self.fresh: Callable[[str], str] = lambda name: name
        self.given: Callable[[str], ir.Var | ir.IntConst | None] = lambda _name: None
        self.literal: Callable[[syntax.Literal], ArraySymbol] = self._no_literal
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

    def _no_literal(self, literal: syntax.Literal) -> ArraySymbol:
        raise self._reporter.refuse("MF0218", literal.span, f"{syntax.COMPOUND_LITERAL} is not supported here")

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
            from metafork.frontend.text.other_languages.types import foreign_type  # most files have none

            if not type_.extents and words not in self._typedefs and (advice := foreign_type(type_.words, "")):
                raise self._reporter.advise("MF0216", type_.span, advice)
            raise self._reporter.refuse("MF0216", type_.span, f"the type `{words}` is not supported in a schedule")
        return found

    def spelled_out(self, type_: syntax.TypeName) -> syntax.TypeName:
        """Return a type in which the name of an array type is written out."""
        return spelled_out(type_, self._typedefs)

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
            if (advice := unknown_name(name, self._reporter.text(0, span.start))) is not None:
                raise self._reporter.advise("MF0301", span, advice)
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
                found.at or span,
                found.message,
                reason=found.reason,
                way_out=found.way_out,
                related=((span, "the schedule uses it here") if found.at else (found.span, "declared here"),),
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

    def member(self, expression: syntax.Expression) -> ir.Expr:
        """Return a member of a structure, or an element of one that is an array; raises ``RefusedError``."""
        part = self.unions.member(expression)
        if part is not None:
            return taken_for(*part)
        found = self.members(expression)
        if found is None:
            owner = path_of(expression)
            if owner is not None and isinstance(owner[0], syntax.Name):
                self.symbol(owner[0].name, owner[0].span)  # reports one that is not declared
            raise self._reporter.refuse("MF0205", expression.span, "this is no member of a structure of the schedule")
        if found.names == ("",):
            return found.values[0]
        path = self._path_text(expression)
        what = "a structure itself"
        if found.names[0].startswith("["):
            what = f"an array of {_count(found.names[-1].partition('.')[0].count('['), 'extent')}"
        raise self._reporter.refuse("MF0205", expression.span, f"the member `{path}` is {what}")

    def members(self, expression: syntax.Expression) -> Whole | None:
        """Return the members that an expression like ``a[i].c`` or ``a[i].c.x`` leads to, ``None`` for another one."""
        found = path_of(expression)
        if found is None:
            return None
        owner, steps = found
        structure = self.structure(owner)
        whole = None if structure is not None else self.whole(owner)
        if structure is None and whole is None:
            if isinstance(owner, syntax.Invocation | syntax.Unsupported):
                self.no_structure(owner)
            return None
        names = (
            whole.names if structure is None and whole is not None else () if structure is None else structure.members
        )
        here = members_at(names, steps)
        if not here:
            path = self._path_text(expression)
            if members_at(names, [step for step in steps if isinstance(step, str)]) or "[" in path:
                had = len(re.findall(r"[[]", next(iter(one for one in names if one.startswith(str(steps[0]))), "")))
                raise self._reporter.refuse(
                    "MF0205", expression.span, f"the member `{path}` is an array of {_count(had, 'extent')}"
                    if had else f"the member `{path}` has no elements"
                )  # fmt: skip
            meant = similar(path, list(names))
            hint = f"; did you mean `{meant}`?" if meant else ""
            raise self._reporter.refuse("MF0301", expression.span, f"the structure has no member `{path}`{hint}")
        if structure is not None:
            return located(structure, steps, self._counted, expression.span)
        assert whole is not None
        if not all(isinstance(step, str) for step in steps):
            message = "an element is taken of a structure that is a value"
            way_out = "declare a variable of its type, and take that variable's."
            raise self._reporter.refuse("MF0205", expression.span, message, way_out=way_out)
        parts = tuple(spelled(components(names[number])[len(steps) :]) for number, _ in here)
        return Whole(parts, tuple(whole.values[number] for number, _ in here))

    def _path_text(self, expression: syntax.Expression) -> str:
        found = path_of(expression)
        assert found is not None
        return ".".join(step for step in found[1] if isinstance(step, str))

    def whole(self, expression: syntax.Expression) -> Whole | None:
        """Return the structure that an expression has for its value, ``None`` for a scalar and what is not known."""
        match expression:
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise, span=span):
                return self._chosen(condition, then, otherwise, span)
            case syntax.Literal():
                return self._literal(expression)
            case syntax.Invocation(callee=syntax.Name(name=name)) if self._is_function(name):
                return self.inline_structure(expression, name)
            case syntax.Member() | syntax.Subscript() if path_of(expression) is not None:
                found = self.members(expression)
                return None if found is None or found.names[0][:1] in ("", "[") else found
            case _:
                structure = self.structure(expression)
                return None if structure is None else whole_of(structure, expression.span)

    def _chosen(
        self, condition: syntax.Expression, then: syntax.Expression, otherwise: syntax.Expression, span: Span
    ) -> Whole | None:
        """Return one of two structures; each is only read where it is the one."""
        before = len(self.ahead)
        test = self.condition(condition)
        middle = len(self.ahead)
        first = self.whole(then)
        early = tuple(self.ahead[middle:])
        del self.ahead[middle:]
        second = None if first is None else self.whole(otherwise)
        late = tuple(self.ahead[middle:])
        del self.ahead[middle:]
        if first is None or second is None or not first.alike(second):
            del self.ahead[before:]
            return None
        results = tuple(ir.Var(self.fresh("chosen"), value.type, span) for value in first.values)
        self.ahead += [ir.Declare(one.name, one.type, None, span) for one in results]
        branches = [
            (*ahead, *(ir.Assign(to, "", of, span) for to, of in zip(results, one.values, strict=True)))
            for ahead, one in ((early, first), (late, second))
        ]
        self.ahead.append(ir.If(test, branches[0], branches[1], span))
        return Whole(first.names, results)

    def _literal(self, expression: syntax.Literal) -> Whole | None:
        """Return the values of a compound literal, evaluated before anything is done with it."""
        structure = (
            None if expression.type.pointers or expression.type.extents else self.structure_type(expression.type)
        )
        if structure is None:
            return None
        assert structure.element is not None
        types = [slot.type for slot in structure.slots] or [structure.element] * len(structure.members)
        values: dict[int, ir.Expr] = {}
        for place, item in self.structure_items(expression.braces, structure.members, (), expression.span):
            values[place] = item if isinstance(item, ir.Expr) else self.build(item)
        results: list[ir.Expr] = []
        for place, type_ in enumerate(types):
            value = values.get(place, ir.IntConst(0, span=expression.span))
            kept = ir.Var(self.fresh("literal"), type_, expression.span)
            self.ahead.append(ir.Declare(kept.name, type_, value, expression.span))
            results.append(kept)
        return Whole(structure.members, tuple(results))

    def structure_items(
        self, braces: syntax.Braces, members: tuple[str, ...], extents: tuple[int, ...], span: Span
    ) -> list[tuple[int, syntax.Expression | ir.Expr]]:
        """Return the values in braces by the numbers of members; raises ``RefusedError``."""
        shape = shape_of(members)
        for extent in reversed(extents):
            shape = array_of(shape, extent)
        try:
            return list(placed_members(braces, shape, self._index_of, self._structure_item))
        except MisfitError as error:
            raise self._reporter.refuse(
                "MF0221",
                error.span,
                "these braces do not fit the members of the structure",
                reason="an initialiser has at most as many values as there are members, and names that they have.",
                way_out="write a pair of braces for each structure and each array in it.",
            ) from None

    def _index_of(self, index: syntax.Expression) -> int:
        try:
            return integer_value(self.build(index), {})
        except NoValueError:
            raise MisfitError(index.span) from None

    def _structure_item(self, item: syntax.Expression) -> Whole | None:
        """Return the structure that an item of braces is, ``None`` where it is a scalar."""
        match item:
            case syntax.Name(name=name):
                return self.whole(item) if isinstance(self._resolve(name), ArraySymbol) else None
            case syntax.Ternary() | syntax.Infix() | syntax.Constant() | syntax.Conversion():
                return self.whole(item) if isinstance(item, syntax.Ternary) and self._is_structure(item.then) else None
            case _:
                return self.whole(item) if self._is_structure(item) else None

    def _is_structure(self, item: syntax.Expression) -> bool:
        """Say whether an expression is a structure, without a trace of asking."""
        before = len(self.ahead)
        found = isinstance(item, syntax.Literal | syntax.Member | syntax.Subscript | syntax.Prefix | syntax.Name)
        if isinstance(item, syntax.Prefix) and item.op != "*":
            found = False
        if isinstance(item, syntax.Subscript) and path_of(item) is None:
            root: syntax.Expression = item
            while isinstance(root, syntax.Subscript):
                root = root.base
            symbol = self._resolve(root.name) if isinstance(root, syntax.Name) else None
            found = isinstance(symbol, ArraySymbol) and bool(symbol.members)
        if isinstance(item, syntax.Name):
            found = isinstance(self._resolve(item.name), ArraySymbol)
        if isinstance(item, syntax.Prefix) and found:
            found = (
                isinstance(item.operand, syntax.Name)
                and isinstance(symbol := self._resolve(item.operand.name), ArraySymbol)
                and bool(symbol.members)
            )
        result = found and self.whole(item) is not None
        del self.ahead[before:]
        return result

    def no_structure(self, expression: syntax.Expression) -> None:
        """Report what an expression is that stands for a structure, and cannot."""
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
        if isinstance(base, syntax.Literal) and base.type.extents and not base.type.pointers:
            of = self.literal(base)
            if len(indices) != len(of.extents):
                raise self._reporter.refuse("MF0302", expression.span, "this is no whole element of the literal")
            return ir.Element(
                of.array.name, of.indices(self._all(*reversed(indices))), of.array.element, expression.span
            )
        if not isinstance(base, syntax.Name):
            if isinstance(base, syntax.Member):
                found = self.member(expression)
                assert isinstance(found, ir.Element | ir.Var)
                return found
            refuse_moved(self._reporter, self._resolve, base)
            if isinstance(base, syntax.Conversion) and base.type.pointers == 1:
                written = self._reporter.written(base.operand.span)
                raise self._reporter.advise("MF0203", expression.span, of_cast(" ".join(base.type.words), written))
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
            texts = [
                [self._reporter.written(part.span) for part in parts]
                for parts in (one.items if isinstance(one, syntax.Comma) else (one,) for one in reversed(indices))
            ]
            declared = f"{'const ' * symbol.const}{array.element.spelling} {base.name}"
            before = self._reporter.text(0, expression.span.start)
            advice = of_dimensions(declared, len(symbol.extents), texts, before)
            raise self._reporter.advise("MF0302", expression.span, advice, ((array.span, "declared here"),))
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
            case syntax.Literal(type=syntax.TypeName(pointers=0, extents=(_, *_))):
                return self.literal(expression)
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
        if self._is_function(name):
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
            message = f"`{name}` takes {_count(len(known.parameters), 'argument')}, {len(call.arguments)} given"
            raise self._reporter.refuse("MF0207", call.span, message)
        return ir.Call(name, self._all(*call.arguments), known.result, call.span)

    def _is_function(self, name: str) -> bool:
        """Say whether a name may be that of a function of the file: no variable has it."""
        found = self._resolve(name)
        return found is None or (isinstance(found, UnusableSymbol) and found.code == "MF0206")

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
            return _is_zero(value)


def _is_zero(index: syntax.Expression) -> bool:
    return isinstance(index, syntax.Constant) and integer_constant(index.text) == (0, ScalarType.INT)


def _count(number: int, word: str) -> str:
    plural = "indices" if word == "index" else word + "s"
    return f"{number} {word if number == 1 else plural}"
