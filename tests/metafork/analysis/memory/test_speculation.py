"""Conditions around sums of a thread that are left out, and those that somebody would miss."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.memory.speculation import left_out
from metafork.ir.program import If, walk_statements
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

TEXT = """
void f(int n, int B, float f, const float a[n][n], const float b[n], const int k[n], float c[n][n])
{{
  int m = (n + 2 * B - 1) / (2 * B);
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < m; i++)
      meta_for (int j = 0; j < m; j++) {{
        {type} s[B][B][2][2];
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < B; u++)
            for (int y = 0; y < 2; y++)
              for (int w = 0; w < 2; w++)
                s[v][u][y][w] = 1;
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < B; u++)
            for (int y = 0; y < 2; y++)
              for (int w = 0; w < 2; w++) {{
                int r = (2 * i + y) * B + v, q = (2 * j + w) * B + u;
                if ({sums}) {{ {body} }}
              }}
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < B; u++)
            for (int y = 0; y < 2; y++)
              for (int w = 0; w < 2; w++) {{
                int r = (2 * i + y) * B + v, q = (2 * j + w) * B + u;
                if ({store}) c[r][q] = s[v][u][y][w];
              }}
      }}
  }}
}}"""
BOTH = "r < n && q < n"
SUM = "s[v][u][y][w] += a[r][q] * 2;"


def text(name="f", sums=BOTH, store=BOTH, body=SUM, type_="float"):
    changed = TEXT.format(sums=sums, store=store, body=body, type=type_, cached="a" * ("a[" in body))
    return changed.replace("void f(", f"void {name}(")


LEFT_OUT = {
    "a sum": {},
    "a stronger condition behind": {"store": f"{BOTH} && r < q"},
    "a weaker condition around": {"sums": "r < n", "body": f"if (q < n) {{ {SUM} }}"},
    "a scalar of its own": {"body": "float x = a[r][q] + f; s[v][u][y][w] = s[v][u][y][w] * x;"},
}
STAYS = {
    "a weaker condition behind": {"store": "r < n", "body": "s[v][u][y][w] += a[r][q];"},
    "another element behind": {"store": "(2 * i + w) * B + v < n && (2 * j + y) * B + u < n && r < n && q < n - 1",
                               "sums": "r < n && q < n && y < w"},
    "integers": {"type_": "int", "body": "s[v][u][y][w] += k[0];"},
    "global memory": {"body": "s[v][u][y][w] += b[r];"},
    "a store": {"body": f"{SUM} c[r][q] = 0;"},
    "a loop of any length": {"body": f"for (int t = 0; t < n; t++) {SUM}"},
    "a number of an index": {"body": "s[v][u][y][w] += a[r][q] * (float)(r * q);"},
}  # fmt: skip


def conditions(**how):
    one, analyses = program(text(**how)), Analyses()
    (path,) = block_memory(one, analyses).paths
    facts = block_memory(one, analyses).facts
    found = left_out(path, analyses.prover(facts.constraints, facts.derived))
    every = [stmt for stmt in walk_statements(path.program.body) if isinstance(stmt, If)]
    return [id(stmt) in found for stmt in every]


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_nobody_reads_is_computed_in_any_case(name):
    *sums, store = conditions(**LEFT_OUT[name])
    assert all(sums)
    assert not store


@pytest.mark.parametrize("name", STAYS)
def test_what_somebody_would_miss_stays(name):
    assert not any(conditions(**STAYS[name]))


def test_kernels_give_what_the_program_says(tmp_path):
    points = [{**one, "f": 0.5} for one in grid(n=(1, 5, 8), B=(1, 2, 3))]
    every = LEFT_OUT | {name: how for name, how in STAYS.items() if name in ("integers", "another element behind")}
    cases = [Case(text(f"f{number}", **how), points, label=name) for number, (name, how) in enumerate(every.items())]
    assert run(cases, tmp_path) == {}
