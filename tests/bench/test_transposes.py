"""The table of transpositions: what became of each is told apart, and the picture has all of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import transposes


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"without": [0], "level": 1, "shuffles": 3, "selects": 8, "cpuSeconds": 0.1}, "level 1"),
        ({"without": [0, 1], "limitSeconds": 0.3}, "not solved within 0.3 s"),
        ({"without": [0, 1, 3, 4], "provedNone": True}, "proved to have none"),
        ({"without": [0, 1, 3], "refused": 4}, "refused at level 4"),
    ],
)
def test_what_became_of_a_transposition(row, kind):
    assert transposes.kind(row) == kind
    assert "<path" in transposes.picture([{"m": 1, "n": 1, **row}])


@pytest.mark.parametrize(("m", "n", "level"), [(3, 4, 0), (4, 2, 1), (2, 4, 3), (4, 6, 4)])
def test_the_first_level_with_a_solution(m, n, level):
    said = []
    transposes.search(m, n, said.append)
    assert said[-1]["level"] == level
    assert [one["without"] for one in said[:-1]] == [one for one in transposes.LEVELS if one < level]
