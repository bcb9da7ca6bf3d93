import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.memory.window_store import Store, written_boxes
from tests.metafork.programs import JACOBI, TRANSPOSE, program


def held(body, array="b", arrays="const float a[N], float b[4 * N]", between=""):
    text = f"""
void f(int N, int B, int m, float x, {arrays}) {{
  int dim = N / B;
  meta_schedule cache(a, b) {{
    meta_for (int i = 0; i < dim; i++) {between}
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
  }}
}}"""
    schedule = program(text)
    memory = block_memory(schedule)
    facts = memory.facts
    windows = [one for plan in memory.paths for one in plan.windows if one.window.array.name == array]
    return windows, Prover(facts.constraints, facts.derived)


def store_of(body, **rest):
    """Return how b's first window is stored; a window that would not be kept counts as written through."""
    windows, _ = held(body, **rest)
    return windows[0].store if windows else Store.THROUGH


def test_windows_that_are_only_read_are_not_stored():
    windows, _ = held("b[i * B + j] = a[j];", array="a")
    assert [one.store for one in windows] == [Store.NONE]


@pytest.mark.parametrize(
    "body",
    [
        "b[i * B + j] = a[j];",
        "b[2 * (i * B + j) + 1] = a[j];",
        "for (int k = 0; k < m; k++) b[(i * m + k) * B + j] = a[j];",
        "for (int k = 0; k < 4; k++) b[(i * B + j) * 4 + k] = a[j];",
        "if (i * B + j < m) b[i * B + j] = a[j];",
        "if (i * B + j < m && j > 2) b[i * B + j] = a[j];",
        "for (int k = 0; k < 3; k++) b[i * B + j] = a[k];",
        "b[i * B + j] += a[j];",
    ],
)
def test_what_is_known_exactly_is_copied_back(body):
    assert store_of(body) is Store.COPY


@pytest.mark.parametrize(
    "body",
    [
        "if (a[j] > 0) b[i * B + j] = a[j];",  # a guard that reads memory
        "if (x > 0 && a[0] > x) b[i * B + j] = a[j];",  # a guard in floating point
        "if (j != 2) b[i * B + j] = a[j];",  # no conjunction of inequalities
        "while (b[i * B + j] < a[0]) b[i * B + j] += 1;",  # perhaps not at all
        "for (int k = 0; k < 4; k++) { b[(i * B + j) * 4 + k] += a[j]; if (a[k] > 3) break; }",
        "for (int k = 0; k < 4; k++) { if (a[k] > 3) continue; b[(i * B + j) * 4 + k] += a[j]; }",
        "for (int k = 0; k < m; k++) if (k > 2) b[i * B + j] += a[j];",  # the guard depends on what the index hides
        "for (int k = 0; k <= j; k++) b[i * B + j] += a[j];",  # a trip count that differs between threads
        "for (int k = 0; k < 3; k++) b[i * B + j + k] += a[j];",  # elements with several writers
        "b[2 * (i * B + j)] += b[2 * (i * B + j) + 1] + a[0];",  # written with gaps that are read
    ],
)
def test_what_is_not_known_exactly_is_written_through(body):
    assert store_of(body) is Store.THROUGH


def test_a_block_level_loop_that_may_not_run_is_written_through():
    through = store_of("b[i * B + j] += a[j];", between="for (int r = 0; r < m; r++)")
    assert through is Store.THROUGH
    assert store_of("b[i * B + j] += a[j];", between="for (int r = 0; r < 3; r++)") is Store.COPY


def test_boxes_hold_the_digits_and_the_guards():
    windows, prover = held("for (int k = 0; k < m; k++) if (k < j) b[(i * m + k) * B + j] = a[j];")
    (box,) = written_boxes(windows[0].window, prover)
    b, m, i = (Polynomial.symbol(name) for name in ("B", "m", "i"))
    assert box.lows == (i * m * b,)
    assert box.extents == (m * b,)
    assert [(digit.symbol, digit.weight, digit.trips) for digit in box.digits[0]] == [("j", 1, b), ("k", b, m)]
    assert len(box.guards) == 1


def test_windows_that_are_only_written_through_take_no_memory():
    windows, _ = held("if (a[j] > 0) b[i * B + j] = a[j];")
    assert windows == []


def test_the_papers_programs_copy():
    for text in (JACOBI, TRANSPOSE):
        stores = {one.store for plan in block_memory(program(text)).paths for one in plan.windows}
        assert stores == {Store.NONE, Store.COPY}
