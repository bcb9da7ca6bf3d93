import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from metafork.comprehensive.commands.swizzle import command

EXAMPLES = Path(__file__).parents[3] / "examples" / "swizzle"


def run(*arguments):
    return CliRunner().invoke(command, [str(one) for one in arguments])


def test_all_solutions_with_their_costs():
    result = run(EXAMPLES / "crc.swz", "--all")
    assert result.exit_code == 0, result.output
    assert "solution 1 of 2" in result.output
    assert "s2 = transform (3 * i + k) % 32" in result.output
    assert "0 shuffles, 6 selects" in result.output


def test_best_is_the_first_of_all():
    best = run(EXAMPLES / "crc.swz", "-D", "s=4", "--best").output.splitlines()
    every = run(EXAMPLES / "crc.swz", "-D", "s=4", "--all").output.splitlines()
    assert best[1:8] == every[1:8]


@pytest.mark.parametrize(
    ("form", "mark"),
    [
        ("cuda", "__shfl_sync"),
        ("c", "SWIZZLE_TYPE"),
        ("json", '"metafork-swizzle"'),
        ("llvm", 'call float @"llvm.nvvm.shfl.sync.idx.f32"'),
        ("ptx", "shfl.sync.idx.b32"),
    ],
)
def test_code_goes_to_a_file_with_a_picture(form, mark, tmp_path):
    out, picture = tmp_path / "code", tmp_path / "picture.svg"
    result = run(EXAMPLES / "stencil1d.swz", "--first", "--emit", form, "-o", out, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert result.output == ""
    assert mark in out.read_text()
    assert picture.read_text().startswith("<svg")
    if form == "json":
        assert json.loads(out.read_text())["version"] == 1


def test_what_has_no_ptx_is_said():
    result = run(EXAMPLES / "hvx_gaussian.swz", "--emit", "ptx")
    assert result.exit_code == 1
    assert "cannot be printed as ptx: 'r' is a table of terms" in result.output


def test_what_does_not_fit_is_said():
    result = run(EXAMPLES / "crc.swz", "-D", "s=13", "--memory", "4")
    assert result.exit_code == 1
    assert "does not fit" in result.output
    assert "--memory" in result.output


def test_a_sketch_without_solutions(tmp_path):
    path = tmp_path / "none.swz"
    path.write_text("x: [4] = input\na: [4] = ?rotate{axis=0}(x)\ngoal a = \\i. x[3 - i]\n")
    result = run(path)
    assert result.exit_code == 1
    assert "no solution" in result.output


def test_faults_have_line_and_column(tmp_path):
    path = tmp_path / "bad.swz"
    path.write_text("x: [4] = input\na: [5] = x\n")
    result = run(path)
    assert result.exit_code == 1
    assert "MF0903" in result.output
    assert ":2:4" in result.output
    assert "[5]" in result.output
    assert "[4]" in result.output


def test_a_mistake_in_an_option_is_a_usage_error():
    assert run(EXAMPLES / "crc.swz", "-D", "s").exit_code == 2


def peak_megabytes(*arguments):
    program = (
        "import resource, sys\nfrom metafork.comprehensive.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)\n"
    )
    command_line = [sys.executable, "-c", program, "swizzle", str(EXAMPLES / "crc.swz"), *arguments]
    done = subprocess.run(command_line, capture_output=True, text=True, check=False)
    return done, int(done.stderr.split("peak")[-1])


@pytest.mark.slow
def test_the_memory_bound_holds_for_the_process():
    tiny, base = peak_megabytes("-D", "s=2", "--memory", "200")
    assert tiny.returncode == 0
    done, peak = peak_megabytes("-D", "s=31", "--memory", "60")
    assert done.returncode == 1
    assert "more than the 60 MB allowed" in done.stderr
    assert peak < base + 60


def test_the_bound_ends_with_the_search():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert run(EXAMPLES / "crc.swz", "--memory", "150").exit_code == 0
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_mult64_comes_to_its_proved_optimum():
    """Swizzle Inventor's form: eight accumulations without constants in conditions, six with them, and no fewer."""
    for level, fewest in ((1, 8), (2, 6), (3, 6)):
        arguments = EXAMPLES / "mult64.swz", "-D", f"level={level}", "--best", "--objective", "accumulates"
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        assert f"{fewest} accumulates" in result.output
        assert "no solution has less accumulates" in result.output


def test_many_solutions_bring_what_to_ask_instead(monkeypatch):
    from metafork.comprehensive.commands import swizzle

    for many, told in ((2, True), (3, False)):
        monkeypatch.setattr(swizzle, "_MANY", many)
        result = run(EXAMPLES / "crc.swz", "--best")
        assert result.exit_code == 0
        assert ("--objective accumulates drops" in result.stderr) is told
    monkeypatch.setattr(swizzle, "_MANY", 2)
    assert "note:" not in run(EXAMPLES / "crc.swz", "--all").stderr


@pytest.mark.parametrize(
    ("fault", "status", "why"), [("time", 4, "the time limit was reached"), ("key", 130, "interrupted")]
)
def test_a_stopped_search_keeps_the_best_so_far(fault, status, why, monkeypatch):
    from metafork.comprehensive.signals import OutOfTimeError
    from metafork.swizzle.output import ranking

    real, costs = ranking.priced, []

    def priced(*arguments, **options):
        if len(costs) == 6:
            raise OutOfTimeError if fault == "time" else KeyboardInterrupt
        one = real(*arguments, **options)
        costs.append(one.cost.total)
        return replace(one, key=(0, -len(costs)))

    monkeypatch.setattr(ranking, "priced", priced)
    result = run(EXAMPLES / "mult64.swz", "-D", "level=1", "--best")
    assert result.exit_code == status
    assert f"{why}; 6 solutions found until then; the best of them is printed, not proved optimal" in result.stderr
    assert costs[-1] not in costs[:-1], "the last is the best here, and must be told from the others"
    assert f"cost {costs[-1]:g}:" in result.stdout
    assert "not proved optimal: stopped at 6 found" in result.stdout


def test_a_time_limit_ends_long_steps_too():
    result = run(EXAMPLES / "crc.swz", "-D", "s=20", "-D", "level=4", "--best", "--time-limit", "0.2")
    assert result.exit_code == 4
    assert "no solution was found until then, and none was excluded" in result.stderr
    assert run(EXAMPLES / "crc.swz", "--best", "--time-limit", "0").exit_code == 4
    assert run(EXAMPLES / "crc.swz", "--best", "--time-limit", "600").exit_code == 0


def test_no_solution_names_the_stage_the_cell_and_the_wider_level(tmp_path):
    path = tmp_path / "chain.swz"
    path.write_text(
        "x: [6, 2] = input\na: [6, 2] = ?rotate{axis=0}(x)\nb: [6, 2] = ?transform{axis=0, secondary=1, level=1}(a)\n"
        "goal b = \\i, j. x[i / 3 * 3 + (i + j + 1) % 3, j]\n"
    )
    result = run(path)
    assert result.exit_code == 1
    assert re.search(r"the first stage that fails is [ab], for the goal b\[\d, \d\] = x\d", result.output)
    assert "A wider level exists for b: --widen tries the levels in turn" in result.output
    widened = run(path, "--widen")
    assert widened.exit_code == 0
    assert "level 3, the first of 1 to 4 with a solution" in widened.output
    path.write_text("x: [4] = input\na: [4] = ?rotate{axis=0}(x)\ngoal a = \\i. x[3 - i]\n")
    result = run(path, "--widen")
    assert "the first stage that fails is a, for the goal a[" in result.output
    assert "Level 4 is the widest" in result.output
    assert "There is no wider level" in run(path).output
    path.write_text("x: [4] = input\ngoal x = \\i. i == 2 ? x[3] : x[i]\n")
    assert "the parts without holes fail, for the goal x[2] = x3" in run(path).output


def test_a_constant_is_set_once():
    assert run(EXAMPLES / "crc.swz", "-D", "s=3", "-D", "s=4").exit_code == 2
