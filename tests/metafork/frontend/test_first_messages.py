"""First messages: what people write who come from C, CUDA, OpenMP, C++ and Python, and that the help can be followed.

A case has a source with the place marked, the code, a part of the message, and replacements that make it a program that
is accepted.  What is put in stands in the help.
"""

import pytest

from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from tests.metafork.frontend import first_messages_of_c, first_messages_of_others
from tests.metafork.frontend.first_programs import MARKED, SCALE, one
from tests.metafork.frontend.marked import unmark

CASES = first_messages_of_c.CASES | first_messages_of_others.CASES
OF_THE_PROGRAM = {
    "x[i].re *= 2; x[i].im *= 2;",
    "+= x[v_index];",
    "int n, float *x, int B",
    "last[0] = i",
    "return last[0]",
    "= t[0];",
    "return n",
    "&&",
    "1",
    "i",
    "2 * x[i]",
}
"""What is put in because of the help, and does not stand in it as a whole."""


@pytest.mark.parametrize("case", CASES)
def test_one_message_with_a_help_that_can_be_followed(case):
    marked, code, message, replacements = CASES[case]
    text, ((start, end),) = unmark(marked)
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("case.mf", text))
    (found,) = refused.value.diagnostics
    assert (found.code, text[found.span.start : found.span.end]) == (code, text[start:end]), found.message
    assert (found.span.line, found.span.start) == (text.count("\n", 0, start) + 1, start)
    assert message in found.message
    assert found.reason
    assert found.way_out
    for old, new in (replacements or {}).items():
        assert old in text
        for line in new.splitlines():
            shown = line.strip() in found.way_out or line.strip() in text or line.strip() in OF_THE_PROGRAM
            assert shown, (line, found.way_out)
        text = text.replace(old, new)
    if replacements:
        assert parse(Source("case.mf", text)).schedules


def test_what_is_no_fault_of_theirs_is_taken():
    for text in (
        "x[i] = x[i] **p;",
        "x[i] = x[i] **(p + 1);",
        "int and = 2; x[i] = and;",
        "float auto_ = 1; x[i] = auto_;",
    ):
        text = one(text, "void f(int n, int B, float x[n], const float p[2])\n{\n")
        assert parse(Source("power.mf", text)).schedules
    empty = "#define __device__\n#define __global__\n__device__ float twice(float x) { return 2 * x; }\n__global__ "
    assert parse(Source("device.mf", empty + one("x[i] = twice(x[i]);"))).schedules
    host = "#pragma omp parallel for\n  for (int j = 0; j < n; j++) x[j] = 1;\n"
    assert parse(Source("omp.mf", SCALE + host + MARKED + "}\n")).schedules
    python = "/*\nimport numpy\n*/\n" + SCALE + MARKED + "}\n"
    assert parse(Source("comment.mf", python)).schedules


def test_a_header_that_is_not_found_is_told_with_what_needs_it(tmp_path):
    text = '#include "types.h"\n' + one("x[i] = 1;", "void scale(int n, int B, real x[n])\n{\n")
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source(str(tmp_path / "a.mf"), text))
    (found,) = refused.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("MF0018", 1, 10)
    assert [span.line for span, _ in found.related] == [6]
    assert "-I DIRECTORY" in found.way_out


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("#include <cuda_fp16.h>\n" + one("x[i] = 1;", "void f(int n, int B, half2 *x)\n{\n"), "MF0216"),
        ("#include <cuda_runtime.h>\n" + one("x[threadIdx.x] = 1;"), "MF0301"),
        ('#include "sizes.h"\n' + one("x[i] = 1;", "void f(int n, float *x)\n{\n"), "MF0018"),
    ],
)
def test_headers_that_are_not_found_explain_other_names_than_those_of_other_languages(text, code):
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("/nowhere/a.mf", text))
    assert [found.code for found in refused.value.diagnostics] == [code]
