import pytest

from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than
from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import kept_within, references, references_and_quotients
from metafork.analysis.values.loop_ranges import LoopKind
from tests.metafork.programs import JACOBI, MATMUL, program

i, j, k, B, N, s, p, m = (Polynomial.symbol(name) for name in ("i", "j", "k", "B", "N", "s", "p", "m"))


def found(text):
    schedule = program(text)
    return references(schedule, program_facts(schedule))


def nest(body, parameters="int N, int B, int m", extents="a[N], int b[N]", before=""):
    return f"""
void f({parameters}, const int {extents}) {{
  int dim = N / B;
  meta_schedule {{
    meta_for (int i = 0; i < dim; i++) {{
      {before}
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
    }}
  }}
}}"""


def of(body, **rest):
    return found(nest(body, **rest))


def test_jacobi():
    refs = found(JACOBI)
    base = i * s * B + k * B + j
    assert [ref.indices for ref in refs] == [(base + c,) for c in (N, N + 1, N + 2, 1, 0, 1, 2, N + 1)]
    assert [ref.writes for ref in refs] == [False, False, False, True] * 2
    assert [loop.kind for loop in refs[0].loops] == [LoopKind.GRID, LoopKind.THREAD, LoopKind.SERIAL]
    assert [loop.trips for loop in refs[0].loops] == [Polynomial.symbol("dim"), B, s]
    assert refs[0].guards[0].truth
    assert not refs[4].guards[0].truth
    assert [ref.number for ref in refs] == sorted({ref.number for ref in refs})


def test_matmul():
    refs = found(MATMUL)
    assert [ref.array for ref in refs] == ["a", "b", "c"]
    assert refs[2].reads
    assert refs[2].writes
    assert [loop.kind.value for loop in refs[0].loops] == ["grid"] * 2 + ["block"] + ["thread"] * 2 + ["serial"] * 2
    assert refs[0].bounded


def test_loops_start_at_zero_whatever_the_program_says():
    (read, write) = of("for (int k = 3; k <= m; k += 2) b[i * B + j] = a[k];")
    loop = read.loops[-1]
    assert (loop.low, loop.step, loop.dense) == (Polynomial.constant(3), 2, True)
    assert loop.inside == (at_most(2 * k + 3, Polynomial.symbol("m")),)
    assert read.indices == (2 * k + 3,)
    assert write.indices == (i * B + j,)


def test_a_loop_with_a_constant_trip_count():
    (read, _) = of("for (int k = 1; k < 8; k += 3) b[i * B + j] = a[k];")
    loop = read.loops[-1]
    assert (loop.trips, loop.step, loop.dense) == (Polynomial.constant(3), 3, True)
    assert read.indices == (3 * k + 1,)


def test_loops_of_unknown_shape():
    (read, _) = of("int x = 0; for (int k = m; k > 0; k /= 2) x += a[k]; b[i * B + j] = x;")
    assert read.indices == (None,)
    assert not read.bounded
    reads = of("int x = j; while (x < m) { x += a[x] + 1; } b[i * B + j] = x;")
    assert reads[0].indices == (None,)
    assert not reads[0].bounded
    assert reads[1].bounded


def test_assigned_scalars_are_forgotten_where_they_must_be():
    refs = of("int p = i * B + j; int x = a[p]; if (x) p = 0; else p = 0; x += a[p]; if (x) p = 1; b[p] = x;")
    assert [ref.indices[0] for ref in refs] == [i * B + j, Polynomial.constant(0), None]
    refs = of("int p = 0; for (int k = 0; k < m; k++) { b[p] = a[k]; p += 1; }")
    assert [ref.indices[0] for ref in refs] == [k, None]


def test_guards_and_their_negations():
    refs = of("if (i * B + j < m && a[0] > 2) b[j] = 1; else b[j + 1] = 2;")
    first, second = refs[1], refs[2]
    assert at_most(i * B + j + 1, m) == at_most(i * B + j + 1, m)
    assert first.guards[0].constraints == (less_than(i * B + j, m),)
    assert first.guards[0].meaning.conjunction is None
    assert second.guards[0].constraints == ()
    assert second.guards[0].meaning.conjunction is None


def test_an_inequality_leaves_a_choice_that_is_no_conjunction():
    first, second = (ref.guards[0] for ref in of("if (i * B + j != m) b[j] = 1; else b[j + 1] = 2;"))
    assert first.meaning.exact
    assert first.constraints == ()
    assert first.meaning.conjunction is None
    assert not first.meaning.holds({"i": 1, "B": 2, "j": 1, "m": 3})
    assert first.meaning.holds({"i": 1, "B": 2, "j": 1, "m": 2})
    assert first.meaning.holds({"i": 1, "B": 2, "j": 1, "m": 4})
    assert second.constraints == (equal(i * B + j, m),)
    assert second.meaning.conjunction is not None


def test_the_quotients_of_conditions_come_with_their_definitions():
    schedule = program(nest("if (j == B / 3) b[i] = 1;"))
    facts = program_facts(schedule)
    (access,), (quotient,) = references_and_quotients(schedule, facts)
    assert quotient.operands == (B, Polynomial.constant(3))
    assert quotient not in facts.derived
    assert quotient.name in access.guards[0].constraints[0].symbols


def test_operands_that_are_not_always_evaluated_stand_under_a_guard():
    refs = of("b[j] = j < m ? a[0] : a[1]; if (j > 2 && a[2]) b[0] = 1; if (j > 2 || a[3]) b[0] = 1;")
    by_index = {str(ref.indices[0]): ref for ref in refs if ref.array == "a"}
    assert by_index["0"].guards[0].constraints == (less_than(j, m),)
    assert by_index["1"].guards[0].constraints == (at_most(m, j),)
    assert by_index["2"].guards[0].constraints == (less_than(Polynomial.constant(2), j),)
    assert by_index["3"].guards[0].constraints == (at_most(j, 2),)


def test_accesses_that_an_exit_may_skip_are_not_bounded():
    refs = of(
        "for (int k = 0; k < m; k++) { b[0] = k; if (a[k] > 3) break; b[1] = k; }"
        "for (int k = 0; k < m; k++) { b[2] = k; if (a[k] > 3) continue; b[3] = k; }"
        "for (int k = 0; k < m; k++) { b[4] = k; for (int l = 0; l < m; l++) if (l > 3) break; }"
        "b[5] = 0;"
    )
    assert {str(ref.indices[0]): ref.bounded for ref in refs if ref.array == "b"} == {
        "0": False,
        "1": False,
        "2": True,
        "3": False,
        "4": True,
        "5": True,
    }


def test_phases_are_numbered_and_block_level_has_none():
    refs = of(
        "b[i * B + j] = 1;",
        before="int x = a[i]; for (int k = 0; k < m; k++) meta_for (int u = 0; u < B; u++) b[i * B + u] = x;",
    )
    assert [ref.phase for ref in refs] == [None, 0, 1]
    assert [loop.kind for loop in refs[1].loops] == [LoopKind.GRID, LoopKind.BLOCK, LoopKind.THREAD]


def test_indices_read_from_memory_are_not_known():
    refs = of("b[a[j]] = a[a[j] + 1];")
    assert [ref.indices[0] for ref in refs] == [j, None, j, None]


def test_a_block_level_exit_leaves_no_counted_loop():
    refs = of(
        "b[i * B + j] = 1;",
        before="for (int k = 0; k < m; k++) { if (a[k]) break; meta_for (int u = 0; u < B; u++) b[i * B + u] = k; }",
    )
    assert [ref.bounded for ref in refs] == [False, False, True]
    assert refs[0].indices == (None,)


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ("int dim = N / B", True),
        ("unsigned dim = N", True),  # extents are not negative
        ("short dim = few", True),
        ("short dim = N", False),
        ("short dim = N / B", False),
    ],
)
def test_definitions_of_the_host_are_known_to_stay_within_their_types(declared, kept):
    text = nest("b[i * B + j] = 1;", "int N, int B, short few", "a[N], int b[N]").replace("int dim = N / B", declared)
    schedule = program(text)
    found = kept_within(schedule, program_facts(schedule))
    (dim,) = schedule.derived
    assert found[id(dim.definition), dim.type] == (dim.definition, kept)
