"""Host expressions, compiled: the value that C gives, or a failure where C would wrap, divide by zero or not fit."""

import ctypes
import random

import pytest

from metafork.comprehensive.emit.checked_expressions import ComputationError, checked
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Conditional,
    Element,
    FloatConst,
    IntConst,
    Unary,
    Var,
    binary,
    unary,
)
from tests.runtime.compiling import INCLUDE, WARNINGS, succeed

INT, UNSIGNED, LONG = ScalarType.INT, ScalarType.UNSIGNED_INT, ScalarType.LONG
VARIABLES = {"a": INT, "b": INT, "u": UNSIGNED, "l": LONG}
OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", "<", "<=", "==", "!=", "&", "|", "^", "&&", "||"]


class RefusedError(Exception):
    """C gives a value that the host does not compute, or none: the flag must be set."""


class UndefinedError(Exception):
    """Signed overflow in 32 bits: C leaves it open, so any answer will do."""


def random_expression(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.4:
            return IntConst(rng.choice([0, 1, 2, 3, 7, 31, 32, 1000, 2**31 - 1]))
        name = rng.choice(list(VARIABLES))
        return Var(name, VARIABLES[name])
    kind = rng.random()
    if kind < 0.1:
        return unary(rng.choice("-!~+"), random_expression(rng, depth - 1))
    if kind < 0.2:
        return Cast(
            rng.choice([INT, UNSIGNED, LONG, ScalarType.SHORT, ScalarType.BOOL]), random_expression(rng, depth - 1)
        )
    if kind < 0.3:
        condition, then, otherwise = (random_expression(rng, depth - 1) for _ in range(3))
        return Conditional(condition, then, otherwise, common_type(then.type, otherwise.type))
    return binary(rng.choice(OPERATORS), random_expression(rng, depth - 1), random_expression(rng, depth - 1))


def fitted(value, type_):
    """A value converted to a type without a change."""
    bits = 8 * type_.size
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if type_.signed else (0, 2**bits - 1)
    if not least <= value <= most:
        raise RefusedError
    return value


def computed(value, type_):
    """The result of an operation of that type."""
    if type_.signed and not -(2**31) <= value < 2**31 and -(2**63) <= value < 2**63 and type_ is INT:
        raise UndefinedError
    return fitted(value, type_)


def meaning(expr, values):
    def of(part):
        return meaning(part, values)

    match expr:
        case IntConst(value=value):
            return value
        case Var(name=name):
            return values[name]
        case Cast(type=ScalarType.BOOL, operand=operand):
            return int(of(operand) != 0)
        case Cast(type=type_, operand=operand):
            return fitted(of(operand), type_)
        case Unary(op=op, operand=operand):
            value = of(operand)
            results = {"-": -value, "+": value, "~": ~value, "!": int(not value)}
            return computed(results[op], expr.type)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return fitted(of(then if of(condition) else otherwise), expr.type)
        case Binary(op=op, left=left, right=right) if op in LOGICAL:
            first = bool(of(left))
            return int(first) if first == (op == "||") else int(bool(of(right)))
        case Binary(op=op, left=left, right=right):
            first, second = of(left), of(right)
            if op not in ("<<", ">>"):
                common = common_type(left.type, right.type)
                first, second = fitted(first, common), fitted(second, common)
            if op in COMPARISONS:
                return int({"<": first < second, "<=": first <= second, "==": first == second}.get(op, first != second))
            if (op in "/%" and second == 0) or (op in ("<<", ">>") and not 0 <= second <= 62):
                raise RefusedError
            if (op == "<<" and first < 0) or (op == "%" and (first, second) == (-(2**63), -1)):
                raise RefusedError
            quotient = abs(first) // abs(second or 1) * (1 if (first < 0) == (second < 0) else -1)
            results = {"+": first + second, "-": first - second, "*": first * second, "/": quotient}
            results |= {"%": first - second * quotient, "&": first & second, "|": first | second, "^": first ^ second}
            if op in ("<<", ">>"):
                results[op] = first << second if op == "<<" else first >> second
            return computed(results[op], expr.type)


def test_random_expressions(tmp_path):
    rng = random.Random(11)
    expressions = [random_expression(rng, rng.randrange(1, 5)) for _ in range(400)]
    names = {name: name for name in VARIABLES}
    rows = "".join(f"    case {i}: return {checked(expr, names)};\n" for i, expr in enumerate(expressions))
    (tmp_path / "host.cc").write_text(
        '#include "metafork/exact.h"\n'
        'extern "C" int64_t compute(int which, int64_t a, int64_t b, int64_t u, int64_t l, int *failed)\n'
        "{\n  int metafork_failed = 0;\n  int64_t value = [&]() -> int64_t {\n  (void)a, (void)b, (void)u, (void)l;\n"
        f"  switch (which) {{\n{rows}    default: return 0;\n  }} }}();\n"
        "  *failed = metafork_failed;\n  return value;\n}\n"
    )
    # No warnings: random expressions compare things that never differ.
    flags = ["-w", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan", "-shared", "-fPIC"]
    library = tmp_path / "host.so"
    succeed(["g++", "-std=c++17", *flags, f"-I{INCLUDE}", tmp_path / "host.cc", "-o", library])
    compute = ctypes.CDLL(str(library)).compute
    compute.restype = ctypes.c_int64
    outcomes = {"value": 0, "refused": 0}
    for which, expr in enumerate(expressions):
        for _ in range(30):
            a, b = (rng.choice([-(2**31), -7, -1, 0, 1, 2, 5, 31, 1000, 2**31 - 1]) for _ in range(2))
            u = rng.choice([0, 1, 3, 32, 2**32 - 1])
            wide = rng.choice([-(2**63), -1, 0, 1, 64, 2**32, 2**63 - 1])
            failed = ctypes.c_int(0)
            numbers = [ctypes.c_int64(number) for number in (a, b, u, wide)]
            value = compute(which, *numbers, ctypes.byref(failed))
            try:
                expected = meaning(expr, {"a": a, "b": b, "u": u, "l": wide})
            except UndefinedError:
                continue
            except RefusedError:
                assert failed.value, (expr, a, b, u, wide)
                outcomes["refused"] += 1
                continue
            assert not failed.value, (expr, a, b, u, wide)
            assert value == expected, (expr, a, b, u, wide)
            outcomes["value"] += 1
    assert min(outcomes.values()) > 1000


FLOAT, DOUBLE = ScalarType.FLOAT, ScalarType.DOUBLE


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (Cast(INT, binary("*", Var("n"), FloatConst("0.3f", FLOAT))), int(ctypes.c_float(0.3).value * 10 + 1e-9)),
        (Cast(INT, Call("sqrt", (Cast(DOUBLE, Var("n")),), DOUBLE)), 3),
        (binary("<", FloatConst("9.5", DOUBLE), Var("n")), 1),
        (Cast(INT, binary("/", Var("n"), FloatConst("0.0", DOUBLE))), None),
        (Cast(INT, FloatConst("1e10", DOUBLE)), None),
    ],
)
def test_floating_parts_keep_their_types(tmp_path, expr, value):
    (tmp_path / "host.cc").write_text(
        '#include "metafork/exact.h"\n#include <math.h>\n#include <stdio.h>\n'
        "int main() {\n  int metafork_failed = 0;\n  int64_t n = 10;\n  (void)n;\n"
        f"  const int64_t value = {checked(expr, {'n': 'n'})};\n"
        '  printf("%lld %d\\n", (long long)value, metafork_failed);\n}\n'
    )
    succeed(["g++", "-std=c++17", *WARNINGS, f"-I{INCLUDE}", tmp_path / "host.cc", "-o", tmp_path / "host"])
    result, failed = map(int, succeed([tmp_path / "host"]).stdout.split())
    assert (None if failed else result) == value


@pytest.mark.parametrize("expr", [Var("unknown"), Element("a", (IntConst(0),), INT), IntConst(2**63, LONG)])
def test_what_the_host_cannot_compute_is_refused(expr):
    with pytest.raises(ComputationError):
        checked(expr, {"a": "a"})
