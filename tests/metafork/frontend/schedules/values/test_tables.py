"""Constant tables of the file: in constant memory where warps read them together, with the values that C gives them."""

import math
import struct

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.explanation import explanation
from metafork.comprehensive.optimize import discuss
from metafork.comprehensive.verification import Options, verify
from metafork.evaluators.work import work
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import IntConst, Version
from metafork.llvm.expressions import constant_of
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.emit.targets.conftest import driver  # noqa: F401
from tests.comprehensive.emit.targets.opencl.conftest import opencl  # noqa: F401
from tests.comprehensive.emit.targets.programs import program
from tests.metafork.frontend.marked import assert_refused

# Types, extents by macros and by initialisers, rows, designators, computed values, use by blocks and functions.
KINDS = """
#include <math.h>
#define R 2
enum { SIDE = 3, LAST = 2 };
typedef short weight;
static const float w[2 * R + 1] = {0.1f, -0.2f, 4 / 10.f, 1e-40f, INFINITY};
static const double d[SIDE] = {1 / 3.0, 7 / 2, (float)0.1};
static const weight rows[][SIDE] = {1, 2, 3, {-4}, [LAST + 1] = {[1] = 32767, -32768}};
const unsigned char bytes[4] = {[2] = 200, 'a'};
static const unsigned long long large[] = {0xffffffffffffffff, -1, [4] = 1ull << 63, };
static const int order[3] = {2, 0, 1};
static const float together[2] = {3, 4}, apart[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static double at(int k, int l) { return d[k] * rows[l][k]; }
void kinds(int n, int B, const float x[n], double y[n], unsigned long long z[n])
{
  meta_schedule {
    meta_for (int i = 0; i < (n + B - 1) / B; i++) {
      int first = order[i % 3];
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p >= n) continue;
        double sum = together[first & 1];
        for (int k = -R; k <= R; k++) {
          if (p + k < 0) continue;
          if (p + k >= n) break;
          sum += w[k + R] < 1e30f ? w[k + R] * x[p + k] : x[p + k];
        }
        for (int k = 0; k < SIDE; k++)
          for (int l = 0; l < SIDE + 1; l++)
            sum += at(order[k], l) + bytes[l];
        y[p] = sum * apart[p & 7];
        z[p] = large[first] ^ large[4] ^ p;
      }
    }
  }
}
"""


def placed(text):
    """Return the names of a schedule's tables and those of its arrays."""
    one = parse(Source("tables.mf", text)).schedules[0].program
    return [table.array.name for table in one.tables], [array.name for array in one.arrays]


@pytest.mark.slow
def test_every_leaf_with_tables_is_the_serial_program():
    options = Options(points=6, jobs=1, dataflow_seconds=5, optimization="-O0")
    found = verify(KINDS, counters=("shared_memory",), options=options, machine="all")
    assert found.passed, found.table()
    assert "not checked" not in found.table()


@pytest.mark.parametrize(("fixture", "target"), [("driver", PTX), ("opencl", OPENCL)])
@pytest.mark.slow
def test_other_back_ends_have_tables_too(request, tmp_path, fixture, target):
    device = request.getfixturevalue(fixture)
    one = program(KINDS, "kinds.mf", tmp_path, target, counters=("shared_memory",), strategies=())
    done, said, calls = one.compare(
        device, "kinds", [("", {"n": 37, "B": 8}), ("", {"n": 5, "B": 4})], METAFORK_TRACE="2"
    )
    assert said == ["same"] * 2, done.stderr
    assert (calls.violations, calls.left) == ([], [])
    # The tables are in the code; the one that threads read apart is an array that moves.
    assert "bytes of apart to the device" in done.stderr
    assert "bytes of w to the device" not in done.stderr


def test_values_are_those_of_c():
    one = parse(Source("kinds.mf", KINDS)).schedules[0].program
    values = {table.array.name: [constant_of(value) for value in table.values] for table in one.tables}

    def single(x):
        return struct.unpack("f", struct.pack("f", x))[0]

    tiny = float.fromhex("0x1.16c2p-133")
    assert values.pop("w") == [single(0.1), single(-0.2), single(0.4), tiny, math.inf]
    assert values == {
        "d": [1 / 3, 3.0, single(0.1)],
        "rows": [1, 2, 3, -4, 0, 0, 0, 0, 0, 0, 32767, -32768],
        "bytes": [0, 0, 200, 97],
        "large": [2**64 - 1, 2**64 - 1, 0, 0, 2**63],
        "order": [2, 0, 1],
        "together": [3.0, 4.0],
    }
    assert one.array("rows").extents == (IntConst(4), IntConst(3))


def test_kernels_hold_tables_and_ask_for_no_sectors_of_them():
    one = parse(Source("kinds.mf", KINDS)).schedules[0].program
    text = kernel_text(lower(one, "kernel"))
    assert "METAFORK_TABLE short metafork_table_rows[12] = {1, 2, 3, -4, 0, 0, 0, 0, 0, 0, 32767, -32768};" in text
    assert "*METAFORK_RESTRICT w" not in text
    counted = work(Version(one), Analyses())
    assert {name for name, _, _ in counted.arrays} == {"apart", "x", "y", "z"}


def test_printed_leaves_read_back():
    first = parse(Source("kinds.mf", KINDS)).schedules[0].program
    tree = discuss(first, registry.counters(("shared_memory",)), registry.strategies(None), time_limit=20)
    for own in (one.version.program for leaf in tree.leaves for one in leaf.variants):
        again = parse(Source("kinds_k0.mf", metafork_text(own))).schedules[0].program
        assert (again.tables, again.body) == (own.tables, own.body)


def indexed(index, before="", table="static const int t[4] = {1, 2, 3, 4};", clause=""):
    """A program that reads a table at an index."""
    return f"""
{table}
void f(int n, int B, int m, const int x[n], int y[n])
{{
  meta_schedule {clause} {{
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {{
        int p = i * B + j;
        {before}
        y[p] = t[{index}] + x[p];
      }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("index", "before"),
    [
        ("0", ""),
        ("i & 3", ""),
        ("x[i] & 3", ""),
        ("k", "int k = 0; while (k < m) k++;"),
        ("k & 3", "int k = m; k += i;"),
        ("x[0] > 0", "for (int k = 0; k < x[p]; k++) y[p] += t[k & 3];"),
        ("1", "if (x[p] > 2) { int k = m; k++; y[p] = t[k & 3]; }"),
        ("1", "for (int k = 0; k < 4; k++) { if (x[p] > k) break; y[p] += t[k]; }"),
    ],
)
def test_indices_that_a_warp_has_alike(index, before):
    assert placed(indexed(index, before)) == (["t"], ["x", "y"])


@pytest.mark.parametrize(
    ("index", "before"),
    [
        ("j & 3", ""),
        ("p & 3", ""),
        ("x[p] & 3", ""),
        ("k & 3", "int k = 0; if (x[p] > 0) k = 1;"),
        ("k & 3", "int k = 0; while (x[p] > k) k++;"),
        ("k & 3", "int k = 0; for (int l = 0; l < 4; l++) { if (x[p] == l) break; k++; }"),
        ("k & 3", "int k = 0; for (int l = 0; l < 4; l++) { if (x[p] == l) continue; k++; }"),
        ("own[0]", "int own[2]; own[0] = m & 3; own[1] = 0;"),
        ("t[j & 3] & 3", ""),
        ("k & 3", "int k = 0, l = 0; for (int q = 0; q < 2; q++) { k = l; l = j; }"),
    ],
)
def test_indices_that_threads_have_apart(index, before):
    text = indexed(index, before)
    assert placed(text) == ([], ["t", "x", "y"])
    found = explanation(parse(Source("f.mf", text)).schedules[0].program, registry.strategies(None), Analyses())
    (why,) = (one for one in found if one.topic == "constant memory")
    assert (why.subject, why.taken) == ("t", False)
    assert "may be another one in each thread" in why.reason


@pytest.mark.parametrize(
    ("table", "clause", "why"),
    [
        ("extern const int t[4];", "", "its values are not all numbers in braces"),
        ("static const int a = 3;\nstatic const int t[4] = {a};", "", "its values are not all numbers in braces"),
        ('static const signed char t[4] = "abc";', "", "its values are not all numbers in braces"),
        ("static const int t[16385] = {1};", "", "its 65540 bytes do not fit the 65536 of constant memory"),
        ("static int t[4] = {1, 2};", "", ""),
        ("static const int t[4] = {1, 2};", "cache(t)", ""),
    ],
)
def test_what_stays_in_global_memory(table, clause, why):
    text = indexed("i & 3", table=table, clause=clause)
    (array,) = (one for one in parse(Source("f.mf", text)).schedules[0].program.arrays if one.name == "t")
    assert array.in_global == why


def test_tables_of_a_file_share_constant_memory():
    table = "static const float a[8192] = {1}, b[8192] = {2}, c[1] = {3};"
    body = "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 2; j++) x[i][j] = %s; }"
    uses = "".join(body % use for use in ("a[i]", "a[i] + b[i]", "c[0] + b[i]"))
    unit = parse(Source("f.mf", f"{table}\nvoid f(int n, float x[n][2])\n{{ {uses} }}\n"))
    names = [[table.array.name for table in one.program.tables] for one in unit.schedules]
    assert names == [["a"], ["a", "b"], ["b"]]
    assert unit.schedules[2].program.array("c").in_global.endswith("beside the 65536 of other tables")


def test_a_large_table_is_taken_in_time():
    numbers = ", ".join(str(-k) for k in range(8000))
    table = f"static const int t[8000] = {{{numbers}}};"
    one = parse(Source("f.mf", indexed("i", table=table))).schedules[0].program
    assert [value.value for value in one.tables[0].values[:3]] == [0, -1, -2]
    assert len(one.tables[0].values) == 8000


def test_tables_are_not_written():
    assert_refused(indexed("0", "«t[i & 3]» = 1;"), "MF0305")
