"""Every example's host program, built as the README has it, agrees with the serial program and says which leaf ran."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.name.removesuffix("_main.c") for path in EXAMPLES.glob("*_main.c"))
METAFORK = Path(sys.executable).with_name("metafork")


def run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_has_a_host():
    assert {path.stem for path in EXAMPLES.glob("*.mf")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_host_on_the_cpu_build(name, tmp_path):
    output = run("make", "-C", EXAMPLES, f"run-{name}", f"METAFORK={METAFORK}", f"BUILD={tmp_path}")
    assert "DIFFERS" not in output
    chosen = re.findall(r"^(\w+): leaf (\d+), chosen because .*$", output, re.MULTILINE)
    agreed = re.findall(r"^(\w+): agrees with the serial program, bit for bit$", output, re.MULTILINE)
    assert [schedule for schedule, _ in chosen] == agreed
    assert agreed


@pytest.mark.slow
def test_a_host_without_a_device_runs_the_serial_program(tmp_path, monkeypatch):
    monkeypatch.setenv("METAFORK_OPENCL_LIBRARY", str(tmp_path / "none.so"))
    options = (f"METAFORK={METAFORK}", f"BUILD={tmp_path}", "BACKEND=opencl")
    output = run("make", "-C", EXAMPLES, "run-matadd", *options, "OPTIONS_matadd=--counters threads_per_block")
    assert "matadd_k0: no leaf, the serial program ran\nmatadd_k0: agrees with the serial program" in output


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake on PATH")
@pytest.mark.slow
def test_a_host_through_the_cmake_package(tmp_path):
    run(METAFORK, "optimize", EXAMPLES / "blur.mf", "-o", tmp_path / "blur.out", "--strategies", "granularity,caching")
    run("cmake", "-S", EXAMPLES / "cmake", "-B", tmp_path, "-DMETAFORK_CPU=ON")
    run("cmake", "--build", tmp_path, "--parallel", str(os.cpu_count() or 1))
    assert "agrees with the serial program" in run(tmp_path / "blur")
