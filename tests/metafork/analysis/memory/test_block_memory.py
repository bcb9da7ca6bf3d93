import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.memory.block_memory import words_of
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType

N = Polynomial.symbol("N")


@pytest.mark.parametrize(
    ("element", "size"),
    [
        (ScalarType.CHAR, 1),
        (ScalarType.SHORT, 2),
        (ScalarType.INT, 4),
        (ScalarType.FLOAT, 4),
        (ScalarType.LONG, 8),
        (ScalarType.DOUBLE, 8),
    ],
)
def test_words_are_bytes_in_fours_rounded_up(element, size):
    scope = Scope({"N": N}, ("N",))
    words = words_of(scope, N, element)
    for number in range(1, 10):
        point = {"N": number}
        point |= {symbol.name: symbol.evaluate(point) for symbol in scope.derived}
        assert words.evaluate(point) == -(-number * size // 4)
