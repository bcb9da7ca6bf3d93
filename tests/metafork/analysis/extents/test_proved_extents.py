"""Extents of pointers that are stated because they are proved, and what is said where they are not."""

import re

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression
from tests.runtime.compiling import succeed

HEADS = {
    "elements": "meta_block(B) { meta_for (int i = 0; i < n; i++) { BODY } }",
    "backwards": "meta_block(B) { meta_for (int i = n - 1; i >= 0; i--) { BODY } }",
    "inner": "meta_block(B) { meta_for (int i = 1; i < n - 1; i++) { BODY } }",
    "unsigned": "meta_block(B) { meta_for (unsigned i = 0; i < n; i++) { BODY } }",
    "pairs": "meta_block(B) { meta_for (int i = 0; i + 1 < n; i += 2) { BODY } }",
    "plane": "meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) { BODY } }",
    "tiles": "meta_for (int b = 0; b < (n + B - 1) / B; b++) meta_for (int t = 0; t < B; t++) "
    "{ int i = b * B + t; if (i < n) { BODY } }",
}
PARAMETERS = "int n, int m, int k, int B, const int flag[n], const unsigned char byte[n], float *x, float *y"


def function(head, body, parameters=PARAMETERS):
    return f"void f({parameters}) {{ meta_schedule {HEADS[head].replace('BODY', body)} }}"


def extents_in(text):
    """The extents of pointers at the schedules of a text; the warning about a pointer of which they are not known."""
    unit = parse(Source("f.mf", text))
    arrays = [one for schedule in unit.schedules for one in schedule.program.arrays]
    found = {
        one.name: expression(one.extents[0]) for one in arrays if one.name not in ("flag", "byte") and not one.endless
    }
    return found | {one.message.split("`")[1]: one for one in unit.warnings}


PROVED = {
    # constants, of any size
    ("elements", "if (i < 50) x[i] = y[i];"): {"x": "50 < n ? 50 : n", "y": "50 < n ? 50 : n"},
    ("tiles", "if (i < 1000000) x[i] = 1;"): {"x": "1000000 < n ? 1000000 : n"},
    ("elements", "if (i < 40 * m) x[i] = 1;"): {"x": "40 * m < n ? 40 * m : n"},
    ("elements", "for (int j = 0; j < m && j < 40; j++) x[j] = 1;"): {"x": "40 < m ? 40 : m"},
    ("elements", "if (n < 100) x[i] = 1;"): {"x": "n <= 99 ? n : 0"},
    ("elements", "if (m > 0) x[i] = 1; else y[i] = 2;"): {"x": "0 < m ? n : 0", "y": "m <= 0 ? n : 0"},
    ("elements", "if (i >= 25) x[i] = y[i - 25];"): {"x": "26 <= n ? n : 0", "y": "26 <= n ? n - 25 : 0"},
    # quotients and remainders
    ("elements", "x[i % 64] = y[i / 4];"): {"x": "64 < n ? 64 : n", "y": "(n - 1) / 4 + 1"},
    ("tiles", "x[i & 63] = y[i >> 2];"): {"x": "64 < n ? 64 : n", "y": "(n - 1) / 4 + 1"},
    ("elements", "if (i % 3 == 0) x[i] = 1;"): {"x": "3 * ((n - 1) / 3) + 1"},
    ("tiles", "x[(i + 1) % n] = y[(i + n - 1) % n];"): {"x": "n", "y": "n"},
    # loops in a thread
    ("elements", "for (int j = 0; j < m; j++) x[i * m + j] = 1;"): {"x": "m * n"},
    ("elements", "for (int j = 0; j < m; j++) x[i * k + j] = 1;"): {"x": "1 <= m ? m + k * n - k : 0"},
    ("elements", "for (int j = 0; j <= i; j++) x[i * n + j] = 1;"): {"x": "n * n"},
    ("elements", "for (int j = i + 1; j < n; j++) x[i * n + j] = 1;"): {"x": "n * n - n"},
    ("elements", "for (int j = 0; j <= i; j++) x[i * (i + 1) / 2 + j] = 1;"): {"x": "(n * n - n) / 2 + n"},
    ("elements", "for (int j = 0; j + 3 < m; j += 4) x[j + 3] = 1;"): {"x": "4 * (m / 4)"},
    ("elements", "for (int j = 0; j < n; j++) if (j != i) x[j] = 1;"): {"x": "2 <= n ? n : 0"},
    ("elements", "for (int j = i; j < m; j += n) x[j] = 1;"): {"x": "m"},
    ("elements", "int j = 0; while (j < m) { x[i * m + j] = 1; j++; }"): {"x": "m * n"},
    ("elements", "int j = 0; do { x[j] = 1; } while (++j < m);"): {"x": "1 < m ? m : 1"},
    ("elements", "for (int j = 0; j < m; j++) { if (j >= k) break; x[j] = 1; }"): {"x": "k < m ? k : m"},
    ("unsigned", "for (unsigned j = 0; j < m; j++) x[i * m + j] = 1;"): {"x": "m * n"},
    ("unsigned", "for (int j = 0; j < k; j++) x[8 * i + j] = 1;"): {"x": "1 <= k ? k + 8 * n - 8 : 0"},
    # the condition of a loop is tested before there is an iteration
    ("elements", "y[i] = 0; for (int j = flag[i]; j < x[i + 1]; j++) y[i] += j;"): {"x": "n + 1", "y": "n"},
    ("tiles", "int j = flag[i]; while (j < x[i + 2]) j++; y[i] = j;"): {"x": "n + 2", "y": "n"},
    ("elements", "int j = 0; while (m > 0 && j < x[i]) j++; y[i] = j;"): {"x": "0 < m ? n : 0", "y": "n"},
    # borders
    ("inner", "x[i] = y[i - 1] + y[i + 1];"): {"x": "n - 1", "y": "n"},
    ("tiles", "int l = i > 0 ? i - 1 : 0, r = i < n - 1 ? i + 1 : n - 1; x[l] = y[r];"): {
        "x": "n <= 1 ? 1 : n - 1",
        "y": "n",
    },
    ("elements", "for (int j = -2; j <= 2; j++) if (i + j >= 0 && i + j < n) x[i + j] = 1;"): {"x": "n"},
    ("plane", "x[i * k + j] = y[j * n + i];"): {"x": "m + k * n - k", "y": "m * n"},
    ("backwards", "x[i] = y[n - 1 - i];"): {"x": "n", "y": "n"},
    # the larger of two, and either side of a condition that nobody knows
    ("elements", "x[n] = x[m * m];"): {"x": "m * m < n ? n + 1 : m * m + 1"},
    ("elements", "if (flag[i]) x[i] = 1; else x[i] = 2;"): {"x": "n"},
    ("elements", "if (flag[i] > 3) x[i] = 1; else if (flag[i] > 2) x[i] = 2; else x[i] = 3;"): {"x": "n"},
    ("elements", "y[i] = 1; if (flag[i]) { x[i] = 1; continue; } x[i] = 2;"): {"x": "n", "y": "n"},
    # one of many values of a parameter
    ("elements", " ".join(f"if (m == {v}) x[i] += {v};" for v in range(5))): {
        "x": "m == 0 || m == 1 || m == 2 || m == 3 || m == 4 ? n : 0"
    },
    ("tiles", " else ".join(f"if (m == {v}) x[i] = {v};" for v in (2, 3, 5, 7, 9, 11))): {
        "x": "m == 2 || m == 3 || m == 5 || m == 7 || m == 9 || m == 11 ? n : 0"
    },
    ("elements", "y[i] = 0; " + " ".join(f"if (k == {v} && m > {v}) x[i] = y[i];" for v in range(1, 5))): {
        "x": "(k == 1 && 1 < m) || (k == 2 && 2 < m) || (k == 3 && 3 < m) || (k == 4 && 4 < m) ? n : 0",
        "y": "n",
    },
    ("elements", "x[i % 256] = 1; if (n >= 256) y[i] = x[byte[i]];"): {
        "x": "256 <= n ? 256 : n",
        "y": "256 <= n ? n : 0",
    },
    # what memory says, between bounds that are touched
    ("elements", "x[i] = 1; int r = flag[i]; if (r >= 0 && r < n) x[r] = 2;"): {"x": "n"},
    ("tiles", "int r = flag[i] / 2; y[i] = x[i]; if (0 < r && r <= n) y[i] += x[r - 1];"): {"x": "n", "y": "n"},
}


@pytest.mark.parametrize("case", PROVED, ids=lambda case: case[1])
def test_what_is_proved_is_stated(case):
    assert extents_in(function(*case)) == PROVED[case]


PROVED |= {
    # values of memory that are clamped, or compared as unsigned ones
    ("elements", "x[i] = 1; int r = flag[i]; if (r < 0) r = 0; if (r > n - 1) r = n - 1; y[i] = x[r];"): {
        "x": "n",
        "y": "n",
    },
    ("elements", "x[i] = 1; y[i] = 2; int r = flag[i]; if ((unsigned)r < (unsigned)n) y[i] = x[r];"): {
        "x": "n",
        "y": "n",
    },
    ("tiles", "x[i] = 1; unsigned r = byte[i]; r = r < n ? r : 0; y[i] = x[r];"): {"x": "n", "y": "n"},
    # steps of a condition
    ("pairs", "x[i] = y[i + 1];"): {"x": "2 * ((n - 2) / 2) + 1", "y": "2 * ((n - 2) / 2) + 2"},
}

AROUND = {
    # code around a schedule in which `x[s * n + i]` is touched, and the extent
    "for (int s = 0; s < m; s++) { S }": "m * n",
    "for (int s = m - 1; s >= 0; s--) S": "m * n",
    "for (int s = 0; s <= m; s++) { k += s; S y[0] = s; }": "m * n + n",
    "for (int s = 0; s < m + k - 1; ++s) { S }": "2 <= m + k ? m * n + k * n - n : 0",
    "for (int t = 0; t < k; t++) for (int s = 0; s < m; s++) { S }": "m * n",
    "int s; for (s = 0; s < 7; s++) { S }": "7 * n",
    "for (int s = 0; s < m; s++) { S if (y[0] > 3) break; }": None,
    "for (int s = 0; s < m; s++) { if (y[s] > 3) continue; S }": None,
    "for (int s = 0; s < m; s++) { if (y[s] > 3) { S } }": None,
    "for (int s = 0; s < m; s++) { S m = k; }": None,
    "for (int s = 0; s < m; s++) { S s++; }": None,
    "for (int s = 0; s < m; s++) { S unknown(); }": None,
    "for (int s = 0; s < m; s++) { S float *z = x; x = y; y = z; }": None,
    "for (int s = 0; s < m; s += 2) { S }": None,
    "for (int s = 1; s < m; s++) { S }": None,
    "for (int s = 0; s < m; s++) { S if (m > 5) return; }": None,
    "for (unsigned s = m - 1; s >= 0; s--) { S }": None,
    "for (int s = 0; s < m; s++) { for (int t = 0; t < k; t++) { S } }": "1 <= k ? m * n : 0",
    "for (int s = 0; s < m; s++) { for (int t = 0; t < s; t++) { S } }": None,
    "while (m > 0) for (int s = 0; s < m; s++) { S m--; }": None,
}


@pytest.mark.parametrize("around", AROUND)
def test_loops_around_a_schedule_that_run_whole_say_how_much(around):
    body = around.replace("S", "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[s * n + i] = i; }")
    (found,) = extents_in(f"void unknown(void);\nvoid f({PARAMETERS}) {{ {body} }}").values() or (None,)
    assert (found if isinstance(found, str) else None) == AROUND[around]


NOT_PROVED = {
    ("elements", "x[i - 1] = 1;"): ("may be below 0", ""),
    ("elements", "x[i - 25] = 1;"): ("may be below 0", ""),
    ("elements", "x[i - 100] = 1;"): ("may be below 0", ""),
    ("elements", "if (i > 98) x[i - 100] = 1;"): ("may be below 0", ""),
    ("elements", "x[i] = 2; if (flag[i]) x[i + n] = 1;"): (
        "nothing behind `x[2 * n - 1]` is touched",
        "extents(x[2 * n])",
    ),
    ("elements", "if (flag[i]) x[i] = 1;"): ("nothing behind `x[n - 1]` is touched", "extents(x[n])"),
    ("elements", "int r = flag[i]; if (r >= 0 && r < m) x[r] = 1;"): (
        "nothing behind `x[m - 1]` is touched",
        "extents(x[m])",
    ),
    ("elements", "y[i] = x[byte[i]];"): ("nothing behind `x[255]` is touched", "extents(x[256])"),
    ("tiles", "y[i] = x[byte[i] & 15] + x[byte[i] / 4 + m];"): (
        "nothing behind `x[m + 63]` is touched",
        "extents(x[m + 64])",
    ),
    ("elements", "y[i] = x[flag[byte[i]]];"): ("the greatest index of `x`", ""),
    ("elements", "unsigned r = flag[i]; if (r <= 40) x[r] = 1;"): (
        "nothing behind `x[40]` is touched",
        "extents(x[41])",
    ),
    ("elements", "x[i] = 1; int r = flag[i]; if (r >= 0 && r <= n) x[r] = 1;"): ("nothing behind", "extents(x[n + 1])"),
    ("elements", "x[i] = 1; int r = flag[i]; if (r < n) x[r] = 1;"): ("the greatest index of `x`", ""),
    ("elements", "x[i] = 1; int r = flag[i]; if (r >= 0) x[r] = 1;"): ("the greatest index of `x`", ""),
    ("elements", "int j = 0; while (j < m && x[j] > 0) j++; y[i] = j;"): (
        "nothing behind `x[m - 1]` is touched",
        "extents(x[m])",
    ),
    ("elements", "for (int j = 0; j < m; j++) { x[j] = 1; if (flag[i]) break; }"): ("nothing behind", "extents(x[m])"),
    ("elements", "for (int j = 0; x[j] > 0 && j < m; j++) y[i] = j;"): ("the greatest index of `x`", ""),
    (
        "elements",
        "for (int j = 0; j < m; j++) { int d = 2 * j + (i + k) % 2;"
        " if (d > 0 && d < 2 * m - 1) x[(i + 1) * (2 * m) + d] = 1; }",
    ): ("nothing behind `x[2 * m + 2 * m * n - 2]` is touched", "extents(x[2 * m + 2 * m * n - 1])"),
    ("plane", "if ((i + j) % 2 == k) { int r = j == m - 1 ? 0 : j + 1; x[i * m + r] = 1; }"): (
        "nothing behind `x[m * n - 1]` is touched",
        "extents(x[m * n])",
    ),
    ("elements", "int d; if (flag[i] > 0) d = i; else d = i + 1; x[d] = 1;"): ("nothing behind", "extents(x[n + 1])"),
}


@pytest.mark.parametrize("case", NOT_PROVED, ids=lambda case: case[1])
def test_what_is_not_proved_is_asked_for_with_what_is_known(case):
    why, way_out = NOT_PROVED[case]
    one = extents_in(function(*case))["x"]
    assert one.code == "MF0405"
    assert why in one.reason
    assert (way_out or "extents(x[?])") in one.way_out


def test_the_reason_names_a_launch():
    one = extents_in(function("elements", "if (flag[i]) x[i] = 1;"))["x"]
    assert "(it may not be for B = " in one.reason
    assert ", n = " in one.reason


SCHEDULES = {
    # both run, so the second leaves the first what it touches
    ("A", "B"): {"x": ["n"], "stated": True},
    ("A", "int t = 3;", "B"): {"x": ["n"], "stated": True},
    ("A", "for (int t = 0; t < k; t++) {", "B", "}"): {"x": ["n", "n - 1"], "stated": False},
    ("A", "if (k > 2)", "B"): {"x": ["n", "n - 1"], "stated": False},
    ("A", "if (k > 2) return;", "B"): {"x": ["n", "n - 1"], "stated": False},
    ("B", "for (int t = 0; t < k; t++) {", "B", "}"): {"x": ["n - 1"], "stated": True},
}


@pytest.mark.parametrize("parts", SCHEDULES)
def test_a_schedule_that_need_not_run_gives_another_no_elements(parts):
    known = {
        "A": "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[i] = i; }",
        "B": "meta_schedule meta_block(B) { meta_for (int i = 1; i < n - 1; i++) x[i] = i; }",
    }
    body = "\n".join(known.get(part, part) for part in parts)
    unit = parse(Source("f.mf", f"void f(int n, int k, int B, float *x)\n{{\n{body}\n}}\n"))
    at = [expression(one.extents[0]) for each in unit.schedules for one in each.program.arrays]
    assert list(dict.fromkeys(at)) == SCHEDULES[parts]["x"]
    (pointer,) = (one for one in unit.functions[0].parameters if one.name == "x")
    assert (pointer.array is not None) == SCHEDULES[parts]["stated"]


STATIC = {
    ("x[static 1]", "x[i] = 1;"): "n",
    ("x[static 2 + 2]", "x[i] = 1;"): "n",
    ("x[static n]", "x[i] = 1;"): "n",
    ("x[static 8]", "if (flag[i]) x[i % 8] = 1;"): "8",  # as many there are, touched or not
}


@pytest.mark.parametrize("case", STATIC)
def test_static_is_a_least_number(case):
    declared, body = case
    assert extents_in(function("elements", body, f"int n, int B, const int flag[n], float {declared}")) == {
        "x": STATIC[case]
    }


def test_a_pragma_says_nothing_of_another_function():
    one = "#pragma metafork extents(x[n + 1])\n" + function("elements", "y[i] = x[i];")
    other = "void g(int n, int B, float *d, const float *u) { float x; int i; meta_schedule meta_block(B) { "
    other += "meta_for (i = 0; i < n; i++) { x = i - u[i]; d[i] = x; } } }"
    assert len(parse(Source("f.mf", f"{one}\n{other}")).schedules) == 2


RUN = {
    "constant": (
        "void f(int n, int B, float *x, const float *y) { meta_schedule meta_block(B) "
        "{ meta_for (int i = 0; i < n; i++) { x[i] = 0; if (i < 50) x[i] = y[i]; } } }",
        "float x[n], *y = malloc(50 * sizeof *y); for (int i = 0; i < 50; i++) y[i] = i; f(n, 32, x, y);",
    ),
    "static": (
        "void f(int n, int B, float x[static 1], const float y[static 1]) { meta_schedule meta_block(B) "
        "{ meta_for (int i = 0; i < n; i++) x[i] = 2 * y[i] + 1; } }",
        "float x[n], y[n]; for (int i = 0; i < n; i++) y[i] = i; f(n, 32, x, y);",
    ),
    "one of many": (
        "void f(int n, int B, float *x, float *y) { meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) "
        "{ x[i] = i; if (n == 1) y[i] = 1; if (n == 2) y[i] = 2; if (n == 3) y[i] = 3; if (n == 4) y[i] = 4; } } }",
        "float x[n]; f(n, 32, x, NULL);",
    ),
    "whole loop": (
        "void f(int n, int B, float *x, float *y) { for (int s = 0; s < 3; s++) { meta_schedule meta_block(B) "
        "{ meta_for (int i = 0; i < n; i++) { x[i] = s; y[s * n + i] = i + s; } } } }",
        "float x[n], *y = malloc(3 * n * 4); f(n, 32, x, y); for (int i = 0; i < n; i++) x[i] += y[n + i];",
    ),
    "nothing": (
        "void f(int n, int B, float *x, float *y) { meta_schedule meta_block(B) "
        "{ meta_for (int i = 0; i < n; i++) { x[i] = i; if (n < 100) y[i] = i; } } }",
        "float x[n]; f(n, 32, x, NULL);",
    ),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The host with AddressSanitizer, and the serial program; both take the number of a function."""
    folder = tmp_path_factory.mktemp("extents")
    text = "".join(text.replace(" f(", f" f{number}(") for number, (text, _) in enumerate(RUN.values()))
    (folder / "f.mf").write_text(text)
    write_outputs(optimize(folder / "f.mf", counters=("shared_memory",), strategies=()), folder)
    print_ = 'float s = 0; for (int i = 0; i < n; i++) s += x[i] * (i % 7); printf("%g\\n", s);'
    calls = (call.replace(" f(", f" f{number}(") for number, (_, call) in enumerate(RUN.values()))
    cases = " ".join(f"case {number}: {{ {call} {print_} break; }}" for number, call in enumerate(calls))
    main = f"int main(int argc, char **argv) {{ const int n = 5000; switch (atoi(argv[1])) {{ {cases} }} return 0; }}"
    include = "#include <stdio.h>\n#include <stdlib.h>\n"
    (folder / "main.c").write_text(f'{include}#include "f.h"\n{main}\n')
    plain = text.replace("meta_schedule meta_block(B)", "").replace("meta_for", "for")
    (folder / "plain.c").write_text(f"{include}{plain}\n{main}\n")
    flags = ["-O0", "-DMETAFORK_CPU", f"-I{folder}", f"-I{folder}/include", "-fsanitize=address"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", folder / "f.cu", "-o", folder / "f.o"])
    host = [folder / "main.c", folder / "f_host.c", folder / "f.o"]
    succeed(["gcc", "-std=gnu11", *flags, *host, "-lm", "-lstdc++", "-o", folder / "main"])
    succeed(["gcc", "-std=gnu11", folder / "plain.c", "-o", folder / "plain"])
    return folder


@pytest.mark.parametrize("number", range(len(RUN)), ids=RUN)
def test_nothing_behind_the_memory_moves(number, programs):
    """Arrays of the host end with the last element that is touched."""
    done = succeed([programs / "main", number], env={"ASAN_OPTIONS": "detect_leaks=0", "METAFORK_TRACE": "1"})
    assert f"f_k{number} leaf 1 " in done.stderr
    assert done.stdout == succeed([programs / "plain", number]).stdout


UPDATES = {
    "columns of a row": lambda number, many: f"c[i * n + j] += a[i * {many} + {number}] * y[j];",
    "neighbours": lambda number, many: f"c[(i * n + j) * 2 + {number % 2}] -= a[i + {number}] * y[j * {number + 1}];",
    "a value of a parameter": lambda number, many: f"if (m == {number}) c[i * n + j] += a[i] * {number};",
    "one value or another": lambda number, many: (
        f"{'else ' * (number > 0)}if (m == {number}) c[i * n + j] += {number};"
    ),
    "rows": lambda number, many: f"c[i * n + j] = c[i * n + j] * 3 + a[{number} * m + i];",
}
UNDER_CONSTANTS = {
    "more than a constant": lambda number, many: f"if (m > {number}) c[i * n + j] += a[i * {many} + {number}] * y[j];",
    "columns below a constant": lambda number, many: (
        f"if (j < {3 * number + 5}) c[i * n + j] += a[i + {number}] * y[j];"
    ),
    "multiples of a constant": lambda number, many: f"if (i % {number + 2} == 0) c[i * n + j] += {number};",
    "rows below a quotient": lambda number, many: (
        f"if (i * {number + 2} < n + {number}) c[i * n + j] += a[i + {number}];"
    ),
}


def evaluated_for(monkeypatch, update, many):
    """Return how many polynomials are evaluated to find the extents of a program with many updates."""
    evaluated = [0]
    at = Polynomial.at

    def counted(self, values):
        evaluated[0] += 1
        return at(self, values)

    with monkeypatch.context() as patched:
        patched.setattr(Polynomial, "at", counted)
        body = " ".join(update(number, many) for number in range(many))
        parameters = "int n, int m, int B, float *c, const float *a, const float *y"
        extents_in(f"void f({parameters}) {{ meta_schedule {HEADS['plane'].replace('BODY', body)} }}")
    return evaluated[0]


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_the_work_for_updates_of_one_element_grows_as_their_number(monkeypatch, update):
    assert evaluated_for(monkeypatch, update, 24) <= 2 * evaluated_for(monkeypatch, update, 6)


@pytest.mark.parametrize("update", UNDER_CONSTANTS.values(), ids=UNDER_CONSTANTS)
def test_the_search_under_many_constants_ends(monkeypatch, update):
    """No extent is proved of most of these: the search for one has a bound."""
    assert evaluated_for(monkeypatch, update, 30) <= 2_000_000


def test_an_extent_may_be_a_sum_of_many_terms():
    names = [f"a{number}" for number in range(150)]
    halves = " + ".join(names[:75]), " + ".join(names[75:])
    parameters = ", ".join(f"int {name}" for name in names)
    body = f"x[({halves[0]}) + ({halves[1]}) + i] = 1;"
    text = f"void f(int n, int B, {parameters}, float *x) {{ meta_schedule {HEADS['elements'].replace('BODY', body)} }}"
    found = extents_in(text)["x"]
    assert set(re.findall(r"\w+", found)) == {"n", *names}
