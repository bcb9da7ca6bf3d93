"""Tables of pointers: rows that are named by numbers, or chosen; apart, alike, overlapping, of several lengths.

The functions are those of ``construct_cases``; ``x`` has ``3 * n`` elements, and a function around makes the table.
"""

from tests.end_to_end.construct_cases import Construct, loop

POINTS = ((13, 3, 4), (1, 2, 8), (40, 5, 16))


def rows(body, table="float **t", made="float *rows[] = {x, x + n, x + 2 * n};", before="", leaf=True):
    """Return a case whose function is given a table of rows of ``x``."""
    called = f"static void with_NAME(int n, int m, int B, {table}, float *y) {{ {body} }}"
    around = f"void NAME(int n, int m, int B, float *x, float *y) {{ {made} with_NAME(n, m, B, rows, y); }}"
    return Construct(f"{before}\n{called}\n{around}", sizes=("3 * n", "n"), points=POINTS, leaf=leaf)


def packed(body, table="float **t", made="rows[i] = x + (i * 7 % n) * m;", before="", leaf=True):
    """Return a case whose function is given a table of n rows of m elements of ``x``."""
    called = f"static void with_NAME(int n, int m, int B, {table}, float *y) {{ {body} }}"
    around = (
        "void NAME(int n, int m, int B, float *x, float *y) { float *rows[40];"
        f" for (int i = 0; i < n; i++) {made} with_NAME(n, m, B, (void *)rows, y); }}"
    )
    return Construct(f"{before}\n{called}\n{around}", sizes=("n * m", "n"), points=POINTS, leaf=leaf)


LOOP = "for (int k = 0; k < 3; k++)"

ROWS = {
    "rows by numbers": rows(loop("y[i] = t[0][i] + 2 * t[1][i] - t[2][i];")),
    "const rows of a const table": rows(loop("y[i] = t[0][i] + 2 * t[1][i];"), "const float *const *t"),
    "as many as are declared": rows(loop("y[i] = m > 3 ? t[2][i] : t[0][i] - t[1][i];"), "float *t[3]"),
    "rows by a counter": rows(loop(f"float s = 0; {LOOP} s += t[k][i] * (k + 1); y[i] = s;"), "float *const t[3]"),
    "rows that data choose": rows(
        loop("int k = (int)t[0][i] % 3; y[i] = t[i % 3][i] + t[k][n - 1 - i];"), "float *t[3]", leaf=False
    ),
    "rows that are written": rows(loop("t[2][i] = t[0][i] + t[1][i]; t[1][i] *= 2; y[i] = t[2][i];")),
    "a row that is chosen and written": rows(loop(f"{LOOP} t[k][i] += k * y[i];"), "float *t[3]"),
    "rows of several lengths": rows(
        loop("y[i] = t[0][i] + t[1][i % 2] * *t[2];"), made="float *rows[] = {x, x + n, x + 3 * n - 1};"
    ),
    "one row twice": rows(loop("y[i] = t[0][i] + t[1][n - 1 - i] + t[2][i];"), made="float *rows[] = {x, x, x + 1};"),
    "one row twice, written": rows(
        loop("t[0][i] = i; y[i] = t[1][i] + t[2][i];"), made="float *rows[] = {x, x, x + n};", leaf=False
    ),
    "rows that overlap, written": rows(
        loop("t[0][i] += 1; y[i] = t[1][i];"), made="float *rows[] = {x + 1, x};", leaf=False
    ),
    "a row beside an array": rows(loop("y[i] = t[0][i] + t[1][i];"), made="float *rows[] = {x, y};", leaf=False),
    "a local table": rows("float *u[2]; u[0] = t[1]; u[1] = y;" + loop("u[1][i] = u[0][i] * 2;"), leaf=True),
    "rows that change places": rows(
        "for (int s = 0; s < m; s++) { " + loop("t[1][i] = t[0][i] + s;") + " t[0][s % n] += 1;"
        " float *h = t[0]; t[0] = t[1]; t[1] = h; }" + loop("y[i] = t[0][i];")
    ),
    "what the host does to rows": rows(
        "for (int s = 0; s < 3; s++) { " + loop("t[1][i] += t[0][i] + s;") + " for (int k = 0; k < 2; k++)"
        " t[k][s % n] += k + 1; float *p = *t; p[n - 1] -= 1; }" + loop("y[i] = t[1][i];")
    ),
    "a table of the file": Construct(
        "static float *table_NAME[2];\nstatic void with_NAME(int n, int B, float *y) { "
        + loop("y[i] = table_NAME[0][i] - table_NAME[1][i];")
        + " }\nvoid NAME(int n, int m, int B, float *x, float *y)"
        " { table_NAME[0] = x; table_NAME[1] = x + n; with_NAME(n, B, y); }",
        sizes=("3 * n", "n"),
    ),
    "rows that may be null": rows(
        loop("y[i] = t[0][i] + (t[1] ? t[1][i] : 3); if (t[2] != NULL) y[i] += t[2][0];"),
        "float *t[3]",
        made="float *rows[] = {x, n > 13 ? NULL : x + n, NULL};",
    ),
    "pointers into rows": rows(
        loop(
            "const float *p = t[0] + i, *q = &t[1][n - 1]; y[i] = *p++ * q[-i]; const float *c = m > 3 ? t[0] : t[2];"
            " y[i] += c[i];"
        ),
        "float *t[3]",
    ),
    "rows that functions are given": rows(
        loop("y[i] = dot_NAME(t[0] + i, t[1], 1) + dot_NAME(t[2], t[1], n);"),
        before="static float dot_NAME(const float *p, const float *q, int n)"
        " { float s = 0; for (int k = 0; k < n; k++) s += p[k] * q[k]; return s; }",
    ),
    "rows of rows in two dimensions": rows(
        "meta_schedule meta_block(4, 4) { meta_for (int a = 0; a < 3; a++) meta_for (int i = 0; i < n; i++)"
        " t[a][i] += a; }" + loop("y[i] = t[2][i];"),
        "float *t[3]",
    ),
    "rows in grid and threads": rows(
        "meta_schedule { meta_for (int b = 0; b < (n + B - 1) / B; b++) meta_for (int j = 0; j < B; j++) {"
        " int i = b * B + j; if (i >= n) continue; y[i] = t[0][i] - t[1][i]; } }"
    ),
    "rows of structures": Construct(
        "typedef struct { float a, b; } two_NAME;\n"
        "static void with_NAME(int n, int B, const two_NAME **t, float *y) { "
        + loop("y[i] = t[0][i].a - t[1][i].b;")
        + " }\nvoid NAME(int n, int m, int B, void *x, float *y)"
        " { const two_NAME *rows[] = {x, (const two_NAME *)x + n}; with_NAME(n, B, rows, y); }",
        ("ff", "f"),
        sizes=("2 * n", "n"),
    ),
    "rows of other types": Construct(
        "typedef unsigned char *row_NAME;\nstatic void with_NAME(int n, int B, row_NAME *t, int *y) { "
        + loop("y[i] = t[0][i] + t[1][i] * 256; t[0][i] = 0;")
        + " }\nvoid NAME(int n, int m, int B, unsigned char *x, int *y)"
        " { unsigned char *rows[] = {x, x + n}; with_NAME(n, B, rows, y); }",
        ("c", "i"),
        sizes=("2 * n", "n"),
    ),
    "rows by the loop": packed(loop("for (int k = 0; k < m; k++) y[i] += t[i][k] * k;")),
    "rows by the loop of a const table": packed(
        loop("for (int k = 0; k < m; k++) y[i] += t[n - 1 - i][k] * k;"), "const float *const *const t"
    ),
    "rows in two dimensions": packed(
        "meta_schedule meta_block(4, 4) { meta_for (int i = 0; i < n; i++) meta_for (int k = 0; k < m; k++)"
        " t[i][k] = 2 * t[i][k] + k; }"
    ),
    "neighbours in rows": packed(loop("y[i] = t[i - 1][1] + t[i + 1][1] + t[i][m - 1];", "int i = 1; i < n - 1; i++")),
    "rows of another table": packed(
        "float *u[40]; for (int i = 0; i < n; i++) u[i] = t[n - 1 - i]; meta_schedule meta_block(4, 4) {"
        " meta_for (int i = 0; i < n; i++) meta_for (int k = 0; k < m; k++) t[i][k] = 5; }" + loop("y[i] = u[i][0];")
    ),
    "a row that may not be there": rows(
        loop("y[i] = m > 3 ? t[1][i] + 1 : t[0][i];"), made="float *rows[2] = {x, m > 3 ? x + n : NULL};"
    ),
    "a row that is not there for some": rows(
        loop("if (n < 4) continue; y[i] = t[2][i];"), made="float **rows = (float *[]){x, x, x};"
    ),
    "more rows than are declared": rows(loop("y[i] = t[2][i] - t[0][i];"), "float *t[2]"),
    "numbers of rows from memory": packed(
        loop("y[i] = t[(int)t[i][0] % n][m - 1];"), made="rows[i] = x + (n - 1 - i) * m;"
    ),
    "a triangle": packed(loop("for (int k = 0; k <= i && k < m; k++) y[i] += t[i][k];")),
    "some elements of rows": packed(loop("if (i % 3 == 1) { t[i][m - 1] += 1; y[i] = t[i][m - 2]; }")),
    "columns": packed(loop("for (int k = 0; k < n; k++) y[i] += t[k][i % m];")),
    "pointers to rows": packed(
        loop("const float *p = (const float *)t[i], *q = t[(i + 1) % n] + 1; y[i] = *p * 3 + q[0] - *(p + m - 1);")
    ),
    "rows that functions get": packed(
        loop("y[i] = dot_NAME(t[i], t[n - 1 - i], m);"),
        before="static float dot_NAME(const float *p, const float *q, int n)"
        " { float s = 0; for (int k = 0; k < n; k++) s += p[k] * q[k]; return s; }",
    ),
    "one row many times": packed(loop("for (int k = 0; k < m; k++) y[i] += t[i][k];"), made="rows[i] = x;"),
    "one row many times, written": packed(loop("t[i][1] = i; y[i] = 3;"), made="rows[i] = x;", leaf=False),
    "rows that overlap": packed(loop("for (int k = 0; k < m; k++) y[i] += t[i][k];"), made="rows[i] = x + i;"),
    "rows in an array that is written": packed(loop("y[i] = t[i][0] + 1;"), made="rows[i] = y;", leaf=False),
    "null pointers for rows that are not read": packed(
        loop("if (i % 2) y[i] = t[i][0];"), made="rows[i] = i % 2 ? x + i * m : NULL;"
    ),
    "rows that change places in a loop": packed(
        "for (int s = 0; s < 3; s++) { "
        + loop("t[i][s] = t[n - 1 - i][m - 1] + y[i];", "int i = 0; i < n / 2; i++")
        + " float *h = t[0]; t[0] = t[n - 1]; t[n - 1] = h; t[n / 2][0] += 1; }"
    ),
    "rows of numbers": Construct(
        "static void with_NAME(int n, int m, int B, int **at, const short *x, short *y) { "
        + loop("for (int k = 0; k < m; k++) y[i] += x[at[i][k]];")
        + " }\nvoid NAME(int n, int m, int B, short *x, short *y) { int all[40 * 8], *rows[40];"
        " for (int i = 0; i < n; i++) { rows[i] = all + i * m; for (int k = 0; k < m; k++) rows[i][k] = (i + k) % n; }"
        " with_NAME(n, m, B, rows, x, y); }",
        ("s", "s"),
        points=POINTS,
    ),
    "members that are tables": Construct(
        "typedef struct { int n, *count; float **v; } sparse_NAME;\n"
        "static void with_NAME(const sparse_NAME *A, int B, float *y) { const int n = A->n; "
        + loop(
            "float s = 0; const float *const v = (const float *const)A->v[i]; const int c = (const int)A->count[i];"
            " for (int k = 0; k < c; k++) s += v[k]; y[i] = s;"
        )
        + " }\nvoid NAME(int n, int m, int B, float *x, float *y) { float *rows[40]; int count[40];"
        " for (int i = 0; i < n; i++) rows[i] = x + 3 * i, count[i] = i % 4; sparse_NAME A = {n, count, rows};"
        " with_NAME(&A, B, y); }",
        sizes=("3 * n", "n"),
        points=POINTS,
    ),
    "members with the name of a pointer type": Construct(
        "typedef float *vec_NAME; typedef struct { int n; vec_NAME x; } two_NAME;\n"
        "static void with_NAME(two_NAME t, int B, float *y) { "
        + loop("y[i] = t.x[i] * 2;", "int i = 0; i < t.n; i++")
        + " }\nvoid NAME(int n, int m, int B, float *x, float *y) { two_NAME t = {n, x}; with_NAME(t, B, y); }"
    ),
    "a schedule in a macro": packed(
        "EACH_NAME(i, n, y[i] = t[i][0] + t[n - 1][m - 1])",
        before="#define EACH_NAME(i, n, body) meta_schedule meta_block(4) { meta_for (int i = 0; i < (n); i++)"
        " { body; } }",
    ),
    "a sum in a stated order": packed(
        "float sum = 0; meta_schedule meta_block(1) { meta_reduction(+: sum) meta_for (int i = 0; i < n; i++)"
        " for (int k = 0; k < m; k++) sum += t[i][k]; } y[0] = sum;"
    ),
    "what a pragma says of a row": rows(
        "\n#pragma metafork extents(t[1][n])\n" + loop("y[i] = t[0][i] + t[1][(int)t[0][i] % n];")
    ),
}
