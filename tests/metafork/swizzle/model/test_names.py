"""Kernels and inputs may be called anything; the code of all kinds is still compiled and right."""

import shutil
import subprocess

import pytest

from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.names import kernel_name, parameter_name
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_llvm import print_ptx
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_c, check_cuda

FILES = [
    "2d",
    "int",
    "my-sketch",
    "main",
    "exp",
    "x",
    "a_tile",
    "threadIdx",
    "NULL",
    "_x",
    "ü",
    "",
    "sinf",
    "xor",
    "abs",
]
INPUTS = [
    "while",
    "v0",
    "threadIdx",
    "out",
    "lane",
    "tile",
    "T",
    "d0",
    "e",
    "unix",
    "NULL",
    "x_cells",
    "a_tile",
    "mine",
]


def problem_called(file, inputs=("x", "y")):
    first, second = inputs
    text = f"""
        {first}: [8] = input
        {second}: [8] = input{{shared}}
        of_x: [4, 2] = \\i, j. {first}[i + 4 * j]
        x_u_d: [4, 2] = ?rotate{{axis=0}}(of_x)
        at_: [4, 2] = x_u_d * \\i, j. {second}[i + 4 * j]
        s: [4] = fold(+)(at_)
        goal s = \\i. sum(j < 2) {first}[(i + 1) % 4 + 4 * j] * {second}[i + 4 * j]
    """
    return load(Source(f"{file}.swz", text))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.sampled(3)
def test_any_file_name_makes_code_that_runs(file, tmp_path):
    problem = problem_called(file)
    found = solutions(problem)
    check_c(problem, found, tmp_path)
    check_cuda(problem, found, tmp_path, shapes=((1, 64, 1.0),))
    # The kernel alone, without a number behind its name.
    from metafork.swizzle.output.print_c import print_c
    from metafork.swizzle.output.print_cuda import print_cuda
    from tests.metafork.swizzle.running import compiled

    compiled(print_c(problem, [(problem.name, found[0])]), ".c", tmp_path)
    compiled(print_cuda([lower(problem, found[0])]), ".cpp", tmp_path)


@pytest.mark.parametrize("pair", list(zip(INPUTS[::2], INPUTS[1::2], strict=True)), ids=str)
def test_any_input_name_makes_code_that_runs(pair, tmp_path):
    problem = problem_called("a", pair)
    found = solutions(problem)
    check_c(problem, found, tmp_path)
    check_cuda(problem, found, tmp_path, shapes=((1, 64, 1.0),))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: names are not seen by it here")
def test_ptxas_accepts_every_name(tmp_path):
    codes = []
    for number, file in enumerate(FILES):
        name = INPUTS[number % len(INPUTS)]
        text = f"{name}: [8] = input\ngoal {name} = \\i. {name}[i]\n"
        problem = load(Source(f"{file}.swz", text))
        codes.append(lower(problem, solutions(problem)[0]))
    assert len({code.name for code in codes}) == len(codes)
    path = tmp_path / "kernels.ptx"
    path.write_text(print_ptx(codes))
    command = ["ptxas", "-arch=sm_80", "-o", str(tmp_path / "kernels.cubin"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_plain_names_are_kept():
    assert [kernel_name(name) for name in ("crc", "stencil2d", "a_1")] == ["crc", "stencil2d", "a_1"]
    assert parameter_name("x") == "in_x"
