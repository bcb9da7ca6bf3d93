"""--fma: the CPU build of every leaf, the host file's serial code and LLVM's PTX compute the same bits, of one rule."""

import os
import re
from fractions import Fraction

import numpy as np
import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit import rendered_files, write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.lowering.lowering import lower
from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse as parse_ptx
from tests.runtime.compiling import succeed

TEXT = """
void update(int n, int B, float w, const float a[n], float b[n], double d[n], int k[n])
{
  int blocks = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        b[p] = a[p] * b[p] - w * w;
        b[p] += a[p] * a[p];
        d[p] = 1 - d[p] * d[p];
        d[p] -= d[p] * a[p] + k[p];
        k[p] = k[p] * 3 + 1;
      }
  }
}
"""
PRAGMA = f"#pragma STDC FP_CONTRACT ON{TEXT}"
SIZE, BLOCK, WEIGHT = 96, 32, np.float32(1.1)
MAIN = """
#include <stdio.h>
#include "NAME.h"
int main(void) {
  static float a[96], b[96];
  static double d[96];
  static int k[96];
  for (int i = 0; i < 96; i++) {
    a[i] = 1 + 1.0f / (i + 3), b[i] = 1 + 1.0f / (2 * i + 1), d[i] = 1 + 1.0 / (i + 1.5), k[i] = i;
  }
  update(96, 32, 1.1f, a, b, d, k);
  for (int i = 0; i < 96; i++) printf("%a %a %d\\n", b[i], d[i], k[i]);
  return 0;
}
"""


def initial():
    """The arrays of the main program."""
    i = np.arange(SIZE)
    one, thirds, odd = np.float32(1), (i + 3).astype(np.float32), (2 * i + 1).astype(np.float32)
    return one + one / thirds, one + one / odd, 1 + 1.0 / (i + 1.5), i.astype(np.int32)


def expected(fused):
    """What the program means, by rationals where an operation is fused."""
    rows = []
    for a, b, d, k in zip(*initial(), strict=True):
        a, w = np.float32(a), WEIGHT
        if fused:
            b = single(Fraction(float(a)) * Fraction(float(b)) - Fraction(float(w * w)))
            b = single(Fraction(float(a)) * Fraction(float(a)) + Fraction(float(b)))
            d = float(1 - Fraction(float(d)) * Fraction(float(d)))
            inner = float(Fraction(d) * Fraction(float(a)) + int(k))
        else:
            b = np.float32(a * np.float32(b) - w * w)
            b = np.float32(b + a * a)
            d = 1 - float(d) * float(d)
            inner = d * float(a) + int(k)
        rows.append((float(b), d - inner, int(k) * 3 + 1))
    return rows


def single(exact):
    """A rational to the nearest float: these are far from ties between doubles."""
    return np.float32(float(exact))


@pytest.fixture(scope="module", params=["--fma", "plain"])
def built(request, tmp_path_factory):
    """A program with its host file, and the result that it is made of; and whether it is fused."""
    out = tmp_path_factory.mktemp("fused")
    result = optimize(TEXT, fma=request.param == "--fma", order="paper")
    write_outputs(result, out)
    name = result.unit.name
    (out / "main.c").write_text(MAIN.replace("NAME", name))
    flags = ["-O1", "-ffp-contract=off", "-DMETAFORK_CPU", f"-I{out}", f"-I{out}/include"]
    succeed(["g++", "-std=c++17", "-Wall", "-Werror", *flags, "-x", "c++", "-c", out / f"{name}.cu", "-o", out / "k.o"])
    for source in (f"{name}_host.c", "main.c"):
        succeed(["gcc", "-std=gnu11", *flags, "-c", out / source, "-o", out / f"{source}.o"])
    succeed(["g++", out / "k.o", out / f"{name}_host.c.o", out / "main.c.o", "-o", out / "main"])
    return result, out / "main", request.param != "plain"


def printed(program, machine):
    """The rows that a program prints, and what it says of its launches."""
    done = succeed([program], env={**os.environ, "METAFORK_TRACE": "1", "METAFORK_MACHINE": machine})
    rows = [line.split() for line in done.stdout.splitlines()]
    return [(float.fromhex(b), float.fromhex(d), int(k)) for b, d, k in rows], done.stderr


@pytest.mark.parametrize(
    ("machine", "said"),
    [("", "leaf 1 "), ("Z=0", "leaf "), ("RB=800,R=40", "leaf "), ("T=1", "the serial code runs")],
)
@pytest.mark.sampled(3)
def test_leaves_and_serial_code_compute_the_same(built, machine, said):
    _, program, fused = built
    rows, trace = printed(program, machine)
    assert said in trace
    assert rows == expected(fused)


def test_fusing_makes_a_difference():
    different = [one != other for one, other in zip(expected(True), expected(False), strict=True)]
    assert sum(different) > SIZE / 2


def test_llvms_ptx_computes_the_same(built):
    result, _, fused = built
    (tree,) = result.schedules
    for leaf in tree.leaves:
        kernel = lower(leaf.version.program, "update", Analyses())
        ptx = leaf_ptx(kernel, leaf.version.ir_strategies).text
        assert ("fma.rn.f32" in ptx, "fma.rn.f64" in ptx) == (fused, fused)
        memory = GlobalMemory()
        a, b, d, k = initial()
        arrays = {"a": memory.upload(a), "b": memory.upload(b), "d": memory.upload(d), "k": memory.upload(k)}
        numbers = {"n": SIZE, "B": BLOCK, "w": WEIGHT, "blocks": SIZE // BLOCK}
        arguments = [numbers[scalar.name] for scalar in kernel.scalars] + [
            arrays[one.name] for one in kernel.memories if one.name in arrays
        ]
        run_kernel(
            parse_ptx(ptx),
            "update",
            grid=(SIZE // BLOCK, 1, 1),
            block=(BLOCK, 1, 1),
            args=arguments,
            memory=memory,
            shared_bytes=4 * BLOCK,
        )
        got = zip(
            memory.read(arrays["b"], SIZE, np.float32).tolist(),
            memory.read(arrays["d"], SIZE, np.float64).tolist(),
            memory.read(arrays["k"], SIZE, np.int32).tolist(),
            strict=True,
        )
        assert list(got) == expected(fused)


def test_the_pragma_does_what_the_option_does():
    counters = ["threads_per_block"]
    by_option, by_pragma, plain = (
        rendered_files(optimize(text, fma=fma, counters=counters, strategies=[]))
        for text, fma in ((TEXT, True), (PRAGMA, False), (TEXT, False))
    )
    line = re.compile(r".*(?:GENERATION|different runs).*\n|#pragma STDC FP_CONTRACT ON")
    for name in ("input.cu", "input_host.c"):
        assert line.sub("", by_option[name]) == line.sub("", by_pragma[name])
        assert ("fmaf(" in by_option[name], "fmaf(" in plain[name]) == (True, False)


@pytest.mark.slow
def test_verify_holds_leaves_against_the_fused_program():
    options = Options(points=3, races=False, optimization="-O0", dataflow_seconds=0)
    found = verify(TEXT, fma=True, counters=["threads_per_block"], strategies=["cse1"], options=options, machine="all")
    assert [failure.text() for failure in found.failures] == []
    assert found.passed
