"""Limits: questions to solvers end, a run ends, and what they left open is told; an interrupt leaves no half file."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metafork.algebra.affine import affine_conflict
from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.algebra.prover import Prover, Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive import leaf_files, registry
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.case_discussion.instances import InstanceMaker
from metafork.comprehensive.case_discussion.properties import Judge as Z3Judge
from metafork.comprehensive.case_discussion.properties import Subject, covers_start, disjoint
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets import cuda
from metafork.comprehensive.emit.targets.target import NoCodeError
from metafork.comprehensive.optimize import NotReadInTimeError, optimize
from metafork.comprehensive.signals import OutOfTimeError, until
from metafork.comprehensive.systems.solver import PathSolver
from metafork.comprehensive.systems.systems import Systems
from metafork.comprehensive.tree.schedule_tree import Inconsistent, LeafReference, Node, NoLeaf
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.strategies.strategy import Applied, Strategy
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, Result, start, symbol
from tests.comprehensive.open_question import FERMAT, X, Y, Z
from tests.processor_time import within

ROOT = Path(__file__).parents[2]
SMOOTH = (ROOT / "examples" / "smooth.mf").read_text(encoding="utf-8")


class Slow(MadeStrategy):
    def apply(self, version, analyses=None):
        time.sleep(0.05)
        return super().apply(version, Analyses())


def many(strategy=MadeStrategy, counters=8, strategies=8):
    """A discussion whose tree has far more nodes than there is time for."""
    names = [f"r{number}" for number in range(counters)]
    made = [
        MadeCounter(name, f"M{number}", lambda version, number=number: (number + 2 + len(version)) * symbol("s"))
        for number, name in enumerate(names)
    ]
    begin = start(machine=tuple(f"M{number}" for number in range(counters)))
    return begin, made, [strategy(f"O{number}", frozenset(names)) for number in range(strategies)]


def ends(tree):
    if isinstance(tree, Node):
        yield from ends(tree.accept)
        yield from ends(tree.refuse)
    else:
        yield tree


@pytest.mark.parametrize("strategy", [MadeStrategy, Slow])
def test_a_discussion_with_many_counters_ends_in_time(strategy):
    begin, counters, strategies = many(strategy)
    with within(6):
        outcome = Discussion(begin, counters, strategies, time_limit=1.0).run(())
    assert outcome.complete is False
    assert outcome.cases
    left = [end for end in ends(outcome.root) if isinstance(end, NoLeaf) and "time limit reached" in end.reason]
    assert left
    assert all(end.system for end in left)
    assert {end.leaf for end in ends(outcome.root) if isinstance(end, LeafReference)} == set(
        range(1, len(outcome.cases) + 1)
    )


def test_an_incomplete_tree_still_covers_start_without_overlaps():
    begin, counters, strategies = many(Slow, counters=3, strategies=3)
    outcome = Discussion(begin, counters, strategies, time_limit=0.1).run(())
    assert outcome.complete is False
    subject = Subject.of_outcome(outcome, begin)
    checks = [*disjoint(subject, Z3Judge(subject)), *covers_start(subject, Z3Judge(subject))]
    assert checks
    assert {check.verdict for check in checks} == {Verdict.YES}


def test_a_limit_that_is_not_reached_changes_nothing():
    begin, counters, strategies = many(counters=2, strategies=2)
    free, bound = (Discussion(begin, counters, strategies, time_limit=limit).run(()) for limit in (None, 300.0))
    assert bound.complete
    assert (bound.root, bound.cases) == (free.root, free.cases)


def test_a_slow_strategy_of_a_program_ends_with_the_run(monkeypatch):
    calls = []

    class Sleeping(Strategy, frozen=True):
        name: str = "sleeping"
        improves: frozenset[str] = frozenset({"shared_memory", "threads_per_block"})

        def apply(self, version, analyses=None):
            calls.append(time.monotonic())
            time.sleep(0.4)
            return Applied(version, "nothing")

    chosen = registry.strategies(["granularity", "caching"])
    monkeypatch.setattr(registry, "strategies", lambda *_: (Sleeping(), *chosen))
    text = "\n".join(SMOOTH.replace("void smooth", f"void smooth{number}") for number in range(6))
    with within(8):
        result = optimize(text, counters=["threads_per_block", "shared_memory"], time_limit=1.0)
    assert not result.complete
    assert len(result.schedules) == 6
    assert result.schedules[0].leaves
    last = result.schedules[-1]
    assert (last.leaves, last.complete) == ((), False)
    assert "before this schedule was looked at" in last.root.reason
    assert len(calls) < 6
    report = result.to_report()
    assert "The time limit ended the search early" in report
    assert "everywhere: time limit reached before this schedule was looked at" in report
    assert json.loads(result.to_json())["schedules"][-1]["complete"] is False


class Endless(Strategy, frozen=True):
    """A strategy that would go on for minutes, and takes what happens to it for its own fault."""

    name: str = "endless"
    improves: frozenset[str] = frozenset({"shared_memory", "threads_per_block"})

    def apply(self, version, analyses):
        for _ in range(10**9):
            try:
                sum(range(1000))
            except Exception as error:
                raise AssertionError from error
        return Applied(version, "nothing")


@pytest.mark.parametrize("counting", [False, True])
def test_what_takes_too_long_is_given_up(monkeypatch, counting):
    endless, chosen = Endless(), registry.strategies(["granularity", "caching"])
    counters = registry.counters(["threads_per_block", "shared_memory"])

    class EndlessLater:
        """Endless on every version but the input."""

        name, kind, symbol, less_is_better, default_target = "late", "resource", "Z", True, None

        def evaluate(self, version, analyses):
            cached = version.program.mapping.cached
            return counters[1].evaluate(version, analyses) if cached else endless.apply(version, analyses)

    monkeypatch.setattr(registry, "strategies", lambda *_: chosen if counting else (endless, *chosen))
    monkeypatch.setattr(registry, "counters", lambda *_: (*counters, *([EndlessLater()] if counting else [])))
    with within(3):
        result = optimize(SMOOTH, time_limit=1.0, machine="all")
    assert not result.complete
    assert result.schedules[0].leaves
    assert any("the time limit was reached before it was done" in note for _, note in result.schedules[0].notes)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def forever(*_, **__):
    while True:
        sum(range(1000))


def out_of_time(*_):
    """What the timer does, at a place that does not depend on the clock."""
    raise OutOfTimeError


def test_a_block_has_its_least_time():
    began = time.process_time()
    with pytest.raises(OutOfTimeError), until(time.monotonic() - 5, least=0.1):
        forever()
    assert time.process_time() - began >= 0.1
    with until(time.monotonic() - 5, least=1e9):
        sum(range(10**6))
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_reading_is_given_up(monkeypatch):
    assert optimize(SMOOTH, counters=["shared_memory"], strategies=[], time_limit=0.0).schedules[0].leaves
    monkeypatch.setattr("metafork.comprehensive.optimize.parse", forever)
    monkeypatch.setattr("metafork.comprehensive.optimize.LEAST_READING", 0.01)
    with pytest.raises(NotReadInTimeError, match="while the file was read"):
        optimize(SMOOTH, time_limit=0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_remarks_are_given_up(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.optimize.explained", forever)
    monkeypatch.setattr("metafork.comprehensive.optimize.LEAST_READING", 0.01)
    unit = parse(Source("smooth.mf", SMOOTH))
    monkeypatch.setattr("metafork.comprehensive.optimize.parse", lambda source, **_: unit)
    monkeypatch.setattr(
        "metafork.comprehensive.optimize.exact_unit", lambda unit: unit
    )  # hardly any time is left for it
    result = optimize(SMOOTH, counters=["shared_memory"], strategies=[], time_limit=0.0)
    assert result.schedules[0].leaves
    assert not result.complete


@pytest.mark.parametrize("late", [True, False])
def test_variants_that_are_not_tried_are_said(monkeypatch, late):
    proposals = Discussion._proposals

    def at_the_end(discussion, finished):
        if late:
            discussion._deadline = time.monotonic() - 1
        return proposals(discussion, finished)

    monkeypatch.setattr(Discussion, "_proposals", at_the_end)
    text = """void f(int n, int B, float a[n][n], const float c[n]) {
      meta_schedule meta_block(4, B) {
        meta_for (int y = 0; y < n; y++)
          meta_for (int x = 0; x < n; x++)
            a[y][x] += c[x];
      }
    }"""
    result = optimize(text, counters=["threads_per_block"], strategies=["register_tile"])
    assert [len(leaf.variants) > 1 for leaf in result.schedules[0].leaves] == [not late]
    assert result.complete != late


def test_questions_that_are_left_open_are_said():
    begin, *_ = many()
    for deadline, late in ((0.0, True), (None, False)):
        systems = Systems(begin, deadline)
        assert not systems.late
        systems._by_solver(())
        assert systems.late == late


@pytest.mark.parametrize("static", ["auto", {"B": [16, 32]}])
@pytest.mark.parametrize("late", [True, False])
def test_instances_that_are_not_tried_are_said(monkeypatch, static, late):
    monkeypatch.setattr(InstanceMaker, "_late", lambda self: late)
    result = optimize(SMOOTH, counters=["threads_per_block"], strategies=[], static=static)
    assert result.complete != late
    said = " ".join(note for _, note in result.schedules[0].notes)
    assert ("the time limit was reached" in said) == late


@pytest.mark.parametrize("endless", [1, 2, 3, None])
def test_leaves_whose_code_is_not_made_are_left_out(monkeypatch, tmp_path, endless):
    source = Source("smooth.mf", SMOOTH)
    result = optimize(source, counters=["shared_memory"], strategies=["granularity", "caching"], order="paper")
    (tree,) = result.schedules
    assert len(tree.leaves) == 3
    code_of = cuda.leaf_code
    if endless is not None:
        name = f"smooth_k0_leaf{max(endless, 2)}"
        until_then = forever if endless == 1 else out_of_time
        monkeypatch.setattr(
            cuda, "leaf_code", lambda one, known: (until_then if one.kernel == name else code_of)(one, known)
        )
    monkeypatch.setattr(leaf_files, "LEAST_MAKING", 0.0 if endless == 1 else 1e9)
    texts = leaf_files.LeafTexts(result.analyses, "sm_80")
    kept = texts.in_time(result, 0.0)
    # The first leaf is made in any case; without any time for the others they are not even begun.
    expected = {1: 1, 2: 1, 3: 2, None: 3}[endless]
    assert [leaf.id for leaf in kept.schedules[0].leaves] == list(range(1, expected + 1))
    assert (kept is result) == (endless is None)
    assert kept.complete == (endless is None)
    files, problems = texts.files(kept)
    assert (sorted(files), problems) == (
        sorted(f"leaves/smooth_k0_leaf{n}.{kind}" for n in range(1, expected + 1) for kind in ("mf", "ll", "ptx")),
        [],
    )
    if expected < 3:
        assert f"the code of {3 - expected} of 3 kernels was not made" in kept.to_report()
    write_outputs(kept, tmp_path, code_of=texts.code_of, extra={"smooth.tree.json": kept.to_json()})
    # Where leaf 3 was, there is none now, and select says why.
    point = ["n=1000002", "s=256", "B=256"]
    process = metafork("select", str(tmp_path), "--machine", "sm_80,Z=64", *point, cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    said = out + err
    assert ("smooth_k0: leaf 3 (" in said) == (expected == 3)
    assert ("before the code of this leaf was made" in said) == (expected < 3)


ROWS = """
void rows(int n, int B, const float a[n][n], const float w[n], float c[n][n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < n / B; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        c[i * B + v][j * B + u] = a[i * B + v][j * B + u] * w[j * B + u];
  }
}
"""


def no_code(*_):
    raise NoCodeError("too long")


@pytest.mark.parametrize(
    ("fault", "said", "left"),
    [
        (out_of_time, "the code of 4 of 5 kernels was not made", []),
        (no_code, "no code for --backend cuda: too long", [f"input_k0_leaf1_v{n}" for n in (1, 2, 3)]),
    ],
)
def test_a_variant_without_code_is_left_out_and_its_leaf_stays(monkeypatch, fault, said, left):
    result = optimize(ROWS, counters=["threads_per_block"], strategies=["register_tile"])
    assert [len(leaf.variants) for leaf in result.schedules[0].leaves] == [5]
    code_of = cuda.leaf_code
    monkeypatch.setattr(
        cuda, "leaf_code", lambda one, known: (fault if one.kernel.endswith("_v1") else code_of)(one, known)
    )
    kept = leaf_files.LeafTexts(result.analyses, "sm_80").in_time(result, 0.0)
    (leaf,) = kept.schedules[0].leaves
    assert [one.kernel for one in leaf.variants] == [*left, "input_k0_leaf1"]
    assert kept.complete == (fault is no_code)
    assert said in kept.to_report()
    assert ("a variant is left out (" in kept.to_report()) == (fault is no_code)


def test_every_kind_of_question_ends():
    with within(10):
        solver = PathSolver((), integers=True, effort=2**31 - 1, timeout_ms=300)
        assert solver.check((FERMAT,)) == "unknown"
        assert Prover(()).proves(less_than((X + 1) ** 3 + (Y + 1) ** 3, (Z + 1) ** 3 + X)).verdict in Verdict
        open_question = Prover((FERMAT,)).proves(at_most(Polynomial.constant(1), Polynomial()))
        assert open_question.verdict is Verdict.UNKNOWN
        assert open_question.reason


def test_a_question_does_not_outlast_the_run():
    solver = PathSolver((), integers=True, effort=2**31 - 1, timeout_ms=60_000, deadline=time.monotonic() + 0.3)
    with within(5):
        assert solver.check((FERMAT,)) == "unknown"
        assert solver.check(()) == "unknown"


def test_isl_gives_up_at_its_limit(monkeypatch):
    rows = [at_most(symbol(f"a{n}") * (7 + n) + 3, symbol(f"a{n + 1}") * 5) for n in range(9)]
    assert affine_conflict(rows) is True
    monkeypatch.setattr("metafork.algebra.affine.OPERATIONS", 50)
    assert affine_conflict(rows) is None
    monkeypatch.undo()
    assert affine_conflict(rows) is True


def test_unknown_keeps_the_branch_and_is_told():
    begin = start(program=("x", "y", "z"), more=(FERMAT,))
    systems = Systems(begin, deadline=time.monotonic())
    assert systems.consistent((), at_most(X, Y)).verdict is Verdict.UNKNOWN
    counters = [MadeCounter("r1", "R", lambda version: X + Y)]
    outcome = Discussion(begin, counters, [MadeStrategy("O1", frozenset({"r1"}))], time_limit=0.0).run(())
    assert len(outcome.cases) == 1
    assert [end for end in ends(outcome.root) if end == Inconsistent()] == []
    told = [sentence for subject, sentence in outcome.notes if subject == "undecided cases"]
    assert any(sentence.endswith("any: x + y <= R") for sentence in told), outcome.notes
    assert all(case.witness is None for case in outcome.cases)


def metafork(*arguments, cwd, **more):
    command = [sys.executable, "-c", "from metafork.comprehensive.cli import main; main()", *arguments]
    return subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more
    )


def test_the_command_tells_that_time_ran_out(tmp_path):
    (tmp_path / "smooth.mf").write_text(SMOOTH, encoding="utf-8")
    options = ["--counters", "shared_memory", "--strategies", "granularity,caching"]
    process = metafork("optimize", "smooth.mf", *options, "--time-limit", "0", cwd=tmp_path)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4
    assert "metafork: smooth.mf: the time limit ended the run early; the tree is incomplete" in err
    tree = json.loads((tmp_path / "smooth.out" / "smooth.tree.json").read_text(encoding="utf-8"))
    assert tree["schedules"][0]["complete"] is False
    process = metafork("optimize", "smooth.mf", *options, "--time-limit", "600", cwd=tmp_path)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, "time limit" in err) == (0, False)


@pytest.mark.parametrize("delay", [0.6, 1.2, 2.4])
@pytest.mark.sampled(1)
def test_an_interrupt_writes_nothing_half_way(tmp_path, delay):
    text = "\n".join(SMOOTH.replace("void smooth", f"void smooth{number}") for number in range(40))
    (tmp_path / "many.mf").write_text(text, encoding="utf-8")
    old = tmp_path / "many.out"
    old.mkdir()
    (old / "report.md").write_text("old", encoding="utf-8")
    code = "from metafork.comprehensive.cli import main; print('begun', flush=True); main()"
    command = [sys.executable, "-c", code, "optimize", "many.mf"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert [path.name for path in old.iterdir()] == ["report.md"]
    assert (old / "report.md").read_text(encoding="utf-8") == "old"


def test_an_interrupt_reaches_through_a_question_to_z3():
    """Z3 on its own answers an interrupt with *unknown*, and the run would go on."""
    code = (
        "from metafork.comprehensive.systems.solver import PathSolver\n"
        "from tests.comprehensive.open_question import FERMAT\n"
        "solver = PathSolver((), integers=True, effort=2**31 - 1, timeout_ms=4000)\n"
        "print('asking', flush=True)\n"
        "try:\n"
        "    solver.check((FERMAT,))\n"
        "    print('went on')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "asking\n"
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"


def test_the_made_up_versions_are_what_the_tests_think():
    assert MadeStrategy("O", frozenset()).apply(()) == Result(("O",))
