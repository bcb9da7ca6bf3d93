"""The files that users link: header, ``.cu``, host functions and CMake package (DESIGN section 7).

``write_outputs`` is the entry; ``rendered_files`` gives the same texts without writing them.
"""

from __future__ import annotations

from metafork.comprehensive.emit.checked_expressions import ComputationError
from metafork.comprehensive.emit.condition_tables import TabulationError
from metafork.comprehensive.emit.leaf_code import LeafCode, kernel_of, leaf_code
from metafork.comprehensive.emit.outputs import (
    Optimized,
    rendered_files,
    runtime_include_dir,
    write_files,
    write_outputs,
)
from metafork.comprehensive.emit.own_files import NotOursError

__all__ = [
    "ComputationError",
    "LeafCode",
    "NotOursError",
    "Optimized",
    "TabulationError",
    "kernel_of",
    "leaf_code",
    "rendered_files",
    "runtime_include_dir",
    "write_files",
    "write_outputs",
]
