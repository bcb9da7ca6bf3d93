"""Forms of C as people write them: optional pointers, walking pointers, scratch arrays, ``switch`` and what is small.

The functions are those of ``construct_cases``; what they get besides ``x`` and ``y`` comes from a function around.
"""

from tests.end_to_end.construct_cases import Construct, function, loop


def optional(body, pointer="const float *bias", before="", points=((13, 1, 4), (13, 2, 4), (1, 3, 8), (40, 4, 16))):
    """Return a case in which ``x`` is handed over as a pointer where m is odd, and a null pointer else."""
    called = f"static void with_NAME(int n, int m, int B, {pointer}, float *y) {{ {body} }}"
    return Construct(
        f"{before}\n{called}\nvoid NAME(int n, int m, int B, float *x, float *y)"
        " { with_NAME(n, m, B, m % 2 ? x : NULL, y); }",
        points=points,
    )


OPTIONAL = {
    "a pointer that may be null": optional(loop("if (bias != NULL) y[i] += bias[i];")),
    "asked without a comparison": optional(loop("if (bias) y[i] += bias[i]; else y[i] = -1;")),
    "asked the other way around": optional(loop("if (!bias) y[i] = i; else y[i] += bias[i] / 2;")),
    "a null pointer in front": optional(loop("if (NULL == bias) continue; y[i] = bias[i];")),
    "null as a cast": optional(loop("if ((void *)0 != bias && i > 2) y[i] = bias[i];")),
    "chosen by a condition": optional(loop("y[i] *= (bias ? bias[i] : 0.5f) + 1;")),
    "chosen by its opposite": optional(loop("y[i] = bias == 0 ? y[i] : y[i] * bias[i];")),
    "written where it is given": optional(loop("y[i] += 1; if (out) out[i] = y[i];"), "float *out"),
    "asked in front of the schedule": optional("int has = bias != NULL;" + loop("if (has) y[i] += bias[i];")),
    "asked by a function": optional(
        loop("y[i] = at_NAME(bias, i) + y[i];"),
        before="static float at_NAME(const float *p, int i) { return p ? p[i] : 1; }",
    ),
    "one element of it": optional(loop("y[i] += scale ? *scale : 3;"), "const float *scale"),
    "a row by blocks": optional(
        "meta_schedule { meta_for (int i = 0; i < 2; i++) { float tile[8]; meta_for (int t = 0; t < 8; t++)"
        " tile[t] = bias ? bias[t] : t; meta_for (int t = 0; t < 8; t++) if (i * 8 + t < n) y[i * 8 + t] = tile[7 - t];"
        " } }",
        points=((13, 1, 4), (13, 2, 4), (16, 3, 8)),
    ),
    "one that is cached": optional(
        "meta_schedule cache(bias) { meta_for (int i = 0; i < (n + 3) / 4; i++) meta_for (int t = 0; t < 4; t++)"
        " { int p = i * 4 + t; if (p < n) { float s = 0; if (bias) for (int k = 0; k < n; k++) s += bias[k];"
        " y[p] += s; } } }"
    ),
    "in two schedules": optional(
        loop("if (bias) y[i] += bias[i];") + loop("y[i] = bias ? y[i] - bias[n - 1 - i] : y[i] + 1;")
    ),
    "a variable": optional("const float *b = n > 13 ? NULL : bias;" + loop("y[i] += b ? b[i] : 1;")),
    "one that changes": optional(
        "float other[64]; for (int i = 0; i < 64; i++) other[i] = i; const float *b = bias;"
        " for (int k = 0; k < 2; k++) {" + loop("y[i]++; if (b) y[i] += b[i];") + " b = b ? NULL : other; }"
    ),
    "a member of a structure": Construct(
        "struct layer_NAME { int n; const float *weight, *bias; };\n"
        "static void with_NAME(struct layer_NAME l, int B, float *y) { "
        + loop("y[i] += l.weight[i]; if (l.bias) y[i] += l.bias[i];", "int i = 0; i < l.n; i++")
        + " }\nvoid NAME(int n, int m, int B, float *x, float *y)"
        " { struct layer_NAME l = {n, x, m % 2 ? x : NULL}; with_NAME(l, B, y); }",
        points=((13, 1, 4), (13, 2, 4)),
    ),
}

SCRATCH = {
    "a scratch array in front": "float w[4];"
    + loop("for (int k = 0; k < 4; k++) w[k] = x[i] + k; y[i] = w[0] * w[3];"),
    "one of two dimensions": "int i, a, b; float t[3][2], s;"
    + loop(
        "for (a = 0; a < 3; a++) for (b = 0; b < 2; b++) t[a][b] = x[i] + a * b; s = 0;"
        " for (b = 0; b < 2; b++) for (a = 2; a < 3; a++) s += t[a][b] - t[0][b]; y[i] = s;",
        "i = 0; i < n; i++",
    ),
    "element by element": "double w[3];"
    + loop("w[0] = x[i]; w[1] = w[0] * 2; w[2] = w[1] + w[0]; y[i] = w[2] - w[1];"),
    "of another length": "int m2 = m % 7; float w[8];"
    + loop(
        "for (int k = 0; k < m2; k++) w[k] = x[i] * k; float s = 0; for (int k = 0; k < m2; k++) s += w[k]; y[i] = s;"
    ),
    "from a later one on": "int m2 = m % 7; float w[8];"
    + loop(
        "int k; for (k = 0; k <= m2; k++) w[k] = x[i] * k; float s = 0; for (k = 1; k <= m2; k++) s -= w[k]; y[i] = s;"
    ),
    "read in braces": "float w[2];" + loop("w[0] = x[i]; w[1] = 2; float t[2] = {w[1], w[0] + 1}; y[i] = t[0] - t[1];"),
    "on both ways": "float w[2];"
    + loop("if (x[i] > 3) { w[0] = 1; w[1] = 2; } else { w[1] = 3; w[0] = x[i]; } y[i] = w[(int)x[i] & 1];"),
    "counted in whole": "int bin[5];"
    + loop(
        "for (int k = 0; k < 5; k++) bin[k] = 0; for (int k = 0; k < n; k++) bin[(int)x[k] % 5]++;"
        " y[i] = bin[(int)x[i] % 5];"
    ),
    "written by a function": Construct(
        "static void near_NAME(int n, int i, const float *x, float w[3]) { for (int k = 0; k < 3; k++)"
        " w[k] = x[(i + k) % n]; }\n"
        "static float mid_NAME(const float w[3]) { float a = w[0], b = w[1], c = w[2]; if (a > b) { float t = a; a = b;"
        " b = t; } if (b > c) b = c; return a > b ? a : b; }\n"
        + function("float w[3];" + loop("near_NAME(n, i, x, w); y[i] = mid_NAME(w);"))
    ),
    "a structure in front": Construct(
        "typedef struct { float a, b; } two_NAME;\n"
        + function("two_NAME t; two_NAME u;" + loop("t.a = x[i]; t.b = 2 * t.a; u = t; y[i] = u.b + t.a;"))
    ),
    "in a loop around, and in another schedule": "float w[2]; for (int s = 0; s < 3; s++) { "
    + loop("w[0] = x[i] + s; w[1] = y[i]; y[i] = w[0] + w[1];")
    + " } "
    + loop("w[1] = y[i]; y[i] = w[1] / 2;"),
}

SWITCHES = {
    "a switch": loop(
        "float v = x[i]; switch ((int)v % 4) { case 0: v *= 2; break; case 1: case 2: v -= 1; break; default: v = 0; }"
        " y[i] = v;"
    ),
    "with code that falls through": loop(
        "float v = 0; switch (i % 5) { case 3: v += 3; case 2: v += 2; case 1: v += 1; break; default: v = 9;"
        " case 4: v *= 2; } y[i] = v;"
    ),
    "of a parameter": loop("switch (m) { case 3: y[i] = x[i]; break; case -1: y[i] = 0; break; } y[i] += 1;"),
    "left early": loop(
        "int v = 0; switch (i & 3) { case 0: v = 5; if (x[i] > 4) break; v = 6; { if (x[i] > 2) { v = 7; break; }"
        " v++; } v++; case 1: v += 10; break;"
        " case 2: for (int k = 0; k < 9; k++) { if (k > x[i]) break; v += k; } } y[i] = v;"
    ),
    "in a loop that goes on": loop(
        "float v = 0; for (int k = 0; k < 6; k++) { switch ((int)x[k % n] % 3) { case 2: continue; case 1: v += 2;"
        " break; default: v += 1; } v *= 2; } y[i] = v;"
    ),
    "in a switch": loop(
        "float v = 0; switch (i % 3) { case 1: switch (i % 2) { case 0: v = 1; break; default: v = 2; } v += 3; break;"
        " case 2: v = 4; } y[i] = v;"
    ),
    "with variables": loop(
        "float v = x[i]; switch (i % 3) { case 0: v = 1; float t = v * 3; v = t; break; case 1: { int t = 5; v += t;"
        " break; } default:; } y[i] = v;"
    ),
    "of an enumeration, that returns": Construct(
        "enum op_NAME { ADD_NAME, SUB_NAME = 4, MUL_NAME };\n"
        "static float do_NAME(enum op_NAME o, float a, float b) { switch (o) { case ADD_NAME: return a + b;"
        " case SUB_NAME: return a - b; case MUL_NAME: return a * b; } return 0; }\n"
        + function(
            "enum op_NAME o = m == 3 ? SUB_NAME : m == 4 ? MUL_NAME : ADD_NAME;"
            + loop("y[i] = do_NAME(o, x[i], y[i]) + do_NAME(MUL_NAME, x[i], 2);")
        ),
        points=((13, 3, 4), (13, 4, 4), (13, 5, 4)),
    ),
    "of a number without a sign": loop("switch (3u - i) { case -1: y[i] = 7; break; case 3: y[i] = 8; } y[i] += x[i];"),
}
SMALL = {
    "a table of the thread": loop(
        "static const float w[5] = {1, 4, 6, 4, 1}; float s = 0; for (int k = 0; k < 5; k++) s += w[k] * x[i + k - 2];"
        " y[i] = s;",
        "int i = 2; i < n - 2; i++",
    ),
    "a table of a function": Construct(
        "static float tap_NAME(int k) { static const float w[5] = {1, 4, 6, 4, 1}; static const int one = 1;"
        " return w[k] + one; }\n" + function(loop("y[i] = tap_NAME(i % 5) * x[i];"))
    ),
    "an element of a literal": loop("y[i] = (float[]){1, 2, 4, 8}[i & 3] + ((int[2][2]){{1, 2}, {3}})[1][i & 1];"),
    "a literal for a function": Construct(
        "static float dot_NAME(const float *a, const float *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }\n"
        + function(loop("y[i] = dot_NAME(x + 3 * i, (float[3]){1, i, x[i]});"), "float x[3 * n]"),
        sizes=("3 * n", "n"),
    ),
    "names of array types": Construct(
        "typedef float pair_NAME[2];\n"
        + function(
            "pair_NAME d;"
            + loop(
                "pair_NAME w = {x[i][1], x[i][0]}; for (int k = 0; k < 2; k++) d[k] = w[k] * 2;"
                " y[i][0] += d[0] - w[1]; (*(y + i))[1] = d[1];"
            ),
            "const pair_NAME *x",
            "pair_NAME y[n]",
        ),
        sizes=("2 * n", "2 * n"),
    ),
    "assertions": "assert(n > 0);" + loop("assert(i < n && x[i] >= 0); assert(m); y[i] = x[i];"),
    "what is likely": loop(
        "if (__builtin_expect(!!(x[i] > 5), 1)) y[i] = x[i]; else if (__builtin_expect(i > 7, 0)) y[i] = 2;"
        " y[i] += __builtin_expect(i, 3);"
    ),
    "what is not reached": loop(
        "switch (i % 2) { case 0: y[i] = 1; break; case 1: y[i] = 2; break; default: __builtin_unreachable(); }"
        " __builtin_prefetch(&x[i]);"
    ),
    "bits": Construct(
        function(
            loop(
                "unsigned v = x[i] * 2654435761u; unsigned long w = v * 0x9E3779B97F4A7C15ul; y[i] ="
                " __builtin_popcount(v) + 100 * __builtin_parity(v) + 1000 * __builtin_popcountll(w)"
                " + (v ? __builtin_clz(v) + 7 * __builtin_ctz(v) : 50) + (w ? __builtin_clzl(w) * 3 : 0)"
                " + (w ? __builtin_ctzll(w) : 0) + __builtin_ffs((int)v) + __builtin_ffsll(w) + __builtin_parityl(w);"
            ),
            "int x[n]",
            "int y[n]",
        ),
        ("i", "i"),
    ),
    "functions of the compiler": loop("y[i] = __builtin_fabsf(3 - x[i]) + __builtin_sqrtf(x[i]);"),
    "constants with a type": Construct(
        function(
            loop(
                "uint32_t h = x[i] ^ UINT32_C(2166136261); h *= UINT32_C(16777619); y[i] = h ^"
                " (uint32_t)(UINT64_C(0x9E3779B97F4A7C15) >> 32) ^ INT8_C(3) ^ (unsigned)(INT64_C(-5) >> 1);"
            ),
            "int x[n]",
            "int y[n]",
        ),
        ("i", "i"),
    ),
    "names that a macro makes": Construct(
        "#define OF_NAME(a, k) a##_in[k]\n#define NUMBER_NAME(a) a##.5f\n#define LATE_NAME(a, b) a##b\n"
        "#define x_in_NAME y_in\n"
        + "static void with_NAME(int n, int B, const float *x_in, float *y_in) { "
        + loop("LATE_NAME(y_, in)[i] += OF_NAME(x, i) + NUMBER_NAME(2);")
        + " }\nvoid NAME(int n, int m, int B, float *x, float *y) { with_NAME(n, B, x, y); }"
    ),
    "arrays that are filled": loop(
        "float t[4], u[2][3]; memset(t, 0, sizeof t); memset(u, 0, sizeof(u)); u[1][1] = x[i];"
        " memcpy(t, x + i, 2 * sizeof(float)); memcpy(&t[2], &x[i], sizeof(float) * 1);"
        " y[i] = t[0] + 2 * t[1] + 3 * t[2] + t[3] + u[0][0] + u[1][1];",
        "int i = 0; i < n - 1; i++",
    ),
    "rows that are copied": Construct(
        function(loop("memcpy(y + i * m, &x[(n - 1 - i) * m], m * sizeof *x);"), "float x[n * m]", "float y[n * m]"),
        sizes=("n * m", "n * m"),
    ),
    "a scratch array that is filled": "int bin[4];"
    + loop(
        "memset(bin, 0, sizeof bin); for (int k = 0; k <= i; k++) bin[(int)x[k] & 3]++; y[i] = bin[0] + 3 * bin[2];"
    ),
}

PLANE = ("float x[n * m]", "float y[n * m]")
WALKING = {
    "a pointer that steps": function(
        loop("const float *p = x + i * m; float s = 0; for (int k = 0; k < m; k++) s += *p++; y[i] = s;"), *PLANE
    ),
    "by a stride": function(
        loop(
            "const float *p = x + i; float s = 0; for (int k = 0; k < n; k++) { s += *p; p += m; } y[i] = s;",
            "int i = 0; i < m; i++",
        ),
        *PLANE,
    ),
    "backwards": function(
        loop("const float *p = &x[i * m + m - 1]; float *q = y + i * m - 1; for (int k = 0; k < m; k++) *++q = *p--;"),
        *PLANE,
    ),
    "several in the head": function(
        loop(
            "const float *p = x + i * m, *q = x; float s = 0; for (int k = 0; k < m; k++, p++, q += 1) s += *p * *q;"
            " y[i] = s;"
        ),
        *PLANE,
    ),
    "up to an end": function(
        loop("const float *p = x + i * m, *end = p + m; float s = 0; while (p < end) s += *p++; y[i] = s;"), *PLANE
    ),
    "as the variable of a loop": function(
        loop("float s = 0; for (const float *p = x + i * m; p != x + (i + 1) * m; ++p) s += *p; y[i] = s;"), *PLANE
    ),
    "in a loop in a loop": function(
        loop(
            "const float *p = x + i; float *q = y + i; for (int r = 0; r < 2; r++) { for (int k = 1; k <= 3; k++)"
            " *q += k * *p++; p -= 1; *q++ += r; q--; }",
            "int i = 0; i < n * m - 6; i++",
        ),
        *PLANE,
    ),
    "with a step that depends on data": loop(
        "const float *p = x; float s = 0; for (int k = 0; k < n; k++) { if (x[k] > 9) p++; s += *p; }"
        " y[i] = s + (p - x);",
        "int i = 0; i < n; i++",
    ),
    "left early": loop(
        "const float *p = x; int k; for (k = 0; k < n; k++) { if (*p > 12) break; p++; } y[i] = p - x + k;"
    ),
    "three at a time": function(
        loop(
            "const float *p = x + i * m; float s = 0; for (int k = 0; k < m / 3; k++) { float r = *p++, g = *p++;"
            " const float b = *p++; s += r - 2 * g + b; } y[i] = s;"
        ),
        *PLANE,
    ),
    "declared in front": function(
        "const float *p; float *q, s; int k;"
        + loop("p = x + i * m; q = y + i * m; s = 0; for (k = 0; k < m; k++) s += *p++; *q = s; q[m - 1] += 1;"),
        *PLANE,
    ),
    "set again": function(
        loop(
            "const float *p = x; float s = 0; for (int k = 0; k < m; k++) { p = x + k * n; s += p[i]; if (s > 20)"
            " p = p + 1, s -= *p; } y[i] = s;",
            "int i = 0; i < n - 1; i++",
        ),
        *PLANE,
    ),
    "that a function is given": Construct(
        "static float sum_NAME(const float *p, int n) { float s = 0; while (n-- > 0) s += *p++; return s; }\n"
        "static void fill_NAME(float to[], int n, float v) { for (int k = 0; k < n; k++) { *to = v + k; to++; } }\n"
        + function(loop("fill_NAME(y + i * m, m, sum_NAME(&x[i * m], m)); y[i * m] += sum_NAME(x, 3);"), *PLANE),
        sizes=("n * m", "n * m"),
    ),
    "of structures": Construct(
        "typedef struct { float a, b; } two_NAME;\n"
        + function(
            loop("const two_NAME *p = x; float s = 0; for (int k = 0; k <= i; k++, p++) s += p->a - (*p).b; y[i] = s;"),
            "two_NAME x[n]",
        ),
        ("ff", "f"),
    ),
}
CHOSEN = {
    "one of two arrays": function(
        loop("const float *p = m > 3 ? x : x + n; y[i] = p[i] + *p;"),
        "float x[2 * n]",
    ),
    "one of two in the thread": loop(
        "float t[2] = {3, 4}, u[2] = {5, 6}; float *p = i & 1 ? t : u; p[1] += x[i]; *p = 7; p[0]++;"
        " y[i] = p[1] + t[0];"
    ),
    "by what changes": loop(
        "int c = x[i] > 4; float t[2] = {3, 4}, u[2] = {5, 6}; const float *p = c ? t : u + 1; c = 9; y[i] = *p + c;"
    ),
    "a table of rows": function(
        loop(
            "const float *rows[3] = {x + (i - 1) * m, x + i * m, x + (i + 1) * m}; float s = 0;"
            " for (int r = 0; r < 3; r++) for (int k = 0; k < m; k++) s += (r + 1) * rows[r][k] + rows[2][0];"
            " y[i] = s;",
            "int i = 1; i < n - 1; i++",
        ),
        *PLANE,
    ),
    "a row of a table": loop(
        "float t[2] = {3, 4}, u[2] = {5, 6}; float *both[] = {t, u}; float *one = both[i % 2]; one[1] = x[i];"
        " y[i] = both[0][1] - both[1][1];"
    ),
    "null, or a place": optional(
        loop(
            "const float *b = bias ? bias + 1 : NULL; if (b) y[i] += b[i]; else y[i] = 3;", "int i = 0; i < n - 1; i++"
        )
    ),
}

FORMS = {
    name: one if isinstance(one, Construct) else Construct(one if "void NAME" in one else function(one))
    for table in (OPTIONAL, SCRATCH, SWITCHES, SMALL)
    for name, one in table.items()
}
FORMS |= {
    name: Construct(
        one if "void NAME" in one else function(one), sizes=("2 * n * m", "n * m"), points=((13, 6, 4), (5, 9, 8))
    )
    if isinstance(one, str)
    else one
    for name, one in (WALKING | CHOSEN).items()
}
