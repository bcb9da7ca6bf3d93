"""What a launch needs, as tables that the runtime evaluates: compiled and run against integers of Python."""

import subprocess

import pytest

from metafork.comprehensive.emit import runtime_include_dir
from metafork.comprehensive.emit.launch_tables import LaunchTables
from metafork.comprehensive.emit.launch_text import inputs_type
from metafork.comprehensive.emit.signature import signature_of
from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import Argument, Kernel
from metafork.ir.messages.source import Source

TEXT = """
void f(int n, unsigned m, int k, float t, float x[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n / (k + m); i++) x[i] = t; }
}
"""
INT, UNSIGNED, LONG = ScalarType.INT, ScalarType.UNSIGNED_INT, ScalarType.LONG_LONG
N, M, K = ir.Var("n", INT), ir.Var("m", UNSIGNED), ir.Var("k", INT)
ONE = ir.IntConst(1)
OVERFLOW = "overflow"


def wide(expr):
    """Return an expression in 64 bits, as kernels have it."""
    return ir.Cast(LONG, expr)


def kernel(name, extent, scalars=(), definitions=(), spans=()):
    """Return a kernel of which one extent matters."""
    arguments = tuple(Argument(*one) for one in scalars)
    grid, block = (extent, ONE, ONE), (ONE, ONE, ONE)
    return Kernel(name, arguments, (), (), grid, block, ir.IntConst(0), definitions, spans=spans)


def quotient(name, left, right):
    """Return a scalar of the host."""
    return ir.Derived(name, LONG, ir.binary("/", wide(left), wide(right)))


Q, BOTH = ir.Var("q", LONG), ir.binary("+", ir.binary("*", wide(N), wide(K)), wide(M))
N_BY_K = (quotient("q", N, K),)
POWER = wide(N)
for _ in range(16):
    POWER = ir.binary("*", POWER, wide(N))
WRAPS = wide(ir.binary("-", M, ir.Cast(UNSIGNED, K)))
LESS = ir.Conditional(ir.binary("<", N, K), wide(N), wide(K), LONG)
# A kernel, and its extent for n, m and k.
CASES = [
    (kernel("polynomial", BOTH), lambda n, m, k: n * k + m),
    (kernel("difference", ir.binary("-", BOTH, wide(N))), lambda n, m, k: n * k + m - n),
    (kernel("square", ir.binary("*", Q, Q), (), N_BY_K), lambda n, m, k: (n // k) ** 2 if k else OVERFLOW),
    (kernel("again", Q, (("q", INT),), N_BY_K), lambda n, m, k: n // k if k else OVERFLOW),
    (kernel("other", Q, (), (quotient("q", N, ir.IntConst(7)),)), lambda n, m, k: n // 7),
    (kernel("wraps", WRAPS), lambda n, m, k: m - k if m >= k else OVERFLOW),
    (kernel("chosen", LESS), lambda n, m, k: min(n, k)),
    (kernel("high", POWER), lambda n, m, k: n**17),
    (kernel("small", ONE, (("n", ScalarType.SIGNED_CHAR),)), lambda n, m, k: 1 if n < 128 else OVERFLOW),
    (kernel("beyond", ir.binary("*", BOTH, BOTH)), lambda n, m, k: (n * k + m) ** 2),
    (kernel("large", ONE, spans=(ir.binary("*", wide(N), wide(N)),)), lambda n, m, k: 1),
    (kernel("unknown", ONE, (), N_BY_K, (Q,)), lambda n, m, k: 1),
]
INT_MAX = 2**31 - 1
POINTS = [(0, 0, 0), (10, 3, 4), (127, 200, 0), (128, 5, 5), (46340, 1, 3), (46341, 2, INT_MAX)]
POINTS += [(INT_MAX, 2**32 - 1, INT_MAX), (INT_MAX, 0, 1)]
MAIN = """
int main(void) {
  const metafork_kernel *const all[] = {%s};
  const f_k0_inputs points[] = {%s};
  for (const metafork_kernel *one : all)
    for (const f_k0_inputs &point : points) {
      metafork_shape shape = METAFORK_NONE;
      int64_t arguments[2] = {-1, -1};
      const int error = metafork_prepare(one, &point, &shape, NULL, arguments);
      printf("%%d %%lld %%d %%lld\\n", error, (long long)shape.grid[0], shape.large, (long long)arguments[0]);
    }
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each kernel has at each point: the error, the extent, whether it is large, its first argument."""
    signature = signature_of(parse(Source("f.mf", TEXT)).schedules[0].program)
    tables = LaunchTables.of(signature, 1)
    rows = [line for one, _ in CASES for line in tables.kernel(one.name, one, {})]
    # Equal quotients are one number; what is a polynomial is none.
    assert sum("case" in line for line in tables.cases) == 5
    points = ", ".join(f"{{{n}, {m}, {k}, 0.5f}}" for n, m, k in POINTS)
    main = MAIN % (", ".join(f"&{one.name}" for one, _ in CASES), points)
    text = ['#include "metafork/dispatch.h"', *inputs_type(signature), *tables.lines(), *rows, main]
    folder = tmp_path_factory.mktemp("tables")
    (folder / "a.cpp").write_text("\n".join(text))
    flags = ["-std=c++17", "-DMETAFORK_CPU", "-w", f"-I{runtime_include_dir()}"]
    subprocess.run(["g++", *flags, "a.cpp", "-o", "a"], cwd=folder, check=True)
    said = subprocess.run([folder / "a"], check=True, capture_output=True, text=True).stdout.splitlines()
    numbers = iter([tuple(map(int, line.split())) for line in said])
    return {one.name: [next(numbers) for _ in POINTS] for one, _ in CASES}


@pytest.mark.parametrize("case", CASES, ids=[one.name for one, _ in CASES])
def test_extents_are_exact_or_refused(found, case):
    one, expected = case
    for point, (error, extent, _, _) in zip(POINTS, found[one.name], strict=True):
        wanted = expected(*point)
        if wanted == OVERFLOW or wanted >= 2**63:
            assert error != 0, point
        else:
            assert (error, extent) == (0, wanted), point


def test_arguments_and_spans(found):
    assert [row[3] for row in found["again"][1:2]] == [2]
    assert [row[2] for row in found["large"]] == [int(n * n >= 2**31) for n, _, _ in POINTS]
    assert [row[2] for row in found["unknown"]] == [int(k == 0 or n // k >= 2**31) for n, _, k in POINTS]
