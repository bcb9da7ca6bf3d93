import pytest

from tests.comprehensive.emit.targets import standin


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The stand-in driver with its server."""
    with standin.standin(tmp_path_factory.mktemp("standin")) as found:
        yield found
