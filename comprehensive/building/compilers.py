"""Compilers, and what they make of generated files: one library, for this machine's GPU or for its processor."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from metafork.comprehensive.building.commands import Commands

PLAIN = ("-O2", "-fPIC", "-ffp-contract=off")
"""What C and C++ are compiled with: results are those of the serial program, bit for bit."""


def compiler(variable: str, otherwise: str) -> tuple[str, ...]:
    """Return the words of a compiler's command: those of an environment variable, or a default."""
    return tuple(shlex.split(os.environ.get(variable) or otherwise))


APART = "-DMETAFORK_RUNTIME_APART"
"""What files of kernels are compiled with that are linked with the object of the runtime."""


class Toolchain(Struct, frozen=True):
    """The commands that compile the file of kernels and C, and that link; ``cpu`` says that kernels run on the CPU."""

    cpu: bool
    device: tuple[str, ...]
    host: tuple[str, ...]
    link: tuple[str, ...]
    libraries: tuple[str, ...] = ("-lm",)

    def with_lines(self) -> Toolchain:
        """Return the commands that keep which lines kernels come from, for debuggers and profilers."""
        return replace(self, device=(*self.device, "-g" if self.cpu else "-lineinfo"))

    @property
    def identity(self) -> tuple[str, ...]:
        """What a library that was built earlier must have been built with: commands, and the files behind them."""
        commands = (self.device, self.host, self.link)
        return tuple(word for command in commands for word in (*command, *identity_of(command)))


def identity_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return what tells the file behind a command from another one of that name."""
    place = shutil.which(command[0])
    if place is None:
        return ()
    state = Path(place).resolve().stat()
    return (f"{place} {state.st_size} {state.st_mtime_ns}",)


def toolchain(cpu: bool | None = None) -> Toolchain:
    """Return how to build: with nvcc where there is a GPU, unless ``cpu`` says which.

    ``NVCC``, ``CXX`` and ``CC`` in the environment name other compilers.
    """
    if cpu is None:
        cpu = not has_gpu()
    host = (*compiler("CC", "gcc"), "-std=gnu11", *PLAIN, *(("-DMETAFORK_CPU",) if cpu else ()))
    if cpu:
        cxx = compiler("CXX", "g++")
        return Toolchain(True, (*cxx, "-std=c++17", *PLAIN, "-DMETAFORK_CPU", "-w", "-x", "c++"), host, cxx)
    nvcc = compiler("NVCC", "nvcc")
    device = (*nvcc, "-std=c++17", "-O3", "-fmad=false", "-arch=native", "-w", "-Xcompiler", "-fPIC")
    return Toolchain(False, device, host, nvcc)


BACKENDS = ("cuda", "ptx", "opencl")
"""Those whose files the compilers here accept; what ``toolchain`` returns is for the first one."""


def c_toolchain() -> Toolchain:
    """Return how to build where the file of kernels is C, which finds the driver or OpenCL at run time."""
    host = (*compiler("CC", "gcc"), "-std=gnu11", *PLAIN)
    return Toolchain(False, (*host, "-w"), host, compiler("CC", "gcc"), ("-lm", "-ldl", "-lpthread"))


def has_gpu() -> bool:
    """Say whether nvcc is installed and the CUDA driver has a device."""
    if shutil.which(compiler("NVCC", "nvcc")[0]) is None:
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def make_library(
    tools: Toolchain,
    directory: Path,
    name: str,
    kernels: str,
    runtime: str,
    output: Path,
    flags: Sequence[str] = (),
    *,
    static: bool = False,
) -> None:
    """Compile the file of kernels and ``NAME_host.c`` of a directory, and link them with the object of the runtime.

    ``flags`` are those that the input's own C needs.  Raises ``BuildError``.
    """
    include = ("-I.", "-Iinclude")
    objects = (f"{name}.o", f"{name}_host.o", runtime)
    device = (*tools.device, APART, *include, "-c", kernels, "-o", objects[0])
    host = (*tools.host, *flags, *include, "-c", f"{name}_host.c", "-o", objects[1])
    archive = ("ar", "rcs", str(output), *objects)
    link = (*tools.link, "-shared", *objects, "-o", str(output), *tools.libraries)
    commands = Commands(directory)
    commands.run_all([device, host])
    commands.run(archive if static else link)
