"""Polynomials of C expressions against C's own arithmetic: unsigned types that wrap, conversions that cut off."""

from random import Random

import pytest

from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Cast, IntConst, Var, binary, unary

TYPES = [type_ for type_ in ScalarType if type_.integer]
WIDE = [type_ for type_ in TYPES if type_.size >= 4]
CONSTANTS = (0, 1, 2, 3, 7, 31, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
POINTS = 12


def constant(random):
    type_ = random.choice(WIDE)
    return IntConst(
        random.choice([value for value in CONSTANTS if value <= type_.greatest][: random.choice((5, 14))]), type_
    )


class Setting:
    """A scope at random: parameters, loops over each other, guards; and points at which all of it holds."""

    def __init__(self, random):
        self.random = random
        self.types = {name: random.choice(TYPES if random.random() < 0.3 else WIDE) for name in ("n", "m", "i", "j")}
        n, m, i = (Polynomial.symbol(name) for name in "nmi")
        limits = [at_most(0, n), at_most(0, m)]
        for name in "nm":
            largest = min(self.types[name].greatest, 2**63 - 1)
            limits.append(at_most(Polynomial.symbol(name), random.choice((largest, largest, 100))))
        self.limits = limits
        self.demands = [] if random.random() < 0.5 else None
        values = {name: Polynomial.symbol(name) for name in "nmij"}
        self.scope = Scope(values, "nm", premises=limits, demands=self.demands)
        self.trips = {
            "i": random.choice((n, m, n * m, Polynomial.constant(4))),
            "j": random.choice((m, i + 1, Polynomial.constant(3), None)),
        }
        for name, trips in self.trips.items():
            self.scope.ranges.enter(name, trips)
        self.guards = random.choice(((), (at_most(1, i),), (less_than(i + 1, n),)))
        self.scope.ranges.assume(self.guards)

    def variable(self):
        name = self.random.choice("nmij")
        return Var(name, self.types[name])

    def expression(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return self.variable() if r.random() < 0.7 else constant(r)
        match r.choice(("op", "op", "op", "op", "cast", "cast", "minus", "shift", "quotient")):
            case "op":
                return binary(r.choice("++-**"), self.expression(depth - 1), self.expression(depth - 1))
            case "cast":
                return Cast(r.choice(TYPES if r.random() < 0.3 else WIDE), self.expression(depth - 1))
            case "minus":
                return unary(r.choice("+-"), self.expression(depth - 1))
            case "shift":
                return binary("<<", self.expression(depth - 1), IntConst(r.choice((0, 1, 16, 30))))
            case _:
                return binary(
                    r.choice("/%"), self.expression(depth - 1), r.choice((constant(r), Var("m", self.types["m"])))
                )

    def point(self):
        """A point within the types at which limits, loops, guards, demands and quotients are as they should be."""
        r = self.random
        values = {}
        for name in "nm":
            near = (1 << r.choice((2, 4, 8, 15, 16, 24, 31, 32, 33, 63))) + r.randint(-2, 2)
            largest = min(self.types[name].greatest, 2**63 - 1, 100 if r.random() < 0.4 else 2**63 - 1)
            values[name] = min(r.choice((near, r.randint(0, 9), largest - r.randint(0, 2))), largest)
            if values[name] < 0:
                return None
        for name, trips in self.trips.items():
            most = 2**64 if trips is None else int(trips.evaluate(values))
            if most < 1 or (trips is not None and most > self.types[name].greatest):
                return None
            values[name] = min(r.choice((0, most - 1, r.randint(0, most - 1), 1)), self.types[name].greatest)
            if not 0 <= values[name] < most:
                return None
        try:
            for quotient in self.scope.derived:
                values[quotient.name] = quotient.evaluate(values)
        except ZeroDivisionError:
            return None
        known = [*self.limits, *self.guards, *(self.demands or ())]
        known += [constraint for quotient in self.scope.derived for constraint in quotient.constraints()]
        known += [at_most(1, divisor) for divisor in self.scope.divisors]
        return values if all(constraint.holds(values) for constraint in known) else None


def compared(seed):
    """Compare one expression with its polynomial at a few points; return at how many, and whether C wrapped."""
    random = Random(seed)
    setting = Setting(random)
    expr = setting.expression(random.choice((1, 2, 2, 3)))
    type_ = random.choice((expr.type, expr.type, *WIDE))
    value = setting.scope.converted(expr, type_)
    if value is None:
        assert not setting.demands, "what is not known demands nothing"
        return 0
    count = 0
    for _ in range(POINTS):
        point = setting.point()
        if point is None:
            continue
        try:
            expected = converted(integer_value(expr, point), type_)
        except NoValueError:
            continue  # signed arithmetic that overflows
        assert value.evaluate(point) == expected, (seed, expr, type_, value, point)
        count += 1
    return count


def test_polynomials_are_what_c_computes():
    counts = [compared(seed) for seed in range(1200)]
    assert sum(count > 0 for count in counts) > 200
    assert sum(counts) > 1000


@pytest.mark.slow
def test_polynomials_are_what_c_computes_at_length():
    counts = [compared(seed) for seed in range(10_000, 110_000)]
    assert sum(counts) > 100_000
