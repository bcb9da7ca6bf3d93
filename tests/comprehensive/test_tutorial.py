"""The tutorial, typed: its files are written, its commands run in its order, and they print what it shows.

``python -m tests.comprehensive.test_tutorial`` puts what they print today in place of what it shows.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
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


def typed(page, folder):
    """Return the page with what its commands print, where that is not what it shows."""

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

    return BLOCK.sub(block, page)


def test_the_tutorial_is_as_it_says(tmp_path):
    page = TUTORIAL.read_text(encoding="utf-8")
    for command in ("gcc", "g++", "metafork optimize", "metafork verify", "METAFORK_TRACE=1 ./main"):
        assert f"\n$ {command}" in page
    assert typed(page, tmp_path) == page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        TUTORIAL.write_text(typed(TUTORIAL.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
