"""What commands add on a terminal: colours, and a line about what takes long."""

import click
import pytest

from metafork.comprehensive.commands import progress
from metafork.comprehensive.commands.optimize import _coloured
from metafork.comprehensive.commands.progress import Progress
from metafork.comprehensive.tree.schedule_tree import Statistics

TEXT = """\
smooth_k0 (smooth.mf:4): 2 leaves for sm_75 to sm_120
  |- s*B + 2 <= Z ... leaf 1 (x in shared memory)
  |- B + 2 <= Z ..... leaf 2 (no shared memory)
  `- otherwise ...... the serial code
"""


def test_colours_change_no_letter():
    coloured = _coloured(TEXT)
    assert click.unstyle(coloured) == TEXT
    styled = [click.style("leaf 1", fg="green", bold=True), click.style("smooth_k0", bold=True)]
    assert all(one in coloured for one in styled)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_what_takes_longer_than_a_second_is_said(clock, monkeypatch, capsys):
    monkeypatch.setattr(progress, "moves_its_cursor", lambda stream: True)
    with Progress() as line:
        line.explored("smooth_k0", Statistics(nodes=1))
        assert capsys.readouterr().err == ""
        clock[0] = 3.0
        line.explored("smooth_k0", Statistics(nodes=5, paths=2))
        line.explored("smooth_k0", Statistics(nodes=6, paths=2))  # too soon after the other
        line.show("smooth: g++ compiles the kernels")
    said = capsys.readouterr().err
    assert "smooth_k0: 5 nodes, 2 paths, 3 s" in said
    assert "6 nodes" not in said
    assert "smooth: g++ compiles the kernels, 3 s" in said


def test_where_there_is_no_terminal_nothing_is_said(clock, capsys):
    with Progress() as line:
        clock[0] = 9.0
        line.show("working")
    assert capsys.readouterr().err == ""
