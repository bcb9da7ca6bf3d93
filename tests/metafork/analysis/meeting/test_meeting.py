import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.facts import program_facts
from metafork.analysis.meeting.meeting import MOST_CASES, Meetings
from metafork.analysis.meeting.points import Points
from metafork.analysis.references import references
from tests.metafork.interpreter import program

C, M = Polynomial.symbol("c"), Polynomial.symbol("m")
TEXT = """
void f(int n, int c, int m, float a[n * n]) {
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < 1; j++) a[c * i] = j;
  }
}"""


@pytest.mark.parametrize(("impossible", "found"), [(0, True), (MOST_CASES, True), (MOST_CASES + 1, False)])
def test_so_many_cases_are_looked_at(impossible, found):
    subject = program(TEXT)
    (write,) = references(subject, program_facts(subject))
    cases = [*((at_most(number, M),) for number in range(1, impossible + 1)), (at_most(1, C * C),)]
    meetings = Meetings(subject, [write], Prover((at_most(M, 0),)), [tuple(cases)])
    assert bool(meetings.meet(write, write, Points(frozenset("j"), ("i",)))) == found
