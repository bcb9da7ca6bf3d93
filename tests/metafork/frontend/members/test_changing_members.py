"""Members that a function stores to: what is said, and that what is said works."""

import pytest

from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

STEPS = """
struct field {{ int n; double *now, *next; }};
void steps(struct field *f, int T, int B)
{{
  {before}
  for (int t = 0; t < T; t++) {{
    meta_schedule meta_block(B)
      meta_for (int i = 1; i < {n} - 1; i++)
        {at}next[i] = 0.5 * {at}now[i] + 0.25 * ({at}now[i - 1] + {at}now[i + 1]);
    double *swap = {at}now;
    {at}now = {at}next;
    {at}next = swap;
  }}
  {behind}
}}
"""
POINTERS = "double *now = f->now, *next = f->next;"
BACK = "f->now = now, f->next = next;"


@pytest.mark.parametrize(
    ("before", "n", "code", "help_"),
    [
        ("", "f->n", "MF0103", "in front of the schedule: `int n = f->n;`"),
        ("int n = f->n;", "n", "MF0201", "`double *now = f->now;`. They may change places; store them back behind"),
    ],
)
def test_the_help_says_what_to_copy(before, n, code, help_):
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("f.mf", STEPS.format(before=before, n=n, at="f->", behind="f->n++;")))
    found, *_ = refused.value.diagnostics
    assert found.code == code
    assert help_ in found.way_out


def test_copies_of_pointers_change_places():
    unit = parse(Source("f.mf", STEPS.format(before=f"int n = f->n; {POINTERS}", n="n", at="", behind=BACK)))
    assert len(unit.schedules) == 1
