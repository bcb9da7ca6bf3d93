"""Constructs of C in schedules: functions that are run on the CPU build and as C, with the same arrays.

Every function is ``void NAME(int n, int m, int B, X *x, Y *y)``.  ``x`` and ``y`` have ``sizes`` elements, which are C
expressions; ``elements`` says what one consists of: ``f`` and ``d`` are floating-point numbers, ``i``, ``l``, ``s`` and
``c`` integers of 4, 8, 2 and 1 bytes, ``b`` truth values.  ``points`` are values of n, m and B; a leaf runs at one.
"""

from msgspec import Struct


class Construct(Struct, frozen=True):
    """One function, or several of which the last is called; ``leaf`` is false where the serial code may run."""

    text: str
    elements: tuple[str, str] = ("f", "f")
    sizes: tuple[str, str] = ("n", "n")
    points: tuple[tuple[int, int, int], ...] = ((13, 3, 4),)
    leaf: bool = True


def loop(body, head="int i = 0; i < n; i++"):
    """Return a schedule over the elements."""
    return f"meta_schedule meta_block(B) {{ meta_for ({head}) {{ {body} }} }}"


def function(body, x="float x[n]", y="float y[n]", before=""):
    """Return the function of a case around a schedule and what stands beside it."""
    return f"{before}\nvoid NAME(int n, int m, int B, {x}, {y})\n{{ {body} }}"


DEAD = {
    "a dead scalar in a while": function(loop("int k; while (x[i] > 1) { x[i] /= 2; k = 1; } y[i] = x[i];")),
    "two in a do": function(
        loop("int k, l = 0; do { x[i] /= 2; if (x[i] > 7) k = 1; else l = 2; } while (x[i] > 1); y[i] = x[i];")
    ),
    "a dead counter": function(loop("int k; for (k = 0; x[i] > 1; k++) x[i] /= 2; y[i] = x[i];")),
    "at block level": function(
        "meta_schedule { meta_for (int i = 0; i < n / B; i++) { int other, s = 1; other = i;"
        " while (s < B) { s *= 2; other = s; meta_for (int j = 0; j < B; j++) y[i * B + j] += s; } } }"
    ),
    "dead in a loop in a loop": function(
        loop("while (x[i] > 1) { int l; x[i] /= 2; while (x[i] > 3) { l = i; l += 2; x[i] -= 1; } } y[i] = x[i];")
    ),
    "in functions": function(
        loop("y[i] = until_NAME(x[i]) + last_NAME(i);"),
        before="static float until_NAME(float a) { int steps = 0; while (a > 1) { a /= 2; steps++; } return a; }\n"
        "static int last_NAME(int a) { int k; do { k = a; a -= 3; } while (a > 0); return a; }",
    ),
    "narrow ones and arrays": function(
        loop(
            "int k = 0; unsigned char c; double t[3];"
            " while (x[i] > 1) { x[i] /= 2; k = k + 1; c = k; t[1] = k; if (x[i] < 0) { int q; q = c; break; } }"
            " y[i] = x[i];"
        )
    ),
}
LINES = {
    "a macro over lines with blanks behind the backslash": function(
        "EACH_NAME(i, n, y[i] += x[i])",
        before="#define EACH_NAME(i, n, body) \\  \n  meta_schedule meta_block(B) { \\\t\n"
        "    meta_for (int i = 0; i < (n); i++) { body; } \\ \n  }",
    ),
    "a line with a backslash and a blank": function(loop("y[i] = x[i] \\ \n + 1;")),
    "words over two lines": function(loop("flo\\\nat lo\\ \nng_name = x[i]; y[i] +\\\n= long_na\\\nme * 1\\\n2;")),
    "a pragma over lines": function(
        loop("y[i] = x[i];"), "float *x", "float *y", "#pragma metafork ext\\ \nents(x[n], \\\n  y[n])"
    ),
}
BOOLS = {
    "truth values are written": Construct(function(loop("y[i] = x[i] * 0.5f - 3;"), y="bool y[n]"), ("f", "b")),
    "truth values are read": Construct(
        function(loop("y[i] = x[i] ? 0 : y[i] + x[(i + 1) % n];"), x="const _Bool x[n]"), ("b", "f")
    ),
    "truth values are changed in place": Construct(
        function(
            loop(
                "bool own[3] = {2, 0, 1}, now = x[i]; own[1] = i & 6; own[2] += 3; x[i] ^= own[1];"
                " x[i] |= 256 * own[2] * (i % 3 == 0); x[i]++; now = !now;"
                " y[i] = now + own[0] + own[1] + own[2] + sizeof x[i];"
            ),
            x="bool *x",
            y="int *y",
        ),
        ("b", "i"),
    ),
    "truth values of a block": Construct(
        function(
            "meta_schedule cache(x) { meta_for (int i = 0; i < n / B; i++) { bool near[B];"
            " meta_for (int j = 0; j < B; j++) near[j] = x[i * B + j] * 5 - 2 * x[i * B];"
            " meta_for (int j = 0; j < B; j++) y[i * B + j] = near[(j + 1) % B] && !near[j]; } }",
            x="bool x[n]",
            y="bool y[n]",
        ),
        ("b", "b"),
    ),
    "a table of truth values": Construct(
        function(loop("y[i] = table_NAME[i % 4] + x[i];"), before="static const bool table_NAME[4] = {1, 0, 7, true};")
    ),
    "truth values in structures": Construct(
        function(
            loop("x[i].wall = x[i].x - 3; x[i].x += x[i].wall; struct two_NAME q = y[i]; q.b = !q.a; y[i] = q;"),
            x="struct cell_NAME x[n]",
            y="struct two_NAME y[n]",
            before="struct cell_NAME { bool wall; float x; }; struct two_NAME { bool a, b; };",
        ),
        ("bf", "bb"),
    ),
}
HEADS = {
    head: Construct(
        function(loop("y[i + 4] = x[i + 4] + 1;", head), "float x[n + 110]", "float y[n + 110]").replace(
            "{ meta_schedule", "{ size_t N = n, M = m; meta_schedule"
        ),
        sizes=("n + 110", "n + 110"),
        points=((13, 3, 4), (2, 2, 5)),
    )
    for head in (
        "int i = 1; i < (int)N - 1; i++",
        "ptrdiff_t i = 1; i < (ptrdiff_t)N - 1; i++",
        "long i = (long)N - 2; i >= (long)1; i -= 2",
        "int i = 0; i < n && i < INT_MAX; i++",
        "size_t i = 0; i + 1 < N; i++",
        "int i = 0; i + 1 < n; i++",
        "size_t i = 1; i + M <= N + 2; i++",
        "int i = 'a'; i <= 'g'; i++",
    )
}


def both_levels(update, op="+", type_="int", start="0", over="int"):
    """Return a reduction with the clause in front of the blocks and of the threads."""
    return Construct(
        f"""
        static {type_} sum_NAME(int n, int B, const {type_} x[n]) {{
          {type_} sum = {start};
          meta_schedule {{ meta_reduction({op}: sum) meta_for ({over} i = 0; i < (n + B - 1) / B; i++)
            meta_reduction({op}: sum) meta_for ({over} j = 0; j < B; j++) {{ {over} p = i * B + j; {update} }} }}
          return sum;
        }}
        void NAME(int n, int m, int B, {type_} x[n], {type_} y[n]) {{ y[0] = sum_NAME(n, B, x); }}""",
        (("f", "f") if type_ == "float" else ("d", "d") if type_ == "double" else ("i", "i")),
        points=((61, 3, 4), (2, 3, 8)),
        # Sums of floating-point numbers are added up in an order of their own: these numbers have one sum.
    )


REDUCTIONS = {
    "a sum at both levels": both_levels("if (p < n) sum += x[p];"),
    "a floating sum at both levels": both_levels("if (p < n) sum += x[p];", type_="float"),
    "a floating sum over size_t": both_levels("if (p < n) sum += x[p];", type_="double", over="size_t"),
    "a floating maximum at both levels": both_levels("if (p < n && x[p] > sum) sum = x[p];", "max", "float"),
    "a maximum at both levels": both_levels("if (p < n) sum = x[p] > sum ? x[p] : sum;", "max"),
    "a minimum at both levels": both_levels("if (p < n) if (x[p] < sum) sum = x[p];", "min", start="x[0]"),
    "a guarded maximum": both_levels("if (p < n && x[p] > sum) sum = x[p];", "max"),
    "a maximum with a guard behind it": both_levels("if (p < n && x[p] > sum && (p & 1) && p > 3) sum = x[p];", "max"),
    "a guarded minimum by ?:": both_levels(
        "sum = p < n && sum > x[p] ? x[p] : sum;", "min", start="n", over="unsigned"
    ),
    "a guarded sum by ?:": both_levels("sum = p < n ? sum + x[p] : sum;"),
    "a maximum in an inner ?:": both_levels("sum = p < n ? (x[p] > sum ? x[p] : sum) : sum;", "max", over="size_t"),
    "over size_t": Construct(
        "static double sum_NAME(size_t n, int B, const double a[n]) { double sum = 0, most = a[0];"
        " meta_schedule meta_block(B) { meta_reduction(+: sum) meta_reduction(max: most)"
        " meta_for (size_t i = 0; i < n; i++) { sum += a[i]; if (a[i] > most) most = a[i]; } } return sum + most; }\n"
        "void NAME(int n, int m, int B, double x[n], double y[n]) { y[0] = sum_NAME(n, B, x); }",
        ("d", "d"),
    ),
}
EMPTY = {
    "up to a loop of the host": Construct(
        "void NAME(int n, int m, int B, float a[n][n], float x[n]) { for (int i = 0; i < n; i++) { "
        + loop("for (int j = 0; j < i; j++) x[k] += a[j][k];", "int k = 0; k < n; k++")
        + " } }",
        sizes=("n * n", "n"),
        points=((7, 3, 4), (1, 0, 4)),
    ),
    "below the one before": Construct(
        "void NAME(int n, int m, int B, float a[n][n], float x[n]) { for (int i = 0; i < n; i++) { "
        + loop("for (int l = 0; l < i - 1; l++) a[l][k] = x[k] + l;", "int k = 0; k < n; k++")
        + " } }",
        sizes=("n * n", "n"),
        points=((7, 3, 4), (1, 0, 4)),
    ),
    "up to a parameter": Construct(
        function(loop("y[i] = 1; for (int j = 0; j < m; j++) y[i] += x[j];"), "float x[m + 1]"),
        sizes=("m + 1", "n"),
        points=((13, 0, 4), (13, 3, 4)),
    ),
    "a sum behind a window": Construct(
        function(loop("int sum = 3; for (int k = 0; k < m; k++) sum += x[(i + k) % n]; y[i] = sum;"), "float x[n + m]"),
        sizes=("n + m", "n"),
        points=((13, 0, 4), (13, 3, 4)),
    ),
    "from a start to an end": Construct(
        function(
            "int lo = m, hi = n - 9; " + loop("for (int k = lo; k < hi; k++) y[i] += x[k];"), "float x[n]", "float y[n]"
        ),
        points=((13, 8, 4), (13, 1, 4), (3, 3, 2)),
    ),
    "steps of 4, in each other": Construct(
        function(loop("for (int k = 0; k + 3 < m; k += 4) for (int l = 3; l < k; l++) y[i] += x[l];"), "float x[m]"),
        sizes=("m", "n"),
        points=((13, 2, 4), (13, 0, 4), (13, 21, 4)),
    ),
    "every iteration a row of its own": Construct(
        function(loop("for (int k = 0; k < m; k++) y[i][k] = x[i] + k;"), y="float y[n][m]"),
        sizes=("n", "n * m"),
        points=((13, 0, 4), (13, 3, 4)),
    ),
}


def structures(body, types, x, y, elements, sizes=("n", "n")):
    """Return a case whose arrays have structures for elements."""
    return Construct(function(loop(body), x, y, types), elements, sizes)


PAIR = "typedef struct { float x, y; } pair_NAME;\n"
ITEM = "struct item_NAME { float v[4]; int id; };\n"
TALL = PAIR + "struct tall_NAME { int id; pair_NAME p[3]; double d; pair_NAME q; };\n"
STRUCTURES = {
    "braces for fewer values": structures(
        "struct item_NAME t = {{1, 2}, 7}; y[i] = t; struct item_NAME u = {{x[i]}};"
        " y[i].v[3] += u.v[0] + u.v[1] + u.id;",
        ITEM,
        "float x[n]",
        "struct item_NAME y[n]",
        ("f", "ffffi"),
    ),
    "designators": structures(
        "struct item_NAME t = {.id = i, .v = {1, 2, [3] = x[i]}}, u = {{1, 2, 3, 4}, .id = 2 * i};"
        " struct item_NAME w = {.v[2] = 5, 6, 7};"
        " y[i] = i % 3 == 0 ? t : i % 3 == 1 ? u : w;",
        ITEM,
        "float x[n]",
        "struct item_NAME y[n]",
        ("f", "ffffi"),
    ),
    "braces in rows": structures(
        "pair_NAME p = x[i], t[2][2] = {{{1, 2}, p}, {[1] = {.y = 3}}}, u[2] = {1, 2, p}; y[i] = t[i % 2][1];"
        " y[i].x += u[0].y + u[1].x + u[1].y + t[1][0].x;",
        PAIR,
        "pair_NAME x[n]",
        "pair_NAME y[n]",
        ("ff", "ff"),
    ),
    "structures in braces": structures(
        "pair_NAME p = {x[i], 2}; struct tall_NAME t = {4, {p, {x[i], 1}, p}, 2.5, p}, u = {.q = p, .d = 1, .p[1] = p};"
        " y[i] = x[i] > 9 ? t : u;",
        TALL,
        "float x[n]",
        "struct tall_NAME y[n]",
        ("f", "iffffffdff"),
    ),
    "a compound literal": structures(
        "x[i] = (pair_NAME){x[i].y, x[i].x}; y[i] = (pair_NAME){.y = x[i].x, .x = (float){3}};"
        " y[i].x += (pair_NAME){1, 2}.y;",
        PAIR,
        "pair_NAME x[n]",
        "pair_NAME y[n]",
        ("ff", "ff"),
    ),
    "elements of values": structures(
        "struct tall_NAME t = made_NAME(i, x[i]); pair_NAME q = made_NAME(i + 1, 2).p[1];"
        " y[i].v[0] = made_NAME(i, x[i]).p[2].x + q.y; y[i].v[1] = (struct item_NAME){{1, [2] = x[i]}, i}.v[2];"
        " y[i].v[2] = (i % 2 ? t : made_NAME(3, 4)).p[0].x; y[i].v[3] = t.p[i % 3].x; y[i].id = made_NAME(i, 1).id;",
        TALL + ITEM + "struct tall_NAME made_NAME(int a, float b)\n"
        "{ struct tall_NAME r = {a, {{b, 1}, {2, a}, {b * 3, 4}}, 5, {6, 7}}; return r; }\n",
        "float x[n]",
        "struct item_NAME y[n]",
        ("f", "ffffi"),
    ),
    "one of two": structures(
        "pair_NAME p = x[i], q = {1, 2}; y[i] = p.x > 9 ? p : q;"
        " x[i] = i > 3 ? x[i - 1 + 1] : i ? (pair_NAME){4, i} : q;"
        " y[i].y += (i & 1 ? p : q).x;",
        PAIR,
        "pair_NAME x[n]",
        "pair_NAME y[n]",
        ("ff", "ff"),
    ),
    "arrays of structures inside": structures(
        "for (int k = 0; k < 3; k++) { y[i].p[k].x += x[i].y * k; y[i].p[(k + 1) % 3] = x[i]; }"
        " y[i].q = y[i].p[i % 3]; pair_NAME c = y[i].q; y[i].d += c.x; y[i].id = y[i].p[2].y;",
        TALL,
        "pair_NAME x[n]",
        "struct tall_NAME y[n]",
        ("ff", "iffffffdff"),
    ),
    "an own structure with structures inside": structures(
        "struct tall_NAME t = y[i], u[2] = {y[i]}; t.q = x[i]; t.p[i % 3].y = 5; u[1].p[i % 3] = t.p[(i + 1) % 3];"
        " t.p[1].x = u[i % 2].p[i % 3].x + u[0].d; y[i] = t;",
        TALL,
        "pair_NAME x[n]",
        "struct tall_NAME y[n]",
        ("ff", "iffffffdff"),
    ),
    "of functions": structures(
        "y[i] = turned_NAME(x[i]); pair_NAME t = sum_NAME(y[i], turned_NAME((pair_NAME){i, 2}));"
        " x[i] = sum_NAME(t, i % 2 ? t : y[i]); y[i].y += turned_NAME(t).x; y[i].x += most_NAME(x[i]);",
        PAIR + "static pair_NAME turned_NAME(pair_NAME a) { pair_NAME r = {-a.y, a.x}; return r; }\n"
        "static pair_NAME sum_NAME(pair_NAME a, pair_NAME b) {"
        " if (a.x > b.x) return (pair_NAME){a.x + b.x, a.y}; a.x += b.y; return a; }\n"
        "static float most_NAME(pair_NAME a) { return a.x > a.y ? a.x : a.y; }\n",
        "pair_NAME x[n]",
        "pair_NAME y[n]",
        ("ff", "ff"),
    ),
    "members that nobody touches": structures(
        "y[i].x += x[i]; y[i].at[2] = y[i].x;",
        "struct named_NAME { char name[100]; float x; float at[sizeof(double) / 2]; short s[(1 << 2) - 1]; };\n",
        "float x[n]",
        "struct named_NAME y[n]",
        ("f", "c" * 100 + "fffff" + "sss"),
    ),
    "extents that are computed": structures(
        "y[i] = x[i].q[3] + x[i].q[15] + x[i].r[1] + x[i].s[3];",
        "#define QK_NAME 32\ntypedef struct { unsigned char q[QK_NAME / 2], r[QK_NAME >> 4]; short s[sizeof(float)]; }"
        " block_NAME;\n",
        "const block_NAME x[n]",
        "float y[n]",
        ("c" * 18 + "ssss", "f"),
    ),
}
WORLD = PAIR + "struct world_NAME { int n; struct { int many; const pair_NAME *from; } in; pair_NAME *p; };\n"
BITS = {
    "the bits of a float": Construct(
        function(
            loop(
                "float v = x[i], half = 0.5f * v; uint32_t u; memcpy(&u, &v, sizeof u); u = 0x5f3759df - (u >> 1);"
                " memcpy(&v, &u, 4); y[i] = v * (1.5f - half * v * v); int s; memcpy(&s, &x[i], sizeof(float));"
                " if (s & 0x400000) memcpy((void *)&y[i], (const void *)&s, sizeof s);"
            )
        )
    ),
    "the bits of a float by a union": Construct(
        function(
            loop(
                "bits_NAME v, w = {.i = 3}; v.f = x[i]; v.u ^= 0x80000000u; w = v; w.i++; --w.u; w.f += 1;"
                " y[i] = v.f * w.f; union { int i; float f; } c = {0x3f800000}; c.i -= (int)(v.u >> 28);"
                " y[i] += c.f + positive_NAME(v.f); y[i] += ((bits_NAME){x[i]}).u >> 30;"
                " if (((bits_NAME){.f = v.f}).i < 0) y[i] = -y[i];"
            ),
            "float x[n]",
            "float y[n]",
            "typedef union { float f; uint32_t u; int32_t i; } bits_NAME;\n"
            "static float positive_NAME(float f) { bits_NAME v = {f}; v.u &= 0x7fffffffu; return v.f; }\n",
        )
    ),
    "the bits of a double by a union": Construct(
        function(
            loop(
                "union of_NAME v; for (int k = 0; k < 3; k++) { v.d = x[i] + k; v.l += 1LL << 52; y[i] += v.d; }"
                " v.u >>= 52; y[i] += (double)v.l;"
            ),
            "double x[n]",
            "double y[n]",
            "union of_NAME { double d; int64_t l; unsigned long long u; };\n",
        ),
        ("d", "d"),
    ),
    "the bits of a double": Construct(
        function(
            loop(
                "int64_t u; memcpy(&u, &x[i], sizeof u);"
                " u ^= 1LL << 63; double d; memcpy(&d, &u, sizeof d); y[i] = d; unsigned long w; memcpy(&w, &d, 8);"
                " y[i] += (double)(w >> 60);"
            ),
            "double x[n]",
            "double y[n]",
        ),
        ("d", "d"),
    ),
}
POINTERS = {
    "names of pointer types": Construct(
        function(loop("y[i] = x[i] + 1;"), "vec_NAME x", "const vec_NAME y", "typedef float *vec_NAME;")
    ),
    "enumerations": Construct(
        "typedef enum { RELU_NAME, LINEAR_NAME, SIGN_NAME = 7 } act_NAME;\n"
        "enum below_NAME { LESS_NAME = -1, NONE_NAME, MORE_NAME };\n"
        "static void apply_NAME(int n, int B, const float x[n], float y[n], act_NAME a, enum below_NAME b)\n{ "
        + loop(
            "act_NAME c = i % 2 ? a : SIGN_NAME; enum below_NAME d = b; y[i] = a == RELU_NAME && x[i] < 9 ? 0 : x[i];"
            " y[i] += (b < 0) + 2 * (c - 1 > 0) + 4 * (d + 1 == NONE_NAME) + sizeof a;"
        )
        + " }\nvoid NAME(int n, int m, int B, const float *x, float *y)\n"
        "{ apply_NAME(n, B, x, y, m % 2 ? RELU_NAME : LINEAR_NAME, LESS_NAME); }",
    ),
    "pointers to structures as members": Construct(
        WORLD
        + "static void step_NAME(struct world_NAME w, int B)\n{ "
        + loop(
            "w.p[i].x += w.p[i].y; w.p[i].y = w.in.from[i].x; if (i == 3) w.p[i] = w.in.from[i];",
            "int i = 0; i < w.n; i++",
        )
        + " }\nvoid NAME(int n, int m, int B, const pair_NAME *x, pair_NAME *y)\n"
        "{ struct world_NAME w = {n, {n, x}, y}; step_NAME(w, B); }",
        ("ff", "ff"),
    ),
    "a row in braces": Construct(
        function(
            loop("const float *row = x + i * 2; float p[2] = {row[1], [1] = row[0]}; y[i] = p[0] - 2 * p[1];"),
            "float x[2 * n]",
        ),
        sizes=("2 * n", "n"),
    ),
    "a row in a literal": structures(
        "const pair_NAME *at = x + i; y[i] = (pair_NAME){at->y, at->x};"
        " pair_NAME t = {.x = (*at).y, at[0].x}; y[i].x += t.y;",
        PAIR,
        "pair_NAME x[n]",
        "pair_NAME y[n]",
        ("ff", "ff"),
    ),
}
CASES = {
    name: case if isinstance(case, Construct) else Construct(case)
    for table in (DEAD, LINES, BOOLS, HEADS, REDUCTIONS, EMPTY, STRUCTURES, BITS, POINTERS)
    for name, case in table.items()
}
