"""PoCL, an OpenCL on the processor, behind a library that checks and counts every call (``libopencl.c``)."""

import os
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from tests.comprehensive.emit.targets.standin import calls_of
from tests.runtime.compiling import succeed


@dataclass(frozen=True)
class Pocl:
    """A directory with ``libOpenCL.so.1``, and the library of PoCL that it hands calls on to."""

    directory: Path
    vendor: Path

    def run(self, command, stdin="", *, log, **variables):
        """Run a program on PoCL; return it finished, and what its calls were."""
        log.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("METAFORK_")}
        environment |= {"LD_LIBRARY_PATH": str(self.directory), "STANDIN_POCL": str(self.vendor)}
        # Kernels that were compiled before are kept for the other tests, and for nobody else.
        environment |= {"STANDIN_LOG": str(log), "POCL_CACHE_DIR": str(self.directory / "cache"), **variables}
        done = subprocess.run(
            [str(part) for part in command], input=stdin, capture_output=True, text=True, check=False, env=environment,
            timeout=300,
        )  # fmt: skip
        return done, calls_of(log.read_text() if log.exists() else "")


def pocl(directory):
    """Build the library in front of the one that the package of PoCL has."""
    try:
        files = metadata.files("pocl-binary-distribution") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("NO POCL: kernels in OpenCL C are not run here")
    (vendor,) = (Path(one.locate()) for one in files if one.name.startswith("libpocl"))
    flags = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    succeed(["gcc", *flags, Path(__file__).with_name("libopencl.c"), "-o", directory / "libOpenCL.so.1", "-ldl"])
    return Pocl(directory, vendor)
