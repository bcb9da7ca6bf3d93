import pytest

from metafork.analysis.memory.thread_arrays import MOST_COPIES, MOST_REGISTERS, thread_arrays
from metafork.ir.program import For, walk_statements
from metafork.printing.expressions import expression
from tests.metafork.programs import program


def arrays_of(body, declared="float t[4];"):
    """Return the thread's arrays, and the counters of the loops that are to be unrolled for them."""
    subject = program(f"""
    void f(int n, int B, const float a[8 * n], float b[n]) {{
      int d = n / B;
      meta_schedule cache() {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int u = 0; u < B; u++) {{
            int p = i * B + u;
            {declared}
            {body}
          }}
      }}
    }}""")
    found = thread_arrays(subject)
    loops = [stmt for stmt in walk_statements(subject.body) if isinstance(stmt, For)]
    return found.arrays, {loop.init.name for loop in loops if id(loop) in found.unrolled}


FILL = "for (int k = 0; k < 4; k++) t[k] = a[p];"


@pytest.mark.parametrize(
    ("body", "unrolled"),
    [
        ("t[0] = a[p]; t[3] = t[0]; b[p] = t[3];", set()),
        (f"{FILL} b[p] = t[3];", {"k"}),
        (f"{FILL} for (int m = 0; m < n; m++) b[p] = t[3];", {"k"}),
        ("for (int k = 3; k >= 0; k--) { int q = k; t[q] = a[p]; } b[p] = t[0];", {"k"}),
        # The inner loop's end is a number once the outer one is unrolled.
        ("for (int k = 0; k < 4; k++) for (int m = 0; m < k; m++) t[m] = a[p]; b[p] = t[0];", {"k", "m"}),
        ("for (int k = 0; k < 2; k++) for (int m = 0; m < 2; m++) t[2 * k + m] = a[p]; b[p] = t[1];", {"k", "m"}),
        # An access beside, in a condition and in a step.
        (f"{FILL} if (a[p] > t[1]) b[p] = a[8 * p] + t[2];", {"k"}),
        (f"{FILL} float x = 0; for (int m = 0; x < t[2]; m++) x += a[p];", {"k"}),
    ],
)
def test_an_array_whose_indices_become_numbers_has_registers(body, unrolled):
    arrays, loops = arrays_of(body)
    assert arrays["t"].in_registers
    assert loops == unrolled


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("t[n] = 1; b[p] = t[0];", "n"),
        (f"{FILL} b[p] = a[8 * p] + t[p - u];", "p - u"),
        (f"{FILL} b[a[p] > 0 ? p : 0] = t[(int)a[p]];", "(int)a[p]"),
        ("for (int k = 0; k < n; k++) t[k] = 1; b[p] = t[0];", "k"),
        ("for (int k = n; k < 4; k++) t[k] = 1; b[p] = t[0];", "k"),
        ("for (int k = 0; k < 4; k++) { t[k] = 1; if (a[p] > 0) k = k + 1; } b[p] = t[0];", "k"),
        ("int q = 1; t[q] = 1; q = q + n; b[p] = t[0];", "q"),
        (f"{FILL} float x = 0; for (int m = 0; x < t[m]; m++) x += a[p];", "m"),
        (f"{FILL} int m = 0; for (; m < n; m += (int)t[u]) b[p] = t[1];", "u"),
        ("for (int k = 0; k < 4; k++) for (int m = k; m < n; m++) t[m] = a[p]; b[p] = t[0];", "m"),
    ],
)
def test_an_index_that_stays_unknown_keeps_an_array_in_memory(body, fault):
    arrays, loops = arrays_of(body)
    assert not arrays["t"].in_registers
    assert "index" in arrays["t"].reason
    assert expression(arrays["t"].fault.indices[0]) == fault
    assert loops == set()


@pytest.mark.parametrize(("element", "each"), [("char", 1), ("short", 1), ("float", 1), ("int", 1), ("double", 2)])
def test_an_array_has_registers_while_they_suffice(element, each):
    most = MOST_REGISTERS // each
    arrays, _ = arrays_of("t[0] = 1; b[p] = t[0];", f"{element} t[{most}];")
    assert arrays["t"].in_registers
    arrays, _ = arrays_of("t[0][2] = 1; b[p] = t[0][1];", f"{element} t[{most // 2}][3];")
    assert f" {most // 2 * 3 * each} registers" in arrays["t"].reason


def test_each_array_is_judged_by_its_own_accesses():
    arrays, loops = arrays_of(f"float w[4]; w[n] = 1; {FILL} b[p] = w[n] + t[1];")
    assert (arrays["t"].in_registers, arrays["w"].in_registers) == (True, False)
    assert loops == {"k"}


def test_loops_are_not_unrolled_without_end():
    body = "for (int k = 0; k < {0}; k++) for (int m = 0; m < 16; m++) t[m % 4] = a[p]; b[p] = t[0];"
    assert arrays_of(body.format(MOST_COPIES // 16))[0]["t"].in_registers
    assert arrays_of(body.format(MOST_COPIES // 16))[1] == {"m"}
    assert not arrays_of(body.format(MOST_COPIES // 16 + 1))[0]["t"].in_registers
