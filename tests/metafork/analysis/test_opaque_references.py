import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.analysis.facts import program_facts
from metafork.analysis.opaque_references import references_with_opaque
from tests.metafork.programs import program

B, ROUND = Polynomial.symbol("B"), Polynomial.symbol("round 1")
THREADS = "meta_for (int t = 0; t < B; t++)"


def written(body):
    """Return the one write to ``s``, and the opaque values in its index."""
    subject = program(f"""
    void f(int n, int B, int m, float a[n], float b[n]) {{
      int d = n / B;
      meta_schedule cache() {{
        meta_for (int i = 0; i < d; i++) {{
          float s[8 * B];
          {body}
          {THREADS} b[i * B + t] = s[t];
        }}
      }}
    }}""")
    found, _, opaque = references_with_opaque(subject, program_facts(subject))
    (write,) = (one for one in found if one.array == "s" and one.writes)
    return write, opaque.behind(name for index in write.indices if index is not None for name in index.symbols)


@pytest.mark.parametrize(
    "loop",
    [
        "while (k < n) { s[k] = 1; k += B; }",
        "while (k < n) { s[k] = 1; q += 2; k += B; }",
        "while (k < n) { s[k] = 1; q += 2; r = r * 2; k = B + k; }",
        "for (; a[k] > 0; k = k + B) { if (q > 3) continue; s[k] = 1; }",
        "for (int h = 3; a[h] > 0; h = h + B) s[h] = 1;",
        "unsigned h = 3; while (h < 100u) { s[h] = 1; h += (unsigned)B; }",
    ],
)
def test_what_is_added_once_a_round_is_known_in_every_round(loop):
    write, _ = written(f"{THREADS} {{ int k = 3, q = (int)a[i], r = 1; {loop} }}")
    assert write.indices == (3 + B * ROUND,)
    assert not write.bounded


@pytest.mark.parametrize(
    "loop",
    [
        "while (k < n) { s[k] = 1; k += (int)a[k]; }",
        "while (k < n) { s[k] = 1; if (q > 3) k += B; }",
        "while (k < n) { s[k] = 1; k += B; if (q > 3) continue; k += B; }",
        "while (k < n) { s[k] = 1; k = q + B; }",
        "while (k < n) { s[k] = 1; k = B + q; }",
    ],
)
def test_what_is_added_now_and_then_is_not_known(loop):
    write, _ = written(f"{THREADS} {{ int k = 3, q = (int)a[i]; {loop} }}")
    assert write.indices == (None,)


def test_an_access_is_bounded_where_all_its_loops_are():
    loop = "while (k < n) { k += B; }"
    assert written(f"{THREADS} {{ int k = 0; {loop} s[t] = 1; }}")[0].bounded
    assert not written(f"{THREADS} {{ int k = 0; while (k < n) {{ s[t] = 1; k += B; }} }}")[0].bounded
    assert not written(f"int k = 0; while (k < n) {{ {THREADS} s[t] = 1; k += B; }}")[0].bounded
    assert written(f"for (int k = 0; k < n; k++) {{ {THREADS} s[t] = 1; }}")[0].bounded


@pytest.mark.parametrize(
    ("before", "loop", "low", "high"),
    [
        ("int c = 0;", "while (m > c) { USE c = 1 - c; }", 0, 1),
        # What one loop leaves is what the next one begins with.
        ("int h = 0; while (m > h) { h = 1 - h; } int c = h;", "while (m > c) { USE c = 1 - c; }", 0, 1),
        ("int h = 1; while (m > h) { h *= 2; } int c = h;", "while (m > c) { USE c *= 2; }", 1, None),
        ("int c = 4;", "while (m < c) { USE c /= 2; }", 0, 4),
    ],
)
def test_a_scalar_of_a_block_keeps_its_bounds(before, loop, low, high):
    write, (value,) = written(f"{before} {loop.replace('USE', f'{THREADS} s[c] = 1;')}")
    (index,) = write.indices
    assert value.once_a_block
    assert (at_most(low, index) in value.constraints) == (low is not None)
    assert list(dict.fromkeys(c for c in value.constraints if c.left == index)) == (
        [at_most(index, high)] * (high is not None)
    )
