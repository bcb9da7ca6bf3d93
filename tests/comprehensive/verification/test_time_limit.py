"""What ends because the time of ``verify`` is over is not finished, and no failure."""

from types import SimpleNamespace

import pytest

from comprehensive.verification import Options, engine, verify
from comprehensive.verification.builds import Build, Run, runs_of

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
