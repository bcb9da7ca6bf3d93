"""Pointers of which no pragma says the extent: that of their accesses, on every leaf, in the header, and refused."""

import re
from pathlib import Path

import pytest

from metafork.comprehensive.emit import runtime_include_dir
from metafork.comprehensive.emit.header_file import header_file
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.comprehensive.verification import Options, verify
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression
from tests.runtime.compiling import succeed

SUITES = Path(__file__).parents[2] / "end_to_end" / "suites"

PROGRAM = """
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static float row(int m, const float *x) { float s = 0; for (int k = 0; k < m; k++) s += x[k]; return s; }
void guarded(int n, int B, const float *a, float *b) {
  int blocks = (n + B - 1) / B;
  meta_schedule meta_for (int i = 0; i < blocks; i++) meta_for (int j = 0; j < B; j++) {
    int p = i * B + j;
    if (p < n) b[p] = a[MAX(p - 1, 0)] + a[p] + (p + 1 < n ? a[p + 1] : 0);
  }
}
void product(int n, int m, int l, int T, const float *a, const float *b, float *restrict c) {
  meta_schedule meta_for (int i = 0; i < (n + T - 1) / T; i++) meta_for (int j = 0; j < (m + T - 1) / T; j++)
    for (int k0 = 0; k0 < l; k0 += T)
      meta_for (int u = 0; u < T; u++) meta_for (int v = 0; v < T; v++) {
        int r = i * T + u, q = j * T + v;
        if (r < n && q < m) for (int k = k0; k < k0 + T && k < l; k++) c[r * m + q] += a[r * l + k] * b[k * m + q];
      }
}
void rows(int n, int m, int B, const float a[], float *c) {
  meta_schedule meta_for (int i = 0; i < (n + B - 1) / B; i++) meta_for (int j = 0; j < B; j++) {
    if (i * B + j >= n) continue;
    c[i * B + j] = row(m, a + (i * B + j) * m);
  }
}
void steps(int n, int B, int rounds, double *a, double *b) {
  for (int t = 0; t < rounds; t++) {
    meta_schedule meta_for (int i = 0; i < (n - 2) / B; i++) meta_for (int j = 0; j < B; j++)
      b[i * B + j + 1] = (a[i * B + j] + a[i * B + j + 1] + a[i * B + j + 2]) / 3;
    meta_schedule meta_for (int i = 0; i < (n - 2) / B; i++) meta_for (int j = 0; j < B; j++)
      a[i * B + j + 1] = b[i * B + j + 1];
  }
}
void triangle(int n, int B, int C, float *a, const short *x, const unsigned char *pairs) {
  meta_schedule
    meta_for (int i = 0; i < (n + B - 1) / B; i++) meta_for (int k = 0; k < (n + C - 1) / C; k++)
      meta_for (int u = 0; u < B; u++) meta_for (int v = 0; v < C; v++) {
        int r = i * B + u, c = k * C + v;
        if (r >= n || c > r) continue;
        a[r * n + c] += x[n - 1 - r] * pairs[2 * c + 1];
      }
}
"""
STRUCTURES = """
struct body { float x, y, z; };
typedef struct { int first, second; } pair;
static float length(const struct body *b) { return b->x * b->x + b->y * b->y; }
void move(int n, int B, const struct body *p, struct body *q)
{
  meta_schedule {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        if (k >= n) continue;
        struct body t, s = p[k];
        t = s;
        t.x += length(&p[k > 0 ? k - 1 : 0]);
        q[k] = t;
        if (k + 1 < n) q[k].z = (p + k + 1)->y;
      }
  }
}
void swap(int n, int B, struct body *p, struct body *q, pair *most, const pair order[])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        struct body s = q[k];
        q[k] = p[2 * k + 1];
        p[2 * k + 1] = s;
        if (k == 0) most->first = order[n / B * B - 1].second;
      }
  }
}
"""
ROWS = """
#define N 5
typedef struct { float x, y; } vec;
void jacobi(int n, int m, int B, const double (*restrict u)[m], double (*v)[m]) {
  meta_schedule meta_for (int i = 0; i < (n + B - 1) / B; i++) meta_for (int j = 0; j < (m + B - 1) / B; j++)
    meta_for (int s = 0; s < B; s++) meta_for (int t = 0; t < B; t++) {
      int y = i * B + s, x = j * B + t;
      if (y >= 1 && y < n - 1 && x >= 1 && x < m - 1) v[y][x] = u[y - 1][x] + u[y + 1][x] + u[y][x - 1] + u[y][x + 1];
    }
}
void planes(int n, int m, float (*a)[n][m], const float b[][N], const vec (*p)[m]) {
  meta_schedule meta_for (int i = 0; i < n / 2; i++) meta_for (int j = 0; j < m; j++)
    a[2 * i + 1][n - 1][j] += b[i + 1][j % N] * p[i][j].x;
}
void first(int n, int m, float (*a)[m], int h[][2]) {
  meta_schedule meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) if (i == 0) a[0][j] += h[0][1];
}
#pragma metafork extents(a[2 * n][m], idx[n])
void promised(int n, int m, float (*a)[m], int *idx) {
  meta_schedule meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) if (i == j) a[idx[i] % n][j] += 1;
}
"""
PRODUCT = PROGRAM[PROGRAM.index("void product") : PROGRAM.index("void rows")]
EXTENTS = {
    "guarded": {"a": "n", "b": "n"},
    "product": {"a": "l * n", "b": "l * m", "c": "0 < l ? m * n : 0"},
    "rows": {"a": "m * n", "c": "n"},
    "steps": {"a": "B * ((n - 2) / B) + 2", "b": "B * ((n - 2) / B) + 1"},
    "triangle": {"a": "n * n", "x": "n", "pairs": "2 * n"},
}


def test_extents_are_those_of_the_accesses():
    unit = parse(Source("pointers.mf", PROGRAM))
    found = {
        function.name: {p.name: expression(p.array.extents[0]) for p in function.parameters if p.array is not None}
        for function in unit.functions
    }
    assert found == EXTENTS


def extents_in(text):
    """All extents of each array that a function of the text takes."""
    return {
        function.name: {
            p.name: [expression(one) for one in p.array.extents] for p in function.parameters if p.array is not None
        }
        for function in parse(Source("pointers.mf", text)).functions
    }


def test_extents_of_structures_count_structures():
    assert extents_in(STRUCTURES) == {
        "move": {"p": ["n", "3"], "q": ["n", "3"]},
        "swap": {
            "p": ["2 * B * (n / B)", "3"],
            "q": ["B * (n / B)", "3"],
            "most": ["1", "2"],
            "order": ["B * (n / B)", "2"],
        },
    }


def test_rows_that_a_pointer_leads_to_are_counted():
    assert extents_in(ROWS) == {
        "jacobi": {"u": ["3 <= n ? 2 < m ? n : 0 : 0", "m"], "v": ["2 < m ? 3 <= n ? n - 1 : 0 : 0", "m"]},
        "planes": {"a": ["2 * (n / 2)", "n", "m"], "b": ["n / 2 + 1", "5"], "p": ["n / 2", "m", "2"]},
        "first": {"a": ["1", "m"], "h": ["1", "2"]},
        "promised": {"a": ["2 * n", "m"], "idx": ["n"]},
    }
    result = optimize(ROWS, counters=("shared_memory",), strategies=())
    header = header_file(result.unit, result.schedules)
    assert "/* What jacobi is given must have as many elements: u has (3 <= n ? 2 < m ? n : 0 : 0) * m, "
    assert "v has (2 < m ? 3 <= n ? n - 1 : 0 : 0) * m. */" in header


@pytest.mark.parametrize("declaration", ["float *v[n][2]", "float ***v", "float v[][n][]", "float (**v)[n]"])
def test_what_else_a_pointer_may_lead_to_is_refused(declaration):
    with pytest.raises(DiagnosticsError) as caught:
        parse(Source("pointers.mf", loops("v[p][j] = 1;", declaration)))
    assert {one.code for one in caught.value.diagnostics} <= {"MF0201", "MF0208"}
    assert all(re.search(r"\bv\b", one.message) for one in caught.value.diagnostics)


@pytest.mark.parametrize(
    "extents", ["v[n * m]", "v[n][n]", "v[n][m + 1]", "v[n][m][1]", "v[n]m[1]", "v[n][]", "out[n][m]"]
)
def test_a_promise_about_rows_gives_their_extents(extents):
    """``v[n * m]`` would be as many rows."""
    text = loops("out[p] = v[p][j];", "int m, const float (*v)[m], float *out")
    parse(Source("pointers.mf", f"#pragma metafork extents(v[n][m])\n{text}"))
    with pytest.raises(DiagnosticsError, match="MF0321"):
        parse(Source("pointers.mf", f"#pragma metafork extents({extents})\n{text}"))


def test_exchanged_pointers_of_unlike_extents_are_told_so():
    text = """
    void heat(int n, int T, float *u, float *v) {
      for (int t = 0; t < T; t++) {
        meta_schedule meta_for (int i = 0; i < n - 2; i++) meta_for (int j = 0; j < 1; j++) v[i + 1] = u[i] + u[i + 2];
        float *w = u; u = v; v = w;
      }
    }"""
    first, second = parse(Source("pointers.mf", text)).warnings
    assert "places with `v`, of which they say `v[n - 1]`, and of this one `u[n]`" in first.reason
    assert "places with `u`, of which they say `u[n]`, and of this one `v[n - 1]`" in second.reason
    assert not parse(Source("pointers.mf", text.replace("void", "#pragma metafork extents(u[n], v[n])\nvoid"))).warnings


@pytest.mark.parametrize("text", [PROGRAM, STRUCTURES, ROWS], ids=["scalars", "structures", "rows"])
@pytest.mark.slow
def test_every_leaf_with_pointers_is_the_serial_program(text):
    options = Options(points=3, races=False, dataflow_seconds=0, optimization="-O0")
    found = verify(text, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert all(row.points for row in found.rows)
    assert "not checked" not in found.table()


def test_the_header_states_the_duty():
    result = optimize(PRODUCT, counters=("shared_memory",), strategies=())
    header = header_file(result.unit, result.schedules)
    assert (
        "/* What product is given must have as many elements: a has l * n, b has l * m, c has (0 < l ? m * n : 0). */"
        in header
    )
    result = optimize(STRUCTURES, counters=("shared_memory",), strategies=())
    header = header_file(result.unit, result.schedules)
    assert "/* What move is given must have as many elements: p has n, q has n. */" in header


@pytest.mark.slow
def test_the_header_is_cplusplus_where_no_schedule_uses_a_pointer(tmp_path):
    text = PRODUCT.replace("float *restrict c)", "float *restrict c, double *restrict unused, const char *name)")
    result = optimize(text, counters=("shared_memory",), strategies=())
    (tmp_path / "input.h").write_text(header_file(result.unit, result.schedules))
    include = ("-I", str(runtime_include_dir()))
    for compiler, kind in (("g++", "c++"), ("gcc", "c")):
        succeed([compiler, "-fsyntax-only", "-Werror", *include, "-x", kind, tmp_path / "input.h"])


@pytest.mark.slow
def test_a_product_of_pointers_is_one_of_arrays():
    arrays = PRODUCT.replace("const float *a, const float *b, float *restrict c)", "const float a[l * n], "
                             "const float b[l * m], float c[m * n])")  # fmt: skip
    counted = {"counters": ("shared_memory",), "strategies": ("caching", "granularity")}
    one, other = (
        [
            [one.version.program.body for one in leaf.variants]
            for tree in optimize(text, **counted).schedules
            for leaf in tree.leaves
        ]
        for text in (PRODUCT, arrays)
    )
    assert one == other


def loops(body, parameters="const int *idx, const float *v, float *out"):
    return (
        f"void f(int n, int B, {parameters}) {{ meta_schedule meta_for (int i = 0; i < n / B; i++) "
        f"meta_for (int j = 0; j < B; j++) {{ int p = i * B + j; {body} }} }}"
    )


CASES = {
    "out[p] = v[p == n / B * B - 1 ? p : p + 1];": "B * (n / B)",
    "out[p] = v[(p + 1) % n];": "n <= B * (n / B) ? n : B * (n / B) + 1",
    "int q = p > 0 ? p - 1 : 0; if (q != 0) out[p] = v[q];": None,  # of one element, the first is touched
    "for (int k = j; k < n; k += B) out[p] += v[i * n + k];": "n * (n / B)",
    "int up = (p + 1) % n, low = p > 0 ? p - 1 : n - 1; out[p] = v[up * B + 1] + v[low];": (
        "B * n < B + B * B * (n / B) ? B * n + 2 - B : B * B * (n / B) + 2"
    ),
    "v[p > 3 ? p - 3 : p] = 1;": "B * (n / B) <= 4 ? B * (n / B) : B * (n / B) <= 6 ? 4 : B * (n / B) - 3",
    "int r = j + 1; if (r >= B) r -= B; out[p] = v[i * B + r];": "B * (n / B)",
    "int l = p + 1; if (l > n - 1) l = n - 1; out[p] = v[(l - idx[p]) % B];": None,
    "out[p] = 0; for (int t = 0; t < B; t += 2) out[p] += v[t];": "2 * ((B - 1) / 2) + 1",
    "float s = 0; for (int k = 0; k < 4; k++) { int q = 4 * p + k; if (q >= n) break; s += v[q]; } out[p] = s;": "n",
    "for (int k = -2; k < 9; k++) { if (p + k < 0 || k > 2) continue; out[p] += v[p + k]; }": "B * (n / B) + 2",
    "out[p] = (p > 0 ? v[p - 1] : 0) + (p < n - 1 ? v[p + 1] : 0);": (
        "n <= B * (n / B) ? 2 <= n ? n : 0 : B * (n / B) + 1"
    ),
    "for (int k = 0; k < 5; k++) if (p + k < n) out[p] += v[p + k];": "n <= B * (n / B) + 3 ? n : B * (n / B) + 4",
    "for (int k = 0; k < 9; k++) { if (k > 2) { if (p + k >= n) break; } out[p] += v[p + k]; }": (
        "B * (n / B) + 2 < n ? n <= B * (n / B) + 8 ? n : B * (n / B) + 8 : B * (n / B) + 2"
    ),
    "for (int k = 0; k < 7; k++) { int e = 7 * p + k, r = e / 5; out[p] += v[r * 5 + e % 5]; }": "7 * B * (n / B)",
    "int q = p - 2; q = q < 0 ? 0 : q; q = q > n - 1 ? n - 1 : q; out[p] = v[p] + v[q];": "B * (n / B)",
    "int q = p - 2; if (q < 0) q = 0; else if (q > n - 1) q = n - 1; out[p] = v[p] + v[q];": "B * (n / B)",
    "int q = p - 2; if (q > n - 1) { q = n - 1; } else { if (q < 0) q = 0; } out[p] = v[p] + v[q];": "B * (n / B)",
    "int q = 2 * p; if (q < n) q += 1; else if (q < 0) q = 7; else q = n; out[p] = v[q];": (
        "n + 2 <= 2 * B * (n / B) ? n + 1 : 2 * B * (n / B)"
    ),
    "int q = p - 2; if (q < 0) q = 0; else if (q > n - 1) q = n + idx[p]; out[p] = v[p] + v[q];": "B * (n / B)",
    "int q = 0; q = p + 1; if (p + 1 >= n) q = p; out[p] = v[q];": ("n <= B * (n / B) ? B * (n / B) : B * (n / B) + 1"),
    "for (int k = 0; k < 9; k++) { if (k == 3) break; out[p] += v[9 * p + k]; }": None,
    "for (int k = 0; k < 9; k++) { if (k == 3) continue; out[p] += v[9 * p + k]; }": "9 * B * (n / B)",
}


def extent_of_v(text):
    """The extent that the accesses to the pointer ``v`` say; ``None`` where they say none."""
    unit = parse(Source("pointers.mf", text))
    (pointer,) = (one for one in unit.functions[0].parameters if one.name == "v")
    assert pointer.array.endless == any("`v`" in one.message for one in unit.warnings)
    return None if pointer.array.endless else expression(pointer.array.extents[0])


@pytest.mark.parametrize("body", CASES)
def test_indices_with_choices_and_remainders(body):
    """An extent is one that is reached in every launch: behind it the caller's memory may end."""
    text = loops(body, "float *v, float *out, const int idx[n]")
    assert extent_of_v(text) == CASES[body]


NUMBERED = {
    "out[y * w + x] = v[y * w + x];": "h * w",
    "if (x > 0) out[p] = v[y * w + x - 1]; if (y > 0) out[p] += v[(y - 1) * w + x];": "h * w - 1",
    "out[p] = v[p]; if (x < w - 1) out[p] += v[y * w + x + 1]; if (y < h - 1) out[p] += v[(y + 1) * w + x];": "h * w",
    "int z = p / (w * w), r = p / w % w; out[p] = v[(z * w + r) * w + x];": "h * w",
    "out[p] = v[y * w + x] + v[y];": "h * w",
    "out[p] = v[x * h + y];": "h * w",
    "out[p] = v[y / 2 * w + x / 2];": None,  # how many rows and columns there are rounds up
    "int q = 2 * p, r = q / (2 * w); out[p] = v[r * w + q % (2 * w) / 2];": "h * w",
    "out[p] = x > 3 ? v[p] : 0;": "5 <= w ? h * w : 0",
}


@pytest.mark.parametrize("body", NUMBERED)
def test_indices_of_what_a_number_is_decoded_to(body):
    text = (
        "void f(int h, int w, int B, float *v, float *out) { meta_schedule "
        "meta_for (int i = 0; i < (h * w + B - 1) / B; i++) meta_for (int j = 0; j < B; j++) "
        f"{{ int p = i * B + j; if (p < h * w) {{ int x = p % w, y = p / w; {body} }} }} }}"
    )
    assert extent_of_v(text) == NUMBERED[body]


LITERAL = {
    **{
        ("", f"n / {block}", block, f"v[i * {block} + j] = 1;"): f"{block} * (n / {block})"
        for block in (4, 16, 31, 256)
    },
    ("", "(n + 127) / 128", 128, "if (i * 128 + j < n) v[i * 128 + j] = 1;"): "n",
    ("", "(n - 64) / 64", 64, "v[i * 64 + j + 64] = 1;"): "64 * ((n - 64) / 64) + 64",
    ("", "n / (s * 64)", 64, "for (int k = 0; k < s; k++) v[(i * s + k) * 64 + j] = 1;"): "64 * (n / (64 * s)) * s",
    ("", "n / 4 / 32", 32, "for (int k = 0; k < 4; k++) v[(i * 4 + k) * 32 + j] = 1;"): "128 * (n / 4 / 32)",
    ("", "n / s", "s / 32", "v[i * s + j * 32] = 1;"): "n / s * s + 32 * (s / 32) - s - 31",
    ("", "n / s", "s / 32 * 32", "v[i * s + j] = 1;"): "n / s * s + 32 * (s / 32) - s",
    ("assert(n % 128 == 0);", "n / 128", 128, "v[i * 128 + j] = 1;"): "128 * (n / 128)",
    ("assert(n >= 5000);", "(n + 127) / 128", 128, "if (i * 128 + j < n) v[i * 128 + j] = 1;"): "n",
    ("int blocks = n / 256;", "blocks", 256, "v[i * 256 + j] = 1;"): "256 * (n / 256)",
    ("", "n / 128", 128, "if (i * 128 + j + 1 < n) v[i * 128 + j + 1] = 1;"): (
        "128 * (n / 128) + 1 < n ? 128 * (n / 128) + 1 : n"
    ),
    ("", "n / 128", 128, "if (n > 384) v[i * 128 + j] = 1;"): "384 < n ? 128 * (n / 128) : 0",
    ("", "n / 128", 128, "if ((i * 128 + j) % 3 == 0) v[n / 2 + j] = 1;"): None,  # of one block, the last is left out
    ("", "n / 128 - 1", 128, "if (i * 128 + j >= n / 2) v[i * 128 + j] = 1;"): (
        "n / 2 + 129 <= 128 * (n / 128) ? 128 * (n / 128) - 128 : 0"
    ),
    ("", "n / 128", 128, "if (n > 128 * (n / 128) + 5) v[i * 128 + j] = 1;"): (
        "128 * (n / 128) + 5 < n ? 128 * (n / 128) : 0"
    ),
}


@pytest.mark.parametrize("parts", LITERAL)
def test_blocks_of_a_literal_size(parts):
    before, blocks, threads, body = parts
    text = (
        f"void f(int n, int s, float *v) {{ {before} meta_schedule meta_for (int i = 0; i < {blocks}; i++) "
        f"meta_for (int j = 0; j < {threads}; j++) {{ {body} }} }}"
    )
    assert extent_of_v(text) == LITERAL[parts]


@pytest.mark.parametrize("type_", ["long", "size_t", "unsigned"])
def test_blocks_of_a_literal_size_of_other_types(type_):
    loops = f"meta_for ({type_} i = 0; i < n / 128; i++) meta_for ({type_} j = 0; j < 128; j++)"
    text = f"void f({type_} n, float *v) {{ meta_schedule {loops} v[i * 128 + j] = 1; }}"
    assert extent_of_v(text) == "128 * (n / 128)"


@pytest.mark.parametrize(
    ("grid", "condition", "extent"),
    [
        (("m / 128", "n / 64"), "1", "128 * (m / 128) * n + 64 * (n / 64) - n"),
        (("(m + 127) / 128", "(n + 63) / 64"), "i * 128 + u < m && j * 64 + w < n", "m * n"),
    ],
)
def test_tiles_of_literal_sizes(grid, condition, extent):
    text = (
        f"void f(int m, int n, float *v) {{ meta_schedule meta_for (int i = 0; i < {grid[0]}; i++) "
        f"meta_for (int j = 0; j < {grid[1]}; j++) meta_for (int u = 0; u < 128; u++) "
        f"meta_for (int w = 0; w < 64; w++) if ({condition}) v[(i * 128 + u) * n + j * 64 + w] = 1; }}"
    )
    assert extent_of_v(text) == extent


def test_windows_of_an_image_by_their_number():
    """With windows of one element the last row and column are not touched: `c * h * w` is what it has at most."""
    text = (
        "void f(int c, int h, int w, int k, float *v, float *out) { meta_schedule "
        "meta_for (int b = 0; b < c * k * k; b++) meta_for (int i = 0; i < h; i++) "
        "meta_for (int t = 0; t < 1; t++) meta_for (int j = 0; j < w; j++) { "
        "int y = i + b / k % k - 1, x = j + b % k - 1; float s = 0; "
        "if (y >= 0 && y < h && x >= 0 && x < w) s = v[(b / (k * k) * h + y) * w + x]; "
        "out[(b * h + i) * w + j] = s; } }"
    )
    assert extent_of_v(text) is None
    (warning,) = parse(Source("pointers.mf", text)).warnings
    assert "#pragma metafork extents(v[c * h * w])" in warning.way_out


@pytest.mark.parametrize("threads", [256, 1024])
@pytest.mark.parametrize("blocks", ["blocks", "64"])
def test_a_grid_stride_loop_of_blocks_with_many_threads(threads, blocks):
    text = (
        "void f(int n, int blocks, float *v) { "
        f"meta_schedule meta_for (int b = 0; b < {blocks}; b++) meta_for (int t = 0; t < {threads}; t++) "
        f"for (long p = (long)b * {threads} + t; p < n; p += (long){blocks} * {threads}) v[p] += 1; }}"
    )
    assert extent_of_v(text) == "n"


@pytest.mark.slow
def test_an_image_whose_borders_are_clamped_on_both_axes():
    """Its forty cases have more bounds than are looked for: the tight ones come first."""
    text = (SUITES / "sobel_bytes.mf").read_text()
    (function,) = (one for one in parse(Source("sobel.mf", text)).functions if one.name == "sobel_bytes")
    found = {one.name: expression(one.array.extents[0]) for one in function.parameters if one.array is not None}
    assert found == {"src": "height * width", "dst": "height * width"}


@pytest.mark.parametrize(
    ("body", "pointer", "why"),
    [
        ("out[p] = v[idx[p]];", "v", "the greatest index of `v` is not known"),
        ("int k = 0; while (v[k] > 0) k++; out[p] = k;", "v", "the greatest index of `v` is not known"),
        ("if (idx[p] > 0) out[p] = v[p];", "v", "is touched, but that it is touched itself is not proved"),
    ],
)
def test_what_accesses_do_not_say_is_asked_for(body, pointer, why):
    warnings = parse(Source("pointers.mf", loops(body))).warnings
    assert {one.code for one in warnings} == {"MF0405"}
    (one,) = (one for one in warnings if f"how many elements `{pointer}` has" in one.message)
    assert why in one.reason
    assert "#pragma metafork extents" in one.way_out
    promised = loops(body).replace("void f", "#pragma metafork extents(v[n * n], out[n])\nvoid f")
    assert parse(Source("pointers.mf", promised)).schedules


def test_a_promise_may_use_macros():
    macros = "#define WIDE 4\n#define ROWS(k) ((k) * WIDE)\n#pragma metafork extents(v[ROWS(n) + WIDE])\n"
    (function,) = parse(Source("pointers.mf", macros + loops("out[p] = v[idx[p]];"))).functions
    (pointer,) = (one for one in function.parameters if one.name == "v")
    assert expression(pointer.array.extents[0]) == "n * 4 + 4"


LOCALS = {
    "const int m = n * s; PRAGMA LOOP": "n * s",
    "int m; m = n * s; PRAGMA { LOOP }": "n * s",
    "long k = n + 1; int m = k * s; PRAGMA LOOP": "(int)((long)(n + 1) * s)",
    "if (s > 3) { const int m = n * s; PRAGMA LOOP }": "n * s",
    "PRAGMA int m = n * s; LOOP": "MF0321",  # not known there yet
    "int m = n * s; PRAGMA LOOP m = 3;": "MF0321",
    "int m = n * s; m++; PRAGMA LOOP": "MF0321",
    "int m = n * s; { int m = 7; PRAGMA LOOP }": "MF0321",
    "int m = n * s; { int m = 7; PRAGMA } LOOP": "MF0321",
    "int m = n * s; change(&m); PRAGMA LOOP": "MF0321",
    "int m = n * s; CHANGE(m); PRAGMA LOOP": "MF0321",
    "int m; if (n > 3) m = n * s; PRAGMA LOOP": "MF0321",
    "int m = idx[0]; PRAGMA LOOP": "MF0321",
    "int m = n * s; s++; PRAGMA LOOP": "MF0321",
    "s++; int m = n * s; PRAGMA LOOP": "MF0309",
    "for (int m = n; m < s; m++) { PRAGMA LOOP }": "MF0321",
}


@pytest.mark.parametrize("body", LOCALS)
def test_a_promise_may_name_locals_that_parameters_define(body):
    loop = "meta_schedule meta_for (int i = 0; i < n / 8; i++) meta_for (int j = 0; j < 8; j++) v[idx[i * 8 + j]] = 1;"
    expected = LOCALS[body]
    body = body.replace("PRAGMA", "\n#pragma metafork extents(v[m])\n").replace("LOOP", loop)
    source = Source(
        "pointers.mf", f"void change(int *m);\nvoid f(int n, int s, const int idx[n], float *v) {{ {body} }}"
    )
    if expected.startswith("MF"):
        with pytest.raises(DiagnosticsError) as caught:
            parse(source)
        assert {one.code for one in caught.value.diagnostics} == {expected}
    else:
        assert extent_of_v(source.text) == expected


def test_a_local_that_hides_a_parameter_elsewhere_does_not_matter_to_a_promise():
    text = loops("out[p] = v[idx[p]];").replace("{ meta_schedule", "{ { int n = 3; (void)n; } meta_schedule", 1)
    assert extent_of_v(f"#pragma metafork extents(v[2 * n])\n{text}") == "2 * n"


@pytest.mark.parametrize("local", ["int n = h(B); ", "int n = h(B) / 2; "])
def test_a_local_is_not_taken_for_a_parameter(local):
    text = loops("out[p] = v[p];").replace("{ meta_schedule", f"{{ if (B > 3) {{ {local}meta_schedule") + "}"
    with pytest.raises(DiagnosticsError) as caught:
        parse(Source("pointers.mf", f"int h(int x);\n{text}"))
    assert {one.code for one in caught.value.diagnostics} == {"MF0201"}


def at_schedule(text, name):
    """The extent of a parameter that it has at the only schedule of a file, and not for its function."""
    unit = parse(Source("pointers.mf", text))
    assert [one.array for one in unit.functions[0].parameters if one.name == name] == [None]
    ((array,),) = ([one for one in each.program.arrays if one.name == name] for each in unit.schedules)
    return expression(array.extents[0])


def test_an_extent_by_what_the_function_computes_is_one_at_the_schedule():
    loop = "meta_schedule { meta_for (int b = 0; b < (m + B - 1) / B; b++) meta_for (int t = 0; t < B; t++)"
    loop += " if (b * B + t < m / 2) out[b * B + t] = b; }"
    assert at_schedule(f"void f(const int *sizes, int B, float *out) {{ int m = sizes[0]; {loop} }}", "out") == "m / 2"


def test_an_extent_by_a_loop_of_the_host_is_said_in_all():
    text = (
        "void f(int k, int n, int B, float *out) { for (int b = 0; b < k; b += 2) meta_schedule meta_block(B) "
        "meta_for (int i = 0; i < n; i++) out[b * n + i] = 1; }"
    )
    (warning,) = parse(Source("pointers.mf", text)).warnings
    assert "depends on `b`, of a loop around the schedule" in warning.reason
    (schedule,) = parse(Source("pointers.mf", f"#pragma metafork extents(out[k * n])\n{text}")).schedules
    assert expression(schedule.program.arrays[0].extents[0]) == "k * n"


SIZES = {
    "int m = p < q ? p : q;": "p < q ? p : q",
    "int m = p < q ? p : q; m = m > 5 ? 5 : m;": "",  # `m` has two values
    "int k = p < q ? p : q; int m = k > 5 ? 5 : k;": "(p < q ? p : q) > 5 ? 5 : p < q ? p : q",
    "int m = p & 7;": "p & 7",
    "p = p / 2; int m = p < q ? p : q;": None,
    "int m = p < sizes[0] ? p : q;": "",
}
"""What is no expression in parameters is one at the schedule."""


@pytest.mark.parametrize("before", SIZES)
def test_an_extent_is_a_size_that_the_host_computes_from_parameters(before):
    text = (
        f"void f(const int *sizes, int p, int q, int B, float *v) {{ {before} meta_schedule "
        "{ meta_for (int i = 0; i < (m + B - 1) / B; i++) meta_for (int t = 0; t < B; t++)"
        " if (i * B + t < m) v[i * B + t] = 1; } }"
    )
    if SIZES[before] is None:
        with pytest.raises(DiagnosticsError):
            parse(Source("pointers.mf", text))
    else:
        assert (extent_of_v(text) == SIZES[before]) if SIZES[before] else (at_schedule(text, "v") == "m")


def test_other_faults_stand_alone():
    """Of pointers nothing is said as long as their accesses cannot be read."""
    with pytest.raises(DiagnosticsError) as caught:
        parse(Source("pointers.mf", loops("out[p] = v[p] + w;")))
    assert {one.code for one in caught.value.diagnostics} == {"MF0301"}
