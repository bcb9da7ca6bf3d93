"""Counters, strategies and back ends from outside of the tree: modules named for a run, and installed packages.

A plugin is a module with ``COUNTER`` or ``COUNTERS``, ``STRATEGY`` or ``STRATEGIES``, as the modules of
``evaluators`` and ``strategies`` have them, ``TARGET`` or ``TARGETS``, as those of ``comprehensive.emit.targets``.
``--plugin NAME`` names a module that Python finds, or a file ``*.py``; an installed package declares its modules in the
entry-point group ``metafork.plugins``, and they are imported when a name is asked for that nothing else has.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from metafork.evaluators.counter import Counter, details_of
from metafork.runtime.machine import FIELDS, SYMBOLS
from metafork.strategies.strategy import Strategy

GROUP = "metafork.plugins"
"""The entry-point group of installed plugins."""

_COUNTER = ("name", "kind", "symbol", "less_is_better", "default_target", "evaluate")
_TARGET = ("name", "hardware", "headers", "own_headers", "aimed_at", "leaf_code", "device_name", "opening", "kernel",
           "launching", "package")  # fmt: skip


class PluginError(ValueError):
    """A plugin cannot be imported, or what it has is not what it is called; the message says which and why."""


class Plugin(Struct, frozen=True):
    """What one module brings."""

    name: str
    counters: tuple[Counter, ...]
    strategies: tuple[Strategy, ...]
    targets: tuple[Any, ...] = ()
    """Objects with the members of ``comprehensive.emit.targets.target.Target``, a room above this one."""


def load(name: str) -> Plugin:
    """Import the plugin of that name (``package.module``, or the path of a ``.py`` file).  Raises ``PluginError``."""
    try:
        module = _from_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except Exception as error:  # whatever a foreign module raises when it is imported is told as its own fault
        raise PluginError(f"plugin {name} cannot be imported: {type(error).__name__}: {error}") from error
    return _plugin(name, module)


def installed() -> tuple[Plugin, ...]:
    """Import the plugins of installed packages, in the order of their names.  Raises ``PluginError``."""
    from importlib.metadata import entry_points  # a slow module, and few names come from packages

    return tuple(load(point.value) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name))


def _from_file(path: Path) -> ModuleType:
    where = path.resolve()
    name = f"metafork_plugin_{hashlib.sha256(os.fsencode(where)).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _plugin(name: str, module: ModuleType) -> Plugin:
    counters = _members(module, "COUNTER", "COUNTERS")
    strategies = _members(module, "STRATEGY", "STRATEGIES")
    targets = _members(module, "TARGET", "TARGETS")
    if not counters and not strategies and not targets:
        raise PluginError(f"plugin {name} has none of COUNTER, COUNTERS, STRATEGY, STRATEGIES, TARGET, TARGETS")
    for one in targets:
        _must_have(name, "back end", one, _TARGET)
    for one in counters:
        _must_have(name, "counter", one, _COUNTER)
        _check_limit(name, one)
    for one in strategies:
        if not isinstance(one, Strategy):
            raise PluginError(
                f"plugin {name}: {one!r} is no strategy: it does not extend metafork.strategies.strategy.Strategy"
            )
    return Plugin(name, counters, strategies, targets)


def _members(module: ModuleType, one: str, several: str) -> tuple[Any, ...]:
    found = getattr(module, several, None)
    if found is None:
        found = (getattr(module, one),) if hasattr(module, one) else ()
    if not isinstance(found, Sequence):
        raise PluginError(f"plugin {module.__name__}: {several} is no sequence")
    return tuple(found)


def _must_have(plugin: str, kind: str, one: object, members: Sequence[str]) -> None:
    missing = [member for member in members if not hasattr(one, member)]
    if missing:
        raise PluginError(f"plugin {plugin}: {one!r} is no {kind}: it has no {', '.join(missing)}")


def _check_limit(plugin: str, counter: Counter) -> None:
    """See that the symbol of a resource counter has numbers, and from one place only."""
    known = counter.symbol in FIELDS or counter.symbol in SYMBOLS.values()
    own = details_of(counter).limit is not None
    where = f"plugin {plugin}: counter {counter.name!r} is limited by {counter.symbol!r}"
    if not counter.symbol.isidentifier():
        raise PluginError(f"{where}, which is no name")
    if counter.kind == "performance":
        if own or known:
            raise PluginError(f"{where}, but the target of a performance counter has a symbol and a default of its own")
    elif own and known:
        raise PluginError(f"{where}, which every machine has; `details` must not give it other numbers")
    elif not own and not known:
        raise PluginError(f"{where}, which no machine has; `details` gives it numbers (Details(limit=OwnLimit(...)))")
