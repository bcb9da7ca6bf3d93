from itertools import product

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.evaluators.global_loads import global_loads
from metafork.ir.program import Version
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.granularity import STRATEGY as GRANULARITY
from metafork.strategies.scalar_replacement import STRATEGY
from metafork.strategies.strategy import Applied, NotApplied
from tests.metafork.interpreter import UndefinedBehaviourError, program, results
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE

POINT = {"N": 3, "s": 2, "B": 2}


def nest(body):
    return f"""
    void f(int N, int s, int B, float a[64], int c[64], char d[64][4]) {{
      meta_schedule cache() {{
        meta_for (int i = 0; i < N; i++)
          meta_for (int j = 0; j < B; j++) {{ {body} }}
      }}
    }}
    """


def lines(subject):
    """Return the thread code, a line each, without braces."""
    text = [line.strip(" {}") for line in metafork_text(subject).splitlines()]
    first = [place for place, line in enumerate(text) if line.startswith("meta_for")][-1]
    return [line for line in text[first + 1 :] if line]


def applied(text, strategy=STRATEGY):
    result = strategy.apply(Version(program(text)), Analyses())
    assert isinstance(result, Applied), result
    return result


def same_results(text):
    before = program(text)
    after = STRATEGY.apply(Version(before), Analyses())
    if isinstance(after, Applied):
        for point in (POINT, {"N": 1, "s": 3, "B": 1}):
            assert results(after.version.program, point, 1) == results(before, point, 1)
    return isinstance(after, Applied)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "for (int k = 0; k < s; k++) c[i * B + j] += k * 2;",
            ["if (0 < s)", "int c_kept = c[i * B + j];", "for (int k = 0; k < s; k++)", "c_kept += k * 2;",
             "c[i * B + j] = c_kept;"],
        ),
        (  # what the index is computed from comes along, and the type is the element's
            "for (int k = 1; k <= 3; k++) { int p = i * B + j; int q = p + 1; d[q][1] = d[q][1] / 2 - k; }",
            ["char d_kept = d[i * B + j + 1][1];", "for (int k = 1; k <= 3; k++)", "int p = i * B + j;",
             "int q = p + 1;", "d_kept = d_kept / 2 - k;", "d[i * B + j + 1][1] = d_kept;"],
        ),
        (  # a loop that may not run is asked first
            "for (int k = j; k < i; k++) { if (k > 1) c[i * B + j] -= 1; c[i * B + j] += a[k] > 0; }",
            ["if (j < i)", "int c_kept = c[i * B + j];", "for (int k = j; k < i; k++)", "if (k > 1)", "c_kept -= 1;",
             "c_kept += a[k] > 0;", "c[i * B + j] = c_kept;"],
        ),
        (  # both loops at once
            "for (int k = 0; k < s; k++) for (int l = 0; l < B; l++) a[i * B + j] += c[k + l];",
            ["if (0 < s)", "float a_kept = a[i * B + j];", "for (int k = 0; k < s; k++)",
             "for (int l = 0; l < B; l++)", "a_kept += c[k + l];", "a[i * B + j] = a_kept;"],
        ),
        (  # the inner loop only, for the outer one changes the place
            "for (int k = 0; k < s; k++) for (int l = 0; l < B; l++) a[(i * B + j) * s + k] += c[k + l];",
            ["for (int k = 0; k < s; k++)", "float a_kept = a[(i * B + j) * s + k];", "for (int l = 0; l < B; l++)",
             "a_kept += c[k + l];", "a[(i * B + j) * s + k] = a_kept;"],
        ),
        (  # after an interchange
            "for (int k = 0; k < B; k++) { int t = k * 2;"
            " for (int l = 0; l < s; l++) { int p = i * B + j; a[p * s + l] += c[t + l]; } }",
            ["for (int l = 0; l < s; l++)", "float a_kept = a[(i * B + j) * s + l];", "for (int k = 0; k < B; k++)",
             "int t = k * 2;", "int p = i * B + j;", "a_kept += c[t + l];", "a[(i * B + j) * s + l] = a_kept;"],
        ),
    ],
)  # fmt: skip
def test_what_becomes_a_scalar(body, expected):
    assert lines(applied(nest(body)).version.program) == expected
    assert same_results(nest(body))


@pytest.mark.parametrize(
    "body",
    [
        "c[i * B + j] += 1;",
        "for (int k = 0; k < s; k++) c[i * B + j + k] += 1;",
        "for (int k = 0; k < s; k++) a[j] += a[j + k];",
        "for (int k = 0; k < s; k++) if (k > 1) c[i * B + j] += 1;",
        "for (int k = 0; k < s; k++) { c[i * B + j] += 1; if (k > 1) break; }",
        "for (int k = 0; k < s; k++) { if (k > 1) continue; c[i * B + j] += 1; }",
        "for (int k = 0; k < s; k++) { int p = c[k]; a[p] += 1; }",
        "for (int k = 0; k < s; k++) c[c[k]] += 1;",
        "int p = i; for (int k = 0; k < s; k++) { c[p] += 1; p = p + 1; }",
        "for (int k = 0; k < s; k++) { while (a[j] > 3) a[j] -= 1; }",
        "int k = 9; while (k > 0) { c[i * B + j] += 1; k = k - 1; }",
        "for (int k = 0; k < c[40]; k++) c[i * B + j] += 1;",
        "for (int k = 1; k < s; k *= 2) c[i * B + j] += 1;",
        "for (int k = 0; k < s && c[k] > 0; k++) c[i * B + j] += 1;",
        "int k; for (k = 0; k < s; k++) { k = k + 1; c[i * B + j] += 1; }",
        "for (int k = 0; k < c[40]; k++) a[i * B + j] += 1;",
        # no interchange: bounds, order, or which element is not known
        "for (int k = 0; k < B; k++) for (int l = 0; l < k; l++) a[(i * B + j) * s + l] += 1;",
        "int x = 0; for (int k = 0; k < B; k++) for (int l = 0; l < s; l++) { x = x * 3 + k; a[x % 2 + l] += 1; }",
        "int x = 0; for (int k = 0; k < B; k++) for (int l = 0; l < s; l++) { x = x * 3 + k; a[j + l] += x; }",
        "for (int k = 0; k < B; k++) for (int l = 0; l < s; l++) { a[j * 8 + l] += a[j * 8 + l + 1]; }",
        "for (int k = 0; k < B; k++) for (int l = 0; l < s; l++) a[j * 8 + l % 2] += k + l;",
        "int z = i - 1; for (int k = 0; k < B; k++) for (int l = 0; l < s; l++) a[8 + l * z] += k + 2 * l;",
        "for (int k = 0; k < B; k++) for (int l = 0; l < c[9]; l++) a[j * 8 + l] += k;",
        "for (int k = 0; k < B; k++) for (int l = k; l < s; l++) a[j * 8 + l] += k;",
    ],
)
def test_what_stays_as_it_is(body):
    text = nest(body)
    assert not same_results(text)


@pytest.mark.parametrize(
    "body",
    [
        "int p = i * B + j; for (int k = 0; k < s; k++) { c[p] += 1; int p = 20; a[p + i * B + j] = k; }",
        "for (int k = 0; k < s; k++) for (int l = 0; l < k; l++) a[i * B + j] += 1;",
        "for (int k = 0; k < B; k++)"
        " for (int l = 0; l < s; l++) { d[k + 8 * (i * B + j)][2] = l; a[(i * B + j) * 8 + l] += 1; }",
        "for (int k = 0; k < B; k++) { c[i * B + j] = k; for (int l = 0; l < s; l++) a[(i * B + j) * 8 + l] += k; }",
        "for (int k = 0; k < s; k++) { c[i * B + j] = k; if (k > 1) a[c[i * B + j] + 40] = 1; }",
    ],
)
def test_what_becomes_a_scalar_means_the_same(body):
    assert same_results(nest(body))


def test_the_product_of_matrices_is_interchanged_and_its_blocks_of_one_element_are_in_registers_already():
    after = applied(MATMUL)
    assert "after the loops over z and w were interchanged" in after.note
    assert isinstance(STRATEGY.apply(after.version, Analyses()), NotApplied)
    single = GRANULARITY.apply(Version(program(MATMUL)), Analyses()).version
    assert isinstance(STRATEGY.apply(single, Analyses()), NotApplied)


@pytest.mark.parametrize("text", [JACOBI, MATADD, TRANSPOSE])
def test_nothing_to_replace(text):
    assert isinstance(STRATEGY.apply(Version(program(text)), Analyses()), NotApplied)


def test_arrays_in_shared_memory_are_left_there():
    text = nest("for (int k = 0; k < s; k++) c[i * B + j] += k;").replace("cache()", "cache(c)")
    assert program(text).mapping.cached == ("c",)
    assert isinstance(STRATEGY.apply(Version(program(text)), Analyses()), NotApplied)


def test_fewer_loads_from_global_memory():
    text = nest("for (int k = 0; k < N; k++) for (int l = 0; l < s; l++) a[(i * B + j) * s + l] += k;")
    before, after = Version(program(text)), applied(text).version
    assert [global_loads(version, Analyses()).numerator.text() for version in (before, after)] == ["N*s", "s"]


PLACE = st.sampled_from(
    ["j * 8 + l", "j * 8 + 2 * l + 1", "k + 3", "j + 8", "l + k", "i * 9", "B * l + 1", "s * l + i"]
)
UPDATE = st.builds(
    "{}[{}] {} {};".format,
    st.sampled_from("ac"),
    PLACE,
    st.sampled_from(["+=", "=", "-="]),
    st.sampled_from(["k", "l + 1", "a[l] > 0", "c[5] % 7", "k * l"]),
)
INNER = st.one_of(
    UPDATE,
    st.builds("int t = j + {}; c[t + {} * l] += k;".format, st.integers(0, 2), st.integers(1, 3)),
    st.builds("if (l > 0) {}".format, UPDATE),
    st.builds("int u = l * 2; {} c[u + 3] += u;".format, UPDATE),
    st.builds("{} a[j * 4 + l] += 1;".format, UPDATE),
)
BOUNDS = st.sampled_from(["s", "B", "3", "k", "N - 1"])


@settings(max_examples=400, deadline=None)
@given(
    INNER,
    BOUNDS,
    BOUNDS.filter(lambda bound: bound != "k"),
    st.sampled_from(["", "int m = k * 2; ", UPDATE]),
    st.data(),
)
@pytest.mark.slow
def test_random_loops_compute_the_same(inner, inner_bound, outer_bound, first, data):
    first = first if isinstance(first, str) else data.draw(first).replace("l", "k")
    text = nest(
        f"for (int k = 0; k < {outer_bound}; k++) {{ {first}for (int l = 0; l < {inner_bound}; l++) {{ {inner} }} }}"
    )
    subject = program(text)
    after = STRATEGY.apply(Version(subject), Analyses())
    event(type(after).__name__)
    if isinstance(after, NotApplied):
        return
    for n, s in product((1, 2, 4), (1, 3)):
        point = {"N": n, "s": s, "B": 1}
        try:
            expected = results(subject, point, 1)
        except UndefinedBehaviourError:
            continue
        assert results(after.version.program, point, 1) == expected


def test_the_kernels_compute_what_the_program_means(tmp_path):
    points = [{"n": n, "B0": b, "ub1": u, "s": s} for n, b, u, s in ((13, 2, 2, 3), (16, 4, 4, 1), (12, 3, 2, 2))]
    case = Case(MATMUL, points)
    after = STRATEGY.apply(Version(case.lowered_program()), Analyses()).version.program
    triangle = nest("for (int k = j; k < i; k++) { c[i * B + j] += k + d[k][1]; }")
    other = Case(triangle, [{"N": n, "s": 1, "B": b} for n, b in ((1, 1), (5, 3), (8, 8))])
    cases = [replace(case, program=after), replace(other, program=applied(triangle).version.program)]
    assert run(cases, tmp_path) == {}


def test_it_rewrites_the_program_and_leaves_its_ir_alone():
    before = Version(program(nest("for (int k = 0; k < s; k++) c[i * B + j] += k * 2;")))
    after = STRATEGY.apply(before, Analyses())
    assert isinstance(after, Applied)
    assert after.version.program != before.program
    assert after.version.ir_strategies == before.ir_strategies
    assert not STRATEGY.on_ir


def test_it_is_applied_at_leaves():
    result = optimize(MATMUL, counters=["threads_per_block", "shared_memory"], strategies=["scalar_replacement"])
    (leaf,) = result.schedules[0].leaves
    assert leaf.own.strategies == ("scalar_replacement",)


@pytest.mark.parametrize(
    ("step", "limit", "interchanged"),
    [
        ("s", "8u", True),
        ("2u", "8u", True),
        ("1073741824u", "8u", False),
        ("4294967295u", "8u", False),
        ("2u", "s", True),
        ("2u", "N", False),  # N may be large
        ("2u", "j", False),
    ],
)
def test_an_unsigned_index_that_may_come_back_is_not_interchanged(step, limit, interchanged):
    text = f"""
    void f(unsigned N, unsigned s, unsigned B, float a[64], float c[N]) {{
      assert(1 <= s && s <= 9);
      meta_schedule cache() {{
        meta_for (unsigned i = 0; i < N; i++)
          meta_for (unsigned j = 0; j < B; j++)
            for (unsigned z = 0; z < 3u; z++)
              for (unsigned w = 0; w < {limit}; w++)
                c[i * B + j + w * {step}] += a[z];
      }}
    }}
    """
    result = STRATEGY.apply(Version(program(text)), Analyses())
    assert isinstance(result, Applied) == interchanged
