"""Files around the code: what they name exists, and what several of them say is the same."""

import json
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GRAMMAR = ROOT / "editors" / "vscode" / "syntaxes" / "metafork.injection.tmLanguage.json"


def read(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def targets():
    names = re.findall(r"^([\w./$() -]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return {target.replace("$(VENV)", ".venv") for line in names for target in line.split()}


@pytest.mark.parametrize("name", [".github/workflows/ci.yml", ".pre-commit-config.yaml", "Dockerfile", "README.md"])
def test_make_has_every_target_that_is_called(name):
    called = re.findall(r"\bmake ((?:[a-z]|\.venv/)[\w./-]*)(?=[ \n`\"|])", (ROOT / name).read_text(encoding="utf-8"))
    assert called
    assert set(called) <= targets()


def test_the_workflow_runs_everything_that_make_test_runs_on_each_python():
    jobs = read(".github/workflows/ci.yml")["jobs"]
    steps = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert {"make lint", "make types"} <= set(steps["lint"])
    assert any(step.startswith("make unit") for step in steps["test"])
    pythons = jobs["test"]["strategy"]["matrix"]["python-version"]
    declared = [one.split(" :: ")[-1] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", one)]
    assert pythons == declared


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_forms_have_what_a_form_needs(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "config.yml":
        return
    assert {"name", "description", "body"} <= set(form)
    assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_versions_and_addresses_are_the_same_everywhere():
    citation, extension = read("CITATION.cff"), read("editors/vscode/package.json")
    newest = re.search(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert {PROJECT["version"], str(citation["version"]), extension["version"]} == {newest}
    repository = PROJECT["urls"]["Repository"]
    assert (citation["repository-code"], extension["repository"]["url"]) == (repository, repository)
    assert all(url.startswith(repository) for url in PROJECT["urls"].values())
    assert citation["authors"] == PROJECT["authors"]
    assert len(citation["references"]) == 5
    assert {PROJECT["license"], citation["license"], extension["license"]} == {"Apache-2.0"}


def test_the_extension_names_files_that_are_there():
    folder, contributes = ROOT / "editors" / "vscode", read("editors/vscode/package.json")["contributes"]
    for grammar in contributes["grammars"]:
        assert json.loads((folder / grammar["path"]).read_text("utf-8"))["scopeName"] == grammar["scopeName"]
    for language in contributes["languages"]:
        assert json.loads((folder / language["configuration"]).read_text("utf-8"))["comments"]


def patterns(node):
    """Yield each regular expression of a grammar; Python reads all that are used."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in ("match", "begin", "end"):
            yield re.compile(value)
        elif isinstance(value, dict | list):
            yield from patterns(value)


def test_the_grammar_knows_every_word_of_the_language():
    compiled = list(patterns(json.loads(GRAMMAR.read_text(encoding="utf-8"))))
    header = (ROOT / "metafork" / "runtime" / "include" / "metafork.h").read_text(encoding="utf-8")
    words = re.findall(r"^#define (meta_\w+|cache)(\(\.\.\.\))?", header, re.MULTILINE)
    assert len(words) == 9
    texts = [word + ("(" if clause else " ") for word, clause in words] + ["#pragma metafork schedule(tile(v, 4))"]
    assert [text for text in texts if not any(one.match(text) for one in compiled)] == []


def test_the_grammar_includes_only_what_it_has():
    text = GRAMMAR.read_text(encoding="utf-8")
    assert set(re.findall(r'"include": "#(\w+)"', text)) == set(json.loads(text)["repository"])


def test_pictures_of_the_readme_have_whole_addresses():
    """Where packages are shown, nothing lies beside the README."""
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    documentation = PROJECT["urls"]["Documentation"]
    assert pictures
    assert [one for one in pictures if not one.startswith(f"{documentation}/")] == []
    assert [one for one in pictures if not (ROOT / "docs" / one.removeprefix(f"{documentation}/")).is_file()] == []
