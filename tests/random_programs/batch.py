"""Many random programs in one build: every variant against the serial elision, at a few points, bit for bit.

Programs of a batch become one translation unit of kernels, one of serial elisions and one driver.  No tree is walked
and nothing is instrumented: ``NAME_launch_variant`` runs each variant at each point, forwards, and backwards with a
small grid that blocks walk.  The driver (``batch_driver.c``) runs each program in a process of its own and for a
limited time, so that one that crashes or hangs ends alone; what does not compile is built again by itself.
"""

import os
import re
import shlex
import subprocess
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from metafork.analysis.exactness import exact_unit
from metafork.comprehensive import registry
from metafork.comprehensive.emit import rendered_files, runtime_include_dir
from metafork.comprehensive.emit.signature import signature_of
from metafork.comprehensive.optimize import Result, discuss
from metafork.comprehensive.options import Order
from metafork.comprehensive.reading import parse
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.comprehensive.verification import plain_code
from metafork.comprehensive.verification.builds import CodeOf
from metafork.comprehensive.verification.driver import (
    ELISION_FLAGS,
    LENT,
    SERIAL_PREFIX,
    SUPPORT_DIRECTORY,
    reference_text,
)
from metafork.comprehensive.verification.points import Points
from metafork.ir.contraction import contracted_unit
from metafork.ir.messages.source import Source
from metafork.ir.program import ENDLESS, Cast, Expr
from metafork.ir.rewriting import substitute
from metafork.ir.translation_unit import TranslationUnit
from metafork.printing.expressions import expression
from tests.random_programs.generator import Generator, file_text

COUNTERS = ("threads_per_block", "shared_memory")
DRIVER = Path(__file__).parent / "batch_driver.c"
POINTS = 5
SECONDS = 20
"""Processor time that one program may take to run, and its case discussion."""
FLAGS = ("-O0", "-g0", "-w", "-ffp-contract=off", "-DMETAFORK_CPU", "-DMETAFORK_CHECK")


@dataclass
class Prepared:
    """A program with its trees, the files that users get, and values of its integer parameters.

    A program that adds up floating-point numbers in a stated order has two trees, that of the blocks' parts first.
    """

    seed: int
    unit: TranslationUnit
    trees: tuple[ScheduleTree, ...]
    files: dict[str, str]
    points: list[dict[str, int]]

    @property
    def variants(self) -> list[tuple[int, int, int]]:
        """The variants of leaves, with the number of their tree; the driver numbers them as they stand here, from 1."""
        return [
            (at, leaf.id, one.number)
            for at, tree in enumerate(self.trees)
            for leaf in tree.leaves
            for one in leaf.variants
        ]


@dataclass
class Found:
    """What a batch showed: failures by seed, how many variants exist, how many ran, and how many launches."""

    failures: dict[int, str] = field(default_factory=dict)
    variants: int = 0
    ran: int = 0
    launches: int = 0


def check_batch(
    seeds: Sequence[int], generator: type[Generator] = Generator, code_of: CodeOf = plain_code, seconds: int = SECONDS
) -> Found:
    """Compare every variant of the programs of some seeds with the serial elision."""
    found = Found()
    prepared = []
    for seed in seeds:
        try:
            prepared.append(prepare(seed, file_text([seed], generator), code_of))
        except Exception:  # noqa: BLE001 - whatever breaks off is what is looked for
            found.failures[seed] = traceback.format_exc()
    found.variants = sum(len(one.variants) for one in prepared)
    if prepared:
        _run(prepared, found, seconds)
    return found


def prepare(seed: int, text: str, code_of: CodeOf = plain_code) -> Prepared:
    """Optimize one program, without the search for races: programs have none by construction."""
    unit = exact_unit(parse(Source(f"p{seed}.mf", text), reassociate=True))
    unit = contracted_unit(unit, everywhere=seed % 4 < 2)
    order: Order = "paper" if seed % 2 else "cost"  # the former has more leaves, the latter other ways to them
    chosen = registry.counters(COUNTERS), registry.strategies(None)
    trees = tuple(discuss(one.program, *chosen, time_limit=SECONDS, order=order) for one in unit.schedules)
    files = rendered_files(Result(unit, trees, COUNTERS, trees[0].strategies), code_of=code_of)
    return Prepared(seed, unit, trees, files, _points(trees[0], seed))


def _points(tree: ScheduleTree, seed: int) -> list[dict[str, int]]:
    """Return a few points of Start: two of the first (witnesses of leaves, mostly small), others from many."""
    many = list(islice(Points(tree, seed).parameter_points(200), 30))
    chosen = many[:2] + Random(seed).sample(many[2:], min(POINTS - 2, len(many[2:])))
    names = [parameter.name for parameter in tree.program.parameters]
    return [{name: point[name] for name in names} for point in chosen]


def _run(programs: Sequence[Prepared], found: Found, seconds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metafork-batch-") as name:
        directory = Path(name)
        problem = _build(programs, directory)
        if problem and len(programs) > 1:
            for one in programs:
                _run([one], found, seconds)
            return
        if problem:
            found.failures[programs[0].seed] = problem
            return
        _read(programs, directory, found, seconds)


def _build(programs: Sequence[Prepared], directory: Path) -> str:
    """Compile and link; return what a compiler said where it does not accept a text."""
    for one in programs:
        for name in (f"{one.unit.name}.h", f"{one.unit.name}_generation.h"):
            (directory / name).write_text(one.files[name])
    kernels = "\n".join(one.files[f"{one.unit.name}.cu"] for one in programs)
    (directory / "kernels.cu").write_text(kernels)
    (directory / "serial.c").write_text("\n".join(reference_text(one.unit) for one in programs))
    (directory / "programs.h").write_text(_programs(programs))
    include = (f"-I{runtime_include_dir()}", f"-I{SUPPORT_DIRECTORY}", "-I.")
    cxx = shlex.split(os.environ.get("CXX") or "g++")
    cc = shlex.split(os.environ.get("CC") or "gcc")
    steps = [
        [*cxx, "-std=c++17", "-x", "c++", *FLAGS, *include, "-c", "kernels.cu", "-o", "kernels.o"],
        [*cc, "-std=gnu11", *FLAGS, *ELISION_FLAGS, *include, "-c", "serial.c", "-o", "serial.o"],
        [*cc, "-std=gnu11", *FLAGS, *include, "-c", str(DRIVER), "-o", "driver.o"],
        [*cxx, "driver.o", "kernels.o", "serial.o", "-lm", "-o", "driver"],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=directory, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            return f"{shlex.join(step)}\n{done.stderr[:2000]}"
    return ""


def _read(programs: Sequence[Prepared], directory: Path, found: Found, seconds: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METAFORK_")}
    limit = 30 * (seconds + 1) * len(programs) + 60
    done = subprocess.run(
        [directory / "driver", str(seconds)], capture_output=True, text=True, errors="replace", timeout=limit,
        env=environment, check=False,
    )  # fmt: skip
    said: dict[int, list[str]] = {one.seed: [] for one in programs}
    finished: set[int] = set()
    for line in done.stdout.splitlines():
        word, seed, *rest = line.split(" ", 2)
        match word:
            case "wrong":
                said[int(seed)] += rest
            case "launches":
                found.launches += int(rest[0])
            case "leaf":
                found.ran += 1
            case "finished":
                finished.add(int(seed))
    for one in programs:
        if one.seed not in finished and not said[one.seed]:
            said[one.seed].append(f"the driver ended: {done.stderr[-2000:]}")
        if said[one.seed]:
            points = [f"point {at}: {point}" for at, point in enumerate(one.points)]
            found.failures[one.seed] = "\n".join([*said[one.seed][:20], *points])


def _programs(programs: Sequence[Prepared]) -> str:
    """Return the generated part of the driver: a function for each program, and the table of them."""
    lines = []
    for one in programs:
        lines += [f'#include "{one.unit.name}.h"', *_program(one)]
    rows = ", ".join(f"{{{one.seed}, run_{one.seed}}}" for one in programs)
    lines += [f"static const struct {{ int seed; void (*run)(void); }} programs[] = {{{rows}}};", ""]
    return "\n".join(lines)


def _program(one: Prepared) -> list[str]:
    (function,) = one.unit.functions
    signatures = [signature_of(tree.program) for tree in one.trees]
    random = Random(one.seed)
    arrays = [p for p in function.parameters if p.array is not None]
    order = one.unit.schedules[0].stated_order
    parts = () if order is None else order.parts
    declarations = ", ".join(parameter.declaration for parameter in function.parameters)
    lines = [
        f"extern void {SERIAL_PREFIX}{function.name}({declarations});",
        f"static void run_{one.seed}(void) {{",
        f"  static const int trees[][{len(one.trees)}][2] = {{{', '.join(_together(one))}}};",
        f"  int ran[{len(one.variants) + 1}] = {{0}};",
        f"  for (int at = 0; at < {len(one.points)}; at++) {{",
    ]
    given = {p.name: p.given for p in arrays if p.given is not None}
    for parameter in (*function.parameters, *given.values()):
        if parameter.array is not None or parameter.type is None:
            continue  # the latter is a pointer that no schedule uses
        values = [point.get(parameter.name) for point in one.points]
        if parameter.type.floating:
            listed = [str(random.choice((0.25, -1.5, 3.0, 1 / 3))) for _ in values]
        else:
            listed = [str(random.randint(1, 5) if value is None else value) for value in values]
        kind = parameter.type.spelling
        lines.append(f"    static const {kind} {parameter.name}_at[] = {{{', '.join(listed)}}};")
        lines.append(f"    const {kind} {parameter.name} = {parameter.name}_at[at];")
    for array, integral in [*((p.array, p.array.element.integer) for p in arrays), *((part, False) for part in parts)]:
        element = array.element
        fill = f"driver_fill_{'integer' if integral else element.spelling}"
        extents = " * ".join(f"elements({_in_parameters(extent, one)})" for extent in array.extents)
        size = element.size
        lines.append(f'    array of_{array.name} = made("{array.name}", {extents} * {size}, {size}, {fill});')
    names = [*(p.name for p in arrays), *(part.name for part in parts)]

    def handed(name: str, memory: str) -> str:
        return f"({given[name].name} ? (void *)({memory}) : 0)" if name in given else f"(void *)({memory})"

    theirs = ", ".join(
        handed(p.name, f"of_{p.name}.theirs") if p.array is not None else p.name if p.type is not None else "0"
        for p in function.parameters
    )
    own = set(names)
    launches = []
    for at, signature in enumerate(signatures):
        ours = [*signature.parameters, *signature.values]
        arguments = signature.arrays
        ours += [handed(name, f"of_{name}.ours + MARGIN") if name in own else f"(void *){name}" for name in arguments]
        launches.append(
            f"{signature.name}_launch_variant(trees[leaf - 1][{at}][0], trees[leaf - 1][{at}][1], 0, {', '.join(ours)})"
        )
    code = launches[0] + "".join(f";\n        if (!code) code = {launch}" for launch in launches[1:])
    # Tables that threads read apart are arrays of the file.
    lines[:0] = re.findall(r"^static const \w+(?: \w+)* \w+\[.*;$", one.unit.source.text, re.MULTILINE)
    lines += [
        "    driver_forget_terms();",
        f"    {SERIAL_PREFIX}{function.name}({theirs});",
        f"    for (int leaf = 1; leaf <= {len(one.variants)}; leaf++)",
        "      for (int pass = 0; pass < 2; pass++) {",
        "        const char *how = set_up(pass, at);",
        *(f"        renew(&of_{name});" for name in names),
        f"        int code = {code};",
        "        if (code == METAFORK_ERESOURCES) continue;",
        "        launches++;",
        f'        if (!ran[leaf]++) printf("leaf {one.seed} %d\\n", leaf);',
        f'        if (code) {{ wrong({one.seed}, leaf, at, how, "launch says", code); continue; }}',
        *(f"        compared({one.seed}, leaf, at, how, &of_{p.name});" for p in arrays),
        "      }",
        *(f"    released(&of_{name});" for name in names),
        "  }",
        "}",
    ]
    return lines


def _together(one: Prepared) -> list[str]:
    """Return which variant of each tree is launched for each one: the own one of the first leaf of the others."""
    others = [f"{{1, {len(tree.leaves[0].variants) if tree.leaves else 0}}}" for tree in one.trees]
    rows = [
        [f"{{{leaf}, {variant}}}" if at == of else other for at, other in enumerate(others)]
        for of, leaf, variant in one.variants
    ]
    return [f"{{{', '.join(row)}}}" for row in rows]


def _in_parameters(extent: Expr, one: Prepared) -> str:
    """Return an extent as C, what is derived from parameters written out; where nobody knows it, what is lent."""
    if extent == ENDLESS:
        return str(LENT)
    definitions: dict[str, Expr] = {}
    for derived in one.trees[0].program.derived:
        definitions[derived.name] = Cast(derived.type, substitute(derived.definition, definitions))
    return expression(substitute(extent, definitions))
