"""Programs of suites as people write them: accepted without a warning, right in every variant, each array moved once.

Leaves are forced through ``METAFORK_MACHINE``: for a shape, limits are looked for under which the tree arrives at
the leaf.  The reference is the same file compiled as C; results are compared bit for bit.
"""

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, product
from pathlib import Path

import pytest

import metafork
from metafork.comprehensive.emit import rendered_files, runtime_include_dir
from metafork.comprehensive.optimize import Result
from metafork.comprehensive.tree.document import ScheduleDocument
from metafork.comprehensive.tree.selection import select
from metafork.printing.expressions import expression
from metafork.runtime.machine import DEFAULT
from tests.end_to_end.suite_cases import CASES, Case
from tests.sampling import sampled

SUITES = Path(__file__).parent / "suites"
SAMPLE = ("conv2d", "gemm", "hotspot", "lu", "median3", "needle", "scan", "spmv_csr")
"""Programs of the quick tests; the others run with the slow ones."""

FLAGS = ("-O0", "-w", "-ffp-contract=off", "-DMETAFORK_CPU", "-DMETAFORK_CHECK")
WORDS = ("-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_atomic=", "-Dmeta_grid(...)=")
MOVE = r"metafork: \d+ bytes of (\w+) (to|from) the device(?: in \d+ rows)?"
MAIN = """
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define {name} unused_{name}
#include "{source}"
#undef {name}
{signature};
static void print(const void *from, size_t bytes) {{
  const unsigned char *byte = from;
  for (size_t k = 0; k < bytes; k++) printf("%02x", byte[k]);
  puts("");
}}
static void run(char **arguments_) {{
{body}
}}
int main(int count, char **arguments) {{
  (void)count;
  run(arguments);
  return 0;
}}
"""


@dataclass(frozen=True)
class Built:
    """A program with its trees, the drop-in (``ours``) and the serial elision (``theirs``) in a folder."""

    case: Case
    result: Result
    folder: Path

    def run(self, program: str, shape: dict[str, int], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one of the two programs on a shape."""
        words = [self.folder / program, *(str(shape[name]) for name in sorted(shape))]
        done = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done


def main_text(case: Case, function, source: Path) -> str:
    """Return a driver: parameters from the command line, arrays filled, the call, all arrays printed."""
    lines = [f"  int {name} = atoi(arguments_[{at}]);" for at, name in enumerate(sorted(case.shapes[0]), 1)]
    arrays = [parameter for parameter in function.parameters if parameter.array is not None]
    for at, parameter in enumerate(function.parameters):
        name = parameter.name
        if parameter.array is None and name not in case.shapes[0]:
            lines.append(f"  {parameter.type.spelling} {name} = {at + 1} * 0.375;")
        elif parameter.array is not None:
            kind = parameter.array.element.spelling
            number = " * ".join(f"(size_t)({expression(extent)})" for extent in parameter.array.extents)
            default = "k * 37 % 101 - 20" if parameter.array.element.integer else "(k * 37 % 101) * 0.0137f + 0.1f"
            lines += [
                f"  size_t size_of_{name} = {number};",
                f"  {kind} *{name} = malloc(size_of_{name} * sizeof({kind}));",
                f"  for (int k = 0; k < (int)size_of_{name}; k++) {name}[k] = {case.fills.get(name, default)};",
            ]
    called = ", ".join(f"(void *){p.name}" if p.array is not None else p.name for p in function.parameters)
    lines.append(f"  {function.name}({called});")
    lines += [f"  print({p.name}, size_of_{p.name} * sizeof *{p.name}); free({p.name});" for p in arrays]
    signature = re.search(rf"^void {function.name}\([^{{]*", source.read_text(), re.MULTILINE).group().rstrip()
    return MAIN.format(name=function.name, source=source, signature=signature, body="\n".join(lines))


def built(name: str, folder: Path) -> Built:
    """Optimize and build one program."""
    result = metafork.optimize(SUITES / f"{name}.mf", machine="all", strategies=["+register_pressure"])
    for file, text in rendered_files(result).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    (function,) = (one for one in result.unit.functions if one.name == name)
    (folder / "main.c").write_text(main_text(CASES[name], function, SUITES / f"{name}.mf"))
    include = ["-I.", f"-I{runtime_include_dir()}"]
    elision = [*WORDS, "-include", "assert.h", "-x", "c", SUITES / f"{name}.mf"]
    for words in (
        ["g++", "-std=c++17", "-x", "c++", *FLAGS, *include, "-c", f"{name}.cu", "-o", "device.o"],
        ["gcc", "-std=gnu11", *FLAGS, *include, "-c", f"{name}_host.c", "-o", "host.o"],
        ["gcc", "-std=gnu11", *FLAGS, *WORDS, "-c", "main.c", "-o", "main.o"],
        ["objcopy", "--keep-global-symbol=main", "main.o"],  # the source's own functions are in it too
        ["g++", "main.o", "host.o", "device.o", "-lm", "-o", "ours"],
        ["gcc", "-std=gnu11", *FLAGS, *elision, "-x", "none", "main.o", "-lm", "-o", "theirs"],
    ):
        done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Built(CASES[name], result, folder)


def machines(schedule: ScheduleDocument, shape: dict[str, int]) -> dict[str, str]:
    """Return limits, as ``METAFORK_MACHINE`` has them, under which kernels are chosen at a shape."""
    fields = DEFAULT.fields()
    names = {symbol: schedule.fields.get(symbol, symbol) for symbol in schedule.machine}
    base = {symbol: fields[name] for symbol, name in names.items()}
    point = dict.fromkeys((*schedule.data, *schedule.program, *schedule.opaque), 1) | shape
    derived = dict(select(schedule, point | base).derived)
    limits: dict[str, set[int]] = {symbol: {base[symbol]} for symbol in base}
    for leaf in schedule.leaves:
        systems = (*leaf.systems, *(one.limits for one in leaf.variants))
        for condition in (condition for system in systems for condition in system):
            rest = condition.difference.substitute(point | derived)
            for symbol in rest.symbols & limits.keys():
                factor = rest.coefficient(symbol)
                if rest.symbols == {symbol} and factor is not None and factor.is_constant:
                    root = -rest.substitute({symbol: 0}).constant_value() / Fraction(factor.constant_value())
                    limits[symbol] |= {max(0, int(root) + step) for step in (-1, 0, 1)}
    found: dict[str, str] = {}
    for values in product(*(sorted(limit, reverse=True) for limit in limits.values())):
        machine = dict(zip(limits, values, strict=True))
        variant = select(schedule, point | machine).variant
        if variant is not None and variant.kernel not in found:
            found[variant.kernel] = ",".join(f"{names[symbol]}={number}" for symbol, number in machine.items())
    return found


@pytest.mark.parametrize("name", sampled(CASES.keys(), SAMPLE))
@pytest.mark.sampled(4)
def test_a_program_of_a_suite(tmp_path, name):
    program = built(name, tmp_path)
    assert [warning.code for warning in program.result.warnings] == []
    left = {
        (tree.name, leaf.id, one.number)
        for tree in program.result.document.schedules
        for leaf in tree.leaves
        for one in leaf.variants
    }
    for shape in program.case.shapes:
        expected = program.run("theirs", shape).stdout
        forced = {machine for tree in program.result.document.schedules for machine in machines(tree, shape).values()}
        for machine in sorted(forced):
            done = program.run("ours", shape, METAFORK_TRACE="1", METAFORK_MACHINE=machine)
            assert done.stdout == expected, (shape, machine)
            ran = re.findall(r"^metafork: (\w+) leaf (\d+) .* variant=(\d+)$", done.stderr, re.MULTILINE)
            left -= {(name, int(leaf), int(variant)) for name, leaf, variant in ran}
    assert not left, "variants that never ran"
    trace = program.run("ours", program.case.shapes[0], METAFORK_TRACE="2").stderr
    lines = [re.fullmatch(MOVE, line) for line in trace.splitlines()]
    # What was written in several pieces comes back piece by piece.
    moves = Counter(move for move, _ in groupby(line and line.groups() for line in lines) if move is not None)
    assert moves
    assert {array for (array, _), number in moves.items() if number > 1} == program.case.several.keys()
