"""Programs of several generated files."""

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from tests.runtime.compiling import succeed

REVERSE = """
void NAME(int n, int B, const TYPE x[n], TYPE y[n]) {
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        y[i * B + j] = x[i * B + B - 1 - j] + x[i * B + j];
  }
}
"""
MAIN = """
#include "first.h"
#include "second.h"
#include "third.h"
#include <stdio.h>
int main(void) {
  float x[12], y[12];
  int p[12], q[12];
  for (int k = 0; k < 12; k++) x[k] = p[k] = k * k;
  first(12, 4, x, y);
  second(12, 3, y, x);
  third(12, 4, p, q);
  for (int k = 0; k < 12; k++) printf("%g %d ", x[k], q[k]);
  return 0;
}
"""
NAMES = {"first": "float", "second": "float", "third": "int"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    for name, type_ in NAMES.items():
        (folder / f"{name}.mf").write_text(REVERSE.replace("NAME", name).replace("TYPE", type_))
        write_outputs(optimize(folder / f"{name}.mf", counters=("shared_memory",), strategies=()), folder)
        assert "shared_x" in (folder / f"{name}.cu").read_text()
    (folder / "main.c").write_text(MAIN)
    return folder


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("checks", [[], ["-DMETAFORK_CHECK"]])
@pytest.mark.sampled(1)
def test_files_with_one_element_type_in_shared_memory(folder, level, checks):
    flags = [level, *checks, "-DMETAFORK_CPU", f"-I{folder}", f"-I{folder}/include"]
    objects = [folder / "main.o"]
    succeed(["gcc", "-std=gnu11", *flags, "-c", folder / "main.c", "-o", folder / "main.o"])
    for name in NAMES:
        objects += [folder / f"{name}.o", folder / f"{name}_host.o"]
        succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", folder / f"{name}.cu", "-o", objects[-2]])
        succeed(["gcc", "-std=gnu11", *flags, "-c", folder / f"{name}_host.c", "-o", objects[-1]])
    succeed(["gcc", *objects, "-lm", "-o", folder / "main"])
    x = [k * k for k in range(12)]
    q = [x[k // 4 * 4 + 3 - k % 4] + x[k] for k in range(12)]
    found = [q[k // 3 * 3 + 2 - k % 3] + q[k] for k in range(12)]
    expected = " ".join(f"{a} {b}" for a, b in zip(found, q, strict=True))
    assert succeed([folder / "main"]).stdout.strip() == expected


def test_an_input_that_is_called_like_a_header(tmp_path):
    (tmp_path / "math.mf").write_text("#include <math.h>\n" + REVERSE.replace("NAME", "first").replace("TYPE", "float"))
    write_outputs(optimize(tmp_path / "math.mf", counters=("shared_memory",), strategies=()), tmp_path / "math.out")
    main = "int main(void) { float x[] = {9, 7}, y[2]; first(2, 2, x, y); return (int)sqrt(y[1]) - 4; }\n"
    (tmp_path / "main.c").write_text(f'#include "program_math.h"\n#include <math.h>\n{main}')
    flags = ["-Wall", "-Werror", "-DMETAFORK_CPU", f"-I{tmp_path}/math.out", f"-I{tmp_path}/math.out/include"]
    device = [tmp_path / "math.out" / "program_math.cu", "-o", tmp_path / "device.o"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", *device])
    host = [tmp_path / "main.c", tmp_path / "math.out" / "program_math_host.c", tmp_path / "device.o"]
    succeed(["gcc", "-std=gnu11", *flags, *host, "-lm", "-o", tmp_path / "main"])
    assert succeed([tmp_path / "main"]).returncode == 0
