import pytest

from metafork.analysis.cfg.source_cfg import uniform_paths
from metafork.printing.expressions import expression
from tests.metafork.interpreter import program


def paths(first, second):
    """Return the conditions of each path through two branches."""
    text = f"""
    void f(int N, int B, float x, float y, int c[64]) {{
      meta_schedule {{
        meta_for (int i = 0; i < 2; i++)
          meta_for (int j = 0; j < B; j++) {{
            if ({first}) {{ c[j] = 1; }}
            if ({second}) {{ c[j + 32] = 1; }}
          }}
      }}
    }}"""
    return [
        [(expression(condition), truth) for condition, truth in path.conditions]
        for path in uniform_paths(program(text))
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("N == B", "N != B"),
        ("N < B", "N >= B"),
        ("N > B", "B < N"),
        ("N <= B", "!(B < N)"),
        ("x == y", "x != y"),
        ("x != N", "!(x == N)"),
        ("N", "N == 0"),
    ],
)
def test_spellings_of_one_test_are_one_test(first, second):
    assert len(paths(first, second)) == 2


@pytest.mark.parametrize(
    ("first", "second"), [("x < y", "x >= y"), ("x > y", "y <= x"), ("N < B", "N <= B"), ("N == B", "N == 1")]
)
def test_different_tests_are_two(first, second):
    """A NaN makes both sides of a floating order false."""
    assert len(paths(first, second)) == 4
