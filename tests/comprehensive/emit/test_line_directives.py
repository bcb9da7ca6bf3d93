"""``--line-directives``: kernels say which lines of the input they come from, and are the same otherwise."""

import re
import subprocess
from pathlib import Path

import pytest

import metafork
from metafork.comprehensive.emit import rendered_files, write_files
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.hip import TARGET as HIP
from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.emit.targets.target import TargetOptionError, with_lines
from metafork.ir.messages.source import Source
from tests.runtime.compiling import needs_nvcc

EXAMPLES = Path(__file__).parents[3] / "examples"
DIRECTIVE = re.compile(r'#line (\d+)(?: "(.*)")?')
PREPROCESSED = """\
# 1 "made \\"up\\".c"
void twice(int n, int B, float x[n])
{
#line 70
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
# 7 "inner.h" 1
        x[i * B + j] *= 2;
  }
}
"""


def read(path):
    """Return an example as it would be typed."""
    return Source(str(path), path.read_text())


def placed(text, name):
    """Return each line of a text that is no directive, with the file and the line that compilers take it to be of."""
    place, found = (name, 1), []
    for number, line in enumerate(text.splitlines(), 1):
        if directive := DIRECTIVE.fullmatch(line):
            place = (directive[2] or place[0], int(directive[1]))
            if directive[2] == name:
                assert place[1] == number + 1
            continue
        found.append((*place, line))
        place = (place[0], place[1] + 1)
    return found


def words(text):
    """Return a text without directives and without the marker of its run, however its lines are broken."""
    return re.sub(r"#line .*|0x[0-9a-f]{8}u|\s+", "", text)


@pytest.mark.parametrize("target", [CUDA, HIP], ids=["cuda", "hip"])
@pytest.mark.parametrize("example", ["smooth", "matmul", "aos"])
def test_nothing_but_directives_is_added(example, target):
    result = metafork.optimize(read(EXAMPLES / f"{example}.mf"))
    device = target.device_name(example)
    plain, marked = (rendered_files(result, target=one)[device] for one in (target, with_lines(target)))
    assert "#line" not in plain
    assert words(marked) == words(plain)
    lines = placed(marked, device)
    assert lines[-1][0] == device
    files = {file for file, _, _ in lines}
    assert files == {device, str(EXAMPLES / f"{example}.mf")}


EXPECTED = {
    "smooth": {r"^ +y\[.*= .*/ 3": 9, "block_x = ": 4},
    "matmul": {
        r"for \(int k = 0": 12,
        r"for \(int z": 17,
        r"own_c\[.* \+= ": 20,
        "metafork_load": 20,
        "= METAFORK_QUOTIENT": 9,
    },
}


@pytest.mark.parametrize("example", EXPECTED)
def test_statements_have_the_lines_of_the_input(example):
    source = read(EXAMPLES / f"{example}.mf")
    result = metafork.optimize(source)
    lines = placed(rendered_files(result, target=with_lines(CUDA))[f"{example}.cu"], f"{example}.cu")
    for pattern, line in EXPECTED[example].items():
        found = {number for file, number, text in lines if file == source.name and re.search(pattern, text)}
        assert found == {line}, (pattern, found)


def test_lines_of_a_preprocessed_text_are_those_that_it_names():
    result = metafork.optimize(PREPROCESSED)
    (device,) = (one for one in rendered_files(result) if one.endswith(".cu") and "runtime" not in one)
    lines = placed(rendered_files(result, target=with_lines(CUDA))[device], device)
    assert {file for file, _, text in lines if "x[" in text} == {"inner.h"}
    assert {number for _, number, text in lines if "x[" in text} == {7}
    assert ('made \\"up\\".c', 70) in {(file, number) for file, number, text in lines if "block_x" in text}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a program with directives."""
    folder = tmp_path_factory.mktemp("lines")
    result = metafork.optimize(read(EXAMPLES / "transpose.mf"))
    write_files(folder, rendered_files(result, target=with_lines(CUDA), directory=folder))
    return folder


def test_the_cpu_build_has_the_lines(written):
    cpu = ["-std=c++17", "-g", "-w", "-x", "c++", "-DMETAFORK_CPU", "-DMETAFORK_RUNTIME_APART"]
    command = ["g++", *cpu, "-Iinclude", "-c", "transpose.cu", "-o", "a.o"]
    subprocess.run(command, cwd=written, check=True)
    shown = subprocess.run(["objdump", "--dwarf=decodedline", "a.o"], cwd=written, check=True, capture_output=True)
    assert b"transpose.mf" in shown.stdout


@needs_nvcc
def test_nvcc_keeps_the_lines(written):
    assert "-lineinfo" in (written / "CMakeLists.txt").read_text()
    flags = ["-std=c++17", "-arch=sm_80", "-fmad=false", "-lineinfo", "-DMETAFORK_RUNTIME_APART", "-Iinclude"]
    subprocess.run(["nvcc", *flags, "-ptx", "transpose.cu", "-o", "a.ptx"], cwd=written, check=True)
    text = (written / "a.ptx").read_text()
    number = re.search(rf'\.file\s+(\d+) "{re.escape(str(EXAMPLES / "transpose.mf"))}"', text)[1]
    lines = {int(one) for one in re.findall(rf"\.loc\s+{number} (\d+) ", text)}
    source = (EXAMPLES / "transpose.mf").read_text().splitlines()
    assert lines - {0} <= {at for at, line in enumerate(source, 1) if line.strip(" {}")}


@pytest.mark.parametrize("target", [OPENCL, PTX], ids=["opencl", "ptx"])
def test_other_back_ends_have_no_lines(target):
    with pytest.raises(TargetOptionError, match=f"--backend {target.name} are no C"):
        with_lines(target)
