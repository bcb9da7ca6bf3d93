import pytest

from metafork.algebra.polynomial import ONE, ZERO, Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.facts import program_facts
from metafork.analysis.memory.windows import NotCacheableError, array_windows
from metafork.analysis.reference_walk import references
from metafork.analysis.values.scope import Scope
from metafork.ir.program import MetaFor
from tests.metafork.programs import JACOBI, TRANSPOSE, program

N, B, M, i, j, k, s, m, dim = (Polynomial.symbol(name) for name in ("N", "B", "M", "i", "j", "k", "s", "m", "dim"))


def windows(text, array):
    schedule = program(text)
    facts = program_facts(schedule)
    own = [ref for ref in references(schedule, facts) if ref.array == array]
    prover = Prover(facts.constraints, facts.derived)
    return array_windows(schedule, Scope.of(facts), prover, schedule.array(array), own)


def nest(body, arrays="float a[4 * N + 4 * m], float b[4 * N]", before="int dim = N / B;"):
    return f"""
void f(int N, int M, int B, int m, {arrays}) {{
  {before}
  meta_schedule {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
  }}
}}"""


def test_one_reference_is_an_interval():
    (window,) = windows(nest("b[i] = a[i * B + j + 5];"), "a")
    assert (window.lows, window.extents, window.strides) == ((i * B + 5,), (B,), (1,))
    assert window.level == ()
    assert window.reads
    assert not window.writes


def test_shifted_references_share_a_window():
    (window,) = windows(nest("b[i] = a[i * B + j - 2] + a[i * B + j + 3] + a[i * B + j];"), "a")
    assert (window.lows, window.extents) == ((i * B - 2,), (B + 5,))
    assert len(window.references) == 3


def test_a_constant_stride_is_compressed():
    (window,) = windows(nest("b[i] = a[4 * (i * B + j) + 1];"), "a")
    assert (window.lows, window.extents, window.strides) == ((4 * i * B + 1,), (B,), (4,))


def test_the_common_stride_of_shifted_references():
    (window,) = windows(nest("b[i] = a[4 * (i * B + j)] + a[4 * (i * B + j) + 2];"), "a")
    assert (window.lows, window.extents, window.strides) == ((4 * i * B,), (2 * (B - 1) + 2,), (2,))
    (window,) = windows(nest("b[i] = a[4 * (i * B + j)] + a[4 * (i * B + j) + 3];"), "a")
    assert (window.extents, window.strides) == ((4 * (B - 1) + 4,), (1,))


def test_gaps_are_covered_by_the_interval():
    (window,) = windows(nest("for (int k = 0; k < m; k++) b[i] += a[j * M + k + i];"), "a")
    assert (window.lows, window.extents) == ((i,), ((B - 1) * M + m,))


def test_negative_steps_end_at_the_low():
    (window,) = windows(nest("b[i] = a[N - (i * B + j) - 1];"), "a")
    assert (window.lows, window.extents) == ((N - i * B - B,), (B,))


def test_tiles_join_without_gaps():
    (window,) = windows(nest("for (int k = 0; k < m; k++) b[i] += a[(i * m + k) * B + j];"), "a")
    assert (window.lows, window.extents) == ((i * m * B,), (m * B,))


def test_jacobi_has_a_window_for_each_row_and_path():
    both = windows(JACOBI, "a")
    assert sorted(str(window.elements) for window in both) == ["B*s + 2", "B*s + 2"]


def test_a_linear_index_is_split_where_its_column_is_proved():
    (window,) = windows(TRANSPOSE, "c")
    assert window.factors == (N,)
    assert [str(extent) for extent in window.extents] == ["B0", "B1*s"]


def test_a_linear_index_that_may_leave_its_row_is_not_split():
    (window,) = windows(nest("b[i] = a[i * M + j];", "float a[N * M + B], float b[N * M]"), "a")
    assert window.factors == ()
    assert window.extents == (B,)


def test_three_coordinates():
    text = """
void f(int P, int Q, int S, int B0, int B1, int B2, const float a[P * Q * S], float b[P]) {
  int d0 = P / B0, d1 = Q / B1, d2 = S / B2;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int k = 0; k < d2; k++)
          meta_for (int x = 0; x < B0; x++)
            meta_for (int y = 0; y < B1; y++)
              meta_for (int z = 0; z < B2; z++)
                b[i * B0 + x] += a[((i * B0 + x) * Q + j * B1 + y) * S + k * B2 + z];
  }
}"""
    (window,) = windows(text, "a")
    assert [str(factor) for factor in window.factors] == ["Q", "S"]
    assert [str(extent) for extent in window.extents] == ["B0", "B1", "B2"]


def test_a_block_level_loop_that_occurs_fixes_the_level():
    text = """
void f(int N, int B, const float a[N], float b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < N / B; k++)
        for (int l = 0; l < 3; l++)
          meta_for (int j = 0; j < B; j++)
            b[i * B + j] += a[k * B + j];
  }
}"""
    assert windows(text, "a")[0].level == ("k",)
    assert windows(text.replace("a[k * B + j]", "a[l * B + j]"), "a")[0].level == ("k", "l")
    assert windows(text.replace("a[k * B + j]", "a[j]"), "a")[0].level == ()


def test_far_apart_windows_stay_apart_unless_one_is_written():
    assert len(windows(nest("b[i] = a[i * B + j] + a[i * B + j + m];"), "a")) == 2
    (window,) = windows(nest("a[i * B + j] = a[i * B + j + m];"), "a")
    assert window.extents == (B + m,)
    assert window.writes


def test_written_windows_that_are_proved_apart_stay_apart():
    both = windows(JACOBI.replace("if (t % 2)", "if (B > 0)"), "a")
    assert len(both) == 2


def test_written_windows_whose_elements_have_other_remainders_stay_apart():
    read, written = windows(nest("a[2 * (i * B + j)] = a[2 * (i * B + m) + 1];"), "a")
    assert (written.writes, written.strides) == (True, (2,))
    assert (read.writes, read.extents) == (False, (1,))


def test_windows_that_may_overlap_without_a_common_box_are_refused():
    with pytest.raises(NotCacheableError, match="overlap"):
        windows(nest("a[i * B + j] = a[m * i + j];"), "a")


def test_unknown_and_crooked_indices_are_refused():
    with pytest.raises(NotCacheableError, match="no known polynomial"):
        windows(nest("b[i] = a[(int)b[j]];"), "a")
    with pytest.raises(NotCacheableError, match="not linear"):
        windows(nest("b[i] = a[j * j];"), "a")
    with pytest.raises(NotCacheableError, match="range"):
        windows(nest("for (int k = 0; k < b[0]; k++) b[i] += a[k];"), "a")


def test_no_reference_no_window():
    assert windows(
        nest("b[i] = a[0];").replace("float b[4 * N]", "float b[4 * N], float c[4]").replace("b[i] =", "c[0] = b[i] +"),
        "b",
    )
    schedule = program(nest("b[i] = a[0];"))
    facts = program_facts(schedule)
    assert array_windows(schedule, Scope.of(facts), Prover(()), schedule.array("a"), ()) == ()


def test_a_window_of_one_element():
    (window,) = windows(nest("b[i] = a[7];"), "a")
    assert (window.lows, window.extents, window.elements) == ((7 * ONE,), (ONE,), ONE)
    assert isinstance(program(nest("b[i] = a[7];")).grid[0], MetaFor)
    assert window.lows[0] - 7 == ZERO


@pytest.mark.parametrize(
    ("head", "index"),
    [
        ("int k = 0; k < m && j + k < B; k++", "i * B + j + k"),
        ("int k = j > 2 ? j - 2 : 0; k < j + 3 && k < B; k++", "i * B + k"),
    ],
)
def test_the_conditions_of_a_loop_may_say_more_than_its_range(head, index):
    (window,) = windows(nest(f"for ({head}) b[i] = a[{index}];"), "a")
    assert (window.lows, window.extents, window.strides) == ((i * B,), (B,), (1,))
