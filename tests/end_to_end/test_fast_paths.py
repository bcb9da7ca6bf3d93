"""What the preferred kernel of a leaf does where its tiles are full runs at some point.

``verify`` says which branches of a kernel no point takes.  Where a condition has two sides, the one that holds is the
fast path: all results of a thread side by side, in vectors.
"""

from pathlib import Path

import pytest

from metafork.comprehensive.verification import Options, verify
from metafork.ir.messages.source import Source
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    f"{folder.name}/{path.stem}": path
    for folder in (ROOT / "examples", ROOT / "bench" / "programs", ROOT / "tests" / "end_to_end" / "suites")
    for path in sorted(folder.glob("*.mf"))
}
NEVER = {
    "suites/fdtd_2d": ("`i_",),  # only the first row is a border: others of a thread never are on it
    # What is left over of both jammed loops, at sizes that vectors fill, is more than 50 points show.
    # Whole tiles of blocks that compute more than a small point has.
    "programs/product": ("`wide` ", "`16LL * k_strip "),
    "programs/product_update": ("`16LL * k_strip ",),
    "programs/syrk": ("`4LL * B1 ",),
    "programs/matmul_strided": ("`j_o < ", "`wide` ", "`K % 4", "`METAFORK_ALIGNED() && B1 % 4"),
    "suites/covariance": ("`16LL * k_strip ",),
    "suites/mvt": ("`together ",),
    "suites/two_mm": ("`16LL * k_strip ", "`8LL * T "),
    "examples/matmul_tile": ("`wide` ", "`wide_", "`K % 4", "`METAFORK_ALIGNED() && B % 4"),
}
"""How conditions begin that need not hold at any point."""
SEVEN = """
void seven(int n, {extents}, const float a[n][n][n], float b[n][n][n]) {{
  meta_schedule meta_block({shape}) {{
    meta_for (int z = 1; z < n - 1; z++)
      meta_for (int y = 1; y < n - 1; y++)
        meta_for (int x = 1; x < n - 1; x++)
          b[z][y][x] = a[z][y][x] + a[z - 1][y][x] + a[z + 1][y][x] + a[z][y - 1][x] + a[z][y + 1][x];
  }}
}}
"""
FLAT = {
    "padding": SEVEN.format(extents="int B, int C", shape="B, C"),
    "flat blocks": SEVEN.format(extents="int A, int B, int C", shape="A, B, C"),
}


def never_taken(source):
    """Return the fast paths that no point took, of the kernels that go first."""
    sums = isinstance(source, Path) and "meta_reduction" in source.read_text()
    options = Options(dataflow_seconds=0, optimization="-O0", jobs=2)
    found = verify(source, machine="all", static="none", options=options, reassociate=sums)
    assert found.passed
    first = {}
    for row in found.rows:
        first.setdefault((row.schedule, row.leaf), row)
    return [str(branch) for row in first.values() for branch in row.never_taken if branch.fast]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fast_path_of_every_preferred_kernel_runs(name):
    left = never_taken(PROGRAMS[name])
    assert [branch for branch in left if not branch.startswith(NEVER.get(name, ()))] == []


@pytest.mark.parametrize("text", sampled(FLAT, {"padding"}))
def test_the_fast_path_of_a_stencil_runs_whatever_its_blocks_are(text):
    assert never_taken(Source("seven.mf", text)) == []
