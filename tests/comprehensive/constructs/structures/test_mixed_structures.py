"""Structures of several types: views of one place, on every back end, with transfers once, and padding left alone."""

import re
import subprocess

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive import registry
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.header_file import header_file
from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.optimize import discuss, optimize
from metafork.comprehensive.reading import parse as read
from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.emit.targets.conftest import driver  # noqa: F401
from tests.comprehensive.emit.targets.opencl.conftest import opencl  # noqa: F401
from tests.comprehensive.emit.targets.programs import program
from tests.metafork.frontend.marked import assert_refused
from tests.metafork.kernel_runs import INCLUDE

BODIES = """
struct vec { float x, y; };
struct body { float x, y, z; int id; double mass; short tag[3]; struct vec v; };
static float energy(struct body b) { return b.mass * (b.v.x * b.v.x + b.v.y * b.v.y); }
static void heavier(struct body *b, double by) { b->mass *= by; b->id++; }
void move(int n, int B, const struct body p[n], struct body q[n], int count[4])
{
  meta_schedule {
    meta_for (int i = 0; i < (n + B - 1) / B; i++) {
      struct body tile[B];
      meta_for (int j = 0; j < B; j++)
        if (i * B + j < n) tile[j] = p[i * B + j];
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        if (k >= n) continue;
        struct body me = tile[j], other = {1, 2, 3, 4, 5}, two[2] = {{0}};
        me.x += other.mass + other.tag[2] + tile[n - i * B < B ? 0 : B - 1 - j].id;
        for (int l = 0; l < 3; l++)
          me.tag[l] += p[n - 1 - k].tag[2 - l] + (short)me.id;
        heavier(&me, 1.5);
        two[1] = me;
        q[k] = two[1];
        q[k].v.y += p[k].z + energy(me) + energy(p[k]);
        heavier(&q[k], 2);
        meta_atomic count[p[k].id & 3] += 1;
      }
    }
  }
  if (n > 1) q[0].mass = q[1].mass + q[1].id;
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        q[i * B + j].id += 2 * q[i * B + j].tag[1];
  }
}
"""

POINTERS = """
typedef struct { char kind; long long weight; } item;
struct node { int first; item own; unsigned char flags[5]; };
void weigh(int n, int B, const struct node *nodes, struct node *out, double *sums)
{
  meta_schedule {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int k = i * B + j;
        if (k >= n) continue;
        long long sum = 0;
        for (int f = 0; f < 5; f++)
          sum += nodes[k].flags[f] * (nodes + k)->own.weight;
        sums[k] = sum / 3.0 + nodes[k].own.kind;
        out[k].own.weight = sum;
        out[k].flags[k % 5] = nodes[k].first;
        if (k > 0) out[k].first = nodes[k - 1].first;
      }
  }
}
"""


@pytest.mark.parametrize("text", [BODIES, POINTERS], ids=["bodies", "pointers"])
@pytest.mark.slow
def test_every_leaf_is_the_serial_program(text):
    options = Options(points=4, jobs=1, dataflow_seconds=5, optimization="-O0")
    found = verify(text, counters=("shared_memory",), options=options, machine="all")
    assert found.passed, found.table()
    assert "not checked" not in found.table()


@pytest.mark.parametrize(("fixture", "target"), [("driver", PTX), ("opencl", OPENCL)])
@pytest.mark.slow
def test_other_back_ends(request, tmp_path, fixture, target):
    device = request.getfixturevalue(fixture)
    one = program(BODIES, "bodies.mf", tmp_path, target, counters=("shared_memory",), strategies=())
    points = [("", {"n": 37, "B": 8}), ("", {"n": 5, "B": 4})]
    done, said, calls = one.compare(device, "move", points, METAFORK_TRACE="2")
    assert said == ["same"] * 2, done.stderr
    assert (calls.violations, calls.left) == ([], [])
    # An array of structures moves once, whatever views there are of it; the host then touches one element.
    moved = re.findall(r"metafork: (\d+) bytes of (\w+) (to|from) the device", done.stderr)
    assert [one for one in moved if one[1:] == ("p", "to")] == [("1480", "p", "to"), ("200", "p", "to")]
    assert [one for one in moved if one[1:] == ("q", "to") and one[0] == "1480"] == [("1480", "q", "to")]


@pytest.mark.slow
def test_the_cpu_build_is_free_of_undefined_behaviour(tmp_path):
    result = optimize(BODIES, counters=("shared_memory",), strategies=())
    write_outputs(result, tmp_path)
    (tmp_path / "main.c").write_text(
        BODIES[: BODIES.index("static float")]
        + """
#include <stdlib.h>
void move(int n, int B, const struct body *p, struct body *q, int *count);
int main(void) {
  struct body *p = calloc(37, sizeof *p), *q = calloc(37, sizeof *q);
  int count[4] = {0};
  for (int k = 0; k < 37; k++) p[k].id = k, p[k].mass = k, p[k].tag[1] = 2;
  move(37, 8, p, q, count);
  int bad = count[0] != 10 || q[4].mass != 12 || q[4].id != 4 + 2 + 2 * 8 || q[4].tag[1] != 8;
  free(p), free(q);
  return bad;
}
"""
    )
    sanitize = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-O0", "-Wall", "-Werror", "-I.")
    include = (*sanitize, f"-I{INCLUDE}", "-DMETAFORK_CPU", "-ffp-contract=off")
    for words in (
        ["g++", "-std=c++17", "-x", "c++", *include, "-c", "input.cu", "-o", "device.o"],
        ["gcc", "-std=gnu11", *include, "-c", "input_host.c", "-o", "host.o"],
        ["gcc", "-std=gnu11", *include, "-c", "main.c", "-o", "main.o"],
        ["g++", *sanitize, "main.o", "host.o", "device.o", "-lm", "-o", "main"],
        ["./main"],
    ):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout


def test_structures_laid_out_by_attributes_do_not_compile(tmp_path):
    text = BODIES.replace("struct vec v; };", "struct vec v; } __attribute__((packed));")
    write_outputs(optimize(text, counters=("shared_memory",), strategies=()), tmp_path)
    words = ["gcc", "-std=gnu11", f"-I{INCLUDE}", "-c", "input_host.c", "-o", "host.o"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "metafork: attributes that lay out structures, as those of p, are not supported" in done.stderr


def test_pointers_count_structures():
    unit = read(Source("pointers.mf", POINTERS))
    (function,) = unit.functions
    found = {p.name: expression(p.array.extents[0]) for p in function.parameters if p.array is not None}
    assert found == {"nodes": "n", "out": "n", "sums": "n"}
    header = header_file(unit, optimize(POINTERS, counters=("shared_memory",), strategies=()).schedules)
    assert "nodes has n, out has n, sums has n. */" in header
    assert "const void *d_nodes, void *d_out, double *d_sums);" in header


@pytest.mark.parametrize("text", [BODIES, POINTERS])
def test_printed_leaves_read_back(text):
    for schedule in read(Source("input.mf", text)).schedules:
        tree = discuss(schedule.program, registry.counters(("shared_memory",)), registry.strategies(None))
        for found in (one.version.program for leaf in tree.leaves for one in leaf.variants):
            assert not found.mapping.cached
            again = parse(Source("input.mf", metafork_text(found))).schedules[0].program
            assert (again.arrays, again.body) == (found.arrays, found.body)


def schedule(body, head=""):
    return (
        "struct s { int key; double x[2]; float w; };\n"
        f"{head}void f(int n, int B, int m, struct s a[n], const int order[n]) {{ meta_schedule {{ "
        f"meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < B; j++) {{ int k = i * B + j; {body} }} }} }}"
    )


def test_members_of_different_types_never_meet():
    assert check_races(parse(Source("s.mf", schedule("a[k].key = (int)a[n - 1 - k].w;")))) == ()
    assert check_races(parse(Source("s.mf", schedule("a[k].x[0] = a[n - 1 - k].x[1];")))) == ()
    with pytest.raises(DiagnosticsError, match=r"`a\[\d+\]\.w` while another writes it"):
        check_races(parse(Source("s.mf", schedule("a[k].w = a[n - 1 - k].w;"))), strict=True)
    with pytest.raises(DiagnosticsError, match="MF0401"):
        check_races(parse(Source("s.mf", schedule("a[k] = a[0];"))))


def test_members_are_added_up_one_by_one():
    reduced = schedule("a[0].x[0] += 1;").replace("meta_for", "«meta_reduction(+: a)» meta_for", 1)
    assert_refused(reduced, "MF0225")
    assert_refused(schedule("«meta_atomic a[0].x[1] += 1;»"), "MF0224")
    assert parse(Source("s.mf", schedule("meta_atomic a[0].key += 1;"))).schedules


def test_a_promise_about_structures_is_one_about_their_views():
    text = schedule("int to = order[k];\n#pragma metafork disjoint(a)\na[to].w = a[to].key + m;")
    (one,) = parse(Source("s.mf", text)).schedules
    assert {promise.array for promise in one.promises} == {"a_float", "a_int"}
    assert check_races(parse(Source("s.mf", text)), strict=True) == ()
