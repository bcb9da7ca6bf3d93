"""What is read as plain C is what pycparser reads."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycparser.c_lexer import CLexer

from metafork.frontend.text import plain_c
from metafork.frontend.text.c_grammar import GrammarError, TooDeepError
from metafork.frontend.text.pycparser_grammar import _SKIPPED, _SPELLED, WholeGrammar
from metafork.frontend.text.tokens import Token, TokenKind, tokenize

TYPES = frozenset({"size_t"})
EXAMPLES = Path(__file__).parents[4] / "examples"

OPERANDS = st.sampled_from(["a", "b", "f", "0", "1", "12", "2.5f", ".5", "1.", "007.5", "p"])
BINARY = [
    one.text for one in tokenize("|| && | ^ & == != > >= < <= >> << + - * / % = ^= *= += -= <<= >>= &= |= , [ ( . ->")
]
TYPED = ["int", "float", "unsigned char", "const long long", "int const", "unsigned", "short int", "long"]


def joined(parts):
    left, op, right = parts
    if op in (".", "->"):
        return f"{left} {op} field"
    return f"{left} {op} {right} { ({'[': ']', '(': ')'}.get(op, '')) }"


expressions = st.recursive(
    OPERANDS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(BINARY), inner).map(joined),
        st.tuples(st.sampled_from(["&", "*", "+", "-", "~", "!", "++", "--"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("{}++".format),
        inner.map("f({})".format),
        st.tuples(inner, inner, inner).map(lambda parts: "{} ? {} : {}".format(*parts)),
        st.tuples(st.sampled_from(TYPED), inner).map(lambda parts: "({}) {}".format(*parts)),
    ),
    max_leaves=12,
)
declarators = st.tuples(
    st.sampled_from("xyz"),
    st.lists(st.one_of(st.just("[]"), expressions.map("[{}]".format)), max_size=2).map("".join),
    st.one_of(st.just(""), expressions.map("= {}".format)),
).map("".join)
declarations = st.tuples(st.sampled_from(TYPED), st.lists(declarators, min_size=1, max_size=3)).map(
    lambda parts: f"{parts[0]} {', '.join(parts[1])}"
)
WORDS = st.sampled_from(
    [
        one.text
        for one in tokenize("a b size_t int const float struct sizeof 1 1.5 'c' ( ) [ ] { } , ; ? : . -> ++ * & - = +=")
    ]
)


def whole(method, tokens):
    try:
        return getattr(WholeGrammar(), method)(tokens, TYPES)
    except (GrammarError, TooDeepError):
        return None


def assert_same(method, text):
    """What is read as plain C is read the same by pycparser."""
    tokens = tokenize(text)
    plain = getattr(plain_c, method)(tokens, TYPES)
    assert plain is None or plain == whole(method, tokens)
    return plain


@settings(max_examples=1000)
@given(expressions)
def test_random_expressions(text):
    read = assert_same("expression", text)
    assert (read is None) == (whole("expression", tokenize(text)) is None)
    assert_same("simple_statement", f"{text};")


@settings(max_examples=1000)
@given(declarations)
def test_random_declarations(text):
    assert_same("simple_statement", f"{text};")
    assert_same("parameter", text)


@settings(max_examples=1000)
@given(st.lists(WORDS, max_size=9).map(" ".join), st.sampled_from(["expression", "simple_statement", "parameter"]))
def test_random_words(text, method):
    assert_same(method, text)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("expression", "a[i + 1][j] * (b - -c) <= f(x, 2.5f) && !p->q.r"),
        ("expression", "n = m = a ? b, c : d ? e : 0"),
        ("expression", "((a)) + (unsigned char) (x++ / 9)"),
        ("simple_statement", "a[i] += 0.5 * b[i];"),
        ("simple_statement", "const int i = v * 4 + u, j[2][n];"),
        ("parameter", "const float a[rows][columns]"),
        ("parameter", "unsigned long long a[]"),
    ],
)
def test_plain(method, text):
    assert assert_same(method, text) is not None


@pytest.mark.parametrize(
    "text", ["", ";", "a b", "sizeof a", "(size_t) a", "010", "1e3", "1u", "'c'", '"s"', "a +", "(a"]
)
def test_not_plain(text):
    assert plain_c.expression(tokenize(text), TYPES) is None


@pytest.mark.parametrize(
    "text",
    ["int *p;", "int f(int);", "int a = {1};", "static int a;", "long double x;", "int x[*];", "int x[*n];", "int;"],
)
def test_declarations_that_are_not_plain(text):
    assert plain_c.simple_statement(tokenize(text), TYPES) is None


def test_no_word_of_pycparser_is_a_name():
    for word in {*CLexer(lambda *_: None)._keyword_map, *_SKIPPED, *_SPELLED, "size_t"}:
        assert plain_c.expression(tokenize(word), TYPES) is None
        assert plain_c.expression(tokenize(f"a.{word}"), TYPES) is None


@pytest.mark.parametrize("text", ["(" * 60 + "a" + ")" * 60, " + ".join("a" * 60), " = ".join("a" * 5000)])
def test_what_is_deep_is_left(text):
    assert plain_c.expression(tokenize(text), TYPES) is None


def test_names_that_macros_left():
    name, number = tokenize("x 1")
    left = Token(TokenKind.NAME, "x", name.span, "`x` may be a macro")
    assert plain_c.expression([left], TYPES).uncertain
    assert not plain_c.expression([name], TYPES).uncertain
    word = Token(TokenKind.NAME, "int", name.span, "`int` may be a macro")
    assert plain_c.simple_statement([word, *tokenize("a;")], TYPES) is None
    assert plain_c.expression([*tokenize("("), word, *tokenize(")"), number], TYPES) is None


def test_tokens_out_of_order_are_left():
    a, plus, b = tokenize("a + b")
    assert plain_c.expression([a, plus, b], TYPES) is not None
    assert plain_c.expression([b, plus, a], TYPES) is None
    use = [Token(one.kind, one.text, a.span) for one in (a, plus, b)]
    assert plain_c.expression(use, TYPES) == WholeGrammar().expression(use, TYPES)


def test_pycparser_is_not_loaded_for_plain_programs():
    code = (
        "import sys; from pathlib import Path; from metafork.frontend import parse, read_source\n"
        "for name in sys.argv[1:]:\n"
        "    parse(read_source(Path(name)))\n"
        "assert 'pycparser' not in sys.modules\n"
    )
    plain = [str(EXAMPLES / f"{name}.mf") for name in ("aos", "blur", "heat3d", "jacobi2d", "matmul", "transpose")]
    subprocess.run([sys.executable, "-c", code, *plain], check=True)
