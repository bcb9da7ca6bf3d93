"""What strategies remark on arrays and loops, where it stands, and that hints do what they promise."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.explanation import explanation
from metafork.comprehensive.tree.remarks import place
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import Version
from metafork.strategies.strategy import NotApplied
from tests.metafork.interpreter import program
from tests.metafork.programs import MATMUL

DECLARED = (
    "int n, int m, int s, int B, const float a[n], const float b[n][n], const int lim[n], float y[n], float z[n][n]"
)


def nest(body, clause="", before=""):
    return f"""void f({DECLARED})
{{
  assert(B <= n);
  int blocks = n / (s * B);
  meta_schedule {clause} {{
    meta_for (int i = 0; i < blocks; i++) {{
      {before}
      meta_for (int u = 0; u < B; u++) {{
        {body}
      }}
    }}
  }}
}}
"""


def remarks(text):
    found = explanation(program(text), registry.strategies(None), Analyses())
    return {(remark.topic, remark.subject): remark for remark in found}


def at(text, span):
    return text[span.start : span.end]


def test_every_topic_of_the_matrix_product():
    found = remarks(MATMUL)
    assert {key for key, remark in found.items() if remark.taken} == {
        ("shared memory", "a"),
        ("shared memory", "b"),
        ("registers", "c"),
        ("grid", "the loop over w"),
    }
    left = {key: remark for key, remark in found.items() if not remark.taken}
    assert left.keys() == {("shared memory", "c"), ("grid", "the loop over k"), ("grid", "the loop over z")}
    assert at(MATMUL, found["shared memory", "b"].fault) == "b[B0 * k + z][q + x]"
    assert at(MATMUL, left["grid", "the loop over z"].fault) == "c[p][q + x]"
    assert at(MATMUL, left["grid", "the loop over z"].span).startswith("for (int z = 0; z < B0; z++)")


@pytest.mark.parametrize(
    ("text", "topic", "subject", "reason", "fault"),
    [
        (nest("y[i * B + u] = a[lim[u]];"), "shared memory", "a", "no known polynomial", "a[lim[u]]"),
        (nest("y[i * B + u] = a[u * u];"), "shared memory", "a", "not linear in u", "a[u * u]"),
        (nest("for (int k = 0; k < s; k++) y[i * B + u] += k;"),
         "grid", "the loop over k", "one element of y", "y[i * B + u]"),
        (nest("int q = 0; for (int k = 0; k < s; k++) { q = q + k; y[(i * s + k) * B + u] = q; }"),
         "grid", "the loop over k", "a block does other work", "q = 0"),
        (nest("for (int k = 0; k < s; k++) y[(i * s + k) * B + u] = k; z[u][i] = 1;"),
         "grid", "the loop over k", "a block does other work", "z[u][i] = 1;"),
        (nest("for (int k = 0; k < s; k++) { if (a[u] < k) break; y[(i * s + k) * B + u] = k; }"),
         "grid", "the loop over k", "may end early", None),
        (nest("int k = 0; while (k < s) { y[(i * s + k) * B + u] = k; k++; }"),
         "grid", "the while loop", "how often", None),
        (nest("for (int k = 0; k < m; k++) if (a[k] > 0) y[i * B + u] += a[k];", "cache()"),
         "registers", "y", "may not write y", "y[i * B + u]"),
    ],
)  # fmt: skip
def test_a_refusal_says_why_and_where(text, topic, subject, reason, fault):
    remark = remarks(text)[topic, subject]
    assert not remark.taken
    assert reason in remark.reason
    assert (None if remark.fault == NOWHERE else at(text, remark.fault)) == fault
    assert place(remark) != NOWHERE


HINTS = [
    (
        nest("for (int k = 0; k < lim[i * B + u]; k++) z[i * B + u][k] = b[i * B + u][k];"),
        nest("for (int k = 0; k < n; k++) if (k < lim[i * B + u]) z[i * B + u][k] = b[i * B + u][k];"),
        "let k run to a bound in parameters, and write if (k < lim[i * B + u]) inside",
        ("grid", "the loop over k"),
    ),
    (
        nest("for (int k = 0; k < lim[u]; k++) y[i * B + u] += a[k];"),
        nest("for (int k = 0; k < m; k++) if (k < lim[u]) y[i * B + u] += a[k];"),
        "let k run to a bound in parameters, and write if (k < lim[u]) inside",
        ("shared memory", "a"),
    ),
    (
        nest("for (int k = 0; k < n; k++) y[i * B + u] += a[k];"),
        nest("for (int k = 0; k < n; k++) y[i * B + u] += a[k];", "cache(a)"),
        "add cache(a)",
        ("shared memory", "a"),
    ),
    (
        nest("for (int k = 0; k < 16; k++) y[i * B + u] += a[i * 16 + k] + b[u][i];", "cache(b)"),
        nest("for (int k = 0; k < 16; k++) y[i * B + u] += a[i * 16 + k] + b[u][i];", "cache(b, a)"),
        "add cache(b, a)",
        ("shared memory", "a"),
    ),
    (
        nest("int h = lim[u], p = h ? i * B + u + 1 : i * B + u; y[i * B + u] = a[i * B + u] + a[p];", "cache(a)"),
        nest("int h = lim[u]; y[i * B + u] = a[i * B + u] + (h ? a[i * B + u + 1] : a[i * B + u]);", "cache(a)"),
        "write h ? a[i * B + u + 1] : a[i * B + u]",
        ("shared memory", "a"),
    ),
    (
        nest("for (unsigned k = 1; k <= s; k++) y[(i * s + k - 1) * B + u] = k;"),
        nest("for (unsigned k = 0; k < s; k++) y[(i * s + (k + 1) - 1) * B + u] = k + 1;"),
        "count from 0 while k < s, and write k + 1 inside",
        ("grid", "the loop over k"),
    ),
]


@pytest.mark.parametrize(("before", "after", "hint", "key"), HINTS)
def test_the_rewriting_that_a_hint_names_is_taken_up(before, after, hint, key):
    refused = remarks(before)[key]
    assert not refused.taken
    assert refused.hint == hint
    assert remarks(after)[key].taken


@pytest.mark.parametrize(
    "body",
    [
        "int h = lim[u], p = h ? i * B + u + 1 : i * B + u; h = 1 - h; y[i * B + u] = h + a[p];",
        "int h = lim[u], p = h ? i * B + u + 1 : i * B + u; p = p / 2; y[i * B + u] = a[p];",
        "int p = y[u] > 0 ? i * B + u + 1 : i * B + u; y[i * B + u] = 2; y[i * B + u] += a[p];",
        "y[i * B + u] = a[(i * B + u + 1) % m];",  # which may wrap twice
    ],
)
@pytest.mark.parametrize("clause", ["", "cache(a)"])
def test_no_hint_says_another_program(body, clause):
    assert remarks(nest(body, clause))["shared memory", "a"].hint == ""


@pytest.mark.parametrize(
    ("body", "subject"),
    [
        # a bound in parameters, or a start from 0, does not help
        ("for (int k = 0; k < lim[u]; k++) y[i * B + u] += k;", "the loop over k"),
        ("for (int k = 0; k < lim[u]; k++) y[i * B + u] += a[k] * a[k * k];", "a"),
        ("for (int k = 1; k < lim[0]; k++) y[(i * s + k - 1) * B + u] = k;", "the loop over k"),
        ("for (unsigned k = 1; k <= s; k++) y[i * B + u] += k;", "the loop over k"),
        # or makes another program: s - m may be below 0
        ("for (unsigned k = m; k < s; k++) y[(i * s + k) * B + u] = k;", "the loop over k"),
    ],
)
def test_no_hint_is_given_about_a_loop_that_is_not_taken_up_then(body, subject):
    topic = "shared memory" if subject == "a" else "grid"
    remark = remarks(nest(body))[topic, subject]
    assert not remark.taken
    assert remark.hint == ""


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 1; k <= s; k++) y[(i * s + k - 1) * B + u] = k;",
        "for (int k = m; k < m + s; k++) y[(i * s + k - m) * B + u] = k;",
        "for (int k = 0; k <= s; k++) z[i * B + u][k] = k;",
        "for (int k = s; k > 0; k--) y[(i * s + k - 1) * B + u] = k;",
        "for (int k = 0; k < s * B; k = B + k) y[i * s * B + k + u] = k;",
    ],
)
def test_a_loop_that_counts_otherwise_joins_the_grid_as_it_stands(body):
    assert remarks(nest(body))["grid", "the loop over k"].taken


@pytest.mark.parametrize(
    ("strategy", "text", "where"),
    [
        ("granularity", nest("for (int k = 0; k < lim[u]; k++) z[i * B + u][k] = 1;"), "lim[u]"),
        ("granularity", nest("for (int k = 0; k < s; k++) y[i * B + u] += k;"), "y[i * B + u]"),
        ("granularity", nest("y[i * B + u] = 1;"), ""),
        ("scalar_replacement", nest("for (int k = 0; k < m; k++) if (a[k] > 0) y[i * B + u] += 1;", "cache()"),
         "y[i * B + u]"),
    ],
)  # fmt: skip
def test_not_applied_has_the_place_at_fault(strategy, text, where):
    (chosen,) = registry.strategies([strategy])
    result = chosen.apply(Version(program(text)), Analyses())
    assert isinstance(result, NotApplied)
    assert at(text, result.span) == where


def test_an_array_that_is_kept_after_all_is_not_remarked_as_left():
    found = explanation(program(MATMUL), registry.strategies(None), Analyses())
    registers = [remark for remark in found if remark.topic == "registers"]
    assert [(remark.subject, remark.taken) for remark in registers] == [("c", True)]


STENCIL = """
void f(int n, int m, int k, int B, const float p[k][n][m], float q[k][n][m])
{{
  meta_schedule meta_block(B, B) {{
    meta_for (int y = 9; y < n - 9; y++)
      meta_for (int x = 9; x < m - 9; x++) {{
        float t = 0;
        for (int r = 0; r < 8; r++) t += {read};
        q[8][y][x] = t;
      }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("read", "taken"),
    [
        ("p[8][y][x + r]", True),
        ("p[8][y][x + r] + p[8][y][x - r]", True),
        ("p[8 + r][y][x]", False),
        ("p[9 + r][y][x] + p[8 - r][y][x]", False),
        ("p[8][y][x + r] + p[9 + r][y][x] + p[7 - r][y][x]", False),
        ("p[8][y][x + r] + p[8][y + r][x]", True),
    ],
)
def test_what_one_thread_reads_once_stays_out_of_shared_memory(read, taken):
    assert remarks(STENCIL.format(read=read))["shared memory", "p"].taken == taken
