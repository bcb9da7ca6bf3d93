"""What holds for all tests: programs are checked after every step, and a busy machine changes nothing."""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("METAFORK_VERIFY", "1")

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-goldens``: what golden files expect is written anew from what comes out."""
    parser.addoption("--update-goldens", action="store_true", help="renew tests/strategies/golden from the output")
