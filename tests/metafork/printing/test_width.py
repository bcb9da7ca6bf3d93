"""Long lines of C are broken where a person would break them, and say the same."""

import re
from pathlib import Path

import pytest

from metafork.printing.width import in_width

CASES = {
    "short lines stay": ("a = b;\n", "a = b;\n"),
    "a head of a loop": (
        "  for (int first = some_value; first < another_value; first += step) {",
        "  for (int first = some_value; first < another_value;\n       first += step) {",
    ),
    "a list": (
        "call(aaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, cccccccccccccccccc);",
        "call(aaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb,\n     cccccccccccccccccc);",
    ),
    "in front of an operator that binds loosely": (
        "  sum = aaaaaaaaaaaa * bbbbbbbbbbbb + cccccccccccc * dddddddddddddd;",
        "  sum = aaaaaaaaaaaa * bbbbbbbbbbbb\n      + cccccccccccc * dddddddddddddd;",
    ),
    "outside of brackets": (
        "if (aaaaaaaaaaaaaaaa && bbbbbbbb(cccccccccccc, dddddddddddddd)) {",
        "if (aaaaaaaaaaaaaaaa\n    && bbbbbbbb(cccccccccccc, dddddddddddddd)) {",
    ),
    "signs and pointers are no operators": (
        "call(aaaaaaaaaaaaaaaaaaaaaaaaaa, -bbbbbbbbbbbb, const float *cccccc);",
        "call(aaaaaaaaaaaaaaaaaaaaaaaaaa, -bbbbbbbbbbbb,\n     const float *cccccc);",
    ),
    "deep brackets": (
        "                          name_of_a_function(aaaaaaaaaaa, bbbbbbbbbbb, cccc);",
        "                          name_of_a_function(aaaaaaaaaaa,\n                              bbbbbbbbbbb, cccc);",
    ),
    "literals stay whole": (
        'f("aaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbb && cccccccccccc", \'"\', dddddddddd);',
        'f("aaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbb && cccccccccccc",\n  \'"\', dddddddddd);',
    ),
    "directives stay": ("#define NAME aaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb + c", None),
    "what goes on a directive stays": (
        "#define NAME(a) \\\n  do_something_with(aaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbb, cccccccccccccccc)",
        None,
    ),
    "no place to break": ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;", None),
    "a comment": (
        "  /* one two three four five six seven eight nine ten eleven twelve */",
        "  /* one two three four five six seven eight nine ten eleven\n   * twelve */",
    ),
    "a line of a comment": (
        "/* a\n *   one two three four five six seven eight nine ten eleven twelve\n */",
        "/* a\n *   one two three four five six seven eight nine ten eleven\n *   twelve\n */",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_line_is_broken_so(name):
    text, expected = CASES[name]
    assert in_width(text, 60) == (text if expected is None else expected)


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_same_is_said(columns):
    """Of the runtime's own headers: nothing but white space, and stars of comments, is another."""
    for header in Path("metafork/runtime/include/metafork").glob("*.h"):
        text = header.read_text()
        broken = in_width(text, columns)
        assert re.sub(r"[\s*]+", "", broken) == re.sub(r"[\s*]+", "", text)
