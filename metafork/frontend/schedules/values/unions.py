"""Unions of numbers of one size, 4 or 8 bytes: a thread's union is the integer that its bits are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from metafork.frontend.schedules.symbols import ScalarSymbol, Symbol
from metafork.frontend.schedules.values.conversions import BITS, bits_of, converted
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import Reporter
from metafork.frontend.text.structures import TypeNames, structure_of, union_members
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType


class Unions:
    """Understands unions and their members; ``resolve`` and ``build`` are those of the expressions of a schedule."""

    def __init__(
        self,
        reporter: Reporter,
        typedefs: TypeNames,
        resolve: Callable[[str], Symbol | None],
        build: Callable[[syntax.Expression], ir.Expr],
    ) -> None:
        self._reporter = reporter
        self._typedefs = typedefs
        self._resolve = resolve
        self._build = build

    def of_type(self, type_: syntax.TypeName) -> Mapping[str, ScalarType] | None:
        """Return the members of a union of numbers of 4 or of 8 bytes, ``None`` for any other type."""
        found = structure_of(type_, self._typedefs)
        members = None if found is None else union_members(found, self._typedefs)
        return members if members is not None and next(iter(members.values())).size in BITS else None

    def value(self, given: syntax.Expression | syntax.Braces, members: Mapping[str, ScalarType]) -> ir.Expr:
        """Return the bits that an initialiser gives a union."""
        if not isinstance(given, syntax.Braces):
            found = self.bits_of(given)
            if found is None or found[1] != members:
                raise self._reporter.refuse("MF0205", given.span, "this is no union of the type that it initialises")
            return found[0]
        name, item = next(iter(members)), given.items[0] if given.items else syntax.Constant("0", given.span)
        if isinstance(item, syntax.Designated) and len(item.indices) == 1:
            (of,) = item.indices
            name, item = of.name if isinstance(of, syntax.MemberDesignator) else "", item.item
        if len(given.items) > 1 or name not in members or isinstance(item, syntax.Braces | syntax.Designated):
            raise self._reporter.refuse("MF0221", given.span, "these braces do not fit a union")
        return bits_of(converted(self._build(item), members[name]))

    def bits_of(self, expression: syntax.Expression) -> tuple[ir.Expr, Mapping[str, ScalarType]] | None:
        """Return a union as the integer that its bits are, and its members; ``None`` for any other expression."""
        match expression:
            case syntax.Name(name=name, uncertain=False):
                symbol = self._resolve(name)
                if isinstance(symbol, ScalarSymbol) and symbol.members is not None:
                    return self._build(expression), symbol.members
            case syntax.Literal(type=type_, braces=braces):
                members = self.of_type(type_)
                if members is not None:
                    return self.value(braces, members), members
        return None

    def member(self, expression: syntax.Expression) -> tuple[ir.Expr, ScalarType] | None:
        """Return the bits of the union that an expression is a member of, and the type of the member."""
        if not isinstance(expression, syntax.Member) or expression.arrow:
            return None
        found = self.bits_of(expression.base)
        if found is None:
            return None
        if expression.field not in found[1]:
            raise self._reporter.refuse("MF0205", expression.span, f"the union has no member `{expression.field}`")
        return found[0], found[1][expression.field]
