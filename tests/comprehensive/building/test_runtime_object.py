"""The runtime is compiled once for a compiler and its options, and again where its object is not what it was."""

from pathlib import Path

import pytest

from metafork.comprehensive.building.commands import BuildError, Commands
from metafork.comprehensive.building.runtime_object import runtime_object

COMPILING = ("g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU")


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """The commands that are run, by a compiler that writes its options; the user's cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Commands(tmp_path)
    ran = []

    def run(command):
        ran.append(command)
        (tmp_path / command[-1]).write_text(" ".join(command))
        return ""

    monkeypatch.setattr(found, "run", run)
    found.ran = ran
    return found


def test_it_is_compiled_once_for_each_command(commands):
    first = runtime_object(commands, COMPILING)
    assert runtime_object(commands, COMPILING) == first
    assert runtime_object(commands, (*COMPILING, "-O2")) != first
    assert [("-O2" in command) for command in commands.ran] == [False, True]
    assert {"-c", "-DMETAFORK_CPU"} <= set(commands.ran[0])


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), Path.unlink])
def test_what_is_damaged_is_compiled_anew(commands, damage):
    damage(Path(runtime_object(commands, COMPILING)))
    found = runtime_object(commands, COMPILING)
    assert len(commands.ran) == 2
    assert Path(found).read_text().startswith("g++ ")


def test_a_cache_that_cannot_be_written_is_done_without(commands, tmp_path):
    (tmp_path / "cache").write_text("a file, no folder")
    found = runtime_object(commands, COMPILING)
    assert Path(found).parent == tmp_path
    assert Path(found).read_text().startswith("g++ ")


def test_a_compiler_that_fails_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match="false -x"):
        runtime_object(Commands(tmp_path), ("false", "-x"))
    assert not list(tmp_path.glob("cache/metafork/runtime/*"))
