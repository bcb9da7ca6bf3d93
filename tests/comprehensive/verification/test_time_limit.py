"""What ends because the time of ``verify`` is over is not finished, and no failure."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.signals import OutOfTimeError
from metafork.comprehensive.verification import Options, engine, verify
from metafork.comprehensive.verification.builds import Build, BuildError, Run, runs_of
from metafork.comprehensive.verification.registers import registers_by_target

SCALE = """
void scale(int n, int B, const float x[n], float y[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++)
      y[i] = 2 * x[i];
  }
}
"""


def test_no_program_begins_when_no_time_is_left():
    runs = list(runs_of(["no such program"], ["1\n", "2\n"], lambda: 0.0))
    assert [(run.late, run.finished) for run in runs] == [(True, False)] * 2


@pytest.mark.parametrize("over", [True, False])
def test_a_run_that_the_limit_ended_is_no_failure(monkeypatch, over):
    now = [0.0]

    def run(self, function, lines, *, raced=False, seconds):
        now[0] = 100.0 if over else 1.0
        return iter([Run("not finished after 10 s", (), finished=False, late=True)] * len(lines))

    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Build, "make", lambda self, raced: None)
    monkeypatch.setattr(Build, "run", run)
    found = verify(
        SCALE, counters=["threads_per_block"], strategies=[], options=Options(points=2, time_limit=10.0, targets=())
    )
    assert found.complete != over
    assert found.passed == over


STAND_IN = """#!/bin/sh
sleep 100000 &
echo $$ $! >> "{0}/begun"
wait
"""
"""A compiler that never ends, and what it starts neither."""


def is_running(process):
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def go_on_running(processes):
    """Return whether one of them is there after a minute: what is killed closes its files before it ends."""
    for _ in range(600):
        if not any(map(is_running, processes)):
            return False
        time.sleep(0.1)
    return True


def stand_in(monkeypatch, folder):
    """Let such a compiler compile C++; return the processes that have begun so far."""
    script = folder / "compiler"
    script.write_text(STAND_IN.format(folder))
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    begun = folder / "begun"
    return lambda: [int(one) for one in begun.read_text().split()] if begun.exists() else []


def test_compilers_that_run_when_no_time_is_left_are_ended(monkeypatch, tmp_path):
    processes = stand_in(monkeypatch, tmp_path)
    result = optimize(SCALE, counters=["threads_per_block"], strategies=[])
    function = result.unit.functions[0]
    build = Build(result, tmp_path / "build", [function], left=lambda under_way: 0.0 if processes() else 1.0)
    with pytest.raises(OutOfTimeError):
        build.make(raced=False)
    assert len(processes()) == 2
    assert not go_on_running(processes())


def test_what_a_compiler_takes_counts_before_it_ends(monkeypatch, tmp_path):
    script = tmp_path / "compiler"
    script.write_text("#!/bin/sh\nwhile :; do :; done\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    result = optimize(SCALE, counters=["threads_per_block"], strategies=[])
    build = Build(result, tmp_path / "build", result.unit.functions[:1], left=lambda under_way: 0.1 - under_way)
    with pytest.raises(OutOfTimeError):
        build.make(raced=False)


def test_a_compiler_that_the_limit_ends_is_no_failure(monkeypatch, tmp_path):
    processes = stand_in(monkeypatch, tmp_path)
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: 1000.0 if processes() else 1.0))
    found = verify(
        SCALE, counters=["threads_per_block"], strategies=[], options=Options(points=2, time_limit=500.0, targets=())
    )
    assert not found.complete
    assert found.passed
    assert not go_on_running(processes())


def test_the_others_are_ended_when_one_compiler_fails(monkeypatch, tmp_path):
    processes = stand_in(monkeypatch, tmp_path)
    result = optimize(SCALE, counters=["threads_per_block"], strategies=[])
    build = Build(result, tmp_path, [result.unit.functions[0]])
    with pytest.raises(BuildError):
        build.commands.run_all([["false"], [str(tmp_path / "compiler")]])
    assert not go_on_running(processes())


def test_counting_registers_ends_with_the_time(monkeypatch, tmp_path):
    processes = stand_in(monkeypatch, tmp_path)
    for name in ("nvcc", "ptxas"):
        (tmp_path / name).symlink_to("compiler")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    result = optimize(SCALE, counters=["threads_per_block"], strategies=[])
    with pytest.raises(OutOfTimeError):
        registers_by_target(result, "sm_80", left=lambda under_way: 0.0 if processes() else 1.0)
    assert not go_on_running(processes())
