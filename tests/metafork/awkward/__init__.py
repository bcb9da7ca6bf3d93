"""Programs that are easy to get wrong, each with points to run it at (only points within Start)."""

from tests.metafork.awkward.arithmetic import ARITHMETIC
from tests.metafork.awkward.control import CONTROL
from tests.metafork.awkward.phases import PHASES
from tests.metafork.awkward.windows import WINDOWS

AWKWARD = [*WINDOWS, *PHASES, *CONTROL, *ARITHMETIC]
