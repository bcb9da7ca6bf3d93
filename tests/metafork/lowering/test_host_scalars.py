"""What arguments alone make is computed on the host, where it is proved to have a value; kernels compute the same."""

import pytest

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.program import Var
from metafork.lowering.host_scalars import with_host_scalars as hosted
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.host_scalars import with_host_scalars
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.lowering.kernel_reader import read_kernel
from tests.metafork.programs import program

N, B = Polynomial.symbol("n"), Polynomial.symbol("B")

SUMS = """
void sums(int n, int B, int K, const int x[n], int y[n])
{
  assert(1 <= K);
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {
        int s = 0;
        for (int k = 0; k < (n + K - 1) / K; k++)
          for (int z = 0; z < K; z++)
            if (k * K + z < n)
              s += x[k * K + z] * (n / K) + n / (2 * K);
        y[i * B + u] = s;
      }
  }
}"""


def quotients(text):
    kernel = lower(program(text), "k")
    own = [one for one in kernel.host_scalars if "_div_" in one.name]
    return kernel, {one.name for one in own}


def test_quotients_of_arguments(tmp_path):
    kernel, names = quotients(SUMS)
    text = kernel_text(kernel)
    assert " / " not in text
    assert names == {"n_div_K", "n_div_K_2", "n_div_K_3"}
    assert names <= {one.name for one in kernel.scalars}
    values = with_host_scalars(kernel, {"n": 29, "B": 4, "K": 7})
    assert sorted(values[name] for name in names) == [2, 4, 5]
    points = grid(n=[0, 1, 8, 29, 30], B=[1, 4], K=[1, 3, 7, 31])
    assert run([Case(SUMS, points)], tmp_path) == {}


LEFT = {
    "a scalar of the thread": "s += n / (K + u);",
    "an element": "s += n / (x[0] + 1);",
    "a wider type": "s += (long)n / K;",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_changes_or_is_no_int_is_computed_where_it_stands(name):
    text = SUMS.replace("int K,", "int K, int m,").replace("y[i * B + u] = s;", LEFT[name] + " y[i * B + u] = s;")
    assert " / " in kernel_text(quotients(text)[0])


@pytest.mark.parametrize(
    ("known", "made"),
    [
        ((), []),
        ((at_most(ONE, B),), []),
        ((at_most(B, N),), []),
        ((at_most(ZERO, B), at_most(B, N)), []),
        ((at_most(ONE, B), at_most(B, N)), ["n_div_B"]),
    ],
)
def test_the_host_divides_only_what_is_proved_to_have_a_quotient(known, made):
    kernel = read_kernel("void k(int n, int B, int *y) { y[0] = (n - B) / B; }")
    arguments = {one.name: Var(one.name, one.type) for one in kernel.scalars}
    scope = Scope.of(Facts({"n": N, "B": B}, (), known, frozenset()))
    body, found = hosted(kernel.body, arguments, scope, Prover(known), {"n", "B", "y"})
    assert [one.name for one in found] == made
    assert (body == kernel.body) is (not made)


def test_a_name_of_the_thread_hides_an_argument():
    hidden = SUMS.replace("int s = 0;", "int s = 0; int m = n / 2 + 1;").replace("(n / K)", "(m / K)")
    kernel, _ = quotients(hidden)
    assert "m / K" in kernel_text(kernel)


def test_constant_divisors_are_left_to_the_compiler():
    text = SUMS.replace("n / (2 * K)", "n / 4")
    assert "n / 4" in kernel_text(quotients(text)[0])


BELOW = "int b = n - 1; b |= b >> 1; b |= b >> 2; b |= b >> 4;"
MADE = {
    "in steps": f"{BELOW} y[b] = 0;",
    "in steps, from a scalar": f"int m = n - 1; {BELOW.replace('n - 1', 'm')} y[b] = m;",
    "then more": f"{BELOW} int h = b ^ (b >> 1); if (h >= 16 && (h & (h - 1)) == 0) y[0] = h;",
    "a test": "if (n >= 16 && (n & (n - 1)) == 0) y[0] = 1;",
    "in an inner scope": f"for (int k = 0; k < n; k++) {{ {BELOW} y[k] = b; }}",
}
NOT_MADE = {
    "in a branch": "int b = n; if (y[0] > 0) b |= b >> 1; y[b] = 0;",
    "in a loop": "int b = n; for (int k = 0; k < 3; k++) b |= b >> 1; y[b] = 0;",
    "of an element": "int b = n; b |= y[0] >> 1; y[b] = 0;",
    "counted": "int b = n; b += 1; b |= b >> 1; y[b] = 0;",
    "what may be negative": "y[0] = ((m - n) >> 1 >> 2) & 3;",
    "what may be too much": "y[0] = ((n + 1) & 7) >> 1;",
    "little": "y[0] = (n >> 1) & 3;",
    "another one of that name": "if (m > n) { int p = n; y[p] = 0; } int p = y[0]; y[1] = ((p & 3) >> 1) & 1;",
}


def made_by_the_host(text):
    known = (at_most(ONE, N),)
    kernel = read_kernel(f"void k(int n, int m, int *y) {{ {text} }}")
    arguments = {one.name: Var(one.name, one.type) for one in kernel.scalars}
    scope = Scope.of(Facts({"n": N}, (), known, frozenset()))
    body, found = hosted(kernel.body, arguments, scope, Prover(known), {"n", "m", "y", "b"})
    return kernel.body, body, {one.name: one.definition for one in found}


@pytest.mark.parametrize("name", MADE)
def test_the_host_computes_bits_and_tests(name):
    """What it makes of 77: 64 bits below, and that 77 is no power of two."""
    _, body, found = made_by_the_host(MADE[name])
    values = {"n": 77}
    for one, definition in found.items():
        values[one] = integer_value(definition, values)
    read = {part.name for part in ir.parts_of(body) if isinstance(part, Var)} & found.keys()
    assert sorted(values[one] for one in read) == ([0] if name == "a test" else [1, 127] if len(read) > 1 else [127])


@pytest.mark.parametrize("name", NOT_MADE)
def test_the_host_computes_nothing_that_is_another_thing_or_may_have_no_value(name):
    before, after, found = made_by_the_host(NOT_MADE[name])
    assert before == after
    assert not found
