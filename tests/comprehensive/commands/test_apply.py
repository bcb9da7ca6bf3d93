from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.frontend import parse
from metafork.ir.messages.source import Source

EXAMPLES = Path(__file__).parents[3] / "examples"


def apply(*arguments):
    return CliRunner().invoke(cli, ["apply", *map(str, arguments)])


def test_the_program_goes_to_stdout_and_what_was_done_to_stderr():
    result = apply("granularity,scalar_replacement", EXAMPLES / "smooth.mf")
    assert result.exit_code == 0
    assert "meta_for (int i = 0; i < blocks * s; i++)" in result.stdout
    said = result.stderr.splitlines()
    assert said[0].startswith("smooth_k0: granularity: the loop over k joined the grid")
    assert said[1].startswith("smooth_k0: scalar_replacement does not apply: no loop")
    assert parse(Source("again.mf", result.stdout)).schedules


def test_the_order_is_that_of_the_names():
    one = apply("cse1,granularity", EXAMPLES / "matadd.mf")
    other = apply("granularity,cse1", EXAMPLES / "matadd.mf")
    assert one.exit_code == other.exit_code == 0
    assert one.stdout != other.stdout


@pytest.mark.parametrize("name", ["heat3d", "aos", "jacobi1d"])
def test_every_schedule_is_a_function_of_its_own_and_reads_back(name):
    first = apply("cse1", EXAMPLES / f"{name}.mf")
    unit = parse(Source(f"{name}.mf", first.stdout))
    before = parse(Source(f"{name}.mf", (EXAMPLES / f"{name}.mf").read_text()))
    assert len({one.program.function for one in unit.schedules}) == len(unit.schedules) == len(before.schedules)
    assert [one.program.grid for one in unit.schedules] == [one.program.grid for one in before.schedules]


def test_one_schedule_of_several():
    result = apply("cse1", EXAMPLES / "heat3d.mf", "--schedule", "heat3d_k1")
    assert result.stdout.startswith("void heat3d_k1(")
    assert len(parse(Source("again.mf", result.stdout)).schedules) == 1


def test_an_ir_strategy_leaves_the_text_and_says_what_it_did():
    plain = apply("scalar_replacement", EXAMPLES / "smooth.mf")
    result = apply("register_pressure2", EXAMPLES / "smooth.mf")
    assert result.stdout == plain.stdout
    assert result.stderr.startswith("smooth_k0: register_pressure2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((",", EXAMPLES / "smooth.mf"), "no strategy is named"),
        (("granulrity", EXAMPLES / "smooth.mf"), "did you mean: granularity?"),
        (("cse1", EXAMPLES / "smooth.mf", "--schedule", "smooth_k1"), "'smooth_k1'; "),
        (("cse1", EXAMPLES / "smooth.mf", "--schedule", "k1"), f"'k1'; {EXAMPLES / 'smooth.mf'} has smooth_k0"),
        (("cse1", EXAMPLES / "smooth.mf", "--assume", "q <= 1"), "q"),
    ],
)
def test_mistakes_in_the_command_line_are_usage_errors(arguments, words):
    result = apply(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not result.stdout


def test_a_file_at_fault_has_diagnostics_and_status_1(tmp_path):
    path = tmp_path / "bad.mf"
    path.write_text("void f(int n) { meta_schedule { } }")
    result = apply("cse1", path)
    assert result.exit_code == 1
    assert "error[MF" in result.stderr
    assert not result.stdout
