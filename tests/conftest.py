"""What holds for all tests: programs are checked after every step, and which tests a run takes."""

import gc
import os
import signal
import time
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

os.environ.setdefault("METAFORK_VERIFY", "1")
# As in the command: there are few cycles, and the collector would look through thousands of tests again and again.
gc.set_threshold(200_000, 20, 20)
# What the tool keeps for later runs is kept from one run of the tests to the next, and apart from the user's own.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / "build" / "tests" / "cache")

# A shell starts what runs in the background with interrupts ignored, and children inherit that: tests that interrupt
# their children would wait in vain.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")

NOT_REACHED = "not reached before the time was over"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the project's tests."""
    parser.addoption("--update-goldens", action="store_true", help="renew tests/strategies/golden from the output")
    parser.addoption("--eighth", type=int, help="run one eighth of the tests, by number modulo 8")
    parser.addoption("--until", type=float, help="start no test after this time (seconds since 1970); list the others")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks."""
    config.addinivalue_line("markers", "slow: `make test-all` runs it, `make test` does not")
    config.addinivalue_line("markers", "sampled(n): all but the first n parameters of this test are slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow of a sampled test, and keep the eighth that is asked for."""
    seen: dict[str, int] = {}
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled:
            test = item.nodeid.partition("[")[0]
            seen[test] = seen.get(test, 0) + 1
            if seen[test] > sampled.args[0]:
                item.add_marker("slow")
    eighth = config.getoption("eighth")
    if eighth is not None:
        due = {item: crc32(_together(item).encode()) % 8 == eighth % 8 for item in items}
        config.hook.pytest_deselected(items=[item for item in items if not due[item]])
        items[:] = [item for item in items if due[item]]


def _together(item: pytest.Item) -> str:
    """Return a name that tests have in common that share what a module built for them."""
    shared = [
        definitions[-1]
        for definitions in item._fixtureinfo.name2fixturedefs.values()
        if definitions[-1].scope == "module"
    ]
    if not shared:
        return item.nodeid
    parameters = item.callspec.indices if hasattr(item, "callspec") else {}
    chosen = [f"{one.argname}={parameters[one.argname]}" for one in shared if one.argname in parameters]
    return " ".join([str(item.path.name), *chosen])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what begins too late."""
    until = item.config.getoption("until")
    if until is not None and time.time() > until:
        pytest.skip(NOT_REACHED)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was not reached."""
    late = [one.nodeid for one in terminalreporter.stats.get("skipped", ()) if NOT_REACHED in str(one.longrepr)]
    if late:
        terminalreporter.section(f"{len(late)} tests {NOT_REACHED}")
        terminalreporter.write("".join(f"{name}\n" for name in late))
