import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import (
    Array,
    Assign,
    BlockArray,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    FloatConst,
    For,
    If,
    IntConst,
    MetaFor,
    Phase,
    Unary,
    Var,
    binary,
    unary,
)
from metafork.printing.expressions import PLAIN_C, Spelling, expression, integer_constant
from metafork.printing.statements import statements
from tests.metafork.lowering.kernel_reader import read_kernel

A, B, C = Var("a"), Var("b"), Var("c")
X = Var("x", ScalarType.FLOAT)
U = Var("u", ScalarType.UNSIGNED_INT)
CPLUSPLUS = Spelling(cplusplus=True)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (binary("+", binary("*", A, B), C), "a * b + c"),
        (binary("*", binary("+", A, B), C), "(a + b) * c"),
        (binary("-", A, binary("-", B, C)), "a - (b - c)"),
        (binary("-", binary("-", A, B), C), "a - b - c"),
        (binary("+", X, binary("+", X, X)), "x + (x + x)"),
        (binary("-", A, IntConst(-5)), "a - -5"),
        (unary("-", IntConst(-5)), "-(-5)"),
        (unary("-", unary("-", A)), "-(-a)"),
        (unary("-", unary("+", A)), "-+a"),
        (unary("!", binary("<", A, B)), "!(a < b)"),
        (binary("&", A, binary("==", B, C)), "a & (b == c)"),
        (binary("<<", A, binary("+", B, C)), "a << (b + c)"),
        (binary("||", binary("&&", A, B), C), "(a && b) || c"),
        (binary("<", binary("<", A, B), C), "(a < b) < c"),
        (Cast(ScalarType.FLOAT, binary("+", A, B)), "(float)(a + b)"),
        (binary("*", Cast(ScalarType.LONG, A), B), "(long)a * b"),
        (
            Conditional(binary("<", A, B), A, Conditional(A, B, C, ScalarType.INT), ScalarType.INT),
            "a < b ? a : a ? b : c",
        ),
        (Conditional(Conditional(A, B, C, ScalarType.INT), A, B, ScalarType.INT), "(a ? b : c) ? a : b"),
        (Element("m", (binary("+", A, B), C), ScalarType.INT), "m[a + b][c]"),
        (Call("fmaf", (X, FloatConst("0.25f", ScalarType.FLOAT), X), ScalarType.FLOAT), "fmaf(x, 0.25f, x)"),
        (binary("-", A, FloatConst("-1e-3", ScalarType.DOUBLE)), "a - -1e-3"),
    ],
)
def test_expressions_have_the_fewest_parentheses(expr, text):
    assert expression(expr) == text


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (-(2**31), ScalarType.INT, "(-2147483647 - 1)"),
        (-(2**63), ScalarType.LONG, "(-9223372036854775807L - 1L)"),
        (2**32 - 1, ScalarType.UNSIGNED_INT, "4294967295U"),
        (-1, ScalarType.UNSIGNED_INT, "4294967295U"),
        (7, ScalarType.UNSIGNED_LONG_LONG, "7ULL"),
        (7, ScalarType.LONG_LONG, "7LL"),
        (7, ScalarType.CHAR, "7"),
    ],
)
def test_constants_carry_their_type(value, type_, text):
    assert integer_constant(value, type_) == text


def test_a_constant_that_its_type_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="2147483648 is no int"):
        integer_constant(2**31, ScalarType.INT)


def test_cplusplus_spells_out_what_c_converts_silently():
    assert expression(binary("<", A, U), CPLUSPLUS) == "(unsigned int)a < u"
    assert expression(binary("<", A, U)) == "a < u"
    assert expression(Call("sqrt", (X,), ScalarType.DOUBLE), CPLUSPLUS) == "sqrt((double)x)"
    assert expression(Cast(ScalarType.BOOL, A), CPLUSPLUS) == "(bool)a"
    assert expression(unary("!", binary("*", A, B)), CPLUSPLUS) == "!(a * b != 0)"
    assign = Assign(U, "", unary("-", IntConst(1)))
    assert statements((assign,), 0, CPLUSPLUS) == ["u = (unsigned int)-1;"]
    assert statements((assign,), 0) == ["u = -1;"]


def test_names_are_spelled_as_asked():
    spelling = Spelling({"new": "new_"})
    assert statements((Declare("new", ScalarType.INT, Var("new")),), 2, spelling) == ["  int new_ = new_;"]


def test_statements_of_a_program():
    body = (
        BlockArray(Array("t", ScalarType.FLOAT, (B, IntConst(2)))),
        Phase(
            (MetaFor("u", B), MetaFor("v", C)),
            (
                For(
                    Declare("k", ScalarType.INT, IntConst(0)),
                    binary("<", Var("k"), A),
                    Assign(Var("k"), "+", IntConst(1)),
                    (If(A, (Assign(B, "*", C),), (If(B, (Assign(B, "", A),), (Assign(B, "-", IntConst(1)),)),)),),
                ),
            ),
        ),
    )
    assert statements(body, 0) == [
        "float t[b][2];",
        "meta_for (int u = 0; u < b; u++)",
        "  meta_for (int v = 0; v < c; v++) {",
        "    for (int k = 0; k < a; k++) {",
        "      if (a) {",
        "        b *= c;",
        "      } else if (b) {",
        "        b = a;",
        "      } else {",
        "        b -= 1;",
        "      }",
        "    }",
        "  }",
    ]


INTEGERS = [
    ScalarType.CHAR,
    ScalarType.UNSIGNED_CHAR,
    ScalarType.INT,
    ScalarType.UNSIGNED_INT,
    ScalarType.LONG,
    ScalarType.UNSIGNED_LONG,
]
LEAVES = [Var(f"v{i}", type_) for i, type_ in enumerate(INTEGERS)] + [IntConst(v) for v in (-(2**31), -1, 0, 3)]


def _grow(children):
    operators = st.sampled_from(["*", "+", "-", "<", ">=", "==", "&", "^", "|", "&&", "||"])
    return st.one_of(
        st.builds(lambda op, left, right: binary(op, left, right), operators, children, children),
        st.builds(lambda op, operand: unary(op, operand), st.sampled_from(["+", "-", "!", "~"]), children),
        st.builds(Cast, st.sampled_from(INTEGERS), children),
        st.builds(lambda c, t, o: Conditional(c, t, o, common_type(t.type, o.type)), children, children, children),
    )


def _without_signs(expr):
    """Negative constants read back as the negation of positive ones."""
    match expr:
        case IntConst(value=-2147483648):
            return binary("-", unary("-", IntConst(2147483647)), IntConst(1))
        case IntConst(value=value) if value < 0:
            return unary("-", IntConst(-value))
        case Unary(op=op, operand=operand):
            return unary(op, _without_signs(operand))
        case Cast(type=type_, operand=operand):
            return Cast(type_, _without_signs(operand))
        case Conditional(condition=c, then=t, otherwise=o, type=type_):
            return Conditional(_without_signs(c), _without_signs(t), _without_signs(o), type_)
        case _ if hasattr(expr, "left"):
            return binary(expr.op, _without_signs(expr.left), _without_signs(expr.right))
        case _:
            return expr


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.sampled_from(LEAVES), _grow, max_leaves=12))
def test_text_reads_back_as_the_same_tree(expr):
    parameters = ", ".join(f"{type_.spelling} v{i}" for i, type_ in enumerate(INTEGERS))
    kernel = read_kernel(f"void k({parameters}, long *o) {{ o[0] = {expression(expr, PLAIN_C)}; }}")
    assert kernel.body[0].value == _without_signs(expr)


def test_gcc_advises_no_parentheses(tmp_path):
    exprs = [
        binary(outer, binary(inner, A, B), binary(inner, B, C))
        for outer in ("+", "<<", "&", "|", "^", "&&", "||", "<", "==")
        for inner in ("+", "<<", "&", "|", "^", "&&", "||", "<", "==")
        if not (outer == "<<" and inner in ("<", "==", "&&", "||", "+", "<<"))
    ]
    lines = [f"  r += {expression(expr, CPLUSPLUS)};" for expr in exprs]
    source = tmp_path / "advice.cpp"
    source.write_text("int f(int a, int b, int c) {\n  int r = 0;\n" + "\n".join(lines) + "\n  return r;\n}\n")
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wno-bool-compare", "-Werror", "-c", "-o", "/dev/null", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
