"""Counters and strategies by name; a module is imported when one of its names is asked for.

Those of the first tables are used by default, in their order; the optional ones when they are named.  A list of names
that all start with ``+`` adds to the defaults: ``+thread_striding``.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence

from evaluators.counter import Counter
from strategies.strategy import Strategy

COUNTERS = {
    "threads_per_block": "evaluators.threads_per_block",
    "registers_per_thread": "evaluators.registers_per_thread",
    "registers_per_block": "evaluators.registers_per_block",
    "shared_memory": "evaluators.shared_memory",
}
"""Module of each counter, in the default order of evaluation."""

OPTIONAL_COUNTERS: dict[str, str] = {
    "bank_degree": "evaluators.bank_degree",
    "global_loads": "evaluators.global_loads",
}
"""Counters that take part when they are named."""

STRATEGIES = {
    "cse1": "strategies.cse",
    "cse2": "strategies.cse",
    "scalar_replacement": "strategies.scalar_replacement",
    "granularity": "strategies.granularity",
    "caching": "strategies.caching",
    "register_pressure1": "strategies.register_pressure",
    "register_pressure2": "strategies.register_pressure",
    "register_pressure3": "strategies.register_pressure",
}
"""Module of each strategy, in the default order of omega."""

OPTIONAL_STRATEGIES = {
    "shuffle": "strategies.shuffle",
    "swizzle": "strategies.swizzle_layout",
    "thread_striding": "strategies.thread_striding",
}
"""Strategies that take part when they are named."""


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
        if name.removeprefix("+") in self.known:
            hint = "put + in front of every name, to add to the defaults, or of none"
        super().__init__(f"there is no {kind} {name!r}; {hint}")


def counters(names: Sequence[str] | None = None) -> tuple[Counter, ...]:
    """Return the counters of these names in this order, the default ones for ``None``.

    Raises ``UnknownNameError``.
    """
    return tuple(_counter(name) for name in _checked("counter", names, COUNTERS, OPTIONAL_COUNTERS))


def strategies(names: Sequence[str] | None = None) -> tuple[Strategy, ...]:
    """Return the strategies of these names in this order, the default ones for ``None``.

    Raises ``UnknownNameError``.
    """
    return tuple(_strategy(name) for name in _checked("strategy", names, STRATEGIES, OPTIONAL_STRATEGIES))


def _checked(
    kind: str, names: Sequence[str] | None, default: Mapping[str, str], optional: Mapping[str, str]
) -> list[str]:
    if names is None:
        return list(default)
    if names and all(name.startswith("+") for name in names):
        names = [*default, *(name.removeprefix("+") for name in names)]
    for name in names:
        if name not in default and name not in optional:
            raise UnknownNameError(kind, name, [*default, *optional])
    return list(dict.fromkeys(names))


def _counter(name: str) -> Counter:
    counter: Counter = importlib.import_module({**COUNTERS, **OPTIONAL_COUNTERS}[name]).COUNTER
    return counter


def _strategy(name: str) -> Strategy:
    module = importlib.import_module({**STRATEGIES, **OPTIONAL_STRATEGIES}[name])
    candidates: tuple[Strategy, ...] = getattr(module, "STRATEGIES", ()) or (module.STRATEGY,)
    return next(strategy for strategy in candidates if strategy.name == name)
