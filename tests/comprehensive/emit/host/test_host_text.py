"""Host files and headers of inputs with macros, odd names, fragments, loops and jumps: they compile."""

import re

import pytest

from metafork.comprehensive.emit.header_file import header_file
from metafork.comprehensive.emit.host.host_file import host_file
from metafork.comprehensive.emit.identifiers import c_string, safe_identifiers
from metafork.comprehensive.tree.schedule_tree import NoLeaf, ScheduleTree
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from tests.runtime.compiling import INCLUDE, WARNINGS, succeed

LOOP = """\
void wave(int N, int B, int steps, float a[N], float b[N]{parameter})
{{
  int dim = N / B;
  {declaration}
  for (int t = 0; t < steps; t++) {{
    {before}
    meta_schedule {{
      meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = a[i * B + j] + t;
    }}
  }}
}}
"""


def loop(before="", declaration="", parameter=""):
    return LOOP.format(before=before, declaration=declaration, parameter=parameter)


def texts(text, name="wave.mf"):
    """The header and the host file of an input; trees without leaves suffice."""
    unit = parse(Source(name, text))
    trees = [ScheduleTree(s.program, {}, (), (), (), (), NoLeaf("none"), ()) for s in unit.schedules]
    return header_file(unit, trees), host_file(unit, trees)


def compiles(tmp_path, header, host):
    (tmp_path / "made.h").write_text(header)
    (tmp_path / "made.c").write_text(host)
    flags = [*WARNINGS, f"-I{INCLUDE}", "-c"]
    succeed(["gcc", "-std=gnu11", *flags, tmp_path / "made.c", "-o", tmp_path / "made.o"])
    (tmp_path / "user.c").write_text('#include "made.h"\n')
    succeed(["gcc", "-std=c11", "-Wpedantic", *flags, tmp_path / "user.c", "-o", tmp_path / "c.o"])
    succeed(["g++", "-std=c++17", "-x", "c++", "-Wpedantic", *flags, tmp_path / "user.c", "-o", tmp_path / "cc.o"])


CALLERS = """
typedef float real;
typedef struct { int n; } sizes;
struct point { float x, y; };
#define WIDTH 4
static void announced_as_own(int n, float a[n]);
void late(float *a);
void twice(int n, float a[n], float b[n]) { wave(n, 2, 3, a, b); wave(n, 2, 3, a, b); }
real *columns(unsigned long n, int new, real *restrict b, real a[n][WIDTH], ...) { if (n > 9) late(b); return a[new]; }
void of_a_type(const sizes *s, float *a, float *b) { wave(s->n, 2, 3, a, b); }
void of_points(int n, struct point p[n], float *a, float *b) { wave((int)p[n - 1].x, 2, 3, a, b); }
static void own(int n, float a[n]) { float b[n]; wave(n, 2, 3, a, b); a[0] = b[0]; }
void announced_as_own(int n, float a[n]) { own(n, a); }
void late(float *a) { if (marker(a)) announced_as_own(4, a); }
int nothing(int v) { return v + 1; }
int main(void) { float a[4] = {0}; late(a); return 0; }
"""


def test_functions_that_call_those_with_schedules_are_declared(tmp_path):
    header, host = texts("int marker(const float *a);\n" + loop() + CALLERS)
    for part, given in zip(header.split("#ifdef __cplusplus\nvoid")[1].split("#else\n"), ("*a", "a[n]"), strict=True):
        names = re.findall(r"(\w+)\(.*\);$", part.split("#endif")[0], re.MULTILINE)
        assert names == ["wave", "twice", "columns", "of_points", "late"]
        assert f"twice(int n, float {given}, float" in part
    compiles(tmp_path, header, host)
    (tmp_path / "both.c").write_text(f"{header}{host}")
    flags = [*WARNINGS, "-Wno-vla-parameter", f"-I{INCLUDE}"]
    succeed(["gcc", "-std=gnu11", *flags, "-c", tmp_path / "both.c", "-o", tmp_path / "both.o"])


def test_pragmas_of_metafork_make_no_warnings(tmp_path):
    text = loop("#pragma metafork extents(b[N])").replace("float b[N]", "float *b")
    text = text.replace("          b[i", "          #pragma metafork disjoint(b)\n          b[i")
    compiles(tmp_path, *texts(text))


def test_a_loop_that_leaves_the_arrays_alone_announces_nothing(tmp_path):
    header, host = texts(loop())
    assert "metafork_touch(" not in host
    assert "metafork_settle(" not in host
    assert host.count("cleanup(metafork_leave)") == 1
    compiles(tmp_path, header, host)


TOUCH_A = "metafork_touch((const void *)a, 0LL * (long long)sizeof(a[0]), (long long)sizeof(a[0]), {});"
STEPS_A = (
    "metafork_touch_steps((const void *)a, 0LL * (long long)sizeof(a[0]), (long long)sizeof(a[0]), {}, 1, "
    "(const long long[]){{1LL * (long long)sizeof(a[0]), (long long)B}}); "
)


@pytest.mark.parametrize(
    ("before", "announced"),
    [
        ("a[0] = 1;", TOUCH_A.format(2) + " a[0] = 1;"),
        ("a[0] += 1;", TOUCH_A.format(3) + " a[0] += 1;"),
        ("if (a[0] > 3) return;", TOUCH_A.format(1) + " if (a[0] > 3) return;"),
        ("if (t > 3) a[0] = 1;", "if (t > 3) { " + TOUCH_A.format(2) + " a[0] = 1; }"),
        ("if (t) ; else if (a[0] > 0) return;", "else { " + TOUCH_A.format(1) + " if (a[0] > 0) return; }"),
        ("for (int k = 0; k < B; k++) a[k] = 1;", STEPS_A.format(2) + "for (int k = 0; k < B; k++) a[k] = 1;"),
        ("for (int k = B; k; k--) a[k] = 1;", "metafork_touch((const void *)a, 0, metafork_size_a, 3); for"),
        ("marker();", "metafork_touch_all(3); marker();"),
        (
            "\n#pragma GCC ivdep\n for (int k = 0; k < B; k++) a[k] = 1;",
            STEPS_A.format(2)[:-1] + "\n#pragma GCC ivdep\n for (int k = 0; k < B; k++) a[k] = 1;",
        ),
        (
            "if (t)\n#pragma GCC ivdep\n for (int k = 0; k < B; k++) a[k] = 1;",
            "if (t)\n{ " + STEPS_A.format(2)[:-1] + "\n#pragma GCC ivdep\n for (int k = 0; k < B; k++) a[k] = 1; }",
        ),
        (
            '_Pragma("GCC ivdep") for (int k = 0; k < B; k++) a[k] = 1;',
            STEPS_A.format(2) + '_Pragma("GCC ivdep") for (int k = 0; k < B; k++) a[k] = 1;',
        ),
        ("float *p = malloc(64); (void)p;", "*p = malloc(64); metafork_fresh((const void *)p, -1); (void)p;"),
        (
            "float *p; p = (float *)malloc(64); (void)p;",
            "p = (float *)malloc(64); metafork_fresh((const void *)p, -1);",
        ),
    ],
)
def test_host_code_announces_what_it_touches(tmp_path, before, announced):
    header, host = texts("#include <stdlib.h>\nint marker(void);\n" + loop(before))
    assert announced in host
    compiles(tmp_path, header, host)


def test_where_it_cannot_everything_comes_back():
    _, host = texts(loop("WHAT_IS_THIS(t);"))
    assert "metafork_touch" not in host
    assert host.count("metafork_settle();") == 2


def test_the_text_around_schedules_is_carried_over(tmp_path):
    text = (
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#define bytes 3\n#define host hidden\n"
        'static int hidden(char **to) { return asprintf(to, "/* meta_schedule { */ %d", bytes); }\n'
        + loop()
        + "int last(char **to) { return host(to); }\n"
    )
    header, host = texts(text)
    head, tail = text.split("  for (int t")
    assert head.splitlines()[0] in host
    assert 'asprintf(to, "/* meta_schedule { */ %d", bytes)' in host
    assert tail.split("  }\n}\n")[-1] in host
    compiles(tmp_path, header, host)


def test_the_cache_clause_is_left_out(tmp_path):
    for clause in ("cache(a, b)", "cache ( )", "/* cache(a) */ cache /* of */ (a)"):
        header, host = texts(loop().replace("meta_schedule", f"meta_schedule {clause}"))
        assert not re.search(r"\bcache\s*\(", host.split("*/\n", 1)[1].replace(clause.split(" cache")[0], ""))
        compiles(tmp_path, header, host)


def test_a_fragment_becomes_a_function(tmp_path):
    text = """\
#include <math.h>
int N, B;
float a[N];
float alpha;
int dim = N / B;
meta_schedule {
  meta_for (int i = 0; i < dim; i++)
    meta_for (int j = 0; j < B; j++)
      a[i * B + j] = sqrtf(a[i * B + j]) * alpha;
}
"""
    header, host = texts(text, "root.mf")
    declaration = re.search(r"^void root\((.*)\);", header.split("#else")[1], re.MULTILINE)
    assert declaration is not None
    assert {"int N", "int B", "float a[N]", "float alpha"} == set(declaration[1].split(", "))
    assert host.index("#include <math.h>") < host.index("void root(")
    assert "int N, B;" not in host
    compiles(tmp_path, header, host)


def test_headers_do_not_need_the_macros_and_types_of_the_input(tmp_path):
    text = """\
#define ROWS 4
typedef double real;
int rows(int n, real a[ROWS][n], const float b[n])
{
  meta_schedule
    meta_for (int i = 0; i < ROWS; i++)
      meta_for (int j = 0; j < n; j++)
        a[i][j] += b[j];
  return ROWS;
}
"""
    header, host = texts(text, "rows.mf")
    assert "int rows(int n, double a[4][n], const float b[n]);" in header
    assert "int rows(int n, double *a, const float *b);" in header
    compiles(tmp_path, header, host)


def test_names_of_the_interface_give_way_to_those_of_the_input(tmp_path):
    text = (
        "void odd(int m, int leaf, int stream, int d_a, float a[m], float dim3)\n{\n  meta_schedule\n"
        "    meta_for (int i = 0; i < m / leaf; i++)\n      meta_for (int j = 0; j < leaf; j++)\n"
        "        a[i * leaf + j] = dim3 * (stream + d_a);\n}\n"
    )
    header, host = texts(text, "odd.mf")
    assert "int odd_k0_select(const metafork_machine *m_, int64_t m, int64_t leaf);" in header
    assert "int odd_k0_launch(int leaf_, void *stream_, int64_t m, int64_t leaf, " in header
    compiles(tmp_path, header, host)


def test_static_functions_and_main_stay_out_of_the_header(tmp_path):
    text = "static " + loop() + "int main(void) { float a[4], b[4]; a[0] = 1; wave(4, 2, 1, a, b); return 0; }\n"
    header, host = texts(text)
    assert "wave(" not in header
    assert "main" not in header
    compiles(tmp_path, header, host)


def test_no_input_name_becomes_a_reserved_one():
    names = safe_identifiers(["dim3", "int64_t", "metafork_x", "n", "n_", "stdout"], taken={"n"})
    assert len(set(names.values())) == len(names)
    assert "n" not in names.values()
    assert not any(name.startswith("metafork_") for name in names.values())
    assert names["dim3"] != "dim3"


def test_strings_survive_the_compiler(tmp_path):
    text = 'a "quoted" \\ line\twith ??/ and\nanother % one'
    source = f"#include <stdio.h>\nint main(void) {{ fputs({c_string(text)}, stdout); return 0; }}\n"
    (tmp_path / "string.c").write_text(source)
    succeed(["gcc", "-std=c11", *WARNINGS, tmp_path / "string.c", "-o", tmp_path / "string"])
    assert succeed([tmp_path / "string"]).stdout == text
