"""Loads that a straight piece of thread code has in common: the element is read once, into a scalar.

``before --> after``::

    s0 += w[0] * a[y * n + x];              float shared = a[(y + 1) * n + x];  ...
    s1 += w[0] * a[(y + 1) * n + x];        s0 += w[0] * a[y * n + x];
    s0 += w[1] * a[(y + 1) * n + x];  -->   s1 += w[0] * shared;
    s1 += w[1] * a[(y + 2) * n + x];        s0 += w[1] * shared;  ...

Two elements are one where their offsets are equal polynomials in scalars that nothing assigns; a compiler that has
distributed a product, or moved a part of a sum out of a loop, does not see it any more.  A scalar stays valid
until the code stores to that memory: what other threads store does not meet it (``meta_for`` promises so), and barriers
end a piece.  A scalar is set where its element is read in any case, and only where it is read again.  Loops of few
constant trips are unrolled where that makes loads equal.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.algebra.polynomial import Monomial, Polynomial, product_of
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET
from metafork.ir.names import fresh
from metafork.ir.rewriting import map_expression
from metafork.unrolling.short_loops import is_unrolled, places_of, unrolled_statements, without_short_loops

Body = tuple[ir.Stmt, ...]
_Key = tuple[str, Polynomial]
_Offset = TypeVar("_Offset")
SIGNED = (ScalarType.INT, ScalarType.LONG, ScalarType.LONG_LONG)


def with_shared_loads(body: Body, taken: set[str]) -> Body:
    """Return straight code, with loops and conditions in it, that loads no element twice where that is seen.

    Code without loops is left to compilers, which see it and choose what stays in registers.  ``taken`` grows by the
    names of scalars.
    """
    if not any(isinstance(stmt, ir.For) for stmt in ir.walk_statements(body)) or not may_share(body):
        return body
    unrolled = without_short_loops(body, taken)
    plain = _Sharing.planned(body)
    flat = plain if unrolled is body else _Sharing.planned(unrolled)
    better = flat.reused.total() > plain.reused.total()
    chosen, plan = (unrolled, flat) if better else (body, plain)
    if not plan.reused:
        return body
    return _Sharing(plan.changing, taken, plan.reused, plan.found, planning=False).body(chosen, _Here())


def may_share(body: Body) -> bool:
    """Say whether code may read an element twice; where not, ``with_shared_loads`` would find nothing.

    A number stands for each scalar, one for a name wherever it is declared, and an offset is what its expression is for
    these.  Equal polynomials are equal numbers, so that few other elements are taken for one.  Loops are unrolled
    without copies of them, and stores are not looked at.
    """
    return _Look().repeats(body, {}, set())


class _Look(Struct):
    """Numbers of names, and the values of counters of loops that are unrolled, by the identity of a loop."""

    numbers: dict[str, int] = field(default_factory=dict)
    places: dict[int, range] = field(default_factory=dict)

    def repeats(self, body: Body, scalars: dict[str, int], seen: set[tuple[str, int]]) -> bool:
        """Say whether code may read an element twice, or one that was ``seen``; ``scalars`` are known values."""
        for stmt in body:
            match stmt:
                case ir.Declare(name=name, value=value):
                    if value is not None and self._reads(value, scalars, seen):
                        return True
                    number = None if value is None or stmt.type not in SIGNED else self._number(value, scalars)
                    if number is None:
                        scalars.pop(name, None)
                    else:
                        scalars[name] = number
                case ir.Assign(value=value):
                    if self._reads(value, scalars, seen):
                        return True
                case ir.If(condition=condition, then=then, otherwise=otherwise):
                    if self._reads(condition, scalars, seen):
                        return True
                    if any(self.repeats(side, dict(scalars), set(seen)) for side in (then, otherwise)):
                        return True
                case ir.For(init=ir.Declare(name=name), body=inner):
                    outside = {other: number for other, number in scalars.items() if other != name}
                    places = self._unrolled(stmt)
                    if any(self.repeats(inner, {**outside, name: place}, seen) for place in places):
                        return True
                    if not places and self.repeats(inner, outside, set(seen)):
                        return True
                case _:
                    raise AssertionError(f"{type(stmt).__name__} in straight code")
        return False

    def _reads(self, expr: ir.Expr, scalars: Mapping[str, int], seen: set[tuple[str, int]]) -> bool:
        for element, number in _known_elements(expr, lambda index: self._number(index, scalars)):
            if (element.array, number) in seen:
                return True
            seen.add((element.array, number))
        return False

    def _unrolled(self, loop: ir.For) -> range:
        places = self.places.get(id(loop))
        if places is None:
            places = places_of(loop)
            if not is_unrolled(places, unrolled_statements(loop.body)):
                places = range(0)
            self.places[id(loop)] = places
        return places

    def _number(self, expr: ir.Expr, scalars: Mapping[str, int]) -> int | None:
        """Return the number of an expression that is a polynomial (``exact_polynomial``), whatever is assigned."""
        if isinstance(expr, ir.Var):
            known = scalars.get(expr.name)
            return self._number_of(expr.name) if known is None and expr.type in SIGNED else known
        if isinstance(expr, ir.IntConst):
            return expr.value
        if isinstance(expr, ir.Binary):
            if expr.op not in _EXACT or expr.type not in SIGNED:
                return None
            left = self._number(expr.left, scalars)
            right = None if left is None else self._number(expr.right, scalars)
            if left is None or right is None:
                return None
            return left * right if expr.op == "*" else left + right if expr.op == "+" else left - right
        if isinstance(expr, ir.Call):
            return self._number(expr.arguments[0], scalars) if expr.name == OFFSET else None
        if isinstance(expr, ir.Cast):
            exact = expr.type in SIGNED and expr.operand.type in SIGNED and expr.type.size >= expr.operand.type.size
            return self._number(expr.operand, scalars) if exact else None
        return None

    def _number_of(self, name: str) -> int:
        """Return a number that sums and products of a few others do not meet by chance."""
        if name not in self.numbers:
            self.numbers[name] = pow(48271, len(self.numbers) + 2, 2**31 - 1)
        return self.numbers[name]


def _known_elements(
    expr: ir.Expr, offset_of: Callable[[ir.Expr], _Offset | None]
) -> Iterator[tuple[ir.Element, _Offset]]:
    """Yield the elements of an expression whose offset is known, and that; such an index has no element in it."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Element):
            offset = offset_of(part.indices[0])
            if offset is not None:
                yield part, offset
                continue
        pending += ir.subexpressions(part)


def read_always(expr: ir.Expr) -> list[ir.Element]:
    """Return the elements that an expression reads whatever its conditions are, left to right."""
    found: list[ir.Element] = []
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Binary):
            pending += (part.left,) if part.op in ir.LOGICAL else (part.right, part.left)
        elif isinstance(part, ir.Element):
            found.append(part)
        elif isinstance(part, ir.Conditional):
            pending.append(part.condition)
        else:
            pending += ir.subexpressions(part)[::-1]
    return found


class _Here(Struct):
    """What is known at a place: scalars as polynomials, and elements that are in scalars."""

    scalars: dict[str, Polynomial] = field(default_factory=dict)
    loaded: dict[_Key, ir.Var] = field(default_factory=dict)

    def inner(self) -> _Here:
        return _Here(dict(self.scalars), dict(self.loaded))

    def stored(self, body: Body) -> None:
        if not self.loaded:
            return
        arrays = {
            stmt.target.array
            for stmt in ir.walk_statements(body)
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
        }
        if arrays:
            self.forget(arrays)

    def forget(self, arrays: Set[str]) -> None:
        """Forget the elements of arrays that something has stored to."""
        self.loaded = {key: value for key, value in self.loaded.items() if key[0] not in arrays}

    def counts(self, variable: str) -> None:
        """Forget what was known of another variable of that name."""
        self.scalars[variable] = Polynomial.symbol(variable)
        if self.loaded:
            self.loaded = {key: value for key, value in self.loaded.items() if variable not in key[1].symbols}


class _Sharing(Struct):
    """One walk.

    While ``planning``, every element has a scalar, ``reused`` counts how often each is read again, and no code is made;
    what elements are known as is ``found`` then, for one expression after the other, and read by the second walk.
    """

    changing: frozenset[str]
    taken: set[str]
    reused: Counter[_Key]
    found: deque[Sequence[tuple[int, _Key]]]
    planning: bool

    @staticmethod
    def planned(body: Body) -> _Sharing:
        walk = _Sharing(changing_scalars(body), set(), Counter(), deque(), planning=True)
        walk.body(body, _Here())
        walk.reused = +walk.reused
        return walk

    def body(self, body: Body, here: _Here) -> Body:
        return tuple([new for stmt in body for new in self._statement(stmt, here)])

    def _statement(self, stmt: ir.Stmt, here: _Here) -> Iterator[ir.Stmt]:
        match stmt:
            case ir.Declare(name=name, value=value):
                if value is None:
                    yield stmt
                    return
                keys = self._keys(value, here)
                if isinstance(value, ir.Element) and name not in self.changing and value.type is stmt.type:
                    key = dict(keys).get(id(value))
                    if key is not None and key not in here.loaded:
                        here.loaded[key] = ir.Var(name, stmt.type)
                        yield stmt
                        return
                loads, new = self._read(value, keys, here)
                yield from loads
                yield stmt if new is value else ir.Declare(name, stmt.type, new, stmt.span)
                fixed = self.planning and name not in self.changing and stmt.type in SIGNED
                known = self._polynomial(value, here) if fixed else None
                here.counts(name)
                if known is not None:
                    here.scalars[name] = known
            case ir.Assign(value=value):
                loads, new = self._read(value, self._keys(value, here), here)
                yield from loads
                yield stmt if new is value else replace(stmt, value=new)
                if isinstance(stmt.target, ir.Element):
                    here.forget({stmt.target.array})
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                loads, test = self._read(condition, self._keys(condition, here), here)
                yield from loads
                yes, no = self.body(then, here.inner()), self.body(otherwise, here.inner())
                yield stmt if self.planning else replace(stmt, condition=test, then=yes, otherwise=no)
                here.stored((stmt,))
            case ir.For(init=ir.Declare(name=name), body=inner):
                here.stored((stmt,))
                inside = here.inner()
                inside.counts(name)
                new_body = self.body(inner, inside)
                yield stmt if self.planning else replace(stmt, body=new_body)
            case _:
                raise AssertionError(f"{type(stmt).__name__} in straight code")

    def _keys(self, expr: ir.Expr, here: _Here) -> Sequence[tuple[int, _Key]]:
        """Return what the elements of an expression are known as, by their identity; as often as they stand there."""
        if not self.planning:
            return self.found.popleft()
        known = _known_elements(expr, lambda index: self._polynomial(index, here))
        keys = [(id(element), (element.array, offset)) for element, offset in known]
        self.found.append(keys)
        return keys

    def _read(self, expr: ir.Expr, found: Sequence[tuple[int, _Key]], here: _Here) -> tuple[list[ir.Stmt], ir.Expr]:
        """Return scalars for the elements that are read in any case and have none yet, and the expression with them."""
        loads: list[ir.Stmt] = []
        if not found:
            return loads, expr
        keys = dict(found)
        for element in read_always(expr):
            key = keys.get(id(element))
            if key is None or key in here.loaded:
                continue
            if self.planning:
                here.loaded[key] = ir.Var("", element.type)
                self.reused[key] -= 1  # this very read is no second one
            elif key in self.reused:
                scalar = here.loaded[key] = ir.Var(fresh("shared", self.taken), element.type)
                loads.append(ir.Declare(scalar.name, scalar.type, element))
        if self.planning:
            for _, key in found:
                if key in here.loaded:
                    self.reused[key] += 1
            return loads, expr

        def change(part: ir.Expr) -> ir.Expr | None:
            key = keys.get(id(part))
            return None if key is None else here.loaded.get(key)

        return loads, map_expression(expr, change)

    def _polynomial(self, expr: ir.Expr, here: _Here) -> Polynomial | None:
        return exact_polynomial(expr, here.scalars, self.changing)


def exact_polynomial(expr: ir.Expr, scalars: Mapping[str, Polynomial], changing: Set[str]) -> Polynomial | None:
    """Return signed arithmetic, in which nothing overflows, as a polynomial in scalars; ``None`` for other things.

    ``scalars`` are known values, ``changing`` names without one value.
    """
    total: dict[Monomial, int | Fraction] = {}
    return Polynomial.of_coefficients(total) if _summed(expr, 1, (), total, scalars, changing) else None


def _summed(
    expr: ir.Expr,
    factor: int | Fraction,
    times: Monomial,
    total: dict[Monomial, int | Fraction],
    scalars: Mapping[str, Polynomial],
    changing: Set[str],
) -> bool:
    """Add ``factor * times`` times an expression to the coefficients in ``total``; say whether it is a polynomial."""
    if isinstance(expr, ir.Binary):
        op, left, right = expr.op, expr.left, expr.right
        if op not in _EXACT or expr.type not in SIGNED:
            return False
        if op != "*":
            return _summed(left, factor, times, total, scalars, changing) and _summed(
                right, factor if op == "+" else -factor, times, total, scalars, changing
            )
        if isinstance(right, ir.IntConst):
            return _summed(left, factor * right.value, times, total, scalars, changing)
        other = exact_polynomial(right, scalars, changing)
        if other is None:
            return False
        if len(other.coefficients) == 1:  # as that of a row's length has
            ((mono, coefficient),) = other.coefficients.items()
            return _summed(left, factor * coefficient, product_of(mono, times), total, scalars, changing)
        one = exact_polynomial(left, scalars, changing)
        if one is None:
            return False
        _add(one * other, factor, times, total)
        return True
    if isinstance(expr, ir.Var):
        name = expr.name
        if name in changing or expr.type not in SIGNED:
            return False
        known = scalars.get(name)
        if known is not None:
            _add(known, factor, times, total)
            return True
        power = product_of(((name, 1),), times)
        total[power] = total.get(power, 0) + factor
        return True
    if isinstance(expr, ir.IntConst):
        total[times] = total.get(times, 0) + factor * expr.value
        return True
    if isinstance(expr, ir.Call):
        # Where an offset is an int, it fits.
        return expr.name == OFFSET and _summed(expr.arguments[0], factor, times, total, scalars, changing)
    if isinstance(expr, ir.Cast):
        operand = expr.operand
        exact = expr.type in SIGNED and operand.type in SIGNED and expr.type.size >= operand.type.size
        return exact and _summed(operand, factor, times, total, scalars, changing)
    return False


_EXACT = frozenset({"+", "-", "*"})


def _add(value: Polynomial, factor: int | Fraction, times: Monomial, total: dict[Monomial, int | Fraction]) -> None:
    for mono, coefficient in value.coefficients.items():
        product = product_of(mono, times)
        total[product] = total.get(product, 0) + factor * coefficient


def changing_scalars(body: Body) -> frozenset[str]:
    """Return the scalars that code assigns, but for the counters of its loops, which are constant in an iteration."""
    steps = {id(stmt.step) for stmt in ir.walk_statements(body) if isinstance(stmt, ir.For)}
    return frozenset(
        stmt.target.name
        for stmt in ir.walk_statements(body)
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and id(stmt) not in steps
    )
