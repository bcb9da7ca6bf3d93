"""Messages name the line that a preprocessor, or ``#line``, says a line comes from."""

import pytest

from metafork.frontend import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.line_markers import with_presumed_places
from metafork.ir.messages.source import Source

TEXT = """%svoid f(int n, float x[n])
{
  meta_schedule meta_block(8) {
    meta_for (int i = 0; i < n; i++)
%s      x[i] = GAMMA;
  }
}
"""


@pytest.mark.parametrize(
    ("first", "inside", "said"),
    [
        ("", "", ""),
        ('# 1 "small.c"\n', "", " (line 5 of small.c)"),
        ('# 1 "small.c" 1 3 4\n# 10 "a b.c" 2\n', "", " (line 14 of a b.c)"),
        ('# 1 "small.c"\n', '# 40 "small.c" 3 4\n', " (line 40 of small.c)"),
        ("#line 20\n", "", " (line 24)"),
        ('#line 20 "other.c"\n', "# 7\n", " (line 7 of other.c)"),
        ("", "#line 3\n", " (line 3)"),
        ("#\n", "#\n", ""),
    ],
)
def test_the_line_of_the_file_that_people_wrote_is_named(first, inside, said):
    text = TEXT % (first, inside)
    with pytest.raises(DiagnosticsError) as refused:
        parse(Source("f.mf", text))
    (found,) = with_presumed_places(refused.value.diagnostics, {"f.mf": text})
    assert found.message == f"`GAMMA` is not declared{said}"
    assert text.split("\n")[found.span.line - 1].strip() == "x[i] = GAMMA;"
    assert "gcc -E" in found.way_out
