"""Several inputs at a time: outcomes in order, and processes that end whatever ends the run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metafork.comprehensive.commands.side_by_side import EndedError, in_order
from tests.comprehensive.metafork_command import metafork

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
void f(int n, int B, float a[n * B]) {
  meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < B; j++) a[i * B + j] = 1; }
}
"""
ENDLESS = """
import os, signal
from dataclasses import dataclass

from metafork.evaluators.counter import NotKnown


@dataclass(frozen=True)
class Endless:
    name: str = "endless"
    kind: str = "performance"
    symbol: str = "E"
    less_is_better: bool = True
    default_target: int = 1

    def evaluate(self, version, analyses):
        open(f"begun{os.getpid()}", "x").close()
        os.rename(f"begun{os.getpid()}", f"runs{os.getpid()}")
        while True:
            signal.pause()


COUNTER = Endless()
"""


def waits_for(path):
    while not path.exists():
        pass


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_outcomes_come_in_the_order_of_the_inputs(tmp_path):
    def work(number):
        if number == 0:  # ends after the others
            waits_for(tmp_path / "2")
        (tmp_path / str(number)).touch()
        return number, os.getpid()

    numbers, processes = zip(*in_order(work, range(3), 2), strict=True)
    assert numbers == (0, 1, 2)
    assert len({*processes, os.getpid()}) == 4
    assert list(in_order(os.path.basename, ["/a", "/b"], 1)) == ["a", "b"]


def test_no_more_run_at_a_time_than_jobs(tmp_path):
    def work(number):
        (tmp_path / str(number)).touch()
        found = len(list(tmp_path.iterdir()))
        (tmp_path / str(number)).unlink()
        return found

    assert max(in_order(work, range(12), 3)) <= 3


def test_what_is_raised_comes_behind_the_outcomes_before_and_ends_the_others(tmp_path):
    def work(number):
        if number == 1:
            waits_for(tmp_path / "process")
            raise ValueError("no")
        if number == 2:
            (tmp_path / "begun").write_text(str(os.getpid()))
            (tmp_path / "begun").rename(tmp_path / "process")
            signal.pause()
        return number

    outcomes = in_order(work, range(4), 3)
    assert next(outcomes) == 0
    with pytest.raises(ValueError, match="no"):
        next(outcomes)
    assert not is_there(int((tmp_path / "process").read_text()))


def test_a_process_that_is_killed_is_an_error():
    def work(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(EndedError, match="ended with status -9"):
        list(in_order(work, range(2), 2))


@pytest.mark.slow
def test_what_is_said_is_the_same_however_many_run(tmp_path):
    for name, text in {"a": PROGRAM, "b": "void f(int n) { meta_schedule { } }", "c": PROGRAM}.items():
        (tmp_path / f"{name}.mf").write_text(text)
    files = ["a.mf", "b.mf", "c.mf", "--counters", "threads_per_block", "--static", "none"]
    one, two = (metafork("optimize", *files, "--jobs", jobs, cwd=tmp_path, status=1) for jobs in "12")
    assert (one.stdout, one.stderr) == (two.stdout, two.stderr)
    assert one.stdout.index("wrote a.out/") < one.stdout.index("wrote c.out/")
    assert "b.mf:1:17: error[MF0014]" in one.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.sampled(1)
def test_a_signal_ends_all(number, status, tmp_path):
    (tmp_path / "endless.py").write_text(ENDLESS)
    for name in ("a.mf", "b.mf"):
        (tmp_path / name).write_text(PROGRAM)
    command = [Path(sys.executable).parent / "metafork", "optimize", "a.mf", "b.mf", "--jobs", "2"]
    options = ["--plugin", "endless.py", "--counters", "endless"]
    process = subprocess.Popen(
        [*command, *options], cwd=tmp_path, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while process.poll() is None and len(list(tmp_path.glob("runs*"))) < 2:
        pass
    os.kill(process.pid, number) if number == signal.SIGTERM else os.killpg(process.pid, number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (status, "")
    assert stderr == ("\nmetafork: interrupted\n" if number == signal.SIGINT else "")
    assert not any(is_there(int(path.name.removeprefix("runs"))) for path in tmp_path.glob("runs*"))
    assert not list(tmp_path.glob("*.out"))
