"""Libraries: what is kept for later runs, what a damaged cache does, ``metafork build``."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import metafork
from metafork.comprehensive.building import library
from metafork.comprehensive.building.commands import BuildError
from metafork.comprehensive.cli import cli
from metafork.ir.messages.source import Source

TEXT = """
int twice(int n, float x[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) x[i] *= 2; }
  return n;
}
"""
PLAIN = {"strategies": (), "counters": ("threads_per_block",), "static": "none"}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The libraries that are made from now on, by a compiler that writes two words; the user's cache is empty."""
    found = []

    def make(tools, folder, name, kernels, runtime, output, flags=(), *, static=False):
        assert kernels == f"{name}.cu"
        assert (folder / kernels).exists()
        output.write_bytes(b"a library")
        found.append(output)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "make_library", make)
    monkeypatch.setattr(library, "runtime_object", lambda commands, compiling, target: "runtime.o")
    return found


def kept(text=TEXT, **changes):
    return library.cached(Source("input.mf", text), (), True, {**PLAIN, **changes})


def folders(tmp_path):
    return list(tmp_path.glob("cache/metafork/builds/*"))


def test_what_was_made_is_kept_until_something_of_it_changes(made, tmp_path, monkeypatch):
    place, tree = kept()
    assert kept() == (place, tree)
    assert len(made) == 1
    assert '"metafork-tree"' in tree
    (folder,) = folders(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["checksum", "library.so", "tree.json"]
    kept(TEXT.replace("*= 2", "*= 3"))
    kept(order="paper")
    monkeypatch.setenv("CXX", "true")
    kept()
    assert len(made) == 4


@pytest.mark.parametrize("name", ["library.so", "tree.json", "checksum"])
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"half"), Path.unlink])
def test_what_is_damaged_is_made_anew(made, tmp_path, name, damage):
    place, tree = kept()
    damage(place.with_name(name))
    assert kept() == (place, tree)
    assert (len(made), len(folders(tmp_path)), place.read_bytes()) == (2, 1, b"a library")


def test_a_process_that_was_first_is_not_disturbed(made, tmp_path, monkeypatch):
    first, _ = kept()
    number, whole, asked = first.stat().st_ino, library._whole, []
    # This one has looked before the other had it ready.
    monkeypatch.setattr(library, "_whole", lambda folder: whole(folder) if asked else asked.append(folder))
    second, _ = kept()
    assert (len(made), second, first.stat().st_ino) == (2, first, number)
    assert len(folders(tmp_path)) == 1


def test_a_cache_that_cannot_be_written_is_done_without(made, tmp_path):
    (tmp_path / "cache").write_text("a file, no folder")
    place, _ = kept()
    assert place.read_bytes() == b"a library"


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("no-such-compiler", "no-such-compiler is not installed"),
        ("false", r"false -std=c\+\+17 .* -c metafork_runtime_\w+.cu"),
    ],
)
def test_a_compiler_that_fails_is_said_with_its_command(tmp_path, monkeypatch, compiler, message):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(BuildError, match=message):
        metafork.load(TEXT, cpu=True, **PLAIN)
    assert not folders(tmp_path)


def built(*options):
    words = ["--cpu", "--static", "none", "--counters", "threads_per_block", "--strategies", "granularity"]
    return CliRunner().invoke(cli, ["build", "twice.mf", *words, *options])


@pytest.mark.slow
def test_build_makes_a_library_beside_its_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("twice.mf").write_text(TEXT)
    done = built()
    assert (done.exit_code, done.output) == (0, "wrote libtwice.so\n")
    code = ctypes.CDLL("./libtwice.so")
    x = (ctypes.c_float * 3)(1, 2, 3)
    assert (code.twice(3, x), list(x)) == (3, [2, 4, 6])
    calls = "int main(void) { float x[1] = {4}; twice(1, x); return (int)x[0]; }\n"
    Path("main.c").write_text(f'#include "twice.h"\n{calls}')
    subprocess.run(["gcc", "-w", "-I.", "-Iinclude", "main.c", "./libtwice.so", "-o", "main"], check=True)
    assert subprocess.run(["./main"], check=False).returncode == 8
    done = built("--static-library", "-o", "lib/libtwo.a")
    assert (done.exit_code, done.output) == (0, "wrote lib/libtwo.a\n")
    listed = subprocess.run(["ar", "t", "lib/libtwo.a"], capture_output=True, text=True, check=True).stdout
    assert "twice_host.o" in listed


def test_a_header_of_the_user_is_left_alone(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("twice.mf").write_text(TEXT)
    Path("twice.h").write_text("mine")
    done = built()
    assert (done.exit_code, Path("twice.h").read_text()) == (1, "mine")
    assert "metafork did not write it" in done.output


def test_what_is_wrong_with_the_input_is_shown(tmp_path):
    (tmp_path / "bad.mf").write_text(TEXT.replace("float x[n]", "float *x[n]"))
    done = CliRunner().invoke(cli, ["build", str(tmp_path / "bad.mf"), "--cpu"])
    assert done.exit_code == 1
    assert "error[" in done.output


@pytest.mark.parametrize("backend", ["ptx", "opencl"])
def test_a_c_compiler_is_enough_for_libraries_that_look_for_a_device(backend, tmp_path, monkeypatch):
    """Here there is none, and the serial code runs."""
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("twice.mf").write_text(TEXT)
    words = ["--static", "none", "--counters", "threads_per_block", "--strategies", "granularity"]
    done = CliRunner().invoke(cli, ["build", "twice.mf", "--backend", backend, *words])
    assert (done.exit_code, done.output) == (0, "wrote libtwice.so\n")
    x = (ctypes.c_float * 3)(1, 2, 3)
    assert (ctypes.CDLL("./libtwice.so").twice(3, x), list(x)) == (3, [2, 4, 6])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backend", "opencl", "--cpu"], "--cpu needs --backend cuda"),
        (["--backend", "ptx", "--line-directives"], "--line-directives needs --backend cuda"),
        (["--backend", "hip"], "'hip' is not one of 'cuda', 'ptx', 'opencl'"),
    ],
)
def test_what_a_back_end_cannot_be_built_with_is_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("twice.mf").write_text(TEXT)
    done = CliRunner().invoke(cli, ["build", "twice.mf", *words])
    assert done.exit_code == 2
    assert message in done.output
    assert not Path("include").exists()
