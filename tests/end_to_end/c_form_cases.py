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

FORMS = {
    name: one if isinstance(one, Construct) else Construct(function(one))
    for table in (OPTIONAL, SCRATCH)
    for name, one in table.items()
}
