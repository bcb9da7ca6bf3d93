"""Loads that straight code has in common: indices that are elements themselves, and code that is left as it is."""

from __future__ import annotations

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Assign, Binary, Declare, Element, Expr, For, If, IntConst, Stmt, Var, binary
from metafork.ir.rewriting import substitute
from metafork.lowering.shared_loads import with_shared_loads

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
