"""Windows that a thread reads by wide accesses, and products without a guard that the loops prove."""

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.memory.interleaving import interleaving
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Space
from metafork.ir.marks import with_results
from metafork.ir.program import For, If, IntConst, walk_statements
from metafork.ir.static_values import with_static_values
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import jammed, program

PRODUCT = """
#include <assert.h>
void NAME(int n, int B, int K, int s, const TYPE a[n][n], const TYPE b[n][n], TYPE c[n][n]) {
  assert(K <= n);
  int down = n / B, across = n / (B * s);
  meta_schedule {
    meta_for (int i = 0; i < down; i++)
      meta_for (int j = 0; j < across; j++)
        for (int k = 0; k < n / K; k++)
          meta_for (int v = 0; v < B; v++)
            meta_for (int u = 0; u < B; u++)
              for (int z = 0; z < K; z++)
                for (int w = 0; w < s; w++)
                  c[i * B + v][COLUMN] += a[i * B + v][K * k + z] * b[K * k + z][COLUMN];
  }
}
"""
STRIDED = (
    PRODUCT.replace("int n,", "int n, int lda,")
    .replace("[n][n]", "[n * lda]")
    .replace("assert(K", "assert(n <= lda);\n  assert(K")
    .replace("c[i * B + v][COLUMN]", "c[(i * B + v) * lda + COLUMN]")
    .replace("a[i * B + v][K * k + z]", "a[(i * B + v) * lda + K * k + z]")
    .replace("b[K * k + z][COLUMN]", "b[(K * k + z) * lda + COLUMN]")
)
_INNER, _OUTER = "for (int w = 0; w < s; w++)", "for (int z = 0; z < K; z++)"
TURNED = PRODUCT.replace(_INNER, "LOOP").replace(_OUTER, _INNER).replace("LOOP", _OUTER)
LITERAL = PRODUCT.replace(" int s,", "").replace("w < s", "w < 4").replace("B * s", "B * 4")
APART = "j * s * B + w * B + u"
LITERAL_APART = APART.replace("s", "4")


def text_of(text, name="f", column=APART, type_="float"):
    return text.replace("NAME", name).replace("COLUMN", column).replace("TYPE", type_)


def tiled(text, **values):
    given = program(text)
    cached = with_static_values(given, values).mapped(cached=("a", "b"), decided=True)
    return jammed(cached).mapped(wide=True)


def kept(text, shape=None, rows=1, **values):
    """Return (trips, together) of each window that is interleaved, by array."""
    given, analyses = with_results(tiled(text, **values), {0: rows}), Analyses()
    memory = block_memory(given, analyses)
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    extents = [Polynomial.symbol("B") if "B" not in values else Polynomial.constant(values["B"])] * 2
    found = {}
    for held in memory.paths[0].windows:
        one = interleaving(held.window, given, shape or extents, prover)
        if one is not None:
            found[held.window.array.name] = (one.trips, one.together)
    return found


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """What went wrong at any of these values, with blocks that reach over the border and without."""
    cases = []
    for number, (s, b, type_) in enumerate([(4, 4, "float"), (8, 4, "float"), (6, 2, "int"), (2, 3, "double")]):
        for start, base in ((PRODUCT, "f"), (STRIDED, "g"), (TURNED, "t")):
            name = f"{base}{number}"
            text = text_of(start, name, type_=type_)
            values = {"B": b, "s": s, "K": 4}
            more = {"lda": 2 * s * b + 5} if start is STRIDED else {}
            points = [{"n": n, **more, **values} for n in (s * b, 2 * s * b + 3)]
            cases.append(Case(text, points, program=tiled(text, **values)))
    text = text_of(LITERAL, "h", LITERAL_APART)
    points = [{"n": n, "B": b, "K": k} for n, b, k in ((16, 4, 4), (25, 3, 5), (9, 2, 1), (40, 5, 16))]
    cases.append(Case(text, points, program=tiled(text)))
    return run(cases, tmp_path_factory.mktemp("interleaved"))


@pytest.mark.slow
def test_every_element_is_found_where_it_was_put(faults):
    assert faults == {}


@pytest.mark.parametrize(("s", "together"), [(2, 2), (4, 4), (6, 2), (8, 4), (12, 4)])
def test_as_many_lie_together_as_one_access_takes(s, together):
    assert kept(text_of(PRODUCT), B=16, K=8, s=s) == {"b": (s, together)}
    assert kept(text_of(PRODUCT, type_="double"), B=16, K=8, s=s) == {"b": (s, 2)}
    assert kept(text_of(STRIDED), B=16, K=8, s=s) == {"b": (s, together)}


def test_columns_of_an_outer_loop_that_is_unrolled_lie_together():
    assert kept(text_of(TURNED), B=16, K=8, s=4) == {"b": (4, 4)}
    kernel = lower(tiled(text_of(TURNED), B=16, K=8, s=4), "k")
    assert not [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, For) and stmt.init.name == "w"]


def test_rows_of_a_thread_say_how_often_a_block_reads():
    literal = text_of(LITERAL, column=LITERAL_APART)
    assert kept(literal) == {}
    assert kept(literal, rows=4) == {"b": (4, 4)}
    assert kept(literal, rows=2) == {}


def test_windows_of_wide_accesses_begin_where_these_are_aligned():
    """Behind a window of any size, of ``B * K`` words, no access of 16 bytes would be."""
    given = with_results(tiled(text_of(LITERAL, column=LITERAL_APART)), {0: 4})
    offsets = {one.name: one.offset for one in lower(given, "k").memories if one.space is Space.SHARED}
    assert offsets["shared_b"] == IntConst(0, ScalarType.LONG_LONG)
    assert offsets["shared_a"] != offsets["shared_b"]


def test_a_literal_tile_has_them_whatever_the_block_is():
    assert kept(text_of(LITERAL, column=LITERAL_APART)) == {}  # each element is read B times, which may be once
    four = LITERAL.replace("for (int w", "for (int y = 0; y < 4; y++) for (int w").replace(
        "i * B + v", "(i * 4 + y) * B + v"
    )
    assert kept(text_of(four.replace("n / B,", "n / (B * 4),"), column=LITERAL_APART)) == {"b": (4, 4)}


def test_rows_stay_in_order_where_that_is_not_proved_to_be_right_or_to_pay():
    values = {"B": 16, "K": 8, "s": 4}
    assert kept(text_of(PRODUCT), B=16, K=8, s=3) == {}
    assert kept(text_of(PRODUCT, column="j * s * B + u * s + w"), **values) == {}
    assert kept(text_of(PRODUCT), shape=[Polynomial.constant(32), Polynomial.constant(16)], **values) == {}
    assert kept(text_of(PRODUCT).replace("w = 0", "w = 1"), **values) == {}
    assert kept(text_of(PRODUCT), B=32, K=8, s=32) == {}
    assert kept(text_of(TURNED), B=16, K=8, s=8) == {}  # more than are unrolled into the loop over z
    assert kept(text_of(PRODUCT), B=2, K=8, s=4) == {}  # each element is read twice only
    plain = with_static_values(program(text_of(PRODUCT)), values).mapped(cached=("a", "b"), decided=True)
    (window,) = [held.window for held in block_memory(plain).paths[0].windows if held.window.array.name == "b"]
    assert interleaving(window, plain, [Polynomial.constant(16)] * 2, Analyses().prover((), ())) is None


@pytest.mark.parametrize("text", [PRODUCT, STRIDED])
def test_no_load_is_guarded_whose_place_the_loops_prove(text):
    kernel = lower(tiled(text_of(text), B=16, K=16, s=4), "k")
    assert not [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, If)]


def test_loads_that_may_leave_the_array_stay_guarded():
    beyond = (
        text_of(PRODUCT).replace("down = n / B", "down = (n + B - 1) / B").replace("for (int k", "if (1) for (int k")
    )
    kernel = lower(tiled(beyond, B=16, K=16, s=4), "k")
    assert [stmt for stmt in walk_statements(kernel.body) if isinstance(stmt, If)]
