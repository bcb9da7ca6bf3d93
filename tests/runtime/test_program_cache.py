"""Which files of the program cache go where there is no room for all: those that were used longest ago."""

import os
from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, C, build, run

BYTES = 1000
USED = {"a": 100_000000005, "b": 100_000000002, "c": 99_000000009, "d": 101_000000000, "e": 98_999999999}
USED |= {"g": 100_000000004, "h": 100_000000003, "i": 100_000000006}
"""When each key was used last, in nanoseconds: the order is not that of names, nor that of the parts of seconds."""
ORDER = sorted(USED, key=USED.get)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cache")
    return build(directory / "cache", [Path(__file__).with_name("program_cache.c")], "-O0", "-g", *SANITIZE, compiler=C)


@pytest.fixture
def cache(program, tmp_path):
    """Keep or find a key in a cache that holds all of ``USED``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METAFORK_")}

    def cache(*arguments, **variables):
        done = run([program, *arguments], env={**environment, "XDG_CACHE_HOME": str(tmp_path), **variables})
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    for key, used in USED.items():
        before = set(tmp_path.glob("metafork/*"))
        cache("keep", key, BYTES)
        (added,) = set(tmp_path.glob("metafork/*")) - before
        os.utime(added, ns=(0, used))
    return cache


def left(cache):
    return [key for key in [*ORDER, "f"] if cache("find", key) == f"{BYTES}\n"]


def size(tmp_path):
    return next(tmp_path.glob("metafork/*")).stat().st_size


@pytest.mark.parametrize("room", range(len(USED) + 2))
def test_what_was_used_longest_ago_goes_first(cache, tmp_path, room):
    all_keys = [*ORDER, "f"]
    cache("keep", "f", BYTES, METAFORK_CACHE_BYTES=str(room * size(tmp_path)))
    assert left(cache) == all_keys[len(all_keys) - room :]


def test_what_is_found_has_been_used(cache, tmp_path):
    oldest = ORDER[0]
    assert cache("find", oldest) == f"{BYTES}\n"
    cache("keep", "f", BYTES, METAFORK_CACHE_BYTES=str(2 * size(tmp_path)))
    assert left(cache) == [oldest, "f"]


def test_one_byte_more_than_there_is_room_for(cache, tmp_path):
    cache("keep", "f", BYTES, METAFORK_CACHE_BYTES=str((len(USED) + 1) * size(tmp_path) - 1))
    assert left(cache) == [*ORDER[1:], "f"]
