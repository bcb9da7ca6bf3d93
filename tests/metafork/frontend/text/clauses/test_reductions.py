"""``meta_reduction``: every leaf of programs with it against the serial elision, and what is refused."""

import pytest

from metafork.analysis.races.races import race_report
from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.lowering.lowering import lower
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.leaf_cases import leaf_cases
from tests.metafork.frontend.marked import assert_refused
from tests.metafork.frontend.text.clauses.reduction_programs import OPERATIONS, blocks
from tests.metafork.kernel_runs import grid, run


def threads(op):
    """The threads of a block add up in a scalar of it, tile by tile."""
    type_, update = OPERATIONS[op]
    update = update.format(r="low", v="a[i][t * B + j]")
    return f"""
void one_{list(OPERATIONS).index(op)}(int n, int m, int B, const short a[n][m], {type_} c[n])
{{
  meta_schedule {{
    meta_for (int i = 0; i < n; i++) {{
      {type_} low = 7;
      for (int t = 0; t < m / B; t++) {{
        meta_reduction({"+" if op == "-" else op}: low)
        meta_for (int j = 0; j < B; j++)
          {update}
        if (low == 3) break;
      }}
      meta_for (int j = 0; j < B; j++)
        if (j == 0) c[i] = low;
    }}
  }}
}}
"""


SEVERAL = """
void several(int n, int m, int B, int s, const int x[n][m], int *sum, int most[1], unsigned h[4])
{
  meta_schedule cache(x) {
    meta_reduction(+: *sum, h) meta_reduction(max: most)
    meta_for (int i = 0; i < n; i++)
      meta_for (int k = 0; k < m / (B * s); k++)
        meta_for (int u = 0; u < 1; u++)
          meta_for (int j = 0; j < B; j++)
            for (int l = 0; l < s; l++) {
              int v = x[i][(k * s + l) * B + j] & 0xffff;
              if (v % 5 == 1) *sum += v;
              else *sum -= 1;
              for (int e = 0; e < 2; e++) h[(v + e) & 3] += v & 7;
              if (most[0] < v) most[0] = v;
            }
  }
}
"""


def test_every_leaf_computes_what_the_serial_elision_does(tmp_path):
    cases = []
    for op in OPERATIONS:
        cases += leaf_cases(blocks(op), grid(n=[1, 13], B=[4]), ())[0]
        cases += leaf_cases(threads(op), grid(n=[3], m=[12], B=[1, 4]), ())[0]
    cases += leaf_cases(SEVERAL, grid(n=[3], m=[24], B=[2, 4], s=[1, 3]), ["+thread_striding"])[0]
    assert run(cases, tmp_path) == {}


def program(text):
    return parse(Source("reduction.mf", text)).schedules[0].program


@pytest.mark.parametrize("text", [blocks("+"), threads("min"), SEVERAL])
def test_reductions_are_free_of_races_and_read_back(text):
    first = program(text)
    report = race_report(first)
    assert report.races == report.unproved == ()
    assert program(metafork_text(first)).body == first.body


def test_products_are_made_at_once_in_ptx():
    text = threads("*").replace("unsigned char", "unsigned")
    assert "atom.relaxed.sys.shared.cas.b32" in emit_ptx(optimize(module_text(lower(program(text), "k"))))


REFUSED = {
    "of a floating sum": blocks("+")
    .replace("int *sum", "float *sum")
    .replace("meta_reduction(+: sum)", "meta_reduction(+: «sum»)"),
    "by another operation": blocks("+").replace("*sum += x[p];", "«*sum |= x[p];»"),
    "of the value": blocks("+").replace("*sum += x[p];", "«*sum += x[p] * *sum;»"),
    "that is read": blocks("+").replace("*sum += x[p];", "*sum += x[p]; if («*sum» > 3) *sum += 1;"),
    "that is read in a loop's head": threads("+").replace(
        "low += a[i][t * B + j];", "for (int k = 0; k < «low»; k++) low += 1;"
    ),
    "of a scalar of the file": "int sum;\n"
    + blocks("+").replace("int *sum)", "int *q)").replace("*sum += x[p];", "").replace("+: sum", "+: «sum»"),
    "of a scalar whose address is known": blocks("+")
    .replace("int *sum)\n{", "int *q)\n{ int sum = 0; q = &sum;")
    .replace("*sum += x[p];", "")
    .replace("+: sum", "+: «sum»"),
    "of a const scalar": blocks("+")
    .replace("int *sum)\n{", "int *q)\n{ const int sum = 0;")
    .replace("*sum += x[p];", "")
    .replace("+: sum", "+: «sum»"),
    "of a floating scalar": blocks("+")
    .replace("int *sum)\n{", "int *q)\n{ float sum = 0;")
    .replace("*sum += x[p];", "")
    .replace("meta_reduction(+: sum)", "meta_reduction(+: «sum»)"),
    "of a scalar that is read": blocks("+")
    .replace("int *sum)\n{", "int *q)\n{ int sum = 0;")
    .replace("*sum += x[p];", "sum += x[p]; if («sum» > 2) continue;"),
    "without a loop": blocks("+").replace(
        "*sum += x[p];", "«meta_reduction(+: sum)» for (int k = 0; k < 3; k++) *sum += x[p];"
    ),
    "of no operation": blocks("+").replace("meta_reduction(+: sum)", "«meta_reduction(/: sum)»"),
    "of no name": blocks("+").replace("meta_reduction(+: sum)", "«meta_reduction(+: )»"),
    "of an element": blocks("+").replace("meta_reduction(+: sum)", "«meta_reduction(+: sum[0])»"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    assert_refused(REFUSED[name], "MF0225")


SCALARS = """
int scalars(int n, int B, int rounds, const int x[n], long least, unsigned found[3])
{
  int sum = 5, changes, i = 0;
  for (int r = 0; r < rounds; r++) {
    int half = sum / 2;
    changes = 0;
    meta_schedule {
      meta_reduction(+: sum, changes) meta_reduction(min: least)
      meta_for (int i = 0; i < (n + B - 1) / B; i++)
        meta_for (int j = 0; j < B; j++) {
          int p = i * B + j;
          if (p >= n) continue;
          sum += x[p] & 255;
          if (((x[p] + half) & 7) == r) changes++;
          if (x[p] < least) least = x[p];
        }
    }
    if (changes == 1) break;
    found[0] += changes;
    meta_schedule
      meta_reduction(^: i)
      meta_for (int k = 0; k < sum % 5 + 1; k++)
        meta_for (int j = 0; j < B; j++)
          i ^= x[(j + k) % n] + changes;
  }
  if (n > 0) found[1] = sum + (least < 0 ? -least : least), found[2] = i;
  return sum;
}
"""


@pytest.mark.slow
def test_scalars_of_the_host_are_results():
    options = Options(points=6, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(SCALARS, counters=("shared_memory",), strategies=("caching",), options=options, machine="all")
    assert found.passed, found.table()
    assert {row.schedule for row in found.rows} == {"input_k0", "input_k1"}
    assert "not checked" not in found.table()
