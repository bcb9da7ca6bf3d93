"""Derived scalars: those whose value at a schedule is an expression in parameters and earlier derived scalars."""

from __future__ import annotations

from msgspec import Struct

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.schedules.expressions import ExpressionBuilder
from metafork.frontend.schedules.inlining.functions import Functions
from metafork.frontend.schedules.symbols import Origin, ScalarSymbol, Symbol, ValueSymbol
from metafork.frontend.schedules.values.conversions import converted
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import RefusedError, SilentReporter
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source

MOST_NESTED = 8
"""Functions that call each other, in the definition of a derived scalar."""


class Definition(Struct, frozen=True):
    """A derived scalar with its defining expression, and the variables in it."""

    variable: Variable
    expression: ir.Expr
    order: int
    operands: tuple[Variable, ...]


class HostValues:
    """Values of host scalars at one schedule: derived from others, or parameters."""

    def __init__(self, host: HostFunction, site: Site, source: Source, functions: Functions | None = None) -> None:
        self._host = host
        self._functions = functions
        self._site = site
        self._silent = SilentReporter()
        self._definitions: dict[str, Definition | None] = {}

    def definition(self, variable: Variable) -> Definition | None:
        """Return how a scalar is derived from others at the schedule; ``None`` where it is a parameter."""
        if variable.name not in self._definitions:
            self._definitions[variable.name] = None  # a variable cannot be derived from itself
            self._definitions[variable.name] = self._derive(variable)
        return self._definitions[variable.name]

    def _derive(self, variable: Variable) -> Definition | None:
        if variable.type is None or not variable.type.integer or variable.type is ScalarType.BOOL:
            return None
        write = self._host.definition(variable, self._site)
        if write is None or write.value is None:
            return None
        found = self.integer(write.value, write.order, write.scope)
        if found is None:
            return None
        expression, operands = found
        if variable in operands:
            return None
        return Definition(variable, expression, write.order, operands)

    def integer(
        self, value: syntax.Expression, since: int, scope: dict[str, Variable], checked: bool = False
    ) -> tuple[ir.Expr, tuple[Variable, ...]] | None:
        """Return an integer expression of the host that still holds at the schedule, with its variables.

        Where it is ``checked`` at run time that its value is what it was, what is not known may have changed it.
        """
        operands: dict[str, Variable] = {}

        def resolve(name: str) -> Symbol | None:
            variable = scope.get(name)
            if variable is None or variable.type is None:
                return None
            if self._site.visible.get(name) is not variable:
                raise RefusedError  # another variable of that name hides it at the schedule
            changes = self._host.changes(variable, since, self._site)
            if any(not (checked and change.unknown) for change in changes):
                raise RefusedError
            operands[name] = variable
            return ScalarSymbol(name, variable.type, Origin.HOST, variable.span)

        def given(name: str) -> ir.Var | None:
            """Return whether a pointer is not null, which says nothing of it where it may be another one by then."""
            pointer = scope.get(name)
            asked = None if pointer is None or self._host.stable(pointer, 0, self._site) is not None else pointer.given
            if asked is None:
                return None
            operands[asked.name] = asked
            return ir.Var(asked.name, ScalarType.INT)

        builder = ExpressionBuilder(self._silent, self._host.typedefs, resolve, list)
        builder.given = given
        if not checked:  # the extents of arrays are declared in the generated header too, which has no functions
            builder.inline = lambda call, name: self._returned(builder, call, scope.get(name), MOST_NESTED)
        try:
            expression = builder.build(value)
        except RefusedError:
            return None
        if any(part.type.floating or isinstance(part, ir.Call | ir.Element) for part in ir.walk_expression(expression)):
            return None
        return expression, tuple(operands.values())

    def _returned(
        self, caller: ExpressionBuilder, call: syntax.Invocation, called: Variable | None, most: int
    ) -> ir.Expr | None:
        """Return what a function of the file gives that does nothing but return an expression of its parameters."""
        if self._functions is None or called is None or self._host.file_scope.get(called.name) is not called:
            return None
        function = self._functions.find(called.name)
        if function is None or function.returns is None or len(function.body.items) != 1 or not most:
            return None
        (last,) = function.body.items
        if not isinstance(last, syntax.Jump) or last.value is None or len(call.arguments) != len(function.parameters):
            return None
        given: dict[str, Symbol] = {}
        for parameter, argument in zip(function.parameters, call.arguments, strict=True):
            value = converted(caller.build(argument), caller.named_type(parameter.type))
            given[parameter.name] = ValueSymbol(value, parameter.name_span)
        inside = ExpressionBuilder(self._silent, self._host.typedefs, given.get, list)
        file = self._host.file_scope
        inside.inline = lambda inner, name: self._returned(inside, inner, file.get(name), most - 1)
        return converted(inside.build(last.value), caller.named_type(function.returns))
