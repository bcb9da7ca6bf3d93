"""Derived scalars: those whose value at a schedule is an expression in parameters and earlier derived scalars."""

from __future__ import annotations

from dataclasses import dataclass

from metafork.frontend import syntax
from metafork.frontend.expressions import ExpressionBuilder
from metafork.frontend.host import HostFunction
from metafork.frontend.host_variables import Site, Variable
from metafork.frontend.reporter import RefusedError, Reporter
from metafork.frontend.symbols import Origin, ScalarSymbol, Symbol
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source, Span


class _Silent(Reporter):
    """Takes note of nothing: for expressions of the host that may well be beyond the language."""

    def error(self, code: str, span: Span, message: str, **_: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Definition:
    """A derived scalar with its defining expression, and the variables in it."""

    variable: Variable
    expression: ir.Expr
    order: int
    operands: tuple[Variable, ...]


class HostValues:
    """Values of host scalars at one schedule: derived from others, or parameters."""

    def __init__(self, host: HostFunction, site: Site, source: Source) -> None:
        self._host = host
        self._site = site
        self._silent = _Silent(source)
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

        builder = ExpressionBuilder(self._silent, self._host.typedefs, resolve, list)
        try:
            expression = builder.build(value)
        except RefusedError:
            return None
        if any(part.type.floating or isinstance(part, ir.Call | ir.Element) for part in ir.walk_expression(expression)):
            return None
        return expression, tuple(operands.values())
