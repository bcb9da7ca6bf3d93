import pytest
from msgspec.structs import replace

from metafork.analysis.memory.block_memory import block_memory
from metafork.frontend import parse
from metafork.ir.kernel import Space
from metafork.ir.messages.source import Source
from metafork.ir.program import Assign, Barrier, Element, For, walk_statements
from metafork.lowering.lowering import CannotLowerError, lower
from tests.metafork.awkward import AWKWARD
from tests.metafork.kernel_runs import Case, build, run, wrong
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE, program
from tests.sampling import sampled

PAPERS = [
    Case(
        MATMUL, [{"n": n, "B0": 2, "ub1": u, "s": s} for n in (4, 9, 13) for u, s in ((2, 1), (1, 2), (3, 1), (2, 2))]
    ),
    Case(TRANSPOSE, [{"N": n, "s": s, "B0": b, "B1": 2} for n in (4, 8, 13) for s in (1, 2) for b in (1, 3)]),
    Case(MATADD, [{"N": n, "B0": b, "B1": c} for n in (6, 8, 13) for b in (1, 3, 4) for c in (1, 2, 3)]),
]


def without_caching(case):
    return replace(case, cached=(), label=f"{case.function.name} uncached", _parsed=[])


def one_array_cached(case):
    """Each array cached alone, where that can be done: mixtures of shared and global memory."""
    original = case.unit.schedules[0].program
    for array in original.arrays:
        alone = original.mapped(cached=(array.name,))
        if not block_memory(alone).left_out:
            yield replace(case, cached=(array.name,), label=f"{case.function.name} {array.name}", _parsed=[])


CASES = [*PAPERS, *AWKWARD]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    build(CASES, folder)
    return folder


def test_every_kernel_computes_what_the_program_means(built):
    assert wrong(CASES, built) == {}


def test_a_grid_smaller_than_the_nest_is_walked(built):
    assert wrong(CASES, built, grid_limit=1) == {}


MIXTURES = [*map(without_caching, AWKWARD), *(alone for case in AWKWARD for alone in one_array_cached(case))]


@pytest.mark.parametrize("first", sampled(range(4), 1))
@pytest.mark.slow
def test_mixtures_of_shared_and_global_memory_compute_what_the_program_means(tmp_path, first):
    assert run(MIXTURES[first::4], tmp_path) == {}


def test_a_wrong_kernel_is_noticed(tmp_path):
    text = MATADD.replace("matadd", "wrong_sum")
    other = parse(Source("case.mf", text.replace("a[i][j] + b[i][j];", "a[i][j] + b[i][0];"))).schedules[0].program
    found = run([Case(text, [{"N": 8, "B0": 2, "B1": 2}], program=other)], tmp_path)
    assert len(found) == 1
    assert "c differs at element" in next(iter(found.values()))


def test_a_missing_barrier_is_noticed(tmp_path):
    """The reference is the text; the kernel's program has both phases in one, so that no barrier stands between."""
    text = """
void {name}(int N, int B, const int a[N], int b[N]) {{
  int dim = N / B;
  meta_schedule {{
    meta_for (int i = 0; i < dim; i++) {{
      int row[B];
      meta_for (int j = 0; j < B; j++) {{
        row[j] = a[i * B + j];
      {between}
        b[i * B + j] = row[B - 1 - j];
      }}
    }}
  }}
}}"""
    apart = text.format(name="apart", between="} meta_for (int j = 0; j < B; j++) {")
    merged = parse(Source("case.mf", text.format(name="apart", between=""))).schedules[0].program
    assert len(run([Case(apart, [{"N": 8, "B": 4}], program=merged)], tmp_path)) == 1


def barriers(kernel):
    return sum(isinstance(stmt, Barrier) for stmt in walk_statements(kernel.body))


def test_a_kernel_without_shared_memory_has_no_barrier():
    assert barriers(lower(program(MATADD).mapped(cached=()), "k")) == 0


def test_global_memories_that_are_never_written_are_read_only():
    kernel = lower(program(MATMUL), "k")
    assert {m.name: m.read_only for m in kernel.memories if m.space is Space.GLOBAL} == {
        "a": True,
        "b": True,
        "c": False,
    }


def test_elements_of_a_kernel_have_one_index_and_name_its_memories():
    kernel = lower(program(JACOBI), "k")
    for stmt in walk_statements(kernel.body):
        if isinstance(stmt, Assign) and isinstance(stmt.target, Element):
            assert len(stmt.target.indices) == 1
            assert kernel.memory(stmt.target.array)


def test_every_grid_dimension_is_walked_with_a_stride():
    kernel = lower(program(MATMUL), "k")
    outer = kernel.body[0]
    assert isinstance(outer, For)
    assert isinstance(outer.body[-1], For)
    assert [stmt.step.value.name for stmt in (outer, outer.body[-1])] == ["gridDim.y", "gridDim.x"]


def test_a_block_array_of_unknown_size_has_no_kernel():
    text = """
void f(int N, int B, const int size[4], int b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      int row[B > 2 ? B : 2];
      meta_for (int j = 0; j < B; j++)
        row[j] = i;
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = row[B - 1 - j];
    }
  }
}"""
    with pytest.raises(CannotLowerError, match="row"):
        lower(program(text), "k")


ONE_TRIP = """
void one_trip(int N, int B, const int a[N][N], int c[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < N; k++)
        meta_for (int u = 0; u < B; u++)
          for (int w = 0; w < 1; w++)
            c[i * B + B * w + u] += a[i * B + B * w + u][k];
  }
}"""


def test_one_element_of_a_thread_under_a_loop_that_runs_once(tmp_path):
    assert run([Case(ONE_TRIP, [{"N": n, "B": b} for n in (5, 12) for b in (1, 4)])], tmp_path) == {}
