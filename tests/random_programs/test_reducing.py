"""The reducer keeps a failure and takes away what it does not need."""

import pytest

from metafork import DiagnosticsError
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.strategies import granularity
from tests.random_programs.generator import file_text
from tests.random_programs.reducing import moves, reduced, verified_kind

PLANTED = """
void f(int N, int B, float v, float a[N], float c[N])
{
  int d = N / B;
  meta_schedule cache(a) {
  meta_for (int i = 0; i < d; i++) {
    meta_for (int j = 0; j < B; j++) {
      int p = (i * B + j) + 0;
      if (p > 1) {
        a[p] = (v + 1.0f) * a[p];
      }
      for (int k = 0; k < 3; k++) {
        c[p] += (a[p] + k) / 3;
      }
    }
  }
  }
}
"""


def test_what_a_failure_does_not_need_goes():
    def divides(text):
        try:
            parse(Source("f.mf", text))
        except DiagnosticsError:
            return None
        return "divides" if "/ 3" in text else None

    small = reduced(PLANTED, divides)
    assert divides(small) == "divides"
    lines = [line.strip() for line in small.splitlines() if line.strip()]
    assert not any(word in small for word in ("cache", "if (", "float v", "a[N]"))
    assert len(lines) <= 12, small
    assert all(divides(smaller) is None for smaller in moves(small))


def test_a_program_that_does_not_fail_is_refused():
    with pytest.raises(ValueError, match="does not fail"):
        reduced(PLANTED, lambda text: None)


def test_what_is_no_program_has_no_failure():
    assert verified_kind("void f(int n) {") is None


def test_a_fault_of_a_strategy_stays_itself(monkeypatch):
    """Random programs are reduced to the loop at which a planted fault of granularity shows."""

    def broken(program, analyses):
        raise ZeroDivisionError

    monkeypatch.setattr(granularity, "reduced_once", broken)
    text = file_text([9027])
    kind = verified_kind(text)
    assert kind is not None
    assert "ZeroDivisionError" in kind
    small = reduced(text, verified_kind)
    assert verified_kind(small) == kind
    assert len(small) < 0.5 * len(text), small
