import pytest

from tests.comprehensive.emit.targets.opencl import pocl


@pytest.fixture(scope="session")
def opencl(tmp_path_factory):
    """PoCL behind a library that watches."""
    return pocl.pocl(tmp_path_factory.mktemp("opencl"))
