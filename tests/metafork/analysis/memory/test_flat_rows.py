import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.flat_rows import with_rows
from metafork.ir.program import Element, walk_expression, walk_statements
from metafork.printing.expressions import expression
from tests.metafork.interpreter import program

TEXT = """
void f(int n, int m, const int at[n], const float a[EXTENT], float b[n * m]) {
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < m; j++) {
        int left = j == 0 ? m - 1 : j - 1;
        b[i * m + j] = a[INDEX] + a[i * m + j];
      }
  }
}"""


@pytest.mark.parametrize(
    ("extent", "index", "extents", "indices"),
    [
        ("n * m", "(i + 1) % n * m + left", "n, m", ["(i + 1) % n", "left"]),
        ("(n + 3) * m", "(i + 3) * m + left", "n + 3, m", ["i + 3", "left"]),
        ("n * m", "i * m + (left + 1)", "n * m", None),  # perhaps in the next row
        ("n * m", "at[i] * m + left", "n * m", None),
        ("n * m", "at[i] % n * m + left", "n * m", None),
        ("n * m + n", "i * m + left", "n * m + n", None),
    ],
)
def test_a_flat_array_is_one_of_rows_where_its_indices_say_so(extent, index, extents, indices):
    subject = with_rows(program(TEXT.replace("EXTENT", extent).replace("INDEX", index)), Analyses())
    assert ", ".join(map(expression, subject.array("a").extents)) == extents
    assert [expression(one) for one in subject.array("b").extents] == ["n * m"]  # its index is a polynomial
    values = [one.value for one in walk_statements(subject.body) if getattr(one, "value", None) is not None]
    read = [p for one in values for p in walk_expression(one) if isinstance(p, Element) and p.array == "a"]
    found = [[expression(one) for one in element.indices] for element in read]
    assert found == ([[index], ["i * m + j"]] if indices is None else [indices, ["i", "j"]])
