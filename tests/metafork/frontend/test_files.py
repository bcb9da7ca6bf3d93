"""Odd files: every one gives a result or diagnostics, never a traceback."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.frontend import parse, read_source
from metafork.ir.messages.diagnostics import DiagnosticsError, render_json, render_sarif, render_text
from metafork.ir.messages.source import Source
from tests.metafork.frontend.marked import assert_refused, diagnostics_of, loops, thread
from tests.processor_time import within

GOOD = thread("a[i] = b[i][j];")


def test_line_ends_are_kept(tmp_path):
    path = tmp_path / "crlf.mf"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    unit = parse(read_source(path))
    assert unit.source.text.count("\r\n") == GOOD.count("\n")
    span = unit.schedules[0].span
    assert (span.line, span.column) == (3, 3)
    assert unit.source.text[span.start : span.end].endswith("}\r\n  }")


def test_columns_with_carriage_returns_and_tabs():
    text = thread("\tif (i)\r\n\t\ta[i] = «beta»;\r")
    (found,) = assert_refused(text, "MF0301")
    assert (found.span.line, found.span.column) == (7, 10)


def test_byte_order_mark(tmp_path):
    path = tmp_path / "bom.mf"
    path.write_bytes(b"\xef\xbb\xbf" + b"#include <math.h>\n" + GOOD.encode())
    unit = parse(read_source(path))
    assert unit.source.text.startswith("#include")
    assert parse(Source("bom.mf", "\ufeff#include <math.h>\n" + GOOD)).schedules[0].span.line == 4


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "latin.mf"
    path.write_bytes("// naïve\nint x; /* ü */".encode("latin-1"))
    with pytest.raises(DiagnosticsError) as raised:
        read_source(path)
    (found,) = raised.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("MF0001", 1, 6)
    assert "0xef" in found.message


def test_unicode_in_comments_and_strings():
    text = "// ünïcödé ☃\n" + thread("a[i] = 1; /* ☃ */", '  puts("☃ \\" meta_schedule {");\n')
    assert diagnostics_of(text) == ()
    assert_refused("/* ☃☃ */ " + thread("a[i] = «βeta»;").replace("βeta", "beta"), "MF0301")
    (found,) = diagnostics_of(thread("a[i] = β;"))
    assert found.code == "MF0010"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "MF0002"),
        ("\n\n\n", "MF0002"),
        ("\x00", "MF0002"),
        ("meta_schedule", "MF0014"),
        ("meta_schedule {", "MF0004"),
        ("meta_schedule }", "MF0004"),
        ("meta_schedule { meta_for", "MF0004"),
        ("meta_schedule { meta_for }", "MF0010"),
        ("meta_schedule { meta_for ( }", "MF0004"),
        ("meta_schedule { meta_for () }", "MF0103"),
        ("meta_schedule { meta_for (;;) ; }", "MF0101"),
        ("meta_schedule cache", "MF0010"),
        ("meta_schedule cache {", "MF0004"),
        ("meta_schedule cache() { }", "MF0014"),
        ("(" * 5000, "MF0004"),
        ("meta_schedule {" * 300 + "}" * 300, "MF0005"),
        ("void f() {" + "{" * 5000 + "meta_schedule {}" + "}" * 5001, "MF0005"),
        ("void f() { int x = " + "(" * 5000 + ")" * 5000 + "; meta_schedule {} }", "MF0014"),
        ("void f() { if (1) " + "if (1) " * 500 + "; meta_schedule {} }", "MF0005"),
        ("void f() { " + "a: " * 500 + "meta_schedule {} }", "MF0005"),
        ("#", "MF0002"),
        ("#define", "MF0002"),
        ("#define F(", "MF0002"),
        ("#define F(x y\nmeta_schedule { F(1) }", "MF0004"),
        ("#define F(x) x\nmeta_schedule { F(1 }", "MF0004"),
        ("#else\n#endif\nint x;", "MF0004"),
        ('"\nmeta_schedule { }', "MF0014"),
        ("'", "MF0002"),
        ("void f(int n { meta_schedule { } }", "MF0004"),
        ("void f(,) { meta_schedule { } }", "MF0014"),
        ("void f(int, int) { meta_schedule { } }", "MF0014"),
        ("f(n) int n; { meta_schedule { } }", "MF0014"),
        ("meta_schedule { a b c }", "MF0010"),
        ("struct s { meta_schedule { } };", "MF0014"),
    ],
)
def test_odd_files(text, code):
    found = diagnostics_of(text)
    assert code in [one.code for one in found], found
    assert code in render_text(found, {"test.mf": text})
    assert code in render_json(found)
    assert code in render_sarif(found)


PIECES = [
    *("meta_schedule", "meta_for", "cache", "for", "if", "else", "while", "do", "int", "float", "return", "case 1:"),
    *("(", ")", "[", "]", "{", "}", ";", ",", "=", "+", "*", "&", "<", "++", "?", ":", ".", "->", "'", '"', "\\", "#"),
    *("i", "j", "n", "a", "0", "1", "1.5f", "'c'", '"s"', "i = 0", "i < n", "i++", "a[i]", "\n", "/*", "*/", "//"),
    *("meta_for (int i = 0; i < n; i++)", "meta_for (int j = 0; j < n; j++)", "a[i] = 1;", "int k = n;", "\n#if A\n"),
    *("\n#define n 3\n", "\n#define M(x) x + M\n", "M(1)", "\n#endif\n", "é", "\x00", "\ud800", "sizeof", "(int)"),
    *("struct s", "\t"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_pieces_in_any_order(pieces, inside, in_threads):
    text = " ".join(pieces)
    if in_threads:
        text = thread(text)
    elif inside:
        text = "void f(int n, int a[n]) { meta_schedule { " + text + " } }"
    found = diagnostics_of(text)
    starts = [one.span.start for one in found]
    assert starts == sorted(starts)
    for one in found:
        assert 0 <= one.span.start <= one.span.end <= len(text)
    assert render_text(found, {"test.mf": text}).count("reason:") == len(found)


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 12), st.sampled_from(["", "{", ")", ";", "*", "1.5", "#if\n"]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_good_file_with_a_hole(start, length, filler):
    text = GOOD[:start] + filler + GOOD[start + length :]
    for one in diagnostics_of(text):
        assert one.span.end <= len(text)


def test_several_faults_in_one_run():
    first = thread("a[i] = «beta»;\n «goto end;»\n")
    second = thread("do { b[i][«alpha»] = 1; } while (i);\n float «*p»; a[j] = «b[i]» + «foo»(1);")
    assert_refused(first + second, "MF0301", "MF0204", "MF0303", "MF0201", "MF0302", "MF0206")


def test_misspelled_words_are_all_reported_with_what_was_meant():
    found = assert_refused(
        "void f(int n, int a[n]) {\n  «meta_shedule» cache(a) { " + loops("ij") + " a[i] = 1; }\n"
        "  meta_schedule { «metafor» (int i = 0; i < n; i++) " + loops("j") + " a[i] = «m»; }\n}\n",
        "MF0011",
        "MF0011",
        "MF0301",
    )
    assert "did you mean `meta_schedule`?" in found[0].message
    assert "did you mean `meta_for`?" in found[1].message


def test_a_large_file_is_quick():
    text = "".join(GOOD.replace("void f", f"void f{number}") for number in range(100))
    with within(5):
        assert len(parse(Source("large.mf", text)).schedules) == 100
