"""Programs of strangers are accepted at once, or refused for a reason that is known; those that run are right."""

import subprocess
from pathlib import Path

import pytest

from metafork.analysis.exactness import exact_unit
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from tests.end_to_end.commands import METAFORK
from tests.end_to_end.stranger_cases import STRANGERS
from tests.sampling import sampled

PROGRAMS = Path(__file__).parent / "strangers"
RUNNING = {name: one for name, one in STRANGERS.items() if not one.refused}
SAMPLE = ("layer_activation", "median_filter")
"""Programs that the quick tests run; the others run with the slow ones."""


def test_every_program_is_in_the_table():
    assert sorted(path.stem for path in PROGRAMS.iterdir()) == sorted(STRANGERS)
    assert len(STRANGERS) == 30
    assert sum(not one.refused for one in STRANGERS.values()) >= 26


@pytest.mark.parametrize("name", STRANGERS)
def test_a_program_is_accepted_at_once_or_it_is_known_why_not(name):
    case = STRANGERS[name]
    errors, warnings = [], []
    try:
        unit = exact_unit(parse(Source(name, (PROGRAMS / f"{name}.mf").read_text()), reassociate=case.reassociate))
        warnings = [one.code for one in check_races(unit)]
    except DiagnosticsError as refused:
        errors = [one.code for one in refused.diagnostics]
    assert set(errors) == ({case.refused} if case.refused else set()), errors
    assert set(warnings) <= set(case.warned), warnings


@pytest.mark.parametrize("name", sampled(RUNNING.keys(), SAMPLE))
def test_an_accepted_program_computes_what_it_does_as_c(tmp_path, name):
    """A leaf that no data reaches which ``verify`` makes by itself is status 5; a wrong result would be 1."""
    words = [METAFORK, "verify", PROGRAMS / f"{name}.mf", "--points", "2", "--registers", "none"]
    words += ["--reassociate"] if RUNNING[name].reassociate else []
    done = subprocess.run([str(one) for one in words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in ((0,) if RUNNING[name].random else (0, 5)), done.stdout + done.stderr
