"""``--jit`` with the CUDA back end: the text that NVRTC gets is compiled by g++, and runs on the processor.

Stand-ins are the runtime (``cuda/cuda_runtime.h``) and NVRTC, which answers with the path of a shared object.
"""

import re
import subprocess
from pathlib import Path

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.target import with_jit
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.driver import (
    ELISION_FLAGS,
    SERIAL_PREFIX,
    SUPPORT_DIRECTORY,
    driver_text,
    point_line,
    reference_text,
)
from metafork.ir.messages.source import Source
from tests.comprehensive.emit.targets.nvrtc import nvrtc
from tests.comprehensive.emit.targets.standin import LATE
from tests.runtime.compiling import needs_nvcc, succeed

HERE = Path(__file__).parent
STANDIN = (
    f"-I{HERE / 'cuda'}", f"-I{HERE}", f"-I{LATE}", "-Imetafork/runtime/include", "-include", "cuda_runtime.h"
)  # fmt: skip
CXX = ("-std=c++17", "-O0", "-D__CUDACC__", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
TEXT = """
void own(int n, short s, unsigned B, long long K, const float x[n], float y[n], unsigned char h[8])
{
  int tile = B * s;
  int blocks = n / tile;
  meta_static(K: 9) meta_schedule cache(x) {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < s; k++) {
          int p = i * tile + k * B + u;
          float v = x[p];
          for (long long z = 0; z < K; z++)
            v = v > 60 ? INFINITY : v * 0.75f + K / 2 + tile;
          y[p] = v;
          meta_atomic h[p % 8] += 1;
        }
  }
}
"""
LAUNCH = """
static const hip_standin::kernel whole({name}), large({name}_large);
extern "C" bool standin_launch(const char *name, dim3 grid, dim3 block, int64_t shared_bytes, void **arguments) {{
  const void *const function = strcmp(name, "{name}") == 0 ? (const void *){name} : (const void *){name}_large;
  return metafork_cpu::launch(name, grid, block, shared_bytes, hip_standin::kernels()[function](arguments).run);
}}
"""


def by_gxx(folder):
    """Compile texts to shared objects, each text once, and answer with their paths."""

    def compiled(name, values, text, header):
        own = folder / "_".join([name, *map(str, values.values())])
        if (own / "kernel.so").exists():
            return str(own / "kernel.so")
        (own / "metafork").mkdir(parents=True)
        (own / "metafork" / "device.h").write_text(header)
        (own / "kernel.cpp").write_text(text + LAUNCH.format(name=name))
        succeed(["g++", *CXX, f"-I{own}", *STANDIN, "-shared", "-fPIC", own / "kernel.cpp", "-o", own / "kernel.so"])
        return str(own / "kernel.so")

    return compiled


DEVICES = """
#include "own.h"
#include <stdio.h>
int choose_device(int device);
int main(void) {
  for (int device = 0; device < 3; device++) {
    float x[128] = {0}, y[128] = {0};
    unsigned char h[8] = {0};
    metafork_machine machine;
    choose_device(device);
    own(128, 2, 8, 5, x, y, h);
    if (y[127] == 0 || h[7] != 16 || metafork_machine_query(device, &machine) != 0) return 1;
    printf("%d %d\\n", (int)machine.compute_capability, (int)machine.registers_per_thread);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """What answers for NVRTC."""
    return by_gxx(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A program of many types, with its driver."""
    folder = tmp_path_factory.mktemp("own")
    way = with_jit(CUDA, allow_fma=False)
    options = {"counters": ("shared_memory",), "strategies": ("granularity",), "static": {"K": (9,)}, "order": "paper"}
    result = optimize(Source("own.mf", "#include <math.h>\n" + TEXT), **options)
    texts = LeafTexts(result.analyses, None, way)
    write_outputs(result, folder, code_of=texts.code_of, target=way)
    kernels = [one.kernel for leaf in result.schedules[0].leaves for one in leaf.variants]
    table = "".join(
        f"static const hip_standin::kernel k{number}({kernel});\n"
        for number, kernel in enumerate(text for one in kernels for text in (one, f"{one}_large"))
    )
    choose = 'extern "C" int choose_device(int device) { return hipSetDevice(device); }\n'
    (folder / "device.cpp").write_text(f'#include "own.cu"\n{table}{choose}')
    (folder / "devices.c").write_text(DEVICES)
    (folder / "reference.c").write_text(reference_text(result.unit))
    (folder / "driver.c").write_text(driver_text(result.unit, result.unit.functions[0]))
    include = (f"-I{folder}", f"-I{folder}/include", f"-I{SUPPORT_DIRECTORY}")
    succeed(["g++", *CXX, *include, *STANDIN, "-c", folder / "device.cpp", "-o", folder / "device.o"])
    common = ("-std=gnu11", "-O0", "-w", "-ffp-contract=off", "-DMETAFORK_NO_CONTRACT", *include)
    for source, more in (("own_host", ()), ("reference", ELISION_FLAGS), ("driver", ()), ("devices", ())):
        succeed(["gcc", *common, *more, "-c", folder / f"{source}.c", "-o", folder / f"{source}.o"])
    succeed(["objcopy", "-w", f"--keep-global-symbol={SERIAL_PREFIX}*", folder / "reference.o"])
    for program, mains in (("run", ("reference", "driver")), ("devices", ("devices",))):
        objects = [folder / f"{one}.o" for one in ("device", "own_host", *mains)]
        succeed(["g++", *objects, "-o", folder / program, "-ldl", "-lpthread"])
    return folder


def ran(folder, points, **variables):
    lines = "".join(point_line(machine, scalars) for machine, scalars in points)
    done = subprocess.run(
        [folder / "run"], input=lines, capture_output=True, text=True, check=False, timeout=100,
        env={"METAFORK_TRACE": "1", **variables},
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if not line.startswith(("point", "reference"))]
    assert (done.returncode, said) == (0, ["same"] * len(points)), done.stderr
    assert "serial" not in done.stderr
    return re.findall(r"leaf (\d+) .* variant=(.+)$", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.slow
def test_texts_run_on_the_processor(own, compiler, tmp_path):
    points = [("", [128, 2, 8, 5]), ("", [128, 2, 8, 9]), ("", [128, 2, 8, 5]), ("grid_dim_x=1", [128, 4, 4, 1]),
              ("Z=9", [64, 2, 8, 3])]  # fmt: skip
    with nvrtc(tmp_path) as found:
        found.compiler = compiler
        kernels, _ = ran(own, points, XDG_CACHE_HOME=str(tmp_path), **found.variables)
        assert kernels == [("1", "2 jit"), ("1", "1"), ("1", "2 jit"), ("1", "2 jit"), ("2", "2 jit")]
        asked = [values for _, values, _ in found.asked]
        assert asked == [{"s": 2, "B": 8, "K": 5}, {"s": 4, "B": 4, "K": 1}, {"B": 8, "K": 3}]
        # What comes from the disk is the path of the object.
        kernels, _ = ran(own, points[:1], XDG_CACHE_HOME=str(tmp_path), **found.variables)
        assert (kernels, len(found.asked)) == ([("1", "2 jit")], 3)
        found.image = b"/nowhere\0"
        kernels, said = ran(own, points[:1], METAFORK_CACHE="0", **found.variables)
        assert kernels == [("1", "2")]
        assert said.count("what NVRTC made is not loaded: ") == 1
    assert ran(own, points[:2], METAFORK_NVRTC="/nowhere")[0] == [("1", "2"), ("1", "1")]


def test_each_compute_capability_has_its_own(own, compiler, tmp_path):
    """One thread on three devices, two of which are the same: another kind has a kernel of its own."""
    devices = {"STANDIN_DEVICES": "3", "STANDIN_CAPABILITIES": "90,32,90", "METAFORK_TRACE": "1"}
    with nvrtc(tmp_path) as found:
        found.compiler = compiler
        variables = {**devices, "METAFORK_CACHE": "0", **found.variables}
        done = subprocess.run([own / "devices"], capture_output=True, text=True, check=False, env=variables)
        asked = [options.split()[0] for _, _, options in found.asked]
    # Threads have fewer registers before 3.5.
    assert (done.returncode, done.stdout) == (0, "90 255\n32 63\n90 255\n"), done.stderr
    assert (done.stderr.count("variant=2 jit"), done.stderr.count("metafork")) == (3, 3), done.stderr
    assert asked == ["--gpu-architecture=sm_90", "--gpu-architecture=sm_32"]


@needs_nvcc
@pytest.mark.slow
def test_nvcc_has_nothing_to_warn_of(own, tmp_path):
    flags = ("-O0", "-arch=sm_80", "-fmad=false", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")
    succeed(["nvcc", *flags, f"-I{own}", f"-I{own}/include", "-c", own / "own.cu", "-o", tmp_path / "own.o"])
