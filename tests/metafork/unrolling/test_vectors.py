"""Which elements are moved by one access, and which scalars have to be multiples for that."""

import pytest

from metafork.algebra.polynomial import ZERO, Polynomial
from metafork.unrolling.vectors import THREAD, with_vectors
from tests.metafork.lowering.kernel_reader import read_kernel

FOUR_INTS = "".join(f"d[y * m + (4 * x + {one})] = {one};" for one in range(4))
TWO_DOUBLES = "".join(f"g[y * n * m + (2 * x + {one})] = {one};" for one in range(2))
FOUR_DOUBLES = "".join(f"g[y * n * m + (4 * x + {one})] = {one};" for one in range(4))


@pytest.mark.parametrize(
    ("body", "divided"),
    [
        (FOUR_INTS, {"m": 4}),
        (TWO_DOUBLES, {"n": 2}),
        # Multiples of 4 are multiples of 2, ...
        (FOUR_INTS + TWO_DOUBLES, {"m": 4}),
        # ... but not the other way round.
        (TWO_DOUBLES + FOUR_INTS, {"n": 2, "m": 4}),
        (FOUR_DOUBLES, {"n": 2}),
        (FOUR_INTS.replace("+ 1)", "+ 5)"), {"m": 2}),
    ],
)
def test_no_more_scalars_have_to_be_multiples_than_need_be(body, divided):
    kernel = read_kernel(f"void k(int n, int m, int x, int y, int *d, double *g) {{ {body} }}")
    known = {name: Polynomial.symbol(name) for name in ("x", "y")}
    found = with_vectors(kernel.body, known, ["n", "m"], dict.fromkeys("dg", ZERO), 1, set())
    assert found.divided == divided


@pytest.mark.parametrize(
    ("read", "pays"),
    [
        ("p[y]", True),
        ("d[y * m + (4 * x + {0})]", True),
        ("p[y] > 2 ? d[y * m + (4 * x + {0})] : 0", False),  # one by one, and four times as far apart
        ("d[p[4 * x + {0}]]", False),
    ],
)
def test_four_columns_of_a_thread_pay_where_each_warp_touches_no_more_sectors(read, pays):
    body = "".join(f"int t{one} = {read.format(one)};" for one in range(4))
    body += "".join(f"g[y * m + (4 * x + {one})] = t{one};" for one in range(4))
    kernel = read_kernel(f"void k(int n, int m, int x, int y, int *d, int *g, const int *p) {{ {body} }}")
    known = {"x": Polynomial.symbol(f"{THREAD} x"), "y": Polynomial.symbol("y")}
    found = with_vectors(kernel.body, known, ["n", "m"], dict.fromkeys("dgp", ZERO), 4, set())
    assert (found.pays, found.divided) == (pays, {"m": 4})
