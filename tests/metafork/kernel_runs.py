"""Run lowered kernels: each against the serial elision of its text, bit for bit, under the sanitizers.

Many cases are compiled into one program (the compiler is the slow part).  Every point runs in a child process, so that
what one kernel does wrong is reported for that point alone.
"""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from metafork.comprehensive.verification.driver import ELISION_FLAGS, SERIAL_PREFIX, SUPPORT_DIRECTORY, reference_text
from metafork.frontend import parse
from metafork.ir.kernel import Kernel
from metafork.ir.messages.source import Source
from metafork.ir.program import Program
from metafork.ir.translation_unit import Function
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from metafork.printing.expressions import expression
from metafork.strategies.caching import with_cached_arrays
from tests.runtime.compiling import CALLED

INCLUDE = Path(__file__).parents[2] / "metafork" / "runtime" / "include"
TRAP = "-fsanitize-undefined-trap-on-error"
"""Undefined behaviour ends a kernel without a word: that compiles in three quarters of the time."""
TELL = "-fno-sanitize-recover=all"


def grid(**ranges):
    """Return the points of a small grid of values."""
    points = [{}]
    for name, values in ranges.items():
        points = [{**point, name: value} for point in points for value in values]
    return points


class Case(Struct, frozen=True):
    """A text with one function and one schedule; the function's name must be unlike those of other cases.

    ``cached`` overrides the choice of cached arrays, ``program`` the whole program (``text`` stays the reference);
    ``changed`` is what is made of its kernel.
    """

    text: str
    points: Sequence[Mapping[str, int | float]]
    cached: tuple[str, ...] | None = None
    program: Program | None = None
    label: str = ""
    changed: Callable[[Kernel], Kernel] | None = None
    _parsed: list = field(default_factory=list)

    @property
    def unit(self):
        if not self._parsed:
            self._parsed.append(parse(Source("case.mf", self.text)))
        return self._parsed[0]

    @property
    def function(self) -> Function:
        return self.unit.functions[0]

    def lowered_program(self) -> Program:
        if self.program is not None:
            return self.program
        program = self.unit.schedules[0].program
        if self.cached is not None:
            return program.mapped(cached=self.cached)
        return with_cached_arrays(program).program


def run(
    cases: Sequence[Case],
    directory: Path,
    grid_limit: int = 0,
    flags: Sequence[str] = (),
    environments: Sequence[Mapping[str, str]] = ({},),
) -> dict[str, str]:
    """Build cases and return what went wrong (``wrong``)."""
    build(cases, directory, flags)
    found = wrong(cases, directory, grid_limit, environments)
    if found:
        build(cases, directory, flags, TELL)
        found = wrong(cases, directory, grid_limit, environments)
    return found


def build(cases: Sequence[Case], directory: Path, flags: Sequence[str] = (), undefined: str = TRAP) -> None:
    """Compile the program ``runs``, which takes any number of points."""
    directory.mkdir(parents=True, exist_ok=True)
    kernels, serial, mains = [_KERNELS_HEAD], ["#include <assert.h>\n#include <math.h>\n"], []
    written = set()
    for number, case in enumerate(cases):
        kernels.append(_wrapper(case, number))
        if case.text not in written:
            written.add(case.text)
            serial.append(reference_text(case.unit))
            serial.append("".join(f"#undef {f.name}\n" for f in case.unit.functions))
        mains.append(_main_of(case, number))
    mains.append("static int (*const cases[])(char *) = {" + ", ".join(f"case_{n}" for n in range(len(cases))) + "};\n")
    (directory / "kernels.cu").write_text("\n".join(kernels))
    (directory / "serial.c").write_text("\n".join(serial))
    (directory / "main.c").write_text("\n".join([_MAIN_HEAD, *mains, _MAIN]))
    sanitize = ("-fsanitize=address,undefined", undefined, "-fno-omit-frame-pointer", *CALLED)
    common = (*sanitize, "-O0", "-ffp-contract=off", f"-I{INCLUDE}", f"-I{SUPPORT_DIRECTORY}", "-w", *flags)
    steps = [
        ("g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU", "-DMETAFORK_CHECK", *common, "-c", "kernels.cu"),
        ("gcc", "-std=gnu11", *ELISION_FLAGS, *common, "-c", "serial.c"),
        ("gcc", "-std=gnu11", *common, "-c", "main.c"),
        ("g++", *sanitize, "kernels.o", "serial.o", "main.o", "-lm", "-o", "runs"),
    ]
    for step in steps:
        subprocess.run(step, cwd=directory, check=True, capture_output=False)


def wrong(
    cases: Sequence[Case],
    directory: Path,
    grid_limit: int = 0,
    environments: Sequence[Mapping[str, str]] = ({},),
) -> dict[str, str]:
    """Return what went wrong, by case and point; an empty dictionary means that every point is right.

    ``grid_limit`` launches at most so many blocks in each dimension, so that kernels must walk their grid: large ones.
    All points are run in each of the ``environments``.  Where some of the cases that were built are to run, the others
    have no points.
    """
    lines, labels = [], []
    for number, case in enumerate(cases):
        for point in case.points:
            values = " ".join(str(point[p.name]) for p in case.function.parameters if p.array is None)
            lines.append(f"{number} {grid_limit} {values}\n")
            labels.append(f"{case.label or case.function.name} {dict(point)}")
    wrong: dict[str, str] = {}
    for variables in environments:
        ran = subprocess.run(
            (str(directory / "runs"),), input="".join(lines), capture_output=True, text=True, errors="replace",
            check=False, env={**os.environ, **variables},
        )  # fmt: skip
        results = ran.stdout.split("@@ ")[1:]
        assert len(results) == len(labels), ran.stdout + ran.stderr
        found = zip(labels, results, strict=True)
        wrong |= {" ".join((label, *variables.values())): text.strip() for label, text in found if text[:3] != "ok\n"}
    return wrong


def _wrapper(case: Case, number: int) -> str:
    program = case.lowered_program()
    kernel = lower(program, f"kernel_{number}")
    if case.changed is not None:
        kernel = case.changed(kernel)
    scalars = [p for p in case.function.parameters if p.type is not None]
    arrays = [p for p in case.function.parameters if p.array is not None]
    floating = {p.name for p in scalars if p.type.floating}
    signature = ["int grid_limit"]
    signature += [f"{'double' if p.name in floating else 'long long'} {p.name}" for p in scalars]
    signature += [f"void *{p.name}" for p in arrays]
    lines = [kernel_text(kernel), f'extern "C" int run_{number}({", ".join(signature)}) {{']
    lines += [f"  const long long {d.name} = {expression(d.definition)};" for d in kernel.host_scalars]
    for name, extents in (("runs_grid", kernel.grid), ("runs_block", kernel.block)):
        for letter, extent in zip("xyz", extents, strict=True):
            lines.append(f"  long long {name}_{letter} = {expression(extent)};")
            lines.append(f"  if ({name}_{letter} <= 0) return 0;")
            if name == "runs_grid":
                lines.append(f"  if (grid_limit && {name}_{letter} > grid_limit) {name}_{letter} = grid_limit;")
    own = {p.name: p for p in arrays}
    passed = [argument.name for argument in kernel.scalars]
    passed += [
        f"({own[m.name].array.element.spelling} *){m.name}" for m in kernel.memories if m.space.value == "global"
    ]
    lines += [
        "  dim3 runs_grid = {(unsigned)runs_grid_x, (unsigned)runs_grid_y, (unsigned)runs_grid_z};",
        "  dim3 runs_block = {(unsigned)runs_block_x, (unsigned)runs_block_y, (unsigned)runs_block_z};",
        f'  return !metafork_cpu::launch("{kernel.name}", runs_grid, runs_block, {expression(kernel.shared_bytes)}, '
        f"[&] {{ (grid_limit ? {kernel.name}_large : {kernel.name})({', '.join(passed)}); }});",
        "}",
    ]
    return "\n".join(lines)


def _main_of(case: Case, number: int) -> str:
    scalars = [p for p in case.function.parameters if p.type is not None]
    arrays = [p for p in case.function.parameters if p.array is not None]
    wide = [("double" if p.type.floating else "long long") for p in scalars]
    declarations = ", ".join(p.declaration for p in case.function.parameters)
    declared = ["int", *wide, *["void *"] * len(arrays)]
    lines = [
        f"extern int run_{number}({', '.join(declared)});",
        f"extern void {SERIAL_PREFIX}{case.function.name}({declarations});",
        f"static int case_{number}(char *values) {{",
        "  int grid_limit = (int)strtol(values, &values, 10);",
    ]
    for p in scalars:
        read = "strtod(values, &values)" if p.type.floating else "strtoll(values, &values, 10)"
        lines.append(f"  {p.type.spelling} {p.name} = ({p.type.spelling}){read};")
    for p in arrays:
        element = p.array.element
        fill = {"float": "driver_fill_float", "double": "driver_fill_double"}.get(
            element.spelling, "driver_fill_integer"
        )
        extents = " * ".join(f"(size_t)({expression(extent)})" for extent in p.array.extents)
        lines += [
            f"  size_t {p.name}_bytes = {extents} * {element.size};",
            f"  void *{p.name}_ours = malloc({p.name}_bytes), *{p.name}_theirs = malloc({p.name}_bytes);",
            f"  {fill}({p.name}_ours, {p.name}_bytes, {element.size});",
            f"  memcpy({p.name}_theirs, {p.name}_ours, {p.name}_bytes);",
        ]
    ours = ["grid_limit", *(p.name for p in scalars), *(f"{p.name}_ours" for p in arrays)]
    theirs = ", ".join(f"{p.name}_theirs" if p.array is not None else p.name for p in case.function.parameters)
    lines += [
        f"  {SERIAL_PREFIX}{case.function.name}({theirs});",
        f'  if (run_{number}({", ".join(ours)})) {{ printf("not enough memory\\n"); return 1; }}',
        "  int differ = 0;",
    ]
    for p in arrays:
        name, size = p.name, p.array.element.size
        lines.append(
            f'  differ |= driver_compare("{name}", {name}_ours, {name}_theirs, {name}_bytes, {size}, false, 0);'
        )
    lines += [f"  free({p.name}_ours); free({p.name}_theirs);" for p in arrays]
    return "\n".join([*lines, "  return differ;", "}", ""])


_KERNELS_HEAD = '#include "metafork/device.h"\n#include <math.h>\n'
_MAIN_HEAD = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "driver_support.h"
"""
_MAIN = """\
int main(void) {
  static char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    char *values;
    long number = strtol(line, &values, 10);
    printf("@@ ");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(300);
      dup2(1, 2);
      static char report[1 << 16];
      setvbuf(stdout, report, _IOFBF, sizeof report);
      FILE *own = stdout;
      int differ = cases[number](values);
      printf(differ ? "" : "ok\\n");
      fflush(own);
      _exit(differ);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) printf("\\nexit status %x for %s", status, line);
    fflush(stdout);
  }
  return 0;
}
"""
