from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.bank_degree import COUNTER, bank_accesses
from metafork.evaluators.banks.simulation import SAMPLED, access_degree
from metafork.evaluators.counter import NotKnown
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.mapping import Layout
from metafork.ir.program import Assign, Call, Element, Version, walk_expression, walk_statements
from metafork.ir.rewriting import map_expression
from metafork.lowering.lowering import lower
from metafork.swizzle.output.banks import bank_degree
from tests.metafork.programs import JACOBI, MATADD, MATMUL, program

EXAMPLES = Path(__file__).parents[3] / "examples"
TRANSPOSE = (EXAMPLES / "transpose.mf").read_text()


def degree(subject):
    value = COUNTER.evaluate(Version(subject), Analyses())
    assert not isinstance(value, NotKnown), value
    assert value.denominator == Polynomial.constant(1)
    return int(value.numerator.constant_value())


def one_dimensional(index, element="float", size="N * 64", extra="", cached="a"):
    return f"""
void f(int N, int B, const {element} a[{size}], {element} b[N]) {{
  int dim = N / B;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        int p = i * B + j;
        {extra}b[p] = a[{index}];
      }}
  }}
}}"""


def tile(write, read, element="int", threads="B0", columns="B1"):
    return f"""
void f(int N, int B0, int B1, {element} b[N * B0 * B1]) {{
  meta_schedule {{
    meta_for (int i = 0; i < N; i++)
    meta_for (int h = 0; h < 1; h++) {{
      {element} t[{threads}][{columns}];
      meta_for (int v = 0; v < B0; v++)
        meta_for (int u = 0; u < B1; u++)
          t{write} = u;
      meta_for (int v = 0; v < B0; v++)
        meta_for (int u = 0; u < B1; u++)
          b[i * B0 * B1 + v * B1 + u] = t{read};
    }}
  }}
}}"""


def test_the_counter_says_what_it_is():
    assert (COUNTER.name, COUNTER.kind, COUNTER.symbol) == ("bank_degree", "performance", "D")
    assert COUNTER.less_is_better
    assert COUNTER.default_target == Fraction(1)  # no conflict is accepted


@pytest.mark.parametrize(
    ("text", "schedule", "said"), [(MATADD, 0, ""), (JACOBI, 0, ""), (MATMUL, 0, SAMPLED), (TRANSPOSE, 1, SAMPLED)]
)
def test_a_degree_that_is_proved_of_all_shapes_is_not_called_sampled(text, schedule, said):
    assert COUNTER.evaluate(Version(program(text, schedule)), Analyses()).sampled == said


def test_nothing_in_shared_memory():
    assert degree(program(MATADD)) == 0
    assert degree(program(TRANSPOSE, 1).mapped(cached=())) == 0


def test_consecutive_words_have_no_conflict_whatever_the_shape():
    subject = program(JACOBI)
    assert degree(subject) == 1
    listed, accesses = bank_accesses(subject, Analyses())
    unlisted = replace(listed, facts=None, derived=())  # no point can be made of it: the value is proved
    assert {access_degree(access, access.layout, unlisted) for access in accesses} == {1}


def test_threads_that_read_one_word_are_served_together():
    accesses = [
        a for a in bank_accesses(program(tile("[v][u]", "[0][0]")), Analyses())[1] if not a.row and not a.column
    ]
    listed, _ = bank_accesses(program(tile("[v][u]", "[0][0]")), Analyses())
    assert [access_degree(access, Layout(), listed) for access in accesses] == [1]


@pytest.mark.parametrize(("stride", "expected"), [(2, 2), (3, 1), (4, 4), (8, 8), (12, 4), (32, 32)])
def test_a_constant_stride_within_a_window(stride, expected):
    index = f"{stride} * p + 1"
    assert degree(program(one_dimensional(index, extra=f"b[p] = a[{stride} * p];\n        "))) == expected


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_the_threads_of_several_rows_meet_in_a_bank_where_they_copy(rows):
    """All threads read one element at a time; the warp copies parts of so many rows, which start in one bank."""
    text = f"""
void f(int N, const float a[64 * N][64], float b[64 * N][64]) {{
  meta_schedule cache(a) {{
    meta_for (int i = 0; i < N; i++) meta_for (int h = 0; h < 1; h++)
      meta_for (int v = 0; v < {rows}; v++)
        meta_for (int u = 0; u < {32 // rows}; u++)
          for (int w = 0; w < {rows}; w++)
            for (int k = 0; k < 32; k++)
              b[i * {rows} + v][u] += a[i * {rows} + w][k];
  }}
}}"""
    assert degree(program(text)) == rows


def test_a_window_that_keeps_every_third_element_only_has_no_stride():
    assert degree(program(one_dimensional("3 * p"))) == 1


def test_elements_of_two_words_and_of_a_byte():
    assert degree(program(one_dimensional("p", "double"))) == 1
    assert degree(program(one_dimensional("p", "char"))) == 1
    two = "b[p] = a[2 * p];\n        "
    assert degree(program(one_dimensional("2 * p + 1", "double", extra=two))) == 2
    assert degree(program(one_dimensional("2 * p + 1", "char", extra=two))) == 1


def test_columns_of_a_square_tile():
    square = tile("[v][u]", "[u][v]", columns="B0").replace("u < B1", "u < B0")
    assert degree(program(square)) == 32
    assert degree(program(square.replace("t[B0][B0]", "t[B0][B0 + 1]"))) == 2  # blocks of 8 and of 16 columns
    assert degree(program(square.replace("t[B0][B0]", "t[32][33]").replace("B0", "32"))) == 1


def test_the_transposition():
    assert degree(program(TRANSPOSE, 1)) == 32
    assert degree(program(TRANSPOSE, 1).mapped(layouts=(("c", Layout("reversed")),))) == 4  # that of a
    both = (("a", Layout("reversed")), ("c", Layout("reversed")))
    assert degree(program(TRANSPOSE, 1).mapped(layouts=both)) == 1


def test_rows_of_whole_warps_have_no_conflict():
    wide = TRANSPOSE.replace("int dim0", "assert(32 <= B1 && 32 <= B0); int dim0")
    assert degree(program(wide)) == 1
    assert degree(program(wide, 1)) == 32


def test_matmul():
    assert degree(program(MATMUL)) == 4


def test_a_block_that_strides_is_counted_by_the_threads_of_a_warp():
    assert degree(replace(program(TRANSPOSE, 1), striding=32)) == 32
    wide = program(TRANSPOSE.replace("int dim0", "assert(32 <= B1 && 32 <= B0); int dim0"))
    assert degree(replace(wide, striding=32)) == 1


def test_threads_that_a_guard_keeps_out_ask_for_nothing():
    column = tile("[v][u]", "[u][0]", threads="B1")
    assert degree(program(column)) == 32
    guarded = column.replace("b[i * B0", "if (u < 4) b[i * B0")
    # 4 rows of 64 columns in one warp: one bank; blocks of 8 columns: words of rows 0 to 3, alike for all rows.
    assert degree(program(guarded)) == 4


def test_an_index_that_is_no_polynomial_is_not_known():
    value = COUNTER.evaluate(Version(program(tile("[v][u]", "[v * u / 3][0]"))), Analyses())
    assert isinstance(value, NotKnown)
    assert "t" in value.reason


def test_shapes_that_the_program_excludes_leave_nothing_to_list():
    few = tile("[v][u]", "[u][v]", columns="B0").replace("meta_schedule", "assert(B0 == 5);\n  meta_schedule", 1)
    value = COUNTER.evaluate(Version(program(few)), Analyses())
    assert isinstance(value, NotKnown)
    assert "no listed block shape" in value.reason


def _plain(index):
    """Return an index whose offsets are plain values, as in a launch with small arrays."""
    return map_expression(index, lambda part: part.arguments[0] if isinstance(part, Call) else None)


@pytest.mark.parametrize("layout", [Layout(), Layout("row"), Layout("reversed"), Layout(padding=1)])
@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (8, 64), (64, 8), (16, 16), (4, 8), (24, 32)])
def test_the_kernel_goes_where_the_simulation_says(layout, rows, columns):
    """Addresses of the kernel's own expressions, against the simulator of the swizzle package."""
    text = tile("[v][u]", "[u][v]", threads="B1", columns="B0")
    # As constants: the shapes that are listed for parameters are powers of two.
    text = text.replace("int B0, int B1, ", "").replace("B0", str(rows)).replace("B1", str(columns))
    subject = program(text)
    subject = subject.mapped(layouts=(("t", layout),))
    kernel = lower(subject, "k")
    elements = [
        part
        for stmt in walk_statements(kernel.body)
        if isinstance(stmt, Assign)
        for expr in (stmt.target, stmt.value)
        for part in walk_expression(expr)
        if isinstance(part, Element) and part.array == "t"
    ]
    assert len(elements) == 2
    worst = 0
    for element in elements:
        words = [
            integer_value(_plain(element.indices[0]), dict.fromkeys(("v", "v_1"), v) | dict.fromkeys(("u", "u_1"), u))
            for v, u in product(range(rows), range(columns))
        ]
        worst = max(worst, *(bank_degree(words[first : first + 32]) for first in range(0, len(words), 32)))
    assert degree(subject) == worst
