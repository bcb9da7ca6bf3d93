import pytest

from tests.comprehensive.emit.targets import pocl, standin


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """The stand-in driver with its server."""
    with standin.standin(tmp_path_factory.mktemp("standin")) as found:
        yield found


@pytest.fixture(scope="session")
def opencl(tmp_path_factory):
    """PoCL behind a library that watches."""
    return pocl.pocl(tmp_path_factory.mktemp("opencl"))
