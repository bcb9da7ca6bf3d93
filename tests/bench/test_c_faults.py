"""Faults in C text: which there are, that nothing else changes, and which of them compile."""

import pytest
from c_faults import accepted, c_faults

from tests.runtime.compiling import INCLUDE


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("x = a < b;", ["comparison x = a <= b;"]),
        ("x = a != b && c;", ["comparison x = a == b && c;", "logical x = a != b || c;"]),
        ("x -= a + b;", ["sum x += a + b;", "sum x -= a - b;"]),
        ("x = 8u;", ["number x = 9u;", "number x = 7u;"]),
        ("x = 0;", ["number x = 1;"]),
        ("if (f(a)) g();", ["condition if (!(f(a))) g();"]),
        ("{\n  f(a, b);\n}", ["call {\n  ;\n}"]),
        ("return f(a);", []),
        ("vector<int> *p = -q; x.y1 = 1.5f;", []),
        ("/* a < 1 */ // b && 2\n#define C 1 + \\\n  2\n\"d > 3\"; '4';", []),
    ],
)
def test_faults(text, faults):
    assert [f"{fault.operator} {fault.put_into(text)}" for fault in c_faults(text)] == faults


def test_a_fault_that_does_not_compile_is_none():
    text = (INCLUDE / "metafork" / "target_ptx.h").read_text()
    assert accepted(INCLUDE, "target_ptx.h", text) == ["ptx"]
    assert accepted(INCLUDE, "target_ptx.h", text.replace("int metafork_", "int 1metafork_", 1)) == []
