"""Leaves run at points that the program's assertions allow, also where an assertion is no constraint of Start."""

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.comprehensive.verification.points import Points

ASSERTED = """
void asserted(int n, int B, int C, int a[n], const int b[C + 1]) {
  int d = n / B;
  assert(B != C);
  assert(C == 2 || C == 4 || d > 3);
  assert(n % B == 0);
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        a[i * B + u] += b[C] * i;
  }
}
"""


def allowed(point):
    n, width, other = point["n"], point["B"], point["C"]
    return width != other and (other in (2, 4) or n // width > 3) and n % width == 0


def test_every_parameter_point_passes_every_assertion():
    (tree,) = optimize(ASSERTED, counters=["threads_per_block"], strategies=[]).schedules
    points = list(Points(tree).parameter_points(400))
    assert len(points) > 5
    assert all(allowed(point) for point in points)
    assert Points(tree).completed({"n": 6, "B": 3, "C": 3}) is None
    assert Points(tree).completed({"n": 6, "B": 3, "C": 2}) is not None


def test_no_point_is_left_out_for_an_assertion_that_fails():
    options = Options(points=10, jobs=2, optimization="-O0", dataflow_seconds=0, races=False)
    found = verify(ASSERTED, counters=["threads_per_block"], strategies=[], options=options, machine="all")
    assert found.passed
    assert [row.points for row in found.rows] == [10]
    assert not any("left out" in note for note in found.notes)
