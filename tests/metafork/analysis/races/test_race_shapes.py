"""Shapes of real kernels that are free of races, each with broken twins that are not."""

import pytest

from metafork.analysis.exactness import exact_unit
from metafork.analysis.races.races import race_report
from metafork.frontend import parse
from metafork.ir.messages.source import Source

T = "meta_for (int t = 0; t < B; t++)"


def block(inner, params="int n, int B", arrays="float a[n]", pre="float s[B];", dim="int d = n / B;"):
    return (
        f"void f({params}, {arrays}) {{ {dim} meta_schedule {{ "
        f"meta_for (int i = 0; i < d; i++) {{ {pre} {inner} }} }} }}"
    )


def tiles(inner, arrays="float a[n][n]"):
    """Return a program whose threads are the points of a plane, once for each of two colours."""
    return (
        f"void f(int n, int B, {arrays}) {{ int d = n / B; for (int c = 0; c < 2; c++) meta_schedule {{ "
        "meta_for (int bi = 0; bi < d; bi++) meta_for (int bj = 0; bj < d; bj++) "
        "meta_for (int u = 0; u < B; u++) meta_for (int v = 0; v < B; v++) "
        f"{{ int i = bi * B + u; int j = bj * B + v; {inner} }} }} }}"
    )


def numbered(inner, extents="[n]"):
    """Return a program whose threads have numbers below n."""
    return (
        f"void f(int n, int B, int w, int h, float a{extents}) {{ meta_schedule {{ "
        "meta_for (int i = 0; i < (n + B - 1) / B; i++) meta_for (int t = 0; t < B; t++) "
        f"{{ int p = i * B + t; if (p < n) {{ {inner} }} }} }} }}"
    )


def buffers(to, of, host="", inside=""):
    """Return a program that writes one row of two and reads neighbours in another."""
    return (
        f"void f(int n, int B, int c, float u[2][n]) {{ {host} meta_schedule {{ "
        "meta_for (int i = 0; i < (n + B - 1) / B; i++) meta_for (int t = 0; t < B; t++) "
        f"{{ {inside} int p = i * B + t; if (p + 1 < n) u[{to}][p] = u[{of}][p + 1]; }} }} }}"
    )


INSIDE = "i > 0 && i < n - 1 && j > 0 && j < n - 1"

HALO = (
    "void f(int h, int w, int B, float a[h][w]) { meta_schedule meta_grid(2) { meta_for (int y = 0; y < h; y++) "
    "meta_for (int b = 0; b < w / B; b++) { float s[B + 6]; meta_for (int t = 0; t < B; t++) "
    "for (int k = t; k < B + 6; k += B) s[k] = 1; "
    "meta_for (int t = 0; t < B; t++) a[y][b * B + t] = s[t] + s[t + 6]; } } }"
)


def periodic(where, inner):
    """Return a program whose threads are the points of a plane in a flat array, of one colour."""
    return (
        "void f(int n, int m, int c, int B, float x[n * m]) { assert(n % 2 == 0 && m % 2 == 0); meta_schedule "
        "meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) "
        f"if ({where}) {{ {inner} }} }} }}"
    )


NEIGHBOURS = (
    "int up = i == 0 ? n - 1 : i - 1, down = i == n - 1 ? 0 : i + 1, left = j == 0 ? m - 1 : j - 1, "
    "right = j == m - 1 ? 0 : j + 1; "
    "x[i * m + j] = x[up * m + j] + x[down * m + j] + x[i * m + left] + x[i * m + right];"
)
MODULAR = (
    "x[i * m + j] = x[(i + n - 1) % n * m + j] + x[(i + 1) % n * m + j] + x[i * m + (j + m - 1) % m] "
    "+ x[i * m + (j + 1) % m];"
)


def columns_of_colour(
    inner, known="n % 2 == 0 && m % 2 == 0", column="2 * h + (i + c) % 2", half="m / 2", of="[n * m]"
):
    """Return a program whose threads are the points of one colour, in rows of m elements."""
    return (
        f"void f(int n, int m, int c, int w, int B, float x{of}) {{ assert({known}); meta_schedule meta_block(B, B) {{ "
        f"meta_for (int i = 0; i < n; i++) meta_for (int h = 0; h < {half}; h++) {{ int j = {column}; {inner} }} }} }}"
    )


def pairs_of_columns(inner, known="n % 2 == 0", column="2 * h + (i + c) % 2"):
    """Return a program whose threads are the points of one colour, in rows of 2*w elements."""
    return columns_of_colour(inner, known, column, "w", "[n * (2 * w)]")


def butterflies(inner, groups="int g = 0; g < n; g += 2 * h", those="int k = g; k < g + h; k++"):
    """Return a program whose threads are the elements of groups."""
    return (
        f"void f(int n, int h, int B, float x[n]) {{ meta_schedule meta_block(B) {{ meta_for ({groups}) "
        f"meta_for ({those}) {{ {inner} }} }} }}"
    )


BELOW_AND_RIGHT = "x[i * m + j] = x[(i + 1) % n * m + j] + x[i * m + (j + 1) % m];"
BY_CHOICES = (
    "int up = i == 0 ? n - 1 : i - 1, down = i == n - 1 ? 0 : i + 1; "
    "int left = j == 0 ? m - 1 : j - 1, right = j == m - 1 ? 0 : j + 1; "
    "x[i * m + j] = x[up * m + j] + x[down * m + j] + x[i * m + left] + x[i * m + right];"
)
BY_CONDITIONS = (
    "int left = j - 1, right = j + 1; if (left < 0) left = m - 1; if (right == m) right = 0; "
    "x[i * m + j] = x[i * m + left] + x[i * m + right];"
)
TWO = "float a = x[k], b = x[k + h]; x[k] = a + b; x[k + h] = a - b;"


def steps(of, known, index, other, extent="x[n * m]"):
    """Return a program whose loops over rows and columns have steps."""
    return (
        f"void f(int n, int m, int B, float {extent}) {{ assert({known}); meta_schedule meta_block(B, B) {{ "
        f"meta_for (int i = 0; i < n; i += {of}) meta_for (int j = 0; j < m; j += {of}) {index} = {other}; }} }}"
    )


FREE = {
    "steps of two": steps(2, "n % 2 == 0 && m % 2 == 0", "x[i * m + j]", "x[(i + 1) * m + j + 1]"),
    "steps of three": steps(3, "n % 3 == 0 && m % 3 == 0", "x[i * m + j]", "x[(i + 2) * m + j + 2]"),
    "butterflies of two loops": (
        "void f(int n, int h, int B, float a[n]) { meta_schedule meta_block(B) { "
        "meta_for (int g = 0; g < n / (2 * h); g++) meta_for (int k = 0; k < h; k++) { "
        "float x = a[2 * g * h + k], y = a[2 * g * h + k + h]; a[2 * g * h + k] = x + y; "
        "a[2 * g * h + k + h] = x - y; } } }"
    ),
    "unsigned from a first one": (
        "void f(unsigned n, unsigned T, const float x[n], float a[n]) { meta_schedule { "
        "meta_for (unsigned b = 0; b < n / T; b++) { unsigned first = b * T; float s[T]; "
        "meta_for (unsigned u = 0; u < T; u++) "
        "for (unsigned i = first + u; i < first + T; i += T) s[i - first] = x[i]; "
        "meta_for (unsigned u = 0; u < T; u++) a[first + u] = s[T - 1 - u]; } } }"
    ),
    "halo in a block with fewer dimensions than the grid": HALO,
    "stride thread": block(f"{T} for (int k = t; k < n; k += B) a[k] = 1;", dim="int d = 1;"),
    "stride thread rows": block(
        f"{T} for (int k = t; k < n; k += B) a[i][k] += 1;", arrays="float a[n][n]", dim="int d = n;"
    ),
    "grid stride": block(
        f"{T} for (int k = i * B + t; k < n; k += d * B) a[k] += 1;", params="int n, int B, int d", dim=""
    ),
    "grid stride2": block(
        f"int z = d * B; {T} {{ for (int k = i * B + t; k < n; k += z) a[k] += 1; }}",
        params="int n, int B, int d",
        dim="",
    ),
    "stride linear row": block(
        f"{T} for (int k = t; k < m; k += B) a[i * m + k] += 1;",
        params="int n, int m, int B",
        arrays="float a[n * m]",
        dim="int d = n;",
    ),
    "while stride": block(
        f"{T} {{ int k = i * B + t; while (k < n) {{ a[k] += 1; k += d * B; }} }}", params="int n, int B, int d", dim=""
    ),
    "stride down": block(f"{T} for (int k = n - 1 - t; k >= 0; k -= B) a[k] += 1;", dim="int d = 1;"),
    "tree half": block(f"for (int h = B / 2; h > 0; h /= 2) {T} if (t < h) s[t] += s[t + h];"),
    "tree shift": block(f"for (int h = B / 2; h > 0; h >>= 1) {T} if (t < h) s[t] += s[t + h];"),
    "tree half assign": block(f"for (int h = B / 2; h > 0; h = h / 2) {T} if (t < h) s[t] += s[t + h];"),
    "tree while": block(f"int h = B / 2; while (h > 0) {{ {T} if (t < h) s[t] += s[t + h]; h /= 2; }}"),
    "tree while shift": block(f"int h = B >> 1; while (h >= 1) {{ {T} if (t < h) s[t] += s[t + h]; h >>= 1; }}"),
    "tree odd": block(
        f"int h = B; while (h > 1) {{ int q = (h + 1) / 2; {T} if (t < h - q) s[t] += s[t + q]; h = q; }}"
    ),
    "tree odd guard": block(f"for (int h = B; h > 1; h = (h + 1) / 2) {T} if (t < h / 2) s[t] += s[t + (h + 1) / 2];"),
    "tree mod": block(f"for (int r = 1; r < B; r *= 2) {T} if (t % (2 * r) == 0 && t + r < B) s[t] += s[t + r];"),
    "tree mod shift": block(
        f"for (int r = 1; r < B; r <<= 1) {T} if (t % (2 * r) == 0 && t + r < B) s[t] += s[t + r];"
    ),
    "tree idx": block(f"for (int r = 1; r < B; r *= 2) {T} {{ int p = 2 * r * t; if (p + r < B) s[p] += s[p + r]; }}"),
    "tree global": block(f"for (int h = B / 2; h > 0; h /= 2) {T} if (t < h) a[i * B + t] += a[i * B + t + h];"),
    "pingpong flip": block(
        f"int cur = 0; for (int k = 0; k < n; k++) {{ {T} b[1 - cur][t] = b[cur][(t + 1) % B]; cur = 1 - cur; }}",
        pre="float b[2][B];",
    ),
    "pingpong xor": block(
        f"int cur = 0; for (int k = 0; k < n; k++) {{ {T} b[cur ^ 1][t] = b[cur][(t + 1) % B]; cur ^= 1; }}",
        pre="float b[2][B];",
    ),
    "pingpong not": block(
        f"int cur = 0; for (int k = 0; k < n; k++) {{ {T} b[!cur][t] = b[cur][(t + 1) % B]; cur = !cur; }}",
        pre="float b[2][B];",
    ),
    "buffers of the host, not": buffers("!c", "c"),
    "buffers of the host, read by not": buffers("c", "!c"),
    "buffers of the host, not not": buffers("!!c", "!c"),
    "buffers of the host, xor": buffers("to", "from", "int from = c & 1, to = from ^ 1;"),
    "buffers of the host, not of a bit": buffers("to", "from", "", "int from = c & 1, to = !from;"),
    "buffers of the host, shifted": buffers("to", "from", "int from = c % 2, to = 1 - from;"),
    "pingpong mod": block(
        f"for (int k = 0; k < n; k++) {T} b[(k + 1) % 2][t] = b[k % 2][(t + 1) % B];", pre="float b[2][B];"
    ),
    "pingpong and": block(
        f"for (int k = 0; k < n; k++) {T} b[(k + 1) & 1][t] = b[k & 1][(t + 1) % B];", pre="float b[2][B];"
    ),
    "pingpong linear": block(
        f"int cur = 0; for (int k = 0; k < n; k++) {{ {T} b[(1 - cur) * B + t] = b[cur * B + (t + 1) % "
        f"B]; cur = 1 - cur; }}",
        pre="float b[2 * B];",
    ),
    "scan": block(
        f"int cur = 0; for (int h = 1; h < B; h *= 2) {{ {T} {{ if (t >= h) b[1 - cur][t] = b[cur][t] + "
        f"b[cur][t - h]; else b[1 - cur][t] = b[cur][t]; }} cur = 1 - cur; }}",
        pre="float b[2][B];",
    ),
    "bitonic": block(
        f"for (int j = B / 2; j > 0; j /= 2) {T} {{ int p = t ^ j; if (p > t) {{ float x = s[t]; s[t] = "
        f"s[p]; s[p] = x; }} }}"
    ),
    "bitonic full": block(
        f"for (int k = 2; k <= B; k *= 2) for (int j = k / 2; j > 0; j /= 2) {T} {{ int p = t ^ j; if (p "
        f"> t) {{ if ((t & k) == 0) {{ if (s[t] > s[p]) {{ float x = s[t]; s[t] = s[p]; s[p] = x; }} }} "
        f"else {{ if (s[t] < s[p]) {{ float x = s[t]; s[t] = s[p]; s[p] = x; }} }} }} }}"
    ),
    "xor read": block(f"for (int j = B / 2; j > 0; j /= 2) {T} {{ r[t ^ j] = s[t]; }}", pre="float s[B]; float r[B];"),
    "bitonic host": (
        "void f(int n, int B, int j, float a[n]) { int d = n / B; meta_schedule { meta_for (int i = 0; "
        "i < d; i++) meta_for (int t = 0; t < B; t++) { int x = i * B + t; int p = x ^ j; if (p > x) { "
        "float y = a[x]; a[x] = a[p]; a[p] = y; } } } }"
    ),
    "bitonic hostloop": (
        "void f(int n, int B, float a[n]) { int d = n / B; for (int k = 2; k <= n; k *= 2) for (int j = "
        "k / 2; j > 0; j /= 2) meta_schedule { meta_for (int i = 0; i < d; i++) meta_for (int t = 0; t "
        "< B; t++) { int x = i * B + t; int p = x ^ j; if (p > x) { float y = a[x]; a[x] = a[p]; a[p] = "
        "y; } } } }"
    ),
    "redblack": tiles(
        f"if ({INSIDE} && (i + j) % 2 == c) a[i][j] = (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]) / 4;"
    ),
    "redblack lin": tiles(
        f"if ({INSIDE} && (i + j) % 2 == c) a[i * n + j] = (a[(i - 1) * n + j] + a[(i + 1) * n + j] + "
        f"a[i * n + j - 1] + a[i * n + j + 1]) / 4;",
        "float a[n * n]",
    ),
    "redblack loop": (
        "void f(int n, int B, float a[n][n]) { int d = n / B; for (int c = 0; c < 2; c++) meta_schedule "
        "{ meta_for (int bi = 0; bi < d; bi++)  meta_for (int u = 0; u < B; u++) { int i = bi * B + u; "
        "if (i > 0 && i < n - 1) { for (int j = 1 + (i + c) % 2; j < n - 1; j += 2) a[i][j] = (a[i - "
        "1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]) / 4; } } } }"
    ),
    "redblack 1d": block(f"{T} {{ int p = i * B + t; if (p % 2 == 0 && p + 1 < n) a[p] += a[p + 1]; }}"),
    "oddeven": (
        "void f(int n, int B, int s, float a[n]) { int d = n / B; meta_schedule { meta_for (int i = 0; "
        "i < d; i++) meta_for (int t = 0; t < B; t++) { int p = i * B + t; if (p % 2 == s % 2 && p + 1 "
        "< n) { if (a[p] > a[p + 1]) { float x = a[p]; a[p] = a[p + 1]; a[p + 1] = x; } } } } }"
    ),
    "redblack and": block(f"{T} {{ int p = i * B + t; if (!(p & 1) && p + 1 < n) a[p] += a[p + 1]; }}"),
    "a tile that is walked as a line": block(
        f"{T} for (int e = t; e < N * D; e += B) s[e / D][e % D] = a[i]; {T} for (int e = t; e < N * D; e += B) "
        "b[i * B + t] += s[e / D][e % D];",
        params="int n, int B, int N, int D",
        arrays="const float a[n], float b[n]",
        pre="float s[N][D];",
    ),
    "a volume that is walked as a line": block(
        f"{T} for (int e = t; e < N * D * E; e += B) s[e / (D * E)][e / E % D][e % E] = a[i];",
        params="int n, int B, int N, int D, int E",
        pre="float s[N][D][E];",
    ),
    "pixels by their number": numbered("a[p / w][p % w] = 1;", "[n][n]"),
    "voxels by their number": numbered("int x = p % w, y = p / w % h, z = p / (w * h); a[z][y][x] = 1;", "[n][n][n]"),
    "voxels, outermost first": numbered("int z = p / (w * h), y = p / w % h, x = p % w; a[z][y][x] = 1;", "[n][n][n]"),
    "channels of pixels": numbered(
        "int x = p % w, y = p / w % h, c = p / (w * h) % 4, k = p / (w * h * 4); a[((k * 4 + c) * h + y) * w + x] = 1;"
    ),
    "butterflies": numbered(
        "int j = p % w, low = p / w * 2 * w + j; float u = a[low], v = a[low + w]; a[low] = u + v; a[low + w] = u - v;"
    ),
    "groups back to front": numbered("a[p / w * w + (w - 1 - p % w)] = 1;"),
    "butterflies in groups": butterflies(TWO),
    "butterflies in groups, from the upper half": butterflies(
        "float a = x[k - h], b = x[k]; x[k - h] = a + b; x[k] = a - b;", those="int k = g + h; k < g + 2 * h; k++"
    ),
    "butterflies of four": butterflies(
        "float a = x[k], b = x[k + h], c = x[k + 2 * h], d = x[k + 3 * h]; x[k] = a + c; x[k + h] = b + d; "
        "x[k + 2 * h] = a - c; x[k + 3 * h] = b - d;",
        "int g = 0; g < n; g += 4 * h",
    ),
    "flat checkerboard with a border": periodic("(i + j) % 2 == c", NEIGHBOURS),
    "flat checkerboard by remainders": periodic("((i ^ j) & 1) == c", MODULAR),
    "columns of a colour": columns_of_colour(BELOW_AND_RIGHT),
    "columns of a colour, all neighbours": columns_of_colour(MODULAR),
    "columns of the other colour": columns_of_colour(BELOW_AND_RIGHT, column="2 * h + 1 - i % 2"),
    "columns of a colour, by bits": columns_of_colour(BELOW_AND_RIGHT, column="2 * h + ((i ^ c) & 1)"),
    "columns of a colour, wrapped by choices": columns_of_colour(BY_CHOICES),
    "columns of a colour, wrapped by conditions": columns_of_colour(BY_CONDITIONS),
    "pairs of columns": pairs_of_columns("x[i * (2 * w) + j] = x[i * (2 * w) + (j + 1) % (2 * w)];"),
    "pairs of columns, all neighbours": pairs_of_columns(
        "x[i * (2 * w) + j] = x[(i + n - 1) % n * (2 * w) + j] + x[(i + 1) % n * (2 * w) + j] "
        "+ x[i * (2 * w) + (j + 2 * w - 1) % (2 * w)] + x[i * (2 * w) + (j + 1) % (2 * w)];"
    ),
    "pairs of columns, odd ones to even ones": pairs_of_columns(
        "x[2 * (i * w + h)] = x[i * 2 * w + (2 * h + 2 * w - 1) % (2 * w)];", column="0"
    ),
    "pairs of columns under a condition": periodic("j % 2 == 1", "x[i * 2 * w + j] = x[i * 2 * w + (j + 1) % (2 * w)];")
    .replace("int c", "int w")
    .replace("j < m", "j < 2 * w")
    .replace("n * m", "n * 2 * w"),
}
RACING = {
    "halo by ones": HALO.replace("k += B", "k++"),
    "a value that one branch changes": block(
        f"for (int k = 0; k < 3; k++) {{ int c = 2; if (k == 1) c = 0; "
        f"{T} {{ if (t == 1) s[2] = 0; if (t == 0) s[3] = s[c]; }} }}"
    ),
    "a value that the other branch changes": block(
        f"for (int k = 0; k < 3; k++) {{ int c = 2; if (k == 1) {{ }} else c = 0; "
        f"{T} {{ if (t == 1) s[2] = 0; if (t == 0) s[3] = s[c]; }} }}"
    ),
    "stride thread": block(f"{T} for (int k = t; k < n; k += B - 1) a[k] = 1;", dim="int d = 1;"),
    "stride thread off": block(f"{T} for (int k = t; k < n - 1; k += B) a[k] = a[k + 1];", dim="int d = 1;"),
    "grid stride": block(
        f"{T} for (int k = i * B + t; k < n; k += B) a[k] += 1;", params="int n, int B, int d", dim=""
    ),
    "while stride": block(
        f"{T} {{ int k = i * B + t; while (k < n) {{ a[k] += 1; k += B; }} }}", params="int n, int B, int d", dim=""
    ),
    "stride assigned": block(f"{T} for (int k = t; k < n; k += B) {{ a[k] += 1; k += 1; }}", dim="int d = 1;"),
    "stride down": block(f"{T} for (int k = n - 1 - t; k >= 1; k -= B) a[k] += a[k - 1];", dim="int d = 1;"),
    "tree <=": block(f"for (int h = B / 2; h > 0; h /= 2) {T} if (t <= h) s[t] += s[t + h];"),
    "tree unguarded": block(f"for (int h = B / 2; h > 0; h /= 2) {T} if (t + h < B) s[t] += s[t + h];"),
    "tree nonuniform": block(f"{T} for (int h = B / 2; h > 0; h /= 2) if (t < h) s[t] += s[t + h];"),
    "tree while inside": block(f"{T} {{ int h = B / 2; while (h > 0) {{ if (t < h) s[t] += s[t + h]; h /= 2; }} }}"),
    "tree h-1": block(f"for (int h = B / 2; h > 0; h /= 2) {T} if (t < h) s[t] += s[t + h - 1];"),
    "tree mod": block(f"for (int r = 1; r < B; r *= 2) {T} if (t % r == 0 && t + r < B) s[t] += s[t + r];"),
    "tree mod zero": block(
        f"for (int r = 0; r < B; r += 1) {T} {{ int p = 2 * r * t; if (p + r < B) s[p] += s[p + r]; }}"
    ),
    "pingpong same": block(
        f"int cur = 0; for (int k = 0; k < n; k++) {{ {T} b[cur][t] = b[cur][(t + 1) % B]; cur = 1 - cur; }}",
        pre="float b[2][B];",
    ),
    "buffers of the host, not of another": buffers("!c", "d", "int d = c + 1;"),
    "buffers of the host, not and one": buffers("!c", "d", "int d = !(c + 1);"),
    "buffers of the host, xor of two": buffers("to", "from", "int from = c & 1, to = from ^ 2;"),
    "buffers of threads, not": buffers("!w", "w", "", "int w = t & 1;"),
    "buffers of neighbours, not": buffers("!(t / B)", "1 - t / B"),
    "pingpong 2-cur": block(
        f"int cur = 1; for (int k = 0; k < n; k++) {{ {T} b[2 - cur][t] = b[cur][(t + 1) % B]; cur = 2 - cur; }}",
        pre="float b[3][B];",
    ),
    "pingpong mod": block(
        f"for (int k = 0; k < n; k++) {T} b[(k + 2) % 2][t] = b[k % 2][(t + 1) % B];", pre="float b[2][B];"
    ),
    "pingpong thread": block(
        f"{T} {{ int cur = 0; for (int k = 0; k < n; k++) {{ b[1 - cur][t] = b[cur][(t + 1) % B]; cur = 1 - cur; }} }}",
        pre="float b[2][B];",
    ),
    "bitonic noguard": block(
        f"for (int j = B / 2; j > 0; j /= 2) {T} {{ int p = t ^ j; float x = s[t]; s[t] = s[p]; s[p] = x; }}"
    ),
    "bitonic ge": block(
        f"for (int j = B / 2; j >= 0; j /= 2) {T} {{ int p = t ^ (j + t); if (p > t) {{ float x = s[t]; "
        f"s[t] = s[p]; s[p] = x; }} }}"
    ),
    "bitonic or": block(
        f"for (int j = B / 2; j > 0; j /= 2) {T} {{ int p = t | j; if (p > t && p < B) {{ float x = "
        f"s[t]; s[t] = s[p]; s[p] = x; }} }}"
    ),
    "xor read": block(f"for (int j = B / 2; j > 0; j /= 2) {T} {{ s[t ^ j] = s[t]; }}", pre="float s[B]; float r[B];"),
    "redblack": tiles(
        f"if ({INSIDE} && (i + j) % 2 == c) a[i][j] = (a[i - 1][j - 1] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]) / 4;"
    ),
    "redblack mod3": tiles("if (i > 1 && i < n - 1 && j > 0 && j < n - 1 && (i + j) % 2 == c) a[i][j] = a[i - 2][j];"),
    "redblack 1d": block(f"{T} {{ int p = i * B + t; if (p % 2 == 0 && p + 2 < n) a[p] += a[p + 2]; }}"),
    "oddeven": (
        "void f(int n, int B, int s, float a[n]) { int d = n / B; meta_schedule { meta_for (int i = 0; "
        "i < d; i++) meta_for (int t = 0; t < B; t++) { int p = i * B + t; if (p % 2 <= s % 2 && p + 1 "
        "< n) { if (a[p] > a[p + 1]) { float x = a[p]; a[p] = a[p + 1]; a[p + 1] = x; } } } } }"
    ),
    "voxels with another height": numbered(
        "int x = p % w, y = p / w % (h - 1), z = p / (w * h); a[z][y][x] = 1;", "[n][n][n]"
    ),
    "voxels of another order": numbered("int x = p % w, y = p / h % h, z = p / w / h; a[z][y][x] = 1;", "[n][n][n]"),
    "rows too short": numbered("a[p / w * (w - 1) + p % w] = 1;"),
    "butterflies that overlap": numbered("int j = p % w, low = p / w * w + j; a[low] = 1; a[low + w] = 2;"),
    "a tile walked in strides too short": block(
        f"{T} for (int e = t; e < N * D; e += B - 1) s[e / D][e % D] = a[i];",
        params="int n, int B, int N, int D",
        pre="float s[N][D];",
    ),
    "a divisor that is 0 where a choice divides": block(
        f"{T} {{ int q = w > 0 ? t % w : t; if (q < 5) a[i][t * w] = 1; }}",
        params="int n, int B, int w",
        arrays="float a[n][n]",
    ),
    "a divisor that is 0 where nothing is divided": block(
        f"{T} if (w > 0 && t / w < 5) b[i][t] = 1; else a[i][t * w] = 2;",
        params="int n, int B, int w",
        arrays="float a[n][n], float b[n][n]",
    ),
    "flat checkerboard of one colour": periodic("((i ^ j) & 2) == c", MODULAR),
    "butterflies in groups that overlap": butterflies(TWO, "int g = 0; g < n; g += h"),
    "butterflies in groups, one too many": butterflies(TWO, those="int k = g; k <= g + h; k++"),
    "butterflies in groups, one too near": butterflies("x[k] += x[k + h - 1];"),
    "steps of two, uneven": steps(2, "n % 2 == 0", "x[i * m + j]", "x[(i + 1) * m + j + 1]"),
    "columns of a colour, uneven rows": columns_of_colour(BELOW_AND_RIGHT, "m % 2 == 0"),
    "columns of a colour, uneven": columns_of_colour(
        "x[i * m + j] = x[i * m + (j + 1) % m];", "n % 2 == 0", half="(m + 1) / 2"
    ),
    "columns of one colour": columns_of_colour("x[i * m + j] = x[(i + 1) % n * m + (j + 1) % m];"),
    "columns of a colour, wrapped to the other end": columns_of_colour(
        BY_CHOICES.replace("? m - 1 : j - 1", "? m - 2 : j - 1")
    ),
    "columns of a colour, wrapped too early": columns_of_colour(
        BY_CONDITIONS.replace("(left < 0) left = m - 1", "(left < 1) left = m - 1").replace(
            "right == m)", "right == m - 1)"
        )
    ),
    "pairs of columns, another period": pairs_of_columns("x[i * 2 * w + j] = x[i * 2 * w + (j + 1) % (2 * w - 1)];"),
    "pairs of columns, uneven rows": pairs_of_columns("x[i * 2 * w + j] = x[(i + 1) % n * 2 * w + j];", "n >= 2"),
    "flat checkerboard, uneven": (periodic("(i + j) % 2 == c", MODULAR)).replace("m % 2 == 0", "m >= 2"),
}


def report_of(text):
    return race_report(exact_unit(parse(Source("f.mf", text))).schedules[0].program)


@pytest.mark.sampled(len(FREE) - 10)
@pytest.mark.parametrize("name", FREE)
def test_what_is_free_of_races_is_proved_so(name):
    report = report_of(FREE[name])
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.sampled(len(RACING) - 9)
@pytest.mark.parametrize("name", RACING)
def test_what_races_is_reported(name):
    report = report_of(RACING[name])
    assert report.races or report.unproved
