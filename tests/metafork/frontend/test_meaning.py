"""A parsed program computes what its serial elision computes: printed back as C, both are compiled and run."""

import re
import shutil
import subprocess

import pytest

from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to compare with")

NUMBERS = {"n": 7, "m": 5, "k": 3}

PROGRAMS = {
    "hidden names": """
        #define TWICE(x) ((x) + (x))
        #define PUT(to, from) to = (from)
        void f(int n, int m, int k, double a[n][m], int b[n * m]) {
          int i = 2, rows = n - i;
          meta_schedule {
            meta_for (int p = 0; p < rows; p++) { int base = p * m;
              meta_for (int q = 0; q < m; q++) {
                int i = base + q; int k_1 = k;
                { int i = q; double k = 0.5; PUT(a[p][i], k + TWICE(i + 1)); }
                for (int q = 0, r = k_1; q < r; q++) { if (q == 2) continue; b[i] += q; }
                for (int q = 4; q > 1; --q) b[i] -= q << 1;
              } } } }
    """,
    "types": """
        typedef unsigned char byte;
        void f(int n, int m, int k, float x[n], byte c[n], long long w[m], unsigned u[n]) {
          const int d = n / 2;
          meta_schedule { meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < 2; j++) {
            int p = 2 * i + j; byte t = 250; t += p * 3; c[p] = t;
            u[p] = p - 3u > 2 ? ~u[p] : -u[p]; x[p] = x[p] * 3 / 2 + (char)(p + 'a') % 7 - 1e-1f;
            w[p % m] = w[p % m]; if (!(p & 1) && p != 4 || p == 5) x[p] = sqrt(x[p] * x[p]) + fmaxf(x[p], k);
            if (i == 0 && j == 0) { int s = 0; while (1) { s++; if (s > 5) break; } w[0] = s * (1ll << 33) - 010; }
          } } }
    """,
    "blocks": """
        void f(int n, int m, int k, double a[n][m], double b[n]) {
          meta_schedule { meta_for (int i = 0; i < n; i++) {
            double tile[m]; int step = k;
            for (int r = 0; r < 2; r++) { step += r; double scale = step * 0.25;
              if (step % 2) { meta_for (int j = 0; j < m; j++) tile[j] = a[i][j] * scale; }
              else meta_for (int j = 0; j < m; j++) { tile[j] = a[i][j] + i; }
              meta_for (int j = 0; j < m; j++) { double s = 0; for (int l = 0; l <= j; l++) s += tile[l]; a[i][j] = s; }
            } } } }
    """,
    "functions": """
        static int clamp(int x, int lo, int hi) { if (x < lo) return lo; if (x > hi) return hi; return x; }
        static inline int across(int a, int b) { return (a + b - 1) / b; }
        static double dot(int n, const double x[n], const double *y)
        { double s = 0; for (int i = 0; i < n; i++) s += x[i] * y[i]; return s; }
        static int find(int n, const double *x, double v) {
          for (int i = 0; i < n; i++) {
            if (x[i] == v) return i;
            for (int j = 0; j < 3; j++) { if (x[i] > v + 30 * j) continue; if (j == 2 && i > 2) return -i; }
          }
          return -1;
        }
        void put(int *d, int i, int v) { if (i < 0) return; { if (v == 2) { return; } } d[i] = v; }
        static void apart(int p, int by, int *q, int r[]) { *q = p / by; r[0] = p % by; p = 0; *r += p; }
        static float half(int x) { return x * 0.5; }
        static int wide(unsigned char x) { return x + 1; }
        static long long sum(int n) { long long s = 0; while (n > 0) { s += n; n--; } return s; }
        static int both(int x) { x = clamp(x, 1, 4); return across(x * 3, 2) + x; }
        static void row(int m, double a[][m], int i, double by) { for (int j = 0; j < m; j++) a[i][j] *= by; }
        int f_calls = 3;
        void f(int n, int m, int k, double a[n][m], double b[m], int d[n], double e[n * m], int g[n]) {
          meta_schedule {
            meta_for (int i = 0; i < across(n, 2); i++)
              meta_for (int j = 0; j < 2; j++) {
                int p = across(i * 4, 2) + j, q, r;
                if (p < n) {
                  apart(p * k, 4, &q, &r);
                  int s = q; apart(s, 2, &s, &q);
                  put(d, p, clamp(p + q, 3, n - 2) + find(m, a[p], 70) * 100);
                  put(d + 0, p, d[p] + r + s);
                  int t = clamp(clamp(p, 0, clamp(3, 0, 5)), 1, 2) + sum(sum(2));
                  e[p * m] = t + dot(m, a[p], b) + dot(m - 1, &a[p][1], b + 1) + half(p);
                  e[p * m + 1] = p > 2 && find(m, a[p], 37) > 0 ? sum(p) : wide(250 + p * 3);
                  e[p * m + 2] = p < 2 || (p != 4 && !find(m, a[p], 11)) ? dot(2, a[p], a[p]) : both(p);
                  for (int t = 0; t < find(m, a[p], 12) + sum(k); t++) { if (t == 3) continue; e[p * m + 3] += t; }
                  t = 0;
                  while (sum(t) < 20) { t++; if (t == 2) continue; e[p * m + 4] += t; }
                  for (int i = clamp(p, 0, 3); clamp(i, 0, 5) < 5; i = across(2 * i + 2, 2)) g[p] += i;
                  (void)find(m, a[p], 1);
                  row(m, a, p, half(k));
                }
              } } }
    """,
    "early ends": """
        #define TWICE(code) do { code; code; } while (0)
        static int least(int x) { do { x -= 3; if (x == 4) continue; } while (x > 2); return x; }
        static int odd(int x) { int s = 0; while (x > 0) { s += x; x -= 2; } return s; }
        void f(int n, int m, int k, double a[n][m], double b[n], int d[n]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++) {
              double tile[m];
              if (i == 3) continue;
              if (i % 2) { if (i == 5) continue; }
              meta_for (int j = 0; j < m; j++) {
                tile[j] = INFINITY;
                if (j < 2) { if (j == 1) continue; tile[j] = HUGE_VAL; } else { if (i > 4) continue; }
                tile[j] = a[i][j] > 20 ? -HUGE_VALF : a[i][j];
                for (int l = 0; l < 3; l++) { if (l == 1) continue; tile[j] += l; }
              }
              meta_for (int j = 0; j < m; j++) {
                if (j >= m - 1) continue;
                int x = j + 1, s = 0;
                do { int x = 2; s += x; if (s > 5) break; } while (s < x);
                do { x++; if (x == 4) continue; s += x; if (x % 3 == 0) continue; s++; } while (x < 8);
                do { if (s > 30) continue; s += 4; } while (odd(s) < 100);
                do s -= 7; while (odd(s) > 120);
                do { if (s == 3) break; s++; } while (0);
                TWICE(s += least(x));
                a[i][j] = tile[j] > tile[m - 1] ? s : fmin(tile[m - 1 - j], NAN) + s;
              }
              meta_for (int j = 0; j < m; j++) { if (i) { if (j) continue; d[i] = i; } b[i] = i; if (!i) d[i] = k; }
            } } }
    """,
    "a grid of two dimensions, a block of one": """
        void f(int n, int m, int k, double a[n][m], double b[n * m]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++)
              meta_for (int j = 0; j < 2; j++) {
                double half[m];
                meta_for (int one = 0; one < m; one++) half[one] = a[i][one] + j;
                for (int t = j; t < k; t += 2) meta_for (int u = 0; u < m; u++) b[i * m + (u + t) % m] += half[u] * t;
              } } }
    """,
    "a grid of one dimension, a block of three": """
        void f(int n, int m, int k, double a[n][m], double b[n * m * k]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++) { int first = i * m * k;
              meta_for (int u = 0; u < m; u++)
                meta_for (int v = 0; v < k; v++)
                  meta_for (int w = 0; w < 1; w++)
                    b[first + u * k + v] += a[i][u] * v + w;
              } } }
    """,
    "a grid of three dimensions, a block of one": """
        void f(int n, int m, int k, double a[n][m], double b[n * m]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++)
              meta_for (int u = 0; u < m; u++)
                meta_for (int v = 0; v < 1; v++)
                  if (i != 3)
                    meta_for (int w = 0; w < 1; w++)
                      b[i * m + u] += a[i][u] * k + v + w;
              } }
    """,
    "two of three loops are the grid's": """
        #define m_grid 2
        void f(int n, int m, int k, double a[n][m], double b[n * m]) {
          meta_schedule meta_grid(m_grid) cache(a) {
            meta_for (int i = 0; i < n; i++) { int first = i * m;
              meta_for (int j = 0; j < m; j++)
                meta_for (int u = 0; u < 1; u++)
                  b[first + j] += a[i][j] * k + u;
              } } }
    """,
    "one of four loops is the grid's": """
        int f_meta_grid(int meta_grid) { return meta_grid; }
        void f(int n, int m, int k, double a[n][m], double b[n * m]) {
          meta_schedule cache(a) /* a */ meta_grid ( 1 )
            meta_for (int i = 0; i < n; i++)
              meta_for (int j = 0; j < m; j++)
                meta_for (int u = 0; u < 1; u++)
                  meta_for (int v = 0; v < 1; v++)
                    b[i * m + j] += a[i][j] * k + u + v;
              }
    """,
    "values of static parameters": """
        #define TWICE(x) (2 * (x))
        #define TUNED meta_static(k: TWICE(2) + 1, 1, four,\\
 LONGEST + 1)
        enum { LONGEST = 5 };
        int f_meta_static(int meta_static) { return meta_static ? meta_static : 1; }
        void f(int n, int m, int k, double a[n][m], double b[n * m]) {
          const int four = 4;
          if (n < 0) return; else TUNED /* and then */
              meta_schedule
                meta_for (int i = 0; i < n; i++)
                  meta_for (int j = 0; j < m; j++)
                    for (int w = 0; w < k; w++) b[i * m + j] += a[i][j] * w;
              }
    """,
    "pointers": """
        #pragma metafork extents(c[n * m])
        #pragma metafork extents(d[k + 1])
        void f(int n, int m, int k, double a[n][m], double *c, int *d, const double *e, int *first, double *const z) {
          #pragma metafork extents(e[m])
          meta_schedule {
            meta_for (int i = 0; i < n; i++)
              meta_for (int j = 0; j < m; j++) {
                c[i * m + j] += a[i][j] * e[j];
                if (i == 0 && j == 0) { *first = k * *d; first[0] += 2; *z = *z + *a[1]; d[k] = *(e + k); }
              } } }
    """,
    "functions at block level": """
        #define SCALE(x) (2 * (x))
        typedef int number;
        static number twice(number x) { return SCALE(x); }
        static int steps(int x) { int s = 0; for (int i = 0; i < x; i++) { if (i == 4) return s; s += i; } return s; }
        static double weight(int i, double w[]) { const int k = i % 4; return w[k]; }
        static void fill(int m, double t[m], int j, double v) { t[j] = v; }
        void f(int n, int m, int k, double a[n][m], double w[4]) {
          meta_schedule {
            meta_for (int i = 0; i < n; i++) { int base = steps(i) + twice(k);
              double tile[m];
              for (int r = 0; r < steps(3); r++) {
                meta_for (int j = 0; j < m; j++) fill(m, tile, j, a[i][j] + base + weight(j + r, w));
                if (steps(r) >= 0)
                  meta_for (int j = 0; j < m; j++) { double s = 0; for (int l = 0; l <= j; l++) s += tile[l];
                                                  a[i][j] = s; }
              } } } }
    """,
}


def driver(function, prototype):
    """A main program that fills the arrays, calls the function and prints all bytes of the arrays."""
    lines = ["int main(void) {", *(f"  int {name} = {value};" for name, value in NUMBERS.items())]
    arrays = [one for one in function.parameters if one.array is not None]
    for one in arrays:
        extents = "".join(f"[{extent}]" for extent in re.findall(r"\[([^]]*)\]", one.declaration))
        lines.append(f"  static unsigned char {one.name}_bytes[8192]; (void)sizeof(char{extents});")
        lines.append(f"  for (int i = 0; i < 8192; i++) {one.name}_bytes[i] = 0;")
        type_ = one.array.element.spelling
        lines.append(f"  {type_} *{one.name} = ({type_} *){one.name}_bytes;")
        lines.append(f"  for (int i = 0; i < 64; i++) {one.name}[i] = ({type_})((i * 37 + 11) % 101);")
    names = [re.search(r"(\w+)\s*(?:\[|$)", part.strip()).group(1) for part in prototype.split(",")]
    lines.append("  f(" + ", ".join(f"(void *){name}" if name not in NUMBERS else name for name in names) + ");")
    lines += [f'  for (int i = 0; i < 8192; i++) printf("%d,", {one.name}_bytes[i]);' for one in arrays]
    return "\n".join([*lines, "  return 0;", "}", ""])


def run(text, function, folder, name):
    prototype = re.search(r"void f\((.*?)\)\s*\{", text, re.DOTALL).group(1)
    source = folder / f"{name}.c"
    source.write_text(
        "#include <stdio.h>\n#include <math.h>\n#include <assert.h>\n" + text + driver(function, prototype)
    )
    elision = [
        "-Dmeta_for=for",
        "-Dmeta_schedule=",
        "-Dcache(...)=",
        "-Dmeta_grid(...)=",
        "-Dmeta_block(...)=",
        "-Dmeta_min_blocks(...)=",
        "-Dmeta_static(...)=",
    ]
    command = [COMPILER, "-std=gnu11", "-O0", "-ffp-contract=off", "-fsanitize=undefined", *elision]
    subprocess.run([*command, "-o", folder / name, source, "-lm"], check=True, capture_output=True, text=True)
    return subprocess.run([folder / name], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_meaning(name, tmp_path):
    text = PROGRAMS[name]
    unit = parse(Source("f.mf", text))
    (schedule,) = unit.schedules
    printed = metafork_text(schedule.program)
    assert printed != text
    before = run(text, unit.functions[0], tmp_path, "before")
    assert before.count(",") >= 2 * 8192
    assert run(printed, unit.functions[0], tmp_path, "after") == before
