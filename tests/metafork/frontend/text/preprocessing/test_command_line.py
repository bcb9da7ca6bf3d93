"""What a compiler's command line gives: macros by ``-D``, folders by ``-I``, and that it gives nothing else."""

import pytest

from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression

LOOP = "  meta_schedule meta_block({block}) {{ meta_for (int i = 0; i < n; i++) x[i] = {value}; }}\n"


def function(block="B", value="1", element="float"):
    return f"void f(int n, int B, {element} x[n])\n{{\n{LOOP.format(block=block, value=value)}}}\n"


def read(text, definitions=(), folders=(), name="test.mf"):
    """What a text comes to: the block's extent, the elements' type, what is stored, what was assumed of which names."""
    unit = parse(Source(name, text, tuple(definitions), tuple(map(str, folders))))
    program = unit.schedules[0].program
    (phase,) = program.body
    stored = phase.body[0].value if phase.body else None
    said = [(one.name, text[one.offset :].partition("\n")[0], one.value) for one in unit.assumptions]
    return expression(phase.threads[0].extent), program.arrays[0].element.spelling, stored and expression(stored), said


WIDTH = "#ifndef WIDTH\n#define WIDTH 64\n#endif\n"
REAL = "#ifdef USE_DOUBLE\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
SIZES = "#if !defined(SMALL) && !defined(LARGE)\n#define LARGE\n#endif\n"
SIZES += "#ifdef SMALL\n#define N 32\n#else\n#define N 512\n#endif\n"
OF_WIDTH = [("WIDTH", "#ifndef WIDTH", "64")]


@pytest.mark.parametrize(
    ("text", "definitions", "block", "element", "assumed"),
    [
        (WIDTH + function("WIDTH"), (), "64", "float", OF_WIDTH),
        (WIDTH + function("WIDTH"), ("WIDTH=32",), "32", "float", []),
        (WIDTH + function("WIDTH"), ("WIDTH",), "1", "float", []),
        (function("WIDTH"), ("WIDTH=(4*8)",), "4 * 8", "float", []),
        (function("TWICE(8)"), ("TWICE(v)=2*(v)",), "2 * 8", "float", []),
        ("#if !defined (WIDTH)\n#define WIDTH (64)\n#endif\n" + function("WIDTH"), (), "64", "float", None),
        (REAL + function(element="real"), (), "B", "float", [("USE_DOUBLE", "#ifdef USE_DOUBLE", "")]),
        (REAL + function(element="real"), ("USE_DOUBLE",), "B", "double", []),
        ("#ifndef REAL\n#define REAL double\n#endif\n" + function(element="REAL"), (), "B", "double", None),
        (SIZES + function("N"), (), "512", "float", None),
        (SIZES + function("N"), ("SMALL",), "32", "float", []),
        # What no schedule needs is left to who compiles the file.
        (WIDTH + "int host(void) { return WIDTH; }\n" + function(), (), "B", "float", []),
        ("#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#endif\n" + function(value="M_PI"), (), "B", "float", []),
    ],
)
def test_macros_of_the_command_line(text, definitions, block, element, assumed):
    found = read(text, definitions)
    assert found[:2] == (block, element)
    assert assumed is None or found[3] == assumed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # Which of two schedules is compiled is nobody's to assume; what headers of the system define neither.
        ("#ifdef FAST\n" + function() + "#endif\n", "MF0006"),
        ("#ifndef M_PI\n#define M_PI 3.14\n#endif\n" + function(value="M_PI"), "MF0008"),
        ("#ifndef _OPENMP\n#define WIDTH 3\n#endif\n" + function("WIDTH"), "MF0008"),
    ],
)
def test_what_is_not_assumed(text, code):
    with pytest.raises(DiagnosticsError) as refused:
        read(text)
    assert [one.code for one in refused.value.diagnostics] == [code]


def test_folders_of_headers_are_looked_at_in_their_order(tmp_path):
    for folder, rows in (("first", 1), ("second", 2), ("beside", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sizes.h").write_text(f"#define ROWS {rows}\ntypedef double real;\n")
    (tmp_path / "first" / "outer.h").write_text('#include "sizes.h"\n')
    quoted, angled, outer = (
        f"#include {name}\n{function('ROWS', element='real')}" for name in ('"sizes.h"', "<sizes.h>", "<outer.h>")
    )
    folders, home = [tmp_path / "first", tmp_path / "second"], str(tmp_path / "beside" / "test.mf")
    assert [read(text, (), folders, home)[0] for text in (quoted, angled, outer)] == ["3", "1", "1"]
    assert read(quoted, (), folders[::-1], str(tmp_path / "test.mf"))[0] == "2"


@pytest.mark.parametrize(
    ("include", "value", "codes"),
    [
        ('#include "elsewhere.h"', "twice(x[i]) + ROWS", ["MF0018"]),
        ("#include <my/elsewhere.h>", "ROWS", ["MF0018"]),
        ('#include "elsewhere.h"\n#include "more.h"', "ROWS", ["MF0018", "MF0018"]),
        ("#include <stdio.h>", "ROWS", ["MF0301"]),
        # What does not follow from it is told, and nothing is said of a header that nobody misses.
        ('#include "elsewhere.h"', "ROWS + (x[i] = 1)", ["MF0018", "MF0213"]),
        ('#include "elsewhere.h"', "1 + (x[i] = 1)", ["MF0213"]),
        ('#include "elsewhere.h"', "1", []),
    ],
)
def test_a_header_that_is_not_found_is_said_first(include, value, codes):
    text = f"{include}\n{function(value=value)}"
    try:
        read(text)
        found = ()
    except DiagnosticsError as refused:
        found = refused.diagnostics
    assert [one.code for one in found] == codes
    assert all("-I DIRECTORY" in one.way_out for one in found if one.code == "MF0018")
