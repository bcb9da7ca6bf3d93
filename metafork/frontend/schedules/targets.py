"""What statements may write, and the values that they read: the same at block level and in threads, within limits.

At block level nothing is written but the block's scalars, because every thread runs it alike; in a thread nothing is
written that its neighbours share, but elements of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.inlining.calls import Calls
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.structure_parts import Whole, members_at, path_of
from metafork.frontend.schedules.symbols import ArraySymbol, Origin, PointedSymbol, ScalarSymbol
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import TypeNames
from metafork.ir import program as ir
from metafork.ir.messages.source import Span


class Level(Struct):
    """Where a statement stands: at block level or in a thread, and how many serial loops are around it there."""

    origin: Origin
    serial_loops: int = 0


def _base(target: syntax.Expression) -> str:
    """Return the name of the array of an element that was understood."""
    while not isinstance(target, syntax.Name):
        match target:
            case (
                syntax.Subscript(base=target)
                | syntax.Member(base=target)
                | syntax.Prefix(operand=target)
                | syntax.Infix(left=target)
            ):
                pass
            case _:
                raise AssertionError(target)
    return target.name


class Targets:
    """Builds targets and values of statements.

    ``shared`` are scalars that no iteration may write, ``reduced`` those of the block that threads add up in,
    ``written`` the arrays that are written, ``uniform_reads`` the reads of arrays at block level.
    """

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        scopes: Scopes,
        functions: Functions | None,
        inlined: Callable[[Sequence[syntax.Statement], Origin], tuple[ir.Stmt, ...]],
    ) -> None:
        self._reporter = reporter
        self._scopes = scopes
        self.expressions = ExpressionBuilder(reporter, typedefs, scopes.resolve, scopes.visible)
        self._calls = Calls(reporter, scopes, self.expressions, functions, inlined)
        self.expressions.inline = self._calls.value
        self.expressions.inline_structure = self._calls.structure
        self.expressions.complex.returning = lambda name: _returned(functions, name)
        self.expressions.fresh = scopes.fresh
        self.expressions.given = scopes.given
        self.expressions.functions = [] if functions is None else functions.names
        self.shared: dict[str, Span] = {}
        self.reduced: set[str] = set()
        self.named_results: set[str] = set()
        self.written: set[str] = set()
        self.uniform_reads: list[ir.Element] = []

    def _called(self, expression: syntax.Expression, level: Level) -> bool:
        """Put a call in line that is a statement of its own; return false for any other expression."""
        self._calls.origin = level.origin
        return self._calls.effect(expression)

    def _target(self, target: syntax.Expression, level: Level) -> ir.Var | ir.Element:
        self._calls.origin = level.origin
        if isinstance(target, syntax.Subscript) or (isinstance(target, syntax.Prefix) and target.op == "*"):
            element = self.expressions.element(target)
            symbol = self._scopes.resolve(_base(target))
            if isinstance(element, ir.Var) and isinstance(symbol, PointedSymbol):
                if symbol.const:
                    raise self._reporter.refuse("MF0305", target.span, "what this points to is `const`")
                self._check_write(syntax.Name(element.name, target.span), element, level)
                return element
            assert isinstance(element, ir.Element)
            assert isinstance(symbol, ArraySymbol)
            self._note(element, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return element
        if isinstance(target, syntax.Member):
            member = self.expressions.member(target)
            path = path_of(target)
            owner = None if path is None else self.expressions.structure(path[0])
            symbol = None if owner is None else self._scopes.resolve(_base(target))
            if not isinstance(member, ir.Element) or not isinstance(symbol, ArraySymbol):
                raise self._reporter.refuse("MF0311", target.span, "a member of a value cannot be assigned")
            element = member
            self._note(element, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return element
        if not isinstance(target, syntax.Name):
            self.expressions.build(target)  # reports pointers and structures by their own codes
            raise self._reporter.refuse("MF0311", target.span, "this cannot be assigned")
        symbol = self._scopes.resolve(target.name)
        if isinstance(symbol, ScalarSymbol) and symbol.number is not None:
            self._check_write(target, ir.Var(symbol.name, symbol.type, target.span), level)
        found = self.expressions.build(target)
        if isinstance(found, ir.Element) and isinstance(symbol, ArraySymbol):
            self._note(found, level, reads=False)
            self._check_element_write(symbol, target.span, level)
            return found
        if not isinstance(found, ir.Var):
            raise self._reporter.refuse("MF0311", target.span, "a constant cannot be assigned")
        self._check_write(target, found, level)
        return found

    def _check_element_write(self, symbol: ArraySymbol, span: Span, level: Level) -> None:
        name = symbol.array.name
        if symbol.const:
            message = f"the array `{name}` is `const`"
            raise self._reporter.refuse("MF0305", span, message, related=((symbol.array.span, "declared here"),))
        if level.origin is Origin.BLOCK:
            raise self._reporter.refuse("MF0108", span, f"`{name}` is written at block level")
        self.written.add(name)

    def _check_write(self, target: syntax.Name, found: ir.Var, level: Level) -> None:
        symbol = self._scopes.local(found.name)
        if symbol is None:
            if target.name in self.named_results:
                raise RefusedError  # what the clause that names it says is reported
            host = self._scopes.resolve(target.name)
            related = ((host.span, "declared here"),) if isinstance(host, ScalarSymbol) else ()
            message = f"`{target.name}` is declared outside the schedule and written in it"
            raise self._reporter.refuse("MF0304", target.span, message, related=related)
        related = ((symbol.span, "declared here"),)
        if symbol.const:
            raise self._reporter.refuse("MF0305", target.span, f"`{target.name}` is `const`", related=related)
        if symbol.origin in (Origin.GRID_INDEX, Origin.THREAD_INDEX):
            message = f"`{target.name}` is the variable of a `meta_for`"
            raise self._reporter.refuse("MF0113", target.span, message, related=related)
        if found.name in self.reduced:
            return
        if found.name in self.shared or (symbol.origin is Origin.BLOCK and level.origin is Origin.THREAD):
            message = f"`{target.name}` is shared by the iterations that write it here"
            raise self._reporter.refuse("MF0109", target.span, message, related=related)

    def _value(self, expression: syntax.Expression, level: Level, condition: bool = False) -> ir.Expr:
        self._calls.origin = level.origin
        built = self.expressions.condition(expression) if condition else self.expressions.build(expression)
        self._note(built, level)
        return built

    def _note(self, expression: ir.Expr, level: Level, reads: bool = True) -> None:
        """Note the arrays that an expression reads at block level."""
        if level.origin is Origin.BLOCK:
            for part in ir.walk_expression(expression):
                if isinstance(part, ir.Element) and (reads or part is not expression):
                    self.uniform_reads.append(part)

    def check_uniform_reads(self) -> None:
        """Refuse reads at block level of what the schedule writes; to be called when all statements are built."""
        for read in self.uniform_reads:
            if read.array in self.written and not self._scopes.is_of_block(read.array):
                self._reporter.error(
                    "MF0110", read.span, f"`{read.array}` is read at block level and written in the same schedule"
                )

    def extent(self, expression: syntax.Expression) -> ir.Expr:
        """Build an extent: an integer expression over parameters."""
        extent = self.expressions.build(expression)
        if self.expressions.ahead:
            self.expressions.ahead.clear()
            message = "this extent calls a function that does more than return a value of small arguments"
            raise self._reporter.refuse("MF0105", expression.span, message)
        for part in ir.walk_expression(extent):
            if isinstance(part, ir.Element):
                raise self._reporter.refuse("MF0105", part.span, f"this extent reads the array `{part.array}`")
            if isinstance(part, ir.Call):
                raise self._reporter.refuse("MF0105", part.span, f"this extent calls `{part.name}`")
            if isinstance(part, ir.Var) and (symbol := self._scopes.local(part.name)) is not None:
                message = f"this extent depends on `{part.name}`, a variable of {symbol.origin.value}"
                raise self._reporter.refuse("MF0105", part.span, message, related=((symbol.span, "declared here"),))
        if extent.type.floating:
            message = f"this extent has type `{extent.type.spelling}`"
            raise self._reporter.refuse("MF0104", expression.span, message)
        return extent

    def _ahead(self, level: Level) -> tuple[ir.Stmt, ...]:
        """Return what must be done before the expressions that were built, and forget it."""
        ahead = tuple(self.expressions.ahead)
        self.expressions.ahead.clear()
        for statement in ir.walk_statements(ahead):
            for expression in ir.expressions_of(statement):
                self._note(expression, level)
        return ahead

    def _of_structures(self, target: syntax.Expression) -> bool:
        """Return whether a target that is no member names an array of structures."""
        while not isinstance(target, syntax.Name):
            match target:
                case syntax.Subscript(base=target) | syntax.Prefix(operand=target) | syntax.Infix(left=target):
                    pass
                case _:
                    return False
        with suppress(RefusedError):
            symbol = self._scopes.resolve(target.name)
            return isinstance(symbol, ArraySymbol) and bool(symbol.members)
        return False

    def _inner_structure(self, target: syntax.Expression, level: Level) -> Whole | None:
        """Return a structure in another one that is assigned to, ``None`` for any other target."""
        found = path_of(target)
        owner = None if found is None else self.expressions.structure(found[0])
        if found is None or owner is None:
            return None
        begun = [parts for _, parts in members_at(owner.members, found[1])]
        if not begun or any(len(parts) == len(found[1]) for parts in begun):
            return None
        self._check_element_write(owner, target.span, level)
        return self.expressions.members(target)


def _returned(functions: Functions | None, name: str) -> syntax.TypeName | None:
    """Return the type of what a function of the file returns, ``None`` for any other name."""
    found = None if functions is None else functions.find(name)
    return None if found is None else found.returns
