"""Host code of which the tool does not know everything: the drop-in does what the serial elision does, bit for bit.

All functions of ``CASES`` stand in one file, which is optimized, built for the CPU and run once a case, with arrays
that a wrong transfer, a stale scalar or a moved pointer would spoil.  The reference is the same file compiled as C.
"""

import re

import pytest

from tests.end_to_end.commands import METAFORK, run
from tests.runtime.compiling import HEAP_ALONE

MOVE = "meta_schedule { meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < B; j++) BODY }"


def schedule(body, d="d"):
    return MOVE.replace("BODY", f"{{ int p = i * B + j; {body} }}").replace("i < d", f"i < {d}")


ADD = schedule("y[p] += x[p] + 1;")
LOOP = "int d = n / B; for (int t = 0; t < T; t++) { "

HEADERS = {
    "macros.h": """
#ifndef MACROS_H
#define MACROS_H
#include "deep/inner.h"
#define OWN_TOUCH x[0] = y[1] * 2 + t
#define OWN_HALVE g = g / 2
#define OWN_PLAIN (BLOCKS + 1)
#define OWN_LOG(...) printf("", __VA_ARGS__)
int outside(int v);
static inline int twice(int v) { return 2 * v; }
enum { OWN_THREE = 3 };
typedef int whole;
#endif
""",
    "deep/inner.h": '#pragma once\n#include "../macros.h"\n#include "inner.h"\n#define BLOCKS 4\n',
    "touch.inc": "x[0] = y[1] + t;\n",
    "only_macros.inc": "#undef LATE\n#define LATE x[1] += y[0]\n",
    "list.def": "STEP(x[0] += y[1])\nSTEP(x[1] += y[2])\n",
    "unsure.h": "#ifdef CHOICE\n#define UNSURE_HEADER (void)0\n#else\n#define UNSURE_HEADER x[2] = y[2]\n#endif\n",
}

PRELUDE = """
#include <stdio.h>
#include <stdlib.h>
#include "macros.h"
#include "macros.h"
#include "unsure.h"
int outside(int v) { return v + 1; }
void elsewhere(int *p);
static int *stored;
void keep(int *p) { stored = p; }
void poke(void) { *stored = *stored / 2; }
#ifdef NEVER_GIVEN
#define TOUCH (void)0
#define HALVE (void)0
#define ROUND(v) (v)
#define MOVE_IT (void)0
#define SHRINK (void)0
#define SHRINK_M (void)0
#define LIMIT 7
#define LEAVE (void)0
#define SMALLER(a, b) ((b) < (a) ? (b) : (a))
#define FIRST x
#define NOTHING
#define BEGIN_LOOP for (int q = 0; q < 1; q++) {
#define END_LOOP }
#else
#define TOUCH x[0] = y[1] * 2 + t
#define HALVE g /= 2
#define ROUND(v) v -= v % 2
#define MOVE_IT (x++, n--)
#define SHRINK n = n / 2
#define SHRINK_M m = m / 2
#define LIMIT 3
#define LEAVE if (t == 1) return
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define FIRST y
#define NOTHING x[0] = y[0];
#define BEGIN_LOOP for (int q = 0; q < 2; q++) {
#define END_LOOP x[0]++; }
#endif
#define CERTAIN_TOUCH x[0] = y[1] * 2 + t
#define NESTED CERTAIN_TOUCH
#define PASTED(a, b) a##b = a##b / 2
#define AGAIN(statement) statement; TOUCH
#define STEP_DOWN g = m / B; m = m / 2
#define TIMES(v, m) for (int v = 0; v < m; v++)
#define PAIR(v) for (int u = 0; u < 1 + x[0] * 0; u++) for (int v = 0; v < T; v++)
#define OPEN {
#define SHUT } x[3] = y[3];
#define LISTED STEP(x[0] += y[1]) STEP(y[2] += x[1])
#define printf_shadow printf
#define CLEAN(f) __attribute__((unused, cleanup(f)))
static void show(int **p) { printf("%d %d\\n", (*p)[0], (*p)[1]); }
static void count(int **p) { (*p)[2] += (*p)[1]; }
static void halve(int **p) { **p /= 2; }
static int counted(int *p) { int *last CLEAN(count) = p; return p[0]; }
#define EACH meta_for (int i = 0; i < d; i++) meta_for (int j = 0; j < B; j++)
#ifdef NEVER_GIVEN
typedef long under;
#endif
"""

CASES = {
    "an unsure macro in a loop": LOOP + ADD + " TOUCH; }",
    "an unsure macro of a header": LOOP + ADD + " UNSURE_HEADER; }",
    "a macro of an own header": LOOP + ADD + " OWN_TOUCH; }",
    "a macro of the file": LOOP + ADD + " NESTED; }",
    "an argument that is a statement": LOOP + ADD + " AGAIN(y[0]++); }",
    "text of a header in a loop": LOOP + ADD + '\n#include "touch.inc"\n }',
    "a header with macros only": LOOP
    + ADD
    + '\n#define LATE (void)0\n#include "only_macros.inc"\n LATE; }\n#undef LATE\n',
    "a list in a header": LOOP + ADD + '\n#define STEP(s) s;\n#include "list.def"\n#undef STEP\n }',
    "a list of macros": LOOP + ADD + "\n#define STEP(s) s;\n LISTED }\n#undef STEP\n",
    "a derived scalar that is halved": "int g = n / B; HALVE;" + schedule("y[p] += x[p];", "g"),
    "a derived scalar that is halved by a header": "int g = n / B; OWN_HALVE;" + schedule("y[p] += x[p];", "g"),
    "a derived scalar that is rounded": "int g = n / B; ROUND(g);" + schedule("y[p] += x[p];", "g"),
    "a derived scalar that is pasted": "int g = n / B, gg = 0; (void)gg; PASTED(g, ); "
    + schedule("y[p] += x[p];", "g"),
    "an order within one macro": "int g, m = n; STEP_DOWN; " + schedule("y[p] += x[p];", "g"),
    "a moved array": "int d = (n - 1) / B; MOVE_IT; " + ADD,
    "a shrunk extent": "int d = n / (2 * B); SHRINK; " + ADD,
    "a local array whose extent changes": "int d = n / (2 * B), m = n; int z[m]; for (int k = 0; k < n; k++) z[k] = k; "
    "SHRINK_M; " + schedule("y[p] += z[p];"),
    "a limit that is not known": LOOP.replace("t < T", "t < LIMIT") + ADD + " }",
    "a limit and a transfer": LOOP.replace("t < T", "t < SMALLER(T, LIMIT)") + ADD + " }",
    "a hidden way out": LOOP + ADD + " LEAVE; y[0] += t; }",
    "a name that is one of two arrays": LOOP + ADD + " FIRST[1] = FIRST[0] + t; }",
    "a loop that is a macro": "int d = n / B; TIMES(t, T) { " + ADD + " }",
    "two loops of one macro": "int d = n / B; PAIR(t) { " + ADD + " x[0] = t; }",
    "a loop that ends in a macro": LOOP[:-2] + "OPEN " + ADD + " SHUT",
    "a loop under a condition": "int d = n / B;\n#ifdef NEVER_GIVEN\nfor (int t = 0; t < T; t++)\n#endif\n{ "
    + ADD
    + " }",
    "a body under a condition": LOOP + ADD + "\n#ifdef NEVER_GIVEN\n x[0] = 1;\n#else\n x[0] = y[0];\n#endif\n }",
    "a branch that is cut": "int g = 2; if (T > 100)\n#ifdef NEVER_GIVEN\nreturn;\n#endif\ng = n / B; "
    + schedule("y[p] += x[p];", "g"),
    "a branch that goes on": "int g = 2;\n#ifdef NEVER_GIVEN\nif (T > 100)\n#else\ny[0]++;\nif (T > 200)\n#endif\n"
    + "g = n / B; "
    + schedule("y[p] += x[p];", "g"),
    "an expression that is cut": LOOP + ADD + " x[0] =\n#ifdef NEVER_GIVEN\n 1\n#else\n y[0]\n#endif\n; }",
    "an else that is cut": "int g = 2; if (T < 100) x[0] = 1;\n#ifndef NEVER_GIVEN\nelse\n#endif\ng = n / B; "
    + schedule("y[p] += x[p];", "g"),
    "an empty definition": LOOP + ADD + " NOTHING }",
    "a hidden loop": "int d = n / B; BEGIN_LOOP; " + ADD + " END_LOOP;",
    "two exchanges a step": "int d = n / B; int *h; for (int t = 0; t < T; t++) { "
    + schedule("y[p] = x[p] + t;")
    + " h = x; x = y; y = h; "
    + schedule("y[p] = 2 * x[p] + t;")
    + " }",
    "a call through a stored address": "int g = n / B; keep(&g); poke(); " + schedule("y[p] += x[p];", "g"),
    "a logged loop": LOOP + ADD + ' OWN_LOG("", t); }',
    "a string that is an array": LOOP + schedule("y[p] = x[p] - x[p] + 65;") + " char *s = (char *)y; "
    'char w[8]; snprintf(w, 8, "%.4s", s); x[0] += w[0]; }',
    "a pointer that prints": "char *s = (char *)y; " + LOOP + schedule("y[p] = x[p] - x[p] + 65;") + " char w[8]; "
    'snprintf(w, 8, "%.1s", s); x[t % n] += w[0]; }',
    "arrays that change places": LOOP + schedule("y[p] = x[p] * 3 + t;") + " int *h = x; x = y; y = h; }",
    "arrays that change places in one line": "int d = n / B; int *h; for (int t = 0; t < T; t++, h = x, x = y, y = h) {"
    + schedule("y[p] = x[p] * 3 + t;")
    + " }",
    "one array for another": "int d = n / B; int z[n]; for (int k = 0; k < n; k++) z[k] = 2 * k; int *old = x; x = z; "
    + ADD
    + " x = old; x[0] = 7;",
    "the same array twice": "int d = n / B; x = y; " + ADD,
    "an own header's constants": "int d = n / B; assert(OWN_THREE == 3 && OWN_PLAIN == 5); "
    + schedule("y[p] += x[p] * OWN_THREE + OWN_PLAIN;"),
    "an own header's type": "whole d = n / B; " + schedule("whole v = x[p]; y[p] += v;"),
    "functions of an own header": LOOP + ADD + " y[0] += twice(t) + outside(t); }",
    "loops of a macro": "int d = n / B; meta_schedule { EACH y[i * B + j] += x[i * B + j]; }",
    "names of C++": "int class = n / B, template = 3; { int new[n]; for (int k = 0; k < n; k++) new[k] = k; "
    + schedule("int this = new[p], operator = template; y[p] += this + operator + class;", "class")
    + " }",
    "names of CUDA": "int threadIdx = n / B, __shared__ = 2, blockDim = 3, __syncthreads = 1; "
    + schedule(
        "int gridDim = x[p], warpSize = 2; y[p] += gridDim * warpSize + __shared__ + blockDim + __syncthreads;",
        "threadIdx",
    ),
    "names of the generated code": "int metafork_own = n / B, metafork_arrays = 2, metafork_region0 = 3; "
    "for (int leaf = 0; leaf < T; leaf++) { "
    + schedule(
        "int metafork_failed = x[p], metafork_s = 1; y[p] += metafork_failed + metafork_s + metafork_arrays "
        "+ metafork_region0 + leaf;",
        "metafork_own",
    )
    + " }",
    "a handler that reads": "int d = n / B; int *last CLEAN(show) = y; " + ADD,
    "a handler that writes": "int d = n / B; int *last __attribute((__cleanup__(count))) = y; " + ADD + ADD,
    "a handler of the compiler's command line": "int d = n / B; GIVEN int *last = y; " + ADD,
    "a handler in the form of C23": "int d = n / B; [[gnu::cleanup(count)]] int *last = y; " + ADD,
    "handlers in a loop": LOOP + "int *last CLEAN(count) = y, *first CLEAN(show) = x; " + ADD + " if (t == 2) break; }",
    "a handler in a loop that shows what the last iteration left": LOOP + "int *last CLEAN(show) = y; " + ADD + " }",
    "a handler around a loop": "int *last CLEAN(count) = y; " + LOOP + ADD + " } { " + LOOP + ADD + " } }",
    "a handler of the head of a loop": "int d = n / B; for (int *last CLEAN(count) = y; d > 0;) { " + ADD + " break; }",
    "a handler between schedules": "int d = n / B; " + ADD + " { int *last CLEAN(count) = y; } " + ADD,
    "a handler that changes a scalar": "int g = n / B; { int *p CLEAN(halve) = &g; } " + schedule("y[p] += x[p];", "g"),
    "a handler of a function that is called": LOOP + ADD + " x[3] = counted(y) + t; }",
    "a handler of a function that calls one with schedules": "int *last CLEAN(count) = y; "
    "for (int t = 0; t < T; t++) add(n, B, x, y); meta_schedule { meta_for (int i = 0; i < 1; i++) "
    "meta_for (int j = 0; j < B; j++) x[j] += 1; }",
    "a caller with a handler": "int d = n / B; called(n, B, T, x, y); " + ADD,
    "a table of the file": "int d = n / B; " + schedule("y[p] += weights[p % 5] + more[p % 3] + grid[p % 2][p % 3];"),
}
TABLES = """
static const int weights[5] = {1, -2, 3, -4, 5};
int more[] = {7, 8, 9};
static int grid[][3] = {{1, 2, 3}, {4, 5, 6}};
"""
ADDING = f"""
static void add(int n, int B, int x[n], int y[n]) {{ int d = n / B; {ADD} }}
static void called(int n, int B, int T, int x[n], int y[n]) {{
  int *last CLEAN(count) = y;
  for (int t = 0; t < T; t++) {{ int *first CLEAN(show) = y; add(n, B, x, y); }}
}}
"""
SERIAL = {"a moved array", "a shrunk extent", "a local array whose extent changes", "the same array twice"}


def function(number, body):
    return f"void case_{number}(int n, int B, int T, int x[n], int y[n])\n{{\n{body}\n}}\n"


def driver(count):
    calls = "".join(f"    case {n}: case_{n}(n, B, T, x, y); break;\n" for n in range(count))
    declarations = "".join(f"void case_{n}(int n, int B, int T, int *x, int *y);\n" for n in range(count))
    return f"""
#include <stdio.h>
#include <stdlib.h>
{declarations}
void elsewhere(int *p) {{ (void)p; }}
int main(int argc, char **argv)
{{
  int n = 24, B = 4, T = 4, number = atoi(argv[argc - 1]);
  int *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  for (int k = 0; k < n; k++) x[k] = 3 * k + 1, y[k] = 100 - k * k;
  switch (number) {{
{calls}  }}
  for (int k = 0; k < n; k++) printf("%d %d\\n", x[k], y[k]);
  free(x);
  free(y);
  return 0;
}}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The drop-in under AddressSanitizer, and the serial elision, of all cases at once."""
    folder = tmp_path_factory.mktemp("unknown")
    for name, text in HEADERS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    text = PRELUDE + TABLES + ADDING + "".join(function(number, body) for number, body in enumerate(CASES.values()))
    (folder / "cases.mf").write_text(text)
    chosen = ("--counters", "threads_per_block", "--strategies", "granularity", "--static", "none")
    run(METAFORK, "optimize", "cases.mf", *chosen, cwd=folder)
    (folder / "driver.c").write_text(driver(len(CASES)))
    own = ["-I.", "-Icases.out/include", "-DGIVEN=__attribute__((cleanup(count)))"]
    sanitize = ["-fsanitize=address", *HEAP_ALONE]
    c = ["gcc", "-std=gnu11", "-O0", "-w", "-ffp-contract=off", *sanitize, *own]
    run(*c, "-c", "cases.out/cases_host.c", "-DMETAFORK_CPU", "-o", "host.o", cwd=folder)
    cxx = ["g++", "-std=c++17", "-O0", "-x", "c++", "-DMETAFORK_CPU", "-Icases.out", *sanitize, *own]
    run(*cxx, "-c", "cases.out/cases.cu", "-o", "device.o", cwd=folder)
    run(*c, "-c", "driver.c", "-o", "driver.o", cwd=folder)
    run("g++", *sanitize, "host.o", "device.o", "driver.o", "-lm", "-o", "ours", cwd=folder)
    elision = ["-Dmeta_for=for", "-Dmeta_schedule=", "-Dcache(...)=", "-include", "assert.h"]
    run(*c, *elision, "-x", "c", "cases.mf", "driver.c", "-lm", "-o", "theirs", cwd=folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_drop_in_is_the_serial_elision(programs, name):
    number = list(CASES).index(name)
    expected = run("./theirs", number, cwd=programs).stdout
    done = run("./ours", number, cwd=programs, env={"METAFORK_TRACE": "1"})
    assert done.stdout == expected
    launches = re.findall(r"^metafork: cases_k\d+ leaf \d+ ", done.stderr, re.MULTILINE)
    assert bool(launches) != (name in SERIAL), done.stderr
