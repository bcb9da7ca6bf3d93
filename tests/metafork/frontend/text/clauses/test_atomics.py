"""Atomic updates: every leaf of programs with them against the serial elision, what races and what does not."""

import pytest
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.races.races import race_report
from metafork.comprehensive import registry
from metafork.comprehensive.emit import LeafCode
from metafork.comprehensive.explanation import explanation
from metafork.comprehensive.verification import Options, plain_code, verify
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Assign, For, If, walk_statements
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.printing.metafork_text import metafork_text
from tests.comprehensive.constructs.leaf_cases import leaf_cases
from tests.metafork.frontend.text.clauses.atomic_programs import OWN
from tests.metafork.kernel_runs import grid, run

COUNTS = """
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static long long least(long long a, long long b) { return a < b ? a : b; }
static void count(int m, int h[m], int b) { meta_atomic h[b] += 1; }
void counts(int n, int m, int B, const int x[n], int h[m], unsigned char narrow[m], long long ends[2],
            unsigned bits[3], short few[m])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int v = x[i * B + j] & 0xffff;
        meta_atomic h[v % m]++;
        count(m, h, v / 2 % m);
        meta_atomic narrow[v % m] -= v;
        meta_atomic --narrow[0];
        meta_atomic ends[0] = MAX(ends[0], v);
        meta_atomic ends[1] = least(ends[1], v);
        meta_atomic bits[0] |= 1u << (v & 31);
        meta_atomic bits[1] &= ~(1u << (v & 31));
        meta_atomic bits[2] = v ^ bits[2];
        meta_atomic few[v % m] = few[v % m] >= (short)v ? (short)v : few[v % m];
      }
  }
}
"""


SUMS = """
void sums(int n, int s, int B, const int x[n], long total[1], int rows[n])
{
  assert(n % (B * s) == 0);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n / (B * s); i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          meta_atomic total[0] += x[(i * s + k) * B + j];
          rows[(i * s + k) * B + j] = x[(i * s + k) * B + j] & 7;
        }
  }
}
"""

CASES = {
    "counts": (COUNTS, grid(n=[12], m=[1, 5], B=[1, 4])),
    "own": (OWN, grid(n=[12], m=[1, 7], B=[2, 3], s=[1, 2])),
    "sums": (SUMS, grid(n=[24], s=[1, 3], B=[1, 4])),
}


def program(text):
    return parse(Source("atomic.mf", text)).schedules[0].program


def within(body, arguments="int n, int m, int B, const int x[n], int h[m], int g[m]", phases=False):
    inner = body if phases else f"meta_for (int j = 0; j < B; j++) {{ int p = i * B + j; {body} }}"
    return (
        f"void f({arguments}) {{ meta_schedule {{ meta_for (int i = 0; i < n / B; i++) {{ int one = 1; {inner} }} }} }}"
    )


def test_every_leaf_computes_what_the_serial_elision_does(tmp_path):
    cases, applied = [], set()
    for text, points in CASES.values():
        more, strategies = leaf_cases(text, points, ["+thread_striding"])
        cases += more
        applied |= strategies
    assert {"granularity", "caching", "thread_striding"} <= applied
    assert run(cases, tmp_path) == {}


def without_atomics(body):
    """The statements of a kernel, its atomic updates made plain ones."""
    result = []
    for stmt in body:
        match stmt:
            case If(then=then, otherwise=otherwise):
                stmt = replace(stmt, then=without_atomics(then), otherwise=without_atomics(otherwise))
            case For(body=inner):
                stmt = replace(stmt, body=without_atomics(inner))
            case Assign(atomic=True):
                stmt = replace(stmt, atomic=False)
        result.append(stmt)
    return tuple(result)


def plain(leaf):
    kernel = plain_code(leaf).kernel
    kernel = replace(kernel, body=without_atomics(kernel.body))
    return LeafCode(kernel, kernel_text(kernel))


@pytest.mark.parametrize(("code", "races"), [(plain_code, False), (plain, True)], ids=["atomic", "plain"])
@pytest.mark.slow
def test_verify_knows_that_atomic_updates_of_one_kind_do_not_race(code, races):
    options = Options(points=2, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(OWN, counters=("shared_memory",), strategies=(), options=options, code_of=code, machine="all")
    assert any("data race" in failure.text() for failure in found.failures) is races
    assert bool(found.failures) is races


@pytest.mark.parametrize("text", [COUNTS, OWN, SUMS])
def test_updates_of_one_kind_are_no_race(text):
    report = race_report(program(text))
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.parametrize(
    ("body", "phases"),
    [
        ("meta_atomic h[0] += x[p]; h[0] = 1;", False),
        ("meta_atomic h[0] += x[p]; g[p] = h[0];", False),
        ("meta_atomic h[0] += x[p]; meta_atomic h[0] |= x[p];", False),
        ("meta_atomic h[0] += x[p]; meta_atomic h[0] = h[0] < 7 ? 7 : h[0];", False),
        ("meta_atomic h[0] += h[1]; meta_atomic h[1] += 1;", False),
        ("h[0] += x[p];", False),
        (
            "meta_for (int j = 0; j < B; j++) meta_atomic h[0] += 1; "
            "meta_for (int j = 0; j < B; j++) g[i * B + j] = h[0];",
            True,
        ),
    ],
)
def test_what_mixes_with_other_accesses_races(body, phases):
    assert race_report(program(within(body, phases=phases))).races


def test_updates_of_two_kinds_and_reads_are_free_of_races_with_barriers_between_them():
    block = (
        "int t[2]; meta_for (int j = 0; j < B; j++) if (j == 0) { t[0] = 1; t[1] = 0; } "
        "meta_for (int j = 0; j < B; j++) meta_atomic t[0] += x[i * B + j] & 3; "
        "meta_for (int j = 0; j < B; j++) meta_atomic t[0] |= j; "
        "meta_for (int j = 0; j < B; j++) g[i * B + j] = t[0];"
    )
    report = race_report(program(within(block, phases=True)))
    assert report.races == report.unproved == ()


def test_the_report_says_why_an_array_that_is_updated_atomically_is_not_cached():
    text = within("meta_atomic h[p % 2] += x[p];").replace("meta_schedule", "meta_schedule cache(h)")
    found = [
        one
        for one in explanation(program(text), registry.strategies(None), Analyses())
        if one.subject == "h" and one.topic == "shared memory"
    ]
    assert [(one.taken, one.reason) for one in found] == [(False, "threads of all blocks update h atomically")]


@pytest.mark.parametrize("text", [COUNTS, OWN, SUMS])
def test_printed_programs_read_back(text):
    first = program(text)
    again = program(metafork_text(first))
    assert again.body == first.body
    assert any(isinstance(stmt, Assign) and stmt.atomic for stmt in walk_statements(again.body))


def test_ptx_updates_memory_at_once():
    ptx = emit_ptx(optimize(module_text(lower(program(COUNTS), "k"))))
    for instruction in ("atom.global.add.u32", "atom.global.max.s64", "atom.global.min.s64", "atom.global.xor.b32"):
        assert instruction in ptx
    assert "cas.b32" in ptx


@pytest.mark.parametrize("update", ["(*g)++", "(*g) += x[p]", "++(*g)", "((*g))--", "(*g) = (*g) + 1", "(g[p % 3])++"])
def test_what_is_updated_may_stand_in_parentheses(update):
    updated = [
        one for one in walk_statements(program(within(f"meta_atomic {update};")).body) if isinstance(one, Assign)
    ]
    assert [one.atomic for one in updated] == [True]


def test_an_update_may_stand_behind_and_in_a_macro():
    """There, nothing says before macros are expanded whether it begins a statement."""
    macros = "#define LOOP for (int k = 0; k < 2; k++)\n#define BOTH(a, b) { a; b; }\n"
    text = macros + within("LOOP meta_atomic g[k]++; BOTH(int z = 2, meta_atomic g[0] += z)")
    updated = [stmt for stmt in walk_statements(program(text).body) if isinstance(stmt, Assign) and stmt.atomic]
    assert len(updated) == 2


def test_the_word_may_be_a_name_elsewhere():
    text = within("int meta_atomic = x[p]; meta_atomic++; meta_atomic = meta_atomic * 2; g[p % 1] = meta_atomic;")
    assert not any(isinstance(stmt, Assign) and stmt.atomic for stmt in walk_statements(program(text).body))
