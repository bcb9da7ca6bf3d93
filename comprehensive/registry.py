"""Counters and strategies by name; a module is imported when one of its names is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Sequence

from evaluators.counter import Counter
from strategies.strategy import Strategy

COUNTERS = {
    "threads_per_block": "evaluators.threads_per_block",
    "registers_per_thread": "evaluators.registers_per_thread",
    "registers_per_block": "evaluators.registers_per_block",
    "shared_memory": "evaluators.shared_memory",
}
"""Module of each counter, in the default order of evaluation."""

STRATEGIES = {
    "cse1": "strategies.cse",
    "cse2": "strategies.cse",
    "granularity": "strategies.granularity",
    "caching": "strategies.caching",
    "register_pressure1": "strategies.register_pressure",
    "register_pressure2": "strategies.register_pressure",
    "register_pressure3": "strategies.register_pressure",
    "thread_striding": "strategies.thread_striding",
}
"""Module of each strategy, in the default order of omega."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant: one that differs in case only, else a similar one."""
    names = tuple(known)
    same = next((other for other in names if other.lower() == name.lower()), None)
    return same or next(iter(difflib.get_close_matches(name, names, n=1)), None)


class UnknownNameError(ValueError):
    """A name that nothing has; ``suggestion`` is the closest one that exists, where there is a close one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        self.suggestion = closest(name, self.known)
        known_names = f"known: {', '.join(self.known) or 'none'}"
        hint = known_names if self.suggestion is None else f"did you mean {self.suggestion!r}?"
        super().__init__(f"there is no {kind} {name!r}; {hint}")


def counters(names: Sequence[str] | None = None) -> tuple[Counter, ...]:
    """Return the counters of these names in this order, all of them by default.  Raises ``UnknownNameError``."""
    return tuple(_counter(name) for name in _checked("counter", names, COUNTERS))


def strategies(names: Sequence[str] | None = None) -> tuple[Strategy, ...]:
    """Return the strategies of these names in this order, all of them by default.  Raises ``UnknownNameError``."""
    return tuple(_strategy(name) for name in _checked("strategy", names, STRATEGIES))


def _checked(kind: str, names: Sequence[str] | None, known: dict[str, str]) -> list[str]:
    if names is None:
        return list(known)
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return list(dict.fromkeys(names))


def _counter(name: str) -> Counter:
    counter: Counter = importlib.import_module(COUNTERS[name]).COUNTER
    return counter


def _strategy(name: str) -> Strategy:
    module = importlib.import_module(STRATEGIES[name])
    candidates: tuple[Strategy, ...] = getattr(module, "STRATEGIES", ()) or (module.STRATEGY,)
    return next(strategy for strategy in candidates if strategy.name == name)
