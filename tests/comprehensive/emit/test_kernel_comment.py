"""The text of kernels can be read: no line is too wide, and a comment says of each kernel what it is."""

from pathlib import Path

import pytest

from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import optimize
from metafork.printing.width import MOST_COLUMNS


def device_text(name, **options):
    result = optimize(Path(f"examples/{name}.mf"), **options)
    files = rendered_files(result, code_of=LeafTexts(result.analyses).code_of)
    return files[f"{name}.cu"], files[f"{name}.h"], result.schedules


@pytest.mark.parametrize("name", ["matmul", "smooth", "heat3d"])
def test_lines_are_not_wide_and_kernels_have_comments(name):
    device, header, trees = device_text(name, static="auto")
    assert max(map(len, [*device.splitlines(), *header.splitlines()])) <= MOST_COLUMNS
    for tree in trees:
        for leaf in tree.leaves:
            for variant in leaf.variants:
                assert f"\n/* {variant.kernel}: leaf {leaf.id} of {tree.program.name}" in device


def test_a_comment_says_what_the_kernel_is():
    device, _, _ = device_text(
        "smooth", strategies=("granularity", "caching"), counters=("shared_memory",), order="paper"
    )
    comment = device[device.index("/* smooth_k0_leaf2") :].partition("METAFORK_KERNEL(")[0]
    assert comment.splitlines() == [
        "/* smooth_k0_leaf2: leaf 2 of smooth_k0.",
        " *   x in shared memory, s joined the grid",
        " *   grid (blocks * s), block (B), 4 * B + 8 bytes of shared memory",
        " *   if B + 2 <= Z && Z < s*B + 2",
        " *   with blocks = (n - 2) / (s * B)",
        " */",
    ]
