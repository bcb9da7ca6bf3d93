"""Pointers of which nobody knows how many elements they lead to: what is told at run time, what the host finds out.

All functions stand in one file, which is optimized, built for the CPU with AddressSanitizer, and run for each case.
The reference is the same file compiled as C, without what is told.
"""

import re

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from tests.runtime.compiling import INCLUDE, succeed

EACH = "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) { BODY } }"


def each(body):
    return EACH.replace("BODY", body)


TEXT = f"""#include <stdlib.h>
struct edge {{ int to; float w; }};
struct rows {{ int n; const int *first; const float *v; }};
void gather(int n, int B, const int *at, const float *x, float *y) {{ {each("y[i] = x[at[i]] + 1;")} }}
void scatter(int n, int B, const int *at, const float *x, float *y) {{ {each("y[at[i]] = x[i] * 2;")} }}
void rows(int n, int m, int B, const int *at, const float (*x)[m], float *y) {{
  {each("y[i] = 0; for (int k = 0; k < m; k++) y[i] += x[at[i]][k] * k;")}
}}
void around(int n, int B, const float *x, float *y) {{ {each("y[i] = x[i - 2] + x[i] + x[i + 1];")} }}
void steps(int n, int t, int B, const int *at, float *x, float *y) {{
  for (int s = 0; s < t; s++) {{
    {each("y[i] = x[at[i]] + 1;")}
    float *z = x; x = y; y = z;
  }}
}}
float made(int n, int B, const int *at) {{
  float *t = malloc((n + 3) * 4), *u = malloc(4 * n + 4), s = 0;
  for (int i = 0; i < n + 3; i++) t[i] = i * i % 7;
  {each("u[i] = t[at[i] % 3] + i;")}
  for (int i = 0; i < n; i++) s += u[i] * (i % 5);
  free(t);
  free(u);
  return s;
}}
void twice(int n, int B, const int *at, float *x, float *y) {{
  {each("y[at[i]] = x[i] + 1;")}
  y[0] += 1;
  {each("x[i] = y[at[i]] * 2;")}
}}
void relax(int n, int B, const int *first, const struct edge *e, const float *x, float *y) {{
  {each("y[i] = x[i]; for (int k = first[i]; k < first[i + 1]; k++) y[i] += x[e[k].to] * e[k].w;")}
}}
void own(int n, int B, int *at, const float *x, float *y) {{ {each("y[i] = x[at[i]]; at[i] = 0;")} }}
void sums(struct rows r, int B, float *y) {{
  const int n = r.n;
  {each("float s = 0; for (int k = r.first[i]; k < r.first[i + 1]; k++) s += r.v[k]; y[i] = s;")}
}}
"""

START = """
  int n = 37, m = 3, B = 8, at[N], first[N + 1];
  float x[4 * N], y[4 * N], z[4 * N];
  struct edge e[4 * N];
  for (int i = 0; i < N; i++) at[i] = (i * 7 + 3) % N, first[i] = i * 2;
  first[N] = 2 * N;
  for (int i = 0; i < 4 * N; i++) x[i] = i % 11, y[i] = -i, z[i] = 1, e[i] = (struct edge){(i * 5) % N, i % 3};
"""
"""What all calls find: `N` is 37."""

SURE = "TELL(at, sizeof at); TELL(x, sizeof x); TELL(y, sizeof y); TELL(z, sizeof z); TELL(e, sizeof e); "
SURE += "TELL(first, sizeof first); "

CALLS = {
    # what is called, and how many kernels run where memory is told, and where it is not
    "gather": ("gather(n, B, at, x, y);", 1, 1),
    "scatter": ("scatter(n, B, at, x, y);", 1, 1),
    "rows": ("rows(n, m, B, at, (const float (*)[m])x, y);", 1, 1),
    "in front of it": ("around(n, B, x + 2, y);", 1, 1),
    "the middle of what is told": ("gather(n, B, at, x + n, y); around(n, B, x + 40, y);", 2, 2),
    "in turn": ("steps(n, 5, B, at, x, y);", 5, 5),
    "twice": ("twice(n, B, at, x, y);", 2, 2),
    "structures": ("relax(n, B, first, e, x, y);", 1, 1),
    "members": ("struct rows r = {n, first, x}; sums(r, B, y);", 1, 1),
    "an array of indices that is written": ("own(n, B, at, x, y); own(n, B, at, x, y);", 2, 0),
    "told twice": ("TELL(x, 4); TELL(x, sizeof x); gather(n, B, at, x, y);", 1, 1),
    "no more": ("TELL(x, 0); gather(n, B, at, x, y);", 1, 1),
    "indices below 0": (
        "for (int i = 0; i < n; i++) at[i] -= 9; gather(n, B, at, x + 9, y);",
        1,
        1,
    ),
    "all of them behind it": ("for (int i = 0; i < n; i++) at[i] += 99; gather(n, B, at, x, y);", 1, 1),
    "no threads": ("gather(n, 0, at, x, y); relax(n, -1, first, e, x, y);", 0, 0),
    "rows without elements": ("for (int i = 0; i <= n; i++) first[i] = 5; relax(n, B, first, e, x, y);", 1, 1),
    "ended": (
        "float *u = malloc(sizeof x); memcpy(u, x, sizeof x); TELL(u, sizeof x); gather(n, B, at, u, y); "
        "TELL(u, 0); gather(n, B, at, u, y); free(u);",
        2,
        2,
    ),
    "null": ("n = 0; gather(n, B, at, 0, y);", 0, 0),
    "an overlap": ("gather(n, B, at, x, x + n - 1);", 0, 0),
    "side by side": ("gather(n, B, at, x, x + n);", 0, 1),
    "two arrays in one memory": ("TELL(x, 4 * n); TELL(x + n, 4 * n); gather(n, B, at, x, x + n);", 1, 1),
    "what malloc gave": ("y[0] = made(n, B, at); y[1] = made(n, B, at);", 2, 2),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untold")
    (folder / "f.mf").write_text(TEXT)
    result = optimize(folder / "f.mf", counters=("shared_memory",), strategies=())
    assert {one.code for one in result.warnings} == {"MF0403", "MF0405"}
    write_outputs(result, folder)
    cases = " ".join(f"case {number}: {{ {SURE} {call} break; }}" for number, (call, _, _) in enumerate(CALLS.values()))
    print_ = 'float s = 0; for (int i = 0; i < 4 * N; i++) s += (x[i] + 3 * y[i]) * (i % 7); printf("%g\\n", s);'
    main = f"int main(int argc, char **argv) {{ {START} switch (atoi(argv[1])) {{ {cases} }} {print_} }}"
    include = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nenum { N = 37 };\n"
    plain = TEXT.replace("meta_schedule meta_block(B)", "").replace("meta_for", "for")
    tell = '#include "metafork/host.h"\n#define TELL(p, bytes) (argc > 2 ? metafork_extent(p, bytes) : (void)0)\n'
    sums = "void sums(struct rows, int, float *);\n"
    types = "".join(line + "\n" for line in TEXT.splitlines() if line.startswith("struct"))
    (folder / "main.c").write_text(f'{include}{types}{tell}#include "f.h"\n{sums}{main}\n')
    (folder / "plain.c").write_text(f"{include}#define TELL(p, bytes)\n{plain}\n{main}\n")
    flags = ["-O0", "-DMETAFORK_CPU", f"-I{folder}", f"-I{INCLUDE}", "-fsanitize=address"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", folder / "f.cu", "-o", folder / "f.o"])
    host = [folder / "main.c", folder / "f_host.c", folder / "f.o"]
    succeed(["gcc", "-std=gnu11", *flags, *host, "-lm", "-lstdc++", "-o", folder / "main"])
    succeed(["gcc", "-std=gnu11", "-w", folder / "plain.c", "-o", folder / "plain"])
    return folder


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_c_told_or_not(name, programs):
    _, *kernels = CALLS[name]
    number = [*CALLS].index(name)
    expected = succeed([programs / "plain", number]).stdout
    quiet = {"ASAN_OPTIONS": "detect_leaks=0", "METAFORK_TRACE": "1"}
    for words, count in zip((["told"], []), kernels, strict=True):
        done = succeed([programs / "main", number, *words], env=quiet)
        assert (done.stdout, len(re.findall(r" leaf \d", done.stderr))) == (expected, count), done.stderr
        untold = re.findall(r"has not told how many bytes there are of (.*); the serial code runs", done.stderr)
        assert {*untold} == ({"x"} if count < kernels[0] else set())


KEPT = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
enum { N = 1000 };
static int right(const int *at, const float *x, const float *y, int n) {
  for (int i = 0; i < n; i++) if (y[i] != x[at[i]] + 1) return 0;
  return 1;
}
int main(void) {
  int *const at = mmap(0, N * sizeof *at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  float *const x = malloc(2 * N * sizeof *x), y[N];
  int copy[N];
  for (int i = 0; i < N; i++) copy[i] = at[i] = i * 7 % N;
  for (int i = 0; i < 2 * N; i++) x[i] = i;
  metafork_keep(at);
  gather(N, 8, at, x, y);
  gather(N, 8, at, x, y);
  mprotect(at, N * sizeof *at, PROT_NONE); /* nobody reads the indices again */
  gather(N, 8, at, x, y);
  gather(N, 8, at, x + 5, y);
  if (!right(copy, x + 5, y, N)) return 1;
  mprotect(at, N * sizeof *at, PROT_READ | PROT_WRITE);
  gather(N / 2, 8, at, x, y);
  if (!right(at, x, y, N / 2)) return 2;
  metafork_drop(at);
  at[3] = 2 * N - 1; /* a walk of before would not have it */
  gather(N, 8, at, x, y);
  gather(N, 8, at, x, y);
  if (!right(at, x, y, N)) return 3;
  moved(N, 8, at, x, y);
  return right(at, x, y, N) ? 0 : 4;
}
"""
"""Indices that stay on the device are gone through once; those that a schedule or the host writes, again."""

MOVED = f"""
void gather(int n, int B, const int at[n], const float *x, float y[n]) {{ {each("y[i] = x[at[i]] + 1;")} }}
void moved(int n, int B, int at[n], const float *x, float y[n]) {{
  for (int s = 0; s < 3; s++) {{
    {each("y[i] = x[at[i]] + 1;")}
    {each("at[i] = (at[i] + 1) % (n + n / 2);")}
    if (s == 1) at[7] = 2 * n - 1;
  }}
  {each("y[i] = x[at[i]] + 1;")}
}}
"""


def traced(folder):
    """What ``main.c`` says beside the files of ``f.mf``, with a trace of launches."""
    flags = ["-O0", "-w", "-DMETAFORK_CPU", f"-I{folder}", f"-I{INCLUDE}", "-fsanitize=address"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", folder / "f.cu", "-o", folder / "f.o"])
    host = [folder / "main.c", folder / "f_host.c", folder / "f.o"]
    succeed(["gcc", "-std=gnu11", *flags, *host, "-lm", "-lstdc++", "-o", folder / "main"])
    return succeed([folder / "main"], env={"ASAN_OPTIONS": "detect_leaks=0", "METAFORK_TRACE": "1"})


def test_indices_that_stay_are_gone_through_once(tmp_path):
    (tmp_path / "f.mf").write_text(MOVED)
    write_outputs(optimize(tmp_path / "f.mf", counters=("shared_memory",), strategies=()), tmp_path)
    (tmp_path / "main.c").write_text(f'#include "metafork/host.h"\n#include "f.h"\n{KEPT}')
    done = traced(tmp_path)
    assert (done.stderr.count(" leaf 1 "), "serial code" in done.stderr) == (14, False)


EXACT = """
void conv(int n, int m, int B, const int *on, const float *x, const float *k, float *y) {
  meta_schedule meta_block(B * 16) { meta_for (int i = 0; i < n; i++) {
    float s = 0;
    if (on[i]) for (int j = 0; j < 3; j++) s += x[i + j] * k[j];
    y[i] = s;
  } }
}
void product(int n, int m, int B, const int *on, const float *x, const float *k, float *y) {
  meta_schedule meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) {
    float s = 0;
    if (on[i]) for (int l = 0; l < 5; l++) s += x[i * 5 + l] * k[l * m + j];
    y[i * m + j] = s;
  } }
}
void stencil(int n, int m, int B, const int *on, const float *x, const float *k, float *y) {
  meta_schedule meta_block(B, B) { meta_for (int i = 1; i < n - 1; i++) meta_for (int j = 1; j < m - 1; j++)
    y[i * m + j] = on[i] ? x[i * m + j - 1] + x[i * m + j + 1] + x[(i - 1) * m + j] + x[(i + 1) * m + j] : k[0];
  }
}
"""
"""Functions whose kernels compute several results per thread, with vectors, from memory that `on` says the end of."""

EXACTLY = """
static float *made(int n)
{
  float *p = malloc(n * sizeof *p);
  for (int i = 0; i < n; i++) p[i] = i % 13;
  metafork_extent(p, n * sizeof *p);
  return p;
}
int main(void)
{
  const int shapes[] = {1, 5, 25, 32};
  for (int shape = 0; shape < 4; shape++)
    for (int n = 1; n <= 100; n += 11) {
      const int B = shapes[shape], m = n / 2 + 3;
      int on[100], last = -1;
      for (int i = 0; i < n; i++) on[i] = i > 0 && i < n - n / 4 - 1 && i % 3 != 1;
      for (int i = 0; i < n; i++) last = on[i] ? i : last;
      metafork_extent(on, sizeof on);
      float *x = made(last + 3), *k = made(3), *y = made(n);
      conv(n, m, B, on, x, k, y);
      for (int i = 0; i < n; i++) if (y[i] != (on[i] ? x[i] * k[0] + x[i + 1] * k[1] + x[i + 2] * k[2] : 0)) return 1;
      x = made((last + 1) * 5), k = made(5 * m), y = made(n * m);
      product(n, m, B, on, x, k, y);
      x = made((last + 1) * m + m - 1), k = made(1), y = made(n * m);
      stencil(n, m, B, on, x, k, y);
    }
  return 0;
}
"""


@pytest.mark.slow
def test_kernels_touch_no_element_that_the_program_does_not(tmp_path):
    (tmp_path / "f.mf").write_text(EXACT)
    write_outputs(optimize(tmp_path / "f.mf"), tmp_path)
    include = '#include <stdlib.h>\n#include "metafork/host.h"\n#include "f.h"\n'
    (tmp_path / "main.c").write_text(f"{include}{EXACTLY}")
    done = traced(tmp_path)
    variants = re.findall(r"f_k(\d) leaf 1 .*variant=(\d)", done.stderr)
    assert {int(schedule) for schedule, _ in variants} == {0, 1, 2}
    assert len(set(variants)) > 4
    assert "serial code" not in done.stderr


MOVING = """
typedef struct { int n; double *h, *hn; } field;
void run(field *s, int steps)
{
  for (int t = 0; t < steps; t++) {
    meta_schedule meta_block(32) {
      meta_for (int i = 1; i < s->n - 1; i++)
        s->hn[i] = 0.5 * s->h[i - 1] + 0.25 * s->h[i + 1];
    }
    double *p = s->h;
    s->h = s->hn;
    s->hn = p;
    s->h[0] += 1;
  }
}
"""

MOVES = """
#include <stdlib.h>
#include <string.h>
typedef struct { int n; double *h, *hn; } field;
void run(field *s, int steps);
void plain(field *s, int steps);
static field made(int n)
{
  field f = {n, malloc(8 * n), malloc(8 * n)};
  for (int i = 0; i < n; i++) f.h[i] = i % 17, f.hn[i] = i % 5;
  return f;
}
int main(void)
{
  field a = made(1000), b = made(1000);
  for (int steps = 7; steps > 3; steps -= 3) {
    run(&a, steps), plain(&b, steps);
    if (memcmp(a.h, b.h, 8000) || memcmp(a.hn, b.hn, 8000)) return 1;
  }
  return 0;
}
"""


@pytest.mark.parametrize("pragma", ["", "#pragma metafork extents(s->h[s->n], s->hn[s->n])"], ids=["untold", "told"])
def test_members_that_change_places_are_what_they_are_at_each_launch(tmp_path, pragma):
    text = MOVING.replace("void run", f"{pragma}\nvoid run")
    (tmp_path / "f.mf").write_text(text)
    result = optimize(tmp_path / "f.mf", counters=("shared_memory",), strategies=())
    assert [one.code for one in result.warnings] == ([] if pragma else ["MF0405", "MF0405"])
    write_outputs(result, tmp_path)
    plain = (
        text.replace("meta_schedule meta_block(32)", "").replace("meta_for", "for").replace("void run", "void plain")
    )
    (tmp_path / "main.c").write_text(MOVES + plain.replace(plain[: plain.index("void plain")], ""))
    done = traced(tmp_path)
    assert (done.stderr.count(" leaf 1 "), "serial code" in done.stderr) == (11, False)
