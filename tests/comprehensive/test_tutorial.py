"""Tutorial, cookbook, README and the page of commands, typed: commands run in order, and print what is shown.

``python -m tests.comprehensive.test_tutorial`` puts what they print today in place of what is shown.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.runtime.compiling import CMAKE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIAL, COOKBOOK, COMMANDS = DOCS / "tutorial.md", DOCS / "cookbook.md", DOCS / "commands.md"
README = ROOT / "README.md"
RECIPE = re.compile(r"^## \d+\. .*?(?=^## )", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(
    r'(?<=^```)(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)(?=^```$)', re.DOTALL | re.MULTILINE
)
ANYTHING = "...\n"
"""A line of shown output that stands for all that follows."""


def printed(command, folder, *, status=0):
    """Return what a command prints; it must end with this status."""
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
    assert completed.returncode == status, f"{command}\n{completed.stdout}"
    return completed.stdout


def typed(page, folder):
    """Return the text of a page with what its commands print, where that is not what it shows."""

    def step(found):
        shown = found["shown"]
        output = printed(found["command"], folder, status=1 if ": error[MF" in shown else 0)
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
    for command in ("metafork optimize", "metafork select", "metafork check"):
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


def test_the_readme_shows_the_example_itself():
    assert (ROOT / "examples" / "smooth.mf").read_text(encoding="utf-8") in README.read_text(encoding="utf-8")


def test_the_readme_fits_two_screens():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 105


@pytest.mark.slow
def test_the_page_of_commands_is_as_it_says(tmp_path):
    page = COMMANDS.read_text(encoding="utf-8")
    for command in ("metafork explain", "metafork apply", "metafork render"):
        assert f"\n$ {command}" in page
    assert typed(page, tmp_path) == page


@pytest.mark.slow
def test_a_copy_of_the_repository_installs_as_the_readme_says(tmp_path):
    left_out = shutil.ignore_patterns(".venv", ".git", "build", "*.egg-info", "*.out", "__pycache__", ".*_cache")
    copy = shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out)
    (typed_first,) = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    completed = subprocess.run(
        ["bash", "-ec", typed_first + "metafork --version\n"],
        cwd=copy,
        env=own,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "agrees with the serial program, bit for bit" in completed.stdout
    assert completed.stdout.splitlines()[-1].startswith("metafork, version ")


if __name__ == "__main__":
    for path in (TUTORIAL, COOKBOOK, COMMANDS, README):
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(typed(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
