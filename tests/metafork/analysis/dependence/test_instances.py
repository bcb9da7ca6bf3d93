from itertools import product

import pytest

from metafork.analysis.races.races import race_report
from metafork.frontend import parse
from metafork.ir.messages.source import Source


def is_free(first, second):
    """Say whether different threads are proved never to touch one element at these two indices."""
    text = f"""
    void f(int n, int B, float a[n]) {{
      int d = n / B;
      meta_schedule {{
        meta_for (int i = 0; i < d; i++) {{
          float r[2 * B];
          for (int j = B / 2; j > 0; j /= 2) {{
            int h = j + 1;
            meta_for (int t = 0; t < B; t++) {{ r[{first}] = 1; r[{second}] = 2; }}
          }}
        }}
      }}
    }}"""
    return race_report(parse(Source("f.mf", text)).schedules[0].program).unproved == ()


@pytest.mark.parametrize(("first", "second"), list(product(["t ^ j", "j ^ t"], repeat=2)))
def test_exclusive_ors_with_one_number_are_one_to_one_in_either_order(first, second):
    assert is_free(first, second)


@pytest.mark.parametrize(("first", "second"), [("t ^ j", "t ^ h"), ("t ^ j", "j ^ h"), ("t ^ j", "t")])
def test_exclusive_ors_with_different_numbers_are_not(first, second):
    assert not is_free(first, second)
