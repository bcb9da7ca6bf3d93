import ctypes
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.frontend import parse
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.llvm.leaf_ptx import leaf_ptx, load_places
from metafork.lowering.lowering import lower
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from metafork.strategies.llvm.register_pressure import PIPELINES as PRESSURE
from metafork.strategies.llvm.shuffle import STRATEGY
from metafork.strategies.strategy import Applied, NotApplied
from tests.runtime.compiling import needs_nvcc, succeed

JACOBI2D = Path("examples/jacobi2d.mf").resolve()
HEAT3D = Path("examples/heat3d.mf").resolve()
COUNTERS = ("threads_per_block", "registers_per_thread", "shared_memory", "global_loads")
STRATEGIES = ("cse1", "cse2", "granularity", "caching", "shuffle")
ELISION = ("gcc", "-Dmeta_for=for", "-Dmeta_schedule=", "-Dcache(...)=", "-std=gnu11", "-O1", "-ffp-contract=off")
FACTORS = (np.float32(0.5), np.float32(0.1), np.float32(0.025))

if shutil.which("ptxas") is None:
    warnings.warn("no ptxas on PATH: the PTX of shuffle leaves is not assembled by these tests", stacklevel=1)


def version(text, cached=None, ir_strategies=()):
    program = parse(Source("test.mf", text)).schedules[0].program
    return Version(program if cached is None else program.mapped(cached=cached), ir_strategies)


def stencil(body, arrays="const float a[N], float b[N]", types="int"):
    return f"""
void f({types} N, int B, {arrays}) {{
  int dim = (N + B - 1) / B;
  meta_schedule cache() {{
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {{
        int x = i * B + j;
        {body}
      }}
  }}
}}"""


@pytest.fixture(scope="module")
def jacobi2d():
    return version(JACOBI2D.read_text(), ())


@pytest.fixture(scope="module")
def kernel(jacobi2d):
    return lower(jacobi2d.program, "jacobi")


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    library = tmp_path_factory.mktemp("serial") / "serial.so"
    succeed([*ELISION, "-shared", "-fPIC", "-x", "c", JACOBI2D, "-o", library])
    return ctypes.CDLL(str(library)).jacobi2d


def image(rows, columns):
    return np.random.default_rng(rows * 1000 + columns).standard_normal((rows, columns), dtype=np.float32)


def expected(serial, rows, columns, block):
    a = image(rows, columns)
    b = np.zeros_like(a)
    serial(
        *map(ctypes.c_int, (rows, columns, *block)),
        *map(ctypes.c_float, FACTORS),
        a.ctypes.data_as(ctypes.c_void_p),
        b.ctypes.data_as(ctypes.c_void_p),
    )
    return b


def played(kernel, ptx, rows, columns, block, grid=None):
    """Run PTX on the picture; return what it writes and what was executed."""
    numbers = {"rows": rows, "columns": columns, "B0": block[0], "B1": block[1]}
    numbers |= {"down": -(-(rows - 2) // block[0]), "across": -(-(columns - 2) // block[1])}
    numbers |= dict(zip(("c0", "c1", "c2"), FACTORS, strict=True))
    memory = GlobalMemory()
    a, b = memory.upload(image(rows, columns)), memory.upload(np.zeros(rows * columns, np.float32))
    done = run_kernel(
        parse_ptx(ptx),
        "jacobi",
        grid=grid or (numbers["across"], numbers["down"], 1),
        block=(block[1], block[0], 1),
        args=[*(numbers[scalar.name] for scalar in kernel.scalars), a, b],
        memory=memory,
    )
    return memory.read(b, rows * columns, np.float32).reshape(rows, columns), done


def test_a_stencil_loads_once_a_row(jacobi2d):
    applied = STRATEGY.apply(jacobi2d, Analyses())
    assert isinstance(applied, Applied)
    assert applied.version == replace(jacobi2d, ir_strategies=(SHUFFLE,))
    assert applied.note.startswith(
        "6 loads became shuffles, proved by symbolic emulation, assuming signed-index; 3 loads"
    )


def test_it_takes_the_place_of_shared_memory(jacobi2d):
    cached = version(JACOBI2D.read_text(), ("a",))
    applied = STRATEGY.apply(cached, Analyses())
    assert isinstance(applied, Applied)
    assert applied.version == replace(jacobi2d, ir_strategies=(SHUFFLE,))
    assert applied.note.startswith("took a out of shared memory; ")


def test_it_is_idempotent(jacobi2d):
    again = STRATEGY.apply(replace(jacobi2d, ir_strategies=(SHUFFLE,)), Analyses())
    assert again == NotApplied("it is applied already")


@pytest.mark.parametrize("before", [(), PRESSURE[1:2], PRESSURE[2:]])
@pytest.mark.parametrize(
    ("rows", "columns", "block"),
    [
        (10, 66, (8, 32)),  # whole warps, whole blocks
        (21, 75, (8, 32)),  # the guard cuts through warps and rows of threads
        (9, 40, (2, 16)),  # two rows of threads a warp
        (12, 45, (5, 7)),  # rows that end inside a warp, a last warp of 3 threads
        (6, 95, (1, 40)),  # one whole warp and one of 8 threads
        (5, 9, (3, 1)),  # no neighbour in x at all
    ],
)
@pytest.mark.sampled(6)
def test_it_computes_what_the_serial_program_does(kernel, serial, before, rows, columns, block):
    code = leaf_ptx(kernel, (*before, SHUFFLE))
    result, done = played(kernel, code.text, rows, columns, block)
    np.testing.assert_array_equal(result.view(np.uint32), expected(serial, rows, columns, block).view(np.uint32))
    original, _ = played(kernel, code.plain, rows, columns, block)
    np.testing.assert_array_equal(result.view(np.uint32), original.view(np.uint32))
    assert "shfl" in done.executed


@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (1, 3, 1), (7, 9, 1)])
def test_launches_with_other_grids_are_right(kernel, serial, grid):
    rows, columns, block = 14, 75, (4, 32)
    result, _ = played(kernel, leaf_ptx(kernel, (SHUFFLE,)).text, rows, columns, block, grid)
    np.testing.assert_array_equal(result.view(np.uint32), expected(serial, rows, columns, block).view(np.uint32))


def test_a_whole_warp_makes_the_loads_that_are_counted(kernel):
    code = leaf_ptx(kernel, (SHUFFLE,))
    _, original = played(kernel, code.plain, 3, 34, (1, 32))
    _, done = played(kernel, code.text, 3, 34, (1, 32))
    assert original.lanes["ld.global"] == 9 * 32
    # Three for every lane; and the first and the last lane have a neighbour on one side only.
    assert done.lanes["ld.global"] == 3 * 32 + 3 * 2


def test_the_straight_way_is_apart_from_the_loops(kernel):
    code = leaf_ptx(kernel, (SHUFFLE,))
    outside, inside = load_places(code.plain)
    assert (len(outside), len(inside)) == (9, 9)
    assert {shuffle.span for shuffle in code.report.shuffles} < outside
    outside, inside = load_places(leaf_ptx(kernel, PRESSURE[:1]).plain)
    assert (len(outside), len(inside)) == (0, 9)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (stencil("if (x < N) b[x] = a[x] + 1;"), "no load has a source"),
        (
            stencil("if (x < N) b[x] = expf(a[x]) + a[x + 1];", "const float a[N + 1], float b[N]"),
            "no exact code for expf",
        ),
        (stencil("if (x < N) b[x] = a[x] + a[N - 1 - x];"), "no load has a source"),
        # Between the loads the kernel writes where the second may read.
        (
            stencil("if (x < N) { b[x] = b[x + 1]; b[x + 2] = b[x] + b[x + 3]; }", "float b[N + 3]"),
            "no load has a source",
        ),
        # Unsigned sums may wrap: the next lane's address need not be the next element's.
        (stencil("unsigned y = x + (unsigned)N; b[x] = a[(int)y] + a[(int)(y + 1)];"), "no load has a source"),
        (stencil("for (int k = 0; k < N; k++) b[x] += a[x + k] + a[x + k + 1];"), "loops of a thread"),
    ],
)
def test_it_refuses_what_is_not_proved(text, word):
    refused = STRATEGY.apply(version(text), Analyses())
    assert isinstance(refused, NotApplied)
    assert word in refused.reason


def test_doubles_go_through_two_shuffles():
    text = stencil("if (x < N) b[x] = a[x] + a[x + 1];", "const double a[N + 1], double b[N]")
    applied = STRATEGY.apply(version(text), Analyses())
    assert isinstance(applied, Applied)
    f = lower(applied.version.program, "f")
    code = leaf_ptx(f, applied.version.ir_strategies)
    assert code.text.count("shfl.sync") == 2
    for n, threads in ((64, 32), (77, 24), (50, 50)):
        memory = GlobalMemory()
        values = np.random.default_rng(n).standard_normal(n + 1)
        a, b = memory.upload(values), memory.allocate(8 * n)
        numbers = {"N": n, "B": threads, "dim": -(-n // threads)}
        arguments = [*(numbers[scalar.name] for scalar in f.scalars), a, b]
        run_kernel(parse_ptx(code.text), "f", (numbers["dim"],), (threads,), arguments, memory=memory)
        np.testing.assert_array_equal(memory.read(b, n, np.float64), values[:-1] + values[1:])


@pytest.mark.parametrize("block", [(2, 2, 8), (1, 3, 5), (2, 1, 33)])
def test_blocks_of_three_dimensions(block):
    program = parse(Source("heat3d.mf", HEAT3D.read_text())).schedules[0].program.mapped(cached=())
    applied = STRATEGY.apply(Version(program), Analyses())
    assert isinstance(applied, Applied)
    assert "2 loads became shuffles" in applied.note
    heat = lower(program, "heat")
    code = leaf_ptx(heat, applied.version.ir_strategies)
    n = max(block) + 6
    values = np.random.default_rng(n).standard_normal((n, n, n))
    blocks = [(n - 2) // extent for extent in block]
    numbers = {"n": n, "c": 0.1, **dict(zip(("B0", "B1", "B2", "d0", "d1", "d2"), (*block, *blocks), strict=True))}
    results = []
    for text in (code.plain, code.text):
        memory = GlobalMemory()
        u, w = memory.upload(values), memory.upload(values)
        arguments = [*(numbers[scalar.name] for scalar in heat.scalars), u, w]
        done = run_kernel(parse_ptx(text), "heat", blocks[::-1], block[::-1], arguments, memory=memory)
        results.append((memory.read(w, n**3, np.float64).reshape(n, n, n), done.lanes["ld.global"]))
    (original, loads), (shuffled, fewer) = results
    z, y, x = (slice(1, 1 + count * extent) for count, extent in zip(blocks, block, strict=True))
    moved = [
        tuple(slice(s.start + d * (a == axis), s.stop + d * (a == axis)) for a, s in enumerate((z, y, x)))
        for axis in range(3)
        for d in (-1, 1)
    ]
    total = values[moved[0]]
    for place in moved[1:]:
        total = total + values[place]
    expected = values.copy()
    expected[z, y, x] = values[z, y, x] + 0.1 * (total - 6.0 * values[z, y, x])
    np.testing.assert_array_equal(original.view(np.uint64), expected.view(np.uint64))
    np.testing.assert_array_equal(shuffled.view(np.uint64), expected.view(np.uint64))
    # A warp that is not whole makes its loads as before.
    assert fewer < loads if np.prod(block) >= 32 else fewer == loads


@pytest.fixture(scope="module")
def result():
    return optimize(JACOBI2D, counters=COUNTERS, strategies=STRATEGIES, order="paper")


def test_the_tree_forks_into_shared_memory_and_shuffles(result):
    (tree,) = result.schedules
    leaves = {leaf.version.ir_strategies or leaf.version.program.mapping.cached: leaf for leaf in tree.leaves}
    assert set(leaves) == {("a",), (SHUFFLE,), ()}
    assert leaves[SHUFFLE,].version.program.mapping.cached == ()
    assert str(leaves[SHUFFLE,].counters["global_loads"].numerator) == "3"
    assert str(leaves["a",].counters["global_loads"].numerator) == "ceil1*ceil2"
    assert str(leaves[()].counters["global_loads"].numerator) == "9"
    # Rivals on the same machine: which of them is taken is for the target to say.
    definitions = {symbol.name: symbol for symbol in tree.derived}
    assert definitions["ceil1"].evaluate({"B0": 8}) * definitions["ceil2"].evaluate({"B1": 32}) == 4


def written(tmp_path):
    command = [Path(sys.executable).with_name("metafork"), "optimize", JACOBI2D, "-o", tmp_path / "out"]
    command += ["--order", "paper"]
    command += ["--counters", ",".join(COUNTERS), "--strategies", ",".join(STRATEGIES)]
    succeed([*command, "--emit", "ptx", "--target", "sm_86"])
    return tmp_path / "out"


@needs_nvcc
@pytest.mark.slow
def test_the_files_hold_the_ptx_and_compile(tmp_path):
    out = written(tmp_path)
    kernels = [path for path in (out / "leaves").glob("*.ptx") if "shfl.sync" in path.read_text()]
    assert len(kernels) == 1
    assert ".target sm_86" in kernels[0].read_text()
    device = (out / "jacobi2d.cu").read_text()
    assert device.count("static metafork_ptx ") == 1
    assert device.count("shfl.sync.") == 6
    command = ["nvcc", "-arch=sm_80", "-fmad=false", f"-I{out}", f"-I{out}/include", "-c", out / "jacobi2d.cu"]
    succeed([*command, "-o", tmp_path / "jacobi2d.o"])


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
@pytest.mark.parametrize("strategies", [(SHUFFLE,), (PRESSURE[1], SHUFFLE), (SHUFFLE, PRESSURE[2])])
def test_ptxas_takes_it(kernel, strategies, tmp_path):
    path = tmp_path / "jacobi.ptx"
    path.write_text(leaf_ptx(kernel, strategies).text)
    command = ["ptxas", "-v", "-arch=sm_80", str(path), "-o", str(tmp_path / "jacobi.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "0 bytes spill stores" in done.stderr
