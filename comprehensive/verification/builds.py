"""Building and running what is verified: the shipped texts on the CPU build, and kernels that tell their accesses.

One directory holds the generated files, the serial elision and a driver for each function.  Two programs come of it for
each function: ``checked`` (the files as users get them, under AddressSanitizer, UndefinedBehaviorSanitizer and
``-DMETAFORK_CHECK``) and ``race`` (the same with instrumented kernels, for ``metafork/race.h``).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from signal import SIGILL, SIGTRAP
from typing import NamedTuple

from msgspec import Struct

from metafork.comprehensive.building.commands import BuildError, Commands, Left
from metafork.comprehensive.building.compilers import APART, compiler
from metafork.comprehensive.building.runtime_object import runtime_object
from metafork.comprehensive.emit import LeafCode, kernel_of, rendered_files, runtime_include_dir, write_files
from metafork.comprehensive.emit.outputs import Optimized
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.comprehensive.verification.contract import contract_text
from metafork.comprehensive.verification.driver import (
    CONTRACT_PREFIX,
    ELISION_FLAGS,
    HOST_PREFIX,
    INIT_SUFFIX,
    SERIAL_PREFIX,
    SUPPORT_DIRECTORY,
    driver_text,
    flat_functions,
    telling_reference_text,
)
from metafork.comprehensive.verification.instrumented import Branch, instrumented
from metafork.ir.arithmetic.math_functions import INEXACT
from metafork.ir.translation_unit import Function, TranslationUnit
from metafork.printing.cuda import kernel_text
from metafork.printing.rerolled import rerolled

SANITIZERS = ("-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error")
"""Undefined behaviour ends the program without a word, which compiles in three quarters of the time."""
TALKING = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""The same with messages: what was trapped is built again to say what it was."""
TRAPPED = frozenset(f"the program ended with status -{int(signal)}" for signal in (SIGILL, SIGTRAP))
COMMON = ("-g0", "-w", "-ffp-contract=off")
CPU = ("-DMETAFORK_CPU", "-DMETAFORK_CHECK")
LIBRARY = tuple(f"-fno-builtin-{name}" for name in sorted(INEXACT))
"""Kernels and reference are compiled at two levels: neither makes `v * v` of `pow(v, 2)`, which has other last bits."""

CodeOf = Callable[[Variant], LeafCode]


def plain_code(variant: Variant) -> LeafCode:
    """Return the code that the CPU build runs: the text of the variant's program, whatever LLVM made of it."""
    kernel = kernel_of(variant)
    return LeafCode(kernel, kernel_text(kernel))


def raced_code_of(code_of: CodeOf, branches: dict[str, tuple[Branch, ...]]) -> CodeOf:
    """Return the same kernels with their accesses told; ``branches`` grows by those of each kernel."""

    def raced_code(variant: Variant) -> LeafCode:
        kernel = code_of(variant).kernel
        telling, branches[variant.kernel] = instrumented(rerolled(kernel))
        return LeafCode(kernel, '#include "metafork/race.h"\n' + kernel_text(telling, in_loops=False))

    return raced_code


class Launch(NamedTuple):
    """A launch as the dispatcher traced it."""

    schedule: str
    leaf: int
    parameters: dict[str, int]
    shared_bytes: int
    variant: int


Seconds = Callable[[], float]
"""How long a program may run that begins now."""


class Run(Struct, frozen=True):
    """What happened at one point.

    ``problem`` is empty where both programs gave the same arrays; ``reached`` are (schedule, parameters) to which the
    serial reference came; ``finished`` is false where the program ended there; ``reference_failed`` says that it was
    the serial reference that ended it, on the values made up for it.  ``outside`` is where the serial program leaves an
    array (the access, its index and extent, a hint), and nothing else is known then.  ``serial`` is what the runtime
    said where the serial code ran in place of a kernel; ``late`` says that the time given was over first.
    ``branches`` are those that a race program takes first here, by kernel and number.
    """

    problem: str
    launches: tuple[Launch, ...]
    finished: bool = True
    reference_failed: bool = False
    reached: tuple[tuple[str, dict[str, int]], ...] = ()
    outside: tuple[str, ...] = ()
    serial: str = ""
    late: bool = False
    branches: frozenset[tuple[str, int]] = frozenset()


def _cxx(*flags: str) -> tuple[str, ...]:
    """Return the command that compiles kernels and the runtime, without its files."""
    own = (*COMMON, *CPU, *LIBRARY, *flags, f"-I{runtime_include_dir()}")
    return (*compiler("CXX", "g++"), "-std=c++17", "-x", "c++", *own)


class Build:
    """A directory with the programs of one result; ``jobs`` compilers run at a time.

    ``optimization`` is the compiler's level for the checked kernels: ``-O1`` shows what a wrong ``restrict`` does,
    ``-O0`` compiles in a quarter of the time.  ``init`` is a C file whose functions ``NAME_init`` fill arrays.
    ``unchecked`` says, after ``make``, why the serial program's indices are not checked; empty where they are.
    ``branches`` are those that a race program announces, by kernel.
    Compilers that run when no time is ``left`` are ended.
    """

    def __init__(self, result: Optimized, directory: Path, functions: Sequence[Function], code_of: CodeOf = plain_code,
                 jobs: int = 2, optimization: str = "-O1", init: Path | None = None,
                 left: Left = lambda under_way: float("inf")) -> None:  # fmt: skip
        self.result = result
        self.directory = directory
        self.functions = tuple(functions)
        self.code_of = code_of
        self.optimization = optimization
        self.init = init
        self.unchecked = ""
        self.branches: dict[str, tuple[Branch, ...]] = {}
        self.commands = Commands(directory, jobs, left)
        self._host = ""
        self._talking = False

    @property
    def drivers(self) -> list[str]:
        """The names of the functions' drivers, without what tells sources, objects and programs apart."""
        return [f"metafork_driver_{number}" for number in range(len(self.functions))]

    def make(self, *, raced: bool = True) -> None:
        """Compile and link.  Raises ``BuildError``."""
        unit = self.result.unit
        generation = "0u"  # both variants of the kernels are compiled with one header
        files = rendered_files(self.result, code_of=self.code_of, generation=generation)
        generated = f"{unit.name}.cu"
        files |= {
            "metafork_reference.c": telling_reference_text(unit),
            "metafork_contract.c": contract_text(unit),
        }
        if raced:
            told = rendered_files(
                self.result, code_of=raced_code_of(self.code_of, self.branches), generation=generation
            )
            files["metafork_race.cu"] = told[generated]
        self._host = with_flat_functions(unit, files)
        for name, function in zip(self.drivers, self.functions, strict=True):
            files[f"{name}.c"] = driver_text(unit, function)
        write_files(self.directory, files)
        self._link([("checked", SANITIZERS), ("race", ())] if raced else [("checked", SANITIZERS)])

    def _link(self, kinds: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Compile everything with the sanitizers of each kind, and link its programs.  Raises ``BuildError``."""
        compiling, hiding, linking = [], [], []
        for kind, sanitizers in kinds:
            contract = self._contract(kind, sanitizers) if sanitizers else ()
            init = self.init_object(kind, sanitizers)
            unless = () if contract else ("-DMETAFORK_NO_CONTRACT",)
            references = (*ELISION_FLAGS, f"-Dmain={SERIAL_PREFIX}main")
            kernels = f"{self.result.unit.name}.cu" if sanitizers else "metafork_race.cu"
            flags = (self.optimization, *sanitizers) if sanitizers else ()
            compiling += [
                (*_cxx(*flags), APART, "-I.", "-c", kernels, "-o", f"kernels_{kind}.o"),
                self._cc(self._host, f"host_{kind}.o", sanitizers, (f"-Dmain={HOST_PREFIX}main",)),
                self._cc("metafork_reference.c", f"reference_{kind}.o", sanitizers, references),
                *(self._cc(f"{name}.c", f"{name}_{kind}.o", sanitizers, unless) for name in self.drivers),
            ]
            # What the file defines beside its schedules' functions exists twice now: the reference's is its own.
            hiding.append(("objcopy", "-w", f"--keep-global-symbol={SERIAL_PREFIX}*", f"reference_{kind}.o"))
            runtime = runtime_object(self.commands, _cxx(*flags))
            objects = (f"kernels_{kind}.o", runtime, f"host_{kind}.o", f"reference_{kind}.o", *contract, *init)
            linking += [
                (*compiler("CXX", "g++"), *sanitizers, f"{name}_{kind}.o", *objects, "-lm", "-o", f"{name}_{kind}")
                for name in self.drivers
            ]
        for steps in (compiling, hiding, linking):
            self.commands.run_all(steps)

    def _contract(self, kind: str, sanitizers: Sequence[str]) -> tuple[str, ...]:
        """Compile the checked program; where the compiler does not accept it, points are run without."""
        target = f"contract_{kind}.o"
        defines = (*ELISION_FLAGS, f"-Dmain={CONTRACT_PREFIX}main")
        try:
            self.commands.run(self._cc("metafork_contract.c", target, sanitizers, defines))
        except BuildError as error:
            self.unchecked = str(error).partition("\n")[2].partition("\n")[0]
            return ()
        # The reference keeps what else the file defines.
        self.commands.run(("objcopy", "-w", f"--keep-global-symbol={CONTRACT_PREFIX}*", target))
        return (target,)

    def init_object(self, kind: str, sanitizers: Sequence[str]) -> tuple[str, ...]:
        """Compile the user's file that fills arrays.

        Raises ``BuildError`` where it has a function for none of the input's.
        """
        if self.init is None:
            return ()
        source, target = self.init.resolve(), f"init_{kind}.o"
        self.commands.run((*self._cc(str(source), target, sanitizers), f"-I{source.parent}"))
        wanted = {f"{function.name}{INIT_SUFFIX}" for function in self.functions}
        symbols = subprocess.run(
            ("nm", "--defined-only", "-g", target), cwd=self.directory, capture_output=True, text=True, check=True
        )
        if not wanted & {line.split()[-1] for line in symbols.stdout.splitlines() if line}:
            raise BuildError(f"{self.init} defines no function that fills arrays: {', '.join(sorted(wanted))}")
        return (target,)

    def run(
        self, function: int, lines: Sequence[str], *, raced: bool = False, seconds: Seconds = lambda: 120.0
    ) -> Iterator[Run]:
        """Run one function's program at points; yield one ``Run`` a point.

        What a sanitizer trapped runs once more in a program that says what it was.  Raises ``BuildError``.
        """
        program = str(self.directory / self.drivers[function])
        found = runs_of([f"{program}_{'race' if raced else 'checked'}"], lines, seconds)
        for line, run in zip(lines, found, strict=True):
            if run.problem in TRAPPED and not raced:
                if not self._talking:
                    self._link([("talking", TALKING)])
                    self._talking = True
                yield from runs_of([f"{program}_talking"], [line], seconds)
            else:
                yield run

    def _cc(self, source: str, target: str, more: Sequence[str] = (), defines: Sequence[str] = ()) -> tuple[str, ...]:
        return self.compiling_c(source, target, (*CPU, *more, *defines), ("-I.",))

    def compiling_c(self, source: str, target: str, more: Sequence[str], include: Sequence[str]) -> tuple[str, ...]:
        """Return the command that compiles C of the generated files, the input or a driver."""
        places = (f"-I{runtime_include_dir()}", f"-I{SUPPORT_DIRECTORY}", *include, *self._own_includes())
        return (*compiler("CC", "gcc"), "-std=gnu11", *COMMON, *LIBRARY, *more, *places, "-c", source, "-o", target)

    def _own_includes(self) -> tuple[str, ...]:
        """Where the input's own headers are found, and what its command line defines."""
        source = self.result.unit.source
        places = [one.resolve() for one in (*map(Path, source.folders), Path(source.name).parent)]
        defined = [f"-D{one}" for one in source.definitions]
        return (*defined, *(f"-I{one}" for one in places if one.is_dir()))


def with_flat_functions(unit: TranslationUnit, files: dict[str, str]) -> str:
    """Return the name of the file with a unit's host functions; one with its flat functions joins the files."""
    host = f"{unit.name}_host.c"
    flat = flat_functions(unit)
    if not flat:
        return host
    files["metafork_flat.c"] = f'#include "{host}"\n{flat}'
    return "metafork_flat.c"


REFERENCE = "reference\n"
"""What the driver says between the two calls of a point."""

OUTSIDE = "outside "
"""How the driver's line begins where the serial program leaves an array."""

UNTOLD = "metafork_extent has not told how many bytes there are of"
"""What the dispatcher says of arrays of which nobody knows how many elements they have."""

_REACHED = re.compile(r"^reached (\w+)((?: \w+=-?\d+)*)\n", re.MULTILINE)
_SERIAL = re.compile(r"^metafork: (.*); the serial code runs$", re.MULTILINE)
_BRANCH = re.compile(r"^branch (\w+) (\d+)$", re.MULTILINE)
_LAUNCH = re.compile(
    r"^metafork: (\w+) leaf (\d+)((?: \w+=-?\d+)*) grid=\S+ block=\S+ shared_bytes=(\d+)"
    r"(?: registers=\d+)?(?: large)?(?: variant=(\d+))?",
    re.MULTILINE,
)


def runs_of(command: Sequence[str], lines: Sequence[str], seconds: Seconds) -> Iterator[Run]:
    """Run a driver's program at points given as it reads them; yield one ``Run`` a point.

    A point at which the program ends is reported, and the program goes on with the next one, if time is left for it.
    """
    done = 0
    while done < len(lines):
        left = seconds()
        if left <= 0:
            yield from [Run("no time was left", (), finished=False, late=True)] * (len(lines) - done)
            return
        runs = _one_run(command, lines[done:], left)
        yield from runs
        done += len(runs)


def _one_run(command: Sequence[str], lines: Sequence[str], seconds: float) -> list[Run]:
    environment = {
        **os.environ,
        "METAFORK_TRACE": "1",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }
    environment.pop("METAFORK_MACHINE", None)
    environment.pop("METAFORK_STRICT", None)
    ended, late = "", False
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", env=environment,
    )  # fmt: skip
    try:
        out, err = process.communicate("".join(lines), timeout=seconds)
        if process.returncode != 0:
            ended = f"the program ended with status {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        ended, late = f"not finished after {seconds:g} s", True
    said, traced = _by_point(out), _by_point(err)
    if not said:
        return [Run(ended or "the program said nothing", (), finished=False, late=late)] * len(lines)
    runs = []
    for number, (text, trace) in enumerate(zip(said, traced, strict=False)):
        launches = tuple(
            Launch(m[1], int(m[2]), _values(m[3]), int(m[4]), int(m[5] or 0)) for m in _LAUNCH.finditer(trace)
        )
        reached = tuple((m[1], _values(m[2])) for m in _REACHED.finditer(text))
        serial = "; ".join(dict.fromkeys(_SERIAL.findall(trace)))
        branches = frozenset((m[1], int(m[2])) for m in _BRANCH.finditer(trace))
        text = _REACHED.sub("", text)
        last = number == len(said) - 1
        if text.startswith(OUTSIDE):
            runs.append(Run("", (), outside=tuple(text.removeprefix(OUTSIDE).strip().split("|"))))
            continue
        past_reference = text.startswith(REFERENCE)
        text = text.removeprefix(REFERENCE)
        if last and ended:
            fault = _first_fault(trace) or ended
            failed = not past_reference
            runs.append(Run(fault, launches, False, failed, reached, serial=serial, late=late))
        else:
            problem = "" if text.strip() == "same" else text.strip() or "no result"
            runs.append(Run(problem, launches, reached=reached, serial=serial, branches=branches))
    return runs


def _values(pairs: str) -> dict[str, int]:
    return {name: int(value) for name, value in (pair.split("=") for pair in pairs.split())}


def _by_point(text: str) -> list[str]:
    return re.split(r"^point \d+\n", text, flags=re.MULTILINE)[1:]


def _first_fault(trace: str) -> str:
    """Return the line that says what went wrong, of a sanitizer's report or of the runtime's own."""
    for line in trace.splitlines():
        if "ERROR: AddressSanitizer" in line or "runtime error:" in line:
            return re.sub(r"^==\d+==", "", line).strip()
        if line.startswith("metafork: ") and " leaf " not in line:
            return line.removeprefix("metafork: ")
    return ""
