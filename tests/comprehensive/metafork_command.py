"""The command line as a process of its own."""

import sys
from pathlib import Path

from tests.runtime.compiling import run

METAFORK = Path(sys.executable).with_name("metafork")


def metafork(*arguments, status=0, **options):
    """Run ``metafork`` and return it finished; it must end with that status."""
    done = run([METAFORK, *arguments], **options)
    assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done
