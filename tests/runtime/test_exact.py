"""exact.h against Python's integers, on random polynomials and at the extremes of 64 bits."""

import ctypes
import random
from fractions import Fraction
from math import ceil, floor

import pytest

from tests.runtime.compiling import INCLUDE, WARNINGS, succeed

SOURCE = """
#include "metafork/exact.h"
typedef metafork_polynomial P;
int sign(P p, const int64_t *v) { return metafork_sign(p, v); }
int slow_sign(P p, const int64_t *v) { P none = {NULL, 0}; return metafork_sign_of_sum(p, 1, none, 0, v); }
int holds(P l, int relation, P r, const int64_t *v)
{ metafork_condition c = {l, (metafork_relation)relation, r, ""}; return metafork_holds(&c, v); }
int64_t quotient(P n, P d, const int64_t *v, int *failed) { return metafork_floor(n, d, v, failed); }
int64_t above(P n, P d, const int64_t *v, int *failed) { return metafork_ceiling(n, d, v, failed); }
int64_t extremum(int direction, P a, P b, int64_t divisor, const int64_t *v, int *failed)
{ P both[2]; both[0] = a; both[1] = b; return metafork_extremum(direction, both, 2, divisor, v, failed); }
int64_t step(int which, int64_t a, int64_t b, int *failed)
{
  switch (which) {
  case 0: return metafork_add(failed, a, b);
  case 1: return metafork_subtract(failed, a, b);
  case 2: return metafork_multiply(failed, a, b);
  case 3: return metafork_divide(failed, a, b);
  case 4: return metafork_remainder(failed, a, b);
  case 5: return metafork_shift_left(failed, a, b);
  default: return metafork_shift_right(failed, a, b);
  }
}
"""
LEAST, MOST = -(2**63), 2**63 - 1
EXTREMES = [LEAST, LEAST + 1, -1, 0, 1, 2, 3, 1024, 2**31, 2**32 - 1, 2**62, MOST - 1, MOST]


class Term(ctypes.Structure):
    _fields_ = [("coefficient", ctypes.c_int64), ("degree", ctypes.c_uint8), ("factor", ctypes.c_uint8 * 15)]


class Table(ctypes.Structure):
    _fields_ = [("terms", ctypes.POINTER(Term)), ("count", ctypes.c_int)]


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    directory = tmp_path_factory.mktemp("exact")
    (directory / "exact.c").write_text(SOURCE)
    library = directory / "exact.so"
    flags = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan", "-shared", "-fPIC"]
    succeed(["gcc", "-std=c11", *WARNINGS, f"-I{INCLUDE}", *flags, directory / "exact.c", "-o", library])
    loaded = ctypes.CDLL(str(library))
    for name in ("quotient", "above", "extremum", "step"):
        getattr(loaded, name).restype = ctypes.c_int64
    return loaded


def table(terms):
    rows = (Term * max(len(terms), 1))()
    for row, (coefficient, factors) in zip(rows, terms, strict=False):
        row.coefficient, row.degree = coefficient, len(factors)
        row.factor[: len(factors)] = factors
    return Table(rows, len(terms))


def vector(values):
    return (ctypes.c_int64 * len(values))(*values)


def value(terms, values):
    total = 0
    for coefficient, factors in terms:
        for factor in factors:
            coefficient *= values[factor]
        total += coefficient
    return total


def random_value(rng):
    return (
        rng.choice(EXTREMES)
        if rng.random() < 0.4
        else rng.randrange(-(2 ** rng.randrange(1, 64)), 2 ** rng.randrange(63))
    )


def random_terms(rng, degree):
    return [
        (random_value(rng), [rng.randrange(4) for _ in range(rng.randrange(degree + 1))])
        for _ in range(rng.randrange(5))
    ]


def sign(number):
    return (number > 0) - (number < 0)


@pytest.mark.parametrize("degree", [1, 2, 8, 15])
def test_signs_and_comparisons(exact, degree):
    rng = random.Random(degree)
    seen = set()
    for _ in range(1500):
        values = [random_value(rng) for _ in range(4)]
        left, right = random_terms(rng, degree), random_terms(rng, degree)
        if rng.random() < 0.3:
            right = [*left, (rng.randrange(-1, 2), [])]
        here = vector(values)
        difference = [*left, *((-c, f) for c, f in right if c != LEAST)]
        expected = sign(value(difference, values))
        assert exact.sign(table(difference), here) == expected
        assert exact.slow_sign(table(difference), here) == expected
        compared = sign(value(left, values) - value(right, values))
        seen.add(compared)
        for relation, wanted in enumerate((compared <= 0, compared < 0, compared == 0)):
            assert bool(exact.holds(table(left), relation, table(right), here)) is wanted
    assert seen == {-1, 0, 1}


def test_values_that_differ_by_one_beyond_128_bits(exact):
    values = [MOST, MOST]
    power = [0] * 7
    left, right = [(MOST, power), (1, [])], [(MOST, power)]
    assert exact.holds(table(right), 1, table(left), vector(values)) == 1
    assert exact.holds(table(left), 0, table(right), vector(values)) == 0


def checked(function, *arguments):
    failed = ctypes.c_int(0)
    result = function(*arguments, ctypes.byref(failed))
    return None if failed.value else result


def test_quotients(exact):
    rng = random.Random(1)
    outcomes = {"fits": 0, "refused": 0}
    for _ in range(3000):
        values = [abs(random_value(rng)) if rng.random() < 0.9 else -1 for _ in range(4)]
        values = [min(number, MOST) for number in values]
        divisor = random_terms(rng, 3)
        factor = min(abs(random_value(rng)), MOST)
        terms = [(c, [*f, 0]) for c, f in divisor] if rng.random() < 0.6 else random_terms(rng, 3)
        terms = [*terms, (factor, [])]
        n, d = value(terms, values), value(divisor, values)
        good = n >= 0 and d >= 1
        for function, rounded in ((exact.quotient, floor), (exact.above, ceil)):
            expected = rounded(Fraction(n, d)) if good else None
            if expected is not None and expected > MOST:
                expected = None
            assert checked(function, table(terms), table(divisor), vector(values)) == expected
            outcomes["refused" if expected is None else "fits"] += 1
    assert min(outcomes.values()) > 300


@pytest.mark.parametrize(("last", "power"), [(1, 1), (3, 1), (2**62, 1), (MOST, 1), (2**40, 2), (MOST, 3)])
def test_quotients_about_the_end_of_63_bits(exact, last, power):
    """2^63 is the least that does not fit, in 128 bits as in more."""
    values, divisor = [2, 2**62, last], [2] * power
    for times, units in ((-1, -1), (-1, 0), (0, -2), (0, -1), (0, 0), (0, 1), (1, 0)):
        terms = [(1, [0, 1, *divisor]), (times, divisor), (units, [])]
        n, d = value(terms, values), last**power
        assert n == (2**63 + times) * d + units
        for function, rounded in ((exact.quotient, floor), (exact.above, ceil)):
            expected = rounded(Fraction(n, d))
            got = checked(function, table(terms), table([(1, divisor)]), vector(values))
            assert got == (expected if expected <= MOST else None)


def test_extrema(exact):
    rng = random.Random(2)
    fits = 0
    for _ in range(2000):
        values = [random_value(rng) for _ in range(4)]
        left, right = random_terms(rng, 2), random_terms(rng, 2)
        divisor = rng.choice([1, 1, 2, 3, 2**40])
        for direction, choose in ((1, max), (-1, min)):
            number = choose(value(left, values), value(right, values))
            expected = abs(number) // divisor * sign(number)
            got = checked(exact.extremum, direction, table(left), table(right), ctypes.c_int64(divisor), vector(values))
            if -MOST < expected < MOST:
                fits += 1
                assert got == expected
            else:
                assert got in (None, expected)
    assert fits > 500


def test_checked_steps(exact):
    def truncated(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    operations = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: truncated(a, b) if b else None,
        lambda a, b: a - b * truncated(a, b) if b and (a, b) != (LEAST, -1) else None,
        lambda a, b: a << b if a >= 0 and 0 <= b <= 62 else None,
        lambda a, b: a >> b if 0 <= b <= 63 else None,
    ]
    for which, operation in enumerate(operations):
        for a in EXTREMES:
            for b in EXTREMES:
                expected = operation(a, b)
                if expected is not None and not LEAST <= expected <= MOST:
                    expected = None
                got = checked(exact.step, which, ctypes.c_int64(a), ctypes.c_int64(b))
                assert got == expected, (which, a, b)
