"""Copies of statements become unrolled loops in the text, others stay; what kernels compute stays as it was."""

import pytest
from msgspec.structs import replace

from metafork.ir.invariants import check_kernel
from metafork.ir.program import INT, WHOLE, Assign, Declare, Element, For, IntConst, Var, walk_statements
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.printing.loads_first import loads_first
from metafork.printing.rerolled import rerolled
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

TEXT = """
void {name}(int n, int B, int K, const int x[8 * n + 9], int y[8 * n]) {{
  int blocks = n / B;
  meta_schedule cache() {{
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {{
        int p = 8 * (i * B + u);
        {body}
      }}
  }}
}}"""
LOOPS = {
    "stores": (1, "y[p + 1] = x[p + 1]; y[p + 2] = x[p + 2]; y[p + 3] = x[p + 3];"),
    "from_the_base": (1, "y[p] = 2 * x[p]; y[p + 1] = 2 * x[p + 1]; y[p + 2] = 2 * x[p + 2];"),
    "downwards": (1, "y[p + 5] = x[p]; y[p + 3] = x[p + 1]; y[p + 1] = x[p + 2];"),
    "of_constants": (1, "y[p] = 3 * x[p]; y[p + 1] = 5 * x[p]; y[p + 2] = 7 * x[p];"),
    "by_themselves": (2, "int a = x[p]; y[p] = a * a; int b = x[p + 1]; y[p + 1] = b * b;"
                         " int c = x[p + 2]; y[p + 2] = c * c;"),
    "used_later": (2, "int a = x[p], b = x[p + 1], c = x[p + 2]; y[p + 7] = x[p + 5]; y[p] = a + 1; y[p + 1] = b + 1;"
                      " y[p + 2] = c + 1;"),
    "windows": (2, "int a = x[p], b = x[p + 1], c = x[p + 2], d = x[p + 3], e = x[p + 4];"
                   " y[p] = a - b + c; y[p + 1] = b - c + d; y[p + 2] = c - d + e;"),
    "sums": (3, "int a = 0, b = 0, c = 0; for (int k = 0; k < K; k++)"
                " { a += k * x[p]; b += k * x[p + 1]; c += k * x[p + 2]; } y[p] = a; y[p + 1] = b; y[p + 2] = c;"),
    "conditions": (1, "if (K > 1) y[p] = x[p]; if (K > 2) y[p + 1] = x[p + 1]; if (K > 3) y[p + 2] = x[p + 2];"),
    "of_loops": (0, "for (int k = 0; k < K; k++) y[p] += x[p + k % 8]; for (int k = 0; k < K; k++) y[p + 1] += 2 * k;"
                    " for (int k = 0; k < K; k++) y[p + 2] += 2 * k; for (int k = 0; k < K; k++) y[p + 3] += 2 * k;"),
    "of_two": (1, "y[p] = x[p]; y[p + 4] = 1; y[p + 1] = x[p + 1]; y[p + 5] = 2; y[p + 2] = x[p + 2]; y[p + 6] = 3;"),
    "of_rows": (2, " ".join(f"y[p + {3 * r + q}] = x[p + {r}] * x[p + {4 + q}];" for r in range(2) for q in range(3))),
    "nested": (2, " ".join(f"y[p + {2 * r + q}] = x[p + {r}] + x[p + {3 * q}];" for q in range(3) for r in range(3))),
    "two_only": (0, "y[p] = x[p]; y[p + 1] = x[p + 1];"),
    "uneven": (0, "y[p] = x[p]; y[p + 1] = x[p + 1]; y[p + 3] = x[p + 3];"),
    "carried": (0, "int a = x[p]; int b = a + x[p + 1]; int c = b + x[p + 2]; int d = c + x[p + 3]; y[p] = d;"),
    "sliding": (0, "int a = K * 3, b = K + u, c = K - 1, d = K % 5; y[p] = a + b; y[p + 1] = b + c; y[p + 2] = c + d;"),
    "one_for_two": (0, "int a = K + u, b = K * 3; y[p] = a - b; y[p + 1] = b - b; y[p + 2] = a - a;"),
    "at_other_places": (0, "y[p] = x[p] * x[p + 4]; y[p + 1] = x[p + 1] * x[p + 4]; y[p + 2] = x[p + 1] * x[p + 5];"),
    "other_operations": (0, "y[p] = x[p] + 1; y[p + 1] = x[p + 1] - 1; y[p + 2] = x[p + 2] * 1;"),
    "left_early": (0, "for (int k = 0; k < K; k++) { if (x[p + k] == 7) break; if (x[p + k] == 8) break;"
                      " if (x[p + k] == 9) break; y[p] += 1; }"),
    "read_after_stores": (1, "y[p + 1] = y[p]; y[p + 2] = y[p + 1]; y[p + 3] = y[p + 2]; int a = y[p + 3];"
                             " y[p + 5] = a;"),
}  # fmt: skip
ALONE = (
    "if (u > 0) { int a = x[p]; y[p] = a * a; } if (u > 1) { int b = x[p + 1]; y[p + 1] = b * b; }"
    " if (u > 2) { int c = x[p + 2]; y[p + 2] = c * c; }"
)


def loops(name, body):
    kernel = rerolled(lower(program(TEXT.format(name=name, body=body)), "k"))
    check_kernel(kernel)
    return [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For) and stmt.copies == WHOLE]


@pytest.mark.parametrize("name", LOOPS)
def test_copies_become_loops(name):
    count, body = LOOPS[name]
    assert len(loops(name, body)) == count


def test_what_a_copy_alone_knows_stays_a_scalar():
    text = kernel_text(lower(program(TEXT.format(name="f", body=ALONE)), "k"))
    assert "int a = x[p + copy];" in text
    assert "b * b" not in text


def test_a_scalar_does_not_move_before_what_reads_another_of_its_name():
    load = Declare("t", INT, Element("x", (IntConst(0),), INT))
    reads = Assign(Element("y", (IntConst(0),), INT), "", Var("t", INT))
    assert loads_first((reads, load)) == (reads, load)
    assert loads_first((reads, replace(load, name="s"))) == (replace(load, name="s"), reads)


def test_kernels_compute_what_the_program_means(tmp_path):
    points = grid(n=[4], B=[2], K=[0, 1, 2, 3, 5])
    bodies = {name: body for name, (_, body) in LOOPS.items()} | {"alone": ALONE}
    cases = [Case(TEXT.format(name=name, body=body), points) for name, body in bodies.items()]
    assert run(cases, tmp_path) == {}
