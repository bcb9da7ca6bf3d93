"""Every generated .cu compiles with nvcc, without a warning, for each generation of GPUs that CUDA 13 knows."""

import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from tests.comprehensive.constructs.half_programs import FORMS
from tests.comprehensive.constructs.scattering import SCATTER
from tests.sampling import sampled

DIRECTORY = Path(__file__).parents[2] / "examples"
EXAMPLES = {path.stem: (path, {}) for path in sorted(DIRECTORY.glob("*.mf"))} | {
    f"{name}, swizzled": (DIRECTORY / f"{name}.mf", {"counters": ["+bank_degree"], "strategies": ["+swizzle"]})
    for name in ("aos", "transpose")
}
EXAMPLES["matmul, copied ahead"] = (DIRECTORY / "matmul.mf", {"strategies": ["+double_buffering"]})
NVCC = ("nvcc", "-O1", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror", "-fmad=false")
TARGETS = ("75", "80", "90", "120")
CASES = {name: (*one, TARGETS) for name, one in EXAMPLES.items()}
CASES["sums in any order, numbers of 16 bits"] = (SCATTER + FORMS, {"reassociate": True}, (TARGETS[0], TARGETS[-1]))
CASES["the oldest and the newest"] = (*EXAMPLES["aos, swizzled"], (TARGETS[0], TARGETS[-1]))

if shutil.which("nvcc") is None:
    warnings.warn("no nvcc on PATH: the generated CUDA is not compiled by these tests", stacklevel=1)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on PATH")
@pytest.mark.parametrize(("example", "chosen", "targets"), sampled(CASES, ("the oldest and the newest",)))
def test_generated_cuda_compiles_without_warnings(example, chosen, targets, tmp_path):
    result = optimize(example, **{"machine": "all", "strategies": ["+register_pressure"], **chosen})
    write_outputs(result, tmp_path)
    stem = result.unit.name
    code = [f"-gencode=arch=compute_{target},code=sm_{target}" for target in targets]
    compiled = subprocess.run(
        [*NVCC, *code, "-I", tmp_path / "include", "-c", tmp_path / f"{stem}.cu", "-o", tmp_path / "out.o"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
    assert compiled.stderr == ""
