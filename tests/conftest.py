"""What holds for all tests: programs are checked after every step, and a busy machine changes nothing."""

import os
import signal

import pytest
from hypothesis import settings

os.environ.setdefault("METAFORK_VERIFY", "1")

# A shell starts what runs in the background with interrupts ignored, and children inherit that: tests that interrupt
# their children would wait in vain.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-goldens``: what golden files expect is written anew from what comes out."""
    parser.addoption("--update-goldens", action="store_true", help="renew tests/strategies/golden from the output")
