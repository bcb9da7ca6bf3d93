"""Programs with a loop over tiles inside of the grid, and what ``granularity`` makes of them."""

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Version
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.granularity import STRATEGY
from metafork.strategies.strategy import Applied
from tests.metafork.interpreter import program, results


def in_grid(body, before="int d = N / B, e = N / (s * B);", extent="e"):
    return f"""
    void f(int N, int s, int B, float a[N][N], float b[N][N]) {{
      {before}
      meta_schedule {{
        meta_for (int g = 0; g < d; g++)
          meta_for (int i = 0; i < {extent}; i++)
            meta_for (int u = 0; u < B; u++)
              meta_for (int v = 0; v < B; v++) {{
                for (int k = 0; k < s; k++) {{ {body} }}
              }}
      }}
    }}
    """


POINTS = [{"N": 12, "s": 3, "B": 2}, {"N": 13, "s": 2, "B": 3}, {"N": 8, "s": 1, "B": 4}]
ROW = "int r = g * B + u;"


def joined(text, points):
    """Apply the strategy and compare the results; return the extents of the grid and what a block does."""
    before = program(text)
    result = STRATEGY.apply(Version(before), Analyses())
    assert isinstance(result, Applied), result
    after = result.version.program
    for seed, point in enumerate(points):
        assert results(before, point, seed) == results(after, point, seed), point
    lines = [line.strip() for line in metafork_text(after).splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("meta_for"))
    body = [line for line in lines[start:] if not line.startswith("meta_for")]
    # Closed are the braces of the innermost thread loop, the schedule and the function.
    return [(loop.var, expression(loop.extent)) for loop in after.grid], body[:-3]
