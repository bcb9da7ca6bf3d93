"""Mutation testing: small faults are put into the code, one at a time; does a test notice?

    python bench/mutants.py [--number 200] [--seed 2] [--minutes 120] [--jobs 1] [--resume] [--measured FOLDER]

Mutants are drawn with a fixed seed from the folders of ``MUTATED``, first the place and then the fault: operators of
Cosmic Ray in Python (but not in annotations, docstrings and options of classes, which decide nothing), those of
``c_faults.py`` in the C headers.  Each mutant is put into a copy of the tracked files and meets the quick tests that
execute its statement: first those of its own module or folder, then the others, in each the shortest first, one minute
of tests altogether.  A test that compiles a header executes it.  The first test that fails notices the mutant, if it
passes without it.  A mutant that no such test notices is *alive*, though a longer test or one in a process of its own
might notice it.  One that computes the same as the original is *equivalent* and is listed with the reason in
``bench/mutants.toml``.  A mutant that ``--minutes`` do not allow is *not run*.

Which tests execute a statement is measured first, by one run of all quick tests; it is kept in ``build/mutants``
until a tracked file changes.  ``--measured FOLDER`` takes what was measured before a small change.

Results go to ``bench/results/mutants.json``; with ``--resume`` its sample is kept: mutants whose lines are still in
their files keep their results, and only those that went are drawn anew.  What was alive meets its tests again, after
what was not run.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from difflib import unified_diff
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from resource import RLIMIT_CPU, setrlimit
from shutil import copy2
from signal import SIGKILL, SIGXCPU
from urllib.parse import unquote
from xml.etree import ElementTree

from c_faults import accepted, c_faults
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "mutants.json"
EQUIVALENT = ROOT / "bench" / "mutants.toml"
HEADERS = "metafork/runtime/include"
MUTATED = (
    "strategies",
    "evaluators",
    "metafork/analysis",
    "metafork/frontend",
    "metafork/lowering",
    "comprehensive/case_discussion",
    "comprehensive/emit",
    "comprehensive/systems",
    HEADERS,
)
LEFT_OUT = ("core/ExceptionReplacer", "core/RemoveDecorator", "core/VariableReplacer", "core/VariableInserter")
SECONDS = 60.0
"""Of tests that a mutant meets."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: which operator at which of its places in a file; ``diff`` shows it."""

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


def drawn(number: int, seed: int, kept: Iterable[Mutant] = ()) -> list[Mutant]:
    """Return ``number`` mutants, ``kept`` first: files by their sizes, lines within them, faults at the lines."""
    random = Random(seed)
    files = [path for folder in MUTATED for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".h")]
    sizes = [path.stat().st_size for path in files]
    mutants = {mutant.id: mutant for mutant in kept}
    while len(mutants) < number:
        (path,) = random.choices(files, sizes)
        places = _places(path)
        if places:
            line = random.choice(sorted(places))
            mutant = _mutant(path, *random.choice(places[line]))
            if mutant is not None:
                mutants.setdefault(mutant.id, mutant)
    return list(mutants.values())[:number]


def found_again(mutants: Sequence[Mutant]) -> dict[str, Mutant]:
    """Return those mutants that can still be made, by the names that they had; lines around them may have moved."""
    found = {}
    for mutant in mutants:
        for path, occurrence in _perhaps(mutant):
            again = _mutant(path, mutant.operator, occurrence)
            if again is not None and again.id == mutant.id:
                found[mutant.id] = again
                break
    return found


def _perhaps(mutant: Mutant) -> Iterator[tuple[Path, int]]:
    """Yield where a mutant may be: its old occurrence, then those around it."""
    path = ROOT / mutant.file
    if path.exists():
        yield path, mutant.occurrence
        same = [at for faults in _places(path).values() for name, at in faults if name == mutant.operator]
        yield from ((path, at) for at in sorted(same, key=lambda at: abs(at - mutant.occurrence)))


@cache
def _places(path: Path) -> Mapping[int, Sequence[tuple[str, int]]]:
    """Return the faults that can be made, by line: operators with the number of the occurrence."""
    text = path.read_text()
    found: dict[int, list[tuple[str, int]]] = {}
    if path.suffix == ".h":
        count: Counter[str] = Counter()
        for fault in c_faults(text):
            found.setdefault(1 + text.count("\n", 0, fault.start), []).append((fault.operator, count[fault.operator]))
            count[fault.operator] += 1
        return found
    nodes = list(ast_nodes(get_ast(text)))
    for name in operator_names():
        if name in LEFT_OUT or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        positions = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            found.setdefault(start[0], []).append((name, occurrence))
    return found


def _changed(file: str, text: str, operator: str, occurrence: int) -> str | None:
    """Return the text of a file with a fault."""
    if file.endswith(".h"):
        fault = next(islice((one for one in c_faults(text) if one.operator == operator), occurrence, None), None)
        return None if fault is None else fault.put_into(text)
    return mutate_code(text, get_operator(operator)(), occurrence)


def _mutant(path: Path, operator: str, occurrence: int) -> Mutant | None:
    """Return a mutant, or ``None`` if it changes nothing that decides, or does not compile."""
    text, file = path.read_text(), str(path.relative_to(ROOT))
    changed = _changed(file, text, operator, occurrence)
    if changed is None or not _says_something(path, text, changed):
        return None
    before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    line = next(number for number, (one, other) in enumerate(zip(before, after, strict=False), 1) if one != other)
    diff = "".join(unified_diff(before, after, file, file, n=1))
    contents = "".join(line for line in diff.splitlines(keepends=True) if not line.startswith("@@"))
    return Mutant(hashlib.sha256((file + contents).encode()).hexdigest()[:10], file, line, operator, occurrence, diff)


def _says_something(path: Path, text: str, changed: str) -> bool:
    if path.suffix == ".h":
        return accepted(ROOT / HEADERS, path.name, changed) == accepted(ROOT / HEADERS, path.name, text)
    try:
        return _code(changed) != _code(text)
    except SyntaxError:
        return False


class _Deciding(ast.NodeTransformer):
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
    return ast.dump(_Deciding().visit(ast.parse(text)))


class Tree:
    """A copy of the project that one mutant after the other is put into."""

    def __init__(self, folder: Path, reached: Reached) -> None:
        self.folder = compiled(copied(folder))
        self.reached = reached
        self.sound: dict[str, bool] = {}
        """Whether tests pass without a mutant."""

    def meet(self, one: Outcome) -> None:
        """Let a mutant meet its tests."""
        mutant, path = one.mutant, self.folder / one.mutant.file
        text = path.read_text()
        contexts = self.reached.contexts(mutant.file, _statement(path, mutant.line))
        tests = self.reached.shortest(contexts, self._own(mutant.file))
        changed = _changed(mutant.file, text, mutant.operator, mutant.occurrence)
        assert changed is not None
        while True:
            path.write_text(changed)
            try:
                one.by = self._noticed(tests)
            finally:
                path.write_text(text)
            if self._sound(one.by):
                break
        one.outcome = "killed" if one.by else "alive"

    def _own(self, file: str) -> str:
        """Return the module of tests of that name, or the nearest folder of tests."""
        own = Path("tests") / Path(file).with_suffix("").parent / f"test_{Path(file).stem}.py"
        if file.endswith(".h"):
            own = Path("tests/runtime")
        return str(next(place for place in (own, *own.parents) if (self.folder / place).exists()))

    def _sound(self, test: str) -> bool:
        """Say whether a test passes without a mutant; what is no test is sound."""
        if "::" in test and test not in self.sound:
            self.sound[test] = not self._noticed([test])
            if not self.sound[test]:
                print(f"{test} fails without a mutant", flush=True)
        return self.sound.get(test, True)

    def _noticed(self, tests: Sequence[str]) -> str:
        """Return which of some tests failed; nothing if all passed.

        Each process has a limit of processor time: a mutant that loops without end is noticed too, and a busy machine
        changes nothing; one that waits for ever is noticed after an hour.
        """
        modules = [
            one for one in dict.fromkeys(test.partition("::")[0] for test in tests) if (self.folder / one).exists()
        ]
        if not modules:
            return ""
        named, report = self.folder / "tests_to_run", self.folder / "report.xml"
        named.write_text("\n".join(tests) + "\n")
        report.unlink(missing_ok=True)
        unsound = [f"--deselect={test}" for test, sound in self.sound.items() if not sound]
        limit = math.ceil(60 + 5 * sum(self.reached.seconds[test] for test in tests))
        try:
            done = subprocess.run(
                _pytest("-x", f"--junitxml={report}", *unsound, *modules),
                cwd=self.folder,
                env=_environment(self.folder) | {"MUTANTS_TESTS": str(named)},
                capture_output=True,
                check=False,
                timeout=3600,
                preexec_fn=lambda: setrlimit(RLIMIT_CPU, (limit, limit)),
            )
        except subprocess.TimeoutExpired:
            return "waited for an hour"
        if done.returncode in (-SIGXCPU, -SIGKILL):
            return f"not ended after {limit} s of processor time"
        if done.returncode in (0, 5):
            return ""
        failed = [test for test, _, passed in _cases(report) if not passed] if report.exists() else []
        return failed[0] if failed else f"pytest ended with {done.returncode}"


def _cases(report: Path) -> Iterator[tuple[str, float, bool]]:
    """Yield the tests of a report of pytest with their seconds, and whether they passed; none that was skipped."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            module, name = case.get("classname", "").replace(".", "/"), case.get("name", "")
            test = f"{module}.py::{name}" if module else name  # a module that cannot be imported
            yield test, float(case.get("time", 0)), len(case) == 0


class Reached:
    """Which quick tests execute a statement, and how long each of them takes, as ``measured`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._data = CoverageData(str(folder / "coverage"))
        self._data.read()
        self._compiled: dict[str, set[str]] = {}
        """The contexts that compile a header."""
        for rule in (folder / "headers").read_text().replace("\\\n", " ").splitlines():
            context, _, files = rule.partition(":")
            for file in files.split():
                self._compiled.setdefault("/".join(Path(file).parts[-2:]), set()).add(unquote(context))
        found = [case for report in sorted(folder.glob("*.xml")) for case in _cases(report)]
        self.seconds = {test: seconds for test, seconds, passed in found if passed}

    def contexts(self, file: str, lines: range) -> set[str]:
        """Return tests and phases that execute one of ``lines``, or all of the file if these are only imported."""
        if file.endswith(".h"):
            return self._compiled.get("/".join(Path(file).parts[-2:]), set())
        name = next((known for known in self._data.measured_files() if known.endswith(f"/{file}")), None)
        by_line = {} if name is None else self._data.contexts_by_lineno(name)
        here = {context for line in lines for context in by_line.get(line, ()) if context}
        return here or {context for contexts in by_line.values() for context in contexts if context}

    def shortest(self, contexts: Iterable[str], own: str) -> list[str]:
        """Return tests of these contexts, ``own`` ones first, until they take ``SECONDS`` together, but one at least.

        What a fixture of a module executes, all tests of the module may notice.
        """
        exact = {context.rpartition("|")[0] for context in contexts if context.endswith("|run")}
        modules = {context.partition("::")[0] for context in contexts if not context.endswith("|run")}
        tests = [test for test in self.seconds if test in exact or test.partition("::")[0] in modules]
        tests.sort(key=lambda test: (not test.startswith((f"{own}/", f"{own}::")), self.seconds[test], test))
        spent = list(accumulate(self.seconds[test] for test in tests))
        return tests[: max(1, bisect_right(spent, SECONDS))]


def measured(tree: Path, folder: Path) -> None:
    """Run all quick tests of a copy once, folder by folder; write what each executes, and its time, into ``folder``.

    What was measured before stays, so that a run that was cut off goes on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[str]] = {}
    for path in sorted((tree / "tests").rglob("test_*.py")):
        name = path.relative_to(tree)
        parts.setdefault("_".join(name.parent.parts[:3]), []).append(str(name))
    source = ["--cov=metafork"]
    environment = _environment(tree)
    environment |= {"COVERAGE_FILE": str(folder / "coverage"), "MUTANTS_HEADERS": str(folder / "headers")}
    for part, modules in parts.items():
        report = folder / f"{part}.xml"
        if report.exists():
            continue
        command = _pytest(*source, "--cov-context=test", "--cov-report=", "--cov-append", f"--junitxml={report}")
        done = subprocess.run(
            [*command, *modules], cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 5):
            print(f"without a mutant, {part} ends with {done.returncode}:\n{done.stdout[-2000:]}", flush=True)


def _of_these_files(tree: Path) -> Path:
    """Return the folder of what was measured of the tracked files as they are; measure them in ``tree`` if need be."""
    copied(tree)
    files = (path for path in sorted(tree.rglob("*")) if path.is_file())
    folder = ROOT / "build" / "mutants" / hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    measured(tree, folder)
    return folder


def _statement(file: Path, line: int) -> range:
    """Return the lines of the statement of a line; of one with a body, those before the body."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(file.read_text())) if file.suffix == ".py" else ():
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or line) + 1
            if line < end:
                best = range(node.lineno, max(end, node.lineno + 1))
    return best


def _pytest(*arguments: str) -> list[str]:
    options = ("-q", "-p", "no:cacheprovider", "-p", "chosen_tests", "-m", "not slow")
    return [sys.executable, "-m", "pytest", *options, *arguments]


def _environment(tree: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": f"{tree}:{tree / 'bench'}", "METAFORK_VERIFY": "1"}


def copied(target: Path) -> Path:
    """Return a copy of the tracked files."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy2(ROOT / name, target / name)
    return target


def compiled(tree: Path) -> Path:
    """Compile all modules to byte code that goes by the hash of its source, which later writes of it keep to.

    Byte code by time and size would miss a mutant of the same size that is put in within the same second.
    """
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(tree)]
    subprocess.run(command, env=_environment(tree), check=True)
    return tree


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the counts, and which part of those that are not equivalent were noticed."""
    count = Counter(one.outcome for one in outcomes)
    judged = count["killed"] + count["alive"]
    share = f"{100 * count['killed'] / judged:.0f} %" if judged else "none"
    kinds = ", ".join(f"{count[kind]} {kind}" for kind in ("killed", "alive", "equivalent", "not run"))
    return f"{len(outcomes)} mutants: {kinds}; {share} of those run and not equivalent were noticed"


def main() -> None:
    """Run, and write the results after each mutant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep the results of unchanged mutants")
    parser.add_argument("--measured", type=Path, help="which tests execute what, of an earlier run")
    options = parser.parse_args()
    known = {row["mutant"]["id"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    kept = found_again([Mutant(**row["mutant"]) for row in known.values()]) if options.resume else {}
    outcomes = [Outcome(mutant) for mutant in drawn(options.number, options.seed, kept.values())]
    reasons = tomllib.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    for one in outcomes:
        if one.mutant.id in reasons:
            one.outcome, one.by = "equivalent", reasons[one.mutant.id]
        elif one.mutant.id in kept:
            row = known[one.mutant.id]
            one.outcome, one.by = row["outcome"], row["by"]
    end = time.monotonic() + 60 * options.minutes
    with ExitStack() as stack, ThreadPoolExecutor(options.jobs) as pool:
        folders = [stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants_")) for _ in range(options.jobs)]
        reached = Reached(options.measured or _of_these_files(Path(folders[0]) / "whole"))
        trees = [Tree(Path(folder) / "mutated", reached) for folder in folders]
        left = iter([one for kind in ("not run", "alive") for one in outcomes if one.outcome == kind])

        def work(tree: Tree) -> None:
            for one in left:
                if time.monotonic() > end:
                    return
                tree.meet(one)
                print(f"{one.mutant.id} {one.mutant.file}:{one.mutant.line} {one.outcome} {one.by}", flush=True)
                write(outcomes)

        list(pool.map(work, trees))
    write(outcomes)
    print(summary(outcomes))


def write(outcomes: Sequence[Outcome]) -> None:
    """Write the results as they stand."""
    RESULTS.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")


if __name__ == "__main__":
    main()
