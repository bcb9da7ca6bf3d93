"""The ten kernels of the test data: where their PTX is, how to launch them, and what they should compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metafork.ptx.interpreter import GlobalMemory, run_kernel
from metafork.ptx.text.parser import parse

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    """A kernel: its scalar arguments before the arrays, and the arrays; the shape is (nx, ny[, nz])."""

    name: str
    shuffles: int
    loads: int
    mean_delta: float | None
    scalars: tuple[float, ...]
    arrays: int
    dimensions: int
    entry: str = ""

    @property
    def text(self):
        return (DATA / f"{self.name}.ptx").read_text()

    def grid(self, shape, block):
        """Return the blocks of a launch."""
        nx, ny, nz = (*shape, 1)[:3]
        if self.name == "matvec":
            return (-(-ny // block[0]), 1, 1)
        if self.dimensions == 2:
            return (-(-nx // block[0]), -(-ny // block[1]), 1)
        margin = {"gradient": 2, "divergence": 2, "tricubic": 3, "tricubic2": 3}.get(self.name, 0)
        return (-(-nx // block[0]), ny - margin, 1 if self.name == "matmul" else nz - margin)


CASES = (
    Case("vecadd", 0, 2, None, (), 3, 3),
    Case("jacobi", 6, 9, 1.5, (0.5, 0.25, 0.125), 2, 2),
    Case("gameoflife", 6, 9, 1.5, (), 2, 2),
    Case("gaussblur", 20, 25, 2.5, (0.5, 0.4, 0.3, 0.2, 0.1, 0.05), 2, 2),
    Case("gradient", 1, 6, 2.0, (0.5, 0.25, 0.125), 4, 3),
    Case("divergence", 1, 6, 2.0, (0.5, 0.25, 0.125), 4, 3),
    Case("tricubic", 48, 67, 2.0, (), 5, 3),
    Case("tricubic2", 48, 67, 2.0, (), 5, 3),
    Case("matvec", 0, 6, None, (), 3, 2),
    Case("matmul", 0, 6, None, (), 3, 3),
    Case("sincos", 0, 2, None, (), 3, 3, "sincos_sum"),
)


def launch(case, text, shape, block, seed=1):
    """Run a case on random data; return the bytes of all memory and what was executed."""
    nx, ny, nz = (*shape, 1)[:3]
    size = max(nx, ny, nz) ** 2 if case.name == "matmul" else nx * ny * nz
    random = np.random.default_rng(seed)
    memory = GlobalMemory()
    arrays = [memory.upload(random.standard_normal(size).astype(np.float32)) for _ in range(case.arrays)]
    sizes = (nx, ny, nz)[: case.dimensions]
    module = parse(text)
    done = run_kernel(
        module,
        case.entry or case.name,
        case.grid(shape, block),
        block,
        [*sizes, *case.scalars, *arrays],
        memory=memory,
        limit=100_000,
    )
    return memory, arrays, done
