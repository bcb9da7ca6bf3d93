"""``--backend`` on the command line: what is written, and what is refused."""

import json

import pytest
from click.testing import CliRunner

from metafork.comprehensive.commands import optimize
from tests.comprehensive.emit.targets.programs import EXAMPLES
from tests.comprehensive.metafork_command import metafork
from tests.runtime.compiling import succeed

MEAN = """
#include <math.h>
void mean(int n, int B, const float x[n], float y[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) y[i * B + j] = CALL(x[i * B + j]) / 3;
  }
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "roots.mf").write_text(MEAN.replace("CALL", "sqrtf"))
    (tmp_path / "waves.mf").write_text(MEAN.replace("CALL", "tanf"))
    return tmp_path


@pytest.mark.slow
def test_what_is_written(folder):
    metafork("optimize", "roots.mf", "--backend", "ptx", "--target", "sm_80", "-o", "out", cwd=folder)
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {
        "CMakeLists.txt", "include", "leaves", "report.html", "report.md", "roots.h", "roots.tree.dot",
        "roots.tree.json", "roots.tree.svg", "roots_generation.h", "roots_host.c", "roots_ptx.c",
        "metafork_runtime_ptx.c",
    }  # fmt: skip
    assert ".target sm_80" in (folder / "out" / "roots_ptx.c").read_text()
    assert ".target sm_80" in (folder / "out" / "leaves" / "roots_k0_leaf1.ptx").read_text()
    # The folder is complete in itself: no header of the installed package is needed.
    for name in ("roots_ptx.c", "roots_host.c", "metafork_runtime_ptx.c"):
        succeed(["gcc", "-std=gnu11", "-Iout", "-Iout/include", "-c", f"out/{name}", "-o", "a.o"], cwd=folder)
    # Files of another back end in the folder are of another run, and say so.
    metafork("optimize", "roots.mf", "-o", "out", cwd=folder)
    with pytest.raises(AssertionError, match=r"roots_ptx.c and roots_generation.h are of different runs"):
        succeed(["gcc", "-std=gnu11", "-Iout", "-Iout/include", "-c", "out/roots_ptx.c", "-o", "a.o"], cwd=folder)


def test_a_leaf_without_code_is_reported(folder):
    done = metafork("optimize", "waves.mf", "--backend", "ptx", "-o", "out", cwd=folder)
    reason = "no code for --backend ptx: no exact PTX without the CUDA device library: tanf"
    assert done.stderr.count(f"metafork: waves_k0: a leaf is left out (common subexpressions reused): {reason}\n") == 1
    assert "waves_k0 (waves.mf:5): 0 leaves" in done.stdout
    assert reason in (folder / "out" / "report.md").read_text()
    (schedule,) = json.loads((folder / "out" / "waves.tree.json").read_text())["schedules"]
    assert schedule["leaves"] == []
    selected = metafork("select", "out", "--machine", "sm_80", "n=64", "B=8", cwd=folder)
    assert "waves_k0: no leaf" in selected.stdout
    # nvcc has the function.
    assert metafork("optimize", "waves.mf", "-o", "other", cwd=folder).stderr == ""


@pytest.mark.parametrize("backend", ["hip", "opencl"])
@pytest.mark.slow
def test_back_ends_without_ptx_are_quiet(folder, backend):
    text = (EXAMPLES / "smooth.mf").read_text()
    (folder / "two.mf").write_text(text + text.replace("smooth", "second"))
    quick = ["--counters", "shared_memory", "--static", "none", "-o", "out"]
    done = metafork("optimize", "two.mf", "--backend", backend, *quick, "--order", "paper", cwd=folder)
    assert (done.stderr, "for sm_" in done.stdout) == ("", False)
    reason = "take no part: kernels of this back end are no PTX"
    names = "register_pressure1, register_pressure2, register_pressure3"
    assert f"- **{names}**\n  - {reason}\n" in (folder / "out" / "report.md").read_text()
    # What was named is said, once for all schedules.
    done = metafork("optimize", "two.mf", "--backend", backend, *quick, "--strategies", "shuffle,unroll", cwd=folder)
    assert done.stderr == f"metafork: shuffle, unroll: {reason}\n"


def test_leaves_without_code_for_one_reason_are_one_line(folder):
    call = "y[p + 1] = tanf(x[p] + x[p + 1] + x[p + 2])"
    text = (EXAMPLES / "smooth.mf").read_text().replace("y[p + 1] = (x[p] + x[p + 1] + x[p + 2]) / 3", call)
    (folder / "tangents.mf").write_text("#include <math.h>\n" + text)
    chosen = ["--counters", "shared_memory", "--strategies", "granularity,caching", "--order", "paper"]
    done = metafork("optimize", "tangents.mf", "--backend", "opencl", *chosen, "-o", "out", cwd=folder)
    assert done.stderr.startswith("metafork: tangents_k0: 3 leaves are left out: no code for --backend opencl: ")
    assert done.stderr.count("\n") == 1
    assert (folder / "out" / "report.md").read_text().count("no code for --backend opencl") >= 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--backend", "metal"], "there is no back end 'metal' all back ends: metafork optimize --backend help"),
        (["--backend", "ptxx"], "there is no back end 'ptxx' did you mean: ptx?"),
        (
            ["--backend", "ptx", "--allow-fma"],
            "--backend ptx never contracts a*b + c; --allow-fma is for --backend cuda",
        ),
        (["--backend", "ptx", "--target", "sm_1"], "LLVM has no target sm_1"),
        (["--target", "sm_90", "--machine", "sm_80..sm_100"], "--target sm_90 does not run on --machine sm_80"),
        (["--target", "sm_90a", "--machine", "sm_100"], "--target sm_90a does not run on --machine sm_100"),
        (["--backend", "hip", "--target", "gfx90a", "--machine", "gfx942"], "gfx90a does not run on --machine gfx942"),
        (["--backend", "ptx", "--target", "gfx90a"], "gfx90a is no target; targets look like sm_80"),
        (["--backend", "hip", "--target", "sm_80"], "sm_80 is no target of --backend hip; targets look like gfx90a"),
        (["--backend", "hip", "--allow-fma"], "--backend hip never contracts a*b + c"),
        (["--backend", "opencl", "--target", "sm_80"], "--backend opencl builds kernels for the device that it finds"),
        (["--backend", "opencl", "--allow-fma"], "--backend opencl never contracts a*b + c"),
    ],
)
def test_what_is_refused(folder, options, said):
    assert said in refused(folder, *options)


def refused(folder, *options):
    """Return what the command says to options that it does not take; it writes nothing."""
    arguments = [str(folder / "roots.mf"), *options, "-o", str(folder / "out")]
    done = CliRunner().invoke(optimize.command, arguments)
    assert done.exit_code == 2
    assert not (folder / "out").exists()
    return " ".join(done.output.split())


def test_plugins_with_back_ends_that_are_none(folder):
    def said(name, text):
        (folder / name).write_text(text)
        return refused(folder, "--plugin", str(folder / name), "--backend", "mine")

    half = "class Mine:\n    name = 'mine'\n    hardware = None\n    headers = ()\n\nTARGET = Mine()\n"
    assert "is no back end: it has no own_headers, aimed_at, leaf_code" in said("half.py", half)
    taken = "from metafork.comprehensive.emit.targets.ptx import TARGET\n"
    assert "has a back end 'ptx', and so has metafork itself" in said("taken.py", taken)
    assert "has none of COUNTER, COUNTERS, STRATEGY, STRATEGIES, TARGET, TARGETS" in said("none.py", "x = 1\n")


def test_with_a_time_limit_there_is_code_of_the_first_leaves(folder):
    source = EXAMPLES / "matmul.mf"
    done = metafork("optimize", source, "--backend", "ptx", "--time-limit", "0", "-o", "out", status=4, cwd=folder)
    assert "incomplete" in done.stderr
    succeed(["gcc", "-std=gnu11", "-Iout", "-Iout/include", "-c", "out/matmul_ptx.c", "-o", "a.o"], cwd=folder)
