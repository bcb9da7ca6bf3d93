"""Deliberately broken programs and kernels: each is caught by the check that should catch it."""

import dataclasses
import json
import re

import pytest
from msgspec.structs import replace

from metafork.algebra.polynomial import at_most
from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.emit import LeafCode, select_text
from metafork.comprehensive.optimize import Result, discuss, optimize
from metafork.comprehensive.tree.schedule_tree import Node
from metafork.comprehensive.verification import Options, plain_code, verify
from metafork.frontend import parse
from metafork.ir.kernel import Space
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.ir.program import Assign, Barrier, Binary, Element, For, If, IntConst, While, binary
from metafork.printing.cuda import kernel_text
from metafork.strategies.caching import with_cached_arrays

OPTIONS = Options(points=12, jobs=2, optimization="-O0", dataflow_seconds=0)
WITHOUT_RACES = replace(OPTIONS, races=False)
COUNTERS = ("threads_per_block", "shared_memory")
STRATEGIES = ("granularity", "caching")

STENCIL = """
void stencil(int N, int s, int B, const int a[N], int b[N]) {
  int dim = (N - 2) / (s * B);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + j;
          b[p] = a[p] + 3 * a[p + 2];
        }
  }
}
"""

GUARDED = """
void guarded(int N, int B, const int a[N], int b[N]) {
  int dim = (N + B - 1) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < N)
          b[p] = 2 * a[p];
      }
  }
}
"""

WEIGHTED = """
void weighted(int n, int B, int C, const int a[n], const int w[n], int c[n][n]) {
  int down = n / B, across = n / C;
  meta_schedule cache() {
    meta_for (int i = 0; i < down; i++) meta_for (int j = 0; j < across; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < C; u++)
        c[i * B + v][j * C + u] = a[i * B + v] * w[j * C + u];
  }
}
"""


def optimized(text):
    return optimize(text, counters=COUNTERS, strategies=STRATEGIES, order="paper")


def rewritten(body, change):
    """Apply ``change`` (statement -> statements) to every statement, innermost first."""
    result = []
    for stmt in body:
        match stmt:
            case If(then=then, otherwise=otherwise):
                stmt = replace(stmt, then=rewritten(then, change), otherwise=rewritten(otherwise, change))
            case For(body=inner) | While(body=inner):
                stmt = replace(stmt, body=rewritten(inner, change))
            case _:
                pass
        result += change(stmt)
    return tuple(result)


def broken(change, memories=None):
    """A ``code_of`` whose kernels are changed."""

    def code(leaf):
        kernel = plain_code(leaf).kernel
        kernel = replace(kernel, body=rewritten(kernel.body, change))
        if memories is not None:
            kernel = replace(kernel, memories=tuple(memories(memory) for memory in kernel.memories))
        return LeafCode(kernel, kernel_text(kernel))

    return code


def checks_that_fail(subject, code_of=plain_code):
    return {failure.check for failure in verify(subject, options=OPTIONS, code_of=code_of).failures}


@pytest.fixture
def only_proved(monkeypatch):
    """Guards are proved and tried at points; nothing is built and run."""
    monkeypatch.setattr("metafork.comprehensive.verification.engine._Run._drivable", lambda self: [])


@pytest.fixture(scope="module")
def stencil():
    return optimized(STENCIL)


@pytest.fixture(scope="module")
def guarded():
    return optimized(GUARDED)


def test_the_unbroken_ones_pass():
    assert checks_that_fail(optimized(STENCIL + GUARDED)) == set()


@pytest.mark.slow
def test_a_missing_barrier(stencil):
    assert "races" in checks_that_fail(stencil, broken(lambda stmt: [] if isinstance(stmt, Barrier) else [stmt]))


def is_write(stmt, name):
    return isinstance(stmt, Assign) and isinstance(stmt.target, Element) and stmt.target.array.startswith(name)


@pytest.mark.slow
def test_an_off_by_one_window(stencil):
    """The last element of every window is not loaded."""

    def change(stmt):
        if isinstance(stmt, For) and any(is_write(inner, "shared_a") for inner in stmt.body):
            assert isinstance(stmt.condition, Binary)
            shorter = binary("-", stmt.condition.right, IntConst(1))
            return [replace(stmt, condition=replace(stmt.condition, right=shorter))]
        return [stmt]

    found = verify(stencil, options=OPTIONS, code_of=broken(change)).failures
    assert {"races", "code"} & {failure.check for failure in found}
    assert any("uninitialised" in failure.message for failure in found)


@pytest.mark.slow
def test_a_wrong_guard(guarded):
    """``p < N`` becomes ``p <= N``."""

    def change(stmt):
        if isinstance(stmt, If) and isinstance(stmt.condition, Binary) and stmt.condition.op == "<":
            return [replace(stmt, condition=replace(stmt.condition, op="<="))]
        return [stmt]

    found = verify(guarded, options=WITHOUT_RACES, code_of=broken(change)).failures
    assert any(f.check == "code" and "heap-buffer-overflow" in f.message for f in found)


@pytest.mark.slow
def test_an_element_dropped_at_a_partial_block(guarded):
    """Only whole blocks are stored."""

    def change(stmt):
        if isinstance(stmt, If) and isinstance(stmt.condition, Binary) and stmt.condition.op == "<":
            earlier = binary("-", stmt.condition.right, IntConst(1))
            return [replace(stmt, condition=replace(stmt.condition, right=earlier))]
        return [stmt]

    found = verify(guarded, options=WITHOUT_RACES, code_of=broken(change)).failures
    assert any(f.check == "code" and "b differs at element" in f.message for f in found)


def test_a_too_small_shared_array(stencil):
    def memories(memory):
        if memory.space is Space.SHARED and memory.name.startswith("shared_a"):
            return replace(memory, extent=binary("-", memory.extent, IntConst(1)))
        return memory

    found = verify(stencil, options=WITHOUT_RACES, code_of=broken(lambda stmt: [stmt], memories)).failures
    assert any(f.check == "code" and "is outside of its" in f.message for f in found)


@pytest.mark.slow
def test_what_is_undefined_is_told(guarded):
    """Undefined behaviour is trapped without a word: the message is that of a second build."""

    def change(stmt):
        if is_write(stmt, "b"):
            return [replace(stmt, value=binary("*", stmt.value, IntConst(2**31 - 1)))]
        return [stmt]

    found = verify(guarded, options=WITHOUT_RACES, code_of=broken(change)).failures
    assert any(f.check == "code" and "signed integer overflow" in f.message for f in found)


@pytest.mark.slow
def test_less_shared_memory_than_counted(stencil):
    def code(leaf):
        plain = plain_code(leaf)
        kernel = replace(plain.kernel, shared_bytes=binary("-", plain.kernel.shared_bytes, IntConst(4)))
        return LeafCode(kernel, kernel_text(kernel))

    found = verify(stencil, options=OPTIONS, code_of=code)
    assert {"code", "resources"} & {failure.check for failure in found.failures}
    assert any("no kernel was launched" in failure.message for failure in found.failures)
    (tree,) = stencil.schedules
    of_variants = {(leaf.id, one.number): one.strategies for leaf in tree.leaves for one in leaf.variants}
    assert len(set(of_variants.values())) > 1
    table = found.table()
    for failure in found.failures:
        assert failure.strategies == of_variants[failure.leaf, failure.variant]
        leaf = tree.leaves[failure.leaf - 1]
        assert f"FAIL {tree.program.name} {leaf.name}: {failure.check} at " in table
    for entry in json.loads(found.to_json())["failures"]:
        assert tuple(entry["strategies"]) == of_variants[entry["leaf"], entry["variant"]]


def test_a_variant_that_runs_where_its_limits_fail(monkeypatch):
    result = optimize(WEIGHTED, counters=("threads_per_block",), strategies=("register_tile",))
    (leaf,) = result.schedules[0].leaves
    assert [bool(one.limits) for one in leaf.variants] == [True, True, True, True, False]
    right = select_text._Variants._variant
    monkeypatch.setattr(
        select_text._Variants, "_variant", lambda self, one, code: right(self, replace(one, limits=()), code)
    )
    found = verify(result, options=WITHOUT_RACES)
    assert {failure.variant for failure in found.failures} == {2, 3, 4, 5}
    assert any("variant 1 ran where the tree gives variant 2" in failure.message for failure in found.failures)


def with_tree(result, change):
    (tree,) = result.schedules
    return Result(result.unit, (change(tree),), result.counters, result.strategies)


@pytest.mark.usefixtures("only_proved")
def test_a_swapped_branch(stencil):
    def swap(tree):
        root = tree.root
        while isinstance(root.accept, Node):
            root = root.accept
        return dataclasses.replace(
            tree, root=replaced(tree.root, root, replace(root, accept=root.refuse, refuse=root.accept))
        )

    assert "guards" in checks_that_fail(with_tree(stencil, swap))


def replaced(tree, old, new):
    if tree is old:
        return new
    if isinstance(tree, Node):
        return replace(tree, accept=replaced(tree.accept, old, new), refuse=replaced(tree.refuse, old, new))
    return tree


def loosened(tree, by):
    """Shift the last bound of the first leaf's displayed system."""
    first = tree.leaves[0]
    *others, last = first.systems[0]
    shifted = at_most(last.left + by, last.right)
    leaf = replace(first, systems=((*others, shifted), *first.systems[1:]))
    return dataclasses.replace(tree, leaves=(leaf, *tree.leaves[1:]))


@pytest.mark.usefixtures("only_proved")
def test_an_overlapping_pair_of_guards(stencil):
    found = verify(with_tree(stencil, lambda tree: loosened(tree, -1)), options=OPTIONS)
    overlaps = [f.message for f in found.failures if f.check == "guards" and "disjoint" in f.message]
    assert overlaps
    (tree,) = stencil.schedules
    for message in overlaps:
        for leaf in map(int, re.findall(r"leaf (\d+)", message)):
            assert f"{tree.leaves[leaf - 1].name} system " in message


@pytest.mark.usefixtures("only_proved")
def test_a_gap(stencil):
    found = verify(with_tree(stencil, lambda tree: loosened(tree, 1)), options=OPTIONS)
    assert any(f.check == "guards" and "cover Start" in f.message for f in found.failures)


@pytest.mark.slow
def test_a_race_in_the_source():
    """Each thread reads what its neighbour writes: refused when parsed, and found when it runs all the same."""
    text = """
void racing(int N, int B, int a[N + 1]) {
  int dim = N / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = a[i * B + j + 1] + 1;
  }
}
"""
    with pytest.raises(DiagnosticsError, match="MF0401"):
        verify(text, options=OPTIONS)
    unit = parse(Source("racing.mf", text))
    tree = discuss(unit.schedules[0].program, registry.counters(COUNTERS), ())
    assert "races" in checks_that_fail(Result(unit, (tree,), COUNTERS, ()))


@pytest.mark.slow
def test_a_wrong_collapse_of_a_dependent_loop():
    """The granularity loop carries a value from iteration to iteration: its iterations must not join the grid."""
    text = """
void carried(int N, int s, int B, int a[N + 1]) {
  int dim = N / (s * B);
  meta_schedule cache() {{
    meta_for (int i = 0; i < dim{grid}; i++)
      meta_for (int j = 0; j < B; j++){loop} {{
        int p = {index};
        if ({step} > 0)
          a[p] = a[p - 1] + 2 * a[p];
      }}
  }}
}
"""
    serial = text.replace("{{", "{").replace("}}", "}")
    serial = serial.replace("{grid}", "").replace("{loop}", "\n        for (int k = 0; k < s; k++)")
    serial = serial.replace("{index}", "(i * B + j) * s + k").replace("{step}", "k")
    collapsed = text.replace("{{", "{").replace("}}", "}").replace("{grid}", " * s").replace("{loop}", "")
    collapsed = collapsed.replace("{index}", "(i / s * B + j) * s + i % s").replace("{step}", "i % s")
    right = optimize(serial, counters=COUNTERS, strategies=())
    parsed = with_cached_arrays(parse(Source("collapsed.mf", collapsed)).schedules[0].program, Analyses()).program
    wrong = replace(right.schedules[0].leaves[0].version, program=parsed)

    def code(leaf):
        return plain_code(replace(leaf, version=wrong))

    assert {"code", "races"} & checks_that_fail(right, code)
