"""What nvcc makes of asynchronous copies: instructions of hardware that has them, and loads and stores elsewhere."""

import re
import shutil
import subprocess

import pytest

from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import INCLUDE
from tests.metafork.lowering.copies.staged_programs import BESIDE_ANOTHER, product, staged

TEXTS = {"floats": product("whole_tiles"), "doubles": BESIDE_ANOTHER}


def compiled(directory, *options):
    warnings = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")
    command = ["nvcc", "-O1", *warnings, f"-I{INCLUDE}", "k.cu", *options]
    subprocess.run(command, cwd=directory, check=True)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on PATH")
@pytest.mark.slow
def test_hardware_that_can_copies_asynchronously(tmp_path):
    kernels = "".join(kernel_text(lower(staged(text), name)) for name, text in TEXTS.items())
    (tmp_path / "k.cu").write_text(f'#include "metafork/device.h"\n{kernels}')
    compiled(tmp_path, *(f"-gencode=arch=compute_{one},code=sm_{one}" for one in ("75", "80", "90")), "-c")
    sizes = {}
    for target in ("75", "80"):
        compiled(tmp_path, f"-arch=compute_{target}", "-ptx", "-o", "k.ptx")
        for part in (tmp_path / "k.ptx").read_text().split(".entry ")[1:]:
            name = part.split("(")[0]
            copies = set(re.findall(r"cp\.async\.ca\.shared\.global \[%\w+\], \[%\w+\], (\d+);", part))
            sizes[target, name] = (copies, "cp.async.wait_all" in part)
    for name, size in (("floats", "4"), ("doubles", "8")):
        assert sizes["75", name] == (set(), False)
        assert sizes["80", name] == ({size}, True)
