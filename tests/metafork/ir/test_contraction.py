from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.comprehensive.cli import cli
from metafork.frontend import parse
from metafork.ir import contraction
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.contraction import NameTakenError, contracted_unit
from metafork.ir.invariants import check_program
from metafork.ir.messages.source import Source
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    FloatConst,
    Unary,
    Var,
    binary,
    unary,
    walk_expression,
    walk_statements,
)
from metafork.printing.statements import statements


def text(body, before="", inside="", within=""):
    return f"""{before}
void f(int n, int B, float w, float v, double q, float a[n], float b[n], double d[n], int k[n])
{{
  int blocks = n / B;
{inside}
  meta_schedule {{
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {{
{within}
        {body}
      }}
  }}
}}
"""


def fused(source, everywhere=True):
    """The statements that store something, after contraction."""
    unit = contracted_unit(parse(Source("test.mf", source)), everywhere)
    program = unit.schedules[0].program
    check_program(program)
    stores = tuple(stmt for stmt in walk_statements(program.body) if isinstance(stmt, Assign))
    return [line.strip() for line in statements(stores, 0)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a[u] = w * v + b[u];", "a[u] = fmaf(w, v, b[u]);"),
        ("a[u] = b[u] + w * v;", "a[u] = fmaf(w, v, b[u]);"),
        ("a[u] = w * v - b[u];", "a[u] = fmaf(w, v, -b[u]);"),
        ("a[u] = b[u] - w * v;", "a[u] = fmaf(-w, v, b[u]);"),
        ("a[u] = -(w * v) + b[u];", "a[u] = fmaf(-w, v, b[u]);"),
        ("a[u] = b[u] - -(w * v);", "a[u] = fmaf(w, v, b[u]);"),
        ("a[u] = -(w * v) - b[u];", "a[u] = fmaf(-w, v, -b[u]);"),
        # Of two products the left one.
        ("a[u] = w * v + b[u] * v;", "a[u] = fmaf(w, v, b[u] * v);"),
        ("a[u] = w * v - b[u] * v;", "a[u] = fmaf(w, v, -(b[u] * v));"),
        ("a[u] += w * v;", "a[u] = fmaf(w, v, a[u]);"),
        ("a[u] -= w * v;", "a[u] = fmaf(-w, v, a[u]);"),
        ("a[u] = w * v + b[u] + v;", "a[u] = fmaf(w, v, b[u]) + v;"),
        ("a[u] = (w * v + b[u]) * v + w;", "a[u] = fmaf(fmaf(w, v, b[u]), v, w);"),
        ("d[u] = q * d[u] + w;", "d[u] = fma(q, d[u], w);"),
        ("d[u] = w - k[u] * d[u];", "d[u] = fma(-(double)k[u], d[u], w);"),
        ("d[u] = w * v + q * d[u];", "d[u] = fma(q, d[u], w * v);"),  # the left product is one of float
        ("a[u] += q * v;", "a[u] = fma(q, v, a[u]);"),
        ("a[u] = 1.0f - k[u] * w;", "a[u] = fmaf(-(float)k[u], w, 1.0f);"),
        ("if (w * v + a[u] > 0) a[u] = 0;", "a[u] = 0;"),
        # Kept apart: by a cast, by an assignment, by another type; integers; what is no sum of a product.
        ("d[u] = (double)(w * v) + q;", "d[u] = (double)(w * v) + q;"),
        ("d[u] = w * v + q;", "d[u] = w * v + q;"),
        ("a[u] *= w + v;", "a[u] *= w + v;"),
        ("a[u] = w / v + b[u];", "a[u] = w / v + b[u];"),
        ("k[u] = k[u] * 3 + u;", "k[u] = k[u] * 3 + u;"),
        ("k[u] += k[u] * 3;", "k[u] += k[u] * 3;"),
    ],
)
def test_the_rule(written, meant):
    assert fused(text(written))[0] == meant


def test_what_is_assigned_is_kept_apart_and_conditions_are_fused():
    unit = contracted_unit(
        parse(Source("test.mf", text("float t = w * v; if (w * v > a[u] * w + v) a[u] = t + v;"))), True
    )
    (phase,) = unit.schedules[0].program.body
    lines = " ".join(statements(phase.body, 0))
    assert "float t = w * v;" in lines
    assert "if (w * v > fmaf(a[u], w, v))" in lines
    assert "a[u] = t + v;" in lines


ON, OFF, DEFAULT = (f"#pragma STDC FP_CONTRACT {state}" for state in ("ON", "OFF", "DEFAULT"))


@pytest.mark.parametrize(
    ("places", "everywhere", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"before": ON}, False, True),
        ({"inside": ON}, False, True),
        ({"before": OFF}, True, False),
        ({"before": f"{OFF}\n{ON}"}, False, True),
        ({"before": ON, "inside": OFF}, False, False),
        ({"before": ON, "inside": DEFAULT}, False, False),
        ({"before": OFF, "inside": DEFAULT}, True, True),
        # It ends with its block.
        ({"inside": f"{{\n{ON}\n}}"}, False, False),
        ({"before": f"void g(void) {{\n{ON}\n}}"}, False, False),
        ({"before": f"{ON}\nvoid g(void) {{\n{OFF}\n}}"}, False, True),
        # Inside of a schedule only what forbids it counts.
        ({"within": OFF}, True, False),
        ({"within": ON}, False, False),
        ({"before": "#pragma STDC FENV_ACCESS ON"}, False, False),
        ({"before": "#pragma STDC FP_CONTRACT"}, False, False),
    ],
)
def test_the_pragma(places, everywhere, expected):
    got = fused(text("a[u] = w * v + b[u];", **places), everywhere)
    assert got == (["a[u] = fmaf(w, v, b[u]);"] if expected else ["a[u] = w * v + b[u];"])


@pytest.mark.parametrize(
    "source",
    [
        text("a[u] = w * v + fmaf;").replace("float v,", "float v, float fmaf,"),
        text("a[u] = w * v + b[u];", before="float fmaf(float x, float y, float z) { return x; }"),
        text("a[u] = w * v + b[u];", before="#define fma(x, y, z) 0"),
    ],
)
def test_a_file_with_an_fma_of_its_own_is_refused(source):
    assert fused(source, everywhere=False)
    with pytest.raises(NameTakenError, match="is another name in this file"):
        fused(source)


def test_nothing_to_fuse_leaves_the_text_as_it_is():
    unit = contracted_unit(parse(Source("test.mf", text("k[u] = k[u] * 3 + u;"))), True)
    assert not unit.schedules[0].contracted


# --- values -----------------------------------------------------------------------------------------------------

VALUES = {"x": 1 + 2.0**-30, "y": 1 - 2.0**-30, "z": -1.0, "t": 3.0**-20}
LEAVES = st.sampled_from([Var(name, ScalarType.DOUBLE) for name in VALUES] + [FloatConst("0.1", ScalarType.DOUBLE)])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(binary, st.sampled_from("+-*"), inner, inner) | st.builds(unary, st.just("-"), inner),
    max_leaves=12,
)


def rounded(exact, plain):
    """The exact value to double; what C gives where that is zero."""
    return float(exact) if exact else plain


def by_the_rule(expr):
    """The value of an expression, its sums of products rounded once: the rule said again, on values."""
    match expr:
        case Var(name=name):
            return VALUES[name]
        case FloatConst(text=digits):
            return float(digits)
        case Unary(operand=operand):
            return -by_the_rule(operand)
        case Binary(op="*", left=left, right=right):
            return by_the_rule(left) * by_the_rule(right)
        case Binary(op=op, left=left, right=right):
            sign = 1 if op == "+" else -1
            sides = [(left, 1, right, sign), (right, sign, left, 1)]
            for product, of_product, other, of_other in sides:
                while isinstance(product, Unary):
                    product, of_product = product.operand, -of_product
                if isinstance(product, Binary) and product.op == "*":
                    x, y, z = by_the_rule(product.left), by_the_rule(product.right), by_the_rule(other)
                    exact = of_product * Fraction(x) * Fraction(y) + of_other * Fraction(z)
                    return rounded(exact, of_product * x * y + of_other * z)
            return by_the_rule(left) + sign * by_the_rule(right)


def value(expr):
    match expr:
        case Call(name="fma", arguments=arguments):
            x, y, z = map(value, arguments)
            return rounded(Fraction(x) * Fraction(y) + Fraction(z), x * y + z)
        case Unary(operand=operand):
            return -value(operand)
        case Binary(op=op, left=left, right=right):
            one, other = value(left), value(right)
            return one * other if op == "*" else one + other if op == "+" else one - other
        case _:
            return by_the_rule(expr)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_values_are_those_of_the_rule(expr):
    after = contraction._Contraction().expression(expr)
    assert value(after) == by_the_rule(expr)
    assert all(contraction._sum_of_a_product(part) is None for part in walk_expression(after))


def test_the_commands_refuse_it_as_a_mistake_of_the_user(tmp_path):
    path = tmp_path / "own.mf"
    path.write_text(text("a[i * B + u] = w * v + fmaf;", before=ON).replace("float v,", "float v, float fmaf,"))
    for words in (["optimize", "-o", str(tmp_path / "out")], ["apply", "cse1"]):
        told = CliRunner().invoke(cli, [*words, str(path)])
        assert told.exit_code == 2
        assert "is to call fmaf, which is another name in this file" in told.output
