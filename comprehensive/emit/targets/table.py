"""Back ends by name: those of the project, and those that plugins bring."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from metafork.comprehensive.emit.targets.target import Target
from metafork.comprehensive.plugins import Plugin, PluginError, installed
from metafork.comprehensive.registry import UnknownNameError

TARGETS = {
    "cuda": "metafork.comprehensive.emit.targets.cuda",
    "ptx": "metafork.comprehensive.emit.targets.ptx",
    "hip": "metafork.comprehensive.emit.targets.hip",
    "opencl": "metafork.comprehensive.emit.targets.opencl",
}
"""Module of each back end; the first is the default."""


def target(name: str, plugins: Sequence[Plugin] = ()) -> Target:
    """Return the back end of that name, installed plugins being asked last.

    Raises ``UnknownNameError`` and ``PluginError``.
    """
    brought = _brought(plugins)
    if name in TARGETS:
        found: Target = importlib.import_module(TARGETS[name]).TARGET
        return found
    if name not in brought:
        brought |= _brought(installed())
    if name not in brought:
        raise UnknownNameError("back end", name, [*TARGETS, *brought])
    return brought[name]


def known_targets() -> tuple[str, ...]:
    """Return the names of all back ends, those of installed plugins included."""
    return (*TARGETS, *_brought(installed()))


def _brought(plugins: Sequence[Plugin]) -> dict[str, Target]:
    brought: dict[str, Target] = {}
    owners = dict.fromkeys(TARGETS, "metafork itself")
    for plugin in plugins:
        for one in plugin.targets:
            if owners.setdefault(one.name, plugin.name) != plugin.name:
                raise PluginError(f"plugin {plugin.name} has a back end {one.name!r}, and so has {owners[one.name]}")
            brought[one.name] = one
    return brought
