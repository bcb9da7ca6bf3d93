"""Structures of scalars: drop-ins with them against the serial elision, the header, and what is refused."""

import subprocess

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx
from metafork.llvm.ptx_target import optimize as optimized
from metafork.lowering.lowering import lower
from tests.metafork.frontend.marked import assert_refused
from tests.metafork.kernel_runs import INCLUDE

POINTS = """
#define SQ(x) ((x) * (x))
struct point { float x, y, z; };
static float distance(struct point p, const struct point *q)
{
  p.x -= q->x;
  return SQ(p.x) + SQ(p.y - q[0].y) + SQ(p.z - (*q).z);
}
static void add(struct point *s, struct point d, float w) { s->x += w * d.x; s->y += w * d.y; s->z += w * d.z; }
static float row(int m, const struct point p[m]) { float s = 0; for (int i = 0; i < m; i++) s += p[i].y; return s; }
void forces(int n, int B, const struct point p[n], struct point f[n])
{
  meta_schedule cache(p, f) {
    meta_for (int i = 0; i < (n + B - 1) / B; i++) {
      struct point tile[B];
      meta_for (int j = 0; j < B; j++)
        if (i * B + j < n) tile[j] = p[i * B + j];
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        if (k >= n) continue;
        struct point me = tile[j], sum = {0, 0}, both[2] = {{1, 2, 3}};
        for (int l = 0; l < n; l++) {
          struct point d;
          d = p[l];
          float w = 1 / (distance(me, &p[l]) + distance(d, &me) + 1);
          d.x -= me.x, d.y -= me.y, d.z -= me.z;
          add(&sum, d, w);
        }
        both[1] = both[0];
        add(&both[1], sum, 2);
        add(both, *(p + k), row(n - k, p + k));
        f[k] = both[1];
        f[k].z *= both->y;
        (f + k)->x += both[0].x;
      }
    }
  }
}
"""

NUMBERS = """
typedef struct { double re, im; } number;
typedef struct pair { int first; int second; } pair;
#pragma metafork extents(z[n])
void times(int n, int B, const number a[n], number *z, pair *most)
{
  pair t[n + 1];
  for (int i = 0; i < n; i++) t[i].first = i, t[i].second = 2 * i;
  t[n] = t[n / 2];
  t[n].second++;
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        number u = z[k];
        z[k].re = u.re * a[k].re - u.im * a[k].im + t[k].first;
        (z + k)->im = u.re * a[k].im + u.im * a[k].re + t[n - k].second;
        t[k].first += 1;
        if (k == 0) most[0].first = 3 + (*most).second;
      }
  }
  if (n > 1) {
    t[0].second = t[1].first;
    pair *second = &t[1];
    second->second = t[n - 1].first + most->first;
  }
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        z[i * B + j].im += t[i * B + j].first + 2 * t[i * B + j].second;
  }
  if (n > 0) z[0].im += t[0].first + t[n - 1].second;
}
"""
BOTH = POINTS + NUMBERS


def test_every_leaf_with_structures_is_the_serial_program():
    options = Options(points=6, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(BOTH, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert {row.schedule for row in found.rows} == {"input_k0", "input_k1", "input_k2"}
    assert len(found.rows) >= 6
    assert "not checked" not in found.table()


def test_a_program_with_structures_is_one_with_rows_of_scalars():
    program = parse(Source("f.mf", NUMBERS)).schedules[0].program
    assert [(one.name, len(one.extents), one.members) for one in program.arrays] == [
        ("a", 2, ("re", "im")),
        ("z", 2, ("re", "im")),
        ("most", 2, ("first", "second")),
        ("t", 2, ("first", "second")),
    ]


def test_kernels_with_structures_are_ptx():
    for schedule in parse(Source("f.mf", BOTH)).schedules:
        assert emit_ptx(optimized(module_text(lower(schedule.program, "kernel"))))


def test_the_header_speaks_of_tags_alone(tmp_path):
    folder = tmp_path / "out"
    write_outputs(optimize(BOTH, counters=["threads_per_block"]), folder)
    header = (folder / "input.h").read_text()
    assert "void forces(int n, int B, const struct point *p, struct point *f);" in header
    assert "times(" not in header
    definition = "struct point { float x, y, z; };\n"
    for user, compiler, extension in (("", "gcc", "c"), (definition, "gcc", "c"), ("", "g++", "cc")):
        source = tmp_path / f"user.{extension}"
        source.write_text(f'{user}#include "input.h"\nvoid g(struct point *p) {{ forces(0, 1, p, p); }}\n')
        flags = ("-Wall", "-Werror", f"-I{folder}", f"-I{folder / 'include'}", f"-I{INCLUDE}")
        subprocess.run((compiler, *flags, "-c", str(source), "-o", str(tmp_path / "user.o")), check=True)


def threads(body, head="", array="struct s a[n]", before=""):
    return (
        f"{head}\nvoid f(int n, int B, {array}) {{ meta_schedule {{ meta_for (int i = 0; i < n / B; i++) {{ {before} "
        f"meta_for (int j = 0; j < B; j++) {{ {body} }} }} }} }}"
    )


S = "struct s { float x, y; };"
ONE = "«a»[i * B + j].x = 0;"
REFUSED = {
    "an array as a value": (
        "MF0205",
        threads("float v = «a[i * B + j].x»; a[j].x[0] = v;", "struct s { float x[2]; };"),
    ),
    "extents unknown": ("MF0205", threads("«a»[j].x[0] = 1;", "extern int m; struct s { float x[m]; };")),
    "cached, of several types": (
        "MF0308",
        threads("a[j].x = 0;", "struct s { float x; int y; };").replace("{ meta_for", "cache(«a») { meta_for", 1),
    ),
    "members named alike": (
        "MF0205",
        threads(
            "struct t v; v.y = 0; v.x = 1; a[j] = «v»;", "struct s { float x; int y; }; struct t { float x; long y; };"
        ),
    ),
    "a pointer inside": ("MF0205", threads(ONE, "struct s { float *x; };")),
    "bits": ("MF0205", threads(ONE, "struct s { int x : 3; };")),
    "a union": ("MF0205", threads(ONE, "union u { float x, y; };", "union u a[n]")),
    "no definition": ("MF0205", threads(ONE, "struct s;")),
    "no member": ("MF0301", threads("«a[i * B + j].xx» = 1;", S)),
    "a whole one as a value": ("MF0205", threads("float v = «a[i * B + j]» + 1; a[0].x = v;", S)),
    "a local one as a value": ("MF0205", threads("struct s v; v.x = 1; a[i * B + j].x = «v» + 1;", S)),
    "another type": (
        "MF0205",
        threads("struct t v; v.x = 0; a[i * B + j] = «v»;", f"{S} struct t {{ float x; }};"),
    ),
    "a scalar of it": ("MF0205", threads("a[i * B + j] = «1»;", S)),
    "a block's": ("MF0205", threads("a[i * B + j].x = 0;", S, before="struct s «v»;")),
    "a fragment's": (
        "MF0205",
        f"{S}\nint n; struct s «a»[n]; meta_schedule {{ meta_for (int i = 0; i < n; i++) {{ int x = i; "
        "meta_for (int j = 0; j < 1; j++) a[x].x = 1; } }",
    ),
    "const": ("MF0305", threads("«a[i * B + j].x» = 1;", S, "const struct s a[n]")),
    "const as a whole": ("MF0305", threads("struct s v; v.x = 0; «a[i * B + j]» = v;", S, "const struct s a[n]")),
    "an atomic copy": ("MF0224", threads("struct s v; v.x = 0; «meta_atomic a[i * B + j] = v;»", S)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    code, marked = REFUSED[name]
    assert_refused(marked, code)


def test_messages_name_members():
    with pytest.raises(DiagnosticsError, match=r"MF0402: .*`a\[0\]\.y`"):
        check_races(parse(Source("s.mf", threads("a[i].y = 2;", S))))
    warning, *_ = check_races(parse(Source("s.mf", threads("a[a[j].x > 3 ? 1 : i * B + j].y = 2;", S))))
    assert "The index `a[j].x > 3 ? 1 : i * B + j` comes from memory." in warning.reason
