"""Functions whose arrays move: what each is, and how many bytes of which array go to the device and come back.

All take the same arguments (``HEAD``).  Sizes: n = 24 and T = 21 steps; a vector has 96 bytes, the matrix A 2304.
"""

from dataclasses import dataclass

HEAD = "(int n, int B, int T, float A[n][n], float x[n], float y[n], float z[n])"
EACH = "meta_for (int b = 0; b < (n + B - 1) / B; b++) meta_for (int t = 0; t < B; t++)"
STEP = "meta_schedule { " + EACH + " { int i = b * B + t; if (i < n) { BODY } } }"


def schedule(body):
    return STEP.replace("BODY", body)


@dataclass(frozen=True)
class Case:
    """``to`` and ``back`` map an array to the sizes of its copies in bytes, with how often; ``None``: not counted."""

    body: str
    to: dict[str, dict[int, int]] | None = None
    back: dict[str, dict[int, int]] | None = None


X_IS_Y = schedule("x[i] = 0.5f * y[i] + x[i];")
Y_IS_X = schedule("y[i] = 0.25f * x[i] + y[i];")
ONCE = {96: 1}
BOTH = {"x": ONCE, "y": ONCE}

ALL_OF_A = (
    "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
    " A[i][j] = A[i][j] + 0.5f * x[j]; }"
)
FLAT = (
    "float *F = &A[0][0]; for (int s = 0; s < 3; s++) { meta_schedule { meta_for (int i = 0; i < n; i++)"
    " meta_for (int j = 0; j < n; j++) A[i][j] = A[i][j] + 0.5f * x[j]; } BODY }"
)


def steps_on_a(body, count=3):
    """Steps in which all of A is computed on the device, and then the host does something."""
    return f"for (int s = 0; s < {count}; s++) {{ {ALL_OF_A} {body} }}"


CASES = {
    "gemver": Case(
        "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
        " A[i][j] = A[i][j] + x[i] * y[j] + z[i] * y[j]; }"
        + schedule("for (int j = 0; j < n; j++) x[i] = x[i] + 0.5f * A[j][i] * y[j];")
        + "for (int i = 0; i < n; i++) x[i] = x[i] + z[i];"
        + schedule("for (int j = 0; j < n; j++) z[i] = z[i] + 1.5f * A[i][j] * x[j];"),
        {"A": {2304: 1}, "x": {96: 2}, "y": ONCE, "z": ONCE},
        {"A": {2304: 1}, "x": ONCE, "z": ONCE},
    ),
    "gemver with vectors of its own": Case(
        "float u[n], v[n]; for (int i = 0; i < n; i++) u[i] = x[i], v[i] = i;"
        + ALL_OF_A.replace("0.5f * x[j]", "u[i] * v[j]")
        + schedule("for (int j = 0; j < n; j++) x[i] = x[i] + 0.5f * A[j][i] * y[j];")
        + schedule("x[i] = x[i] + z[i];")
        + schedule("for (int j = 0; j < n; j++) y[i] = y[i] + 1.5f * A[i][j] * x[j];"),
        {"A": {2304: 1}, "u": ONCE, "v": ONCE, "x": ONCE, "y": ONCE, "z": ONCE},
        {"A": {2304: 1}, "x": ONCE, "y": ONCE},
    ),
    "a stencil over time with a source of the host": Case(
        "for (int s = 0; s < T; s++) { z[s] = s; "
        + schedule("y[i] = i > 0 && i < n - 1 ? 0.25f * (x[i - 1] + 2 * x[i] + x[i + 1]) : x[i];")
        + schedule("x[i] = y[i];")
        + " }",
        {"x": ONCE},
        BOTH,
    ),
    "trisolv": Case(
        "for (int i = 0; i < n; i++) x[i] = y[i];"
        "for (int j = 0; j < n; j++) { x[j] = x[j] / (A[j][j] + 100); "
        + schedule("if (i > j) x[i] = x[i] - A[i][j] * x[j];")
        + " }",
        {"A": {2304: 1}, "x": {96: 1, 4: 23}},
        {"x": {4: 23}},
    ),
    "cholesky": Case(
        "for (int k = 0; k < n; k++) {\n  A[k][k] = sqrtf(A[k][k] * A[k][k]);\n  int rest = n - k - 1;\n"
        "  meta_schedule { meta_for (int c = 0; c < (rest + B - 1) / B; c++) meta_for (int t = 0; t < B; t++) {"
        " int i = k + 1 + c * B + t; if (i < n) A[i][k] = A[i][k] / (A[k][k] + 64); } }\n"
        "  meta_schedule { meta_for (int i = 0; i < rest; i++) meta_for (int j = 0; j < rest; j++)"
        " if (j <= i) A[k + 1 + i][k + 1 + j] = A[k + 1 + i][k + 1 + j] - A[k + 1 + i][k] * A[k + 1 + j][k]; }\n}",
        {"A": {2304: 1, 4: 22}},
        {"A": {2300: 1, 4: 23}},
    ),
    "two arrays in turn": Case("for (int s = 0; s < T; s++) { " + X_IS_Y + Y_IS_X + " }", BOTH, BOTH),
    "pointers that change places": Case(
        "float *h; for (int s = 0; s < T; s++) { " + schedule("x[i] = 0.5f * y[i] + s;") + " h = x; x = y; y = h; }",
        {"y": ONCE},
        BOTH,
    ),
    "a sum every tenth step": Case(
        "float sum = 0; for (int s = 0; s < T; s++) { "
        + X_IS_Y
        + "if (s % 10 == 0) { for (int i = 0; i < n; i++) sum += x[i]; z[s] = sum; } }",
        BOTH,
        {"x": {96: 3}},
    ),
    "an early return": Case(
        "for (int s = 0; s < T; s++) { " + X_IS_Y + " if (x[3] > 10) return; y[2] = s; }",
        {"x": ONCE, "y": {96: 1, 4: 10}},
        {"x": {96: 1, 4: 11}},
    ),
    "a jump out": Case(
        "for (int s = 0; s < T; s++) for (int r = 0; r < 2; r++) { " + X_IS_Y + " if (x[1] > 20) goto done; }"
        " z[0] = 1; done: z[1] = x[1];",
        BOTH,
        {"x": {96: 1, 4: 17}},
    ),
    "a jump back": Case(
        "int s = 0; again: " + X_IS_Y + " s++; for (int k = 0; k < 2; k++) { mid: y[k] += s; } "
        "if (s < 4) goto again; if (s == 4) { s++; int k = 0; (void)k; goto again; }",
    ),
    "a break and a continue": Case(
        "for (int s = 0; s < T; s++) { if (s % 2) continue; " + X_IS_Y + " if (s > 7) break; z[s] = s; }",
        BOTH,
        {"x": ONCE},
    ),
    "an unknown function": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " elsewhere(n, x); }", {"x": {96: 3}, "y": {96: 3}}, {"x": {96: 3}}
    ),
    "a function of the file": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " halve(n, B, y); }", {"x": ONCE, "y": {96: 3}}, {"x": ONCE}
    ),
    "branches": Case(
        "for (int s = 0; s < T; s++) if (s % 3 == 0) "
        + X_IS_Y
        + " else if (z[0] < 50) "
        + Y_IS_X
        + " else z[1] = x[1];",
        BOTH,
        BOTH,
    ),
    "a condition that reads": Case(
        "int s = 0; while (x[0] < 40 && s < T) { s++; "
        + X_IS_Y
        + " } do "
        + Y_IS_X
        + " while (y[5] < 30 && ++s < T); for (s = 0; x[2] > s * 9; y[1] = ++s) "
        + X_IS_Y,
    ),
    "a switch": Case(
        "for (int s = 0; s < 6; s++) switch (s % 3) { case 0: x[s] = s; " + X_IS_Y + " case 1: y[s] = x[s]; break; "
        "default: " + Y_IS_X + " }",
    ),
    "an alias of the host": Case(
        "float *p = x + 4; for (int s = 0; s < 4; s++) { " + X_IS_Y + " p[s] = p[s] + 1; *p = s; }",
        {"x": {96: 1, 4: 3, 8: 1}, "y": ONCE},
        {"x": {4: 4, 16: 1, 8: 1, 64: 1}},
    ),
    "the same array twice": Case("z = y; for (int s = 0; s < 4; s++) { " + X_IS_Y + " z[s] = x[s]; } "),
    "overlapping pointers": Case("float *p = x; for (int s = 0; s < 4; s++) { " + X_IS_Y + " p++; p[0] = y[s]; }"),
    "an array of the function": Case(
        "float w[n]; for (int i = 0; i < n; i++) w[i] = i; for (int s = 0; s < 3; s++) { "
        + schedule("w[i] = w[i] + x[i];")
        + " } "
        + schedule("y[i] = y[i] + w[i];"),
        {"w": ONCE, "x": ONCE, "y": ONCE},
        {"y": ONCE},
    ),
    "an array of a block": Case(
        "for (int s = 0; s < 3; s++) { float w[n]; for (int i = 0; i < n; i++) w[i] = i + s; "
        + schedule("w[i] = w[i] + x[i];")
        + schedule("y[i] = y[i] + w[i];")
        + " if (s == 2) break; if (y[0] > 1e6f) return; }",
        {"w": {96: 3}, "x": ONCE, "y": ONCE},
        {"y": {96: 1, 4: 2}},
    ),
    "a small array in a switch": Case(
        "for (int s = 0; s < 3; s++) switch (s) { float w[24]; case 0: case 1: for (int i = 0; i < n; i++) w[i] = s; "
        + schedule("w[i] = w[i] + x[i];")
        + " y[s] = w[s]; break; default: y[s] = 3; }",
    ),
    "a macro that counts": Case(
        "REPEAT(s, 3) { " + X_IS_Y + " y[0] = s; LATER(x[1]); }",
        {"x": ONCE, "y": {96: 1, 4: 2}},
        {"x": {96: 1, 4: 3}},
    ),
    "a macro of two statements": Case(
        "REPEAT(s, 3) { " + X_IS_Y + " PAIR(s) }", {"x": {96: 3}, "y": {96: 3}}, {"x": {96: 3}}
    ),
    "a macro that hides a condition": Case("UNTIL(x[0] > 20) " + X_IS_Y + " y[0] = x[0];"),
    "a pragma": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + "\n#pragma GCC ivdep\nfor (int i = 0; i < n; i++) y[i] += x[i];\n}",
        {"x": ONCE, "y": {96: 3}},
        {"x": {96: 3}},
    ),
    "pragmas of others": Case(
        "float s = 0;\n#pragma omp simd reduction(+: s)\nfor (int i = 0; i < 8; i++) s += z[i];\n#pragma scop\n"
        + schedule("y[i] += s;")
        + schedule("y[i] *= 2;")
        + "\n#pragma endscop\nif (s > 0)\n#pragma unroll\n#pragma GCC ivdep\nfor (int i = 0; i < 8; i++) z[i] = s;\n"
        + schedule("y[i] -= 1;"),
        {"y": ONCE},
        {"y": ONCE},
    ),
    "pragmas that are operators": Case(
        '_Pragma("STDC FP_CONTRACT OFF") for (int s = 0; s < 3; s++) { '
        + X_IS_Y
        + ' _Pragma("omp simd") for (int i = 0; i < 4; i++) z[i] = s;'
        + " if (s) IVDEP for (int i = 0; i < 2; i++) y[i] = s;"
        + ' else _Pragma("GCC unroll 4") for (int i = 0; i < 2; i++) y[i] = 0; _Pragma("omp barrier") }',
        {"x": ONCE, "y": {96: 1, 8: 2}},
        {"x": ONCE},
    ),
    "threads that come to a schedule": Case(
        "\n#pragma omp parallel for\nfor (int s = 0; s < 1; s++) { " + X_IS_Y + X_IS_Y + " }",
        {"x": {96: 2}, "y": {96: 2}},
        {"x": {96: 2}},
    ),
    "all is overwritten": Case(schedule("y[i] = 2 * x[i];"), {"x": ONCE}, {"y": ONCE}),
    "a local that a schedule fills": Case(
        "float w[n]; " + schedule("w[i] = 2 * x[i];") + schedule("y[i] = w[n - 1 - i];"), {"x": ONCE}, {"y": ONCE}
    ),
    "overwritten, and then read by the same iterations": Case(
        schedule("y[i] = 0; for (int j = 0; j < n; j++) y[i] += A[i][j] * x[j]; z[i] = y[i];"),
        {"A": {2304: 1}, "x": ONCE},
        {"y": ONCE, "z": ONCE},
    ),
    "overwritten, and then read by others": Case(
        schedule("y[i] = x[i];") + schedule("z[i] = y[n - 1 - i];"), {"x": ONCE}, {"y": ONCE, "z": ONCE}
    ),
    "overwritten by threads that stride": Case(
        "meta_schedule { meta_for (int b = 0; b < 2; b++) meta_for (int t = 0; t < B; t++)"
        " for (int i = b * B + t; i < n; i += 2 * B) y[i] = x[i]; }",
        {"x": ONCE},
        {"y": ONCE},
    ),
    "a matrix that is overwritten in tiles": Case(
        "meta_schedule meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
        " A[i][j] = x[j]; }",
        {"x": ONCE},
        {"A": {2304: 1}},
    ),
    "one half after the other": Case(
        schedule("if (i < n / 2) y[i] = x[i];") + schedule("if (i >= n / 2) y[i] = 1;"), {"x": ONCE}, {"y": ONCE}
    ),
    "halves of which the second one is read before": Case(
        schedule("if (i < n / 2) y[i] = x[i];") + schedule("z[i] = y[i];") + schedule("if (i >= n / 2) y[i] = 1;"),
        BOTH,
        {"y": ONCE, "z": ONCE},
    ),
    "read first": Case(schedule("z[i] = y[n - 1 - i];") + schedule("y[i] = x[i];"), BOTH, {"y": ONCE, "z": ONCE}),
    "written in part": Case(schedule("if (x[i] > 10) y[i] = 2 * x[i];"), BOTH, {"y": ONCE}),
    "a part that is known": Case(schedule("if (i >= 4 && i < n - 5) y[i] = x[i];"), BOTH, {"y": {60: 1}}),
    "every second one": Case(
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < n / 2; i++) y[2 * i + 1] = x[i]; }",
        BOTH,
        {"y": {48: 1}},
    ),
    "a column of the device": Case(schedule("A[i][3] = x[i];"), {"A": {2304: 1}, "x": ONCE}, {"A": ONCE}),
    "rows of the device": Case(
        "meta_schedule meta_block(B, B) { meta_for (int i = 2; i < 5; i++) meta_for (int j = 1; j < n; j++)"
        " A[i][j] = 0; }",
        {"A": {2304: 1}},
        {"A": {276: 1}},
    ),
    "nothing, by a parameter": Case(schedule("if (T > 100) y[i] = x[i];"), BOTH, {}),
    "read, then written where data says so": Case(
        schedule("z[i] = y[i];") + schedule("if (z[i] > 1) y[i] = 2 * x[i]; else z[i] = 0;"),
        BOTH,
        {"y": ONCE, "z": ONCE},
    ),
    "overwritten, then written where data says so": Case(
        schedule("y[i] = x[i];")
        + schedule("if (z[i] > 20) y[i] = 2 * x[i];")
        + " x[0] = y[23];"
        + schedule("y[i] += x[i];"),
        {"x": {96: 1, 4: 1}, "z": ONCE},
        {"y": {4: 1, 96: 1}},
    ),
    "memory that nobody has written": Case(
        "float *w = (float *)malloc(n * sizeof *w), *v; v = malloc(n * sizeof *v); "
        + schedule("if (x[i] > 5) w[i] = x[i]; if (x[i] > 7) v[i] = x[i]; if (i == n - 1) w[i] = v[i] = 1;")
        + schedule("if (x[i] > 5) y[i] = w[i]; if (x[i] > 7) z[i] = v[i]; if (i == n - 1) z[i] = w[i] + v[i];")
        + " free(w); free(v);",
        {"x": ONCE, "y": ONCE, "z": ONCE},
        {"y": ONCE, "z": ONCE},
    ),
    "a local that nobody has written": Case(
        "for (int s = 0; s < 2; s++) { float w[n]; "
        + schedule("if (x[i] > 5) w[i] = x[i] + s;")
        + schedule("if (x[i] > 5) y[i] = w[i];")
        + " }",
        BOTH,
        {"y": ONCE},
    ),
    "memory that the host has written in part": Case(
        "float *w = malloc(n * sizeof *w); for (int i = 0; i < 5; i++) w[i] = -1; "
        + schedule("if (x[i] > 5) w[i] = x[i]; if (i == n - 1) w[i] = 2;")
        + " for (int i = 0; i < 5; i++) y[i] = w[i]; y[7] = w[7]; free(w); w = malloc(n * sizeof *w);"
        + schedule("if (x[i] > 9) w[i] = x[i]; if (i == n - 1) w[i] = 2;")
        + " y[9] = w[9]; free(w);",
        {"w": ONCE, "x": ONCE},
        {"w": {20: 1, 4: 2}},
    ),
    "memory that is set to 0": Case(
        "float *w = calloc(n, sizeof *w); "
        + schedule("if (x[i] > 5) w[i] = x[i]; if (i == n - 1) w[i] = 2;")
        + schedule("y[i] = w[i];")
        + " free(w);",
        {"w": ONCE, "x": ONCE},
        {"y": ONCE},
    ),
    "a triangle that is written": Case(
        "meta_schedule meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
        " if (j < i) A[i][j] = x[j]; }",
        {"A": {2304: 1}, "x": ONCE},
        {"A": {2304: 1}},
    ),
    "a condition of the preprocessor": Case(
        "for (int s = 0; s < 3; s++) { "
        + X_IS_Y
        + "\n#ifdef NEVER_GIVEN\nfloat *q = y; q[0] = 1;\n#else\ny[s] = x[s];\n"
        "#endif\n}",
        {"x": {96: 1}, "y": {96: 1, 4: 2}},
        {"x": {96: 1, 4: 3}},
    ),
    "rows": Case(
        "for (int s = 0; s < 4; s++) {"
        " meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) A[i][j] = A[i][j] + s; }"
        " for (int j = 0; j < n; j++) x[j] += A[s][j]; A[s][0] = x[s]; }",
        {"A": {2304: 1, 4: 3}},
        {"A": {96: 4, 288: 1, 1920: 1}},
    ),
    "many elements": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " MANY(x) MANY(y) }",
    ),
    "a global": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " total += x[s]; table[s] = y[s] + table[0]; y[s] = total; }"
    ),
    "a global in a schedule": Case(
        "for (int i = 0; i < 8; i++) table[i] = i; for (int s = 0; s < 3; s++) { "
        + schedule("if (i < 8) table[i] = table[i] + x[i];")
        + " y[s] = table[s + 1]; through(s); }",
        {"table": {32: 3}, "x": {96: 3}},
        {"table": {32: 3, 4: 3}},
    ),
    "stopped by a bad leaf": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " B = s == 0 ? 2000 : 4; " + Y_IS_X + " }"
    ),
    "a kept array and the host of another function": Case(
        "metafork_keep(x); for (int s = 0; s < 3; s++) { add(n, B, x, y); z[s] = x[s]; x[s] = s; } "
        + X_IS_Y
        + " metafork_drop(x);",
        {"x": {96: 1, 4: 3}, "y": ONCE},
        {"x": {96: 1, 4: 3}},
    ),
    "a kept array and a host that is not followed": Case(
        "metafork_keep(x); for (int s = 0; s < 3; s++) { add(n, B, x, y); NEVER_SEEN z[s] = x[s]; x[s] = s; } "
        + X_IS_Y
        + " z[4] = x[4]; metafork_drop(x);",
        {"x": {96: 4}, "y": {96: 4}},
        {"x": {96: 4}},
    ),
    "a column that is read": Case(
        steps_on_a("for (int i = 0; i < n; i++) z[i] += A[i][s];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {96: 3, 2304: 1}},
    ),
    "a column that is written": Case(
        steps_on_a("for (int i = 0; i < n; i++) A[i][s + 1] = z[i];"),
        {"A": {2304: 1, 96: 2}, "x": ONCE},
        {"A": {12: 1, 2116: 1, 80: 1}},
    ),
    "a column scaled by its norm": Case(
        steps_on_a(
            "float sum = 0; for (int i = 0; i < n; i++) sum += A[i][s] * A[i][s];"
            " sum = sqrtf(sum); for (int i = 0; i < n; i++) A[i][s] = A[i][s] / sum;"
        ),
        {"A": {2304: 1, 96: 2}, "x": ONCE},
        {"A": {96: 3, 8: 1, 2116: 1, 84: 1}},
    ),
    "a part of a column": Case(
        steps_on_a("for (int i = s + 1; i < n; i++) A[i][s] = A[i][s] / (A[s][s] + 9);"),
        {"A": {2304: 1, 92: 1, 88: 1}, "x": ONCE},
        {"A": {92: 1, 4: 3, 88: 1, 84: 2, 296: 1, 1840: 1}},
    ),
    "a strided set": Case(
        steps_on_a("for (int j = 0; j < n; j += 4) A[2][j] += j;"),
        {"A": {2304: 1, 24: 2}, "x": ONCE},
        {"A": {24: 3, 192: 1, 60: 1, 2028: 1}},
    ),
    "a diagonal": Case(
        steps_on_a("float trace = 0; for (int i = 0; i < n; i++) trace += A[i][i]; z[s] = trace;"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {96: 3, 2296: 1}},
    ),
    "an antidiagonal downwards": Case(
        steps_on_a("for (int i = n - 1; i >= 0; i--) z[i] += A[i][n - 1 - i];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {96: 3, 2304: 1}},
    ),
    "a triangle": Case(
        steps_on_a("for (int i = 0; i < 4; i++) for (int j = 0; j < i; j++) z[i] += A[i][j];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {48: 3, 2292: 1}},
    ),
    "a tile": Case(
        steps_on_a("for (int i = 2; i <= 5; i++) for (int j = 4; j < 4 + B; j++) A[i][j] = i * j;"),
        {"A": {2304: 1, 64: 2}, "x": ONCE},
        {"A": {208: 1, 240: 1, 1792: 1}},
    ),
    "a border": Case(
        steps_on_a("for (int i = 0; i < n; i++) A[i][0] = A[i][n - 1] = A[0][i] = A[n - 1][i] = s;", 4),
    ),
    "a stencil of the host": Case(
        steps_on_a("for (int i = 1; i < 5; i++) z[i] = A[3][i - 1] + A[3][i] + A[3][i + 1];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {24: 3, 2304: 1}},
    ),
    "what the host overwrites does not come": Case(
        "for (int s = 0; s < T; s++) { for (int i = 0; i < n; i++) y[i] = s; " + Y_IS_X + " }",
        {"x": ONCE, "y": {96: 21}},
        {"y": ONCE},
    ),
    "a loop that overwrites nothing": Case(
        "int m = 0; for (int s = 0; s < 3; s++) { "
        + X_IS_Y
        + " for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) x[j] = s; "
        "for (int i = n; i < m; i++) x[i] = 7; m = -3; }",
        BOTH,
        {"x": ONCE},
    ),
    "a loop that is left": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " for (int i = 0; i < n; i++) { if (i == 3) break; x[i] = s; } }",
        {"x": {96: 3}, "y": ONCE},
        {"x": {96: 3}},
    ),
    "a bound in unsigned numbers": Case(
        "size_t most = (size_t)-1; for (int s = 0; s < 3; s++) { "
        + X_IS_Y
        + " for (size_t i = 0; i < most; i++) { if (x[i] > 3) break; y[i] = x[i]; } most = 2 + s; }",
    ),
    "a loop whose variable is changed": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " for (int i = 0; i < 3; i++) { x[i] = s; i += 4; x[i] = s; } }",
        {"x": {96: 3}, "y": ONCE},
        {"x": {96: 3}},
    ),
    "a flat row": Case(
        FLAT.replace("BODY", "for (int j = 0; j < n; j++) z[j] += F[(s + 1) * n + j];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {96: 3, 2304: 1}},
    ),
    "a flat column": Case(
        FLAT.replace("BODY", "for (size_t j = 0; j < (size_t)n; ++j) F[j * (size_t)n + (size_t)s] = z[j];"),
        {"A": {2304: 1, 96: 2}, "x": ONCE},
        {"A": {8: 1, 2116: 1, 84: 1}},
    ),
    "a flat row in unsigned numbers that may wrap around": Case(
        FLAT.replace("BODY", "unsigned u = n; for (unsigned j = 0; j < u; j++) z[j] += F[s * u + j];"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {2304: 3}},
    ),
    "functions of the file that read": Case(
        steps_on_a("z[s] = at(A[s], 3) + twice(n, A[s + 4]); for (int i = 0; i < n; i++) z[i] += at(&A[0][i], 2);"),
        {"A": {2304: 1}, "x": ONCE},
        {"A": {4: 3, 48: 3, 96: 3, 2304: 1}},
    ),
    "a function of the file that writes a column": Case(
        steps_on_a("scale(n, A, s + 1, 0.5f);"),
        {"A": {2304: 1, 96: 2}, "x": ONCE},
        {"A": {96: 3, 12: 1, 2116: 1, 80: 1}},
    ),
    "rows that are not known to be as long": Case(
        steps_on_a("int m = n; scale(m, A, s, 0.5f); scale(n / 2, (void *)A, 1, 2); scale(n, (void *)&A[0][0], s, 1);"),
    ),
    "a function of the file that overwrites": Case(
        "for (int s = 0; s < T; s++) { flat(y, n, s); " + Y_IS_X + " }",
        {"x": ONCE, "y": {96: 21}},
        {"y": ONCE},
    ),
    "recursion": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " z[s] = deep(3, x) + half(3, y); }",
        {"x": {96: 3}, "y": {96: 3}},
        {"x": {96: 3}},
    ),
    "a function of the file that calls one of another": Case(
        "for (int s = 0; s < 3; s++) { " + X_IS_Y + " z[s] = hidden(n, x); }",
        {"x": {96: 3}, "y": {96: 3}},
        {"x": {96: 3}},
    ),
    "a function of the file that touches globals": Case(
        "for (int i = 0; i < 8; i++) table[i] = i; for (int s = 0; s < 3; s++) { "
        + schedule("if (i < 8) table[i] = table[i] + x[i];")
        + " y[s] = counted(s + 1) + moved(x); }",
        {"table": {32: 1}, "x": ONCE},
        {"table": {4: 3, 32: 3}},
    ),
    "a function with a schedule": Case(
        "for (int s = 0; s < T; s++) { add(n, B, x, y); add(n, B, y, x); }",
        BOTH,
        BOTH,
    ),
    "functions with schedules and what the host does between": Case(
        "for (int s = 0; s < 3; s++) { add(n, B, x, y); if (s == 1) y[2] = x[3]; "
        + Y_IS_X
        + " add(n, B, &A[s][0], x); }",
        {"x": {96: 4}, "y": {96: 1, 4: 1}},
        {"x": {4: 1, 96: 4}, "y": ONCE},
    ),
    "an array of a block that another function takes": Case(
        "for (int s = 0; s < 3; s++) { float w[n]; for (int i = 0; i < n; i++) w[i] = i + s; add(n, B, w, x);"
        " add(n, B, y, w); if (s == 2) break; if (y[0] > 1e6f) return; }",
        {"x": {96: 4}, "y": ONCE},
        {"x": {4: 2, 96: 1}},
    ),
    "a call among other things": Case(
        "for (int s = 0; s < 3; s++) { "
        + X_IS_Y
        + " for (int i = 0; i < 2; i++) add(n, B, y, x), z[i] = y[i]; elsewhere(n, y); }",
    ),
    "a number whose address is taken": Case(
        "float w = 3, *p = &w; for (int s = 0; s < 3; s++) { " + X_IS_Y + " add(1, B, p, x); z[s] = w; }"
    ),
    "what is set and copied": Case(
        "for (int s = 0; s < 3; s++) { memset(y, 0, n * sizeof(float)); "
        + Y_IS_X
        + " memcpy(&z[2], y + s, 4 * sizeof *y); memcpy(x, y, n * sizeof y[0]); struct timespec now;"
        " clock_gettime(CLOCK_MONOTONIC, &now); "
        " memset(A[s], 0, n * n * sizeof(float) / n); memset(A, 0, sizeof(float) * n); }",
        {"x": {96: 3}, "y": {96: 3}},
        {"y": {16: 3, 96: 2, 80: 1}},
    ),
    "memory that is given back": Case(
        "for (int s = 0; s < 3; s++) { float *w = malloc(n * sizeof(float)), *v = malloc(4);"
        " for (int i = 0; i < n; i++) w[i] = s; add(n, B, x, w); add(n, B, w, x); free(v); free(w); }",
        {"x": ONCE, "y": {96: 3}},
        {"x": ONCE},
    ),
    "blocks that have no threads": Case(
        schedule("x[i] = 0.5f * y[i] + x[i];")
        + "int C = B - 9; meta_schedule meta_block(C) { meta_for (int i = 0; i < n; i++) x[i] += 1; }"
        + schedule("y[i] += x[i];"),
    ),
}
