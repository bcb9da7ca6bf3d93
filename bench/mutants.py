"""Mutation testing: small faults are put into strategies, evaluators, analysis and systems; does a test notice?

    python bench/mutants.py [--number 200] [--seed 1] [--minutes 120] [--jobs 1] [--resume] [--show ID]

Mutants are drawn with a fixed seed, first the place and then the fault (operators of Cosmic Ray; annotations and
docstrings are left out, as nothing reads them, and the options of dataclasses).  Each is put into a copy of the
tracked files and meets the tests of its own module or folder, those of its neighbours, and all quick tests, and
stops at the first that fails; that one must pass without the mutant.  One that no test notices is *alive*; one that
computes the same as the original is *equivalent* and is listed with the reason in
``bench/mutants.toml``.  What the minutes do not allow is not run, and counted as such.

Results go to ``bench/results/mutants.json``; ``--resume`` keeps what stands there for unchanged mutants.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import Path
from random import Random

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "mutants.json"
EQUIVALENT = ROOT / "bench" / "mutants.toml"
MUTATED = ("strategies", "evaluators", "metafork/analysis", "comprehensive/systems")
LEFT_OUT = ("core/ExceptionReplacer", "core/RemoveDecorator", "core/VariableReplacer", "core/VariableInserter")
NEIGHBOURS = (
    "tests/strategies",
    "tests/evaluators",
    "tests/metafork/analysis",
    "tests/comprehensive/systems",
    "tests/comprehensive/case_discussion",
    "tests/comprehensive/test_paper_programs.py",
)
STAGE_SECONDS = (900, 1800, 5400)
"""When a stage of tests is given up: a mutant that loops without end is noticed too."""


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


def drawn(number: int, seed: int) -> list[Mutant]:
    """Return ``number`` mutants: files by their sizes, lines within them, faults at the lines."""
    random = Random(seed)
    files = [path for folder in MUTATED for path in sorted((ROOT / folder).rglob("*.py")) if path.name != "__init__.py"]
    sizes = [path.stat().st_size for path in files]
    places: dict[Path, dict[int, list[tuple[str, int]]]] = {}
    mutants: dict[str, Mutant] = {}
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
    return list(mutants.values())


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
    return Mutant(hashlib.sha256((file + diff).encode()).hexdigest()[:10], file, line, operator, occurrence, diff)


class _Unannotated(ast.NodeTransformer):
    """Takes away what never decides: annotations (postponed in all modules), docstrings, decorators."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("annotation", "returns"):
            if hasattr(node, name):
                setattr(node, name, ast.Constant(None) if isinstance(node, ast.AnnAssign) else None)
        if hasattr(node, "decorator_list"):
            node.decorator_list = []
        return super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _code(text: str) -> str:
    return ast.dump(_Unannotated().visit(ast.parse(text)))


def judged(mutant: Mutant, tree: Path) -> Outcome:
    """Put a mutant into a copy of the project, run its tests, and take it out again."""
    path = tree / mutant.file
    text = path.read_text()
    changed = mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)
    told = ""
    path.write_text(changed)
    try:
        for tests, seconds in zip(_stages(mutant.file, tree), STAGE_SECONDS, strict=True):
            told = told or _noticed(tests, seconds, tree)
    finally:
        path.write_text(text)
    if told.startswith("tests/") and _noticed((told,), STAGE_SECONDS[0], tree):
        raise RuntimeError(f"{told} fails without a mutant")
    return Outcome(mutant, "killed" if told else "alive", told)


def _stages(file: str, tree: Path) -> tuple[tuple[str, ...], ...]:
    own = Path("tests") / Path(file).with_suffix("").parent / f"test_{Path(file).stem}.py"
    folder = own.parent
    nearest = [str(own)] if (tree / own).exists() else [str(folder)]
    return tuple(nearest), NEIGHBOURS, ("tests",)


def _noticed(tests: tuple[str, ...], seconds: float, tree: Path) -> str:
    """Return the test that failed, nothing where all passed."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "METAFORK_VERIFY": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not ended after {seconds} s"
    if done.returncode in (0, 5):
        return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0].partition(" ")[2] if lines else f"pytest ended with {done.returncode}"


def copied(target: Path) -> Path:
    """Return a copy of the tracked files."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


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
    options = parser.parse_args()
    outcomes = [Outcome(mutant) for mutant in drawn(options.number, options.seed)]
    if options.show:
        print("".join(one.mutant.diff for one in outcomes if one.mutant.id.startswith(options.show)))
        return
    reasons = tomllib.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    known = {row["mutant"]["id"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    for one in outcomes:
        if one.mutant.id in reasons:
            one.outcome, one.by = "equivalent", reasons[one.mutant.id]
        elif options.resume and one.mutant.id in known and known[one.mutant.id]["outcome"] in ("killed", "alive"):
            one.outcome, one.by = known[one.mutant.id]["outcome"], known[one.mutant.id]["by"]
    end = time.monotonic() + 60 * options.minutes
    left = iter([one for one in outcomes if one.outcome == "not run"])

    def work(number: int) -> None:
        with tempfile.TemporaryDirectory(prefix=f"mutants{number}_") as folder:
            tree = copied(Path(folder))
            for one in left:
                if time.monotonic() > end:
                    return
                found = judged(one.mutant, tree)
                one.outcome, one.by = found.outcome, found.by
                print(f"{one.mutant.id} {one.mutant.file}:{one.mutant.line} {one.outcome} {one.by}", flush=True)
                RESULTS.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    RESULTS.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    print(summary(outcomes))


if __name__ == "__main__":
    main()
