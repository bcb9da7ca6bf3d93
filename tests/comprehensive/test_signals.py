"""Signals and deadlines end a run wherever they come, and leave no library half done."""

import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest

from metafork.comprehensive.signals import OutOfTimeError, until

ROOT = Path(__file__).resolve().parents[2]

BEGIN = """
import os, signal, sys, time
import z3
from metafork.comprehensive.signals import unwind_when_asked_to_end

def come():
    os.kill(os.getpid(), signal.{name})

def work():
    end = time.monotonic() + 30
    while time.monotonic() < end:
        pass
    print("lost")

unwind_when_asked_to_end()
try:
"""

END = """
    work()
except BaseException as end:
    print(type(end).__name__, end)
"""

PLACES = {
    "our own code": """
    come()
    print("went on")
""",
    "a finalizer": """
    class Finalized:
        def __del__(self):
            come()
            print("finished")
    Finalized()
""",
    "a callback of the collector": """
    import gc
    def called(phase, _):
        if phase == "start":
            come()
        else:
            print("finished")
            gc.callbacks.clear()
    gc.callbacks.append(called)
    gc.collect()
""",
    "z3, handing an object to C": """
    made = z3.z3.Z3_mk_config
    z3.z3.Z3_mk_config = lambda: (made(), come())[0]
    # As code of z3, which is over when the line is printed: the signal may come at any time behind it.
    exec("print('finished' if z3.Context().owner else 'half made')", {"__name__": "z3.own", "z3": z3})
""",
    "an import": """
    sys.path.insert(0, sys.argv[1])
    import imported
""",
}


@pytest.mark.parametrize(
    ("name", "error"), [("SIGINT", "KeyboardInterrupt"), ("SIGTERM", "SystemExit 143"), ("SIGHUP", "SystemExit 129")]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_waits_for_what_would_be_left_half_done(place, name, error, tmp_path):
    (tmp_path / "imported.py").write_text("import __main__\n__main__.come()\nprint('finished')\n", encoding="utf-8")
    code = BEGIN.replace("{name}", name) + PLACES[place] + END
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    finished = [] if place == "our own code" else ["finished"]
    assert [line.strip() for line in done.stdout.splitlines()] == [*finished, error]
    assert done.stderr == ""


def test_a_signal_that_is_ignored_stays_so():
    code = (
        "import signal; from metafork.comprehensive.signals import unwind_when_asked_to_end\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); unwind_when_asked_to_end()\n"
        "assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


class Finalized:
    """An object whose end takes long enough for a time limit to fall into it."""

    def __del__(self):
        time.sleep(0.2)
        self.finished.append(True)


def test_a_deadline_waits_for_a_finalizer():
    finished = []

    def work():
        with until(time.monotonic() + 0.05):
            last = Finalized()
            last.finished = finished
            del last
            time.sleep(60)

    with pytest.raises(OutOfTimeError):
        work()
    assert finished == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_deadline_whose_exception_is_dropped_comes_again():
    def wait(_):
        time.sleep(60)

    def work():
        with until(time.monotonic() + 0.05):
            last = Finalized()
            last.finished = []
            kept = weakref.ref(last, wait)  # Python drops what is raised in there
            del last
            assert kept() is None
            time.sleep(60)

    with pytest.raises(OutOfTimeError):
        work()


def test_nothing_is_raised_behind_the_block():
    with until(time.monotonic() + 0.05):
        pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
