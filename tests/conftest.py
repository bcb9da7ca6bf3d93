"""What holds for all tests: programs are checked after every step, and a busy machine changes nothing."""

import os

from hypothesis import settings

os.environ.setdefault("METAFORK_VERIFY", "1")

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")
