import re
import shutil
import subprocess

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import Binary, Choose, Compare, Name, Number, evaluate
from metafork.swizzle.output.instructions import Load, NotLowerableError, Shuffle, Store, ThreadCode
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_llvm import print_llvm, print_ptx, usual_element
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import expected, problem_of, random_tiles

PROBLEMS = [
    ("crc", {"s": 3}),
    ("crc", {"s": 5}),
    ("stencil1d", {"k": 3}),
    ("conv1d", {"k": 3}),
    ("sum", {"s": 2}),
    # Groups of 4 and 16 threads: several tiles a warp.
    ("polynomial", {}),
    ("stencil2d", {}),
]
NAMES = ["-".join([name, *map(str, constants.values())]) for name, constants in PROBLEMS]
# One full warp, then several blocks of which the last are partly idle.
SHAPES = [(1, 32, 1.0), (3, 96, 0.7), (5, 64, 1.0)]
DTYPES = {ScalarType.FLOAT: np.float32, ScalarType.INT: np.int32}


def codes_of(problem, limit=3):
    found = solutions(problem, limit=limit)
    return [replace(lower(problem, one), name=f"k{number}") for number, one in enumerate(found)]


def launch(text, name, arrays, size, tiles, blocks, threads, dtype):
    memory = GlobalMemory()
    inputs = [memory.upload(array.astype(dtype)) for array in arrays]
    out = memory.upload(np.full(tiles * size + 8, 12345, dtype=dtype))
    run_kernel(parse(text), name, (blocks,), (threads,), [*inputs, out, tiles], memory=memory)
    result = memory.read(out, tiles * size + 8, dtype)
    assert (result[tiles * size :] == 12345).all(), "wrote past the last tile"
    return result[: tiles * size]


def check(problem, codes, element):
    text = print_ptx(codes, element)
    for code in codes:
        for blocks, threads, part in SHAPES:
            tiles = max(1, int(blocks * threads // code.lanes * part))
            arrays, values = random_tiles(problem, tiles, blocks)
            # Small integers: exact as floating-point numbers too.
            want = expected(problem, values, tiles)
            got = launch(text, code.name, arrays, code.output_size, tiles, blocks, threads, DTYPES[element])
            assert np.array_equal(got, want), (code.name, blocks, threads)
    return text


@pytest.mark.parametrize("element", [ScalarType.FLOAT, ScalarType.INT], ids=["float", "int"])
@pytest.mark.parametrize(("name", "constants"), PROBLEMS, ids=NAMES)
@pytest.mark.sampled(5)
def test_ptx_computes_the_specification(name, constants, element):
    problem = problem_of(name, **constants)
    codes = codes_of(problem)
    text = check(problem, codes, element)
    kept = len(re.findall(r"shfl\.sync\.idx\.b32", text))
    assert kept == sum(isinstance(one, Shuffle) for code in codes for one in code.instructions)
    # A transposition from memory to memory leaves its lane movements to loads and stores.
    assert (kept == 0) == (name == "crc")
    assert "fma" not in text


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: the PTX of swizzles is not assembled here")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptxas_accepts_the_kernels(target, tmp_path):
    codes = []
    for number, (name, constants) in enumerate(PROBLEMS):
        problem = problem_of(name, **constants)
        codes.append(replace(lower(problem, solutions(problem, limit=1)[0]), name=f"{name}_{number}"))
    for element in DTYPES:
        path = tmp_path / f"{element.name}.ptx"
        path.write_text(print_ptx(codes, element, target))
        command = ["ptxas", f"-arch={target}", "-v", "-o", str(tmp_path / "kernels.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("0 bytes spill stores") == len(codes)


def test_bits_are_combined_in_integers_only():
    text = "x: [32 * 4] = input\nv: [32, 4] = \\i, j. x[i + 32 * j]\nout: [32] = fold(^)(v)\n"
    text += "goal out = spec { for i < 32 { for j < 4 { out[i] ^= x[i + 32 * j]; } } }\n"
    problem = load(Source("bits.swz", text), {})
    codes = codes_of(problem)
    assert usual_element(codes) is ScalarType.INT
    (code,) = codes
    arrays, _ = random_tiles(problem, 2)
    got = launch(print_ptx(codes, ScalarType.INT), code.name, arrays, 32, 2, 1, 64, np.int32)
    assert np.array_equal(got, np.bitwise_xor.reduce(arrays[0].reshape(2, 4, 32), axis=1).ravel())
    with pytest.raises(NotLowerableError, match="combines bits"):
        print_llvm(codes)


def index_as_lane(index):
    """A code whose threads shuffle from the lane that an index names."""
    problem = problem_of("crc", s=3)
    inputs = lower(problem, solutions(problem, limit=1)[0]).inputs
    instructions = (Load(inputs[0].name, Name("lane"), None), Shuffle(0, index))
    return ThreadCode("k", 32, inputs, 32, instructions, (Store(Name("lane"), 1),))


LANE = Name("lane")
INDICES = [
    Binary("%", Binary("-", Number(5), LANE), Number(32)),
    Binary("+", Binary("/", Binary("-", LANE, Number(20)), Number(7)), Number(3)),
    Binary("/", Number(31), Binary("+", LANE, Number(1))),
    Binary("^", LANE, Number(21)),
    Choose(Compare("&&", Compare(">", LANE, Number(3)), Binary("%", LANE, Number(4))), Number(2), LANE),
    Choose(Compare("||", Compare("<=", LANE, Number(3)), Compare("!=", LANE, Number(9))), Number(7), Number(1)),
]


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_indices_mean_what_evaluate_says(index):
    code = index_as_lane(index)
    source = np.random.default_rng(1).integers(-99, 99, size=96).astype(np.int32)
    lanes = np.broadcast_to(evaluate(index, {"lane": np.arange(32)}), 32)
    assert len(set(lanes.tolist())) > 1
    got = launch(print_ptx([code], ScalarType.INT), "k", [source], 32, 1, 1, 32, np.int32)
    assert np.array_equal(got, source[lanes])


def test_a_divisor_that_may_be_zero_is_refused():
    with pytest.raises(NotLowerableError, match="positive constant"):
        print_llvm([index_as_lane(Binary("/", Number(31), LANE))])


def test_wide_groups_and_wide_elements_are_refused():
    wide = problem_of("crc", s=3, n=64)
    with pytest.raises(NotLowerableError, match="64 threads do not fit"):
        print_llvm(codes_of(wide, 1))
    crc = codes_of(problem_of("crc", s=3), 1)
    with pytest.raises(NotLowerableError, match="double is not that"):
        print_llvm(crc, ScalarType.DOUBLE)
