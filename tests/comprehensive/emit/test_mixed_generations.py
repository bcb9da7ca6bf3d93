"""What stands in an output directory: files of one run, the user's own ones, and nothing half done."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from metafork.comprehensive.emit.generation import header_name, number_of
from tests.comprehensive.metafork_command import METAFORK, metafork
from tests.runtime.compiling import run, succeed

TEXT = """
void f(int n, int B, float a[n * B]) {
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = %s * a[i * B + j];
  }
}
"""
OPTIONS = ("--counters", "threads_per_block", "--strategies", "thread_striding")
CPLUSPLUS = ("g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU", "-If.out", "-If.out/include")
C = ("gcc", "-std=gnu11", "-DMETAFORK_CPU", "-If.out/include")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The outputs of two programs with one name."""
    folders = []
    for factor in ("2", "3"):
        folder = tmp_path_factory.mktemp("run")
        (folder / "f.mf").write_text(TEXT % factor)
        metafork("optimize", "f.mf", *OPTIONS, cwd=folder)
        folders.append(folder / "f.out")
    return folders


@pytest.fixture
def out(runs, tmp_path):
    shutil.copytree(runs[0], tmp_path / "f.out")
    return tmp_path / "f.out"


def compiled(out, way="-E"):
    """Compile what is built, and return what the compilers say; files of two runs the preprocessor refuses."""
    device = run([*CPLUSPLUS, way, "f.out/f.cu"], cwd=out.parent)
    host = run([*C, way, "f.out/f_host.c"], cwd=out.parent)
    user = run([*C, way, "-If.out", "-x", "c", "f.out/f.h"], cwd=out.parent)
    return [done.stderr for done in (device, host, user) if done.returncode]


@pytest.mark.slow
def test_files_of_one_run_compile(out):
    assert compiled(out, "-fsyntax-only") == []
    assert "METAFORK_GENERATION_f" in (out / header_name("f")).read_text()


@pytest.mark.parametrize("name", ["f.h", "f.cu", "f_host.c", "f_generation.h"])
def test_a_file_of_another_run_does_not_compile(out, runs, name):
    """One file is new and the others old, or the other way round."""
    shutil.copy(runs[1] / name, out / name)
    said = compiled(out)
    assert said
    assert "are of different runs of metafork: run metafork optimize again" in "".join(said)
    for other in runs[1].iterdir():
        if other.is_file() and other.name != name:
            shutil.copy(other, out / other.name)
    shutil.copy(runs[0] / name, out / name)
    assert "are of different runs of metafork" in "".join(compiled(out))


@pytest.mark.parametrize("header", ["dispatch.h", "machine.h", "host.h", "exact.h"])
def test_a_header_of_another_runtime_does_not_compile(out, header):
    path = out / "include" / "metafork" / header
    path.write_text(path.read_text().replace(" 0x", " 0x1", 1))
    assert f"include/metafork/{header} are of different runs of metafork" in "".join(compiled(out))


def test_the_headers_of_the_package_will_do(out):
    shutil.rmtree(out / "include")
    include = metafork("include-dir").stdout.strip()
    succeed([*CPLUSPLUS, "-fsyntax-only", f"-I{include}", "f.out/f.cu"], cwd=out.parent)
    succeed([*C, "-fsyntax-only", f"-I{include}", "f.out/f_host.c"], cwd=out.parent)


def test_cmake_refuses_a_list_of_another_run(out, runs):
    cmake = METAFORK.with_name("cmake")
    shutil.copy(runs[1] / "CMakeLists.txt", out)
    done = run([cmake, "-S", out, "-B", out.parent / "build", "-DMETAFORK_CPU=ON"])
    assert done.returncode != 0
    assert "are of different runs of metafork" in " ".join(done.stderr.split())


def test_equal_runs_have_one_marker(runs, tmp_path):
    (tmp_path / "f.mf").write_text(TEXT % "2")
    metafork("optimize", "f.mf", *OPTIONS, cwd=tmp_path)
    first, again = (
        {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} for folder in (runs[0], tmp_path / "f.out")
    )
    assert first == again
    assert number_of({"a": "b", "c": "d"}) != number_of({"a": "bc", "": "d"})


def test_files_of_the_user_stay(out):
    mine = ["notes.txt", "leaves/notes.txt", "leaves/f_k0_leaf9.txt", "include/own.h", "f_main.c"]
    for name in mine:
        (out / name).write_text("mine")
    (out / "leaves" / "f_k0_leaf9.mf").write_text("of a run with nine leaves")
    (out.parent / "f.mf").write_text(TEXT % "4")
    metafork("optimize", "f.mf", *OPTIONS, cwd=out.parent)
    assert [(out / name).read_text() for name in mine] == ["mine"] * len(mine)
    assert not (out / "leaves" / "f_k0_leaf9.mf").exists()


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["f.cu", "report.md", "include/metafork/exact.h", "leaves/f_k0_leaf1.mf", "f.d"])
@pytest.mark.sampled(2)
def test_a_folder_in_the_place_of_a_file_changes_nothing(out, name):
    place = out.parent / name if name == "f.d" else out / name
    place.unlink(missing_ok=True)
    place.mkdir()
    before = contents(out)
    (out.parent / "f.mf").write_text(TEXT % "4")
    depfile = ("--depfile", "f.d") if name != "f.d" else ("--depfile", "f.d/../f.d")
    done = run([METAFORK, "optimize", "f.mf", *OPTIONS, *depfile], cwd=out.parent)
    assert done.returncode in (1, 2)
    assert name in done.stderr
    assert contents(out) == before


def test_nothing_is_removed_or_written_behind_a_link(out, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.move(out / "leaves", elsewhere)
    (elsewhere / "f_k0_leaf9.mf").write_text("precious")
    (out / "leaves").symlink_to(elsewhere)
    before, behind = contents(out), contents(elsewhere)
    (out.parent / "f.mf").write_text(TEXT % "4")
    done = metafork("optimize", "f.mf", *OPTIONS, cwd=out.parent, status=1)
    assert "a link stands where a folder is needed" in done.stderr
    assert contents(out) == before
    assert contents(elsewhere) == behind


@pytest.mark.slow
def test_inputs_with_one_name_are_refused_before_anything_is_written(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("a b.mf", "a*b.mf", "c.mf", "sub/c.mf"):
        (tmp_path / name).write_text(TEXT % "2")
    for first, second, name in (("a b.mf", "a*b.mf", "a_b"), ("c.mf", "sub/c.mf", "c"), ("c.mf", "c.mf", "c")):
        done = metafork("optimize", first, second, *OPTIONS, cwd=tmp_path, status=2)
        assert f"the outputs of {first} and {second} would both be called {name}" in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.mf", "a*b.mf", "c.mf", "sub"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_files_are_written_leaves_none_of_them(tmp_path, number):
    """The process stops in the middle of writing, a file under its temporary name open."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "import click\n"
        "from metafork.comprehensive import cli\n"
        "from metafork.comprehensive.emit import write_files\n"
        "class Texts(dict):\n"
        "    def items(self):\n"
        "        yield 'one', 'new'\n"
        "        yield 'sub/two', 'new'\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "@click.command()\n"
        "def command():\n"
        "    write_files(Path('out'), Texts())\n"
        "cli.cli.get_command = lambda context, name: command\n"
        "sys.argv = ['metafork', 'check']\n"
        "cli.main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout.readline() == "writing\n"
    time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
