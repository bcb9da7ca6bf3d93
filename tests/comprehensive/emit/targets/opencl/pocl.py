"""PoCL, an OpenCL on the processor, behind a library that checks and counts every call (``libopencl.c``)."""

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests.comprehensive.emit.targets.standin import LATE, watched
from tests.runtime.compiling import succeed


@dataclass(frozen=True)
class Pocl:
    """A directory with ``libOpenCL.so.1``, and the library of PoCL that it hands calls on to."""

    directory: Path
    vendor: Path

    def run(self, command, stdin="", *, log, **variables):
        """Run a program on PoCL; return it finished, and what its calls were."""
        environment = {"LD_LIBRARY_PATH": str(self.directory), "STANDIN_POCL": str(self.vendor)}
        # Kernels that were compiled before are kept for the other tests, and for nobody else.
        environment |= {"POCL_CACHE_DIR": str(self.directory / "cache"), "METAFORK_CACHE": "0", **variables}
        return watched(command, stdin, log, environment)


def pocl(directory):
    """Build the library in front of the one that the package of PoCL has."""
    try:
        files = metadata.files("pocl-binary-distribution") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("NO POCL: kernels in OpenCL C are not run here")
    (vendor,) = (Path(one.locate()) for one in files if one.name.startswith("libpocl"))
    flags = ("-O0", "-Wall", "-Wextra", "-Werror", "-fPIC", f"-I{LATE}")
    succeed(["gcc", "-std=gnu11", *flags, "-c", Path(__file__).with_name("libopencl.c"), "-o", directory / "opencl.o"])
    succeed(["g++", "-std=c++17", *flags, "-c", LATE / "late_calls.cpp", "-o", directory / "late.o"])
    objects = [directory / "opencl.o", directory / "late.o"]
    succeed(["g++", "-shared", *objects, "-o", directory / "libOpenCL.so.1", "-ldl", "-lpthread"])
    return Pocl(directory, vendor)
