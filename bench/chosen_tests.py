"""A plugin of pytest for ``mutants.py``: run the tests that a file names, and record which headers a test compiles.

``MUTANTS_TESTS`` is the file with the names of tests, one per line; all others are left out.
``MUTANTS_HEADERS`` is the file that GCC and Clang append a rule of make to for each file that they compile
(``DEPENDENCIES_OUTPUT``).  The target of the rule is the test and its phase, quoted as in a URL.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not named."""
    if "MUTANTS_TESTS" in os.environ:
        named = set(Path(os.environ["MUTANTS_TESTS"]).read_text().splitlines())
        items[:] = [item for item in items if item.nodeid in named]


def _name_rules(item: pytest.Item, phase: str) -> None:
    if "MUTANTS_HEADERS" in os.environ:
        os.environ["DEPENDENCIES_OUTPUT"] = f"{os.environ['MUTANTS_HEADERS']} {quote(f'{item.nodeid}|{phase}')}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note what fixtures compile."""
    _name_rules(item, "setup")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Note what the test compiles."""
    _name_rules(item, "run")
