"""Mutation testing: small faults are put into strategies, evaluators, analysis and systems; does a test notice?

    python bench/mutants.py [--number 200] [--seed 1] [--minutes 120] [--jobs 1] [--resume] [--show ID]
                            [--measured FOLDER]

Mutants are drawn with a fixed seed, first the place and then the fault (operators of Cosmic Ray; annotations and
docstrings are left out, as nothing reads them, and the options of classes).  Each is put into a copy of the
tracked files and meets the tests of its own module (where it has none, those of the folder that execute its statement),
then all quick tests that execute its statement, those of two minutes and those of ten, the shortest first, until one
fails; that one must pass without the mutant.  All mutants meet the first of these stages before any meets the
second, so that minutes that do not suffice go to where most is learned.  One that no such test notices is *alive*,
though a longer test or one in a process of its own might notice it; one that computes the same as the original is
*equivalent* and is listed with the reason in ``bench/mutants.toml``.  What the minutes do not allow is not run, and
counted as such.

Which tests execute a statement is measured first, by one run of all quick tests; it is kept in ``build/mutants``
until a tracked file changes.  ``--measured FOLDER`` takes what was measured before a small change.

Results go to ``bench/results/mutants.json``; with ``--resume`` its sample is kept: mutants whose lines are still in
their files keep their results, and only those that went are drawn anew.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import Path
from random import Random
from resource import RLIMIT_CPU, setrlimit
from signal import SIGKILL, SIGXCPU
from xml.etree import ElementTree

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "mutants.json"
EQUIVALENT = ROOT / "bench" / "mutants.toml"
MUTATED = ("strategies", "evaluators", "metafork/analysis", "comprehensive/systems")
LEFT_OUT = ("core/ExceptionReplacer", "core/RemoveDecorator", "core/VariableReplacer", "core/VariableInserter")
STAGES = (float("inf"), 120.0, 600.0)
"""Seconds of tests that a stage has: those of the mutant's own module, and the shortest of those that execute it."""
OWN_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: which operator of Cosmic Ray at which of its places in a file; ``diff`` shows it."""

    id: str
    file: str
    line: int
    operator: str
    occurrence: int
    diff: str


@dataclass(slots=True)
class Outcome:
    """What became of a mutant: ``killed``, ``alive``, ``equivalent`` (with the reason) or ``not run``."""

    mutant: Mutant
    outcome: str = "not run"
    by: str = ""
    passed: int = 0
    """How many stages of tests did not notice it."""


def drawn(number: int, seed: int, kept: Iterable[Mutant] = ()) -> list[Mutant]:
    """Return ``number`` mutants, ``kept`` first: files by their sizes, lines within them, faults at the lines."""
    random = Random(seed)
    files = [path for folder in MUTATED for path in sorted((ROOT / folder).rglob("*.py")) if path.name != "__init__.py"]
    sizes = [path.stat().st_size for path in files]
    places: dict[Path, dict[int, list[tuple[str, int]]]] = {}
    mutants = {mutant.id: mutant for mutant in kept}
    while len(mutants) < number:
        (path,) = random.choices(files, sizes)
        if path not in places:
            places[path] = _places(path.read_text())
        if not places[path]:
            continue
        line = random.choice(sorted(places[path]))
        operator, occurrence = random.choice(places[path][line])
        mutant = _mutant(path, line, operator, occurrence)
        if mutant is not None:
            mutants.setdefault(mutant.id, mutant)
    return list(mutants.values())[:number]


def found_again(mutants: Sequence[Mutant]) -> dict[str, Mutant]:
    """Return those mutants that can still be made, by the names that they had; lines around them may have moved."""
    found = {}
    for file in sorted({mutant.file for mutant in mutants}):
        path = ROOT / file
        if not path.exists():
            continue
        places = [(line, *place) for line, at in _places(path.read_text()).items() for place in at]
        for mutant in (one for one in mutants if one.file == file):
            same = [place for place in places if place[1] == mutant.operator]
            for line, operator, occurrence in sorted(same, key=lambda place: abs(place[2] - mutant.occurrence)):
                again = _mutant(path, line, operator, occurrence)
                if again is not None and again.id == mutant.id:
                    found[mutant.id] = again
                    break
    return found


def _places(text: str) -> dict[int, list[tuple[str, int]]]:
    """Return the faults that can be made, by line: operators with the number of the occurrence."""
    tree = get_ast(text)
    found: dict[int, list[tuple[str, int]]] = {}
    for name in operator_names():
        if name in LEFT_OUT or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        positions = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            found.setdefault(start[0], []).append((name, occurrence))
    return found


def _mutant(path: Path, line: int, operator: str, occurrence: int) -> Mutant | None:
    """Return a mutant, or ``None`` where only annotations or docstrings change, or it is no Python."""
    text = path.read_text()
    changed = mutate_code(text, get_operator(operator)(), occurrence)
    if changed is None:
        return None
    try:
        if _code(changed) == _code(text):
            return None
    except SyntaxError:
        return None
    file = str(path.relative_to(ROOT))
    diff = "".join(unified_diff(text.splitlines(keepends=True), changed.splitlines(keepends=True), file, file, n=1))
    return Mutant(
        hashlib.sha256((file + _contents(diff)).encode()).hexdigest()[:10], file, line, operator, occurrence, diff
    )


def _contents(diff: str) -> str:
    """Return the lines of a difference without the numbers of the lines."""
    return "".join(line for line in diff.splitlines(keepends=True) if not line.startswith("@@"))


class _Unannotated(ast.NodeTransformer):
    """Takes away what never decides: annotations (postponed in all modules), docstrings, decorators, class options."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("annotation", "returns"):
            if hasattr(node, name):
                setattr(node, name, ast.Constant(None) if isinstance(node, ast.AnnAssign) else None)
        if hasattr(node, "decorator_list"):
            node.decorator_list = []
        if isinstance(node, ast.ClassDef):
            node.keywords = []
        return super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _code(text: str) -> str:
    return ast.dump(_Unannotated().visit(ast.parse(text)))


class Tree:
    """A copy of the project that one mutant after the other is put into."""

    def __init__(self, folder: Path, reached: Reached) -> None:
        self.folder = compiled(copied(folder))
        self.reached = reached
        self.sound: set[str] = set()
        """Tests that were seen to pass without a mutant."""

    def meet(self, one: Outcome) -> None:
        """Let a mutant meet the next stage of its tests."""
        file, stage = one.mutant.file, one.passed
        path = self.folder / file
        text = path.read_text()
        lines = _statement(path, one.mutant.line)
        own = _own(file, self.folder)
        if stage == 0:
            # A whole folder takes long: of its tests those that can notice.
            here = [test for test in self.reached.tests(file, lines) if test.startswith(f"{own}/")]
            tests, seconds = [own] if own.endswith(".py") else here, OWN_SECONDS
        else:
            before = self.reached.within(file, lines, STAGES[stage - 1]) if stage > 1 else []
            tests = self.reached.within(file, lines, STAGES[stage])[len(before) :]
            seconds = 60 + 5 * sum(self.reached.seconds[test] for test in tests)
        path.write_text(mutate_code(text, get_operator(one.mutant.operator)(), one.mutant.occurrence))
        try:
            one.by = _noticed(tests, seconds, self.folder, self.reached.seconds) if tests else ""
        finally:
            path.write_text(text)
        if one.by.startswith("tests/") and one.by not in self.sound:
            if _noticed((one.by,), OWN_SECONDS, self.folder, ()):
                raise RuntimeError(f"{one.by} fails without a mutant")
            self.sound.add(one.by)
        if one.by:
            one.outcome = "killed"
        else:
            one.passed += 1
            one.outcome = "alive" if one.passed == len(STAGES) else "not run"


def _own(file: str, tree: Path) -> str:
    """Return the tests of a module: those of its name, or of the nearest folder that has some."""
    own = Path("tests") / Path(file).with_suffix("").parent / f"test_{Path(file).stem}.py"
    return str(next(place for place in (own, *own.parents) if (tree / place).exists()))


class Reached:
    """Which quick tests execute a statement, and how long each of them takes, as ``measured`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self.seconds: dict[str, float] = {}
        for case in ElementTree.parse(folder / "junit.xml").iter("testcase"):
            if len(case):
                continue  # skipped, or failed
            module, name = case.get("classname", "").replace(".", "/") + ".py", case.get("name", "")
            self.seconds[f"{module}::{name}"] = float(case.get("time", 0))

    def tests(self, file: str, lines: range) -> list[str]:
        """Return the tests that execute one of ``lines``, the shortest first.

        What a fixture of a module executes, all tests of the module may notice; what is executed by imports only,
        all tests that execute something of the file.
        """
        name = next(
            (known for known in self._data.measured_files() if known == file or known.endswith(f"/{file}")), None
        )
        by_line = {} if name is None else self._data.contexts_by_lineno(name)
        here = {context for line in lines for context in by_line.get(line, ()) if context}
        here = here or {context for contexts in by_line.values() for context in contexts if context}
        exact = {context.rpartition("|")[0] for context in here if context.endswith("|run")}
        modules = {context.partition("::")[0] for context in here if not context.endswith("|run")}
        known = (test for test in self.seconds if test in exact or test.partition("::")[0] in modules)
        return sorted(known, key=lambda test: (self.seconds[test], test))

    def within(self, file: str, lines: range, seconds: float) -> list[str]:
        """Return the shortest of these tests, until they take ``seconds`` together, but one at least."""
        taken: list[str] = []
        spent = 0.0
        for test in self.tests(file, lines):
            spent += self.seconds[test]
            if taken and spent > seconds:
                break
            taken.append(test)
        return taken


def measured(tree: Path, folder: Path) -> None:
    """Run all quick tests of a copy once; write which statements each executes, and its time, into ``folder``."""
    folder.mkdir(parents=True)
    source = [f"--cov={name}" for name in ("metafork", "comprehensive", "strategies", "evaluators")]
    report = ["--cov-context=test", "--cov-report=", f"--junitxml={folder / 'junit.xml'}"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-m", "not slow", *source, *report, "tests"]
    environment = _environment(tree) | {"COVERAGE_FILE": str(folder / "coverage")}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder)
        raise RuntimeError(f"the tests fail without a mutant:\n{done.stdout[-2000:]}")


def _of_these_files(tree: Path) -> Path:
    """Return the folder of what was measured of the tracked files as they are; measure them in ``tree`` if need be."""
    copied(tree)
    contents = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(tree.rglob("*.py"))))
    folder = ROOT / "build" / "mutants" / contents.hexdigest()[:16]
    if not folder.exists():
        measured(tree, folder)
    return folder


def _statement(file: Path, line: int) -> range:
    """Return the lines of the statement of a line; of one with a body, those before the body."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or line) + 1
            if line < end:
                best = range(node.lineno, max(end, node.lineno + 1))
    return best


def _environment(tree: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(tree), "METAFORK_VERIFY": "1"}


def _noticed(tests: Sequence[str], seconds: float, tree: Path, known: Iterable[str]) -> str:
    """Return the test that failed, of ``known`` ones, nothing where all passed.

    Each process has ``seconds`` of processor time: a mutant that loops without end is noticed too, and a busy machine
    changes nothing; one that waits for ever is noticed after an hour.
    """
    # What was measured before a change of the tests may name some that are gone.
    tests = [test for test in tests if (tree / test.partition("::")[0]).exists()]
    if not tests:
        return ""
    named = tree / "tests_to_run"
    named.write_text("\n".join(tests) + "\n")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", f"@{named}"]
    limit = math.ceil(seconds)
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=_environment(tree),
            capture_output=True,
            text=True,
            check=False,
            timeout=max(3600, seconds),
            preexec_fn=lambda: setrlimit(RLIMIT_CPU, (limit, limit)),
        )
    except subprocess.TimeoutExpired:
        return "waited for an hour"
    if done.returncode in (-SIGXCPU, -SIGKILL):
        return f"not ended after {limit} s of processor time"
    if done.returncode in (0, 5):
        return ""
    gone = set(re.findall(r"^ERROR: not found: .*?/(tests/.*)$", done.stderr, re.MULTILINE))
    if gone:
        left = [test for test in tests if not {test, test.partition("[")[0]} & gone]
        if len(left) == len(tests):
            raise RuntimeError(f"not found: {', '.join(gone)}")
        return _noticed(left, seconds, tree, known)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not lines:
        return f"pytest ended with {done.returncode}"
    said = lines[0].partition(" ")[2]  # the name, " - " and what is wrong; names have that in them too
    parts = said.split(" - ")
    names = [" - ".join(parts[: count + 1]) for count in range(len(parts))]
    new = next(name for name in (*names, said) if "[" not in name or name.endswith("]") or name == said)
    return max((test for test in known if said.startswith(test)), key=len, default=new)


def copied(target: Path) -> Path:
    """Return a copy of the tracked files."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


def compiled(tree: Path) -> Path:
    """Compile all modules to byte code that goes by the hash of its source, which later writes of it keep to.

    Byte code by time and size would miss a mutant of the same size that is put in within the same second.
    """
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(tree)]
    subprocess.run(command, env=_environment(tree), check=True)
    return tree


def summary(outcomes: list[Outcome]) -> str:
    """Return the counts, and which part of those that are not equivalent were noticed."""
    count = {
        kind: sum(one.outcome == kind for one in outcomes) for kind in ("killed", "alive", "equivalent", "not run")
    }
    judged_ones = count["killed"] + count["alive"]
    share = f"{100 * count['killed'] / judged_ones:.0f} %" if judged_ones else "none"
    return (
        f"{len(outcomes)} mutants: {count['killed']} killed, {count['alive']} alive, {count['equivalent']} equivalent, "
        f"{count['not run']} not run; {share} of those run and not equivalent were noticed"
    )


def main() -> None:
    """Run, and write the results after each mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep the results of unchanged mutants")
    parser.add_argument("--show", help="print the diff of a mutant")
    parser.add_argument("--measured", type=Path, help="which tests execute what, of an earlier run")
    options = parser.parse_args()
    known = {row["mutant"]["id"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    kept = found_again([Mutant(**row["mutant"]) for row in known.values()]) if options.resume else {}
    outcomes = [Outcome(mutant) for mutant in drawn(options.number, options.seed, kept.values())]
    if options.show:
        print("".join(one.mutant.diff for one in outcomes if one.mutant.id.startswith(options.show)))
        return
    reasons = tomllib.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    for one in outcomes:
        if one.mutant.id in reasons:
            one.outcome, one.by = "equivalent", reasons[one.mutant.id]
        elif one.mutant.id in kept:
            row = known[one.mutant.id]
            one.passed = row["passed"]
            if row["outcome"] in ("killed", "alive"):
                one.outcome, one.by = row["outcome"], row["by"]
    end = time.monotonic() + 60 * options.minutes
    with ExitStack() as stack, ThreadPoolExecutor(options.jobs) as pool:
        folders = [stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants_")) for _ in range(options.jobs)]
        reached = Reached(options.measured or _of_these_files(Path(folders[0]) / "whole"))
        trees = [Tree(Path(folder) / "mutated", reached) for folder in folders]
        for stage in range(len(STAGES)):
            left = iter([one for one in outcomes if one.outcome == "not run" and one.passed == stage])

            def work(tree: Tree, left: Iterator[Outcome] = left) -> None:
                for one in left:
                    if time.monotonic() > end:
                        return
                    tree.meet(one)
                    told = f"killed by {one.by}" if one.by else f"passed {one.passed} of {len(STAGES)} stages"
                    print(f"{one.mutant.id} {one.mutant.file}:{one.mutant.line} {told}", flush=True)
                    write(outcomes)

            list(pool.map(work, trees))
    write(outcomes)
    print(summary(outcomes))


def write(outcomes: Sequence[Outcome]) -> None:
    """Write the results as they stand."""
    RESULTS.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")


if __name__ == "__main__":
    main()
