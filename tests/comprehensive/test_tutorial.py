"""Tutorial, cookbook and README, typed: files are written, commands run in order, and they print what is shown.

``python -m tests.comprehensive.test_tutorial`` puts what they print today in place of what is shown.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.runtime.compiling import CMAKE

ROOT = Path(__file__).parents[2]
TUTORIAL, COOKBOOK, README = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "cookbook.md", ROOT / "README.md"
RECIPE = re.compile(r"^## \d+\. .*?(?=^## )", re.DOTALL | re.MULTILINE)
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
    """Return the text of a page with what its commands print, where that is not what it shows."""

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
    return BLOCK.sub(block, page)


@pytest.mark.slow
def test_the_tutorial_is_as_it_says(tmp_path):
    page = TUTORIAL.read_text(encoding="utf-8")
    for command in ("gcc", "g++", "metafork optimize", "metafork verify", "METAFORK_TRACE=1 ./main"):
        assert f"\n$ {command}" in page
    assert typed(page, tmp_path) == page


def test_the_readme_is_as_it_says(tmp_path):
    page = README.read_text(encoding="utf-8")
    for command in ("metafork optimize", "metafork select", "metafork explain", "metafork check"):
        assert f"\n$ {command}" in page
    assert typed(page, tmp_path) == page


@pytest.fixture
def processor(monkeypatch, tmp_path):
    """Kernels run on the processor, and nothing was built before."""
    monkeypatch.setenv("NVCC", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.skipif(CMAKE is None, reason="NO CMAKE: the cookbook is not typed")
def test_the_cookbook_is_as_it_says(tmp_path, processor):
    page = COOKBOOK.read_text(encoding="utf-8")
    assert typed(page, tmp_path) == page


@pytest.mark.parametrize("number", [9, 10])
def test_recipes_that_build_nothing_are_as_they_say(tmp_path, number):
    recipes = RECIPE.findall(COOKBOOK.read_text(encoding="utf-8"))
    for found in BLOCK.finditer(recipes[1]):
        (tmp_path / (found["title"] or "shown")).write_text(found["text"], encoding="utf-8")
    assert typed(recipes[number - 1], tmp_path) == recipes[number - 1]


def test_recipes_have_less_than_ten_lines_beside_the_loops():
    recipes = RECIPE.findall(COOKBOOK.read_text(encoding="utf-8"))
    assert [int(one.split()[1].rstrip(".")) for one in recipes] == list(range(1, 11))
    for one in recipes:
        files = [found["text"] for found in BLOCK.finditer(one) if not (found["title"] or ".mf").endswith(".mf")]
        lines = [line for text in files for line in text.splitlines() if line]
        assert len(lines) + len(re.findall(r"^\$ ", one, re.MULTILINE)) < 10, one


if __name__ == "__main__":
    for path in (TUTORIAL, COOKBOOK, README):
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(typed(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
