import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.ir.invariants import check_program
from metafork.ir.program import For, If, Phase, Version, walk_statements
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.cse import STRATEGIES
from metafork.strategies.granularity import STRATEGY, Granularity
from metafork.strategies.strategy import Applied, NotApplied
from tests.metafork.interpreter import memories, program, results, run
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE


def applied(text):
    before = program(text)
    result = STRATEGY.apply(Version(before), Analyses())
    assert isinstance(result, Applied), result
    return before, result.version.program


def refused(text):
    result = STRATEGY.apply(Version(program(text)), Analyses())
    assert isinstance(result, NotApplied), metafork_text(result.version.program)
    return result.reason


def lines(program):
    return [line.strip() for line in metafork_text(program).splitlines()]


def same_meaning(before, after, points):
    for seed, point in enumerate(points):
        assert results(before, point, seed) == results(after, point, seed), point


def loop_nest(body, extents="int d = N / (s * B);", assertion=""):
    return f"""
    void f(int N, int s, int B, float a[8 * N + 8], float b[8 * N + 8]) {{
      {assertion}
      {extents}
      meta_schedule {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++) {{
            {body}
          }}
      }}
    }}
    """


POINTS = [{"N": 24, "s": 3, "B": 4}, {"N": 25, "s": 2, "B": 3}, {"N": 12, "s": 1, "B": 5}, {"N": 31, "s": 5, "B": 1}]


def test_the_second_case_of_figure_7():
    before, after = applied(JACOBI)
    assert lines(after)[5:9] == [
        "meta_for (int i = 0; i < dim * s; i++)",
        "meta_for (int j = 0; j < B; j++) {",
        "int p = i * B + j;",
        "int p1 = p + 1;",
    ]
    assert not any(isinstance(stmt, For) for stmt in walk_statements(after.body))
    same_meaning(before, after, [{"N": 26, "s": 3, "B": 4, "t": 0}, {"N": 20, "s": 2, "B": 3, "t": 1}])


def test_the_second_case_of_figure_8():
    before, after = applied(TRANSPOSE)
    assert "meta_for (int v1 = 0; v1 < dim1 * s; v1++)" in lines(after)
    assert lines(after)[9:12] == ["int i = v0 * B0 + u0;", "int j = v1 * B1 + u1;", "c[i * N + j] = a[i][j];"]
    assert after.mapping.cached == ("a", "c")
    same_meaning(before, after, [{"N": 12, "s": 2, "B0": 3, "B1": 2}, {"N": 11, "s": 3, "B0": 2, "B1": 1}])


def test_figure_3_loses_the_inner_loop_over_w():
    before, after = applied(MATMUL)
    assert "meta_for (int j = 0; j < dim1 * s; j++) {" in lines(after)
    assert "c[p][q] += a[p][B0 * k + z] * b[B0 * k + z][q];" in lines(after)
    same_meaning(before, after, [{"n": 8, "B0": 2, "ub1": 2, "s": 2}, {"n": 7, "B0": 3, "ub1": 1, "s": 3}])


def test_figure_1_is_rolled_and_has_one_statement():
    before, after = applied(MATADD)
    assert "meta_for (int pk = 0; pk < dim1 * 2; pk++) {" in lines(after)
    assert "c[i][j + k * (N / 2)] = a[i][j + k * (N / 2)] + b[i][j + k * (N / 2)];" in lines(after)
    assert "if (i < N && j < N / 2) {" in lines(after)
    same_meaning(before, after, [{"N": 12, "B0": 3, "B1": 2}, {"N": 13, "B0": 2, "B1": 3}, {"N": 7, "B0": 7, "B1": 1}])


def test_figure_2_appears_only_where_the_block_divides():
    before, after = applied(MATADD.replace("int dim0", "assert(N % (2 * B1) == 0); int dim0"))
    assert "meta_for (int p = 0; p < dim1 * 2; p++)" in lines(after)
    assert "int j = p * B1 + q;" in lines(after)
    assert "c[i][j] = a[i][j] + b[i][j];" in lines(after)
    assert "if (i < N) {" in lines(after)
    same_meaning(before, after, [{"N": 12, "B0": 3, "B1": 2}, {"N": 12, "B0": 5, "B1": 3}, {"N": 14, "B0": 7, "B1": 1}])


@pytest.mark.parametrize("text", [JACOBI, TRANSPOSE, MATMUL, MATADD])
def test_a_second_application_finds_nothing(text):
    _, after = applied(text)
    assert isinstance(STRATEGY.apply(Version(after), Analyses()), NotApplied)


@pytest.mark.parametrize("text", [JACOBI, TRANSPOSE, MATMUL, MATADD])
def test_the_result_is_a_program_that_can_be_read_again(text):
    _, after = applied(text)
    assert program(metafork_text(after)) == after


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("for (int k = 0; k < s; k++) a[i * B + j] += b[i * s * B + k * B + j];", "touch one element"),
        ("for (int k = 0; k < s; k++) a[i*s*B + j*s + k + 1] = a[i*s*B + j*s + k];", "a"),
        ("for (int k = 0; k < s; k++) a[i*s*B + j*s + k/2] = 1;", "a"),
        ("float x = 0; for (int k = 0; k < s; k++) { x += b[k]; a[i*s*B + k*B + j] = x; }", "no loop or repetition"),
        ("for (int k = 0; k < s; k++) { a[i*s*B + k*B + j] = 1; if (k > 2) break; }", "no loop or repetition"),
        ("for (int k = 0; k < s; k += k) a[i*s*B + k*B + j] = 1;", "no loop or repetition"),
        ("for (int k = 0; k < j; k++) a[i*s*B + k*B + j] = 1;", "extent"),
        ("for (int k = 0; k < s; k++) a[i*s*B + k*B + j] = 1; b[i*B + j] = 2;", "no loop or repetition"),
        ("float x = b[i*B + j]; for (int k = 0; k < s; k++) b[i*s*B + k*B + j] = x;", "no loop or repetition"),
    ],
)
def test_what_is_not_proved_is_not_applied(body, shown):
    assert shown in refused(loop_nest(body))


def test_a_scalar_that_lives_outside_is_carried():
    text = loop_nest("int x; for (int k = 0; k < s; k++) { x = k; a[i*s*B + x*B + j] = 1; }")
    # ``x`` is assigned, so that its declaration is work of its own, and the loop is not all of it.
    assert "no loop or repetition" in refused(text)


def test_an_unknown_reason_names_the_loop_and_the_array():
    reason = refused(loop_nest("for (int k = 0; k < s; k++) a[(int)b[k]] = 1;"))
    assert "loop over k" in reason
    assert "of a" in reason


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int k = 0; k < s; k++) { int p = (i*s + k)*B + j; if (p < N) a[p] = b[p + 1]; }", "int p = i * B + j;"),
        ("for (int k = 0; k < s; k++) { int p = B*s*i + j + B*k; a[p] = p; }", "int p = B * i + j;"),
        ("for (int k = 0; k < s; k++) { int p = s*(i*B + j) + k; a[p] = b[p]; }", "int i = ik / s;"),
        ("for (int k = 0; k < s; k++) { a[i*s*B + k*B + j] = (float)(k + i); }", "int k = ik % s;"),
        ("for (int k = 0; k < s; k++) { int p = k*d*B + i*B + j; a[p] = b[p] + 1; }", "int p = i * B + j;"),
        ("for (int k = 0; k < s; k++) { int h = (i*s + k) / 2; a[i*s*B + k*B + j] = b[h]; }", "int h = i / 2;"),
        ("if (j < N) { for (int k = 0; k < s; k++) a[i*s*B + k*B + j] = 1; }", "a[i * B + j] = 1;"),
        ("float x = b[7]; for (int k = 0; k < s; k++) { a[i*s*B + k*B + j] = x; }", "a[i * B + j] = x;"),
        ("for (int k = 1; k < s; k++) a[i*s*B + k*B + j] = 1;", None),
        ("for (int k = 0; k < s; k++) for (int z = 0; z < 3; z++) a[(i*s+k)*B*3 + j*3 + z] = z;", None),
        ("for (int z = 0; z < 3; z++) for (int k = 0; k < s; k++) a[(i*s+k)*B*3 + j*3 + z] += b[z];", None),
        ("for (int k = 0; k < s; k++) { int q = i*s*B + j + N; a[q - N + k*B] = 1; }", "int i = ik / s;"),
        ("for (int k = 0; k < s; k++) { int q = i*s*B + j; a[q + k*B] = 1; }", "a[q] = 1;"),
        ("a[i*2*B + j] = b[j]; a[i*2*B + B + j] = b[j + 1];", None),
        ("a[i*B + j] = b[j]; a[i*B + j + N] = b[j + 2]; a[i*B + j + 2*N] = b[j + 4];", "int k = ik % 3;"),
        ("float x = b[i*B+j]; a[i*B+j] = x*x; float y = b[i*B+j+N]; a[i*B+j+N] = y*y;", "int k = ik % 2;"),
        ("int q = i*B + j; int r = q + N; a[q] = b[q]; a[r] = b[r];", "a[q + k * N] = b[q + k * N];"),
        ("int q = i*B + j; a[q + 2*N] = 1; a[q + N] = 1; a[q] = 1;", "a[q + 2 * N - k * N] = 1;"),
    ],
)
def test_loops_and_repetitions_join_the_grid(body, expected):
    before, after = applied(loop_nest(body))
    if expected is not None:
        assert expected in lines(after)
    same_meaning(before, after, POINTS)
    assert isinstance(STRATEGY.apply(Version(after), Analyses()), NotApplied)
    assert program(metafork_text(after)) == after


def test_two_loops_join_one_after_the_other():
    body = "for (int k = 0; k < s; k++) for (int m = 0; m < s; m++) a[((i*s + k)*s + m)*B + j] = b[i*s + k] + m;"
    before, after = applied(loop_nest(body, "int d = N / (s * s * B);"))
    assert not any(isinstance(stmt, For) for stmt in walk_statements(after.body))
    same_meaning(before, after, [{"N": 24, "s": 2, "B": 3}, {"N": 19, "s": 3, "B": 1}])


BLOCK_LEVEL = """
void f(int N, int s, int B, float a[N], float b[N]) {
  int d = N / (s * B);
  meta_schedule {
    meta_for (int i = 0; i < d; i++) {
      PLACE
      for (int k = 0; k < s; k++) {
        INSIDE
        meta_for (int j = 0; j < B; j++)
          tile[j] = b[(i*s + k)*B + j];
        meta_for (int j = 0; j < B; j++)
          a[(i*s + k)*B + j] = tile[B - 1 - j] + tile[j];
      }
    }
  }
}
"""


def test_a_block_level_loop_with_its_own_tile_joins_the_grid():
    before, after = applied(BLOCK_LEVEL.replace("PLACE", "").replace("INSIDE", "float tile[B];"))
    assert sum(isinstance(stmt, Phase) for stmt in after.body) == 2
    same_meaning(before, after, POINTS)


def test_a_tile_that_the_iterations_share_keeps_them_together():
    assert "tile" in refused(BLOCK_LEVEL.replace("PLACE", "float tile[B];").replace("INSIDE", ""))


def test_threads_of_two_phases_are_compared_with_each_other():
    text = """
    void f(int N, int s, int B, float a[N]) {
      int d = N / (s * B);
      meta_schedule {
        meta_for (int i = 0; i < d; i++)
          for (int k = 0; k < s; k++) {
            meta_for (int j = 0; j < B; j++) a[i*s*B + k + j*s] = k;
            meta_for (int j = 0; j < B; j++) a[i*s*B + (s - 1 - k)*B + j] += 1;
          }
      }
    }
    """
    refused(text)


def test_two_names_that_hide_each_other_are_left_alone():
    before = program(loop_nest("int x = 1; for (int k = 0; k < s; k++) { a[i*s*B + k*B + j] = x; }"))
    (phase,) = before.body
    declaration, loop = phase.body
    hiding = replace(phase, body=(declaration, replace(loop, body=(declaration, *loop.body))))
    result = STRATEGY.apply(Version(replace(before, body=(hiding,))), Analyses())
    assert isinstance(result, NotApplied)
    assert "hides another x" in result.reason


def test_a_guard_on_the_old_index_is_kept_unless_it_always_holds():
    body = "int p = i*B + j; if (p < N) { a[p] = b[p]; a[p + N] = b[p + N]; }"
    before, after = applied(loop_nest(body))
    assert sum(isinstance(stmt, If) for stmt in walk_statements(after.body)) == 1
    same_meaning(before, after, POINTS)


def test_a_grid_that_may_outgrow_int_is_counted_in_long():
    text = """
    void f(int n, int m, float a[n][m][3]) {
      meta_schedule {
        meta_for (int i = 0; i < n; i++)
          meta_for (int j = 0; j < 2; j++)
            for (int k = 0; k < m; k++) a[i][k][j] = k;
      }
    }
    """
    before, after = applied(text)
    assert "meta_for (long ik = 0; ik < (long)n * m; ik++) {" in lines(after)
    same_meaning(before, after, [{"n": 3, "m": 4}, {"n": 1, "m": 5}])


TYPES = ("int", "unsigned", "long", "unsigned long", "long long")


@pytest.mark.parametrize("index", ["(i*s + k)*B + j", "i*s*B + k*B + j", "k*d*B + i*B + j"])
@pytest.mark.parametrize("counted", TYPES)
@pytest.mark.parametrize("extent", TYPES)
@pytest.mark.sampled(15)
def test_the_type_of_a_loop_that_joins_the_grid_stays_in_what_it_was_added_to(index, counted, extent):
    text = loop_nest(f"for ({counted} k = 0; k < s; k++) {{ {counted} p = {index}; a[p] = b[p] + 1; }}")
    text = text.replace("int N, int s,", f"long N, {extent} s,").replace("int i", "long i").replace("int d", "long d")
    before, after = applied(text)
    check_program(after)
    same_meaning(before, after, POINTS)


INDICES = [
    "i*s*B + k*B + j",
    "N + i*s*B + k*B + j",
    "2*((i*s + k)*B + j)",
    "2*((i*s + k)*B + j) + 1",
    "(i*s + k)*B + j + 1",
    "s*(i*B + j) + k",
    "k*d*B + i*B + j",
    "i*B + j",
    "i*s + k",
    "(i*s + s - 1 - k)*B + j",
    "4*N + i*s*B + j*s + k",
    "5*N + (i*s*B + k*B + j) % N",
    "k",
]
GUARDS = ["", "if (i*s*B + k*B + j < N / 2)", "if (k % 2)", "if (s % 2)", "if (s % 2 == 0)", "if (b[k] < 0)"]


@st.composite
def bodies(draw):
    statements = []
    for _ in range(draw(st.integers(1, 3))):
        guard, array = draw(st.sampled_from(GUARDS)), draw(st.sampled_from("ab"))
        target, first, second = (draw(st.sampled_from(INDICES)) for _ in range(3))
        operator = draw(st.sampled_from(["=", "+="]))
        statements.append(f"{guard} {array}[{target}] {operator} b[{first}] + a[{second}];")
    return f"for (int k = 0; k < s; k++) {{ {' '.join(statements)} }}"


@settings(max_examples=40, deadline=None)
@given(bodies(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 5))
@pytest.mark.slow
def test_whatever_is_applied_computes_the_same(body, s, width, blocks, rest):
    before = program(loop_nest(body))
    point = {"N": s * width * blocks + rest, "s": s, "B": width}
    arrays = memories(before, point, 7)
    assume(run(before, point, arrays, 3).keeps_promise())
    result = STRATEGY.apply(Version(before), Analyses())
    if isinstance(result, NotApplied):
        assert result.reason
        return
    after = result.version.program
    assert results(after, point, 7) == results(before, point, 7)
    assert run(after, point, memories(after, point, 7), 3).keeps_promise()


REPEATED_PHASE = """
void f(int n, int s, float a[n][2], float c[n][2]) {
  int d = n / s;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      for (int m = 1; m < 5; STEP)
        meta_for (int j = 0; j < 2; j++)
          for (int k = 0; k < s; k++) {
            if (m % 3 == 1) a[i*s + k][j] = m;
            else c[i*s + k][j] = a[i*s + s - 1 - k][1 - j];
          }
  }
}
"""


@pytest.mark.parametrize("step", ["m++", "m *= 2"])
def test_a_phase_that_a_loop_repeats_is_compared_across_its_runs(step):
    # In one run of the phase nothing conflicts; what one run writes, another thread reads in the next, from another k.
    assert "element of a" in refused(REPEATED_PHASE.replace("STEP", step))


def test_accesses_of_different_phases_are_not_taken_for_one_pair():
    text = """
    void f(int n, int s, float a[n][2]) {
      int d = n / s;
      meta_schedule {
        meta_for (int i = 0; i < d; i++)
          for (int k = 0; k < s; k++) {
            meta_for (int j = 0; j < 2; j++) a[i*s + k][j] = k;
            meta_for (int j = 0; j < 2; j++) a[i*s + (s - 1 - k)][1 - j] += 1;
          }
      }
    }
    """
    assert "element of a" in refused(text)


def test_a_rounded_up_grid_fits_where_its_dividend_does():
    body = "for (int k = 0; k < s; k++) { int p = (i*s + k)*B + j; if (p < N) a[p] = b[p]; }"
    before, after = applied(loop_nest(body, "int d = (N + s*B - 1) / (s*B);"))
    assert "meta_for (int i = 0; i < d * s; i++)" in lines(after)
    same_meaning(before, after, POINTS)


def test_what_cse_shared_leaves_no_copies():
    version = STRATEGIES[0].apply(Version(program(MATMUL)), Analyses()).version
    after = STRATEGY.apply(version, Analyses()).version.program
    assert "c[p][q] += a[p][t1] * b[t1][q];" in lines(after)
    same_meaning(version.program, after, [{"n": 8, "B0": 2, "ub1": 2, "s": 2}])


def test_repetitions_inside_a_loop_of_a_thread_are_thread_code_too():
    text = loop_nest("int p = i * B + j; for (int z = 0; z < 3; z++) { a[p] += z; a[p + N] += z; }")
    text = text.replace("N / (s * B)", "N / B")
    before, after = applied(text)
    assert any("< d * 2" in line for line in lines(after)), lines(after)
    same_meaning(before, after, [{"N": 12, "s": 1, "B": 3}])


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 1; k <= s; k++) { int p = i * s * B + (k - 1) * B + j;",
        "for (int k = 0; k < s * B; k += B) { int p = i * s * B + k + j;",
        "for (int k = s * B; k > 0; k = k - B) { int p = i * s * B + k - B + j;",
        "for (int k = s - 1; k >= 0; --k) { int p = (i * s + k) * B + j;",
        "for (long long k = 2 * B; (2 + s) * B > k; k += B) { long long p = i * s * B + (k - 2 * B) + j;",
    ],
)
def test_a_loop_that_does_not_count_from_0_by_ones_joins_the_grid(loop):
    text = f"""
    void stepped(int N, int s, int B, const float a[N], float c[N]) {{
      meta_schedule {{
        meta_for (int i = 0; i < N / (s * B); i++)
          meta_for (int j = 0; j < B; j++)
            {loop} c[p] = a[p] + k; }}
      }}
    }}"""
    points = [{"N": n, "s": s, "B": b} for n, s, b in ((12, 3, 2), (7, 1, 3), (9, 2, 2))]
    same_meaning(*applied(text), points)


PRODUCT = """
void product(int N, int s, int B, const float a[{extents}], const float b[{extents}], float c[{extents}]) {{
  meta_schedule {{
    meta_for (int i = 0; i < N / B; i++)
      meta_for (int j = 0; j < N / (s * B); j++)
        for (int k = 0; k < N; k += B)
          meta_for (int u = 0; u < B; u++)
            meta_for (int v = 0; v < B; v++)
              for (int m = k; m < k + B && m < N; m++)
                for (int w = 0; w < s; w++)
                  {update}
  }}
}}"""
LINEAR_PRODUCT = PRODUCT.format(
    extents="N * N",
    update="c[(i * B + u) * N + (j * s + w) * B + v] += a[(i * B + u) * N + m] * b[m * N + (j * s + w) * B + v];",
)
SQUARE_PRODUCT = PRODUCT.replace("[{extents}]", "[N][N]").format(
    update="c[i * B + u][(j * s + w) * B + v] += a[i * B + u][m] * b[m][(j * s + w) * B + v];"
)


@pytest.mark.parametrize("text", [LINEAR_PRODUCT, SQUARE_PRODUCT])
def test_a_linear_index_joins_as_rows_and_columns_do(text):
    before, after = applied(text)
    assert [expression(loop.extent) for loop in after.grid] == ["N / B", "N / (s * B) * s"]
    same_meaning(before, after, [{"N": n, "s": s, "B": b} for n, s, b in ((4, 2, 2), (5, 2, 1), (6, 1, 3))])


def test_at_least_one_loop_is_asked_for():
    assert Granularity(most_loops=1).most_loops == 1
    for number in (0, -1):
        with pytest.raises(ValueError, match=f"at least 1, not {number}"):
            Granularity(most_loops=number)


def test_statements_that_repeat_are_counted_in_the_remark():
    result = STRATEGY.apply(Version(program(MATADD)), Analyses())
    assert isinstance(result, Applied)
    assert "2 statements that repeat with a shift" in result.note


def test_a_refusal_stands_somewhere_whatever_is_known_of_its_reason():
    text = loop_nest("int k = 0; while (k < s) { a[i*s*B + k*B + j] = 1; k = k + 1; }")
    result = STRATEGY.apply(Version(program(text)), Analyses())
    assert isinstance(result, NotApplied)
    assert text[result.span.start : result.span.end].startswith("while (k < s)")


@pytest.mark.parametrize("text", [JACOBI, MATMUL])
def test_it_is_applied_only_where_a_resource_is_short(text):
    found = optimize(text, counters=["threads_per_block", "shared_memory"], strategies=["granularity"])
    assert [leaf.own.strategies for leaf in found.schedules[0].leaves] == [(), ("granularity",)]
