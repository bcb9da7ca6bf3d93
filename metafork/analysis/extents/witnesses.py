"""Iterations in which an access touches an element that is known in parameters.

What comes in are equations between loop symbols, those under which an index is the greatest.  They are solved one by
one: ``B*i + j == n - 1`` by ``i = (n - 1)/B`` and what is left for ``j``, or by the last ``i`` and what is left.  What
goes out are conditions on parameters: where they hold, an iteration runs that touches the element.  Nothing here need
be proved: whoever uses a witness proves its conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.accesses import Access
from metafork.analysis.extents.upper_bounds import Equations

MOST_STEPS = 200
"""Values that are tried for symbols of one access."""


class Witness(Struct, frozen=True):
    """An iteration: what must hold for it, in parameters and in quotients, each defined where all before it holds.

    ``lasting`` must hold for all values of a symbol, its second part, below the third.
    """

    steps: tuple[Constraint | DerivedSymbol, ...]
    lasting: tuple[tuple[Constraint, str, Polynomial], ...] = ()


class _State(Struct, frozen=True):
    """Values of symbols so far, with quotients that stand in them and what must hold for these."""

    values: Mapping[str, Polynomial]
    steps: tuple[Constraint | DerivedSymbol, ...] = ()

    def divided(self, dividend: Polynomial, divisor: Polynomial) -> tuple[_State, Polynomial] | None:
        """Return the quotient of two values, and a state that knows it."""
        exact = dividend.divide_exactly(divisor)
        if exact is not None and exact.whole:
            return self, exact
        if not (dividend.whole and divisor.whole):
            return None
        symbol = DerivedSymbol(f"({dividend}) over ({divisor})", "floor", (dividend, divisor))
        steps = (at_most(1, divisor), at_most(0, dividend), symbol)
        return _State(self.values, tuple(dict.fromkeys((*self.steps, *steps)))), Polynomial.symbol(symbol.name)


def witnesses(
    access: Access, equations: Equations, index: Polynomial, ends: Mapping[str, Sequence[Polynomial]]
) -> Iterator[Witness]:
    """Yield iterations in which an access may have an index, where equations hold; of quotients, ``ends`` are tried."""
    assert access.index is not None
    equal = [one.difference for one in access.conditions if one.relation == "=="]
    for state in _Solver(access, ends).states(_State({}), (*equal, *equations, access.index - index)):
        values = state.values
        conditions = [at_most(0, value) for value in values.values()]
        for one in access.quotients:
            dividend, divisor = (operand.substitute(values) for operand in one.operands)
            whole_part = divisor * values[one.name]
            conditions += [
                at_most(1, divisor),
                at_most(whole_part, dividend),
                less_than(dividend, whole_part + divisor),
            ]
        conditions += [one.substitute(values) for one in access.conditions]
        touched = access.index.substitute(values)
        conditions += [at_most(touched, index), at_most(index, touched)] if touched != index else []
        lasting = [
            (one.substitute({name: value for name, value in values.items() if name != loop}), loop, values[loop])
            for one, loop in access.lasting
        ]
        if all(one.holds({}) for one in conditions if one.difference.is_constant):
            conditions = [one for one in conditions if not one.difference.is_constant]
            yield Witness((*state.steps, *dict.fromkeys(conditions)), tuple(lasting))


class _Solver(Struct):
    access: Access
    ends: Mapping[str, Sequence[Polynomial]]
    left: int = MOST_STEPS

    def states(self, state: _State, equations: Sequence[Polynomial]) -> Iterator[_State]:
        """Yield values of all symbols of an access for which equations may hold."""
        self.left -= 1
        if self.left < 0:
            return
        open_ = [*(loop.var for loop in self.access.loops), *(one.name for one in self.access.quotients)]
        open_ = [name for name in open_ if name not in state.values]
        if not open_:
            yield state
            return
        rest = [one for one in (equation.substitute(state.values) for equation in equations) if one.symbols & {*open_}]
        rest.sort(key=lambda one: len(one.symbols & {*open_}))
        # What no equation says may be as little, or as much, as a condition on several symbols allows.
        for one in self.access.conditions if not rest else ():
            room = (one.difference + (one.relation == "<")).substitute(state.values)
            if len(room.symbols & {*open_}) > 1:
                yield from self.states(state, [room])
        for name, known, value in self._next(state, open_, rest):
            yield from self.states(_State({**state.values, name: value}, known.steps), rest)

    def _next(
        self, state: _State, open_: Sequence[str], equations: Sequence[Polynomial]
    ) -> Iterator[tuple[str, _State, Polynomial]]:
        """Yield values of one more symbol."""
        ready = [
            (one.name, [operand.substitute(state.values) for operand in one.operands])
            for one in self.access.quotients
            if one.name in open_
        ]
        for name, (dividend, divisor) in ready:
            if not (dividend.symbols | divisor.symbols) & {*open_} and (found := state.divided(dividend, divisor)):
                yield name, *found
                return
        for equation in equations:
            names = [name for name in open_ if name in equation.symbols]
            factors = {name: equation.coefficient(name) for name in names}
            if any(factor is None or factor.symbols & {*open_} for factor in factors.values()):
                continue
            known = {name: factor for name, factor in factors.items() if factor is not None}
            if len(names) == 1:
                yield from self._solved(state, names[0], known[names[0]], equation)
            else:
                yield from self._digit(state, known, equation, open_)
            return
        name = next((name for name in open_ if not any(name in one.symbols for one in equations)), open_[0])
        for value in self._ends(state, name, open_):
            yield name, state, value

    def _solved(
        self, state: _State, name: str, factor: Polynomial, equation: Polynomial
    ) -> Iterator[tuple[str, _State, Polynomial]]:
        rest = equation.without((name,))
        for divisor, dividend in ((factor, -rest), (-factor, rest)):
            if all(one > 0 for one in divisor.coefficients.values()) and (found := state.divided(dividend, divisor)):
                yield name, *found
                return

    def _digit(
        self, state: _State, factors: Mapping[str, Polynomial], equation: Polynomial, open_: Sequence[str]
    ) -> Iterator[tuple[str, _State, Polynomial]]:
        """Yield values of the symbol with the largest factor, as it is the first digit of a number, or at an end."""
        largest = max(map(_size, factors.values()))
        names = [name for name, factor in factors.items() if _size(factor) == largest]
        signs = {one > 0 for factor in factors.values() for one in factor.coefficients.values()}
        if len(signs) == 1:
            sign = 1 if True in signs else -1
            rest = equation.without(tuple(factors)) * -sign
            for name in names:
                if found := state.divided(rest, factors[name] * sign):
                    yield name, *found
        else:  # a quotient is subtracted
            names = [one.name for one in self.access.quotients if one.name in factors] or names
        for value in self._ends(state, names[0], open_):
            yield names[0], state, value

    def _ends(self, state: _State, name: str, open_: Sequence[str]) -> Iterator[Polynomial]:
        """Yield the ends of the range of a symbol, and what conditions with it alone say."""
        loop = next((one for one in self.access.loops if one.var == name), None)
        found = [Polynomial(), *self.ends.get(name, ())]
        if loop is not None and loop.trips is not None:
            found.append(loop.trips.substitute(state.values) - 1)
        for one in self.access.conditions:
            rest = (one.difference + (1 if one.relation == "<" else 0)).substitute(state.values)
            factor = rest.coefficient(name)
            if factor is not None and factor.is_constant and abs(factor.constant_value()) == 1:
                found.append(-rest.without((name,)) * factor)
        for value in dict.fromkeys(found):
            if not value.symbols & {*open_}:
                yield value


def _size(factor: Polynomial) -> tuple[int, float]:
    """Order factors: products of more parameters are taken to be larger."""
    return factor.degree, max((abs(float(one)) for one in factor.coefficients.values()), default=0.0)
