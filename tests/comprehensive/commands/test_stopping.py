"""Time limits of searches."""

import time

import pytest

from comprehensive.commands.stopping import TimeLimitError, time_limit


class Finalized:
    """An object whose end takes long enough for a time limit to fall into it."""

    def __del__(self):
        time.sleep(0.2)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_that_is_reached_in_a_finalizer_is_not_lost():
    def work():
        with time_limit(0.05):
            last = Finalized()
            del last
            time.sleep(60)

    with pytest.raises(TimeLimitError):
        work()


def test_nothing_is_raised_behind_the_block():
    with time_limit(0.05):
        pass
    time.sleep(0.1)
