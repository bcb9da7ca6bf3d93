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
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from fractions import Fraction
from operator import is_

from metafork.algebra.polynomial import Monomial, Polynomial
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET
from metafork.ir.names import fresh
from metafork.ir.program import (
    LOGICAL,
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    For,
    If,
    IntConst,
    Stmt,
    Var,
    subexpressions,
    walk_statements,
)
from metafork.ir.rewriting import assigned_variables, map_body, map_expression
from metafork.lazy_dataclass import dataclass
from metafork.lowering.jam import copied

Body = tuple[Stmt, ...]
_Key = tuple[str, Polynomial]
SIGNED = (ScalarType.INT, ScalarType.LONG, ScalarType.LONG_LONG)
MOST_TRIPS = 8
MOST_STATEMENTS = 320
"""Statements of a loop that is unrolled, all trips together."""


def with_shared_loads(body: Body, taken: set[str]) -> Body:
    """Return straight code, with loops and conditions in it, that loads no element twice where that is seen.

    Code without loops is left to compilers, which see it and choose what stays in registers.  ``taken`` grows by the
    names of scalars.
    """
    if not any(isinstance(stmt, For) for stmt in walk_statements(body)):
        return body
    unrolled = without_short_loops(body, taken)
    plain = _Sharing.planned(body)
    flat = plain if unrolled is body else _Sharing.planned(unrolled)
    better = flat.reused.total() > plain.reused.total()
    chosen, plan = (unrolled, flat) if better else (body, plain)
    if not plan.reused:
        return body
    return _Sharing(plan.changing, taken, plan.reused, plan.found, planning=False).body(chosen, _Here())


def read_always(expr: Expr) -> list[Element]:
    """Return the elements that an expression reads whatever its conditions are, left to right."""
    found: list[Element] = []
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, Binary):
            pending += (part.left,) if part.op in LOGICAL else (part.right, part.left)
        elif isinstance(part, Element):
            found.append(part)
        elif isinstance(part, Conditional):
            pending.append(part.condition)
        else:
            pending += subexpressions(part)[::-1]
    return found


@dataclass(slots=True)
class _Here:
    """What is known at a place: scalars as polynomials, and elements that are in scalars."""

    scalars: dict[str, Polynomial] = field(default_factory=dict)
    loaded: dict[_Key, Var] = field(default_factory=dict)

    def inner(self) -> _Here:
        return _Here(dict(self.scalars), dict(self.loaded))

    def stored(self, body: Body) -> None:
        if not self.loaded:
            return
        arrays = {
            stmt.target.array
            for stmt in walk_statements(body)
            if isinstance(stmt, Assign) and isinstance(stmt.target, Element)
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


@dataclass(slots=True)
class _Sharing:
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

    def _statement(self, stmt: Stmt, here: _Here) -> Iterator[Stmt]:
        match stmt:
            case Declare(name=name, value=value):
                if value is None:
                    yield stmt
                    return
                keys = self._keys(value, here)
                if isinstance(value, Element) and name not in self.changing and value.type is stmt.type:
                    key = dict(keys).get(id(value))
                    if key is not None and key not in here.loaded:
                        here.loaded[key] = Var(name, stmt.type)
                        yield stmt
                        return
                loads, new = self._read(value, keys, here)
                yield from loads
                yield stmt if new is value else Declare(name, stmt.type, new, stmt.span)
                fixed = self.planning and name not in self.changing and stmt.type in SIGNED
                known = self._polynomial(value, here) if fixed else None
                here.counts(name)
                if known is not None:
                    here.scalars[name] = known
            case Assign(value=value):
                loads, new = self._read(value, self._keys(value, here), here)
                yield from loads
                yield stmt if new is value else replace(stmt, value=new)
                if isinstance(stmt.target, Element):
                    here.forget({stmt.target.array})
            case If(condition=condition, then=then, otherwise=otherwise):
                loads, test = self._read(condition, self._keys(condition, here), here)
                yield from loads
                yes, no = self.body(then, here.inner()), self.body(otherwise, here.inner())
                yield stmt if self.planning else replace(stmt, condition=test, then=yes, otherwise=no)
                here.stored((stmt,))
            case For(init=Declare(name=name), body=inner):
                here.stored((stmt,))
                inside = here.inner()
                inside.counts(name)
                new_body = self.body(inner, inside)
                yield stmt if self.planning else replace(stmt, body=new_body)
            case _:
                raise AssertionError(f"{type(stmt).__name__} in straight code")

    def _keys(self, expr: Expr, here: _Here) -> Sequence[tuple[int, _Key]]:
        """Return what the elements of an expression are known as, by their identity; as often as they stand there."""
        if not self.planning:
            return self.found.popleft()
        keys: list[tuple[int, _Key]] = []
        self.found.append(keys)
        pending = [expr]
        while pending:
            part = pending.pop()
            if isinstance(part, Element):
                (index,) = part.indices
                offset = self._polynomial(index, here)
                if offset is not None:  # such an index has no element in it
                    keys.append((id(part), (part.array, offset)))
                    continue
            pending += subexpressions(part)
        return keys

    def _read(self, expr: Expr, found: Sequence[tuple[int, _Key]], here: _Here) -> tuple[list[Stmt], Expr]:
        """Return scalars for the elements that are read in any case and have none yet, and the expression with them."""
        loads: list[Stmt] = []
        if not found:
            return loads, expr
        keys = dict(found)
        for element in read_always(expr):
            key = keys.get(id(element))
            if key is None or key in here.loaded:
                continue
            if self.planning:
                here.loaded[key] = Var("", element.type)
                self.reused[key] -= 1  # this very read is no second one
            elif key in self.reused:
                scalar = here.loaded[key] = Var(fresh("shared", self.taken), element.type)
                loads.append(Declare(scalar.name, scalar.type, element))
        if self.planning:
            for _, key in found:
                if key in here.loaded:
                    self.reused[key] += 1
            return loads, expr

        def change(part: Expr) -> Expr | None:
            key = keys.get(id(part))
            return None if key is None else here.loaded.get(key)

        return loads, map_expression(expr, change)

    def _polynomial(self, expr: Expr, here: _Here) -> Polynomial | None:
        return exact_polynomial(expr, here.scalars, self.changing)


def exact_polynomial(expr: Expr, scalars: Mapping[str, Polynomial], changing: Set[str]) -> Polynomial | None:
    """Return signed arithmetic, in which nothing overflows, as a polynomial in scalars; ``None`` for other things.

    ``scalars`` are known values, ``changing`` names without one value.
    """
    total: dict[Monomial, int | Fraction] = {}
    return Polynomial.of_coefficients(total) if _summed(expr, 1, total, scalars, changing) else None


def _summed(
    expr: Expr,
    factor: int,
    total: dict[Monomial, int | Fraction],
    scalars: Mapping[str, Polynomial],
    changing: Set[str],
) -> bool:
    """Add ``factor`` times an expression to the coefficients in ``total``; say whether it is a polynomial."""
    if isinstance(expr, Binary):
        op, right = expr.op, expr.right
        if op not in _EXACT or expr.type not in SIGNED:
            return False
        if op != "*":
            return _summed(expr.left, factor, total, scalars, changing) and _summed(
                right, factor if op == "+" else -factor, total, scalars, changing
            )
        if isinstance(right, IntConst):
            return _summed(expr.left, factor * right.value, total, scalars, changing)
        one = exact_polynomial(expr.left, scalars, changing)
        other = None if one is None else exact_polynomial(right, scalars, changing)
        if one is None or other is None:
            return False
        _add(one * other, factor, total)
        return True
    if isinstance(expr, Var):
        name = expr.name
        if name in changing or expr.type not in SIGNED:
            return False
        known = scalars.get(name)
        if known is not None:
            _add(known, factor, total)
            return True
        power = ((name, 1),)
        total[power] = total.get(power, 0) + factor
        return True
    if isinstance(expr, IntConst):
        total[()] = total.get((), 0) + factor * expr.value
        return True
    if isinstance(expr, Call):
        # Where an offset is an int, it fits.
        return expr.name == OFFSET and _summed(expr.arguments[0], factor, total, scalars, changing)
    if isinstance(expr, Cast):
        operand = expr.operand
        exact = expr.type in SIGNED and operand.type in SIGNED and expr.type.size >= operand.type.size
        return exact and _summed(operand, factor, total, scalars, changing)
    return False


_EXACT = frozenset({"+", "-", "*"})


def _add(value: Polynomial, factor: int, total: dict[Monomial, int | Fraction]) -> None:
    for mono, coefficient in value.coefficients.items():
        total[mono] = total.get(mono, 0) + factor * coefficient


def _without_zero(expr: Expr) -> Expr | None:
    """Leave out a summand that a counter's first value has made zero."""
    match expr:
        case Binary(op="+", left=left, right=IntConst(value=0)) if left.type is expr.type:
            return map_expression(left, _without_zero)
        case _:
            return None


def changing_scalars(body: Body) -> frozenset[str]:
    """Return the scalars that code assigns, but for the counters of its loops, which are constant in an iteration."""
    steps = {id(stmt.step) for stmt in walk_statements(body) if isinstance(stmt, For)}
    return frozenset(
        stmt.target.name
        for stmt in walk_statements(body)
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var) and id(stmt) not in steps
    )


def places_of(loop: For) -> range:
    """Return the values of a counter that runs from a constant to a constant; none where a loop is another one."""
    match loop:
        case For(
            init=Declare(name=name, type=ScalarType.INT, value=IntConst(value=first)),
            condition=Binary(op="<", left=Var(name=tested), right=IntConst(value=last)),
            step=Assign(target=Var(name=stepped), op="+", value=IntConst(value=1)),
            body=inner,
        ) if name == tested == stepped and name not in assigned_variables(inner):
            return range(first, last)
        case _:
            return range(0)


def is_unrolled(places: range, statements: int) -> bool:
    """Say whether a loop with a body of so many statements is unrolled."""
    return 0 < len(places) <= MOST_TRIPS and len(places) * statements <= MOST_STATEMENTS


def without_short_loops(body: Body, taken: set[str]) -> Body:
    """Return code without its loops of few constant trips; itself where it has none."""
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For(body=inner):
                straight = without_short_loops(inner, taken)
                places = places_of(stmt)
                if not is_unrolled(places, len(walk_statements(straight))):
                    result.append(stmt if straight is inner else replace(stmt, body=straight))
                    continue
                assert isinstance(stmt.init, Declare)
                for number in places:
                    values: Mapping[str, Expr] = {stmt.init.name: IntConst(number)}
                    copy = copied(straight, values, taken)
                    result += copy if number else map_body(copy, _without_zero)
            case If(then=then, otherwise=otherwise):
                yes, no = without_short_loops(then, taken), without_short_loops(otherwise, taken)
                same = yes is then and no is otherwise
                result.append(stmt if same else replace(stmt, then=yes, otherwise=no))
            case _:
                result.append(stmt)
    return body if len(result) == len(body) and all(map(is_, result, body)) else tuple(result)
