import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.dependence.instances import Instances
from metafork.analysis.dependence.overlap import MOST_CASES, Overlaps
from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import references
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
    overlaps = Overlaps([write], Prover((at_most(M, 0),)), [tuple(cases)])
    assert bool(overlaps.overlap(write, write, Instances(frozenset("j"), ("i",)))) == found
