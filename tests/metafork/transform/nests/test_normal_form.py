import pytest

from metafork.analysis.facts import program_facts
from metafork.analysis.values.scope import Scope
from metafork.ir.program import For, walk_statements
from metafork.printing.statements import statements
from metafork.transform.nests.normal_form import from_zero
from tests.metafork.programs import program


def counted_from_zero(head):
    subject = program(f"""
    void f(int n, int s, int B, float a[n * s + s], float b[n]) {{
      int d = n / B;
      meta_schedule {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++)
            for ({head}) {{ b[k] = a[k]; }}
      }}
    }}""")
    (loop,) = (stmt for stmt in walk_statements(subject.body) if isinstance(stmt, For))
    found = from_zero(loop, subject, Scope.of(program_facts(subject)))
    return None if found is None else statements((found,), 0)


@pytest.mark.parametrize(
    ("head", "extent", "value"),
    [
        ("int k = B; k < s * B; k += B", "s - 1", "B + k_number * B"),
        ("int k = 1; k <= n; k++", "n", "1 + k_number"),
        ("int k = 2; k < 11; k += 3", "3", "2 + k_number * 3"),
        ("int k = n; k > 0; k--", "n", "n - k_number"),
        ("int k = n * B; k > B; k -= B", "n - 1", "n * B - k_number * B"),
    ],
)
def test_a_loop_counts_from_zero_by_ones(head, extent, value):
    assert counted_from_zero(head) == [
        f"for (int k_number = 0; k_number < {extent}; k_number++) {{",
        f"  int k = {value};",
        "  b[k] = a[k];",
        "}",
    ]


@pytest.mark.parametrize(
    "head",
    [
        "int k = 0; k < n; k += s",  # n/s rounded up
        "int k = j; k < n; k++",  # other threads have other numbers
        "int k = 2; k < 12; k += 3",
        "int k = B - s; k < n; k++",  # may begin below 0
        "unsigned k = 1; k < 9u; k++",
        "int k = 1; k < n && a[k] > 0; k++",
    ],
)
def test_what_is_no_polynomial_number_of_iterations_stays(head):
    assert counted_from_zero(head) is None
