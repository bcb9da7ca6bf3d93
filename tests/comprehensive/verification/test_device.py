"""``metafork verify --device``: programs for a GPU, here made for the processor by a stand-in of nvcc."""

import json
from functools import partial

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.verification import Options
from metafork.comprehensive.verification.device import NO_DEVICE as NO_DEVICE_SAID
from metafork.comprehensive.verification.result import VariantResult, Verification
from tests.runtime.compiling import INCLUDE

TWICE = """
#include <math.h>
void twice(int n, int B, const float x[n], float y[n]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        y[i * B + u] = %s * 2.0f;
  }
}
"""
NVCC = """#!/bin/sh
# Takes nvcc's words and makes a program for the processor; the kernels' text may be changed before.
for word; do
  shift
  case $word in
    -arch=*|-fmad=*) ;;
    *.cu) sed '{edit}' "$word" > "$word.c"; set -- "$@" -x c++ -DMETAFORK_CPU "$word.c" ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec ${{CXX:-g++}} -O0 "$@"
"""
NO_DEVICE = """#!/bin/sh
# What it links says what programs say where there is no device.
for word; do target=$word; done
case $target in
  *_device)
    printf '%s\\n' '#!/bin/sh' 'cat > /dev/null' 'echo "point 0"' 'echo reference' 'echo same' \\
      'echo "point 0" >&2' \\
      'echo "metafork: p_k0: the machine cannot be queried: no device; the serial code runs" >&2' > "$target"
    chmod +x "$target" ;;
  *) : > "$target" ;;
esac
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Kernels that ``metafork verify`` compiles for the processor are not optimized."""
    monkeypatch.setattr("metafork.comprehensive.verification.Options", partial(Options, optimization="-O0"))


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def verified(tmp_path, monkeypatch, *options, value="x[i * B + u]", edit="", nvcc=NVCC):
    program = tmp_path / "p.mf"
    program.write_text(TWICE % value)
    monkeypatch.setenv("NVCC", script(tmp_path / "nvcc", nvcc.format(edit=edit) if nvcc is NVCC else nvcc))
    chosen = "--counters threads_per_block --strategies cse1 --registers none --no-races --points 6 --device"
    return CliRunner().invoke(cli, ["verify", str(program), *chosen.split(), *options])


@pytest.mark.slow
def test_every_variant_runs_on_the_device_too(tmp_path, monkeypatch):
    told = verified(tmp_path, monkeypatch, "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.output)
    for one in document["variants"]:
        assert one["device"] == "ok"
        assert one["device_points"] == one["points"] > 0


@pytest.mark.slow
def test_what_differs_on_the_device_alone_is_named(tmp_path, monkeypatch):
    told = verified(tmp_path, monkeypatch, edit="s/2\\.0f/3.0f/")
    assert told.exit_code == 1
    assert "device at n=" in told.output
    assert ": y differs at element 0" in told.output
    header, row = told.output.splitlines()[1:3]
    assert row.split()[header.split().index("device") + 1] == "FAIL"  # the name of a leaf is two words
    assert row.split()[header.split().index("code") + 1] == "ok"


@pytest.mark.parametrize(("factor", "status"), [("2.000002f", 0), ("2.01f", 1)])
@pytest.mark.slow
def test_functions_whose_last_bits_c_leaves_open_are_compared_to_a_part_of_the_largest(
    tmp_path, monkeypatch, factor, status
):
    told = verified(tmp_path, monkeypatch, value="expf(x[i * B + u])", edit=f"s/2\\.0f/{factor}/")
    assert told.exit_code == status, told.output
    assert "on the device results are compared to 1e-05 of the largest" in told.output


@pytest.mark.slow
def test_bits_count_without_such_functions(tmp_path, monkeypatch):
    assert verified(tmp_path, monkeypatch, edit="s/2\\.0f/2.000002f/").exit_code == 1


@pytest.mark.slow
def test_a_runner_starts_the_programs(tmp_path, monkeypatch):
    runner = script(tmp_path / "runner", f'#!/bin/sh\necho "$1 $2" >> {tmp_path}/started\nshift\nexec "$@"\n')
    told = verified(tmp_path, monkeypatch, "--runner", f"{runner} --quiet")
    assert told.exit_code == 0, told.output
    (first, *_) = (tmp_path / "started").read_text().splitlines()
    word, program = first.split()
    assert word == "--quiet"
    assert program.endswith("metafork_driver_0_device")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "--runner", "no-such-tool --fast"], "no-such-tool is not installed"),
        (["--runner", "no-such-tool --fast", "--device"], "no-such-tool is not installed"),
        (["--device", "--runner", "env 'X=1"], "no closing quotation"),
        (["--runner", "env"], "it starts the programs of --device"),
    ],
)
def test_runners_that_cannot_be_are_mistakes_of_usage(tmp_path, words, told):
    (tmp_path / "p.mf").write_text(TWICE % "x[i * B + u]")
    done = CliRunner().invoke(cli, ["verify", str(tmp_path / "p.mf"), *words])
    assert done.exit_code == 2
    assert told in done.output


@pytest.mark.slow
def test_a_machine_without_a_device_is_told(tmp_path, monkeypatch):
    told = verified(tmp_path, monkeypatch, nvcc=NO_DEVICE)
    assert told.exit_code == 1
    assert "nothing can run on a device: p_k0: the machine cannot be queried: no device" in told.output


def test_that_is_what_the_runtime_says():
    assert f'"{NO_DEVICE_SAID}: ' in (INCLUDE / "metafork" / "dispatching.h").read_text()


def test_a_missing_nvcc_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("NVCC", "no-such-compiler")
    program = tmp_path / "p.mf"
    program.write_text(TWICE % "x[i * B + u]")
    words = "--counters threads_per_block --strategies cse1 --registers none --no-races --points 2 --device"
    told = CliRunner().invoke(cli, ["verify", str(program), *words.split()])
    assert told.exit_code == 1
    assert "no-such-compiler is not installed" in told.output


def test_points_that_the_device_has_no_room_for_are_counted():
    rows = [
        VariantResult("f", 1, 1, "f_1", (), points=6, device_points=4, not_on_device="leaf 2 (as written) ran"),
        VariantResult("f", 2, 1, "f_2", (), points=6, device_points=0, not_on_device="f: no leaf fits"),
    ]
    found = Verification("f.mf", rows, on_device=True)
    assert [found.state("device", row) for row in rows] == ["ok", "-"]
    lines = found.table().splitlines()
    assert "on the device, f leaf 1 (as written): 4 of 6 points (not at others, where leaf 2 (as written) ran)" in lines
    assert "on the device, f leaf 2 (as written): 0 of 6 points (not at others, where f: no leaf fits)" in lines
    assert "device" not in Verification("f.mf", rows).table()
