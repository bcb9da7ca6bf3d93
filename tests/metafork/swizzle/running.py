"""Compile generated code and run it on random tiles against the goal's terms."""

import ctypes
import shutil
import subprocess
import uuid
from math import prod
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.problem import Literal
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_c import print_c
from metafork.swizzle.output.print_cuda import print_cuda
from metafork.swizzle.output.print_llvm import print_ptx, usual_element
from metafork.swizzle.search.search import Search

ROOT = Path(__file__).parents[3]
UNTOUCHED = 12345
DTYPES = {ScalarType.FLOAT: np.float32, ScalarType.INT: np.int32}
EXAMPLES = ROOT / "examples" / "swizzle"


def problem_of(name, **constants):
    path = EXAMPLES / f"{name}.swz"
    return load(Source(str(path), path.read_text()), constants)


def all_solutions(problem, **options):
    return list(Search(problem, **options))


def compiled(text, suffix, folder, *flags):
    stem = f"code_{uuid.uuid4().hex}"
    path = folder / f"{stem}{suffix}"
    path.write_text(text)
    compiler = shutil.which("g++" if suffix == ".cpp" else "gcc")
    library = folder / f"{stem}.so"
    include = f"-I{ROOT / 'metafork' / 'runtime' / 'include'}"
    command = [
        compiler,
        "-O0",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        include,
        *flags,
        str(path),
        "-o",
        library,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def inputs_of(problem):
    return [one for one in problem.statements if isinstance(one, Literal) and one.is_input]


def random_tiles(problem, tiles, seed=0):
    """Arrays as the kernel sees them, and for each input the elements of each tile."""
    generator = np.random.default_rng(seed)
    arrays, values = [], {}
    for literal in inputs_of(problem):
        size = prod(literal.shape)
        array = generator.integers(-50, 50, size=literal.step * (tiles - 1) + size, dtype=np.int64)
        arrays.append(array)
        at = literal.step * np.arange(tiles)[:, None] + np.arange(size)[None, :]
        values |= {int(term): array[at[:, cell]] for cell, term in enumerate(literal.terms)}
    return arrays, values


def expected(problem, values, tiles):
    """The output of all tiles; places that no goal goes to keep what stood there."""
    result = np.full((tiles, problem.output_size), UNTOUCHED, dtype=np.int64)
    for place, term in zip(problem.positions(), problem.goal_terms, strict=True):
        result[:, place] = problem.terms.evaluate(int(term), values)
    return result.ravel()


def check_cuda(problem, solutions, folder, shapes=((1, 64, 1.0), (3, 96, 0.7))):
    """Run every solution's kernel for full and partly used blocks, odd numbers of blocks included."""
    codes = [lower(problem, solution) for solution in solutions]
    named = [type(code)(f"{code.name}_{n}", code.lanes, *_rest(code)) for n, code in enumerate(codes)]
    count = len(inputs_of(problem))
    parameters = ", ".join(f"const long long *a{n}" for n in range(count))
    passed = ", ".join(f"a{n}" for n in range(count))
    text = print_cuda(named)
    for code in named:
        text += (
            f'\nextern "C" void run_{code.name}({parameters}, long long *out, long long tiles, unsigned blocks, '
            "unsigned threads) {\n"
            f'  metafork_cpu::launch("{code.name}", dim3{{blocks, 1, 1}}, dim3{{threads, 1, 1}}, '
            f"{code.shared_elements} * (threads / {code.lanes}) * 8,\n"
            f"                       [=] {{ {code.name}<long long>({passed}, out, tiles); }});\n}}\n"
        )
    library = compiled(text, ".cpp", folder)
    size = problem.output_size
    for blocks, threads, part in shapes:
        tiles = max(1, int(blocks * threads // named[0].lanes * part))
        arrays, values = random_tiles(problem, tiles, blocks)
        want = expected(problem, values, tiles)
        for code in named:
            out = np.full(tiles * size + 8, UNTOUCHED, dtype=np.int64)
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
            getattr(library, f"run_{code.name}")(*pointers, ctypes.c_longlong(tiles), blocks, threads)
            assert np.array_equal(out[: tiles * size], want), code.name
            assert (out[tiles * size :] == UNTOUCHED).all(), "wrote past the last tile"
    return codes


def _rest(code):
    return code.inputs, code.output_size, code.instructions, code.stores, code.given, code.results, code.staged


def check_c(problem, solutions, folder):
    names = [(f"{problem.name}_{number}", solution) for number, solution in enumerate(solutions)]
    library = compiled(print_c(problem, names), ".c", folder, "-DSWIZZLE_TYPE=long long")
    arrays, values = random_tiles(problem, 1, 7)
    want = expected(problem, values, 1)
    for name, _ in names:
        out = np.full(want.size, UNTOUCHED, dtype=np.int64)
        getattr(library, name)(*(ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)))
        assert np.array_equal(out, want), name


def check_ptx(problem, found, tiles=3):
    """Run the PTX of solutions in the interpreter on small integers, which are exact in both element types."""
    codes = [replace(lower(problem, one), name=f"k{number}") for number, one in enumerate(found)]
    element = usual_element(codes)
    text = print_ptx(codes, element)
    arrays, values = random_tiles(problem, tiles, 3)
    want = expected(problem, values, tiles)
    for code in codes:
        memory = GlobalMemory()
        inputs = [memory.upload(array.astype(DTYPES[element])) for array in arrays]
        out = memory.upload(np.full(want.size + 8, UNTOUCHED, dtype=DTYPES[element]))
        run_kernel(
            parse(text),
            code.name,
            (2,),
            (64,),
            [*inputs, out, tiles],
            memory=memory,
            shared_bytes=4 * code.shared_elements * (64 // code.lanes),
        )
        result = memory.read(out, want.size + 8, DTYPES[element])
        assert np.array_equal(result[: want.size], want), code.name
        assert (result[want.size :] == UNTOUCHED).all()
    return text


def check_everywhere(problem, found, folder):
    check_cuda(problem, found, folder)
    check_c(problem, found, folder)
    check_ptx(problem, found)
