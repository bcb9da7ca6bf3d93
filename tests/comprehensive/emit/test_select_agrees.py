"""The generated `select` and `variant`, compiled, against Python, at random points up to the extremes of 64 bits."""

import ctypes
import random
from pathlib import Path

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.selection import select
from metafork.runtime.machine import DEFAULT, FIELDS, SYMBOLS
from tests.runtime.compiling import CPLUSPLUS, WARNINGS, succeed
from tests.runtime.machine_structure import Machine

EXAMPLES = Path(__file__).parents[3] / "examples"
OPAQUE = """\
void masked(int n, int B, float a[n])
{
  int width = (n & 12) + B % 5;
  assert(width <= n);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < n / width; i++)
      meta_for (int j = 0; j < width; j++)
        a[i * width + j] = a[i * width + j] * 2;
  }
}
"""
UNSIGNED = """\
#include <stddef.h>
void rows(size_t m, size_t n, size_t B, const float a[m * n], float c[m * n])
{
  size_t d = n / B;
  meta_schedule cache(a) {
    meta_for (size_t i = 0; i < m; i++)
      meta_for (size_t g = 0; g < d; g++)
        meta_for (size_t v = 0; v < 1u; v++)
          meta_for (size_t u = 0; u < B; u++)
            c[(i + v) * n + g * B + u] = a[(i + v) * n + g * B + u];
  }
}
"""
COARSE = """\
void coarse(int n, int B, const float a[n][n], const float w[n], float c[n][n])
{
  meta_schedule cache() {
    meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < n / B; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        c[i * B + v][j * B + u] = a[i * B + v][j * B + u] * w[j * B + u];
  }
}
"""
INPUTS = {
    "coarse": lambda: COARSE,
    "rows": lambda: UNSIGNED,
    "narrow_rows": lambda: UNSIGNED.replace("size_t", "unsigned"),
    "matmul": (EXAMPLES / "matmul.mf").read_text,
    "jacobi1d": (EXAMPLES / "jacobi1d.mf").read_text,
    "blur": (EXAMPLES / "blur.mf").read_text,
    "fixed": (EXAMPLES / "matmul.mf").read_text,
    "masked": lambda: "#include <assert.h>\n" + OPAQUE,
}
LARGE = [2**31 - 1, 2**31, 2**32, 2**40 + 1, 2**62, 2**63 - 1]


def truncated_remainder(a, b):
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


@pytest.fixture(scope="module", params=INPUTS)
def compiled(request, tmp_path_factory):
    text = INPUTS[request.param]()
    varied = request.param == "coarse"
    result = optimize(
        text,
        counters=["threads_per_block", "shared_memory"],
        strategies=["granularity", "caching", *(["register_tile"] if varied else [])],
        machine="T=256,Z=512" if request.param == "fixed" else None,
        order="cost" if varied else "paper",
        static={"B": (8, 16)} if varied else None,
    )
    out = tmp_path_factory.mktemp(request.param)
    write_outputs(result, out)
    library = out / "select.so"
    flags = [*WARNINGS, "-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan", "-shared", "-fPIC"]
    name = result.unit.name
    succeed([*CPLUSPLUS, *flags, f"-I{out}", f"-I{out}/include", out / f"{name}.cu", "-o", library])
    return result, ctypes.CDLL(str(library))


def point(rng, names):
    def number():
        kind = rng.random()
        if kind < 0.85:
            return rng.choice([0, 1, 2, 3, 4, 7, 8, 12, 16, 24, 31, 32, 64, 100, 1000])
        return rng.choice(LARGE) if kind < 0.97 else -rng.randrange(1, 100)

    return {name: number() for name in names}


@pytest.mark.sampled(1)
def test_select_walks_the_tree(compiled):
    result, library = compiled
    rng = random.Random(5)
    for index, tree in enumerate(result.schedules):
        document = result.document.schedules[index]
        c_select = getattr(library, f"{tree.program.name}_select")
        c_variant = getattr(library, f"{tree.program.name}_variant")
        assert tree.opaque == (("width",) if tree.program.function == "masked" else ())
        names = [p.name for p in tree.program.parameters]
        fields = {symbol: field for field, symbol in SYMBOLS.items()}
        seen = set()
        for _ in range(4000):
            values = point(rng, names)
            machine = dict(DEFAULT.fields())
            for field in ("threads_per_block", "shared_words"):
                if rng.random() < 0.8:
                    machine[field] = rng.choice([0, 1, 16, 60, 100, 256, 1024, 5000, 2**62])
            symbols = {
                symbol: machine[fields.get(field, field)]
                for field, symbol in tree.machine.items()
                if symbol not in tree.fixed
            }
            opaque = {}
            if tree.opaque:
                opaque["width"] = (values["n"] & 12) + truncated_remainder(values["B"], 5)
            selection = select(document, {**values, **symbols, **opaque})
            if any(not -(2**63) < value < 2**63 for value in selection.derived.values()):
                continue
            c_machine = Machine(**{name: machine[name] for name in FIELDS})
            arguments = [ctypes.c_int64(values[name]) for name in names]
            chosen = c_select(ctypes.byref(c_machine), *arguments)
            assert chosen == selection.leaf, (values, machine)
            number = 0 if selection.variant is None else selection.variant.number
            if chosen:
                assert c_variant(ctypes.byref(c_machine), chosen, *arguments) == number, (values, machine)
            seen.add((chosen, number))
        assert seen == {(0, 0), *((leaf.id, one.number) for leaf in tree.leaves for one in leaf.variants)}
        for leaf in (0, len(tree.leaves) + 1):
            assert c_variant(ctypes.byref(c_machine), leaf, *arguments) == -1
