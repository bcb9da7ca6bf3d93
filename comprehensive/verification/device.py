"""The programs of a verification on a GPU: the files as users get them, compiled by nvcc for this machine's device.

A third program for each function beside those of ``builds``: the same driver and serial reference, neither of them
with sanitizers, and kernels that the device runs.  The driver's points name their machines, none of which need be the
device: a leaf that the device has no room for is passed over there, and that is no fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from metafork.comprehensive.building.commands import BuildError
from metafork.comprehensive.building.compilers import compiler
from metafork.comprehensive.emit import rendered_files, runtime_include_dir, write_files
from metafork.comprehensive.verification.builds import Build, Run, Seconds, runs_of, with_flat_functions
from metafork.comprehensive.verification.driver import ELISION_FLAGS, HOST_PREFIX, SERIAL_PREFIX
from metafork.comprehensive.verification.unordered_sums import CLOSE
from metafork.ir.arithmetic.math_functions import INEXACT

FOLDER = "device"
"""Where the generated files are, inside of the build's directory."""

NO_DEVICE = "the machine cannot be queried"
"""What the runtime says where CUDA's finds no driver or no device."""


class DeviceBuild:
    """The programs for a GPU, made in the directory of a ``Build`` that is made already.

    ``runner`` are the words of a command that starts them (``compute-sanitizer --error-exitcode 9``); empty: none.
    ``NVCC`` in the environment names another compiler.
    """

    def __init__(self, build: Build, runner: Sequence[str] = ()) -> None:
        self.build = build
        self.runner = tuple(runner)

    @property
    def close(self) -> bool:
        """Whether results are compared to ``CLOSE``, and not bit for bit."""
        words = set(re.findall(r"\w+", self.build.result.unit.source.text))
        return not INEXACT.isdisjoint(words)

    def make(self) -> None:
        """Compile and link.  Raises ``BuildError``."""
        build, unit = self.build, self.build.result.unit
        files = rendered_files(build.result, generation="0u")
        host = with_flat_functions(unit, files)
        write_files(build.directory / FOLDER, files)
        include, own = (f"-I{runtime_include_dir()}", f"-I{FOLDER}"), (f"-I{FOLDER}",)
        nvcc = compiler("NVCC", "nvcc")
        kernels = (*nvcc, "-std=c++17", "-O3", "-arch=native", "-fmad=false", "-w", *include)
        reference = (*ELISION_FLAGS, f"-Dmain={SERIAL_PREFIX}main")
        told = ("-DMETAFORK_NO_CONTRACT", *((f"-DMETAFORK_CLOSE={CLOSE}",) if self.close else ()))
        drivers = build.drivers
        steps = [
            (*kernels, "-c", f"{FOLDER}/{unit.name}.cu", "-o", "kernels_device.o"),
            build.compiling_c(f"{FOLDER}/{host}", "host_device.o", (f"-Dmain={HOST_PREFIX}main",), own),
            build.compiling_c("metafork_reference.c", "reference_device.o", reference, own),
            *(build.compiling_c(f"{name}.c", f"{name}_device.o", told, own) for name in drivers),
        ]
        build.commands.run_all(steps)
        build.commands.run(("objcopy", "-w", f"--keep-global-symbol={SERIAL_PREFIX}*", "reference_device.o"))
        objects = ["kernels_device.o", "host_device.o", "reference_device.o", *build.init_object("device", ())]
        build.commands.run_all(
            [(*nvcc, f"{name}_device.o", *objects, "-lm", "-o", f"{name}_device") for name in drivers]
        )

    def run(self, function: int, lines: Sequence[str], seconds: Seconds) -> Iterator[Run]:
        """Run one function's program at points, as ``Build.run`` does.

        Raises ``BuildError`` where there is no device.
        """
        program = self.build.directory / f"{self.build.drivers[function]}_device"
        for run in runs_of([*self.runner, str(program)], lines, seconds):
            if NO_DEVICE in run.serial:
                raise BuildError(f"nothing can run on a device: {run.serial}")
            yield run
