"""Commands that must succeed, and the path of ``metafork``."""

import subprocess
import sys
from pathlib import Path

METAFORK = Path(sys.executable).with_name("metafork")


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
