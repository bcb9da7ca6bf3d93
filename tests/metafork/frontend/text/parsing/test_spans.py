"""Spans cut out exactly the text of the node."""

import pytest

from metafork.frontend.text.parsing.c_grammar import Grammar, GrammarError
from metafork.frontend.text.syntax import direct_expressions, walk
from metafork.frontend.text.tokens import LineMap, hull, tokenize
from metafork.ir import program as ir
from metafork.ir.messages.source import Span
from tests.metafork.frontend.marked import position, program_of, thread


def cuts(text):
    statement = Grammar().simple_statement(tokenize(text), frozenset({"size_t"}))
    return [
        text[node.span.start : node.span.end]
        for expression in direct_expressions(statement)
        for node in walk(expression)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = (a + b) * -(c);", ["x = (a + b) * -(c)", "x", "(a + b) * -(c)", "a + b", "a", "b", "-(c)", "c"]),
        ("a + b + c;", ["a + b + c", "a + b", "a", "b", "c"]),
        ("a + b * c - d;", ["a + b * c - d", "a + b * c", "a", "b * c", "b", "c", "d"]),
        ("((a));", ["a"]),
        ("m[ i ][(j)] = 1;", ["m[ i ][(j)] = 1", "m[ i ][(j)]", "m[ i ]", "m", "i", "j", "1"]),
        ("f(x, (y))[1];", ["f(x, (y))[1]", "f(x, (y))", "f", "x", "y", "1"]),
        ("f();", ["f()", "f"]),
        ("p->q.r++;", ["p->q.r++", "p->q.r", "p->q", "p"]),
        ("!~*&x;", ["!~*&x", "~*&x", "*&x", "&x", "x"]),
        ("++ x;", ["++ x", "x"]),
        ("(float)(x + 1);", ["(float)(x + 1)", "x + 1", "x", "1"]),
        (
            "sizeof (x)[1] + sizeof(size_t *);",
            ["sizeof (x)[1] + sizeof(size_t *)", "sizeof (x)[1]", "(x)[1]", "x", "1", "sizeof(size_t *)"],
        ),
        ("a ? b : c ? d : (e);", ["a ? b : c ? d : (e)", "a", "b", "c ? d : (e)", "c", "d", "e"]),
        ("a = b = c;", ["a = b = c", "a", "b = c", "b", "c"]),
        ("int x = (1), y[2 * n];", ["1", "2 * n", "2", "n"]),
        ('f("a" "b", \'c\');', ['f("a" "b", \'c\')', "f", '"a" "b"', "'c'"]),
        ("a /* b */ + // c\n d;", ["a /* b */ + // c\n d", "a", "d"]),
        ("a + \\\n b;", ["a + \\\n b", "a", "b"]),
        (
            "lo\\\nng_\\ \t\r\nname +\\ \n= 1\\\n2;",
            ["lo\\\nng_\\ \t\r\nname +\\ \n= 1\\\n2", "lo\\\nng_\\ \t\r\nname", "1\\\n2"],
        ),
    ],
)
def test_expressions(text, expected):
    assert cuts(text) == expected


def test_declarators():
    text = "const int a = 1 , *b , c [n] [2*m];"
    statement = Grammar().simple_statement(tokenize(text), frozenset())
    assert [text[one.span.start : one.span.end] for one in statement.declarators] == ["a = 1", "*b", "c [n] [2*m]"]
    assert [text[one.name_span.start : one.name_span.end] for one in statement.declarators] == ["a", "b", "c"]


def test_every_node_of_a_program():
    code = "int k = i * (n + 1);\nfor (int l = 0; l < k; l++)\n\tif (l % 2)\n\t  b[i][l % m] += sqrt(alpha) - a[ (k) ];"
    text = thread(code)
    (phase,) = program_of(text).body
    for statement in ir.walk_statements(phase.body):
        spans = [statement.span]
        for expression in ir.expressions_of(statement):
            spans += [part.span for part in ir.walk_expression(expression)]
        for span in spans:
            assert (span.line, span.column) == position(text, span.start)
            assert (span.end_line, span.end_column) == position(text, span.end)

    def cut(node):
        return text[node.span.start : node.span.end]

    declare, loop = phase.body
    assert cut(declare) == "k = i * (n + 1)"
    assert cut(declare.value) == "i * (n + 1)"
    assert cut(declare.value.right) == "n + 1"
    assert cut(loop) == code[code.index("for") :]
    assert cut(loop.step) == "l++"
    assert cut(loop.body[0]) == code[code.index("if") :]
    (assign,) = loop.body[0].then
    assert cut(assign) == "b[i][l % m] += sqrt(alpha) - a[ (k) ];"
    assert cut(assign.target) == "b[i][l % m]"
    assert cut(assign.value.right) == "a[ (k) ]"
    assert cut(phase).startswith("meta_for (int j")
    assert cut(phase.threads[0]) == "meta_for (int j = 0; j < m; j++)"


def test_line_map():
    lines = LineMap("ab\n\ncd")
    assert lines.span(1, 5) == Span(1, 2, 3, 2, 1, 5)
    assert lines.span(6, 6) == Span(3, 3, 3, 3, 6, 6)
    assert hull(lines.span(4, 5), lines.span(0, 1)) == lines.span(0, 5)


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = ;", ";"), ("a b c;", "b"), ("a = 1 2;", "2"), ("a +\n;", ""), ("f(;", ";")],
)
def test_grammar_errors(text, place):
    with pytest.raises(GrammarError) as raised:
        Grammar().simple_statement(tokenize(text), frozenset())
    assert text[raised.value.span.start : raised.value.span.end] == place
