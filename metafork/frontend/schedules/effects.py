"""Statements that are expressions: assignments, ``++`` and ``--``, calls, copies of structures and of memory."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from metafork.frontend.nests.assertions import ASSERTING
from metafork.frontend.schedules.moved_arrays import refuse_moved
from metafork.frontend.schedules.structure_parts import Whole, whole_of
from metafork.frontend.schedules.symbols import ArraySymbol, ScalarSymbol
from metafork.frontend.schedules.targets import Level, Targets
from metafork.frontend.schedules.values.conversions import bits_of, converted, taken_for
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import RefusedError
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import updated
from metafork.ir.messages.source import Span

MOST_COPIED = 256
"""Members of a structure that is copied as a whole."""

_SAYING = ASSERTING | {"__builtin_prefetch", "__builtin_unreachable"}
"""Calls that say something about a program, or ask for nothing that a kernel has; the serial code keeps them."""


def _addressed(expression: syntax.Expression) -> syntax.Expression | None:
    """Return what an address is that of."""
    match expression:
        case syntax.Conversion(operand=operand):
            return _addressed(operand)
        case syntax.Prefix(op="&", operand=operand):
            return operand
        case _:
            return None


class Effects(Targets):
    """Builds what an expression statement does."""

    def _effect(self, expression: syntax.Expression, span: Span, level: Level) -> tuple[ir.Stmt, ...]:
        """Build what an expression statement does: assignments, ``++`` and ``--``."""
        refuse_moved(self._reporter, self._scopes.resolve, expression)
        match expression:
            case syntax.Assignment(op=op, target=target, value=value):
                return self._assign(target, op.removesuffix("="), value, span, level)
            case (
                syntax.Postfix(op="++" | "--" as op, operand=target)
                | syntax.Prefix(op="++" | "--" as op, operand=target)
            ):
                return self._assign(target, op[0], syntax.Constant("1", expression.span), span, level)
            case syntax.Comma(items=items):
                return tuple(statement for item in items for statement in self._effect(item, item.span, level))
            case syntax.Conversion(type=syntax.TypeName(words=("void",), pointers=0), operand=operand):
                return self._ahead(level) if self._called(operand, level) else ()
            case syntax.Invocation(callee=syntax.Name(name=name)) if name in _SAYING and not self._is_own(name):
                return ()
            case syntax.Invocation(callee=syntax.Name(name="memcpy" | "memset" as name), arguments=(to, of, size)) if (
                not self._is_own(name) and (filled := self._filled(name, to, of, size, span, level)) is not None
            ):
                return filled
            case syntax.Invocation(callee=syntax.Name(name="memcpy"), arguments=(to, of, size)):
                return self._bits(expression, to, of, size, level)
            case _:
                if self._called(expression, level):
                    return self._ahead(level)
                self._value(expression, level)
                raise self._reporter.refuse("MF0219", span, "this statement has no effect")

    def _is_own(self, name: str) -> bool:
        """Say whether a name is that of a function or a variable of the file."""
        return name in self.expressions.functions or self._scopes.resolve(name) is not None

    def _filled(
        self,
        name: str,
        to: syntax.Expression,
        of: syntax.Expression,
        size: syntax.Expression,
        span: Span,
        level: Level,
    ) -> tuple[ir.Stmt, ...] | None:
        """Build ``memset(a, 0, bytes)`` and ``memcpy(a, b, bytes)`` of arrays: loops over elements.

        Returns ``None`` where these are no arrays of numbers, or the number of elements does not show.
        """
        target = self._array_given(to)
        source = None if name == "memset" else self._array_given(of)
        zero = isinstance(of, syntax.Constant) and of.text in ("0", "0x0", "'\\0'")
        alike = (
            zero
            if name == "memset"
            else source is not None
            and target is not None
            and (source.array.element is target.array.element and len(source.extents) == 1)
        )
        if target is None or not alike:
            return None
        extents = self._elements_in(size, target, level)
        if extents is None or (source is not None and len(extents) > 1):
            return None
        counters = tuple(ir.Var(self._scopes.fresh("k"), extent.type, span) for extent in extents)
        value: ir.Expr = ir.IntConst(0, span=span)
        if source is not None:
            value = ir.Element(source.array.name, source.indices(counters), source.array.element, span)
            self._note(value, level)
        self._check_element_write(target, to.span, level)
        place = ir.Element(target.array.name, target.indices(counters), target.array.element, span)
        body: ir.Stmt = ir.Assign(place, "", value, span)
        for counter, extent in reversed([*zip(counters, extents, strict=True)]):
            first = ir.Declare(counter.name, counter.type, ir.IntConst(0), span)
            step = ir.Assign(counter, "+", ir.IntConst(1), span)
            body = ir.For(first, ir.binary("<", counter, extent, span), step, (body,), span)
        return (*self._ahead(level), body)

    def _array_given(self, expression: syntax.Expression) -> ArraySymbol | None:
        """Return the array of numbers, or the part of one, that an argument is."""
        while isinstance(expression, syntax.Conversion) and expression.type.pointers:
            expression = expression.operand
        if not self._is_array(expression):
            return None
        found = self.expressions.part(expression)
        return None if found is None or found.members or found.array.scalar or found.array.slots else found

    def _is_array(self, expression: syntax.Expression) -> bool:
        """Say whether an argument is made of an array's name, and not of a scalar's."""
        while not isinstance(expression, syntax.Name):
            match expression:
                case (
                    syntax.Subscript(base=expression)
                    | syntax.Infix(op="+", left=expression)
                    | syntax.Prefix(op="&", operand=syntax.Subscript() as expression)
                ):
                    pass
                case _:
                    return False
        return isinstance(self._scopes.resolve(expression.name), ArraySymbol)

    def _elements_in(self, size: syntax.Expression, array: ArraySymbol, level: Level) -> tuple[ir.Expr, ...] | None:
        """Return how many elements, by extents, a number of bytes is: ``sizeof a``, ``n * sizeof(float)``."""
        element = array.array.element.size
        match size:
            case syntax.Prefix(op="sizeof", operand=syntax.Name(name=name)) if (
                self._scopes.resolve(name) == array and not array.pointer
            ):
                return array.extents
            case syntax.Infix(op="*", left=count, right=syntax.SizeOfType() | syntax.Prefix(op="sizeof") as bytes_):
                pass
            case syntax.Infix(op="*", left=syntax.SizeOfType() | syntax.Prefix(op="sizeof") as bytes_, right=count):
                pass
            case _:
                return None
        each = self._value(bytes_, level)
        if len(array.extents) != 1 or not isinstance(each, ir.IntConst) or each.value != element:
            return None
        return (self._value(count, level),)

    def _bits(
        self,
        call: syntax.Expression,
        to: syntax.Expression,
        of: syntax.Expression,
        size: syntax.Expression,
        level: Level,
    ) -> tuple[ir.Stmt, ...]:
        """Build ``memcpy(&u, &x, sizeof u)``: the bits of one number as those of another one."""
        target, source = _addressed(to), _addressed(of)
        if target is None or source is None or self._of_structures(target) or self._of_structures(source):
            return self._not_bits(call)
        value = self._value(source, level)
        bytes_ = self._value(size, level)
        place = self._target(target, level)
        given = ir.Cast(ScalarType.LONG, bytes_)
        try:
            many = integer_value(given, {})
        except NoValueError:
            return self._not_bits(call)
        if not place.type.size == value.type.size == many:
            return self._not_bits(call)
        if value.type.floating != place.type.floating or (value.type.small and value.type is not place.type):
            value = taken_for(bits_of(value), place.type)
        return (*self._ahead(level), ir.Assign(place, "", converted(value, place.type), call.span))

    def _not_bits(self, call: syntax.Expression) -> tuple[ir.Stmt, ...]:
        raise self._reporter.refuse(
            "MF0206",
            call.span,
            "`memcpy` copies something else here than one number to another one of its size",
            way_out="assign elements one by one; of numbers write `memcpy(&u, &x, sizeof u);`.",
        )

    def _assign(
        self, target: syntax.Expression, op: str, value: syntax.Expression, span: Span, level: Level
    ) -> tuple[ir.Stmt, ...]:
        if op and self.expressions.complex.is_one(target):
            value, op = syntax.Infix(op, target, value, span), ""
        member, union = self.expressions.unions.member(target), self.expressions.unions.bits_of(target)
        if member is not None and isinstance(target, syntax.Member):
            given = self._value(value if not op else syntax.Infix(op, target, value, span), level)
            bits = self._target(target.base, level)
            return (*self._ahead(level), ir.Assign(bits, "", bits_of(converted(given, member[1])), span))
        if union is not None and not op:
            given = self.expressions.unions.value(value, union[1])
            return (*self._ahead(level), ir.Assign(self._target(target, level), "", given, span))
        whole = self.expressions.structure(target) if not op and self._of_structures(target) else None
        if whole is not None:
            self._check_element_write(whole, target.span, level)
            return self._copied(whole_of(whole, target.span), value, span, level)
        part = None if op else self._inner_structure(target, level)
        if part is not None:
            return self._copied(part, value, span, level)
        if isinstance(value, syntax.Assignment):
            return self._chained(target, op, value, span, level)
        built: ir.Var | ir.Element | None = None
        with suppress(RefusedError):
            built = self._target(target, level)
        self._calls.alone = self._calls.apart(value, target, updated=bool(op))
        right = self._value(value, level)
        if built is None:
            raise RefusedError
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, right), span)
        return (*self._ahead(level), ir.Assign(built, op, right, span))

    def _chained(
        self, target: syntax.Expression, op: str, value: syntax.Assignment, span: Span, level: Level
    ) -> tuple[ir.Stmt, ...]:
        """Build ``a = b = e``: the value of an assignment is that of its target, in the target's type."""
        if self._of_structures(value.target):
            raise self._reporter.refuse("MF0213", value.span, "an assignment of a structure stands inside another")
        *ahead, last = self._effect(value, value.span, level)
        assert isinstance(last, ir.Assign)
        source: ir.Expr = last.target
        done: tuple[ir.Stmt, ...] = (last,)
        if isinstance(last.target, ir.Element):
            source = ir.Var(self._scopes.fresh("value"), last.target.type, value.span)
            kept = ir.Declare(source.name, source.type, updated(last), value.span)
            done = (kept, replace(last, op="", value=source))
        built = self._target(target, level)
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, source), span)
        return (*ahead, *done, *self._ahead(level), ir.Assign(built, op, source, span))

    def _scalar_assignment(self, expression: syntax.Expression) -> ir.Assign | None:
        """Build an assignment inside an expression; ``None`` where its target is no scalar of the schedule."""
        match expression:
            case syntax.Assignment(op=op, target=target, value=value):
                op = op.removesuffix("=")
            case syntax.Prefix(op=op, operand=target, span=span) | syntax.Postfix(op=op, operand=target, span=span):
                op, value = op[0], syntax.Constant("1", span)
            case _:
                raise AssertionError(expression)
        if not isinstance(target, syntax.Name) or not isinstance(self._scopes.resolve(target.name), ScalarSymbol):
            return None
        level = Level(self._calls.origin)
        right = self._value(value, level)
        built = self._target(target, level)
        assert isinstance(built, ir.Var)
        if op in ("%", "&", "|", "^", "<<", ">>"):
            self.expressions.require_integers(f"{op}=", (built, right), expression.span)
        return ir.Assign(built, op, right, expression.span)

    def _copied(self, target: Whole, value: syntax.Expression, span: Span, level: Level) -> tuple[ir.Stmt, ...]:
        """Assign a structure, member by member."""
        self._calls.origin = level.origin
        if len(target.names) > MOST_COPIED:
            message = f"a structure with {len(target.names)} members is copied"
            way_out = "copy the members that are needed."
            raise self._reporter.refuse("MF0205", span, message, way_out=way_out)
        self._calls.alone = value if isinstance(value, syntax.Invocation) else None
        source = self.expressions.whole_as(target, value)
        if source is None:
            self.expressions.no_structure(value)
        if source is None or not source.alike(target):
            raise self._reporter.refuse("MF0205", value.span, "this is no structure of the type that it is assigned to")
        built: list[ir.Stmt] = []
        for to, of in zip(target.values, source.values, strict=True):
            self._note(of, level)
            assert isinstance(to, ir.Element)
            built.append(ir.Assign(to, "", of, span))
        return (*self._ahead(level), *built)
