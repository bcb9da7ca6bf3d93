import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from comprehensive.commands.swizzle import command

EXAMPLES = Path(__file__).parents[3] / "examples" / "swizzle"


def run(*arguments):
    return CliRunner().invoke(command, [str(one) for one in arguments])


def test_all_solutions_with_their_costs():
    result = run(EXAMPLES / "crc.swz", "--all")
    assert result.exit_code == 0, result.output
    assert "solution 1 of 2" in result.output
    assert "s2 = transform (3 * i + k) % 32" in result.output
    assert "3 shuffles" in result.output


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


def test_shared_memory_has_no_ptx():
    result = run(EXAMPLES / "polynomial_shared.swz", "--emit", "ptx")
    assert result.exit_code == 1
    assert "cannot be printed as ptx: 'a' is in shared memory" in result.output


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
        "import resource, sys\nfrom comprehensive.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)\n"
    )
    command_line = [sys.executable, "-c", program, "swizzle", str(EXAMPLES / "crc.swz"), *arguments]
    done = subprocess.run(command_line, capture_output=True, text=True, check=False)
    return done, int(done.stderr.split("peak")[-1])


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
