"""``#pragma metafork schedule``: directives in front of a schedule, in what every command makes of it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.algebra.prover import Verdict
from metafork.comprehensive.cli import cli
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification import Options, verify
from metafork.comprehensive.verification.translation.translation import validations
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.program import Phase, walk_statements

SUMS = """#include <stddef.h>
void sums(int n, int B, const float a[n][n], float y[n])
{
  int blocks = (n + B - 1) / B;
  PRAGMA
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        if (i * B + u < n) {
          float sum = 0;
          for (int k = 0; k < n; k++)
            sum += a[i * B + u][k];
          y[i * B + u] = sum;
        }
  }
}
"""


def text(schedule):
    return SUMS.replace("PRAGMA", f"#pragma metafork schedule({schedule})")


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def test_every_variant_begins_with_the_directives():
    (tree,) = optimize(text("tile(u, 4); tile(k, 2)")).schedules
    for one in (one for leaf in tree.leaves for one in leaf.variants):
        (phase,) = [stmt for stmt in walk_statements(one.version.program.body) if isinstance(stmt, Phase)]
        assert phase.threads[0].var == "u_o"


def test_the_proof_compares_with_the_program_as_it_is_written():
    (tree,) = optimize(text("tile(i, 4)")).schedules
    assert {found.verdict for found in validations(tree).values()} == {Verdict.YES}
    assert tree.written.body != tree.program.body
    assert tree.written.body == optimize(SUMS.replace("PRAGMA", "")).schedules[0].program.body


@pytest.mark.slow
def test_it_is_verified():
    report = verify(
        optimize(text("tile(u, 4, strided, peel); tile(i, 2)")), options=Options(points=8, optimization="-O0")
    )
    assert report.passed, report.failures


@pytest.mark.parametrize(
    ("schedule", "code", "line", "words"),
    [
        ("tile(q, 4)", "MF0601", 6, "there is no loop over `q`"),
        ("tile(k, 4, strided)", "MF0601", 11, "iterations of `k` hand on `sum`"),
        ("tile(u, 4); tile(u, 4)", "MF0601", 6, "there is no loop over `u`"),
        ("tiles(u, 4)", "MF0602", 5, "there is no directive `tiles`"),
        ("tile(u)", "MF0602", 5, "factor is missing"),
        (")", "MF0602", 5, "is no directive"),
    ],
)
def test_what_is_not_legal_is_refused_with_its_place(tmp_path, schedule, code, line, words):
    with pytest.raises(DiagnosticsError) as error:
        optimize(text(schedule))
    (found,) = error.value.diagnostics
    assert (found.code, found.span.line) == (code, line)
    assert words in found.message
    file = tmp_path / "sums.mf"
    file.write_text(text(schedule))
    for command in ("check", "explain"):
        result = invoke(command, file)
        assert result.exit_code == 1
        assert code in result.stderr


def test_it_stands_right_in_front_of_a_schedule():
    moved = SUMS.replace("PRAGMA", "").replace("  int blocks", "  #pragma metafork schedule(tile(u, 4))\n  int blocks")
    assert optimize(moved).schedules[0].written is None


def test_apply_prints_the_program(tmp_path):
    file = tmp_path / "sums.mf"
    file.write_text(SUMS.replace("PRAGMA", ""))
    result = invoke("apply", "tile(u, 4); cache(a)", file)
    assert result.exit_code == 0
    assert "meta_schedule cache(a)" in result.stdout
    assert "for (int u_i = 0; u_i < 4; u_i++)" in result.stdout
    assert invoke("apply", "tile(z, 4)", file).exit_code == 1
    assert invoke("apply", "tile(z", file).exit_code == 2


def test_the_page_shows_what_the_command_prints():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "schedule.md").read_text()
    schedules = re.findall(r'metafork apply "([^"]+)" examples/matmul.mf', page)
    results = [invoke("apply", one, root / "examples" / "matmul.mf") for one in schedules]
    assert [result.exit_code for result in results] == [0, 0, 1]
    plain, tiled, *_ = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    assert plain in (root / "examples" / "matmul.mf").read_text()
    assert tiled in results[0].stdout
    assert page.partition("$ metafork apply")[2].splitlines()[1].partition("error")[2] in results[-1].stderr
