"""``meta_atomic x[c[i]] += v`` of floating-point numbers: refused, or allowed and compared to its bound."""

import subprocess

import pytest
from msgspec.structs import replace

from metafork.comprehensive.emit import runtime_include_dir
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, plain_code, verify
from metafork.comprehensive.verification.driver import SUPPORT_DIRECTORY
from metafork.comprehensive.verification.unordered_sums import followed, summed
from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.ir.visitor import Rewriter
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx
from metafork.llvm.ptx_target import optimize as optimized_ir
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.scattering import QUICK, SCATTER
from tests.runtime.compiling import succeed

OPTIONS = Options(points=6, jobs=1, dataflow_seconds=0, optimization="-O0")
AGAIN = """
void again(int n, int m, int B, const int c[n], const float v[n], float x[m], float z[m])
{
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) meta_atomic x[(unsigned)c[i] % m] += v[i]; }
  meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) z[i] = x[i] / 3; }
}
"""
MIXED = """
struct cell { int id; float sum; };
void mixed(int n, int m, int B, const int c[n], const float v[n], struct cell x[m])
{
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) meta_atomic x[(unsigned)c[i] % m].sum += v[i]; }
}
"""
OWN = """
void own(int n, int m, int B, const int c[n], const float v[n], float x[m])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++) {
      float part[4];
      meta_for (int j = 0; j < B; j++) for (int k = j; k < 4; k += B) part[k] = 0;
      meta_for (int j = 0; j < B; j++) meta_atomic part[c[i * B + j] & 3] += v[i * B + j];
      meta_for (int j = 0; j < B; j++) for (int k = j; k < 4; k += B) meta_atomic x[k % m] += part[k];
    }
  }
}
"""


def unit_of(text):
    return parse(Source("scatter.mf", text), reassociate=True)


def refused(text, *, reassociate=False):
    with pytest.raises(DiagnosticsError) as found:
        parse(Source("scatter.mf", text), reassociate=reassociate)
    return found.value.diagnostics


def test_without_the_option_the_message_names_it():
    assert {one.code for one in refused(SCATTER)} == {"MF0224"}
    assert all("--reassociate" in one.way_out for one in refused(SCATTER))


@pytest.mark.parametrize("update", ["x[c[p]] *= v[p]", "x[c[p]] = fmaxf(x[c[p]], v[p])", "x[c[p]] = 3", "c[p] += v[p]"])
def test_only_sums_are_allowed(update):
    text = SCATTER.replace("x[p % m] -= v[p]", update).replace("const int c", "int c")
    (one,) = refused(text, reassociate=True)
    assert one.code == "MF0224"


def test_a_printed_program_reads_back():
    first = unit_of(SCATTER).schedules[0].program
    assert unit_of(metafork_text(first)).schedules[0].program.body == first.body


def test_the_report_states_the_bound():
    report = optimize(SCATTER, **QUICK).to_report()
    assert "added to `x`, `y` in any order" in report
    assert "(2 N + 1) u (|x| + the sum of the terms' absolute values)" in report


@pytest.mark.parametrize(("text", "depends"), [(SCATTER, False), (AGAIN, True), (OWN, True)])
def test_what_depends_on_a_sum_has_no_bound(text, depends):
    unit = unit_of(text)
    assert summed(unit, unit.functions[0]) == ({"x", "y"} if text is SCATTER else {"x"})
    assert followed(unit, unit.functions[0]) is depends


class _Wrong(Rewriter):
    """Terms come a little larger than they are."""

    def assign(self, node):
        if not node.atomic:
            return node
        return replace(node, value=ir.binary("*", node.value, ir.FloatConst("1.00001f", ir.ScalarType.FLOAT)))


def wrong(variant):
    code = plain_code(variant)
    kernel = replace(code.kernel, body=_Wrong().body(code.kernel.body))
    return replace(code, kernel=kernel, text=kernel_text(kernel))


@pytest.mark.parametrize(
    ("text", "code", "right"),
    [
        (SCATTER, plain_code, True),
        (SCATTER, wrong, False),
        (MIXED, plain_code, True),
        (MIXED, wrong, False),
        (OWN, plain_code, True),
    ],
)
@pytest.mark.sampled(2)
def test_verify_compares_with_the_bound(monkeypatch, text, code, right):
    monkeypatch.setenv("METAFORK_CPU_ORDER", "reverse")
    found = verify(text, **QUICK, options=OPTIONS, code_of=code, machine="all")
    assert (found.failures == []) is right
    assert any("compared to the bound" in note for note in found.notes)


BOUND = r"""
#define _GNU_SOURCE
#include "driver_support.h"
int main(void) {
  static float terms[1000], up = 3, down = 3;
  driver_begin();
  driver_fill_float(terms, sizeof terms, 4);
  for (int i = 0; i < 1000; i++) driver_term(&up, up, terms[i], 4), up += terms[i];
  for (int i = 1000; i-- > 0;) down += terms[i];
  float beyond = up + 1000 * 2.1f * 0x1p-24f * 600, near = 1 + 0x1p-22f;
  if (up == down || driver_compare("sum", &down, &up, 4, 4, true, 0)) return 1;
  if (!driver_compare("sum", &beyond, &up, 4, 4, true, 0)) return 2;
  driver_term(&up, 0, 1, 4), up = 1;  /* a new sum, of one term */
  if (!driver_compare("sum", &near, &up, 4, 4, true, 0)) return 3;
  near = 1 + 0x1p-23f;
  if (driver_compare("sum", &near, &up, 4, 4, true, 0)) return 4;
  near = 1 + 0x1p-23f;
  driver_forget_terms();
  return driver_compare("sum", &near, &up, 4, 4, true, 0) ? 0 : 5;
}
"""


def test_the_bound_is_that_of_the_terms(tmp_path):
    (tmp_path / "bound.c").write_text(BOUND)
    succeed(
        [
            "gcc",
            "-w",
            f"-I{SUPPORT_DIRECTORY}",
            f"-I{runtime_include_dir()}",
            tmp_path / "bound.c",
            "-o",
            tmp_path / "bound",
        ]
    )
    assert subprocess.run([tmp_path / "bound"], check=False).returncode == 0


def test_ptx_adds_at_once():
    ptx = emit_ptx(optimized_ir(module_text(lower(unit_of(SCATTER).schedules[0].program, "k"))))
    assert "atom.global.add.f32" in ptx
    assert "atom.global.add.f64" in ptx
