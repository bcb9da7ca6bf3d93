"""The tutorial, typed: its files are written, its commands run in its order, and they print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE)
ANYTHING = "...\n"
"""A line of shown output that stands for all that follows."""


def steps(text):
    """Yield (command, shown output) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def test_the_tutorial_is_as_it_says(tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    commands = []
    for block in BLOCK.finditer(TUTORIAL.read_text(encoding="utf-8")):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"], encoding="utf-8")
        if block["kind"] != "console":
            continue
        for command, shown in steps(block["text"]):
            completed = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
            )
            assert completed.returncode == 0, f"{command}\n{completed.stdout}"
            if shown.endswith(ANYTHING):
                assert completed.stdout.startswith(shown.removesuffix(ANYTHING)), command
            else:
                assert completed.stdout == shown, command
            commands.append(command.split()[0])
    assert {"gcc", "g++", "metafork", "./main", "METAFORK_TRACE=1"} <= set(commands)
