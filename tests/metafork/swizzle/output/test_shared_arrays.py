"""Arrays in shared memory: inputs that are staged there, and arrays that the code puts there."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import evaluate
from metafork.swizzle.output.banks import bank_degree
from metafork.swizzle.output.cost import ARCHITECTURES, cost
from metafork.swizzle.output.instructions import Load, Put, Shuffle, Sync
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_cuda import print_cuda
from metafork.swizzle.output.print_llvm import print_ptx
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_everywhere, check_ptx, problem_of

SKETCHES = {
    "a transposition": """
        let s = 5
        x: [32 * s] = input
        l: [32, s] = \\i, j. x[i + 32 * j]
        t: [32, s] = shared(l)
        u: [32, s] = \\i, j. t[(s * i + j) % 32, (s * i + j) / 32]
        goal u = \\i, j. x[s * i + j] -> out[32 * j + lane]""",
    # Four groups of eight threads a warp, each with a memory of its own.
    "a hole that reads any cell": """
        x: [8] = input
        l: [8] = \\i. x[i]
        a: [8] = l + l
        t: [8] = shared(a)
        u: [8, 2] = ?transform{axis=0, secondary=1, level=1}(t)
        goal u = \\i, k. x[(3 * i + k) % 8] + x[(3 * i + k) % 8]""",
    "two arrays, one made of the other": """
        x: [16] = input
        y: [16] = input{shared}
        l: [16] = x - (\\i. y[15 - i])
        t: [16] = shared(l)
        r: [16] = ?rotate{axis=0}(t)
        v: [16] = shared(r * l)
        w: [16] = \\i. v[i ^ 1]
        goal w = \\i. (x[(i ^ 1) + 3 & 15] - y[15 - ((i ^ 1) + 3 & 15)]) * (x[i ^ 1] - y[15 - (i ^ 1)])""",
    "threads of two axes": """
        warp 2
        x: [4, 8, 2] = input
        t: [4, 8, 2] = shared(x)
        u: [4, 8, 2] = \\i, j, k. t[j % 4, 2 * i + j / 4, 1 - k]
        goal u = \\i, j, k. x[j % 4, 2 * i + j / 4, 1 - k]""",
    "a shared array that is the goal": """
        x: [8] = input
        t: [8] = shared(?rotate{axis=0}(x))
        goal t = \\i. x[(i + 1) % 8] -> out[7 - i]""",
}


@pytest.mark.parametrize("name", SKETCHES)
def test_arrays_in_shared_memory_are_solved_and_run(name, tmp_path):
    problem = load(Source("shared.swz", SKETCHES[name]))
    found = solutions(problem, limit=3)
    assert found
    code = lower(problem, found[0])
    assert sum(isinstance(one, Sync) for one in code.instructions) == len(code.staged) > 0
    assert not any(isinstance(one, Shuffle) for one in code.instructions)
    check_everywhere(problem, found, tmp_path)


def test_staged_inputs_have_ptx():
    problem = problem_of("polynomial_shared")
    text = check_ptx(problem, solutions(problem, limit=1))
    assert ".extern .shared" in text
    assert "bar.warp.sync" in text


def test_nothing_is_put_that_nobody_reads():
    text = """
        x: [8] = input
        l: [8] = \\i. x[i]
        t: [8] = shared(l)
        u: [8, 2] = \\i, k. k == 0 ? l[i] : t[7 - i]
        v: [8] = \\i. u[i, 0]
        goal v = \\i. x[i]
    """
    problem = load(Source("dead.swz", text))
    code = lower(problem, solutions(problem, limit=1)[0])
    assert code.staged == ()
    assert code.shared_elements == 0
    assert [type(one) for one in code.instructions] == [Load]


def test_costs_count_the_banks_of_every_access():
    problem = problem_of("crc_shared", s=4)
    (only,) = solutions(problem)
    code = lower(problem, only)
    price = cost(problem, only, code, ARCHITECTURES["sm_70"])
    lanes = np.arange(32)
    accesses = [
        evaluate(one.index, {"lane": lanes})
        for one in code.instructions
        if isinstance(one, Put) or (isinstance(one, Load) and one.memory == "tile")
    ]
    assert len(accesses) == 8
    assert price.bank_degree == max(bank_degree(one) for one in accesses) >= 4
    assert price.shared_cycles == sum(bank_degree(one) for one in accesses)


def test_a_device_function_takes_the_memory():
    problem = problem_of("crc_shared")
    code = lower(problem, solutions(problem, limit=1)[0], registers=True)
    text = print_cuda([code])
    assert "crc_shared_registers(const T (&given_loaded)[3], T *staged_tile, T (&result_turned)[3], int lane)" in text
    ptx = print_ptx([code])
    assert len(re.findall(r"st\.shared", ptx)) == 3
    assert ".extern .shared" not in ptx


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: the PTX of shared memory is not assembled here")
def test_ptxas_accepts_shared_memory(tmp_path):
    codes = []
    for number, name in enumerate(("crc_shared", "polynomial_shared")):
        problem = problem_of(name)
        codes.append(replace(lower(problem, solutions(problem, limit=1)[0]), name=f"k{number}"))
    path = tmp_path / "shared.ptx"
    path.write_text(print_ptx(codes))
    command = ["ptxas", "-arch=sm_80", "-o", str(tmp_path / "kernels.cubin"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_shared_takes_one_array():
    with pytest.raises(DiagnosticsError, match="takes one array, not 2"):
        load(Source("fault.swz", "x: [4] = input\ny: [4] = shared(x, x)\ngoal y = \\i. x[i]\n"))
