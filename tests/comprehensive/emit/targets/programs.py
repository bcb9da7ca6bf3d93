"""Programs with a back end that a C compiler alone builds: their drop-ins compared with the serial elision."""

import re
from dataclasses import dataclass
from pathlib import Path

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.driver import (
    ELISION_FLAGS,
    SERIAL_PREFIX,
    SUPPORT_DIRECTORY,
    driver_text,
    point_line,
    reference_text,
)
from metafork.ir.messages.source import Source
from tests.runtime.compiling import succeed

FLAGS = ("-std=gnu11", "-O0", "-w", "-ffp-contract=off")
LIBRARIES = ("-lm", "-ldl", "-lpthread")
EXAMPLES = Path(__file__).parents[4] / "examples"
_POINTS = {
    "smooth": [("", {"n": 1003, "s": 3, "B": 32}), ("Z=50", {"n": 517, "s": 5, "B": 33}),
               ("Z=3", {"n": 67, "s": 1, "B": 7})],
    "jacobi1d": [("", {"T": 3, "N": 102, "s": 2, "B": 25}), ("Z=4", {"T": 1, "N": 33, "s": 1, "B": 31})],
    "blur": [("", {"height": 19, "width": 35, "B0": 4, "B1": 7, "s": 2}),
             ("Z=9", {"height": 11, "width": 13, "B0": 3, "B1": 3, "s": 1})],
    "matvec": [("", {"m": 37, "n": 29, "B": 16}), ("Z=2", {"m": 5, "n": 7, "B": 5})],
    "heat3d": [("", {"n": 13, "steps": 2, "B0": 2, "B1": 3, "B2": 5})],
    "transpose": [("", {"N": 24, "s": 2, "B0": 4, "B1": 3}), ("Z=2", {"N": 9, "s": 1, "B0": 3, "B1": 3})],
    "matadd": [("", {"N": 21, "B0": 7, "B1": 3})],
    "reverse": [("", {"N": 60, "s": 3, "B": 5}), ("Z=2", {"N": 16, "s": 2, "B": 4})],
    "center": [("", {"n": 101, "B": 17})],
    "matmul": [("", {"n": 24, "s": 2, "B0": 4, "ub1": 3}), ("Z=40", {"n": 18, "s": 2, "B0": 3, "ub1": 3}),
               ("Z=1", {"n": 13, "s": 3, "B0": 5, "ub1": 2})],
    "matmul_tile": [("", {"n": 24, "B": 4, "K": 8, "s0": 1, "s1": 2})],
    "jacobi2d": [("", {"rows": 14, "columns": 130, "B0": 1, "B1": 64})],
}  # fmt: skip
CASES = {name: (name, name, points) for name, points in _POINTS.items()} | {
    "moments": ("aos", "moments", [("", {"N": 128, "B": 64})]),
}
"""All examples: file, function, and points with their machines."""


@dataclass
class Program:
    """Drivers of the functions of one file, by name, and what was written for it."""

    result: object
    directory: Path
    drivers: dict[str, Path]

    def scalars(self, function, values):
        """Return the scalar arguments of a function in order; those that ``values`` does not have are 0.75."""
        (found,) = (one for one in self.result.unit.functions if one.name == function)
        return [values.get(one.name, 0.75) for one in found.parameters if one.type is not None]

    def compare(self, standin, function, points, **variables):
        """Run a function at (machine, values) and return what the driver said of each, the launches, and the calls."""
        lines = [point_line(machine, self.scalars(function, values)) for machine, values in points]
        log = self.directory / "log"
        done, calls = standin.run(
            [self.drivers[function]], "".join(lines), log=log, **{"METAFORK_TRACE": "1", **variables}
        )
        said = [
            text.removeprefix("reference\n").strip() for text in re.split(r"^point \d+\n", done.stdout, flags=re.M)[1:]
        ]
        return done, said, calls

    def launched(self, done):
        """Return the name of the kernel of each launch that a run traced."""
        leaves = {(tree.program.name, leaf.id): leaf for tree in self.result.schedules for leaf in tree.leaves}
        found = re.findall(r"^metafork: (\w+) leaf (\d+) .*?(?: variant=(\d+))?$", done.stderr, re.MULTILINE)
        return [leaves[name, int(leaf)].variants[int(variant or 0) - 1].kernel for name, leaf, variant in found]


def optimized(text, name, backend=PTX, **options):
    """Optimize for a back end; return what has code, and its texts."""
    # In the paper's order there are leaves with shared memory, whatever they cost.
    result = optimize(Source(name, text), **{"order": "paper", **options})
    texts = LeafTexts(result.analyses, None, backend)
    return texts.in_time(result, None), texts


def program(text, name, directory, backend=PTX, **options):
    """Optimize a file, write its outputs, and build a driver for each function."""
    result, texts = optimized(text, name, backend, **options)
    write_outputs(result, directory, code_of=texts.code_of, target=backend)
    return Program(result, directory, build(result, directory, backend))


def build(result, directory, backend=PTX):
    """Compile what was written with a C compiler alone, and a driver for each function."""
    unit = result.unit
    (directory / "reference.c").write_text(reference_text(unit))
    steps = {
        "kernels.o": ("-Wall", "-Wextra", "-Werror", backend.device_name(unit.name)),
        "host.o": (f"{unit.name}_host.c",),
        "reference.o": (*ELISION_FLAGS, "reference.c"),
    }
    include = (f"-I{directory}", f"-I{directory}/include", f"-I{SUPPORT_DIRECTORY}")
    for name, (*flags, source) in steps.items():
        base = [flag for flag in FLAGS if flag != "-w" or "-Wall" not in flags]
        succeed(["gcc", *base, *flags, *include, "-c", directory / source, "-o", directory / name])
    kept = f"--keep-global-symbol={SERIAL_PREFIX}*"
    succeed(["objcopy", "-w", kept, directory / "reference.o"])
    drivers = {}
    for function in unit.functions:
        (directory / f"{function.name}_driver.c").write_text(driver_text(unit, function))
        drivers[function.name] = directory / f"{function.name}_driver"
        objects = [directory / name for name in steps]
        succeed(["gcc", *FLAGS, "-DMETAFORK_NO_CONTRACT", *include, directory / f"{function.name}_driver.c", *objects,
                 *LIBRARIES, "-o", drivers[function.name]])  # fmt: skip
    return drivers
