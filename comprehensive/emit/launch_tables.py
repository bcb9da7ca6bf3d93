"""What a launch of each kernel needs, as tables for ``metafork_prepare`` (``metafork/dispatch.h``).

The shape of a launch, its shared memory and the spans of its offsets are polynomials in the integers of a call and in
numbers that are computed from them: quotients, extrema, and whatever else is no polynomial.  Those are the cases of one
function, each computed in checked 64-bit arithmetic, and only if a kernel needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from metafork.algebra.polynomial import Polynomial
from metafork.comprehensive.emit.checked_expressions import ComputationError, checked, within_type
from metafork.comprehensive.emit.condition_tables import MAX_DEGREE, ConditionTables
from metafork.comprehensive.emit.select_text import derived_definitions
from metafork.comprehensive.emit.signature import Signature
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Argument, Kernel, Space
from metafork.ir.rewriting import variables

INPUTS = "metafork_i"
"""The integers and values of a call, in generated functions."""


class LaunchTables(Struct):
    """Collects what the kernels of some leaves need; ``function`` computes numbers."""

    function: str
    signature: Signature
    tables: ConditionTables
    cases: list[str] = field(default_factory=list)
    _known: dict[str, str] = field(default_factory=dict)
    """Symbols of computed numbers, by the text that computes them."""
    _uses: dict[str, frozenset[str]] = field(default_factory=dict)
    """The computed numbers that one is computed from."""

    @staticmethod
    def of(signature: Signature, leaf: int) -> LaunchTables:
        """Return those of that leaf and maybe others, without kernels; the integers of a call have the first places."""
        tables = ConditionTables(f"{signature.name}_n{leaf}", tuple(signature.parameters))
        for name in signature.parameters:
            tables.add_slot(name)
        return LaunchTables(f"{signature.name}_number{leaf}", signature, tables)

    def kernel(self, name: str, kernel: Kernel, values: Mapping[str, int]) -> list[str]:
        """Return the table of that name, of a kernel which takes no other ``values`` of parameters than these."""
        widest = ir.IntConst(0) if kernel.widest is None else kernel.widest
        extents = (*kernel.grid, *kernel.block, kernel.shared_bytes, widest)
        names = self._scalars(kernel, {*(one.name for one in kernel.scalars)}.union(*map(variables, extents)))
        shape = [self._number(one, names) for one in extents]
        arguments = [self._argument(one, names) for one in kernel.scalars if one.name not in self.signature.values]
        own = self._scalars(kernel, set().union(*map(variables, kernel.spans)))
        spans = [self._number(one, own) for one in kernel.spans]
        needed = [names[one.name] for one in kernel.scalars if one.name in names]
        first = self._places((*needed, *(symbol for part in shape for symbol in part.symbols)))
        more = [one for one in self._places(symbol for part in spans for symbol in part.symbols) if one not in first]
        fixed = [f"{{{self.tables.slots[one]}, {number}}}" for one, number in values.items()]
        rows = [self._list("metafork_polynomial", f"{name}_extents", self.tables.polynomials(shape)[0])]
        parts = [f"{name}_extents"]
        for type_, what, items in (
            ("unsigned char", "first", [str(one) for one in first]),
            ("metafork_argument", "arguments", arguments),
            ("metafork_polynomial", "spans", self.tables.polynomials(spans)[0]),
            ("unsigned char", "more", [str(one) for one in more]),
            ("metafork_fixed", "fixed", fixed),
        ):
            if items:
                rows.append(self._list(type_, f"{name}_{what}", items))
            parts += [f"{name}_{what}" if items else "NULL", str(len(items))]
        head = f"{self.function}, {len(self.signature.parameters)}"
        row = f"static const metafork_kernel {name} = {{{head}, {', '.join(parts)}, {self._aligned(kernel)}}};"
        return [*rows, row]

    def lines(self) -> list[str]:
        """Return the definitions of the function and of the polynomials; they stand in front of all tables."""
        number = "int metafork_number, const void *metafork_inputs, const int64_t *metafork_n, int *metafork_fails"
        inputs = f"const {self.signature.name}_inputs *"
        return [
            *self.tables.lines(),
            f"static int64_t {self.function}({number})",
            "{",
            f"    {inputs}const {INPUTS} = ({inputs})metafork_inputs;",
            "    int metafork_failed = 0;",
            "    int64_t metafork_x = 0;",
            f"    (void){INPUTS}, (void)metafork_n;",
            "    switch (metafork_number) {",
            *self.cases,
            "    default: break;",
            "    }",
            "    *metafork_fails |= metafork_failed;",
            "    return metafork_x;",
            "}",
        ]

    @staticmethod
    def _list(type_: str, name: str, items: Sequence[str]) -> str:
        return f"static const {type_} {name}[] = {{{', '.join(items)}}};"

    def _scalars(self, kernel: Kernel, wanted: set[str]) -> dict[str, str]:
        """Return the symbol of every integer that a kernel may be given, those that it needs computed."""
        own = {scalar.name for scalar in kernel.host_scalars}
        program = tuple(one for one in self.signature.program.derived if one.name not in own)
        names = {name: name for name in self.signature.parameters}
        # Only what the launch needs: a scalar that nothing reads must not make it fail.
        for one in derived_definitions((*program, *kernel.host_scalars), wanted):
            names[one.name] = self._computed(one.name, one.definition, names, one.type)
        return names

    def _number(self, expr: ir.Expr, names: Mapping[str, str]) -> Polynomial:
        """Return an expression as a polynomial in symbols; what is none is a number of its own."""
        found = _polynomial(expr, names)
        if found is None or any(
            abs(coefficient) >= 2**63 or sum(exponent for _, exponent in mono) > MAX_DEGREE
            for mono, coefficient in found.terms().items()
        ):
            return Polynomial.symbol(self._computed("value", expr, names))
        return found

    def _computed(
        self, name: str, expr: ir.Expr, names: Mapping[str, str], type_: ScalarType = ScalarType.LONG_LONG
    ) -> str:
        """Return the symbol of what an expression is, as a number of a type that must hold it."""
        texts = {one: self._text(symbol) for one, symbol in names.items()}
        texts |= {one: f"{INPUTS}->{identifier}" for one, identifier in self.signature.values.items()}
        text = within_type(checked(expr, texts), type_)
        if text not in self._known:
            number = sum(symbol.partition("#")[0] == name for symbol in self.tables.slots)
            symbol = f"{name}#{number + 1}" if number else name
            self._known[text] = symbol
            place = self.tables.add_slot(symbol)
            self.cases.append(f"    case {place}: metafork_x = {text}; break; /* {name} */")
            self._uses[symbol] = frozenset(names[one] for one in variables(expr) if one in names)
        return self._known[text]

    def _text(self, symbol: str) -> str:
        if symbol in self.signature.parameters:
            return f"{INPUTS}->{self.signature.parameters[symbol]}"
        return f"metafork_n[{self.tables.slots[symbol]}]"

    def _places(self, symbols: Iterable[str]) -> list[int]:
        """Return the places of the numbers to compute for some symbols, in an order in which they can be."""
        found: set[str] = set()
        pending = list(symbols)
        while pending:
            symbol = pending.pop()
            if symbol not in found and symbol not in self.signature.parameters:
                found.add(symbol)
                pending += self._uses[symbol]
        return sorted(self.tables.slots[symbol] for symbol in found)

    def _argument(self, argument: Argument, names: Mapping[str, str]) -> str:
        if argument.name not in names:
            raise ComputationError(f"the kernel takes {argument.name}, which the host does not know")
        type_ = argument.type
        bits = 1 if type_ is ScalarType.BOOL else 8 * type_.size * (-1 if type_.signed else 1)
        return f"{{{self.tables.slots[names[argument.name]]}, {bits}}}"

    def _aligned(self, kernel: Kernel) -> str:
        """Return the arrays, as bits, that a kernel wants to begin where vectors may."""
        if not kernel.aligned:
            return "0"
        places = {array.name: place for place, array in enumerate(self.signature.moved)}
        arrays = (one.name for one in kernel.memories if one.space is Space.GLOBAL)
        wholes = {self.signature.program.array(name).whole or name for name in arrays}
        return f"{sum(1 << places[name] for name in wholes):#x}u"


def _polynomial(expr: ir.Expr, names: Mapping[str, str]) -> Polynomial | None:
    """Return an expression of signed integers as a polynomial in symbols; C leaves undefined where it differs."""
    match expr:
        case ir.IntConst(value=value):
            return Polynomial.constant(value)
        case ir.Var(name=name) if name in names:
            return Polynomial.symbol(names[name])
        case _ if not (expr.type.integer and expr.type.signed):
            return None
        case ir.Cast(type=type_, operand=operand) if type_.size >= operand.type.size:
            return _polynomial(operand, names)
        case ir.Unary(op="-", operand=operand):
            found = _polynomial(operand, names)
            return None if found is None else -found
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            first, second = _polynomial(left, names), _polynomial(right, names)
            if first is None or second is None:
                return None
            return first + second if op == "+" else first - second if op == "-" else first * second
        case _:
            return None
