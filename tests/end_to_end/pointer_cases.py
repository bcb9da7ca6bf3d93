"""Hosts whose schedules use pointers of their own: exchanged buffers, windows, memory of the heap, what ends its life.

Arguments, sizes and counts are those of ``transfer_cases``; a copy is called what the first schedule calls its array.
"""

from tests.end_to_end.transfer_cases import ONCE, Case, schedule

SCRIBBLE = (
    "{ float other[40]; for (int i = 0; i < 40; i++) other[i] = i; for (int i = 0; i < 40; i++) z[3] += other[i]; } "
)
"""Code whose variables lie where those of a block before it lay."""

POINTERS = {
    "buffers that change places": Case(
        "float *from = x, *to = y; for (int s = 0; s < T; s++) { "
        + schedule("if (i > 0 && i < n - 1) to[i] = 0.25f * (from[i - 1] + from[i + 1]) + s;")
        + " float *h = from; from = to; to = h; }",
        # A step writes one element less than the next one reads: the copy grows once.
        {"from": {96: 2}, "to": {92: 1}},
        {"from": {88: 2}, "to": {88: 1}},
    ),
    "buffers of the heap": Case(
        "float *u = malloc(n * sizeof *u), *v = (float *)calloc(n, sizeof(float)); memcpy(u, x, n * sizeof *u); "
        "for (int s = 0; s < T; s++) { "
        + schedule("v[i] = 0.5f * u[i] + s;")
        + " float *h = u; u = v; v = h; } for (int i = 0; i < n; i++) x[i] = u[i]; free(u); free(v);",
        {"u": ONCE},
        {"v": ONCE},
    ),
    "memory of each step": Case(
        "for (int s = 0; s < 4; s++) { float *u = malloc(n * sizeof *u); for (int i = 0; i < n; i++) u[i] = s + i; "
        + schedule("u[i] += 0.5f * y[i];")
        + " for (int i = 0; i < n; i++) x[i] += u[i]; free(u);"
        " char *c = malloc(n * sizeof *u); memset(c, s, n); z[s] += c[3]; free(c); }",
        {"u": {96: 4}, "y": ONCE},
        {"u": {96: 4}},
    ),
    "memory that grows": Case(
        "int m = 4; float *u = malloc(m * sizeof *u); for (int i = 0; i < m; i++) u[i] = i; while (m < n) { "
        "u = realloc(u, 2 * m * sizeof *u); for (int i = m; i < 2 * m; i++) u[i] = 1; float *tail = u + m; "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) tail[i] += u[i]; } m *= 2; } "
        "for (int i = 0; i < n; i++) x[i] = u[i]; free(u);"
    ),
    "rows of a matrix": Case(
        "for (int k = 0; k < 4; k++) { float *row = A[k], *next = &A[k + 1][0]; "
        + schedule("next[i] += 0.5f * row[i];")
        + " row[3] = k; } "
        + "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) A[i][j] += 1; }",
    ),
    "windows in one vector": Case(
        "float *low = x, *high = x + n / 2; int m = n / 2; for (int s = 0; s < 3; s++) { "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) high[i] += 0.5f * low[i]; } "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[i] *= 2; } low[1] = high[2]; }",
    ),
    "windows that overlap": Case(
        "float *low = x, *high = x + 1; int m = n - 1; for (int s = 0; s < 3; s++) { "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) high[i] = 0.5f * low[i]; } "
        + schedule("y[i] += x[i];")
        + " }",
    ),
    "a pointer that walks": Case(
        "float *p = x; for (int s = 0; s < 5; s++, p += 4) { "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < 4; i++) p[i] += s; } p[0]--; } "
        "while (p-- > x + 2) { meta_schedule meta_block(B) { meta_for (int i = 0; i < 2; i++) p[i] *= 0.5f; } }",
    ),
    "one pointer or another": Case(
        "for (int s = 0; s < 6; s++) { float *p = s % 2 ? x : y, *q; if (s % 3) q = z; else q = A[2]; "
        + schedule("q[i] += 0.5f * p[i];")
        + " p[s] = q[s]; }",
    ),
    "rows by a pointer to them": Case(
        "int m = n / 2; float (*u)[m] = malloc(n * sizeof *u); for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)"
        " u[i][j] = i - j; for (int s = 0; s < 3; s++) { meta_schedule { meta_for (int i = 0; i < n; i++)"
        " meta_for (int j = 0; j < m; j++) u[i][j] += 0.5f * A[i][j]; } x[s] = u[s][s]; }"
        " for (int i = 0; i < n; i++) y[i] = u[i][i % m]; free(u);",
    ),
    "structures of the heap": Case(
        "typedef struct { float at, by; } P; P *p = malloc(n * sizeof *p), *q = malloc(n * sizeof(P)); "
        "for (int i = 0; i < n; i++) p[i].at = x[i], p[i].by = i; for (int s = 0; s < 3; s++) { "
        + schedule("q[i].at = p[i].at + p[n - 1 - i].by; q[i].by = p[i].by;")
        + " P *h = p; p = q; q = h; } for (int i = 0; i < n; i++) x[i] = p[i].at; free(p); free(q);",
    ),
    "arrays of blocks behind one pointer": Case(
        "for (int s = 0; s < 5; s++) { float *p; if (s % 2) { float buf[30]; memset(buf, 0, sizeof buf); p = &buf[1]; "
        + schedule("p[i] += x[i];")
        + " y[s] += buf[5] + p[2]; } else { float own[40]; float f = s; "
        "for (int i = 0; i < 40; i++) own[i] = i * f; p = own; "
        + schedule("p[i] += 2;")
        + " f = own[7]; y[s] += f + own[8]; } "
        + SCRIBBLE
        + "}",
    ),
    "a pointer that a function gives back": Case(
        "for (int s = 0; s < 3; s++) { { float buf[30]; for (int i = 0; i < 30; i++) buf[i] = i; float *p = same(buf); "
        + schedule("p[i] += x[i];")
        + " y[s] += buf[3]; } "
        + SCRIBBLE
        + "}",
    ),
    "a pointer that a function sets": Case(
        "float *p = x; for (int s = 0; s < 3; s++) { "
        + schedule("p[i] += s;")
        + " lead(&p, s % 2 ? x : y); p[s] = 1; }",
    ),
    "a member of a structure": Case(
        "struct { int k; float v[24]; } o; for (int s = 0; s < 3; s++) { for (int i = 0; i < n; i++) o.v[i] = i; "
        "float *p = o.v; "
        + schedule("p[i] += x[i];")
        + " o.v[2] += 5; "
        + schedule("p[i] *= 2;")
        + " y[s] = o.v[2]; }",
    ),
    "a literal": Case(
        "for (int s = 0; s < 3; s++) { { float *p = (float[24]){1, 2, 3}; "
        + schedule("p[i] += x[i];")
        + " y[s] += p[2]; } "
        + SCRIBBLE
        + "}",
    ),
    "the address of a scalar": Case(
        "float sum = 3, *p = &sum; for (int s = 0; s < 3; s++) { "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < 1; i++) p[i] += x[i]; } sum++; }  y[0] = sum;",
    ),
    "no pointer where there is nothing": Case(
        "float *p = 0; int m = 0; while (m < n) { if (m > 0) p = x; "
        "meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) p[i] += 1; } m += n - 1; }",
    ),
    "a pointer that may be null": Case(
        "for (int s = 0; s < 4; s++) { float *p = s % 2 ? x : 0; int has = p != 0; "
        + schedule("y[i] += has ? p[i] : s;")
        + " }",
    ),
    "pointers of the file": Case(
        "here = x; there = y; for (int s = 0; s < T; s++) { "
        + schedule("there[i] = 0.5f * here[i] + s;")
        + " float *h = here; here = there; there = h; here[2] += 1; }",
    ),
    "as many as a pragma says": Case(
        "int *list = malloc(n * sizeof *list); for (int i = 0; i < n; i++) list[i] = i * 7 % n; float *p = x;\n"
        "#pragma metafork extents(p[n])\n" + schedule("y[i] += p[list[i]];") + " free(list);",
        {"list": ONCE, "p": ONCE, "y": ONCE},
        {"y": ONCE},
    ),
}
