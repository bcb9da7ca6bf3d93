import pytest

from metafork.analysis.analyses import Analyses
from tests.metafork.interpreter import program
from tests.metafork.programs import MATMUL


def test_equal_programs_are_analysed_once():
    seen = []

    def analysis(subject, analyses):
        seen.append(subject)
        if len(seen) > 1:
            raise ValueError("not known")
        return "found"

    analyses = Analyses()
    first, second, other = program(MATMUL), program(MATMUL), program(MATMUL.replace("matmul", "other"))
    assert [analyses.of(analysis, one) for one in (first, second, first)] == ["found"] * 3
    for _ in range(2):
        with pytest.raises(ValueError, match="not known"):
            analyses.of(analysis, other)
    assert len(seen) == 2
