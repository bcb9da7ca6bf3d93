"""What the documentation pages say about the house is so."""

import importlib.util
import re
from pathlib import Path

import pytest

import metafork
from metafork import DiagnosticsError
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source

DOCS = Path(__file__).parents[1] / "docs"
LANGUAGE = (DOCS / "language.md").read_text(encoding="utf-8")


def rooms():
    spec = importlib.util.spec_from_file_location("rooms", DOCS / "rooms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_shows_what_the_import_contracts_allow():
    module = rooms()
    folders = {path.parent.name for path in (DOCS.parent / "metafork").glob("*/__init__.py")}
    assert set(module.arrows()) == folders - set(module.HOUSE)
    allowed = {f"{room}->{other}" for room, others in module.arrows().items() for other in others}
    drawn = (DOCS / "rooms.svg").read_text(encoding="utf-8").replace("&#45;", "-").replace("&gt;", ">")
    titles = set(re.findall(r"<title>(\w+->\w+)</title>", drawn))
    assert titles == allowed | {"comprehensive->strategies", "strategies->evaluators", "evaluators->lowering"}
    assert "evaluators->lowering" not in allowed  # in the picture it ends at the border of metafork/


def test_files_that_pages_name_exist():
    missing = [
        f"{page.name}: {name}"
        for page in sorted(DOCS.glob("*.md"))
        for name in re.findall(
            r"`((?:metafork|evaluators|strategies|comprehensive|tests|docs)/[\w/.]+)`", page.read_text()
        )
        if not (DOCS.parent / name).exists() and "NAME" not in name
    ]
    assert missing == []


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def test_the_site_has_every_page_and_every_link_a_page():
    pages = {path.name for path in DOCS.glob("*.md")}
    listed = re.findall(r"- (\S+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(pages)
    links = {
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)[)#]", without_code((DOCS / page).read_text("utf-8")))
    }
    assert links
    assert [(page, target) for page, target in links if not (DOCS / target).exists()] == []


def test_links_of_the_readme_lead_somewhere():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#([^)]+))?\)", readme)
    assert len(links) > 15
    assert [target for target, _ in links if not (DOCS.parent / target).exists()] == []
    for target, anchor in links:
        titles = re.findall(r"^#+ (.*)", (DOCS.parent / target).read_text("utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {title.lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("program", re.findall(r"^```c\n(.*?)^```$", LANGUAGE, re.DOTALL | re.MULTILINE))
def test_programs_of_the_language_page(program):
    refused = re.match(r"/\* refused: (MF\d+) \*/", program)
    try:
        races = check_races(parse(Source("page.mf", program), reassociate="--reassociate" in program), strict=True)
    except DiagnosticsError as error:
        races = error.diagnostics
    assert [one.code for one in races] == ([refused[1]] if refused else [])


def test_every_public_name_has_its_place_in_the_reference():
    described = re.findall(r"^::: metafork\.(\w+)", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(described) == sorted(metafork.__all__)
