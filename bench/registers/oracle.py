"""What ``ptxas`` says: registers of kernels compiled by nvcc from text, and of PTX that LLVM made."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from corpus import ROOT

from metafork.ir.kernel import Kernel
from metafork.printing.cuda import kernel_text

_USED = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", re.DOTALL)
_INCLUDE = ROOT / "metafork/runtime/include"


def _run(command: Sequence[str]) -> dict[str, int]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    found: dict[str, int] = {}
    for name, count in _USED.findall(done.stdout + done.stderr):
        leaf = name.removesuffix("_large")  # a leaf has two kernels, and the registers of the one that takes more
        found[leaf] = max(found.get(leaf, 0), int(count))
    return found


def version() -> str:
    """Return the version line of ``ptxas``."""
    text = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release [\d.]+", text)[0]


def registers_of_text(kernels: Sequence[Kernel], target: str) -> dict[str, int]:
    """Compile kernels as the generated build does, without contraction; one run of nvcc for all."""
    if not kernels:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.cu")
        source.write_text('#include "metafork/device.h"\n' + "\n".join(map(kernel_text, kernels)), encoding="utf-8")
        return _run(
            [
                "nvcc",
                f"-arch={target}",
                "-fmad=false",
                "-Xptxas",
                "-v",
                "-I",
                str(_INCLUDE),
                "-cubin",
                "-o",
                str(source.with_suffix(".cubin")),
                str(source),
            ]
        )


def registers_of_ptx(name: str, ptx: str, target: str) -> int:
    """Assemble the PTX of the kernel of that name."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        return _run(["ptxas", f"-arch={target}", "-v", str(source), "-o", str(source.with_suffix(".cubin"))])[name]
