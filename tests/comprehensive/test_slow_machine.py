"""Proofs are bounded by what they do, not by how long it takes: a slow machine gets the same tree."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import z3

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import EFFORT, Prover, Verdict
from metafork.comprehensive.optimize import optimize

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {"counters": ["threads_per_block", "shared_memory"], "strategies": ["granularity", "caching"]}


def test_every_question_has_an_effort_and_a_clock_far_behind_it(monkeypatch):
    limits = {}
    asked = []
    set_, check = z3.Solver.set, z3.Solver.check

    def recorded(self, *arguments, **keys):
        limits.setdefault(id(self), {}).update([arguments])
        return set_(self, *arguments, **keys)

    def asking(self, *assumptions):
        asked.append(dict(limits[id(self)]))
        return check(self, *assumptions)

    monkeypatch.setattr(z3.Solver, "set", recorded)
    monkeypatch.setattr(z3.Solver, "check", asking)
    # A question that nothing before Z3 settles.
    x, y, z = (Polynomial.symbol(f"x{number}") for number in range(3))
    Prover([at_most(x * y, z * z + 3)]).proves(at_most(x * y * 2, z * z * z + x + 57))
    optimize(EXAMPLES / "transpose.mf", **QUICK)
    assert asked
    for one in asked:
        assert 10_000 <= one["rlimit"] <= EFFORT
        assert one["timeout"] >= 60_000


def test_answers_do_not_depend_on_what_was_asked_before():
    x, y, z = (Polynomial.symbol(name) for name in "xyz")
    goal = at_most(x * y * 4, (x + y) * (x + y))
    hard = [at_most(x**4 + y**4 + z**4 + n, x * y * z * 3) for n in range(3)]
    answers = []
    for before in ((), hard):
        for one in before:
            Prover(()).proves(one)
        proof = Prover([at_most(z, n * n) for n in (x, y)]).proves(goal)
        answers.append((proof.verdict, proof.counterexample))
    assert answers[0] == answers[1]
    assert answers[0][0] is Verdict.YES


@pytest.mark.slow
def test_a_machine_that_stands_still_most_of_the_time_gets_the_same_tree(tmp_path):
    """The process runs 60 of 310 milliseconds: any question that is being answered then sees a quarter of a second."""
    command = [sys.executable, "-c", "from metafork.comprehensive.cli import main; main()", "optimize"]
    command += [EXAMPLES / "transpose.mf", "--json", "--strategies", "granularity,caching"]
    expected = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout
    with (tmp_path / "slow.json").open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, cwd=tmp_path)
        while process.poll() is None:
            time.sleep(0.06)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.25)
            process.send_signal(signal.SIGCONT)
    assert (tmp_path / "slow.json").read_bytes() == expected
