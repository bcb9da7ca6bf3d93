"""Loops in strips: which programs have them, what of a thread is kept from strip to strip, and kernels at odd sizes."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.explanation import explanation
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.registry import strategies
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of, with_results
from metafork.ir.program import BlockArray, Phase, Version, walk_statements
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.strip_mining import STRATEGY, StripMining
from tests.metafork.interpreter import program as as_read
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program
from tests.strategies.running import running

TEXT = """
#include <math.h>
struct {name}_body {{ float x, mass; }};
struct {name}_atom {{ float x; int kind; }};
void {name}(int n, int m, int B, float soft, const float x[m + 4], const int k[m], const float w[m][3],
            const struct {name}_body other[m], const struct {name}_atom atom[m],
            const float q[n][m], const float table[1025], float y[n], float z[n])
{{
  meta_schedule {clause} {{
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int u = 0; u < B; u++) {{
        int p = i * B + u;
        if (p < n) {{ {body} }}
      }}
  }}
}}"""
ALWAYS = StripMining(work=0)
WORK = "float sum = y[p]; for (int j = 0; j < m; j++) sum += x[j] / (p - x[j] * soft); y[p] = sum;"
SUM = "float sum = y[p]; for (int j = 0; j < m; j++) sum += x[j] * (p - x[j]); y[p] = sum;"
TAKEN = {
    "a_sum": (SUM, ["x"], ["sum"]),
    "in_place": ("for (int j = 0; j < m; j++) y[p] += x[j] * p;", ["x"], []),
    "several_arrays": (
        "float s = 0, t = soft; for (int j = 0; j < m; j++) { s += x[j] * w[j][1]; t -= s * k[j]; } y[p] = s;"
        " z[p] = t;",
        ["x", "k", "w"],
        ["s", "t"],
    ),
    "structures": ("float s = 0; for (int j = 0; j < m; j++) s += other[j].mass * (other[j].x - p); y[p] = s;",
                   ["other"], ["s"]),
    "from_a_constant": ("float s = 1; for (int j = 3; j < m; j++) s = s * 0.5f + x[j]; y[p] = s;", ["x"], ["s"]),
    "up_to_the_last": ("float s = 1; for (int j = 0; j <= m - 1; j++) s = s * 0.5f + x[j]; y[p] = s;", ["x"], ["s"]),
    "long_ends": ("float s = 1; for (int j = 0; j < (long)m; j++) s = s * 0.5f + x[j]; y[p] = s;", ["x"], ["s"]),
    "long_counter": ("float s = 1; for (long j = 2; j < m - 1; j++) s = s * 0.5f + x[j]; y[p] = s;", ["x"], ["s"]),
    "neighbours": ("float s = 0; for (int j = 0; j < m; j++) s += x[j] - x[j + 4] * x[j + 1]; y[p] = s;", ["x"], ["s"]),
    "a_loop_inside": (
        "float s = 0; for (int j = 0; j < m; j++) for (int t = 0; t < 3; t++) { if (t == p % 3) continue;"
        " s += w[j][t]; } y[p] = s;",
        ["w"],
        ["s"],
    ),
    "a_loop_that_ends_early_inside": (
        "int s = 0; for (int j = 0; j < m; j++) for (int t = 0; t < 9; t++) { if (t > k[j]) break; s += t; } y[p] = s;",
        ["k"],
        ["s"],
    ),
    "the_least": (
        "int at = -1; float least = 1e30f; for (int j = 0; j < m; j++) { float d = fabsf(x[j] - p * soft);"
        " if (d < least) { least = d; at = j; } } y[p] = at; z[p] = least;",
        ["x"],
        ["at", "least"],
    ),
    "work_before": (
        "z[p] = p; float s = z[p] + 1; s *= 2; for (int j = 0; j < m; j++) s += x[j]; z[p] += s; y[p] = s + z[p];",
        ["x"],
        ["s"],
    ),
    "two_loops": (
        "float most = x[0]; for (int j = 0; j < m; j++) most = fmaxf(most, x[j] * p); float s = 0;"
        " for (int t = 0; t < m; t++) s += k[t] * (x[t] * p - most); y[p] = s;",
        ["x", "k"],
        ["most", "most2", "s"],
    ),
    "conditions": (
        "if (p % 2 == 0) { int a = p * 3; double s = soft; for (int j = 0; j < m; j++) if (j != a) s += x[j] / (j - a);"
        " y[p] = (float)s; }",
        ["x"],
        ["s"],
    ),
    "one_that_is_looked_up": (
        "float s = 0; for (int j = 0; j < m; j++) s += x[j] - other[k[p % m] % m].x; y[p] = s;", ["x"], ["s"]
    ),
    "the_first": ("float s = 0; for (int j = 0; j < m; j++) s += x[j] - x[0]; y[p] = s;", ["x"], ["s"]),
}  # fmt: skip
LEFT = {
    "own_elements": ("float s = 0; for (int j = 0; j < m; j++) s += x[j] * q[p][j]; y[p] = s;", "of their own"),
    "written": ("for (int j = 0; j < n; j++) if (j == p) y[j] = x[0];", "of their own"),
    "several_types": ("float s = 0; for (int j = 0; j < m; j++) s += atom[j].x * atom[j].kind; y[p] = s;",
                      "structures of several types"),
    "few": ("float s = 0; for (int j = 0; j < 1024; j++) s += table[j]; y[p] = s;", "few iterations"),
    "any_place": ("float s = 0; for (int j = 0; j < m; j++) s += x[k[j] % m]; y[p] = s;", "not known"),
    "nothing_read": ("float s = 0; for (int j = 0; j < m; j++) s += j * 0.5f; y[p] = s;", "nothing that all threads"),
    "ends_early": ("int j; float s = 0; for (int t = 0; t < m; t++) { if (x[t] < p) break; s += x[t]; } y[p] = s;",
                   "no loop whose ends are the same"),
    "own_end": ("float s = 0; for (int j = 0; j < p; j++) s += x[j % m]; y[p] = s;", "no loop whose ends are the same"),
    "downward": ("float s = 0; for (int j = m - 1; j >= 0; j--) s += x[j]; y[p] = s;", "no loop whose ends"),
    "by_twos": ("float s = 0; for (int j = 0; j < m; j += 2) s += x[j]; y[p] = s;", "no loop whose ends"),
    "an_array": ("float t[2] = {0, 1}; for (int j = 0; j < m; j++) t[0] += x[j] * t[1]; y[p] = t[0];", "arrays of its"),
    "no_value": ("float s; if (soft > 0) s = 0; else s = 1; for (int j = 0; j < m; j++) s += x[j]; y[p] = s;",
                 "no value before"),
}  # fmt: skip


def text(body, name="f", clause=""):
    return TEXT.format(name=name, body=body, clause=clause)


def applied(body, **how):
    return ALWAYS.apply(Version(program(text(body, **how))), Analyses())


@pytest.mark.parametrize("name", TAKEN)
def test_arrays_that_all_threads_read_are_walked_in_strips(name):
    body, arrays, kept = TAKEN[name]
    found = applied(body)
    assert isinstance(found, Applied), found.reason
    mined = found.version.program
    assert list(mined.mapping.cached) == arrays
    own = [stmt.array.name for stmt in walk_statements(mined.body) if isinstance(stmt, BlockArray)]
    assert [one.removesuffix("_of_threads") for one in own] == kept
    assert {remark.subject for remark in found.remarks if remark.taken} == set(arrays)
    assert isinstance(ALWAYS.apply(found.version, Analyses()), NotApplied)
    assert program(metafork_text(mined)).body == mined.body


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_stay(name):
    body, why = LEFT[name]
    found = applied(body)
    assert isinstance(found, NotApplied)
    assert why in found.reason


def test_what_is_explained_of_an_array_is_that_it_goes_in_strips():
    def remarks(body):
        found = explanation(as_read(text(body)), strategies(None), Analyses())
        return [(one.taken, one.reason) for one in found if (one.topic, one.subject) == ("shared memory", "x")]

    ((taken, reason),) = remarks(WORK)
    assert taken
    assert "walk in strips" in reason
    ((taken, reason),) = remarks(SUM)
    assert not taken
    assert "grows with the data" in reason


@pytest.mark.parametrize(("rounds", "walked"), [(1024, False), (1025, True)])
def test_a_window_of_a_constant_size_that_is_taken_out_is_walked_where_it_is_several_strips(rounds, walked):
    body = f"float s = 0; for (int j = 0; j < {rounds}; j++) s += table[j]; y[p] = s;"
    whole = program(text(body))
    assert whole.mapping.cached == ("table",)
    found = ALWAYS.apply(Version(whole.mapped(cached=())), Analyses())
    assert isinstance(found, Applied) == walked


def test_there_is_work_for_what_is_read():
    assert isinstance(STRATEGY.apply(Version(program(text(WORK))), Analyses()), Applied)
    found = STRATEGY.apply(Version(program(text(SUM))), Analyses())
    assert isinstance(found, NotApplied)
    assert found.reason.startswith("3 operations for 1 elements are too few")
    assert isinstance(StripMining(work=3).apply(Version(program(text(SUM))), Analyses()), Applied)
    with pytest.raises(ValueError, match="from 0 to 64"):
        StripMining(work=-1)


def test_a_phase_has_what_it_needs_alone():
    body = "int a = p * 3, b = p + 7; float s = b; for (int j = 0; j < m; j++) s += x[j] * a; y[p] = s;"
    first, strip, last = (
        stmt for stmt in walk_statements(applied(body).version.program.body) if isinstance(stmt, Phase)
    )
    for phase, wanted, unwanted in ((first, "b", "a"), (strip, "a", "b"), (last, "s", "a")):
        names = {getattr(stmt, "name", "").rstrip("0123456789") for stmt in walk_statements(phase.body)}
        assert wanted in names
        assert unwanted not in names


def test_a_clause_decides_alone():
    def walks(clause):
        (tree,) = optimize(text(WORK, clause=clause), static="none").schedules
        return {any(stmt.name == "j_strip" for stmt in walk_statements(one.version.program.body)
                    if hasattr(stmt, "name")) for leaf in tree.leaves for one in leaf.variants}  # fmt: skip

    assert walks("") == {True, False}
    assert walks("cache()") == {False}


def test_leaves_say_what_is_in_shared_memory_in_the_end():
    """Where another array was taken out of shared memory before, it is not said that nothing is there."""
    four = text(
        "float a = 0, b = 0; for (int j = 0; j < m; j++) { a += 1 / (p - x[j]); b -= a; } z4[p][0] = a; z4[p][3] = b;"
    )
    (tree,) = optimize(four.replace("float z[n]", "float z4[n][4]"), static="none", machine="all").schedules
    named = {one.strategies: one.effects for leaf in tree.leaves for one in leaf.variants}
    assert named["strip_mining",] == ("x, z4 in shared memory", "loop over j in strips")
    assert named["caching", "strip_mining"] == ("x in shared memory", "loop over j in strips")
    assert named["caching",] == ("no shared memory",)


def test_short_of_registers_or_beside_other_mappings_nothing_is_done():
    plain = program(text(SUM))
    for version in (
        Version(plain, (Pipeline("rolled", ("O3-rolled",)),)),
        Version(with_results(plain, {0: 4})),
        Version(plain.mapped(cached=("x",))),
    ):
        assert isinstance(STRATEGY.apply(version, Analyses()), NotApplied)


def test_where_shared_memory_is_short_or_a_block_is_small_there_are_no_strips():
    (tree,) = optimize(text(WORK), static="none", machine="all").schedules
    found = {}
    for room, block in ((12288, 128), (100, 128), (12288, 32), (12288, 31)):
        program_ = running(tree, Z=room, n=512, m=512, B=block).version.program
        found[room, block] = (bool(program_.mapping.cached), results_of(program_))
    assert list(found.values()) == [(True, (1,)), (False, (4,)), (True, (1,)), (False, (1,))]


@pytest.mark.slow
def test_kernels_at_sizes_with_short_strips(tmp_path):
    points = [{**point, "soft": 0.5} for point in grid(n=(7, 12), m=(0, 1, 2, 8, 13), B=(1, 3, 4, 16))]
    cases = [
        Case(text(body, name), points, program=applied(body, name=name).version.program)
        for name, (body, _, _) in TAKEN.items()
    ]
    assert run(cases, tmp_path) == {}
