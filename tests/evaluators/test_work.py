from pathlib import Path
from random import Random

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.order import ByCost
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.work import work
from metafork.frontend import parse
from metafork.ir.kernel import Space
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.lowering.lowering import lower
from metafork.strategies.caching import STRATEGY as CACHING
from metafork.strategies.caching import with_cached_arrays
from metafork.strategies.strategy import Applied
from tests.evaluators.kernel_count import count_block

STENCIL3D = """
void f(int n, int B0, int B1, int B2, const float a[n][n][n], float b[n][n][n]) {
  int p = (n - 2) / B0, q = (n - 2) / B1, r = (n - 2) / B2;
  meta_schedule cache(a) {
    meta_for (int z0 = 0; z0 < p; z0++) meta_for (int y0 = 0; y0 < q; y0++) meta_for (int x0 = 0; x0 < r; x0++)
      meta_for (int z1 = 0; z1 < B0; z1++) meta_for (int y1 = 0; y1 < B1; y1++) meta_for (int x1 = 0; x1 < B2; x1++) {
        int z = z0 * B0 + z1 + 1, y = y0 * B1 + y1 + 1, x = x0 * B2 + x1 + 1;
        b[z][y][x] = a[z - 1][y][x] + a[z + 1][y][x] + a[z][y - 1][x] + a[z][y + 1][x] + a[z][y][x - 1] + a[z][y][x];
      }
  }
}
"""
STRIDED = """
void f(int n, int B, const float a[3 * n], float b[n]) {
  int dim = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < B; j++) {
      int p = i * B + j;
      b[p] = a[3 * p] + a[3 * p + 1] + a[3 * p + 2];
    }
  }
}
"""
HALVES = """
void f(int n, int B, const float a[2 * n], float b[n]) {
  int dim = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < B; j++) {
      int p = i * B + j;
      b[p] = a[p] + a[n + p];
    }
  }
}
"""


def versions(text, schedule=0):
    """A program's first version with the arrays of its clause in shared memory, and the one without."""
    analyses = Analyses()
    program = with_cached_arrays(parse(Source("test.mf", text)).schedules[schedule].program, analyses).program
    taken_out = CACHING.apply(Version(program), analyses)
    assert isinstance(taken_out, Applied)
    return Version(program), taken_out.version, analyses


TEXTS = {
    "copy": (Path("examples/transpose.mf").read_text(encoding="utf-8"), 0),
    "transposition": (Path("examples/transpose.mf").read_text(encoding="utf-8"), 1),
    "jacobi2d": (Path("examples/jacobi2d.mf").read_text(encoding="utf-8"), 0),
    "smooth": (Path("examples/smooth.mf").read_text(encoding="utf-8"), 0),
    "matmul": (Path("examples/matmul.mf").read_text(encoding="utf-8"), 0),
    "stencil3d": (STENCIL3D, 0),
    "strided": (STRIDED, 0),
    "halves": (HALVES, 0),
}
GOES_FIRST = {"copy", "jacobi2d", "smooth", "stencil3d", "halves"}
"""The programs whose kernel without shared memory is proved to do less."""


def point(name, random):
    """Numbers of a program's parameters, and a block away from the border of the data."""
    steps, rows, width = random.randint(1, 4), random.randint(1, 4), random.randint(1, 9)
    match name:
        case "copy" | "transposition":
            n = 3 * rows * width * steps
            sizes = {"N": n, "s": steps, "B0": rows, "B1": width}
            return {**sizes, "dim0": n // rows, "dim1": n // (width * steps)}, (1, 1, 0)
        case "jacobi2d":
            sizes = {"rows": 3 * rows + 2, "columns": 3 * width + 2, "B0": rows, "B1": width}
            return {**sizes, "down": 3, "across": 3}, (1, 1, 0)
        case "smooth":
            return {"n": 3 * steps * width + 2, "s": steps, "B": width, "blocks": 3}, (1, 0, 0)
        case "matmul":
            rows = random.randint(1, min(3, width * steps))
            n = 2 * rows * width * steps
            sizes = {"n": n, "B0": rows, "ub1": width, "s": steps}
            return {**sizes, "dim0": n // rows, "dim1": n // (width * steps)}, (1, 1, 0)
        case "stencil3d":
            n = 3 * rows * width * steps + 2
            sizes = {"n": n, "B0": rows, "B1": width, "B2": steps}
            return {**sizes, "p": 3 * width * steps, "q": 3 * rows * steps, "r": 3 * rows * width}, (1, 1, 1)
        case _:
            return {"n": 3 * width, "B": width, "dim": 3}, (1, 0, 0)


@pytest.mark.parametrize("name", TEXTS)
def test_counts_are_those_of_the_threads_of_a_block_at_random_points(name):
    kept, taken_out, analyses = versions(*TEXTS[name])
    first = ByCost(analyses, ()).precedence(taken_out, [kept]).first
    assert first == (name in GOES_FIRST)
    random = Random(name)
    for _ in range(3):
        numbers, block = point(name, random)
        done = []
        for version in (kept, taken_out):
            found = work(version, analyses)
            assert not isinstance(found, NotKnown)
            counted = count_block(lower(version.program, "k", analyses), numbers, block)
            assert found.global_memory.evaluate(numbers) == counted[Space.GLOBAL], numbers
            assert found.shared_memory.evaluate(numbers) == counted[Space.SHARED], numbers
            assert found.barriers.evaluate(numbers) == counted["barriers"], numbers
            assert found.fewest_sectors.evaluate(numbers) <= found.sectors.evaluate(numbers)
            done.append((found.total.evaluate(numbers), counted))
        (total_kept, counted_kept), (total_without, counted_without) = done
        if first:
            assert total_without < total_kept
            assert counted_without["sectors"] <= counted_kept["sectors"]


@pytest.mark.parametrize(("element", "whole"), [("char", 32), ("short", 16), ("float", 8), ("double", 4)])
@pytest.mark.parametrize(
    ("stride", "taken"), [("1", (1, 1)), ("3", (3, 3)), ("-3", (3, 3)), ("40", None), ("m", (1, None))]
)
def test_an_access_takes_its_stride_up_to_a_whole_sector(element, whole, stride, taken):
    """Sectors, in elements, that one thread's load takes at the least and at the most; ``None`` is a whole sector."""
    text = f"""
    void f(int n, int B, int m, const {element} a[n], {element} b[n]) {{
      int dim = n / B;
      meta_schedule cache() {{
        meta_for (int i = 0; i < dim; i++) meta_for (int j = 0; j < B; j++) b[i * B + j] = a[i + 999 + ({stride}) * j];
      }}
    }}"""
    analyses = Analyses()
    found = work(Version(parse(Source("test.mf", text)).schedules[0].program), analyses)
    assert not isinstance(found, NotKnown)
    [(most, fewest)] = [(most, fewest) for name, most, fewest in found.arrays if name == "a"]
    least, greatest = (whole if one is None else one for one in taken or (None, None))
    assert (fewest.evaluate({"B": 1}), most.evaluate({"B": 1})) == (least, greatest)
