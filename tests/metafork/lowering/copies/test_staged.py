"""Windows that are copied a step ahead: loops of many shapes, run with copies as late and as early as they may be."""

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.analysis.memory.block_memory import block_memory
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.invariants import InvariantError, check_kernel
from metafork.ir.mapping import Layout
from metafork.ir.program import Assign, Barrier, Declare, Element, For, If, Var, walk_statements
from metafork.lowering.lowering import lower
from metafork.printing import opencl
from tests.metafork.host_run import run_on_host
from tests.metafork.host_scalars import with_host_scalars
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.lowering.copies.staged_programs import BESIDE_ANOTHER, EARLY, HEADS, LATE, product, staged
from tests.metafork.programs import program

TWICE = """
void twice(int n, int m, int K, int B, const float a[m], const float b[n][m], float c[n])
{
  int blocks = n / B;
  meta_schedule cache(a, b) {
    meta_for (int v = 0; v < blocks; v++)
      for (int r = 0; r < 2; r++) {
        for (int t = 0; t < m / K; t++)
          meta_for (int x = 0; x < B; x++)
            for (int z = 0; z < K; z++)
              c[v * B + x] += a[t * K + z] * b[v * B + x][t * K + z];
        for (int q = 0; q < m / K - r; q++)
          meta_for (int x = 0; x < B; x++)
            for (int z = 0; z < K; z++)
              c[v * B + x] -= r * a[q * K + z];
      }
  }
}"""


# No step, one, an odd number of them; tiles that end past the data.
SHAPES = grid(n=[1, 5], m=[2, 3, 10], K=[3], B=[2]) + grid(n=[4], m=[12], K=[1, 4, 13], B=[4])
TEXTS = [(product(kind), SHAPES) for kind in HEADS]
TEXTS += [
    (product("counted", "double"), SHAPES),
    (TWICE, grid(n=[6], m=[1, 9], K=[2, 3], B=[1, 3])),
    (BESIDE_ANOTHER, grid(n=[30], B=[1, 4], s=[1, 2, 7])),
]

INT = ScalarType.INT
TURNED = Layout("row", 5)


def ahead(one):
    return {held.window.array.name for path in block_memory(one).paths for held in path.windows if held.stages > 1}


@pytest.mark.parametrize("grid_limit", [0, 1])
@pytest.mark.sampled(1)
def test_every_step_reads_its_own_window(tmp_path, grid_limit):
    cases = [Case(text, points, program=staged(text)) for text, points in TEXTS]
    cases += [replace(cases[0], label="turned", program=cases[0].program.mapped(layouts=(("a", TURNED),)))]
    cases += [replace(cases[0], label="striding", program=replace(cases[0].program, striding=32))]
    assert {frozenset(ahead(case.program)) for case in cases} == {frozenset("ab"), frozenset("a")}
    assert run(cases, tmp_path, grid_limit, environments=(LATE, EARLY)) == {}


def barriers(one):
    return sum(isinstance(stmt, Barrier) for stmt in walk_statements(lower(one, "k").body))


def test_a_step_has_one_barrier():
    """Beside the last one, which the next block waits for; windows that are copied in time have theirs."""
    assert (barriers(staged(product("counted"))), barriers(program(product("counted")))) == (2, 3)
    assert (barriers(staged(BESIDE_ANOTHER)), barriers(program(BESIDE_ANOTHER))) == (5, 5)


def everywhere(change):
    """Return a kernel with each statement replaced by what ``change`` makes of it: a list."""

    def body(stmts):
        return tuple(new for stmt in stmts for new in change(inside(stmt)))

    def inside(stmt):
        match stmt:
            case If(then=then, otherwise=otherwise):
                return replace(stmt, then=body(then), otherwise=body(otherwise))
            case For(body=inner):
                return replace(stmt, body=body(inner))
            case _:
                return stmt

    return lambda kernel: replace(kernel, body=body(kernel.body))


def without_wait(stmt):
    return [replace(stmt, awaits=False) if isinstance(stmt, Barrier) else stmt]


def without_barrier(stmt):
    return [] if isinstance(stmt, Barrier) and stmt.awaits else [stmt]


def into_the_same_buffer(stmt):
    if isinstance(stmt, Declare) and stmt.name.endswith("_next"):
        return [replace(stmt, value=replace(stmt.value, left=stmt.value.left.right))]
    return [stmt]


def never_turned(stmt):
    return [] if isinstance(stmt, Assign) and stmt.target == Var("buffer", INT) else [stmt]


def copied_before_the_barrier(stmt):
    match stmt:
        case For(body=(Barrier(awaits=True) as barrier, If() as copies, *rest)):
            return [replace(stmt, body=(copies, barrier, *rest))]
        case _:
            return [stmt]


def of_the_same_step(stmt):
    """Leave the first copy away, and the condition of the others: each step copies its own window."""
    if isinstance(stmt, If) and any(isinstance(one, Assign) and one.asynchronous for one in walk_statements(stmt.then)):
        return [] if not any(isinstance(one, Declare) and one.name.endswith("_next") for one in stmt.then) else [stmt]
    return [stmt]


FAULTS = {
    without_wait, without_barrier, into_the_same_buffer, never_turned, copied_before_the_barrier, of_the_same_step
}  # fmt: skip


@pytest.mark.slow
def test_what_is_left_out_shows(tmp_path):
    text = product("whole_tiles")
    point = {"n": 4, "m": 12, "K": 4, "B": 4}
    cases = [
        Case(text, [point], program=staged(text), changed=everywhere(change), label=change.__name__)
        for change in (*FAULTS, lambda stmt: [stmt])
    ]
    wrong = run(cases, tmp_path, environments=(LATE, EARLY))
    assert {name.split()[0] for name in wrong} == {fault.__name__ for fault in FAULTS}


@pytest.mark.parametrize("fault", [without_wait, without_barrier])
def test_the_invariants_ask_for_the_wait(fault):
    kernel = lower(staged(product("counted")), "k")
    check_kernel(kernel)
    with pytest.raises(InvariantError, match="awaits"):
        check_kernel(everywhere(fault)(kernel))


def test_the_invariants_say_what_can_be_copied():
    kernel = lower(staged(product("counted")), "k")

    def changed(**fields):
        return everywhere(lambda stmt: [replace(stmt, **fields)] if getattr(stmt, "asynchronous", False) else [stmt])

    for fields in ({"op": "+"}, {"value": Var("n", INT)}, {"atomic": True}):
        with pytest.raises(InvariantError):
            check_kernel(changed(**fields)(kernel))
    elsewhere = everywhere(
        lambda stmt: (
            [replace(stmt, asynchronous=isinstance(stmt, Assign) and isinstance(stmt.target, Element))]
            if isinstance(stmt, Assign)
            else [stmt]
        )
    )
    with pytest.raises(InvariantError, match="asynchronous"):
        check_kernel(elsewhere(lower(program(product("counted")), "k")))


def test_other_code_copies_at_once():
    """LLVM's and OpenCL's copies into the same buffers take effect where they stand."""
    kernel = lower(staged(product("counted")), "k")
    n, m = 5, 10
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((n, m), (m, n), (n, n)))
    want = c + a @ b
    values = {"n": n, "m": m, "K": 3, "B": 2, "a": a, "b": b, "c": c}
    values = with_host_scalars(kernel, values)
    words = integer_value(kernel.shared_bytes, values)
    run_on_host(kernel, values, grid=(3, 3, 1), block=(2, 2, 1), shared_bytes=words)
    assert np.array_equal(c, want)
    text = opencl.kernel_text(kernel).text
    assert "metafork_copy" not in text
    assert "metafork_await" not in text
