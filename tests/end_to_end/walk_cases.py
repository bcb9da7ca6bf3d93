"""Indices that memory decides, of arrays whose size nobody tells: the host goes through them in front of the kernels.

The functions are those of ``construct_cases``.  A function around gives them numbers ``at`` and as many elements as
they touch; where ``leaf`` is false, the host cannot find that out.
"""

from tests.end_to_end.construct_cases import Construct, loop

POINTS = ((13, 3, 4), (1, 2, 8), (40, 5, 16), (8, 9, 3))


def walked(body, numbers="(i * 7 + 3) % n", count="n", before="", leaf=True, of="int"):
    """Return a case whose function is given ``n + 1`` numbers that an expression in ``i`` says."""
    called = f"static void with_NAME(int n, int m, int B, const {of} *at, const float *x, float *y) {{ {body} }}"
    around = (
        f"void NAME(int n, int m, int B, float *x, float *y) {{ {of} at[64];"
        f" for (int i = 0; i <= n; i++) at[i] = {numbers}; with_NAME(n, m, B, at, x, y); }}"
    )
    return Construct(f"{before}\n{called}\n{around}", sizes=(count, "n"), points=POINTS, leaf=leaf)


CSR = "float s = 0; for (int k = at[i]; k < at[i + 1]; k++) s += x[k]; y[i] = s;"

WALKS = {
    "a gather": walked(loop("y[i] = x[at[i]] + 1;")),
    "half of them": walked(loop("y[i] = x[at[i] / 2];"), count="(n - 1) / 2 + 1"),
    "one for all": walked(loop("for (int k = 0; k < m; k++) y[i] += x[at[3 % n]] * k;"), "n - 1"),
    "under a condition": walked(
        loop("if (at[i] >= 0 && at[i] < m) y[i] = x[at[i]];"), "i * 3 - 4", count="m < 3 * n - 3 ? m : 3 * n - 3"
    ),
    "behind a condition": walked(loop("y[i] = at[i] < 0 || x[at[i]] > 3 ? 1 : x[at[i]];"), "i % 2 ? -i : n - 1 - i"),
    "by a choice": walked(loop("y[i] = at[i] > 2 ? x[at[i]] : 7;")),
    "clamped": walked(loop("int k = at[i]; k = k < 0 ? 0 : k; if (k > n - 1) k = n - 1; y[i] = x[k];"), "i * 5 - 3"),
    "through two": walked(loop("y[i] = x[at[at[i]]];"), "(i + 2) % n"),
    "rows of a sparse matrix": walked(loop(CSR), "i * (i + 1) / 2", count="n * (n + 1) / 2"),
    "an empty sum": walked(loop(CSR), "5", count="0"),
    "a while loop": walked(
        loop("int k = at[i], s = 0; while (k > 0) { s += x[k - 1]; k -= 2; } y[i] = s;"), count="n - 1 + !(n - 1)"
    ),
    "a walk that is left early": walked(
        loop(
            "float s = 0; for (int k = 0; k < m; k++) { if (at[(i + k) % n] == 2) break; s += x[at[(i + k) % n]]; }"
            " y[i] = s;"
        )
    ),
    "some left out": walked(
        loop("float s = 0; for (int k = 0; k < n; k++) { if (at[k] % 2) continue; s += x[at[k] / 2]; } y[i] = s;"),
        count="(n - 1) / 2 + 1",
    ),
    "counted in the loop": walked(
        loop(
            "int next = 0; float s = 0; for (int k = 0; k < n; k++) if (at[k] > 1) { s += x[next]; next++; } y[i] = s;"
        ),
        count="n > 2 ? n - 2 : 0",
    ),
    "unsigned numbers": walked(loop("y[i] = x[at[i] - 1u];"), "(i % n) + 1", of="unsigned"),
    "numbers of one byte": walked(loop("y[i] = x[at[i]];"), of="unsigned char"),
    "numbers of eight bytes": walked(loop("y[i] = x[at[i] * 1L];"), of="long long"),
    "in front of where it points": walked(
        "const float *p = x + n - 1;" + loop("y[i] = p[at[i]];"), "-((i * 3 + 1) % n)"
    ),
    "a scatter": walked(loop("\n#pragma metafork disjoint(y)\ny[at[i]] = x[i];"), "n - 1 - i"),
    "an update": walked(
        "int z[3] = {0}, *p = z;" + loop("meta_atomic p[at[i] % 3]++;") + "y[2 % n] = z[0] + z[2] * n;"
    ),
    "in a block": walked(
        "meta_schedule { meta_for (int b = 0; b < (n + 3) / 4; b++) { int first = at[b];"
        " meta_for (int t = 0; t < 4; t++) if (b * 4 + t < n) y[b * 4 + t] = x[first] + t; } }",
        "n - 1 - i",
    ),
    "by a function": walked(
        loop("y[i] = at_NAME(n, at, x, i);"),
        before="static float at_NAME(int n, const int *at, const float *x, int i)"
        " { if (i % 3 == 1) return 2; int k = at[i]; return k < n ? x[k] : 0; }",
    ),
    "a walk for each of two schedules": walked(loop("y[i] = x[at[i]];") + loop("y[i] += x[at[n - 1 - i]];")),
    "behind a changed number": walked(
        "int own[64]; for (int t = 0; t < 3; t++) { for (int i = 0; i < n; i++) own[i] = (at[i] + t) % n;"
        + loop("y[i] += x[own[i]] * t;")
        + " }"
    ),
    "numbers that a schedule has made": walked(
        "int own[64];" + loop("own[i] = (at[i] + 1) % n;") + loop("y[i] = x[own[i]];")
    ),
    "numbers of the block": walked(
        "meta_schedule { meta_for (int b = 0; b < (n + 3) / 4; b++) { int t[4]; meta_for (int u = 0; u < 4; u++)"
        " t[u] = at[(b * 4 + u) % n]; meta_for (int u = 0; u < 4; u++) if (b * 4 + u < n)"
        " y[b * 4 + u] = x[t[3 - u]]; } }",
        leaf=False,
    ),
    "an index that an array of the schedule says": walked(loop("int k = y[i]; y[i] = x[k % n];"), leaf=False),
    "asked by a loop": walked(loop("int k = at[i]; while (k > 0 && x[k] > 5) k--; y[i] = k;"), leaf=False),
}
