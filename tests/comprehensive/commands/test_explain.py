from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.optimize import optimize
from tests.metafork.programs import JACOBI, MATMUL

SUM = """void sum(int n, int B, const int end[n], const float a[n], float y[n])
{
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++)
        for (int k = 0; k < end[u]; k++)
          y[i * B + u] += a[k];
  }
}
"""
QUICK = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"]}


def invoke(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


def written(folder, text, name="sum.mf"):
    path = folder / name
    path.write_text(text)
    return path


def test_remarks_stand_under_their_lines_with_reason_and_hint(tmp_path):
    path = written(tmp_path, SUM)
    result = invoke("explain", path)
    assert result.exit_code == 0
    assert result.stdout.startswith("sum_k0: the schedule at line 4, function sum\n")
    assert (
        f"""
{path}:8:27: note: a does not go through shared memory
   8 |           y[i * B + u] += a[k];
     |                           ^~~~
     = reason: the range of k in an index of a is not known
     = hint: let k run to a bound in parameters, and write if (k < end[u]) inside
"""
        in result.stdout
    )
    assert (
        f"""
{path}:7:9: note: the loop over k does not join the grid
   7 |         for (int k = 0; k < end[u]; k++)
     |         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
     note: because of this (line 7)
   7 |         for (int k = 0; k < end[u]; k++)
     |                             ^~~~~~
     = reason: its extent is no known quantity of parameters
"""
        in result.stdout
    )


def test_each_schedule_is_explained_once_and_every_array_is_in_it(tmp_path):
    path = written(tmp_path, MATMUL + JACOBI, "two.mf")
    result = invoke("explain", path)
    assert [line for line in result.stdout.splitlines() if ": the schedule at" in line] == [
        "two_k0: the schedule at line 5, function matmul",
        "two_k1: the schedule at line 25, function jacobi1d",
    ]
    for subject in ("a", "b", "c"):
        assert result.stdout.count(f"note: {subject} goes") + result.stdout.count(f"note: {subject} does not go") >= 1
    assert result.stdout.count("note: the loop over w can join the grid") == 1
    assert result.stdout.count("note: the loop over k can join the grid") == 1


def test_only_the_strategies_that_are_named_are_asked(tmp_path):
    result = invoke("explain", written(tmp_path, MATMUL), "--strategies", "caching")
    assert "shared memory" in result.stdout
    assert "grid" not in result.stdout
    assert invoke("explain", written(tmp_path, MATMUL), "--strategies", "cachng").exit_code == 2


def test_faults_of_the_input_are_diagnostics(tmp_path):
    result = invoke("explain", written(tmp_path, "void f(int n) { meta_schedule { } }"), written(tmp_path, SUM, "s.mf"))
    assert result.exit_code == 1
    assert "error[MF" in result.stderr
    assert "s_k0: the schedule" in result.stdout


@pytest.mark.slow
def test_optimize_says_it_in_a_line(tmp_path):
    result = invoke("optimize", written(tmp_path, MATMUL, "m.mf"), "-o", tmp_path / "out")
    assert (
        result.stdout.splitlines()[1] == "  in shared memory: a, b; in registers: c; can join the grid: the loop over w"
    )
    result = invoke("optimize", written(tmp_path, SUM), "-o", tmp_path / "out2", "--strategies", "granularity,caching")
    hint = "hint for a: let k run to a bound in parameters, and write if (k < end[u]) inside leaf 1"
    assert f"can join the grid: nothing; {hint}" in " ".join(result.stdout.split()).replace("|- ", "")


def test_the_report_begins_with_it():
    report = optimize(MATMUL, **QUICK).to_report().splitlines()
    assert report[:4] == [
        "# input.mf",
        "",
        "**input_k0**, the schedule at line 5:",
        "",
    ]
    assert report[4] == "- a goes through shared memory (line 16): threads that differ in u read the same elements"
    assert "- the loop over k does not join the grid (lines 8 and 16): iterations of k touch one element of c" in report
    assert report.index("## input_k0: the schedule at line 5, function `matmul`") > 8


def test_leaves_are_named_by_what_they_do(tmp_path):
    path = written(tmp_path, JACOBI, "j.mf")
    out = tmp_path / "out"
    chosen = ["--counters", "shared_memory", "--strategies", "granularity,caching", "--order", "paper"]
    names = ["a in shared memory", "a in shared memory, s joined the grid", "no shared memory, s joined the grid"]
    printed = invoke("optimize", path, "-o", out, *chosen).stdout
    report = (out / "report.md").read_text()
    svg = Path(out / "j.tree.svg").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for number, name in enumerate(names, 1):
        assert f"leaf {number} ({name})\n" in printed
        assert f"**Leaf {number}**: {name}\n" in report
        assert name in svg
    selected = invoke("select", out, "--machine", "sm_80", "N=1000", "s=2", "B=16", "t=0").stdout
    assert selected.startswith("j_k0: leaf 1 (a in shared memory)\n")


def test_structures_in_registers_are_in_the_name():
    text = (Path(__file__).parents[3] / "examples" / "aos.mf").read_text()
    tree = optimize(text, counters=["shared_memory", "bank_degree"], strategies=["caching", "swizzle"])
    titles = [leaf.title for leaf in tree.document.schedules[1].leaves]
    assert "particle in the registers of a warp, fewer bank conflicts" in titles


def test_the_json_has_both_names():
    leaves = [leaf for schedule in optimize(MATMUL).document.schedules for leaf in schedule.leaves]
    variants = [one for leaf in leaves for one in leaf.variants if not one.values]
    assert all(one.effects is not None for one in variants)
    for one in variants:
        assert ("s joined the grid" in one.title) == ("granularity" in one.strategies)
        assert ("no shared memory" in one.title) == ("caching" in one.strategies)
        levels = [name[-1] for name in one.strategies if name.startswith("register_pressure")]
        assert (f"fewer registers (level {levels[-1]})" in one.title) if levels else "registers" not in one.title
        assert one.title.count("common subexpressions") <= 1
