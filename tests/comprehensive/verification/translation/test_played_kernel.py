"""Faults planted in the lowering of programs to kernels: playing kernels with terms refutes each, without a compiler.

A fault is a change of one place in the text of a module; the module's functions are replaced where they are used.
"""

import importlib
import inspect
import sys
from types import ModuleType

import pytest
from msgspec.structs import replace

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.translation.translation import validate
from metafork.ir.kernel import SHUFFLE, Space
from metafork.ir.messages.source import Source
from metafork.ir.program import Call, Element, IntConst, While, binary, parts_of
from metafork.lowering.lowering import typed_kernel
from tests.sampling import sampled

UPDATED = """
void update(int n, int B0, int B1, float a[n][n], const float r[n], const float c[n]) {
  int down = (n + B0 - 1) / B0, across = (n + B1 - 1) / B1;
  meta_schedule {
    meta_for (int i = 0; i < down; i++)
      meta_for (int j = 0; j < across; j++)
        meta_for (int v = 0; v < B0; v++)
          meta_for (int u = 0; u < B1; u++) {
            int y = i * B0 + v, x = j * B1 + u;
            if (y < n && x < n)
              a[y][x] += r[y] * c[x];
          }
  }
}
"""
JAMMED = """
void jammed(int n, int m, int s, int B, const float a[n][m], const float b[m][s], float c[n][s]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        for (int w = 0; w < s; w++)
          for (int z = 0; z < m; z++)
            c[i * B + u][w] += a[i * B + u][z] * b[z][w];
  }
}
"""
TILED = """
void tiled(int n, int B, const float a[n][n], const float x[n], float y[n]) {
  int d = n / B;
  meta_schedule cache(x) {
    meta_for (int i = 0; i < d; i++)
      for (int t = 0; t < d; t++)
        meta_for (int u = 0; u < B; u++)
          for (int k = 0; k < B; k++)
            y[i * B + u] += a[i * B + u][t * B + k] * x[t * B + k];
  }
}
"""
WITHOUT = """
void without(int n, int B, float a[n][n], const float r[n], const float c[n], int k) {
  int across = (n + B - 1) / B;
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < across; j++)
        meta_for (int v = 0; v < 1; v++)
          meta_for (int u = 0; u < B; u++) {
            int x = j * B + u;
            if (x < n && x != k)
              a[i][x] = a[i][x] - r[i] * c[x];
          }
  }
}
"""
CHAIN = """
void chain(int n, int m, int s, int B, const float a[n][m], float c[n][s + 1]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        for (int w = 0; w < s; w++)
          for (int z = 0; z < m; z++)
            c[i * B + u][w + 1] += a[i * B + u][z] * c[i * B + u][w];
  }
}
"""
TRUTH = """
void truth(int n, int B, const int a[n], const _Bool x[n], _Bool y[n], short s[n]) {
  int blocks = n / B;
  meta_schedule cache(x) {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        y[p] = a[p] > 3;
        if (p % 2) y[p] = x[p];
        s[p] += x[p];
      }
  }
}
"""
COLUMNS = """
void columns(int m, int n, int B, const float a[m][n], const float x[m], float y[n]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int j = 0; j < blocks; j++)
      meta_for (int u = 0; u < B; u++)
        for (int i = 0; i < m; i++)
          y[j * B + u] += a[i][j * B + u] * x[i];
  }
}
"""

GUARDED = """
void guarded(int n, int m, int B, const float x[m], float y[n]) {
  int blocks = n / B, tiles = (m + B - 1) / B;
  meta_schedule cache(x) {
    meta_for (int i = 0; i < blocks; i++)
      for (int t = 0; t < tiles; t++)
        meta_for (int u = 0; u < B; u++)
          for (int k = 0; k < B; k++)
            if (t * B + k < m)
              y[i * B + u] += x[t * B + k];
  }
}
"""
FAULTS = [
    (
        "a row that is the one before",
        UPDATED,
        "unrolling.coarsening",
        "first, ir.IntConst(more))",
        "first, ir.IntConst(more - 1))",
    ),
    (
        "rows behind the last",
        UPDATED,
        "unrolling.coarsening",
        'insert(0, ir.binary("<=", after, loop.extent))',
        "count(0)",
    ),
    (
        "rows that no thread runs",
        UPDATED,
        "unrolling.coarsening",
        'after = ir.Var(loop.var, INT), ir.binary("+", first, ir.IntConst(count))',
        'after = ir.Var(loop.var, INT), ir.binary("+", first, ir.IntConst(count - 1))',
    ),
    (
        "a condition of rows forgotten",
        UPDATED,
        "unrolling.coarsening",
        "(ir.If(every(tests), side, each),) if tests else side",
        "side",
    ),
    (
        "columns in another stride",
        UPDATED,
        "unrolling.columns",
        "extent, ir.IntConst(columns.count - 1)), ir.IntConst(columns.count)",
        "extent, ir.IntConst(columns.count)), ir.IntConst(columns.count)",
    ),
    (
        "vectors that begin anywhere",
        UPDATED,
        "unrolling.columns",
        "for name, multiple in side.divided.items()]",
        "for name, multiple in ()]",
    ),
    (
        "a predicate missing in the columns left over",
        WITHOUT,
        "unrolling.masks",
        "alone = tuple(ir.If(test, (",
        "alone = tuple(ir.If(tests[0], (",
    ),
    (
        "what four iterations leave over, twice",
        COLUMNS,
        "unrolling.ahead",
        "init=replace(init, value=even)",
        "init=replace(init, value=ir.IntConst(0))",
    ),
    (
        "the next iteration in place of this one",
        JAMMED,
        "unrolling.jam",
        "variable, ir.IntConst(number))",
        "variable, ir.IntConst(number + 1))",
    ),
    (
        "what jammed iterations leave over",
        JAMMED,
        "unrolling.jam",
        "return (main, replace(loop, init=replace(init, value=even)))",
        "return (main,)",
    ),
    (
        "a dependence between jammed iterations",
        CHAIN,
        "transform.unroll_and_jam",
        "if refused := legality.independent(program, found, analyses):",
        "if False and (refused := legality.independent(program, found, analyses)):",
    ),
    (
        "registers that never come back",
        TILED,
        "lowering.path",
        "for stmt in code.epilogue(self._copy_site())]",
        "for stmt in ()]",
    ),
    (
        "registers that are fetched from nowhere",
        TILED,
        "lowering.private",
        'Assign(own, "", outside) if into_registers',
        'Assign(own, "", own) if into_registers',
    ),
    ("no barrier behind a copy", TILED, "lowering.path", "return [ir.Barrier()]", "return []"),
    (
        "a tile without its last element",
        TILED,
        "lowering.copies.window_copies",
        "walk = Walk(prefix, counters, extents, site",
        "walk = Walk(prefix, counters, tuple(one - 1 for one in extents), site",
    ),
    (
        "one iteration more than the guard lets run",
        GUARDED,
        "lowering.loop_bounds",
        'past = ir.Cast(LONG, right) if op == "<"',
        'past = ir.Cast(LONG, right) if op == ">"',
    ),
    (
        "copies in the text that are all but the first one further on",
        UPDATED,
        "printing.rerolled",
        "apart[1][1] - apart[0][1], self.variable",
        "apart[1][1] - apart[0][1] + 1, self.variable",
    ),
    (
        "scalars of copies that are others",
        UPDATED,
        "printing.rerolled",
        "self.places[name] = array, number",
        "self.places[name] = array, max(number - 1, 0)",
    ),
]
"""What is wrong, with which program it shows, and the text in a module that another one replaces."""


def leaves(text):
    """Return the program, and the programs of all variants but instances."""
    (tree,) = optimize(Source("test.mf", text), static="none").schedules
    return tree.program, [one.version.program for leaf in tree.leaves for one in leaf.variants]


@pytest.fixture
def planted(monkeypatch):
    """Replace a text in a module of the lowering, and its functions and classes wherever they are used."""

    def plant(name, right, wrong):
        module = importlib.import_module(f"metafork.{name}")
        text = inspect.getsource(module)
        assert text.count(right) == 1
        faulty = ModuleType(module.__name__)
        exec(compile(text.replace(right, wrong), module.__file__, "exec"), faulty.__dict__)
        for used in [one for key, one in sys.modules.items() if key.startswith("metafork.")]:
            for key, value in list(vars(used).items()):
                name = getattr(value, "__name__", key)
                if getattr(value, "__module__", "") == module.__name__ and hasattr(faulty, name):
                    monkeypatch.setattr(used, key, getattr(faulty, name))

    return plant


PROGRAMS = {text.split("(")[0].split()[-1]: text for text in (TRUTH, *(one[1] for one in FAULTS))}


def validated(text):
    """Return what is said of the kernels of a program, one for each variant."""
    source, programs = leaves(text)
    return [validate(source, one, typed_kernel(one, Analyses()), shapes=0) for one in programs]


@pytest.mark.parametrize("text", sampled(PROGRAMS, {"columns", "tiled", "truth"}))
def test_kernels_are_right_before(text):
    for found in validated(text):
        assert found.verdict is not Verdict.NO
        assert found.points == 8
        assert found.kernel_points >= 8


def test_statements_that_ran_at_no_point_are_counted():
    """Where the loop of ``columns`` has no iteration, its kernel only says where it is; no point has that."""
    assert not any("ran at none" in found.detail for found in validated(TILED))
    assert any("(1 of its statements ran at none)" in found.detail for found in validated(COLUMNS))


QUICK = {"rows that no thread runs", "a predicate missing in the columns left over", "no barrier behind a copy",
         "what four iterations leave over, twice", "registers that never come back"}  # fmt: skip


@pytest.mark.parametrize(("text", "module", "right", "wrong"), sampled({one[0]: one[1:] for one in FAULTS}, QUICK))
def test_a_fault_is_refuted(text, module, right, wrong, planted):
    planted(module, right, wrong)
    refuted = [one.detail for one in validated(text) if one.verdict is Verdict.NO]
    assert refuted
    assert all("by the kernel" in one for one in refuted)


def test_a_kernel_that_cannot_be_played_leaves_its_program_tested():
    source, programs = leaves(TILED)
    loop = While(IntConst(1), ())
    endless = replace(typed_kernel(programs[0], Analyses()), body=(loop,))
    found = validate(source, programs[0], endless, shapes=0)
    assert (found.verdict, found.points, found.kernel_points) == (Verdict.UNKNOWN, 8, 0)
    assert found.detail.startswith("tested with terms at 8 points, not proved")


def test_vectors_of_shared_memory_begin_at_their_size():
    """The offset of the memory counts, not the place in it alone."""
    source, programs = leaves(TILED.replace("a[i * B + u][t * B + k]", "a[t * B + k][i * B + u]"))
    kernel = typed_kernel(programs[0], Analyses())
    (shared,) = (one for one in kernel.memories if one.space is Space.SHARED)
    moved = replace(
        kernel,
        memories=tuple(replace(one, offset=IntConst(4)) if one is shared else one for one in kernel.memories),
        shared_bytes=binary("+", kernel.shared_bytes, IntConst(4)),
    )
    wide = any(isinstance(part, Element) and part.array == shared.name and part.part for part in parts_of(kernel.body))
    assert wide
    found = validate(source, programs[0], moved, shapes=0)
    assert found.verdict is Verdict.NO
    assert "no aligned vector" in found.detail


SUMMED = """
void total(int n, int B, const float x[n], float sum[1])
{
  meta_schedule meta_block(B) { meta_reduction(+: sum) meta_for (int i = 0; i < n; i++) sum[0] += x[i]; }
}
"""


def test_threads_of_a_warp_see_what_was_handed_in_when_they_met():
    """The 256 threads of the second program hand on their sums by shuffles, one behind the other."""
    _, second = optimize(Source("test.mf", SUMMED), strategies=(), reassociate=True).schedules
    program = second.leaves[0].own.version.program
    kernel = typed_kernel(program, Analyses())
    assert any(isinstance(part, Call) and part.name == SHUFFLE for part in parts_of(kernel.body))
    found = validate(second.program, program, kernel, shapes=0, points=1)
    assert found.verdict is not Verdict.NO
    assert found.kernel_points
