"""What is said of structures that no schedule takes."""

import pytest

from tests.metafork.frontend.marked import diagnostics_of

TEXT = """
struct unknown { half2 v; };
struct s { float x; MEMBER };
void f(int n, struct s a[n]) {
  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++) a[i].x = j; }
}"""


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("long double v;", "its member `v` is of type `long double`"),
        ("struct unknown v;", "its member `v` is a structure that is not understood"),
        ("float *v;", "its member `v` is a pointer"),
        ("int v[n];", "its member `v` is an array whose extents are no numbers"),
        ("int v[5000];", "it has more than 4096 members"),
    ],
)
def test_the_member_at_fault_is_named(member, said):
    (found,) = diagnostics_of(TEXT.replace("MEMBER", member))
    assert (found.code, found.message) == ("MF0205", f"`a` is a structure: {said}")
