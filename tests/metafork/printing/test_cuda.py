import shutil
import subprocess
from pathlib import Path

import pytest

import metafork
from metafork.printing.cuda import is_reserved, kernel_text, renamed
from tests.metafork.lowering.kernel_reader import read_kernel

INCLUDE = Path(metafork.__file__).parent / "runtime/include"

KERNEL = """
void tile(int n, int B, unsigned int count, int class, float alpha, double beta, int idle,
          const float *a, const unsigned char *threadIdx_, float *new, int *d, short *never)
{
  extern float ta[B * B];
  extern double tb[B];
  extern char untouched[B];
  float kept[4];
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * B + threadIdx.x, dead = 3;
  int written;
  written = 4;
  for (int k = 0; k < 4; ++k) kept[k] = 0.0f;
  if (a[i] * count) new[i] = sqrt(alpha) + fmaxf(beta, 1.0f);
  for (int k = 0; k < count; ++k) {
    int dead = k;
    ta[k] = a[k] - -3.0f;
    tb[k % B] = 0x1p-3 + 1.5e-3;
    __syncthreads();
    kept[k & 3] += ta[k] * (i < 3 && j > 2 || i < -1) + sqrtf(tb[k % B]);
    if (!(i & (j == 3))) continue;
    else if (k << 2) break;
    else d[i] = -2147483647 - 1 - -(-n);
    while (i > j) i -= ~(i < j);
  }
  unsigned int w = -1;
  d[j + class] = w > i ? count : -1;
  d[j] += abs(i - j) % 7 + threadIdx_[j];
  new[j] = kept[0] + kept[1] + kept[2] + kept[3];
}
"""


def test_the_text_of_a_kernel():
    kernel = read_kernel(
        """
        void axpy(int n, float alpha, const float *x, float *y, int *z) {
          extern float t[n + 1];
          float kept[2];
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          int unused = 1;
          __syncthreads();
          if (i < n) { kept[i % 2] = x[i]; t[i] = kept[0]; y[i] = alpha * t[i] + y[i]; }
        }
        """
    )
    assert kernel_text(kernel) == (
        "METAFORK_KERNEL(__global__ void, axpy, (int n, float alpha, const float *METAFORK_RESTRICT x, "
        "float *METAFORK_RESTRICT y, [[maybe_unused]] int *METAFORK_RESTRICT z), (n, alpha, x, y, z))\n"
        "{\n"
        "  METAFORK_SHARED(metafork_shared);\n"
        "  METAFORK_SHARED_ARRAY(float, t, metafork_shared, 0L, n + 1);\n"
        "  float kept[2];\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  [[maybe_unused]] int unused = 1;\n"
        "  __syncthreads();\n"
        "  if (i < n) {\n"
        "    /* load x into registers */\n"
        "    kept[i % 2] = x[i];\n"
        "    t[i] = kept[0];\n"
        "    y[i] = alpha * t[i] + y[i];\n"
        "  }\n"
        "}\n"
    )


def test_an_unread_variable_is_marked_only_where_it_is_unread():
    text = kernel_text(
        read_kernel("void k(int *o) { int a = 1; if (o[0]) { int a = 2; o[1] = a; } else { int b = 3; b = 4; } }")
    )
    assert "[[maybe_unused]] int a = 1;" in text
    assert "    int a = 2;" in text
    assert "[[maybe_unused]] int b = 3;" in text


@pytest.mark.parametrize("name", ["new", "class", "threadIdx", "warpSize", "and", "typename", "__x", "_Big", "NULL"])
def test_reserved_names_are_renamed(name):
    assert is_reserved(name)
    new = renamed([name, "free"])
    assert set(new) == {name}
    assert not is_reserved(new[name])


def test_renaming_avoids_the_names_in_use():
    names = ["new", "new_", "class", "class_", "class__"]
    new = renamed(names)
    assert new["new"] == "new__"
    spelled = [new.get(name, name) for name in names]
    assert len(set(spelled)) == len(names)
    assert not any(map(is_reserved, spelled))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="NO NVCC: the CUDA text is not compiled by nvcc here")
@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.sampled(1)
def test_nvcc_has_nothing_to_warn_of(target, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text('#include "metafork/device.h"\n' + kernel_text(read_kernel(KERNEL)))
    command = ["nvcc", "-Werror", "all-warnings", f"-arch={target}", "-fmad=false", "-I", INCLUDE, "-c", source]
    done = subprocess.run([*command, "-o", tmp_path / "kernel.o"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("checks", [[], ["-DMETAFORK_CHECK"]])
def test_gcc_has_nothing_to_warn_of_in_the_cpu_build(checks, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text('#include "metafork/device.h"\n' + kernel_text(read_kernel(KERNEL)))
    command = ["g++", "-std=c++17", "-x", "c++", "-O2", "-Wall", "-Wextra", "-Werror", "-DMETAFORK_CPU", *checks]
    command += ["-ffp-contract=off", "-I", INCLUDE, "-c", source, "-o", tmp_path / "kernel.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
