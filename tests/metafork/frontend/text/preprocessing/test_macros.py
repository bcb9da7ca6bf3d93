"""Macros and conditional compilation of the file itself."""

import time
from pathlib import Path

import pytest

from metafork.frontend import parse
from metafork.frontend.text.preprocessing.preprocessor import Preprocessed
from metafork.frontend.text.tokens import tokenize
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.program import binary
from tests.metafork.frontend.marked import assert_refused, diagnostics_of, program_of, thread
from tests.processor_time import within

INNER = "( ( 1 ) < ( 2 ) ? ( 1 ) : ( 2 ) )"


def test_conditionals_nested_thousands_deep_are_read_in_linear_time():
    depth = 20_000
    text = "#if A\nint x;\n#else\n" * depth + "int y;\n" + "#endif\n" * depth
    with within(10):  # a minute where every line looks at every level
        preprocessed = Preprocessed(tokenize(text))
    assert len(preprocessed.tokens) == 3 * (depth + 1)
    assert len(preprocessed.conditionals) == depth


def expanded(text, marker="START"):
    preprocessed = Preprocessed(tokenize(text))
    texts = [token.text for token in preprocessed.tokens]
    return " ".join(token.text for token in preprocessed.expand(preprocessed.tokens[texts.index(marker) + 1 :]))


@pytest.mark.parametrize(
    ("definitions", "use", "expected"),
    [
        ("#define N 1024", "N", "1024"),
        ("#define R 2\n#define BS (2*R+1)", "BS", "( 2 * 2 + 1 )"),
        ("#define BS (2*R+1)\n#define R 2", "BS", "( 2 * 2 + 1 )"),
        ("#define IDX(i,j) ((i)*n+(j))", "IDX(a + 1, f(x, y))", "( ( a + 1 ) * n + ( f ( x , y ) ) )"),
        (
            "#define MIN(a,b) ((a)<(b)?(a):(b))",
            "MIN(MIN(1,2),3)",
            "( ( " + INNER + " ) < ( 3 ) ? ( " + INNER + " ) : ( 3 ) )",
        ),
        ("#define F(x) x", "F + F (1)", "F + 1"),
        ("#define F() 7", "F()", "7"),
        ("#define A A + 1", "A", "A + 1"),
        ("#define A A + 1\n#define ID(x) x", "ID(A)", "A + 1"),
        ("#define A B\n#define B A", "A B", "A B"),
        ("#define F(x) G(x)\n#define G(x) F(x)", "F(1)", "F ( 1 )"),
        ("#define G (1)\n#define F(x) x", "F G", "F ( 1 )"),
        ("#define LONG 1 + \\\n   2", "LONG", "1 + 2"),
        ("#define C 3 // three\n#define D /* four */ 4", "C D", "3 4"),
        ("#define NOTHING", "NOTHING x", "x"),
        ("#define N 1\n#undef N", "N", "N"),
        ("#define N 1\n#define N 2", "N", "2"),
        ("#  define  N  1", "N", "1"),
        ("#define cache 3\n#define meta_for for", "cache meta_for", "cache meta_for"),
        ("#if 0\n#define N 1\n#else\n#define N 2\n#endif", "N", "2"),
        ("#if 1\n#define N 1\n#elif X\n#define N 2\n#endif", "N", "1"),
        ("#ifdef __cplusplus\n#define N 1\n#endif", "N", "N"),
        ("#ifndef __cplusplus\n#define N 1\n#endif", "N", "1"),
    ],
)
def test_expansion(definitions, use, expected):
    assert expanded(f"{definitions}\nSTART {use}\n") == expected


def test_definitions_hold_from_where_they_stand():
    assert expanded("START N\n#define N 1\nN\n#undef N\nN\n") == "N 1 N"


def test_spans_point_at_the_use():
    text = "#define ADD(x, y) ((x) + (y))\nSTART  ADD(p, q) z\n"
    preprocessed = Preprocessed(tokenize(text))
    tokens = preprocessed.expand(preprocessed.tokens[1:])
    spans = [(token.text, text[token.span.start : token.span.end]) for token in tokens]
    use = "ADD(p, q)"
    assert spans[0] == ("(", use)
    assert ("p", "p") in spans
    assert ("+", use) in spans
    assert spans[-1] == ("z", "z")


def test_macros_in_a_schedule_and_in_derived_scalars():
    text = (
        "#define N 64\n#define BS (2*R+1)\n#define R 1\n#define IDX(i, j) ((i) * N + (j))\n"
        "#define REAL float\n#define STORE(to, from) to = (from)\n"
        "void f(int B, REAL a[N * N])\n{\n  int d = N / B;\n"
        "  meta_schedule { meta_for (int i = 0; i < d; i++)\n"
        "    meta_for (int j = 0; j < BS; j++) STORE(a[IDX(i, j)], j); }\n}\n"
    )
    program = program_of(text)
    assert program.derived == (ir.Derived("d", ScalarType.INT, binary("/", ir.IntConst(64), ir.Var("B"))),)
    assert program.arrays[0].extents == (binary("*", ir.IntConst(64), ir.IntConst(64)),)
    (store,) = program.body[0].body
    (index,) = store.target.indices
    assert index == binary("+", binary("*", ir.Var("i"), ir.IntConst(64)), ir.Var("j"))
    assert text[index.span.start : index.span.end] == "IDX(i, j)"
    assert text[index.right.span.start : index.right.span.end] == "j"
    extent = program.body[0].threads[0].extent
    assert text[extent.span.start : extent.span.end] == "BS"


def test_a_fault_in_an_argument_is_reported_at_the_argument():
    assert_refused("#define IDX(i, j) ((i) * 4 + (j))\n" + thread("a[IDX(i, «beta»)] = 1;"), "MF0301")


def test_a_fault_in_a_body_is_reported_at_the_use():
    assert_refused("#define GET(x) (*(x))\n" + thread("a[i] = «GET(alpha)»;"), "MF0203")


def test_a_parameter_whose_type_is_not_certain():
    text = "#ifdef _D\n#define real double\n#else\n#define real float\n#endif\n" + thread("«c»[i] = 1;")
    (found,) = assert_refused(text.replace("int idx[n]", "int idx[n], real c[n]"), "MF0008")
    assert "`real` is defined under a condition" in found.message


def test_a_conditional_elsewhere_in_the_function_is_fine():
    text = thread("a[i] = 1;", '\n#ifdef DEBUG\n  printf("%d", n);\n#endif\n')
    assert diagnostics_of(text) == ()


def test_code_that_is_switched_off_is_not_there():
    text = "#if 0\nmeta_schedule { it's }}\n#endif\n" + thread("a[i] = 1;\n#if 0\n goto x;\n#endif\n")
    assert diagnostics_of(text) == ()


def test_branches_that_share_a_bracket():
    other = "\n#ifdef A\nint h(int x) {\n#else\nint h(void) {\n#endif\n  return 1;\n}\n"
    assert diagnostics_of(other + thread("a[i] = 1;")) == ()
    inside = "\n#ifdef _A\n  if (n > 3) {\n#else\n  if (n > 4) {\n#endif\n  }\n"
    assert_refused(thread("a[i] = 1;", inside).replace("#ifdef _A", "«#ifdef _A»"), "MF0006")


def test_macros_that_never_end():
    text = "".join(f"#define A{n + 1} A{n} A{n} A{n} A{n}\n" for n in range(20)) + "#define A0 1 +\n"
    found = diagnostics_of(text + thread("a[i] = A20 1;"))
    assert [one.code for one in found] == ["MF0008"]


def test_pragmas_are_passed_over():
    assert diagnostics_of(thread("\n#pragma unroll\n  for (int k = 0; k < 4; k++) a[k] = 1;")) == ()
    assert diagnostics_of(thread('_Pragma("unroll") for (int k = 0; k < 4; k++) a[k] = 1;')) == ()


def test_an_extent_that_is_not_certain():
    text = "#ifndef _N\n#define _N 1024\n#endif\n" + thread("a[i] = 1;").replace("float a[n]", "float a[«_N»]")
    assert_refused(text, "MF0008")


def test_declarations_for_the_header_need_no_macros():
    text = "#define N 8\n#define REAL float\ntypedef unsigned long word;\n"
    text += thread("a[i] = 1;").replace("float a[n]", "REAL a[N]").replace("float b[n]", "const word b[2*n]")
    (function,) = parse(Source("test.mf", text.replace("void f", "word f"))).functions
    assert function.parameters[3].declaration == "float a[8]"
    assert function.parameters[4].declaration == "const unsigned long b[2 * n][m]"
    assert function.parameters[5].declaration == "int idx[n]"
    assert function.returns == "unsigned long"


def test_enumeration_constants():
    text = (
        "enum { ZERO, ONE, SIX = 2 * 3, SEVEN, };\nenum color { RED = 'r', GREEN = SIX } c;\n"
        "#ifdef A\nenum { MAYBE = 1 };\n#endif\n"
    )
    program = program_of(text + thread("a[ZERO] = ONE; a[SIX] = SEVEN; a[RED] = GREEN;"))
    first, second, third = program.body[0].body
    assert first.target.indices == (ir.IntConst(0),)
    assert first.value == binary("+", ir.IntConst(0), ir.IntConst(1))
    six = binary("*", ir.IntConst(2), ir.IntConst(3))
    assert second.target.indices == (six,)
    assert second.value == binary("+", six, ir.IntConst(1))
    assert third.target.indices == (ir.IntConst(114),)
    assert third.value == six
    assert_refused(text + thread("a[i] = «MAYBE»;"), "MF0008")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("#if K > 2 && M == 1 << 1", "yes"),
        ("#if K > 2 && NOBODY_KNOWS", "x"),
        ("#if K > 9 && NOBODY_KNOWS", "no"),
        ("#if K == 3 || NOBODY_KNOWS", "yes"),
        ("#if defined K && !defined(GONE)", "yes"),
        ("#if defined(GONE) || GONE", "no"),
        ("#if -7 / 2 == -3 && -7 % 2 == -1", "yes"),
        ("#if (K ? 1 : NOBODY_KNOWS)", "yes"),
        ("#if 1 / 0", "x"),
        ("#if 1 << 70", "x"),
        ("#if UNSURE", "x"),
        ("#ifdef UNSURE", "x"),
        ("#ifdef LOST", "x"),
        ("#ifdef K", "yes"),
        ("#ifndef GONE", "yes"),
        ("#if SUM * 2 == 5", "x"),
        ("#if F(1)", "x"),
        ("#if 0x10 == 16 && 010 == 8 && 3L == K", "yes"),
        ("#if " + "(" * 5000 + "1" + ")" * 5000, "x"),
        ("#if K >", "x"),
        ("#if 'a' == 97", "x"),
    ],
)
def test_conditions(condition, expected):
    text = (
        "#define K 3\n#define M (K - 1)\n#define SUM 1 + 2\n#define F(v) v\n#define GONE\n#undef GONE\n"
        "#define LOST 1\n#ifdef A\n#define UNSURE 1\n#undef LOST\n#endif\n"
        + condition
        + "\n#define x yes\n#else\n#define x no\n#endif\nSTART x\n"
    )
    assert expanded(text) == expected


def test_own_headers(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.h").write_text('#ifndef A_H\n#define A_H\n#include "sub/b.h"\n#define A (B + 1)\n#endif\n')
    late = "#define C2 4\nextern int early[C2];\n#undef C2\n#define C2 8\nextern int late[C2];\n"
    (tmp_path / "late.h").write_text(late)
    (tmp_path / "sub" / "b.h").write_text('#include "../a.h"\n#include "c.h"\n#define B 2\ntypedef float real;\n')
    (tmp_path / "sub" / "c.h").write_text("#pragma once\nenum { C = 5 };\nextern int table[C];\n")
    text = '#include "a.h"\n#include "a.h"\n#include "late.h"\n' + thread(
        "real v = A + C; a[i] = v * table[i % C] + early[0] + late[0];"
    )
    unit = parse(Source(str(tmp_path / "in.mf"), text))
    (declare, store) = unit.schedules[0].program.body[0].body
    assert declare.type is ScalarType.FLOAT
    assert store.op == ""
    extents = {one.name: one.extents for one in unit.schedules[0].program.arrays}
    assert extents.keys() == {"table", "early", "late", "a"}
    assert (extents["table"], extents["early"], extents["late"]) == tuple((ir.IntConst(size),) for size in (5, 4, 8))
    assert sorted(Path(name).name for name in unit.headers) == ["a.h", "b.h", "c.h", "late.h"]


@pytest.mark.parametrize("text", ['#include "x.h"\n', '#include "x.h"\n#include "x.h"\n', "{ ( [\n", "/* open", "\x00"])
def test_headers_that_lead_nowhere(tmp_path, text):
    (tmp_path / "x.h").write_text(text)
    begin = time.process_time()
    unit = parse(Source(str(tmp_path / "in.mf"), '#include "x.h"\n#include "/dev/zero"\n' + thread("a[i] = 1;")))
    assert len(unit.schedules) == 1
    assert time.process_time() - begin < 5
