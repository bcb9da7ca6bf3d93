"""PTX as other compilers write it, and nested grid-stride loops: shuffled whole, with the same results."""

import numpy as np
import pytest

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.shuffles.shuffle import shuffle_text
from metafork.ptx.text.parser import parse
from tests.metafork.ptx.kernels import DATA
from tests.metafork.ptx.snippets import assert_assembles


def results(text, entry, grid, block, arguments, size):
    """Return what a kernel writes: arguments are its numbers, before or behind the two arrays."""
    memory = GlobalMemory()
    source = memory.upload(np.random.default_rng(1).standard_normal(size).astype(np.float32))
    target = memory.upload(np.zeros(size, np.float32))
    placed = [source if one == "x" else target if one == "y" else one for one in arguments]
    done = run_kernel(parse(text), entry, grid, block, placed, memory=memory)
    return memory.read(target, size, np.float32).tobytes(), done.lanes.get("ld.global", 0)


@pytest.mark.parametrize(("name", "entry"), [("openacc_nvhpc", "stencil_4_gpu"), ("openacc_gcc", "stencil$_omp_fn$0")])
def test_what_openacc_compilers_write(name, entry, tmp_path):
    text = (DATA / f"{name}.ptx").read_text()
    done = shuffle_text(text)
    assert [(len(one.shuffles), one.loads) for one in done.kernels] == [(2, 3)]
    assert done.text.count(".loc") == text.count("\t.loc")
    assert done.text.count(".section") == text.count(".section")
    assert_assembles(done.text)
    for n in (256, 203, 2):
        before, loads = results(text, entry, (2, 1, 1), (128, 1, 1), ["x", "y", n], 256)
        after, fewer = results(done.text, entry, (2, 1, 1), (128, 1, 1), ["x", "y", n], 256)
        assert before == after
        assert fewer < loads or n == 2


@pytest.mark.parametrize("n", [200, 131, 64, 3])
def test_nested_grid_stride_loops_compare_both_counts_at_once(n):
    text = (DATA / "grid2.ptx").read_text()
    done = shuffle_text(text)
    (report,) = done.kernels
    assert len(report.shuffles) == 2
    assert done.text.count("match.all.sync.b64") == 1
    assert_assembles(done.text)
    launch = "grid2", (1, 2, 1), (64, 1, 1), [n, 5, "x", "y"], 5 * 200
    before, loads = results(text, *launch)
    after, fewer = results(done.text, *launch)
    assert before == after
    assert fewer < loads or n == 3


def test_targets_without_match_compare_loop_by_loop():
    text = (DATA / "grid2.ptx").read_text().replace("sm_80", "sm_60")
    (report,) = shuffle_text(text).kernels
    assert report.shuffles == ()
    assert any("dearer" in one.reason for one in report.left_alone)
