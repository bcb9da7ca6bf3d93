"""Names that the outputs have: whatever the input calls so is refused, and nothing that only looks like it."""

import pytest

from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

BODY = "{\n  meta_schedule meta_block(8) { meta_for (int i = 0; i < n; i++) x[i] = 1; }\n}\n"
KERNEL = f"void scale(int n, float x[n])\n{BODY}"


def codes(text, name="unit.mf"):
    try:
        parse(Source(name, text))
    except DiagnosticsError as refused:
        return [(one.code, text.split("\n")[one.span.line - 1]) for one in refused.diagnostics]
    return []


@pytest.mark.parametrize(
    "line",
    [
        "void unit_k0_launch(int n, float x[n]);",
        "static int unit_k0_select(void) { return 1; }",
        "int unit_k0_leaf1;",
        "#define unit_k0_leaf_system 3",
        "struct unit_k0_start { int a; };",
        "typedef int unit_k0_nodes;",
        "enum { unit_k0_p1 = 3 };",
        "#define METAFORK_GENERATION_unit 1",
        "int METAFORK_HEADERS;",
        "void metafork_run_unit_k0(void);",
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_names_of_the_outputs_are_refused(line, first):
    assert codes(f"{line}\n{KERNEL}" if first else f"{KERNEL}{line}\n") == [("MF0313", line)]


def test_a_parameter_and_a_function_with_a_schedule_are_refused_too():
    renamed = (
        KERNEL.replace("int n", "int unit_k0_leaf1").replace("[n]", "[unit_k0_leaf1]").replace("< n", "< unit_k0_leaf1")
    )
    assert {code for code, _ in codes(renamed)} == {"MF0313"}
    ((code, line),) = codes(KERNEL + KERNEL.replace("scale", "unit_k1_launch"))
    assert (code, "unit_k1_launch" in line) == ("MF0313", True)


@pytest.mark.parametrize(
    "line",
    [
        "int unit_k1_launch;",
        "int other_k0_launch;",
        "int my_unit_k0_launch;",
        "int unit_k0;",
        "/* unit_k0_launch METAFORK_GENERATION_unit */",
        'const char *said = "unit_k0_launch";',
        "#ifdef METAFORK_CPU\nint cpu;\n#endif",
    ],
)
def test_other_names_are_the_users(line):
    assert codes(f"{line}\n{KERNEL}") == []
