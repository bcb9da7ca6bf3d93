"""What host code announces, and which functions are not followed."""

import pytest

from metafork.frontend import parse
from metafork.ir.messages.source import Source

LOOPS = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++)"
SCHEDULE = "meta_schedule { " + LOOPS + " a[i] = t + b[i]; }"
BEFORE = (
    "int g;\nstatic const int fixed = 3;\nfloat table[8];\nfloat helper(int v);\nstruct point { float v[2]; };\n"
    "#ifdef A\n#define MAYBE t = 1\n#endif\n#define LOOP(v) for (int v = 0; v < (int)b[0]; v++)\n"
    "#define TWO(v) v = 1; t = 2;\n#define FOR(v) for (int v = 0; v < n; v++)\n"
    "void f(int n, int t, float a[n], float b[n], float M[n][n], float *p, struct point *q)\n"
)


def followed(code):
    unit = parse(Source("test.mf", f"{BEFORE}{{\n{code}\n}}\n"))
    return unit.source.text, unit.functions[0].accesses


def index(one, trips):
    """An index, with `2 x n` for steps of 2, of which there are n, and `*` for the whole extent."""
    if one is None:
        return "[*]"
    parts = [one.start, *(f"{step} x {trips[loop]}" for loop, step in one.steps)]
    return f"[{' + '.join(part.replace('(long long)', '').replace('LL', '') for part in parts)}]"


def told(access):
    """An access in the words of ``announced``; a call that announces itself is a blank."""
    if access.kind in ("call", "freed"):
        return f"{'freed' if access.kind == 'freed' else ''} {access.name}"
    how = "?RWU"[access.reads + 2 * access.writes]
    return f"{how} {access.name or '*'}{''.join(index(k, access.trips) for k in access.indices)}"


def announced(code):
    """What stands in front of which text: `R a[0]`, `W a`, `U *` for everything; `U`: read and written."""
    text, found = followed(code + " " + SCHEDULE)
    assert found is not None
    lines = []
    for place in found.places:
        words = [told(one) for one in place.accesses]
        lines.append((text[place.start : place.end].split("\n")[0], place.kind, words))
    return lines


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("a[3] = 1;", ["W a[3]"]),
        ("a[t] += 1;", ["U a[t]"]),
        ("a[t++] = 1;", ["U a"]),
        ("a[t + 1] = a[2 * t - 1];", ["R a[(2 * t - 1)]", "W a[(t + 1)]"]),
        ("a[t / 2] = 1;", ["W a[(t / 2)]"]),
        ("a[t / n] = 1;", ["U a"]),
        ("a[t % 4] = 1;", ["W a[(t % 4)]"]),
        ("a[(unsigned)t + 1] = 1;", ["W a[(unsigned int)((unsigned int)t + 1)]"]),
        ("a[(long)t] = 1;", ["W a[t]"]),
        ("a[g] = b[g];", ["R g", "R b", "U a"]),
        ("t = (int)a[g];", ["R g", "R a[g]"]),
        ("a[fixed] = 0;", ["W a[fixed]"]),
        ("M[t][t] = 1;", ["W M[t][t]"]),
        ("for (int k = 0; k < n; k++) M[t][k] = 0;", ["W M[t][0 + 1 x n]"]),
        ("for (int k = 0; k < n; k++) M[k][t] = 0;", ["W M[0 + 1 x n][t]"]),
        (
            "for (int k = t; k <= n; k += 3) M[k][k + 1] = 0;",
            ["W M[t + 3 x ((- t + n + 3) / 3)][(t + 1) + 3 x ((- t + n + 3) / 3)]"],
        ),
        ("for (int k = n - 1; k > 2; k--) a[n - k] += 1;", ["U a[1 + 1 x (n - 3)]"]),
        ("for (int k = 0; k < n; k++) if (t) a[k] = 0;", ["U a[0 + 1 x n]"]),
        ("for (int k = 0; k < n; k++) { a[k] = 0; if (t) break; }", ["U a[0 + 1 x n]"]),
        ("for (int k = 0; k < n && t; k++) a[k] = 0;", ["U a[0 + 1 x n]"]),
        ("for (int k = 0; k < n; k++) for (int l = 0; l < k; l++) M[k][l] = 0;", ["U M[0 + 1 x n][0 + 1 x (n - 1)]"]),
        (
            "for (int k = 0; k < n; k += 4) for (int l = k; l < k + 4; l++) a[l] = 0;",
            ["W a[0 + 4 x ((n + 3) / 4) + 1 x 4]"],
        ),
        ("for (int k = 0; k < n; k++) for (int l = 0; l < k * t; l++) a[l] = 0;", ["U a"]),
        ("for (int k = 0; k < n; k++) for (int l = 0; l < 3; l++) a[l] = 0;", ["W a[0 + 1 x 3]"]),
        (
            "for (int k = 1; k < n; k++) b[k] = a[k - 1] + a[k] + a[k + 1];",
            ["R a[0 + 1 x (n - 1) + 1 x 3]", "W b[1 + 1 x (n - 1)]"],
        ),
        ("for (int k = 0; k < n; k++) a[2 * k] = a[2 * k + 1] = 0;", ["W a[0 + 2 x n + 1 x 2]"]),
        ("for (int k = 0; k < n; k++) a[3 * k] = a[3 * k + 2] = 0;", ["U a[0 + 3 x n + 1 x 3]"]),
        ("for (int k = 0; k < n; k++) a[k] = a[k + 500] ;", ["R a[500 + 1 x n]", "W a[0 + 1 x n]"]),
        ("for (int k = 0; k < n; k++) { k += t; a[k] = 0; }", ["U a"]),
        ("for (int k = 0; k < t--; k++) a[k] = 0;", ["U a"]),
        ("for (short k = 0; k < n; k++) a[k] = 0;", ["U a"]),
        (
            "for (unsigned k = 0; k < (unsigned)n; k++) a[k] = 0;",
            ["W a[0 + 1 x metafork_trips((unsigned long long)0, (unsigned long long)(unsigned int)n)]"],
        ),
        ("for (unsigned k = 0; k < (unsigned)n; k++) a[k + 1] = 0;", ["U a"]),
        ("for (long k = 0; k < n; k++) p[k * n + t] = 0;", ["W p[t + n x n]"]),
        ("for (int k = 0; k < n; k++) *(p + k) = 0;", ["W p[0 + 1 x n]"]),
        ("while (t--) switch (t) { for (int k = 0; k < n; k++) { case 1: a[k] = 0; } }", ["U a"]),
        ("int k; for (k = 0; k < n; k++) ; a[k] = 0;", ["W a[k]"]),
        ("for (int k = 0; k < n; g++, k++) a[k] = 0;", ["U g", "U a"]),
        ("for (; t < 4; t++) a[3] = M[t][0];", ["R M[*][0]", "U a[3]"]),
        ("FOR(k) a[k] = 1;", ["W a[0 + 1 x n]"]),
        ("t ? (a[0] = 1) : (b[0] = 1);", ["U a[0]", "U b[0]"]),
        ("if (t && (a[0] = b[1])) ;", ["R b[1]", "U a[0]"]),
        ("*p = 1;", ["W p[0]"]),
        ("p[t] = 1;", ["W p[t]"]),
        ("p[t / n] = 1;", ["U *"]),
        ("*p++ = 1;", ["U *"]),
        ("for (int k = 0; k < n; k++) t += p[k];", ["R p[0 + 1 x n]"]),
        ("q->v[0] = 1;", ["U *"]),
        ("t = (int)q[0].v[1];", ["R *", "R q[0]"]),
        ("table[2] = 1;", ["W table[2]"]),
        ("g++;", ["U g"]),
        ("t = (int)helper(3);", ["U *"]),
        ("t = (int)sqrt(a[1]);", ["R a[1]"]),
        ('printf("%f", a[1]);', ["R a[1]"]),
        ('printf("%p", a);', ["U *"]),
        ("int v = (int)a[0];", ["R a[0]"]),
        ("float v[n]; v[0] = a[0];", ["W v[0]", "R a[0]"]),
        ("t = ({ a[0]; });", ["U *"]),
        ("float *r = M[t];", []),
        ("t = sizeof a[0];", []),
        ("p = &a[t];", []),
        ("t = n + 1;", []),
        ("struct point w; t = (int)w.x;", []),
        ("struct point w; w.v[0] = 1;", ["U *"]),
    ],
)
def test_what_a_statement_announces(statement, words):
    found = [word for _, _, all_words in announced(statement) for word in all_words]
    assert sorted(found) == sorted(words)


OWN = (
    "static float sum(int m, const float *v) { float s = 0; for (int i = 1; i < m; i++) s += v[i]; return s; }\n"
    "static void put(float *v, int m) { for (int i = 0; i < m; i++) v[i] = 1; }\n"
    "static void maybe(float *v, int m) { for (int i = 0; i < m; i++) { if (i > 3) return; v[i] = 1; } }\n"
    "static float both(float *v, float *w) { return sum(3, v) + w[0]; }\n"
    "static float again(int m, float *v) { return m ? again(m - 1, v) : v[m]; }\n"
    "static float moving(float *v) { v += 2; return v[0]; }\n"
    "static void row(int m, float M[m][m], int k) { M[k][m - 1] = 0; }\n"
    "static void bytes(char *v) { v[0] = 1; }\n"
    "static float global(int k) { g = k; return table[k]; }\n"
    "static float shadow(int k) { float table[8] = {0}; return table[k]; }\n"
    "static float other(float *v) { return helper(2); }\n"
    'static void shown(int m, float v[m]) { printf("%p", v); }\n'
    "void stepping(int n, float a[n], float b[n]) { SCHEDULE }\n".replace("SCHEDULE", SCHEDULE.replace("t + ", ""))
)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("t = (int)sum(n, a);", ["R a[1 + 1 x (n - 1)]"]),
        ("int r = (int)sum(4, &M[t][2]);", ["R M[t][3 + 1 x 3]"]),
        ("int r = (int)sum(4, M[t + 1]);", ["R M[(t + 1)][1 + 1 x 3]"]),
        ("int r = (int)sum(t, p + 2);", ["R p[3 + 1 x (t - 1)]"]),
        ("t = (int)sum(a[0], a);", ["R a", "R a[0]"]),
        ("put(a, n);", ["W a[0 + 1 x n]"]),
        ("maybe(a, n);", ["U a[0 + 1 x n]"]),
        ("if (t) put(a, n);", ["W a[0 + 1 x n]"]),
        ("for (int k = 0; k < n; k++) put(M[k], 2);", ["W M[0 + 1 x n][0 + 1 x 2]"]),
        ("t = (int)both(a, b);", ["R a[1 + 1 x 2]", "R b[0]"]),
        ("t = (int)again(3, a);", ["U *"]),
        ("t = (int)moving(a);", ["R *"]),
        ("row(n, M, t);", ["W M[t][(n - 1)]"]),
        ("row(t, M, 2);", ["U *"]),
        ("float v[2] = {a[t], 0};", ["R a[t]"]),
        ("bytes((char *)a);", ["U *"]),
        ("t = (int)global(t);", ["R table", "U g"]),
        ("float table = 1; t = (int)global(t);", ["R *", "U g"]),
        ("t = (int)shadow(t);", []),
        ("t = (int)other(a);", ["U *"]),
        ("shown(n, a);", ["U *"]),
        ("stepping(n, a, b);", [" "]),
        ("stepping(n, M[t], p);", [" "]),
        ("stepping((int)b[0], a, b);", ["R b[0]", " "]),
        ("a[0] = 1, stepping(n, a, b);", ["U *"]),
        ("memset(a, 0, n * sizeof(float));", ["W a[0 + 1 x n]"]),
        ("memset(a, 0, n * sizeof(double));", ["U a"]),
        ("memset(p, 0, n);", ["U *"]),
        ("memcpy(&M[t][0], p, sizeof *p * 4);", ["R p[0 + 1 x 4]", "W M[t][0 + 1 x 4]"]),
        ("if (fwrite(a, sizeof(float), n, stdout)) ;", ["R a[0 + 1 x n]"]),
        ("free(p);", ["freed p"]),
        ("if (t) free(p);", ["freed p"]),
        ("for (int k = 0; k < t; k++) free(p);", ["U *"]),
        ("t ? free(p) : (void)0;", ["U *"]),
        ("free(p + 1);", ["U *"]),
        ("free(a);", ["U *"]),
        ("struct point w; w = *(struct point *)0; srand(t);", ["R *"]),
    ],
)
def test_what_calls_announce(statement, words):
    head, rest = BEFORE.rsplit("void f(", 1)
    text = f"{head}{OWN}void f({rest}{{\n{statement} {SCHEDULE}\n}}\n"
    unit = parse(Source("test.mf", text))
    found = [one for place in unit.functions[-1].accesses.places for one in place.accesses]
    assert sorted(told(one) for one in found) == sorted(words)


def test_functions_that_call_those_with_schedules_are_followed():
    calls = OWN + (
        "void all(int n, float a[n], float b[n]) { for (int k = 0; k < 9; k++) { stepping(n, a, b); b[k] = 0; } }\n"
        "void twice(int n, float a[n], float b[n]) { all(n, a, b); all(n, b, a); }\n"
        "void strange(int n, float a[n], float b[n]) { NEVER_SEEN(a); stepping(n, a, b); }\n"
    )
    unit = parse(Source("test.mf", BEFORE.rsplit("void f(", 1)[0] + calls))
    assert [one.name for one in unit.callers if one.accesses is not None] == ["all", "twice"]
    assert [told(one) for one in unit.callers[0].accesses.places[-1].accesses] == ["W b[k]"]
    assert [told(one) for place in unit.callers[1].accesses.places for one in place.accesses] == [" ", " "]


def test_what_is_overwritten_is_announced_behind_what_is_read():
    ((_, _, words),) = announced("a[t] = b[t] + a[0];")
    assert words[-1] == "W a[t]"


def test_heads_of_loops_around_schedules_announce_whenever_they_are_evaluated():
    code = "for (int k = (int)a[1]; a[k] > 0; b[k] = ++k) { " + SCHEDULE + " } while (b[0] > 1) " + SCHEDULE
    found = announced(code)
    assert [(text, kind, words) for text, kind, words in found if kind == "expression"] == [
        ("a[k] > 0", "expression", ["R a[k]"]),
        ("b[k] = ++k", "expression", ["U b"]),
        ("b[0] > 1", "expression", ["R b[0]"]),
    ]
    assert found[0][1:] == ("statement", ["R a[1]"])


def test_loops_with_a_label_announce_inside():
    found = announced("for (int k = 0; k < 2; k++) { again: a[k] = 1; } if (t++ < 3) goto again;")
    assert [(kind, words) for _, kind, words in found] == [("statement", ["W a[k]"])]


@pytest.mark.parametrize(
    "code",
    [
        "MAYBE; " + SCHEDULE,
        "NEVER_SEEN(a); " + SCHEDULE,
        "LOOP(k) " + SCHEDULE,
        "\n#pragma omp parallel for\nfor (int k = 0; k < n; k++) { " + SCHEDULE + " }",
        '_Pragma("omp parallel") { ' + SCHEDULE + " }",
        "\n#pragma omp task\na[1] = 0;\n#pragma omp taskwait\n" + SCHEDULE,
        "void *l = &&there; goto *l; there: " + SCHEDULE,
        "float w[8]; meta_schedule { " + LOOPS + " w[i] = 1; } if (t) goto end; end: ;",
        "for (float w[2] = {1, 2}; t < 3; t++) " + SCHEDULE,
    ],
)
def test_functions_that_are_not_followed(code):
    assert followed(code)[1] is None


@pytest.mark.parametrize(
    "code",
    [
        "TWO(a[0]) " + SCHEDULE,
        "if (t) TWO(a[0]) " + SCHEDULE,
        "FOR(k) { " + SCHEDULE + " }",
        "FOR(k) " + SCHEDULE,
        "\n#pragma metafork schedule(stride(32))\n" + SCHEDULE,
        "\n#pragma omp parallel for\nfor (int k = 0; k < n; k++) a[k] = 0; " + SCHEDULE,
        "\n#pragma scop\n" + SCHEDULE + "\n#pragma endscop\n",
        "\n#pragma omp barrier\n" + SCHEDULE,
        '_Pragma("omp parallel for") for (int k = 0; k < n; k++) a[k] = 0; ' + SCHEDULE + ' _Pragma("omp flush")',
        "char text[8]; text[0] = 0; (void)text; end: " + SCHEDULE + " if (t--) goto end;",
        "float w[n]; meta_schedule { " + LOOPS + " w[i] = 1; } if (t) goto end; end: ;",
        "\n#ifdef A\nfloat *r = a; r[0] = 1;\n#else\na[1] = 0;\n#endif\n" + SCHEDULE,
    ],
)
def test_functions_that_are(code):
    assert followed(code)[1] is not None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("\n#pragma omp simd\n#pragma GCC ivdep\nfor (int k = 0; k < n; k++) a[k] = 0;", "#pragma omp simd"),
        ("if (t)\n#pragma unroll\nfor (int k = 0; k < n; k++) a[k] = 0;", "#pragma unroll"),
        ('_Pragma("GCC ivdep") for (int k = 0; k < n; k++) a[k] = 0;', '_Pragma("GCC ivdep") for'),
        ('\n#define IV _Pragma("x")\nif (t) IV for (int k = 0; k < n; k++) a[k] = 0;', "IV for"),
        ('\n#define ALL(k) _Pragma("x") for (int k = 0; k < n; k++)\nALL(k) a[k] = 0;', "ALL(k)"),
    ],
)
def test_what_stands_behind_a_pragma_is_announced_in_front_of_it(code, words):
    ((text, _, _),) = announced(code)
    assert text.startswith(words)


def test_names_under_a_condition_are_not_announced_outside_of_it():
    code = "for (int k = 0; k < 3; k++) {\n#ifdef A\nfloat *r = a; r[0] = 1;\n#endif\n}"
    ((_, _, words),) = announced(code)
    assert words == ["U *"]
