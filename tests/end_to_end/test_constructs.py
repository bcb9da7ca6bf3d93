"""Constructs of C in schedules: the drop-in does what the same text does as C, and a leaf runs, not the serial code.

All functions of the tables stand in one file, which is optimized, built for the CPU with sanitizers, and run once for
each case.
"""

import os
import re

import pytest

from tests.end_to_end.c_form_cases import FORMS
from tests.end_to_end.commands import METAFORK, run
from tests.end_to_end.complex_cases import COMPLEX
from tests.end_to_end.construct_cases import CASES as CONSTRUCTS
from tests.end_to_end.row_cases import ROWS
from tests.end_to_end.walk_cases import WALKS
from tests.runtime.compiling import CALLED

CASES = {**CONSTRUCTS, **FORMS, **ROWS, **WALKS, **COMPLEX}
assert len(CASES) == sum(map(len, (CONSTRUCTS, FORMS, ROWS, WALKS, COMPLEX)))
HEAD = (
    "#include <limits.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    "#include <assert.h>\n#include <string.h>\n"
)
ASAN = ("-fsanitize=address", *CALLED)
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
{declarations}
static size_t size_of(char kind)
{{
  return kind == 'd' || kind == 'l' ? 8 : kind == 's' ? 2 : kind == 'c' || kind == 'b' ? 1 : 4;
}}
static size_t walk(const char *kinds, size_t count, char *place, int show)
{{
  size_t at = 0, most = 1;
  unsigned number = 1;
  for (size_t k = 0; k < count; k++) {{
    for (const char *kind = kinds; *kind; kind++) {{
      size_t size = size_of(*kind);
      most = size > most ? size : most;
      at = (at + size - 1) / size * size;
      number = number * 37 % 101;
      if (place) {{
        void *p = place + at;
        switch (*kind) {{
        case 'f': show ? (void)printf("%a\n", *(float *)p) : (void)(*(float *)p = number % 20); break;
        case 'd': show ? (void)printf("%a\n", *(double *)p) : (void)(*(double *)p = number % 20); break;
        case 'i': show ? (void)printf("%d\n", *(int *)p) : (void)(*(int *)p = number % 20); break;
        case 'l': show ? (void)printf("%ld\n", *(long *)p) : (void)(*(long *)p = number % 20); break;
        case 's': show ? (void)printf("%d\n", *(short *)p) : (void)(*(short *)p = number % 20); break;
        case 'c': show ? (void)printf("%d\n", *(signed char *)p) : (void)(*(signed char *)p = number % 20); break;
        default: show ? (void)printf("%d\n", *(unsigned char *)p) : (void)(*(unsigned char *)p = number % 2); break;
        }}
      }}
      at += size;
    }}
    at = (at + most - 1) / most * most;
  }}
  return at;
}}
static void *made(const char *kinds, size_t count)
{{
  char *place = calloc(walk(kinds, count, NULL, 0) + !count, 1);
  walk(kinds, count, place, 0);
  return place;
}}
int main(int argc, char **argv)
{{
  int number = atoi(argv[1]), n = atoi(argv[2]), m = atoi(argv[3]), B = atoi(argv[4]);
  switch (number) {{
{calls}  }}
  return 0;
}}
"""
CALL = """  case {0}: {{
    size_t many = {1}, more = {2};
    void *x = made("{3}", many), *y = made("{4}", more);
    case_{0}(n, m, B, x, y);
    walk("{3}", many, x, 1), walk("{4}", more, y, 1);
    free(x), free(y);
    break;
  }}
"""


def driver():
    numbered = tuple(enumerate(CASES.values()))
    declarations = "".join(f"void case_{number}(int, int, int, void *, void *);\n" for number, _ in numbered)
    calls = "".join(CALL.format(number, *case.sizes, *case.elements) for number, case in numbered)
    return DRIVER.format(declarations=declarations, calls=calls)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The drop-in under AddressSanitizer, and the same text as C, of all cases at once."""
    folder = tmp_path_factory.mktemp("constructs")
    texts = (case.text.replace("NAME", f"case_{number}") for number, case in enumerate(CASES.values()))
    (folder / "cases.mf").write_text(HEAD + "\n".join(texts) + "\n")
    (folder / "driver.c").write_text(driver())
    chosen = ("--counters", "threads_per_block,shared_memory", "--strategies", "granularity,caching", "--reassociate")
    run(METAFORK, "optimize", "cases.mf", *chosen, "--static", "none", cwd=folder)
    c = ("gcc", "-std=gnu11", "-O0", "-w", "-ffp-contract=off", *ASAN, "-I.", "-Icases.out/include")
    run(*c, "-c", "cases.out/cases_host.c", "-DMETAFORK_CPU", "-o", "host.o", cwd=folder)
    cxx = ("g++", "-std=c++17", "-O0", "-x", "c++", "-DMETAFORK_CPU", "-Icases.out", *c[5:])
    run(*cxx, "-w", "-c", "cases.out/cases.cu", "-o", "device.o", cwd=folder)
    run(*c, "-c", "driver.c", "-o", "driver.o", cwd=folder)
    run("g++", *ASAN, "host.o", "device.o", "driver.o", "-lm", "-o", "ours", cwd=folder)
    serial = (
        "-Dmeta_for=for",
        "-Dmeta_schedule=",
        "-Dmeta_block(...)=",
        "-Dmeta_reduction(...)=",
        "-Dcache(...)=",
        "-Dmeta_atomic=",
    )
    run(*c, *serial, "-x", "c", "cases.mf", "driver.c", "-lm", "-o", "theirs", cwd=folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_drop_in_does_what_the_text_does_as_c(programs, name):
    number, case = list(CASES).index(name), CASES[name]
    for point in case.points:
        expected = run("./theirs", number, *point, cwd=programs).stdout
        done = run("./ours", number, *point, cwd=programs, env={**os.environ, "METAFORK_TRACE": "2"})
        assert done.stdout == expected, point
        ran = re.search(r"^metafork: cases_k\d+ leaf \d+ ", done.stderr, re.MULTILINE)
        assert ran or not case.leaf or point != case.points[0], done.stderr
        assert not case.leaf or "the serial code runs" not in done.stderr, (point, done.stderr)
