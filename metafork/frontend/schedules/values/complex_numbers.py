"""Complex numbers, ``float complex`` and ``double complex``: structures of two, with C's arithmetic (Annex G of C11).

``before --> after``, of ``z`` and ``w``, with a real number ``r``::

    z + w   -->  z.re + w.re, z.im + w.im                 r + z   -->  r + z.re, z.im
    z * w   -->  z.re * w.re - z.im * w.im, ...           r * z   -->  r * z.re, r * z.im
    -z      -->  -z.re, -z.im                             z / r   -->  z.re / r, z.im / r

A product of which both parts are NaN is computed once more if an operand is infinite, or a part of it has become so,
as C's is.  Real numbers stay real, as in C.  What libraries of C do in their own ways is refused: quotients by complex
numbers and functions, whose bits differ from one library to another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from metafork.frontend.schedules.structure_parts import Whole, members_at, path_of, spelled
from metafork.frontend.schedules.symbols import ArraySymbol
from metafork.frontend.text import syntax
from metafork.frontend.text.constants import named_constant
from metafork.frontend.text.reporter import RefusedError, Reporter
from metafork.frontend.text.structures import COMPLEX, TypeNames, structure_of
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.messages.source import Span

if TYPE_CHECKING:
    from metafork.frontend.schedules.places import PlaceBuilder

_PARTS = {name + end: part for part, name in enumerate(("creal", "cimag")) for end in ("", "f")}
"""Functions that give a part of a number."""
_CONJUGATES = {"conj": ScalarType.DOUBLE, "conjf": ScalarType.FLOAT}
_MADE = {"CMPLX": ScalarType.DOUBLE, "CMPLXF": ScalarType.FLOAT}
_UNITS = ("I", "_Complex_I")

_FUNCTIONS = frozenset(
    f"c{name}{end}"
    for name in (
        *("abs", "arg", "exp", "log", "pow", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "proj"),
    )
    for end in ("", "f")
)
"""Functions of complex numbers that no schedule has."""

_INSTEAD = {
    "cabs": "sqrt(creal(z) * creal(z) + cimag(z) * cimag(z))",
    "carg": "atan2(cimag(z), creal(z))",
    "cexp": "CMPLX(exp(creal(z)) * cos(cimag(z)), exp(creal(z)) * sin(cimag(z)))",
}
"""What has nearly the value of a function, where its bits may differ."""

Number = tuple[ir.Expr, ir.Expr | None]
"""The parts of a number; a real one has one."""


class ComplexNumbers:
    """Understands complex numbers in the expressions of a schedule that ``places`` builds."""

    def __init__(
        self, places: PlaceBuilder, reporter: Reporter, typedefs: TypeNames, resolve: Callable[[str], object]
    ) -> None:
        self._places = places
        self._reporter = reporter
        self._typedefs = typedefs
        self._resolve = resolve
        self._used = "omplex" in reporter.text(0, 1 << 60)
        self.returning: Callable[[str], syntax.TypeName | None] = lambda _name: None

    def is_one(self, expression: syntax.Expression) -> bool:
        """Say whether an expression is a complex number, without building it."""
        return self._used and self._is_one(expression)

    def _is_one(self, expression: syntax.Expression) -> bool:
        match expression:
            case syntax.Name(name=name):
                symbol = self._resolve(name)
                return name in _UNITS if symbol is None else isinstance(symbol, ArraySymbol) and _whole(symbol, 0)
            case syntax.Infix(op="+" | "-" | "*" | "/", left=left, right=right):
                return self.is_one(left) or self.is_one(right)
            case syntax.Prefix(op="+" | "-", operand=operand):
                return self.is_one(operand)
            case syntax.Ternary(then=then, otherwise=otherwise):
                return self.is_one(then) or self.is_one(otherwise)
            case syntax.Conversion(type=type_):
                return self._of_type(type_)
            case syntax.Invocation(callee=syntax.Name(name=name)) if self._places.is_function(name):
                given = self.returning(name)
                return name in _CONJUGATES or name in _MADE or (given is not None and self._of_type(given))
            case syntax.Subscript() | syntax.Prefix(op="*"):
                return self._element(expression)
            case syntax.Member():
                return self._is_member(expression)
            case _:
                return False

    def _of_type(self, type_: syntax.TypeName) -> bool:
        found = None if type_.pointers else structure_of(type_, self._typedefs)
        return found is not None and found.members == COMPLEX

    def _element(self, expression: syntax.Expression) -> bool:
        indices = 0
        while True:
            match expression:
                case syntax.Subscript(base=expression) | syntax.Prefix(op="*", operand=expression):
                    indices += 1
                case syntax.Infix(op="+", left=expression) if indices:
                    pass
                case syntax.Name(name=name):
                    symbol = self._resolve(name)
                    return isinstance(symbol, ArraySymbol) and _whole(symbol, indices)
                case syntax.Member():
                    return self._is_member(expression)
                case _:
                    return False

    def _is_member(self, expression: syntax.Expression) -> bool:
        found = path_of(expression)
        if found is None:
            return False
        owner, steps = found
        members: tuple[str, ...] = ()
        if isinstance(owner, syntax.Invocation) and isinstance(owner.callee, syntax.Name):
            type_ = self.returning(owner.callee.name)
            structure = None if type_ is None or type_.pointers else structure_of(type_, self._typedefs)
            members = () if structure is None else structure.members
        while isinstance(owner, syntax.Subscript | syntax.Prefix | syntax.Infix):
            owner = owner.base if isinstance(owner, syntax.Subscript) else _inner(owner)
        symbol = self._resolve(owner.name) if isinstance(owner, syntax.Name) else None
        if isinstance(symbol, ArraySymbol):
            members = symbol.members
        return [spelled(parts[len(steps) :]) for _, parts in members_at(members, steps)][:2] == [*COMPLEX]

    def value(self, expression: syntax.Expression) -> Whole | None:
        """Return the number that is computed; ``None`` for a place, a choice and what is no complex number."""
        match expression:
            case syntax.Name(name=name) if self._used and name in _UNITS and self._resolve(name) is None:
                return Whole(
                    COMPLEX, (ir.FloatConst("0.0f", ScalarType.FLOAT), ir.FloatConst("1.0f", ScalarType.FLOAT))
                )
            case syntax.Infix(op="+" | "-" | "*" | "/" as op, left=left, right=right, span=span) if self.is_one(
                expression
            ):
                return self._infix(op, self.number(left), self.number(right), span)
            case syntax.Prefix(op="+" | "-" as op, operand=operand, span=span) if self.is_one(operand):
                real, imaginary = self.number(operand)
                assert imaginary is not None
                return Whole(COMPLEX, (ir.unary(op, real, span), ir.unary(op, imaginary, span)))
            case syntax.Conversion(type=type_, operand=operand) if self.is_one(expression):
                found = structure_of(type_, self._typedefs)
                assert found is not None
                assert found.element is not None
                return self.converted(operand, found.element)
            case syntax.Invocation(callee=syntax.Name(name=name), arguments=arguments, span=span) if (
                self._used and self._places.is_function(name)
            ):
                return self._call(name, arguments, span)
            case _:
                return None

    def _call(self, name: str, arguments: tuple[syntax.Expression, ...], span: Span) -> Whole | None:
        if name in _CONJUGATES and len(arguments) == 1:
            real, imaginary = self.converted(arguments[0], _CONJUGATES[name]).values
            return Whole(COMPLEX, (real, ir.unary("-", imaginary, span)))
        if name in _MADE and len(arguments) == 2:
            parts = (ir.Cast(_MADE[name], self._places.build(one), span) for one in arguments)
            return Whole(COMPLEX, tuple(self._held(one, span) for one in parts))
        return None

    def number(self, expression: syntax.Expression) -> Number:
        """Return the parts of a number, which may be real; raises ``RefusedError``."""
        if not self.is_one(expression):
            return self._places.build(expression), None
        whole = self._places.whole(expression)
        if whole is None or whole.names != COMPLEX:
            raise self._reporter.refuse(
                "MF0205", expression.span, "this is no complex number of the schedule",
                way_out="compute both sides of a choice as complex numbers, with `CMPLXF(x, 0)` for a real one.",
            )  # fmt: skip
        real, imaginary = whole.values
        return real, imaginary

    def converted(self, expression: syntax.Expression, type_: ScalarType) -> Whole:
        """Return a number as a complex one whose parts have a type."""
        real, imaginary = self.number(expression)
        other = ir.IntConst(0, span=expression.span) if imaginary is None else imaginary
        parts = (one if one.type is type_ else ir.Cast(type_, one, expression.span) for one in (real, other))
        return Whole(COMPLEX, tuple(self._held(one, expression.span) for one in parts))

    def scalar(self, expression: syntax.Expression) -> ir.Expr | None:
        """Return what C takes of complex numbers for a real one; ``None`` where an expression has none."""
        if not self._used:
            return None
        match expression:
            case syntax.Infix(op="==" | "!=" as op, left=left, right=right, span=span):
                return self.equal(op, left, right, span) if self._is_one(left) or self._is_one(right) else None
            case syntax.Invocation(callee=syntax.Name(name=name), arguments=arguments, span=span) if (
                self._places.is_function(name) and self.returning(name) is None
            ):
                given = self.part(name, arguments, span)
                if given is None and name in _FUNCTIONS:
                    self._refuse(name, span)
                if given is not None:
                    return given
            case _:
                pass
        return self.number(expression)[0] if self._is_one(expression) else None

    def _refuse(self, name: str, span: Span) -> None:
        written = instead_of(name)
        raise self._reporter.refuse(
            "MF0206",
            span,
            f"`{name}`, a function of complex numbers, cannot be called in a schedule",
            reason="GPUs have none, and libraries of C differ in its last bits.",
            way_out=f"write {f'`{written}`' if written else 'its definition by real numbers'}.",
        )

    def _quotient(self, span: Span) -> RefusedError:
        return self._reporter.refuse(
            "MF0306",
            span,
            "`/` has a complex number for a divisor",
            reason="compilers of C divide complex numbers in ways that differ in the last bits.",
            way_out="write `z * conj(w) / (creal(w) * creal(w) + cimag(w) * cimag(w))`; `conjf` and so on for `float`.",
        )

    def part(self, name: str, arguments: tuple[syntax.Expression, ...], span: Span) -> ir.Expr | None:
        """Return what ``creal`` and ``cimag`` give, ``None`` for other functions."""
        if name not in _PARTS or len(arguments) != 1:
            return None
        type_ = ScalarType.FLOAT if name.endswith("f") else ScalarType.DOUBLE
        value = self.converted(arguments[0], type_).values[_PARTS[name]]
        return replace(value, span=span)

    def equal(self, op: str, left: syntax.Expression, right: syntax.Expression, span: Span) -> ir.Expr:
        """Return whether two numbers are the same, or not."""
        mine, theirs = self.number(left), self.number(right)
        parts = [
            ir.binary(op, ir.IntConst(0) if one is None else one, ir.IntConst(0) if other is None else other, span)
            for one, other in zip(mine, theirs, strict=True)
        ]
        return ir.binary("&&" if op == "==" else "||", parts[0], parts[1], span)

    def _held(self, value: ir.Expr, span: Span) -> ir.Expr:
        """Return a value that is computed, and read, once, ahead of the statement."""
        if isinstance(value, ir.Var | ir.FloatConst | ir.IntConst):
            return value
        kept = ir.Var(self._places.fresh("part"), value.type, span)
        self._places.ahead.append(ir.Declare(kept.name, kept.type, value, span))
        return kept

    def _infix(self, op: str, left: Number, right: Number, span: Span) -> Whole:
        type_ = common_type(*(common_type(first.type, ScalarType.FLOAT) for first, _ in (left, right)))
        (a, b), (c, d) = (
            [
                None if one is None else self._held(ir.Cast(type_, one) if one.type is not type_ else one, span)
                for one in two
            ]
            for two in (left, right)
        )
        assert a is not None
        assert c is not None

        def of(op: str, one: ir.Expr, other: ir.Expr) -> ir.Expr:
            return ir.binary(op, one, other, span)

        if op in ("*", "/") and b is not None and d is not None:
            if op == "/":
                raise self._quotient(span)
            return self._product(a, b, c, d, span)
        if op == "/" and b is None:
            raise self._quotient(span)
        if op in ("*", "/"):
            parts = (of(op, a, c), of(op, a, d) if d is not None else of(op, b or a, c))
        else:
            alone = b if d is None else d if op == "+" else ir.unary("-", d, span)
            other = of(op, b, d) if b is not None and d is not None else alone
            assert other is not None
            parts = (of(op, a, c), other)
        return Whole(COMPLEX, tuple(self._held(one, span) for one in parts))

    def _product(self, a: ir.Expr, b: ir.Expr, c: ir.Expr, d: ir.Expr, span: Span) -> Whole:
        """Return a product; where both parts are NaN, infinities are recovered (G.5.1 of C11, as ``__mulsc3`` does)."""
        type_ = a.type

        def declared(name: str, value: ir.Expr) -> ir.Var:
            found = ir.Var(self._places.fresh(name), type_, span)
            self._places.ahead.append(ir.Declare(found.name, type_, value, span))
            return found

        def of(op: str, one: ir.Expr, other: ir.Expr) -> ir.Expr:
            return ir.binary(op, one, other, span)

        ac, bd = declared("product", of("*", a, c)), declared("product", of("*", b, d))
        ad, bc = declared("product", of("*", a, d)), declared("product", of("*", b, c))
        real, imaginary = declared("part", of("-", ac, bd)), declared("part", of("+", ad, bc))
        neither = of("&&", of("!=", real, real), of("!=", imaginary, imaginary))
        before, self._places.ahead = self._places.ahead, []
        self._recover((a, b, c, d), (ac, bd, ad, bc), (real, imaginary), span)
        recovered, self._places.ahead = tuple(self._places.ahead), before
        self._places.ahead.append(ir.If(neither, recovered, (), span))
        return Whole(COMPLEX, (real, imaginary))

    def _recover(
        self, operands: tuple[ir.Expr, ...], products: tuple[ir.Var, ...], parts: tuple[ir.Var, ir.Var], span: Span
    ) -> None:
        type_ = parts[0].type
        infinity: ir.Expr = named_constant("INFINITY", span)
        infinity = infinity if infinity.type is type_ else ir.Cast(type_, infinity, span)
        zero, one = ir.Cast(type_, ir.IntConst(0), span), ir.Cast(type_, ir.IntConst(1), span)

        def of(op: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
            return ir.binary(op, left, right, span)

        def infinite(value: ir.Expr) -> ir.Expr:
            return of("||", of("==", value, infinity), of("==", value, ir.unary("-", infinity, span)))

        def chosen(test: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
            return ir.Conditional(test, then, otherwise, type_, span)

        def declared(value: ir.Expr, name: str, of_type: ScalarType) -> ir.Var:
            found = ir.Var(self._places.fresh(name), of_type, span)
            self._places.ahead.append(ir.Declare(found.name, of_type, value, span))
            return found

        def when(test: ir.Expr, changes: list[tuple[ir.Var, ir.Expr]]) -> ir.Stmt:
            return ir.If(test, tuple(ir.Assign(to, "", value, span) for to, value in changes), (), span)

        def boxed(value: ir.Var) -> ir.Expr:
            sign = chosen(of("<", value, zero), ir.unary("-", one, span), one)
            return chosen(infinite(value), sign, zero)

        def number(value: ir.Var) -> ir.Expr:
            return chosen(of("!=", value, value), zero, value)

        a, b, c, d = (declared(value, "operand", type_) for value in operands)
        first = declared(of("||", infinite(a), infinite(b)), "infinite", ir.INT)
        second = declared(of("||", infinite(c), infinite(d)), "infinite", ir.INT)
        over = infinite(products[0])
        for product in products[1:]:
            over = of("||", over, infinite(product))
        any_ = declared(of("||", of("||", first, second), over), "infinite", ir.INT)
        self._places.ahead += [
            when(first, [(a, boxed(a)), (b, boxed(b)), (c, number(c)), (d, number(d))]),
            when(second, [(c, boxed(c)), (d, boxed(d)), (a, number(a)), (b, number(b))]),
            when(of("==", of("||", first, second), ir.IntConst(0)), [(one, number(one)) for one in (a, b, c, d)]),
            when(
                any_,
                [
                    (parts[0], of("*", infinity, of("-", of("*", a, c), of("*", b, d)))),
                    (parts[1], of("*", infinity, of("+", of("*", a, d), of("*", b, c)))),
                ],
            ),
        ]


def _inner(expression: syntax.Prefix | syntax.Infix) -> syntax.Expression:
    return expression.operand if isinstance(expression, syntax.Prefix) else expression.left


def _whole(symbol: ArraySymbol, indices: int) -> bool:
    """Say whether so many indices lead to one complex number."""
    return symbol.members == COMPLEX and (symbol.single or indices == len(symbol.extents) - 1)


def instead_of(name: str) -> str:
    """Return what to write in place of a function of complex numbers, empty where there is nothing short."""
    double = name[:-1] if name.endswith("f") and name[:-1] in _INSTEAD else name
    written = _INSTEAD.get(double, "")
    if double != name:
        for function in ("sqrt", "creal", "cimag", "atan2", "exp", "cos", "sin"):
            written = written.replace(f"{function}(", f"{function}f(")
        written = written.replace("CMPLX(", "CMPLXF(")
    return written
