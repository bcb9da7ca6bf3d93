"""Calls of functions of the file, put in line: what they compute becomes expressions and statements of the schedule.

A function that only returns values (``return e;``, or ``if (c) return a; return b;``) becomes an expression; its
arguments stand for its parameters. The statements of any other one come ahead of the statement with the call, in a
scope that sees the file's names and not the caller's.  One that writes to memory must be called on its own, because C
leaves open when the rest of an expression is evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.inlining.bodies import (
    assigned_first,
    chooses,
    is_pointer,
    items_of,
    names_beyond,
    own_parameters,
    rank,
    roots,
    stores,
    targets_in,
)
from metafork.frontend.schedules.inlining.functions import FileFunction, Functions
from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.structure_parts import Whole, whole_of
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, PointedSymbol, ScalarSymbol, Symbol, ValueSymbol
from metafork.frontend.schedules.values.conversions import converted
from metafork.frontend.text import syntax
from metafork.frontend.text.jumps import RETURNED, VALUE, ReturnLowering, has_return
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import StructureType
from metafork.ir import program as ir
from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span

MOST_CALLS = 500
"""Calls of a schedule that are put in line, those in functions included."""

_SMALL = 12
"""Operations of an argument that may be evaluated anew wherever its parameter stands."""


class Calls:
    """Puts calls in line.

    ``statements`` builds statements in the innermost scope, with the origin of their scalars.  ``origin`` is that of
    scalars where the call stands, ``alone`` the one call of its statement that may write (``apart``).
    """

    def __init__(
        self,
        reporter: Reporter,
        scopes: Scopes,
        expressions: ExpressionBuilder,
        functions: Functions | None,
        statements: Callable[[Sequence[syntax.Statement], Origin], tuple[ir.Stmt, ...]],
    ) -> None:
        self._reporter = reporter
        self._scopes = scopes
        self._expressions = expressions
        self._functions = functions
        self._statements = statements
        self._stack: list[str] = []
        self._count = 0
        self._writing: dict[str, bool] = {}
        self.origin = Origin.BLOCK
        self.alone: syntax.Invocation | None = None

    def value(self, call: syntax.Invocation, name: str) -> ir.Expr | None:
        """Return what a call gives; ``None`` where the file has no body of that function.

        Raises ``RefusedError`` after reporting.
        """
        function = self._function(name)
        if function is None:
            return None
        if function.returns is None:
            raise self._reporter.refuse("MF0223", call.span, f"`{name}` gives no value")
        if self._expressions.structure_type(function.returns) is not None:
            message = f"`{name}` returns a structure, which stands here without a member"
            raise self._reporter.refuse("MF0205", call.span, message, way_out="assign it to a variable of its type.")
        found = self._inline(call, function, self._expressions.named_type(function.returns))
        assert isinstance(found, ir.Expr)
        return found

    def structure(self, call: syntax.Invocation, name: str) -> Whole | None:
        """Return the structure that a call gives, ``None`` for any other call; raises ``RefusedError``."""
        function = self._function(name)
        if function is None or function.returns is None or function.returns.pointers:
            return None
        structure = self._expressions.structure_type(function.returns)
        if structure is None:
            return None
        if self.origin is Origin.BLOCK:
            message = f"`{name}` returns a structure, and this call stands between grid and threads"
            raise self._reporter.refuse("MF0205", call.span, message, way_out="call it in the code of the threads.")
        found = self._inline(call, function, structure)
        assert isinstance(found, Whole)
        return found

    def effect(self, call: syntax.Expression) -> bool:
        """Put a call in line for what it writes, and say whether it is one of a function of the file."""
        if not isinstance(call, syntax.Invocation) or not isinstance(call.callee, syntax.Name):
            return False
        found = self._scopes.resolve(call.callee.name)
        if isinstance(found, ScalarSymbol | ArraySymbol | ValueSymbol):
            return False
        function = self._function(call.callee.name)
        if function is None:
            return False
        self.alone = call
        returns: ScalarType | StructureType | None = None
        if function.returns is not None:
            returns = self._expressions.structure_type(function.returns)
            returns = returns or self._expressions.named_type(function.returns)
        self._inline(call, function, returns)
        return True

    def _function(self, name: str) -> FileFunction | None:
        return None if self._functions is None else self._functions.find(name)

    # --- one call ---------------------------------------------------------------------------------------------

    def _inline(
        self, call: syntax.Invocation, function: FileFunction, returns: ScalarType | StructureType | None
    ) -> ir.Expr | Whole | None:
        name, later = function.name, self.alone
        self._check(call, function)
        parameters, copied = self._parameters(call, function)
        self._stack.append(name)
        try:
            with (
                self._reporter.context(call.span, f"`{name}` is called here"),
                self._scopes.function(name, parameters),
            ):
                self._check_arrays(call, function, parameters)
                for declarator, type_, value in copied:
                    self._declare(declarator.name, declarator.name, type_, value, declarator.name_span)
                if isinstance(returns, StructureType):
                    return self._structure_body(function, returns)
                return self._body(function, returns)
        finally:
            self._stack.pop()
            self.alone = None if call is later else later

    def _check(self, call: syntax.Invocation, function: FileFunction) -> None:
        name = function.name
        if name in self._stack:
            through = " through " + ", ".join(f"`{one}`" for one in self._stack[self._stack.index(name) + 1 :])
            message = f"`{name}` calls itself{through if self._stack[-1] != name else ''}"
            raise self._reporter.refuse("MF0222", call.span, message, related=((function.span, "defined here"),))
        self._count += 1
        if self._count > MOST_CALLS:
            message = f"more than {MOST_CALLS} calls of functions stand in this schedule, those in functions included"
            raise self._reporter.refuse("MF0223", call.span, message, way_out="write a loop in place of what repeats.")
        if len(call.arguments) != len(function.parameters):
            number = len(function.parameters)
            message = f"`{name}` takes {number} argument{'s' * (number != 1)}, {len(call.arguments)} given"
            raise self._reporter.refuse("MF0207", call.span, message, related=((function.span, "defined here"),))
        alone, self.alone = self.alone, None
        if self._writes(function) and call is not alone:
            raise self._reporter.refuse(
                "MF0223",
                call.span,
                f"`{name}` writes to memory, and its call stands beside what may read it, or beside another call",
                reason="C does not say whether the rest of the expression is evaluated before or after it.",
                way_out=f"call it in a statement of its own: `{name}(...);` or `x = {name}(...);` with a scalar `x`.",
            )

    def apart(
        self, value: syntax.Expression, target: syntax.Expression | None = None, *, updated: bool = False
    ) -> syntax.Invocation | None:
        """Return the one call in a value where it is all the same whether it is before or after all around it.

        That is made of numbers and of scalars that the call is not given the addresses of, and of elements of arrays
        where it is given scalars alone, and reaches nothing else; so are indices of the ``target`` to which the value
        is assigned, or the target itself where it is ``updated``.
        """
        around, calls, elements = [value], list[syntax.Invocation](), False
        if updated and target is not None:
            around.append(target)
        while isinstance(target, syntax.Subscript | syntax.Member):
            around += [target.index] if isinstance(target, syntax.Subscript) else []
            target = target.base
        if target is not None and not isinstance(target, syntax.Name):
            return None
        names: set[str] = set()
        while around:
            match around.pop():
                case syntax.Invocation() as call if self._is_of_file(call):
                    calls.append(call)
                case syntax.Invocation(arguments=arguments):  # of the mathematical library
                    around += arguments
                case syntax.Name(name=name):
                    names.add(name)
                case syntax.Constant():
                    pass
                case syntax.Infix(op=op, left=left, right=right) if op not in ir.LOGICAL:
                    around += [left, right]
                case syntax.Prefix(op="+" | "-" | "~" | "!", operand=operand) | syntax.Conversion(operand=operand):
                    around.append(operand)
                case syntax.Subscript(base=base, index=index):
                    around += [base, index]
                    elements = True
                case _:
                    return None
        if len(calls) != 1:
            return None
        parts = [part for argument in calls[0].arguments for part in syntax.walk(argument)]
        addresses = [one.operand for one in parts if isinstance(one, syntax.Prefix) and one.op == "&"]
        given = {name for one in addresses for name in roots(one)}
        handed = [self._scopes.resolve(part.name) for part in parts if isinstance(part, syntax.Name)]
        scalars = all(isinstance(one, ScalarSymbol | ValueSymbol) for one in handed)
        harmless = not elements or (scalars and not self._reaches_beyond(calls[0]))
        return calls[0] if harmless and not names & given else None

    def apart_in_condition(self, condition: syntax.Expression) -> syntax.Invocation | None:
        """Return the one call in a condition that may write: of ``&&`` and ``||`` one side comes first."""
        match condition:
            case syntax.Infix(op="&&" | "||", left=left, right=right):
                first = self.apart_in_condition(left)
                if first is not None and isinstance(first.callee, syntax.Name):
                    function = self._function(first.callee.name)
                    if function is not None and self._writes(function):
                        return first
                return self.apart_in_condition(right)
            case syntax.Prefix(op="!", operand=operand):
                return self.apart_in_condition(operand)
            case _:
                return self.apart(condition)

    def _is_of_file(self, call: syntax.Invocation) -> bool:
        """Say whether a call is one of a function of the file, or of what is not known."""
        if self._functions is None or not isinstance(call.callee, syntax.Name):
            return True
        return call.callee.name in self._functions.names or call.callee.name not in SIGNATURES

    def _reaches_beyond(self, call: syntax.Invocation) -> bool:
        """Say whether a call may come to memory that it is not given: to arrays of the file."""
        function = self._function(call.callee.name) if isinstance(call.callee, syntax.Name) else None
        if function is None or self._functions is None:
            return True
        return any(names_beyond(one) for one in (function, *self._functions.reached(function.body)))

    def _writes(self, function: FileFunction) -> bool:
        """Return whether a function, or one that it calls, writes to anything but its own scalars."""
        if function.name not in self._writing:
            self._writing[function.name] = False  # one that calls itself is refused anyway
            assert self._functions is not None
            reached = [function, *self._functions.reached(function.body)]
            self._writing[function.name] = any(stores(one.body, own_parameters(one)) for one in reached)
        return self._writing[function.name]

    # --- arguments --------------------------------------------------------------------------------------------

    def _parameters(
        self, call: syntax.Invocation, function: FileFunction
    ) -> tuple[dict[str, Symbol], list[tuple[syntax.Declarator, ScalarType, ir.Expr]]]:
        """Return what parameters stand for, and those that are variables of the function's own, with their values."""
        bound: dict[str, Symbol] = {}
        copied: list[tuple[syntax.Declarator, ScalarType, ir.Expr]] = []
        fault = False
        pairs = list(zip(function.parameters, call.arguments, strict=True))
        points = any(is_pointer(parameter) and self._scalar_behind(argument) for parameter, argument in pairs)
        stored = self._writes(function)
        parts = list(syntax.expressions_in(function.body))
        assigned = {target.name for target in targets_in(parts) if isinstance(target, syntax.Name)}
        uses = Counter(part.name for part in parts if isinstance(part, syntax.Name))
        for declarator, argument in pairs:
            try:
                if is_pointer(declarator) or declarator.type.extents:
                    bound[declarator.name] = self._memory(declarator, argument, points, stored)
                    continue
                structure = self._expressions.structure_type(declarator.type)
                if structure is not None:
                    bound[declarator.name] = self._structure(declarator, structure, argument)
                    continue
                type_ = self._expressions.named_type(declarator.type)
                value = converted(self._expressions.build(argument), type_)
                if declarator.name in assigned:
                    copied.append((declarator, type_, value))
                elif self._may_stand(value, function, uses[declarator.name], points, stored):
                    bound[declarator.name] = ValueSymbol(value, declarator.name_span)
                else:
                    bound[declarator.name] = ValueSymbol(self._kept(declarator.name, value), declarator.name_span)
            except RefusedError:
                fault = True
        if fault:
            raise RefusedError
        return bound, copied

    def _structure(
        self, declarator: syntax.Declarator, structure: StructureType, argument: syntax.Expression
    ) -> ArraySymbol:
        """Return a structure of the function's own with the members of the argument."""
        if self.origin is Origin.BLOCK:
            message = f"`{declarator.name}` is a structure, and this call stands between grid and threads"
            raise self._reporter.refuse("MF0223", argument.span, message, way_out="hand over its members.")
        given = self._expressions.whole_as(structure, argument)
        own = self._own(declarator.name, structure, declarator.name_span)
        mine = whole_of(own, argument.span)
        if given is None or not given.alike(mine):
            message = f"this is no structure of the type of `{declarator.name}`"
            raise self._reporter.refuse("MF0223", argument.span, message)
        self._expressions.ahead.append(ir.PrivateArray(own.array, argument.span))
        for to, of in zip(mine.values, given.values, strict=True):
            assert isinstance(to, ir.Element)
            self._expressions.ahead.append(ir.Assign(to, "", of, argument.span))
        return own

    def _own(self, name: str, structure: StructureType, span: Span) -> ArraySymbol:
        """Return a structure of a thread's own, under a name like the given one."""
        assert structure.element is not None
        extents = (ir.IntConst(1), ir.IntConst(len(structure.members)))
        array = ir.Array(self._scopes.fresh(name), structure.element, extents, span, slots=structure.slots)
        return ArraySymbol(array, of_thread=True, members=structure.members, single=True)

    def _may_stand(self, value: ir.Expr, function: FileFunction, uses: int, points: bool, stored: bool) -> bool:
        """Return whether an argument may be evaluated wherever its parameter stands."""
        parts = list(ir.walk_expression(value))
        memory = any(isinstance(part, ir.Element) for part in parts)
        if all(isinstance(part, ir.IntConst | ir.FloatConst | ir.Cast) for part in parts):
            return True
        if points or (stored and memory):
            return False
        if isinstance(value, ir.Var):
            return True
        costs = memory or value.type.floating or any(isinstance(part, ir.Call) for part in parts)
        if not chooses(items_of(function.body)):
            return not costs and len(parts) <= _SMALL
        return uses <= 1 or (not costs and len(parts) <= _SMALL)

    def _kept(self, name: str, value: ir.Expr) -> ir.Var:
        """Evaluate a value once, ahead of the statement."""
        kept = ir.Var(self._scopes.fresh(name), value.type, value.span)
        self._expressions.ahead.append(ir.Declare(kept.name, value.type, value, value.span))
        return kept

    def _scalar_behind(self, argument: syntax.Expression) -> bool:
        if not (
            isinstance(argument, syntax.Prefix) and argument.op == "&" and isinstance(argument.operand, syntax.Name)
        ):
            return False
        return not isinstance(self._scopes.resolve(argument.operand.name), ArraySymbol)

    def _memory(self, declarator: syntax.Declarator, argument: syntax.Expression, points: bool, stored: bool) -> Symbol:
        """Return the array, or the scalar, that a parameter points to."""
        plain = replace(declarator.type, extents=(), pointers=0)
        structure = self._expressions.structure_type(plain)
        element = self._expressions.named_type(plain) if structure is None else structure.element
        members = () if structure is None else structure.members
        slots = () if structure is None else structure.slots
        assert element is not None
        const = "const" in declarator.type.qualifiers
        if isinstance(argument, syntax.Prefix) and self._scalar_behind(argument):
            variable = self._expressions.build(argument.operand)
            symbol = self._scopes.local(variable.name) if isinstance(variable, ir.Var) else None
            if symbol is None or rank(declarator) != 1:
                raise self._reporter.refuse(
                    "MF0202", argument.span, "what this address points to is no scalar of the schedule"
                )
            self._same_type(argument.span, symbol.type, element)
            return PointedSymbol(symbol, declarator.name_span, const or symbol.const)
        if isinstance(argument, syntax.Name):
            pointed = self._expressions.symbol(argument.name, argument.span)
            if isinstance(pointed, PointedSymbol) and rank(declarator) == 1:
                self._same_type(argument.span, pointed.scalar.type, element)
                return replace(pointed, const=const or pointed.const)
        part = self._expressions.part(argument)
        if (
            part is None
            or len(part.extents) != rank(declarator) + bool(members)
            or part.members != members
            or part.array.slots != slots
        ):
            message = f"this is no array of the kind that `{declarator.name}` stands for"
            raise self._reporter.refuse("MF0223", argument.span, message)
        self._same_type(argument.span, part.array.element, element)
        fixed = [self._fixed(index, points, stored) for index in part.prefix]
        offset = None if part.offset is None else self._fixed(part.offset, points, stored)
        return replace(part, const=part.const or const, prefix=tuple(fixed), offset=offset, pointer=True)

    def _fixed(self, index: ir.Expr, points: bool, stored: bool) -> ir.Expr:
        parts = list(ir.walk_expression(index))
        moves = points or any(isinstance(part, ir.Element | ir.Call) for part in parts) or len(parts) > _SMALL
        return self._kept("place", index) if moves and not isinstance(index, ir.IntConst) else index

    def _same_type(self, span: Span, given: ScalarType, taken: ScalarType) -> None:
        if given is not taken:
            message = f"elements of type `{given.spelling}` are given where `{taken.spelling}` is taken"
            raise self._reporter.refuse("MF0223", span, message)

    def _check_arrays(self, call: syntax.Invocation, function: FileFunction, bound: dict[str, Symbol]) -> None:
        """Refuse arrays that the function declares with other inner extents than they have."""
        for declarator, argument in zip(function.parameters, call.arguments, strict=True):
            symbol = bound.get(declarator.name)
            if not isinstance(symbol, ArraySymbol):
                continue
            if not declarator.type.extents:
                continue  # a pointer, or a structure
            extents = symbol.extents[1:-1] if symbol.members else symbol.extents[1:]
            for written, extent in zip(declarator.type.extents[1:], extents, strict=True):
                before = len(self._expressions.ahead)
                same = written is not None and self._expressions.build(written) == extent
                if not same or len(self._expressions.ahead) > before:
                    raise self._reporter.refuse(
                        "MF0223",
                        argument.span,
                        f"`{declarator.name}` is declared with other inner extents than this array has",
                        related=((declarator.span, "declared here"), (symbol.array.span, "the array")),
                        way_out="declare it with the same extents, and give the function what they are computed from.",
                    )

    # --- the body ---------------------------------------------------------------------------------------------

    def _declare(self, key: str, base: str, type_: ScalarType, value: ir.Expr | None, span: Span) -> str:
        unique = self._scopes.introduce(key, ScalarSymbol("", type_, self.origin, span), span, base)
        self._expressions.ahead.append(ir.Declare(unique, type_, value, span))
        return unique

    def _body(self, function: FileFunction, returns: ScalarType | None) -> ir.Expr | None:
        """Build what a function does, ahead of the statement, and return its value."""
        items = assigned_first(items_of(function.body))
        alone = len(items) == 1 and isinstance(items[0], syntax.Jump)
        if returns is not None and not alone and chooses(items):
            return self._chosen(items, returns)
        last = items[-1] if items else None
        if isinstance(last, syntax.Jump) and not any(has_return(item) for item in items[:-1]):
            self._expressions.ahead += self._built(items[:-1])
            self._check_return(last, returns)
            if last.value is None or returns is None:
                return None
            self.alone = None if last.value is None else self.apart(last.value)
            return converted(self._expressions.build(last.value), returns)
        lowering = ReturnLowering(function.span)
        lowered = lowering.body(items)
        for item in items:
            for part in syntax.walk_statements(item):
                if isinstance(part, syntax.Jump) and part.word == "return":
                    self._check_return(part, returns)
        result = ""
        if returns is not None:
            result = self._declare(VALUE, function.name, returns, None, function.span)
        if lowering.flagged:
            self._declare(RETURNED, "returned", ScalarType.INT, ir.IntConst(0), function.span)
        self._expressions.ahead += self._built(lowered)
        return None if returns is None else ir.Var(result, returns, function.span)

    def _structure_body(self, function: FileFunction, returns: StructureType) -> Whole:
        """Build what a function does, ahead of the statement, and return the structure that it gives."""
        items = items_of(function.body)
        lowering = ReturnLowering(function.span)
        lowered = lowering.body(items)
        for item in items:
            for part in syntax.walk_statements(item):
                if isinstance(part, syntax.Jump) and part.word == "return":
                    self._check_return(part, returns)
        result = self._own(function.name, returns, function.span)
        self._expressions.ahead.append(ir.PrivateArray(result.array, function.span))
        self._scopes.declare_array(VALUE, result)
        if lowering.flagged:
            self._declare(RETURNED, "returned", ScalarType.INT, ir.IntConst(0), function.span)
        self._expressions.ahead += self._built(lowered)
        return whole_of(result, function.span)

    def _check_return(self, jump: syntax.Jump, returns: ScalarType | StructureType | None) -> None:
        if (jump.value is None) != (returns is None):
            message = "this `return` gives no value" if jump.value is None else "this function gives no value"
            raise self._reporter.refuse("MF0223", jump.span, message)

    def _built(self, items: Sequence[syntax.Statement]) -> tuple[ir.Stmt, ...]:
        outer, self._expressions.ahead = self._expressions.ahead, []
        origin = self.origin
        try:
            return self._statements(items, origin)
        finally:
            self._expressions.ahead, self.origin = outer, origin

    def _chosen(self, items: Sequence[syntax.Statement], returns: ScalarType) -> ir.Expr:
        first = items[0]
        if isinstance(first, syntax.Jump):
            assert first.value is not None
            return converted(self._expressions.build(first.value), returns)
        assert isinstance(first, syntax.IfStatement)
        rest = items[1:] if first.otherwise is None else items_of(first.otherwise)
        return self._expressions.choice(
            first.condition,
            lambda: self._chosen(items_of(first.then), returns),
            lambda: self._chosen(rest, returns),
            first.span,
        )
