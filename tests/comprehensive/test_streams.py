"""Streams and disks that take nothing, terminals without letters or colours: one line, and no fault of ours."""

import io
import os
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.streams import colored, moves_its_cursor, prepare_streams
from tests.comprehensive.metafork_command import METAFORK

PROGRAM = """void fill(int n, float x[n])
{
  meta_schedule meta_block(8) { meta_for (int i = 0; i < n; i++) x[i] = 1; }
}
"""
PTX = (Path(__file__).parents[1] / "metafork" / "ptx" / "data" / "jacobi.ptx").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fill.mf").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("--help > /dev/full", 1, "Error: standard output cannot be written: No space left on device\n"),
        ("include-dir >&-", 1, "Error: standard output cannot be written: Bad file descriptor\n"),
        ("check fill.mf > /dev/full", 1, "Error: standard output cannot be written: No space left on device\n"),
        ("check none.mf 2> /dev/full", 1, ""),
        ("check fill.mf 2>&-", 0, ""),
        ("check fill.mf <&- 2>&1 >&-", 1, ""),
    ],
)
@pytest.mark.sampled(2)
def test_streams_that_take_nothing(folder, command, status, said):
    done = subprocess.run(["sh", "-c", f"{METAFORK} {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, said)


@contextmanager
def full_disk(most=1024):
    """Let no file grow beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_old_file_or_none(folder):
    quick = ("--counters", "threads_per_block", "--strategies", "granularity")
    assert CliRunner().invoke(cli, ["optimize", "fill.mf", "-o", "out", *quick]).exit_code == 0
    Path("k.ptx").write_text(PTX)
    sketch = Path(__file__).parents[2] / "examples" / "swizzle" / "butterfly.swz"
    before = Path("out/report.md").read_bytes()
    for words in (
        ("shuffle", "k.ptx", "-o"),
        ("render", "out/fill.tree.json", "-o"),
        ("swizzle", str(sketch), "--emit", "cuda", "-o"),
    ):
        Path("old.dot").write_text("as it was\n")
        for name in ("old.dot", "new.dot"):
            with full_disk(256):
                done = CliRunner().invoke(cli, [*words, name])
            assert (done.exit_code, done.stderr) == (1, f"Error: {name} cannot be written: File too large\n")
        assert Path("old.dot").read_text() == "as it was\n"
        assert sorted(path.name for path in Path().iterdir()) == ["fill.mf", "k.ptx", "old.dot", "out"]
        assert CliRunner().invoke(cli, [*words, "/dev/null"]).exit_code == 0
        assert not Path("/dev/null").is_file()
    with full_disk():  # files that change, for others are left alone
        assert CliRunner().invoke(cli, ["optimize", "fill.mf", "-o", "out"]).exit_code == 1
    assert Path("out/report.md").read_bytes() == before


@pytest.mark.parametrize(
    ("encoding", "text", "expected"),
    [
        ("latin-1", "naïve ≤ sc\udcffale", b"na\xefve ? sc\xffale"),
        ("ascii", "naïve sc\udcffale", b"na?ve sc\xffale"),
        ("utf-8", "≤ sc\udcffale", b"\xe2\x89\xa4 sc\xffale"),
    ],
)
def test_letters_that_a_terminal_has_not(encoding, text, expected, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding))
    prepare_streams()
    print(text, end="", flush=True)
    assert written.getvalue() == expected


@pytest.mark.parametrize(
    ("environment", "moves", "colours"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_terminals_without_colours(environment, moves, colours, monkeypatch):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        assert (moves_its_cursor(stream), colored(stream)) == (moves, colours)
    with Path(os.devnull).open("w") as stream:
        assert not colored(stream)


@pytest.mark.parametrize(
    ("limit", "status"), [("1e9", 0), ("1e12", 0), ("inf", 0), ("nan", 2), ("-1", 2), ("1e400", 0)]
)
def test_limits_of_any_size(folder, limit, status):
    sketch = str(Path(__file__).parents[2] / "examples" / "swizzle" / "butterfly.swz")
    assert CliRunner().invoke(cli, ["swizzle", sketch, "--time-limit", limit]).exit_code == status


def test_numbers_of_any_size_are_no_fault_of_ours(folder):
    quick = ("--counters", "threads_per_block", "--strategies", "granularity", "-o", "out")
    sketch = str(Path(__file__).parents[2] / "examples" / "swizzle" / "butterfly.swz")
    for most, status in ((2**31, 0), (2**63, 2)):
        done = CliRunner().invoke(cli, ["optimize", "fill.mf", *quick, "--assume", f"n <= {most}"])
        assert done.exit_code == status, done.output
    with_memory = ["swizzle", sketch, "--memory", str(10**20)]
    assert subprocess.run([METAFORK, *with_memory], capture_output=True, check=False).returncode == 0
