"""Registers as ``ptxas`` allots them, for comparison with the estimates (reported, never failed)."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from comprehensive.emit import LeafCode, leaf_code, runtime_include_dir
from comprehensive.emit.outputs import Optimized
from comprehensive.verification.builds import BuildError

_ALLOTTED = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", re.DOTALL)


def registers_by_target(result: Optimized, target: str, jobs: int = 2) -> dict[str, int]:
    """Return the registers of every variant's kernel on a target (``sm_80``), by the kernel's name.

    A variant is compiled as it ships: its text by nvcc, or its PTX by ptxas.  Raises ``BuildError`` where there is no
    compiler or it refuses a kernel.
    """
    if shutil.which("nvcc") is None or shutil.which("ptxas") is None:
        raise BuildError("nvcc and ptxas are not installed")
    codes = [leaf_code(one) for tree in result.schedules for leaf in tree.leaves for one in leaf.variants]
    texts = [code.text for code in codes if code.ptx is None]
    with tempfile.TemporaryDirectory(prefix="metafork-ptxas-") as temporary:
        where = Path(temporary)
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            runs = [pool.submit(_of_text, where, texts, target)] if texts else []
            runs += [pool.submit(_of_ptx, where, code, target) for code in codes if code.ptx is not None]
            return {name: count for run in runs for name, count in run.result().items()}


def _of_text(where: Path, texts: list[str], target: str) -> dict[str, int]:
    source = where / "kernels.cu"
    source.write_text('#include "metafork/device.h"\n' + "\n".join(texts), encoding="utf-8")
    command = ["nvcc", "-std=c++17", "-fmad=false", f"-arch={target}", f"-I{runtime_include_dir()}", "-Xptxas", "-v"]
    return _allotted([*command, "-cubin", "-o", str(where / "kernels.cubin"), str(source)])


def _of_ptx(where: Path, code: LeafCode, target: str) -> dict[str, int]:
    assert code.ptx is not None
    source = where / f"{code.kernel.name}.ptx"
    source.write_text(code.ptx, encoding="utf-8")
    return _allotted(["ptxas", "-v", f"-arch={target}", str(source), "-o", str(source.with_suffix(".cubin"))])


def _allotted(command: list[str]) -> dict[str, int]:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise BuildError("\n".join(done.stderr.splitlines()[:6]))
    found: dict[str, int] = {}
    for name, count in _ALLOTTED.findall(done.stdout + done.stderr):
        kernel = name.removesuffix("_large")  # there are two kernels, and the registers of the one that takes more
        found[kernel] = max(found.get(kernel, 0), int(count))
    return found
