"""What the first messages of a new user say: the place to change, one cause, and a help that can be followed."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from comprehensive.cli import cli
from comprehensive.commands.names import DESCRIPTIONS
from comprehensive.registry import COUNTERS, OPTIONAL_COUNTERS, OPTIONAL_STRATEGIES, STRATEGIES

GOOD = """\
void scale(int n, int B, float x[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++)
      x[i] = 2 * x[i];
  }
}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("good.mf").write_text(GOOD)
    Path("empty.mf").write_text("\n")
    Path("folder").mkdir()

    def invoke(*arguments):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments])

    return invoke


COMMANDS = {
    "a machine that is too new": (
        "optimize good.mf --machine sm_99",
        2,
        "there is no machine 'sm_99'\n  did you mean: sm_90 (H100, H200)?\n",
        "metafork optimize --machine help",
    ),
    "a machine of another tool": ("optimize good.mf --machine compute_80", 2, "did you mean: sm_80 (A100, A30)?"),
    "a machine by its number": ("optimize good.mf --machine 8.6", 2, "did you mean: sm_86"),
    "all machines": ("optimize --machine help", 0, "sm_90    H100, H200", "Z=58112", "sm_75..sm_120"),
    "all machines, of a tree": ("select --machine help", 0, "sm_80    A100"),
    "all counters": ("optimize --counters help", 0, "shared_memory", "bank_degree"),
    "all strategies": ("verify --strategies help", 0, "caching", "double_buffering"),
    "all back ends": ("optimize --backend help", 0, "opencl"),
    "an abbreviated counter": (
        "optimize good.mf --counters smem",
        2,
        "did you mean: shared_memory?",
        "--counters help",
    ),
    "counters of registers": ("optimize good.mf --counters regs", 2, "registers_per_thread, registers_per_block?"),
    "a related strategy": ("optimize good.mf --strategies tiling", 2, "register_tile, tiles?", "--strategies help"),
    "a strategy of which nothing is known": ("optimize good.mf --strategies qqq", 2, "'qqq'\n  all strategies: "),
    "two forms": (
        "optimize good.mf --strategies +granularity,caching",
        2,
        "mixes two forms\n",
        "each name: +granularity,+caching\n",
        "leave + out: granularity,caching\n",
    ),
    "two forms of counters": (
        "optimize good.mf --counters shared_memory,+bank_degree",
        2,
        "--counters shared_memory,+",
    ),
    "no file": ("check nofile.mf", 2, "Error: there is no file nofile.mf\n"),
    "no file, optimized": ("optimize nofile.mf", 2, "Error: there is no file nofile.mf\n"),
    "a directory": ("check folder", 2, "folder is a directory; name the files in it: metafork check folder/*.mf\n"),
    "a file for a command": ("good.mf", 2, "to compile a file: metafork optimize good.mf\n", "metafork --help"),
    "a word of another tool": ("compile good.mf -o x", 2, "did you mean: metafork optimize good.mf -o x?\n"),
    "a mistyped command": ("chekc good.mf", 2, "did you mean: metafork check good.mf?\n"),
    "a word of nothing": ("quux", 2, "there is no command 'quux'\n  all commands: metafork --help\n"),
    "a code": ("explain MF0101", 0, "MF0101: ", "reason: ", "help: "),
    "codes in small letters": ("explain mf0401 MF0402", 0, "MF0401: ", "MF0402: "),
    "no code": ("explain MF9999", 2, "there is no diagnostic MF9999"),
    "a source for a tree": (
        "select good.mf --machine sm_80 n=100 B=32",
        2,
        "good.mf is a source file\n",
        "metafork optimize good.mf\n",
        "metafork select good.out --machine sm_80 n=100 B=32\n",
    ),
    "a source to draw": ("render good.mf", 2, "good.mf is a source file\n", "metafork render good.out/good.tree.json"),
}


@pytest.mark.parametrize("case", COMMANDS.values(), ids=COMMANDS)
def test_a_mistake_on_the_command_line_is_told_with_what_to_type(run, case):
    line, status, *parts = case
    result = run(*line.split())
    assert result.exit_code == status
    for part in parts:
        assert part in result.output


def test_names_have_descriptions():
    assert set(DESCRIPTIONS) == {*COUNTERS, *OPTIONAL_COUNTERS, *STRATEGIES, *OPTIONAL_STRATEGIES}


def test_what_is_told_for_a_source_can_be_typed(run):
    assert run("optimize", "good.mf").exit_code == 0
    assert run("select", "good.out", "--machine", "sm_80", "n=100", "B=32").exit_code == 0
    for given, whole in (("1e6", "1000000"), ("1_000", "1000"), ("x", "1000"), ("inf", "1000")):
        refused = run("select", "good.out", "--machine", "sm_80", f"n={given}", "B=32")
        assert (refused.exit_code, f"n={given}: give a whole number, such as n={whole}" in refused.output) == (2, True)
        assert run("select", "good.out", "--machine", "sm_80", f"n={whole}", "B=32").exit_code == 0
