"""Loads that straight code has in common: indices that are elements themselves, and code that is left as it is."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import (
    Assign,
    Binary,
    Declare,
    Element,
    Expr,
    For,
    If,
    IntConst,
    Stmt,
    Var,
    binary,
    walk_statements,
)
from metafork.ir.rewriting import substitute, variables
from metafork.unrolling import shared_loads
from metafork.unrolling.shared_loads import exact_polynomial, may_share, with_shared_loads
from metafork.unrolling.short_loops import unrolled_statements, without_short_loops

INT = ScalarType.INT


def _loop(*body: Stmt) -> For:
    counter = Var("k", INT)
    return For(
        Declare("k", INT, IntConst(0)), binary("<", counter, Var("n", INT)), Assign(counter, "+", IntConst(1)), body
    )


def _element(array: str, index: Expr) -> Element:
    return Element(array, (index,), INT)


def test_an_element_is_not_taken_for_the_one_in_its_index() -> None:
    inner = _element("b", Var("i", INT))
    total = Var("total", INT)
    body = (
        _loop(
            Declare("first", INT, _element("a", inner)),
            Assign(total, "+", binary("+", Var("first", INT), _element("b", Var("i", INT)))),
        ),
    )
    # What stands in an index only is left there, and the scalar is no value of ``b``.
    assert with_shared_loads(body, {"a", "b", "i", "k", "n", "total", "first"}) is body


def test_an_element_that_stands_twice_in_one_expression_is_loaded_once() -> None:
    one = _element("a", Var("i", INT))
    body = (_loop(Assign(Var("total", INT), "+", binary("*", one, one))),)
    (loop,) = with_shared_loads(body, {"a", "i", "k", "n", "total"})
    assert isinstance(loop, For)
    loaded, added = loop.body
    assert loaded == Declare("shared", INT, one)
    assert isinstance(added, Assign)
    assert added.value == binary("*", Var("shared", INT), Var("shared", INT))


def test_code_without_common_loads_is_returned_itself() -> None:
    body = (_loop(If(Var("c", INT), (Assign(Var("total", INT), "+", _element("a", Var("k", INT))),))),)
    assert with_shared_loads(body, {"a", "c", "k", "n", "total"}) is body


def test_substitution_returns_what_it_does_not_change() -> None:
    expr = binary("+", _element("a", Var("i", INT)), IntConst(1))
    assert substitute(expr, {"j": IntConst(2)}) is expr
    changed = substitute(expr, {"i": IntConst(2)})
    assert isinstance(changed, Binary)
    assert changed == binary("+", _element("a", IntConst(2)), IntConst(1))
    assert changed.right is expr.right
    assert substitute(expr, {"a": Var("b", INT)}) == binary("+", _element("b", Var("i", INT)), IntConst(1))


def test_nothing_is_shared_where_offsets_differ_though_names_are_the_same() -> None:
    x, n, d = Var("x", INT), Var("n", INT), Var("d", INT)
    here, below = binary("+", x, d), binary("+", binary("+", x, n), d)
    body = (_few(3, Assign(Var("total", INT), "+", binary("+", _element("a", here), _element("a", below)))),)
    assert not may_share(body)
    assert with_shared_loads(body, {"a", "d", "n", "total", "x"}) is body


def test_neighbours_in_a_loop_of_few_trips_may_share() -> None:
    x, d = Var("x", INT), Var("d", INT)
    here, next_ = _element("a", binary("+", x, d)), _element("a", binary("+", binary("+", x, d), IntConst(1)))
    body = (_few(3, Assign(Var("total", INT), "+", binary("+", here, next_))),)
    assert may_share(body)
    assert with_shared_loads(body, {"a", "d", "total", "x"}) is not body


def test_a_branch_does_not_see_what_the_other_one_reads() -> None:
    load = Assign(Var("total", INT), "+", _element("a", Var("x", INT)))
    assert not may_share((_loop(If(Var("c", INT), (load,), (load,))),))
    assert may_share((_loop(load, If(Var("c", INT), (load,))),))


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_shared_was_seen_by_the_quick_look(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = _random_body(random.Random(seed), 3)
    names = {*"abcdnsxy"}
    assert unrolled_statements(body) == len(walk_statements(without_short_loops(body, set(names))))
    seen = may_share(body)
    monkeypatch.setattr(shared_loads, "may_share", lambda _: True)
    assert seen or with_shared_loads(body, set(names)) is body


@pytest.mark.parametrize("seed", range(200))
def test_the_polynomial_of_an_index_has_its_value(seed: int) -> None:
    source = random.Random(seed)
    n, d = Polynomial.symbol("n"), Polynomial.symbol("d")
    scalars = {"x": n * d * 2 + n - 3, "y": n * 4}
    point = {name: source.randint(-9, 9) for name in "nds"}
    numbers = point | {name: int(value.evaluate(point)) for name, value in scalars.items()}
    index = _random_arithmetic(source, 4)
    polynomial = exact_polynomial(index, scalars, frozenset({"s"}))
    if "s" in variables(index):
        assert polynomial is None
    else:
        assert polynomial is not None
        assert polynomial.evaluate(point) == _value(index, numbers)


def _random_arithmetic(source: random.Random, depth: int) -> Expr:
    if not depth or source.random() < 0.2:
        return source.choice((IntConst(source.randint(-3, 3)), Var(source.choice("dddnnnxxxyyys"), INT)))
    sides = (_random_arithmetic(source, depth - 1) for _ in range(2))
    return binary(source.choice("+-*"), *sides)


def _value(expr: Expr, numbers: Mapping[str, int]) -> int:
    match expr:
        case Var(name=name):
            return numbers[name]
        case IntConst(value=value):
            return value
        case Binary(op=op, left=left, right=right):
            one, other = _value(left, numbers), _value(right, numbers)
            return one * other if op == "*" else one + other if op == "+" else one - other
        case _:
            raise AssertionError(expr)


def _few(trips: int, *body: Stmt) -> For:
    counter = Var("d", INT)
    step = Assign(counter, "+", IntConst(1))
    return For(Declare("d", INT, IntConst(0)), binary("<", counter, IntConst(trips)), step, body)


def _random_body(source: random.Random, depth: int) -> tuple[Stmt, ...]:
    return tuple(_random_statement(source, depth) for _ in range(source.randint(1, 4)))


def _random_statement(source: random.Random, depth: int) -> Stmt:
    kind = source.choice(("declare", "assign", "store", "if", "loop", "few") if depth else ("declare", "assign"))
    match kind:
        case "declare":
            return Declare(source.choice("xy"), INT, source.choice((_random_index, _random_load))(source))
        case "assign":
            return Assign(Var("s", INT), "+", binary("*", _random_load(source), _random_load(source)))
        case "store":
            return Assign(_random_load(source), "", Var("s", INT))
        case "if":
            return If(Var("c", INT), _random_body(source, depth - 1), _random_body(source, depth - 1))
        case "few":
            return _few(source.randint(1, 3), *_random_body(source, depth - 1))
        case _:
            return _loop(*_random_body(source, depth - 1))


def _random_load(source: random.Random) -> Element:
    return _element(source.choice("ab"), _random_index(source))


def _random_index(source: random.Random) -> Expr:
    index: Expr = Var(source.choice("dnxy"), INT)
    for _ in range(source.randint(0, 2)):
        more: Expr = source.choice((IntConst(source.randint(0, 2)), Var(source.choice("dnxy"), INT)))
        index = binary(source.choice("++-*"), index, more)
    return index
