"""The tutorial and the README, typed: files are written, commands run in order, and they print what is shown.

``python -m tests.comprehensive.test_tutorial`` puts what they print today in place of what is shown.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL, README = ROOT / "docs" / "tutorial.md", ROOT / "README.md"
BLOCK = re.compile(
    r'(?<=^```)(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)(?=^```$)', re.DOTALL | re.MULTILINE
)
ANYTHING = "...\n"
"""A line of shown output that stands for all that follows."""


def printed(command, folder):
    """Return what a command prints; it must succeed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    completed = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, f"{command}\n{completed.stdout}"
    return completed.stdout


def typed(path, folder):
    """Return a page with what its commands print, where that is not what it shows."""

    def step(found):
        output, shown = printed(found["command"], folder), found["shown"]
        if shown.endswith(ANYTHING) and output.startswith(shown.removesuffix(ANYTHING)):
            output = shown
        return f"$ {found['command']}\n{output}"

    def block(found):
        if found["title"]:
            (folder / found["title"]).write_text(found["text"], encoding="utf-8")
        if found["kind"] != "console":
            return found[0]
        return "console\n" + re.sub(
            r"^\$ (?P<command>.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", step, found["text"], flags=re.MULTILINE
        )

    (folder / "examples").symlink_to(ROOT / "examples")
    return BLOCK.sub(block, path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_tutorial_is_as_it_says(tmp_path):
    page = TUTORIAL.read_text(encoding="utf-8")
    for command in ("gcc", "g++", "metafork optimize", "metafork verify", "METAFORK_TRACE=1 ./main"):
        assert f"\n$ {command}" in page
    assert typed(TUTORIAL, tmp_path) == page


def test_the_readme_is_as_it_says(tmp_path):
    page = README.read_text(encoding="utf-8")
    for command in ("metafork optimize", "metafork select", "metafork explain", "metafork check"):
        assert f"\n$ {command}" in page
    assert typed(README, tmp_path) == page


if __name__ == "__main__":
    for page in (TUTORIAL, README):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(typed(page, Path(folder)), encoding="utf-8")
