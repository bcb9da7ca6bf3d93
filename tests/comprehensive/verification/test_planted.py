"""Bugs planted in the compiler or in what it emits: ``verify`` notices each, on a program where it matters.

Those of the emitted text are planted in one file, a function for each bug, which is built once; every edit must change
the text, so that none is lost when the text does.  Those of the compiler are planted while a program is optimized.
"""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.optimize import Result, optimize
from metafork.comprehensive.verification import Options, verify
from metafork.evaluators.counter import CounterValue
from metafork.evaluators.shared_memory import SharedMemory
from metafork.ir.messages.source import Source
from metafork.ir.program import Assign, Element, walk_statements

OPTIONS = Options(points=12, jobs=2, optimization="-O0", dataflow_seconds=0)
COUNTERS = ("threads_per_block", "shared_memory")
STRATEGIES = ("granularity", "caching")

STENCIL = """
void NAME(int n, int s, int B, const int a[n], int b[n]) {
  int d = (n - 2) / (s * B);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + u;
          b[p] = a[p] + 3 * a[p + 2];
        }
  }
}
"""
TILED = """
void NAME(int n, int B, const int a[n][n], const int x[n], int y[n]) {
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
PHASED = """
void NAME(int n, int B, const int a[n], int b[n]) {
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++) {
      int tile[B];
      meta_for (int u = 0; u < B; u++)
        tile[u] = a[i * B + u];
      meta_for (int u = 0; u < B; u++)
        b[i * B + u] = tile[B - 1 - u];
    }
  }
}
"""
STRIDED = """
void NAME(int n, int B, const int a[3 * n], int b[n]) {
  int d = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        b[p] = a[3 * p + 1];
      }
  }
}
"""
PLANE = """
void NAME(int n, int m, int B, int C, const int a[n][m], int b[n][m]) {
  int d = (n + B - 1) / B, e = (m + C - 1) / C;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int j = 0; j < e; j++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < C; v++) {
            int p = i * B + u;
            int q = j * C + v;
            if (p < n && q < m)
              b[p][q] += 2 * a[p][q];
          }
  }
}
"""
INNER = """
void NAME(int n, int s, int B, const int a[n], int b[n]) {
  int d = n / (s * B);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < s; k++) {
          int p = (i * B + u) * s + k;
          b[p] = a[p] + i * 3;
        }
  }
}
"""
SHIFTED = """
void NAME(int n, int B, const int a[n + 3], int b[n]) {
  int d = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        b[p] = a[p + 3];
      }
  }
}
"""


WALKED = """
void NAME(int n, int K, int B, const int a[n][n], int b[n]) {
  assert(K <= n);
  int d = n / B, e = n / K;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d; i++)
      for (int t = 0; t < e; t++)
        meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < K; z++)
            b[i * B + u] += a[i * B + u][t * K + z];
  }
}
"""


@dataclass(frozen=True)
class Bug:
    """An edit of the text of one schedule, which names a kernel ``KERNEL`` (leaf 1 unless said otherwise)."""

    name: str
    program: str
    edit: Callable[[str], str]
    leaf: int = 1


def without_barrier(number: int) -> Callable[[str], str]:
    """Drop the n-th barrier of the kernel (-1: the last)."""

    def edit(kernel):
        places = [found.span() for found in re.finditer(r"__syncthreads\(\);", kernel)]
        start, end = places[number]
        return kernel[:start] + kernel[end:]

    return edit


def substituted(pattern: str, by: str, count: int = 0) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, by, text, count=count)


BUGS = [
    Bug("an array's offset that advances too far", STENCIL, substituted(r"(shared_a_offset \+= )", r"\g<1>1 + ")),
    Bug("a tile's place that stays", STENCIL, substituted(r"\n *shared_a_place \+= [^;]*;", "")),
    Bug("a row that is not left at its end", WALKED, substituted(r"(shared_a_offset \+= )n - ", r"\1n + ")),
    Bug("no barrier after the load", STENCIL, without_barrier(0)),
    Bug("no barrier before the store", INNER.replace("cache(a)", "cache(b)"), without_barrier(0)),
    Bug("no barrier at the end of a block", STENCIL.replace("cache(a, b)", "cache(a)"), without_barrier(-1)),
    Bug("no barrier between phases", PHASED, without_barrier(0)),
    Bug("no barrier at the end of a tile", TILED, without_barrier(1)),
    Bug("a window one too small", STENCIL, substituted(r"(shared_a_0 < B \* s) \+ 2", r"\1 + 1")),
    Bug("a window's stride ignored", STRIDED, substituted(r"METAFORK_OFFSET\(3\) \* shared_a_0", "shared_a_0")),
    Bug("a wrong row length", PLANE, substituted(r"u \* C \+ v", "u * B + v")),
    Bug("an offset of the wrong sign", SHIFTED, substituted(r"\+ METAFORK_OFFSET\(3\)", "- METAFORK_OFFSET(3)")),
    Bug("no store-back", STENCIL, substituted(r"\n *b\[[^;]*;", "")),
    Bug("a store-back without the writes' guards", PLANE, substituted(r"if \(B \* i \+ shared_b[^{]*", "if (true) ")),
    Bug("a digit without modulo", INNER, substituted(r"ik % s", "ik"), 2),
    Bug("load bounds not checked", PLANE, substituted(r"if \(shared_a_0_at[^{]*", "if (true) ")),
    Bug("the last block left out", INNER, substituted(r"block_x < ", "block_x + 1 < ")),
    Bug("a walk of blocks that skips one", INNER, substituted(r"gridDim\.x\)", "gridDim.x + 1)")),
    Bug("a written window not loaded", PLANE, substituted(r"\n *shared_b\[[^;]*\] = [^;]*;", "")),
    Bug("quotient and remainder swapped", INNER, substituted(r"ik / s([^%]*)ik % s", r"ik % s\1ik / s"), 2),
    Bug(
        "no shared memory",
        STENCIL,
        substituted(r"(_extents\[\] =\s*\{(?:\{[^}]*\},\s*){6})\{[^}]*\}", r"\1{NULL, 0}", 1),
        0,
    ),
    Bug("< for <= in C", STENCIL, substituted(r"METAFORK_AT_MOST(.{,60}2\*s\*B \+ 2 <= Z)", r"METAFORK_LESS\1", 1), 0),
    Bug(
        "kernel arguments swapped",
        STENCIL,
        substituted(r"(_arguments\[\] =\s*\{)(\{[^}]*\}), (\{[^}]*\})", r"\1\3, \2", 1),
        0,
    ),
]
"""``leaf`` is 0 where the edit is one of the launch or of ``select``, not of a kernel."""


def file_of(programs: list[str]) -> Source:
    return Source("planted.mf", "".join(text.replace("NAME", f"f{number}") for number, text in enumerate(programs)))


def planted(text: str, number: int, bug: Bug) -> str:
    """Return the text of a ``.cu`` file with a bug in schedule ``number``."""
    name = f"planted_k{number}"
    part = rf"/\* -+ {name}: line.*?(?=/\* -+ planted_k|\Z)" if bug.leaf == 0 else (
        rf"METAFORK_KERNEL\(__global__ void, {name}_leaf{bug.leaf},.*?\n\}}\n"
    )  # fmt: skip
    found = re.search(part, text, re.DOTALL)
    assert found, bug.name
    return text[: found.start()] + bug.edit(found[0]) + text[found.end() :]


@pytest.fixture(scope="module")
def with_bugs():
    """The verification of a file with every bug of the text, and the texts before and after each edit."""
    changed = {}

    def rendered(result, **options):
        files = rendered_files(result, **options)
        told = "METAFORK_ENTERS" in files["planted.cu"]
        for number, bug in enumerate(BUGS):
            before = files["planted.cu"]
            files["planted.cu"] = planted(before, number, bug)
            if not told:  # the texts that tell their accesses are spelled differently; barriers are the same
                changed[bug.name] = before != files["planted.cu"]
        return files

    result = optimize(file_of([bug.program for bug in BUGS]), counters=COUNTERS, strategies=STRATEGIES, order="paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metafork.comprehensive.verification.builds.rendered_files", rendered)
        found = verify(result, options=OPTIONS)
    return found, changed


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
@pytest.mark.slow
def test_a_bug_of_the_emitted_text_is_noticed(with_bugs, bug):
    found, changed = with_bugs
    assert changed[bug.name]
    name = f"planted_k{BUGS.index(bug)}"
    failing = [failure for failure in found.failures if failure.schedule == name]
    assert failing
    if bug.leaf:
        # A store outside of arrays that is noticed may crash the driver later, while another leaf runs.
        told = [failure for failure in failing if "ended with status" not in failure.message] or failing
        assert {failure.leaf for failure in told} == {bug.leaf}
    if "barrier" in bug.name:
        assert {failure.check for failure in failing} & {"races", "code"}


@pytest.mark.slow
def test_without_bugs_the_programs_pass():
    programs = list(dict.fromkeys(bug.program for bug in BUGS))
    found = verify(
        optimize(file_of(programs), counters=COUNTERS, strategies=STRATEGIES, order="paper"), options=OPTIONS
    )
    assert [failure.text() for failure in found.failures] == []
    assert all(row.points == OPTIONS.points for row in found.rows)


def noticed(text: str, strategies=STRATEGIES, counters=COUNTERS) -> set[str]:
    found = verify(text, counters=counters, strategies=strategies, order="paper", options=OPTIONS)
    return {failure.check for failure in found.failures}


CARRIED = """
void carried(int n, int s, int B, int a[n]) {
  int d = n / (s * B);
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < s; k++) {
          int p = (i * B + u) * s + k;
          if (k > 0)
            a[p] = a[p - 1] + 2 * a[p];
        }
  }
}
"""


@pytest.mark.slow
def test_granularity_without_proof(monkeypatch):
    def independent(*_):
        return True

    monkeypatch.setattr("metafork.transform.to_grid.iterations_independent", independent)
    assert noticed(CARRIED, ("granularity",), ("registers_per_thread", *COUNTERS)) & {"code", "races"}


CHANGED = """
void changed(int n, int B, const int a[n], int b[n]) {
  int d = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        int h = a[p];
        b[p] = h * 3 + u;
        h = h + 2;
        b[p] += h * 3 + u;
      }
  }
}
"""


@pytest.mark.slow
def test_cse_without_kills(monkeypatch):
    monkeypatch.setattr("metafork.transform.cse.defined_by", lambda stmt: None)
    assert "code" in noticed(CHANGED, ("cse1",))


TWO_PLACES = """
void places(int n, int m, int B, const int a[n], int b[2 * n]) {
  int d = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        for (int k = 0; k < m; k++) {
          b[2 * p] += a[p] + k;
          b[2 * p + 1] += 5;
        }
      }
  }
}
"""


@pytest.mark.slow
def test_scalar_replacement_of_two_places(monkeypatch):
    def first_place(body, array, _inside):
        targets = (stmt.target for stmt in walk_statements(body) if isinstance(stmt, Assign))
        return next(target for target in targets if isinstance(target, Element) and target.array == array)

    monkeypatch.setattr("metafork.transform.promote._one_place", first_place)
    assert "code" in noticed(TWO_PLACES, ("scalar_replacement",))


@pytest.mark.slow
def test_the_strategies_without_bugs_pass():
    assert noticed(CARRIED + CHANGED + TWO_PLACES, ("granularity", "cse1", "scalar_replacement")) == set()


@pytest.mark.slow
def test_a_counter_two_words_small(monkeypatch):
    right = SharedMemory.evaluate

    def small(self, version, analyses):
        value = right(self, version, analyses)
        return replace(value, numerator=value.numerator - 2) if isinstance(value, CounterValue) else value

    monkeypatch.setattr(SharedMemory, "evaluate", small)
    assert "resources" in noticed(STENCIL.replace("NAME", "small"))


def test_a_refuse_branch_that_keeps_the_accepted_condition(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.verification.engine._Run._drivable", lambda self: [])  # nothing is run
    result = optimize(STENCIL.replace("NAME", "kept"), counters=COUNTERS, strategies=STRATEGIES, order="paper")
    (tree,) = result.schedules
    first, second, *others = tree.leaves
    accepted = first.systems[0][-1]
    assert accepted.negated() in second.systems[0]
    kept = tuple(accepted if condition == accepted.negated() else condition for condition in second.systems[0])
    tree = dataclasses.replace(tree, leaves=(first, replace(second, systems=(kept, *second.systems[1:])), *others))
    found = verify(Result(result.unit, (tree,), result.counters, result.strategies), options=OPTIONS)
    assert any(failure.check == "guards" and "disjoint" in failure.message for failure in found.failures)
