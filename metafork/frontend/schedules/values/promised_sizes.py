"""Extents that a pragma within a function says by its locals, in terms of the function's parameters.

``before --> after``::

    const int m = n * s;
    #pragma metafork extents(x[m + 1])        -->  extents(x[(n * s) + 1])

A local is written out that is assigned once, before the pragma, by an expression that still holds at a schedule.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.schedules.values.derived import MOST_NESTED, HostValues
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source


def in_parameters(
    extent: syntax.Expression, host: HostFunction, source: Source, reporter: Reporter
) -> syntax.Expression:
    """Return an extent with locals written out; reports MF0321 where that is not known, and returns any extent then."""
    names = syntax.names_in(extent)
    locals_ = [one for one in host.variables if one.name in names - host.outer.keys()]
    if not locals_:
        return extent
    for site in host.sites:
        if all(_before(one, extent) for one in locals_) and all(site.visible.get(one.name) is one for one in locals_):
            try:
                return _WrittenOut(host, site, HostValues(host, site, source)).expression(extent, MOST_NESTED)
            except RefusedError:
                continue
    names = {one.name for one in locals_}
    listed = " and ".join(f"`{name}`" for name in sorted(names))
    message = f"what {listed} {'is' if len(names) == 1 else 'are'} here is not known in parameters of the function"
    way_out = "say it by parameters, or by locals that are assigned once, before the pragma, by expressions over them."
    reporter.error("MF0321", extent.span, message, way_out=way_out)
    return syntax.Constant("1", extent.span)


def _before(variable: Variable, extent: syntax.Expression) -> bool:
    """Say whether a variable has one value for good before the place of an extent."""
    written = variable.writes[0].value if len(variable.writes) == 1 else None
    return written is not None and written.span.end <= extent.span.start


class _WrittenOut:
    """Writes out the locals of a function as they are at one schedule."""

    def __init__(self, host: HostFunction, site: Site, values: HostValues) -> None:
        self._host = host
        self._site = site
        self._values = values

    def expression(self, part: syntax.Expression, most: int) -> syntax.Expression:
        """Return an expression with its locals written out; raises ``RefusedError`` where that is not known."""
        match part:
            case syntax.Constant():
                return part
            case syntax.Name(name=name):
                return self._variable(part, self._site.visible.get(name), most)
            case syntax.Infix(left=left, right=right):
                return replace(part, left=self.expression(left, most), right=self.expression(right, most))
            case syntax.Prefix(operand=operand) | syntax.Conversion(operand=operand):
                return replace(part, operand=self.expression(operand, most))
            case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
                condition, then, otherwise = (self.expression(one, most) for one in (condition, then, otherwise))
                return replace(part, condition=condition, then=then, otherwise=otherwise)
            case _:
                raise RefusedError

    def _variable(self, name: syntax.Name, variable: Variable | None, most: int) -> syntax.Expression:
        several = [one for one in self._host.variables if one.name == name.name]
        if variable is None or several != [variable] or not most:
            raise RefusedError  # the pragma may mean another one
        if variable.is_parameter:
            return name
        found = self._values.definition(variable)
        if found is None:
            raise RefusedError
        (value,) = [one.value for one in variable.writes if one.order == found.order]
        assert value is not None
        written = self.expression(value, most - 1)
        if found.expression.type is variable.type:
            return written
        return syntax.Conversion(_type_name(variable.type or ScalarType.INT, name), written, name.span)


def _type_name(type_: ScalarType, place: syntax.Name) -> syntax.TypeName:
    words = tuple(type_.spelling.split())
    return syntax.TypeName(words, frozenset(), frozenset(), (), 0, False, place.span)
