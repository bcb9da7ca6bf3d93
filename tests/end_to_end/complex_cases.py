"""Complex numbers: arithmetic with the bits of C, also of infinities, NaNs and zeros with a sign.

The functions are those of ``construct_cases``; one around fills ``x`` and ``y`` with such numbers, pairs of them.  What
sign a NaN has is nobody's business.
"""

from tests.end_to_end.construct_cases import Construct, loop

POINTS = ((121, 3, 4), (1, 2, 8), (40, 5, 16))


def numbers(body, before="", of="float", **more):
    """Return a case whose function is given ``n`` complex numbers, of which some are special."""
    called = f"static void with_NAME(int n, int m, int B, {of} complex *x, {of} complex *y) {{ {body} }}"
    greatest = "3e38f" if of == "float" else "1e308"
    around = (
        f"void NAME(int n, int m, int B, {of} *x, {of} *y) {{"
        f" const {of} some[] = {{0, -0.0f, 1, -2.5f, INFINITY, -INFINITY, NAN, {greatest}, 1e-40f, 7, 1e20f}};"
        " for (int i = 0; i < n; i++) {"
        "  x[2 * i] = some[i % 11], x[2 * i + 1] = some[i / 11 % 11];"
        "  y[2 * i] = some[(i * 7 + 3) % 11], y[2 * i + 1] = some[(i * 5 + i / 11) % 11];"
        " }"
        " with_NAME(n, m, B, (void *)x, (void *)y);"
        " for (int i = 0; i < 2 * n; i++) { if (x[i] != x[i]) x[i] = -77; if (y[i] != y[i]) y[i] = -77; } }"
    )
    kind = "f" if of == "float" else "d"
    text = f"#include <complex.h>\n{before}\n{called}\n{around}"
    return Construct(text, elements=(kind, kind), sizes=("2 * n", "2 * n"), points=POINTS, **more)


COMPLEX = {
    "complex sums": numbers(loop("y[i] = x[i] + y[i] - 2;")),
    "complex products": numbers(loop("y[i] = x[i] * y[i];")),
    "complex products of double": numbers(loop("y[i] *= x[i]; x[i] = conj(x[i]) * y[i];"), of="double"),
    "complex by real": numbers(loop("y[i] = 3 * x[i] + y[i] * 0.5f; x[i] /= 3; x[i] -= crealf(y[i]);")),
    "real and complex": numbers(loop("y[i] = 1 - x[i] + (i - y[i]);")),
    "the unit": numbers(loop("y[i] = crealf(x[i]) + cimagf(y[i]) * I; x[i] = x[i] * I - I;")),
    "parts": numbers(loop("y[i] = CMPLXF(cimagf(x[i]), -crealf(-y[i])); x[i] = conjf(x[i]);")),
    "complex locals": numbers(
        loop("float complex z = x[i], w; w = z; for (int k = 0; k < m; k++) { z = z * w + y[i]; w += 1; } y[i] = z;")
    ),
    "complex functions of the file": numbers(
        loop("y[i] = NAME_twice(NAME_product(x[i], i)) + NAME_product(2, y[i]);"),
        before="typedef float complex NAME_c;\nstatic NAME_c NAME_product(NAME_c a, NAME_c b) { return a * b; }\n"
        "static NAME_c NAME_twice(NAME_c a) { if (crealf(a) > 3) return 1; a *= 2; return a + a; }",
    ),
    "complex equality": numbers(
        loop("if (x[i] == y[i] || x[i] != x[i]) y[i] = 5; else y[i] = x[i] == 1 ? x[i] : y[i];")
    ),
    "complex to real": numbers(loop("float r = x[i] * y[i]; double d = y[i]; y[i] = r + d;")),
    "float and double complex": numbers(
        loop("double complex z = x[i]; z = z * y[i] + 0.1; y[i] = z; x[i] = (float complex)z + (double complex)x[i];")
    ),
    "complex members": numbers(
        loop("struct NAME_pair p = {i, x[i]}; p.z *= y[i]; struct NAME_pair q = p; y[i] = q.z + q.k;"),
        before="struct NAME_pair { int k; float complex z; };",
    ),
    "a complex matrix": numbers(
        "meta_schedule meta_block(B, B) { meta_for (int i = 0; i < n / m; i++) meta_for (int j = 0; j < m; j++) {"
        " float complex s = 0; for (int k = 0; k < m; k++) s += x[i * m + k] * conjf(x[k * m + j]);"
        " y[i * m + j] = s; } }",
    ),
    "a complex tile": numbers(
        "meta_schedule { meta_for (int b = 0; b < n / 4; b++) { float complex t[4];"
        " meta_for (int u = 0; u < 4; u++) t[u] = x[b * 4 + u] * 2;"
        " meta_for (int u = 0; u < 4; u++) y[b * 4 + u] = t[3 - u] * t[u]; } }",
    ),
}
