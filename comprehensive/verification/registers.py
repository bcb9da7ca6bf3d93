"""Registers as ``ptxas`` allots them, for comparison with the estimates (reported, never failed)."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from metafork.comprehensive.building.commands import BuildError, Commands, Left
from metafork.comprehensive.emit import LeafCode, leaf_code, runtime_include_dir
from metafork.comprehensive.emit.outputs import Optimized

_ALLOTTED = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", re.DOTALL)


def registers_by_target(
    result: Optimized, target: str, jobs: int = 2, left: Left = lambda under_way: float("inf")
) -> dict[str, int]:
    """Return the registers of every variant's kernel on a target (``sm_80``), by the kernel's name.

    A variant is compiled as it ships: its text by nvcc, or its PTX by ptxas.  Raises ``BuildError`` where there is no
    compiler or it refuses a kernel, and ``OutOfTimeError`` where no time is ``left``.
    """
    if shutil.which("nvcc") is None or shutil.which("ptxas") is None:
        raise BuildError("nvcc and ptxas are not installed")
    codes = [leaf_code(one) for tree in result.schedules for leaf in tree.leaves for one in leaf.variants]
    texts = [code.text for code in codes if code.ptx is None]
    with tempfile.TemporaryDirectory(prefix="metafork-ptxas-") as temporary:
        where = Path(temporary)
        compiling = [_ptx_compiling(where, code, target) for code in codes if code.ptx is not None]
        if texts:
            compiling.append(_text_compiling(where, texts, target))
        said = "\n".join(Commands(where, jobs, left).run_all(compiling))
    found: dict[str, int] = {}
    for name, count in _ALLOTTED.findall(said):
        kernel = name.removesuffix("_large")  # there are two kernels, and the registers of the one that takes more
        found[kernel] = max(found.get(kernel, 0), int(count))
    return found


def _text_compiling(where: Path, texts: list[str], target: str) -> list[str]:
    source = where / "kernels.cu"
    source.write_text('#include "metafork/device.h"\n' + "\n".join(texts), encoding="utf-8")
    command = ["nvcc", "-std=c++17", "-fmad=false", f"-arch={target}", f"-I{runtime_include_dir()}", "-Xptxas", "-v"]
    return [*command, "-cubin", "-o", "kernels.cubin", source.name]


def _ptx_compiling(where: Path, code: LeafCode, target: str) -> list[str]:
    assert code.ptx is not None
    source = where / f"{code.kernel.name}.ptx"
    source.write_text(code.ptx, encoding="utf-8")
    return ["ptxas", "-v", f"-arch={target}", source.name, "-o", f"{code.kernel.name}.cubin"]
