"""Device functions that take and give registers, called from kernels written here."""

import ctypes
import json

import numpy as np
import pytest
from click.testing import CliRunner

from metafork.comprehensive.commands.swizzle import command
from metafork.ir.messages.source import Source
from metafork.llvm.ptx_target import emit_ptx, optimize
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.problem import execute, hole_table
from metafork.swizzle.model.terms import ZERO
from metafork.swizzle.output.instructions import NotLowerableError
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_cuda import print_cuda
from metafork.swizzle.output.print_llvm import print_llvm, usual_element
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import DTYPES, EXAMPLES, compiled, inputs_of, problem_of

THREADS = 64
# What a caller gives where the sketch reads zero: it must not matter.
GARBAGE = 777

PLAIN = """
    x: [8] = input
    a: [8] = x + ?exchange{axis=0}(x)
    b: [8] = a + ?exchange{axis=0}(a)
    goal a = \\i. x[i] + x[i ^ 1]
    goal b = \\i. sum(j < 4) x[i / 4 * 4 + j]
"""


def problems():
    yield "crc", problem_of("crc", s=3)
    yield "stencil1d", problem_of("stencil1d", k=3)
    yield "conv1d", problem_of("conv1d", k=3)
    yield "stencil2d", problem_of("stencil2d")
    yield "finite_field", problem_of("finite_field", w=8, level=3)
    yield "two results", load(Source("plain.swz", PLAIN))


def by_lane(problem, cells, shape):
    """Registers by thread: the first thread axis runs fastest."""
    axes = cells.reshape(*shape[: problem.warp], -1)
    return axes.transpose(*reversed(range(problem.warp)), problem.warp).reshape(-1, axes.shape[-1])


def registers(problem, solution, code, dtype):
    """For every group of threads random symbols: the arrays given, and the registers that must come out."""
    choice = {hole.name: hole_table(hole, solution.options[hole.name]) for hole in problem.holes()}
    arrays = execute(problem, choice)
    random = np.random.default_rng(5)
    given = {name: [] for name, _ in code.given}
    wanted = []
    for _ in range(THREADS // code.lanes):
        values = {int(term): int(random.integers(-9, 9)) for one in inputs_of(problem) for term in one.terms}
        for name in given:
            terms = by_lane(problem, arrays[name], problem.statement(name).shape)
            given[name].append([[GARBAGE if term == ZERO else values[term] for term in row] for row in terms.tolist()])
        parts = [by_lane(problem, goal.terms, problem.statement(goal.array).shape) for goal in problem.goals]
        rows = np.concatenate(parts, axis=1).tolist()
        wanted.append([[problem.terms.evaluate(term, values) for term in row] for row in rows])
    flat = [np.array(rows, dtype=dtype).ravel() for rows in given.values()]
    return flat, np.array(wanted, dtype=dtype).ravel()


@pytest.mark.parametrize(("name", "problem"), list(problems()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_kernel_calls_the_cuda_function(name, problem, tmp_path):
    (solution,) = solutions(problem, limit=1)
    code = lower(problem, solution, registers=True)
    assert not code.inputs
    counts = [count for _, count in code.given]
    total = sum(count for _, count in code.results)
    text = print_cuda([code]) + "template <typename T>\n__global__ void driver("
    text += "".join(f"const T *in{n}, " for n in range(len(counts))) + "T *out) {\n"
    text += f"  const int lane = threadIdx.x % {code.lanes};\n"
    for n, count in enumerate(counts):
        text += f"  T given{n}[{count}];\n  for (int r = 0; r < {count}; r++) "
        text += f"given{n}[r] = in{n}[threadIdx.x * {count} + r];\n"
    for n, (_, count) in enumerate(code.results):
        text += f"  T result{n}[{count}];\n"
    passed = [f"given{n}" for n in range(len(counts))] + [f"result{n}" for n in range(len(code.results))]
    text += f"  {code.name}<T>({', '.join(passed)}, lane);\n  int at = threadIdx.x * {total};\n"
    for n, (_, count) in enumerate(code.results):
        text += f"  for (int r = 0; r < {count}; r++) out[at++] = result{n}[r];\n"
    text += "}\n" + 'extern "C" void run(' + "".join(f"const long long *in{n}, " for n in range(len(counts)))
    text += 'long long *out) {\n  metafork_cpu::launch("driver", dim3{1, 1, 1}, '
    text += f"dim3{{{THREADS}, 1, 1}}, 0, [=] {{ driver<long long>("
    text += "".join(f"in{n}, " for n in range(len(counts))) + "out); });\n}\n"
    given, wanted = registers(problem, solution, code, np.int64)
    out = np.zeros_like(wanted)
    compiled(text, ".cpp", tmp_path).run(*(ctypes.c_void_p(one.ctypes.data) for one in (*given, out)))
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize(("name", "problem"), list(problems()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_kernel_calls_the_function_of_the_ir(name, problem):
    (solution,) = solutions(problem, limit=1)
    code = lower(problem, solution, registers=True)
    element = usual_element([code])
    spelled = "float" if DTYPES[element] is np.float32 else "i32"
    values = [(n, r, count) for n, (_, count) in enumerate(code.given) for r in range(count)]
    total = len(code.stores)
    kind = "{" + ", ".join([spelled] * total) + "}"
    body = [f"  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %lane = urem i32 %t, {code.lanes}"]
    for n, r, count in values:
        at = f"{n}_{r}"
        body += [f"  %m{at} = mul i32 %t, {count}", f"  %a{at} = add i32 %m{at}, {r}",
                 f"  %p{at} = getelementptr {spelled}, ptr addrspace(1) %in{n}, i32 %a{at}",
                 f"  %v{at} = load {spelled}, ptr addrspace(1) %p{at}"]  # fmt: skip
    passed = ", ".join([*(f"{spelled} %v{n}_{r}" for n, r, _ in values), "i32 %lane"])
    body += [f'  %s = call {kind} @"{code.name}"({passed})', f"  %base = mul i32 %t, {total}"]
    for r in range(total):
        body += [f"  %r{r} = extractvalue {kind} %s, {r}", f"  %o{r} = add i32 %base, {r}",
                 f"  %q{r} = getelementptr {spelled}, ptr addrspace(1) %out, i32 %o{r}",
                 f"  store {spelled} %r{r}, ptr addrspace(1) %q{r}"]  # fmt: skip
    parameters = "".join(f"ptr addrspace(1) %in{n}, " for n in range(len(code.given)))
    text = print_llvm([code], element) + "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    text += f"define ptx_kernel void @driver({parameters}ptr addrspace(1) %out) {{\n" + "\n".join(body)
    text += "\n  ret void\n}\n"
    ptx = emit_ptx(optimize(text, target="sm_80"), "sm_80")
    given, wanted = registers(problem, solution, code, DTYPES[element])
    memory = GlobalMemory()
    inputs = [memory.upload(one) for one in given]
    out = memory.upload(np.zeros_like(wanted))
    run_kernel(parse(ptx), "driver", (1,), (THREADS,), [*inputs, out], memory=memory)
    assert np.array_equal(memory.read(out, wanted.size, DTYPES[element]), wanted)


def run(*arguments):
    return CliRunner().invoke(command, [str(one) for one in arguments])


def test_the_command_prints_them():
    cuda = run(EXAMPLES / "crc.swz", "--emit", "cuda", "--registers")
    assert cuda.exit_code == 0, cuda.output
    assert "void crc_registers(const T (&given_loaded)[3], T (&result_r3)[3], int lane)" in cuda.output
    assert "__global__" not in cuda.output
    ptx = run(EXAMPLES / "crc.swz", "--emit", "ptx", "--registers")
    assert ".func" in ptx.output
    assert ".entry" not in ptx.output
    document = json.loads(run(EXAMPLES / "crc.swz", "--emit", "json", "--registers").output)
    code = document["solutions"][0]["code"]
    assert code["given"] == [{"name": "loaded", "registers": 3}]
    assert code["results"] == [{"name": "r3", "registers": 3}]
    several = run(EXAMPLES / "crc.swz", "--all", "--emit", "cuda", "--registers").output
    assert several.count("__device__") == 2
    assert "crc_1_registers" in several
    assert run(EXAMPLES / "crc.swz", "--emit", "c", "--registers").exit_code == 2


def test_vector_registers_are_no_threads_registers():
    problem = problem_of("hvx_gaussian")
    with pytest.raises(NotLowerableError):
        lower(problem, solutions(problem, limit=1)[0], registers=True)
