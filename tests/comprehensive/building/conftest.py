import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """The user's cache, a folder of these tests."""
    home = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home
