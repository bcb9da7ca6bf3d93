import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.exactness import irredundant, with_exactness
from metafork.frontend import parse
from metafork.ir.messages.source import Source

B, N, dim = (Polynomial.symbol(name) for name in ("B", "N", "dim"))
GREATEST = 2**32 - 1


def conditions(body):
    text = f"""
    void f(int N, int B, int b[N]) {{
      int dim = N / B;
      meta_schedule {{
        meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < B; j++) {{ {body} }}
      }}
    }}"""
    return with_exactness(parse(Source("test.mf", text)).schedules[0].program).exactness


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i * B + j] = 1;", ()),
        ("b[(unsigned)(i * B + j)] = 1;", ()),  # at most an int
        ("unsigned p = i * B + j; b[3u * p] = 1;", (at_most(3 * B * dim - 3, GREATEST),)),
        ("b[3u * (unsigned)(i * B + j)] = 1;", (at_most(3 * B * dim - 3, GREATEST),)),
        # The greater index implies the other.
        ("unsigned p = i * B + j; b[3u * p] = b[5u * p];", (at_most(5 * B * dim - 5, GREATEST),)),
        ("unsigned p = i * B + j; b[5u * p] = b[3u * p];", (at_most(5 * B * dim - 5, GREATEST),)),
        ("unsigned p = i * B + j, q = 3u * p, r = 5u * q; b[r] = 1;", (at_most(15 * B * dim - 15, GREATEST),)),
    ],
)
def test_where_unsigned_indices_are_what_their_polynomials_say(body, expected):
    found = conditions(body)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert irredundant((one, other), (), ()) in ([one], [other])
        assert irredundant((one,), (other,), ()) == irredundant((other,), (one,), ()) == []


def test_what_others_imply_goes():
    five, three = at_most(B, 5), at_most(B, 3)
    assert irredundant((five, three), (), ()) == irredundant((three, five), (), ()) == [three]
    assert irredundant((five, three, five), (at_most(B, 2),), ()) == []
    assert irredundant((three, at_most(N, 7)), (five,), ()) == [three, at_most(N, 7)]
    quotient = DerivedSymbol("dim", "floor", (N, Polynomial.constant(2)))
    assert irredundant((at_most(dim, 4), at_most(N, 8)), (), (quotient,)) == [at_most(N, 8)]
