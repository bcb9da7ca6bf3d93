"""Whatever the front end is given, it says diagnostics or succeeds: no traceback, no hang, no gigabyte.

The inputs are functions of their numbers (``bad_input``), so that a number is all that a finding needs.  A batch is a
process of its own: a crash of a native library ends no more than that.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError, render_text
from metafork.ir.messages.source import Source
from tests.fuzz.bad_input import GIGABYTE, bad_input
from tests.processor_time import within

ROOT = Path(__file__).parents[2]
BATCH = 250
QUICK = 100
"""Inputs in every test run."""
ALL_BATCHES = 40
"""Batches behind the marker ``slow``: 10,000 inputs.  ``python -m tests.fuzz.bad_input FIRST COUNT`` tries others."""


def tried(first, count, *more, seconds=900):
    command = [sys.executable, "-m", "tests.fuzz.bad_input", str(first), str(count), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    faults = [line for line in lines if "fault" in line]
    assert not faults, "\n".join(f"input {fault['number']}: {fault['fault']}\n{fault['trace']}" for fault in faults)
    assert done.returncode == 0, done.stderr[-2000:]
    assert lines[-1]["kilobytes"] * 1024 < GIGABYTE
    counts = lines[-1]["counts"]
    assert sum(counts.values()) == count
    return counts


def check_batch(first, count):
    counts = tried(first, count)
    # Neither everything nor nothing is refused: the inputs reach deep enough.
    assert counts["refused"] > count // 4
    assert counts["parsed"] > 0


@pytest.mark.slow
def test_bad_input():
    check_batch(0, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(ALL_BATCHES))
def test_bad_input_all(number):
    check_batch(number * BATCH, BATCH)


@pytest.mark.slow
def test_what_parses_is_optimized():
    counts = tried(100_000, 40, "optimize")
    assert counts["optimized"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(110_000, 111_000, 100))
def test_what_parses_is_optimized_all(first):
    tried(first, 100, "optimize")


def diagnosed(text, seconds=10.0):
    """The codes of a text's diagnostics and how they print, within ``seconds`` of a fast machine's processor time."""
    with within(seconds):
        try:
            check_races(parse(Source("long.mf", text)))
        except DiagnosticsError as error:
            return {one.code for one in error.diagnostics}, render_text(error.diagnostics, {"long.mf": text})
    return set(), ""


def test_one_line_with_thousands_of_diagnostics_once_took_minutes_to_print():
    codes, printed = diagnosed("meta_for (int i = 0; i < n; i++) a[i] = 1; " * 8000)
    assert codes >= {"MF0012"}
    assert max(map(len, printed.splitlines())) < 400
    assert "     |" in printed


@pytest.mark.slow
def test_a_function_of_a_megabyte_is_refused():
    loops = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++)"
    head = f"void f(int n, int a[n]) {{\n  meta_schedule {{ {loops} {{"
    codes, _ = diagnosed(f"{head} {'a[i] = 1; ' * 100_000} }} }}\n}}\n")
    assert codes == {"MF0016"}


def test_a_race_at_every_element_is_told_once():
    """Each of thousands of conflicts was made into a witness, and all but one were thrown away."""
    loops = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)"
    codes, _ = diagnosed(f"void f(int n, int a[n]) {{ meta_schedule {{ {loops} a[k] += i + j; }} }}", seconds=4.0)
    assert codes == {"MF0401"}


@pytest.mark.slow
def test_conditions_that_a_race_meets_are_not_tried_out_against_it():
    """Each of twelve was proved anew, with a search whose steps had a hundred terms: 20 seconds."""
    loops = (
        "meta_for (int v0 = 0; v0 < dim0; v0++) meta_for (int v1 = 0; v1 < dim1; v1++) "
        "meta_for (int u0 = 0; u0 < B0; u0++) meta_for (int u1 = 0; u1 < B1; u1++) for (int k = 0; k < s; k++)"
    )
    text = (
        "void f(int N, int s, int B0, int B1, int a[N][N], int c[N * N]) { "
        f"int dim0 = N / B0, dim1 = N / (B1 * s); meta_schedule {{ {loops} {{ "
        "int i = v0 * B0 + u0; int j = (v1 * s + k) * B1 + u1; c[i * N * j] = a[i][j]; } } }"
    )
    codes, _ = diagnosed(text)
    assert codes == {"MF0401"}  # one message a cause


def test_thousands_of_schedules_without_braces_are_read_once():
    """Each was read up to the end of its function for what it does with pointers."""
    codes, _ = diagnosed("void f(int n, float *p) { " + "meta_schedule p[n] = 1; " * 4000 + "}\n")
    assert codes


def test_iterations_that_a_guard_leaves_out_are_not_all_played_through():
    loops = "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < n; j++) for (int k = 0; k < 2147483647; k++)"
    text = f"void f(int n, int a[n]) {{ meta_schedule {{ {loops} if (k > 2147483646) a[0] = i; }} }}"
    codes, _ = diagnosed(text, seconds=4.0)
    assert codes == set()


def test_an_input_is_a_function_of_its_number():
    assert bad_input(7) == bad_input(7)
    assert len({bad_input(number) for number in range(100)}) > 90
