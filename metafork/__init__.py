"""MetaFork: comprehensive optimization of parametric CUDA kernels.

``metafork.load(path_or_text)`` compiles a MetaFork file, and its functions take NumPy arrays; ``metafork.build`` makes
a library of it.  ``metafork.optimize`` gives its decision trees as a ``Result``; ``metafork.verify`` checks every leaf.
This is the one place of the package that looks up to ``comprehensive``, and it does so only when a name is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metafork.comprehensive.building.library import build
    from metafork.comprehensive.building.loaded import load
    from metafork.comprehensive.optimize import Result, optimize
    from metafork.comprehensive.tree.schedule_tree import (
        CounterInfo,
        Leaf,
        LeafReference,
        Node,
        NoLeaf,
        ScheduleTree,
        Variant,
    )
    from metafork.comprehensive.verification import Verification, verify
    from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError
    from metafork.runtime.machine import Machine

_HOME = {
    "build": "metafork.comprehensive.building.library",
    "load": "metafork.comprehensive.building.loaded",
    "optimize": "metafork.comprehensive.optimize",
    "verify": "metafork.comprehensive.verification",
    "Verification": "metafork.comprehensive.verification",
    "Result": "metafork.comprehensive.optimize",
    "ScheduleTree": "metafork.comprehensive.tree.schedule_tree",
    "Node": "metafork.comprehensive.tree.schedule_tree",
    "Leaf": "metafork.comprehensive.tree.schedule_tree",
    "Variant": "metafork.comprehensive.tree.schedule_tree",
    "LeafReference": "metafork.comprehensive.tree.schedule_tree",
    "NoLeaf": "metafork.comprehensive.tree.schedule_tree",
    "CounterInfo": "metafork.comprehensive.tree.schedule_tree",
    "Diagnostic": "metafork.ir.messages.diagnostics",
    "DiagnosticsError": "metafork.ir.messages.diagnostics",
    "Machine": "metafork.runtime.machine",
}

__all__ = [
    "CounterInfo",
    "Diagnostic",
    "DiagnosticsError",
    "Leaf",
    "LeafReference",
    "Machine",
    "NoLeaf",
    "Node",
    "Result",
    "ScheduleTree",
    "Variant",
    "Verification",
    "build",
    "load",
    "optimize",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name from where it lives."""
    if name == "__version__":
        from importlib.metadata import version

        return version("metafork")
    if name not in _HOME:
        raise AttributeError(f"module 'metafork' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
