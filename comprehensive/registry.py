"""Counters and strategies by name; a module is imported when one of its names is asked for.

Those of the first tables are used by default, in their order; the optional ones when they are named.  A list of names
that all start with ``+`` adds to the defaults: ``+thread_striding``.  Plugins (``comprehensive.plugins``) bring more
names, and strategies may have options (``comprehensive.spelled_options``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from metafork.comprehensive.plugins import Plugin, PluginError, installed
from metafork.comprehensive.spelled_options import OptionError, name_and_options, with_options
from metafork.evaluators.counter import Counter
from metafork.strategies.strategy import Strategy

Named = TypeVar("Named", Counter, Strategy)

COUNTERS = {
    "threads_per_block": "metafork.evaluators.threads_per_block",
    "registers_per_thread": "metafork.evaluators.registers_per_thread",
    "registers_per_block": "metafork.evaluators.registers_per_block",
    "shared_memory": "metafork.evaluators.shared_memory",
}
"""Module of each counter, in the default order of evaluation."""

OPTIONAL_COUNTERS: dict[str, str] = {
    "bank_degree": "metafork.evaluators.bank_degree",
    "global_loads": "metafork.evaluators.global_loads",
    "instructions": "metafork.evaluators.instructions",
    "occupancy": "metafork.evaluators.occupancy",
}
"""Counters that take part when they are named."""

STRATEGIES = {
    "cse1": "metafork.strategies.cse",
    "cse2": "metafork.strategies.cse",
    "scalar_replacement": "metafork.strategies.scalar_replacement",
    "granularity_groups": "metafork.strategies.granularity_groups",
    "reduction_tile": "metafork.strategies.threads.reduction_tile",
    "strip_mining": "metafork.strategies.threads.strip_mining",
    "register_tile": "metafork.strategies.threads.register_tile",
    "unroll_and_jam": "metafork.strategies.threads.unroll_and_jam",
    "granularity": "metafork.strategies.granularity",
    "caching": "metafork.strategies.caching",
    "tiles": "metafork.strategies.tiles",
}
"""Module of each strategy, in the default order of omega."""

OPTIONAL_STRATEGIES = {
    "double_buffering": "metafork.strategies.double_buffering",
    "register_pressure1": "metafork.strategies.llvm.register_pressure",
    "register_pressure2": "metafork.strategies.llvm.register_pressure",
    "register_pressure3": "metafork.strategies.llvm.register_pressure",
    "rematerialize": "metafork.strategies.llvm.llvm_choices",
    "shuffle": "metafork.strategies.llvm.shuffle",
    "sink": "metafork.strategies.llvm.llvm_choices",
    "speculate": "metafork.strategies.llvm.llvm_choices",
    "straight_line": "metafork.strategies.llvm.llvm_choices",
    "swizzle": "metafork.strategies.swizzle_layout",
    "thread_striding": "metafork.strategies.threads.thread_striding",
    "unroll": "metafork.strategies.llvm.llvm_choices",
}
"""Strategies that take part when they are named."""

DESCRIPTIONS = {
    "threads_per_block": "threads per block",
    "registers_per_thread": "registers per thread, estimated",
    "registers_per_block": "registers that the hardware hands out to a block, estimated",
    "shared_memory": "shared memory per block, in words of 4 bytes",
    "bank_degree": "the worst bank conflict of a warp in shared memory",
    "global_loads": "loads from global memory",
    "instructions": "instructions per warp",
    "occupancy": "active warps per multiprocessor, divided by the most possible",
    "cse1": "compute a value once per basic block",
    "cse2": "compute a value once across basic blocks",
    "scalar_replacement": "keep an element that a loop updates in a register",
    "granularity_groups": "give a block four neighbouring iterations of a granularity loop at a time",
    "reduction_tile": "several sums per thread, whose operands go through shared memory in strips",
    "strip_mining": "load what all threads of a block read in strips, through shared memory",
    "register_tile": "several neighbouring results per thread that share loads, in vectors where possible",
    "unroll_and_jam": "several iterations of a serial loop together, which share what loops in it load",
    "granularity": "less work per thread: iterations of a serial loop become blocks",
    "caching": "which arrays go through shared memory",
    "tiles": "tiles of shared memory only where they are needed, without bank conflicts",
    "double_buffering": "load the next tile while a block computes with this one",
    "register_pressure1": "LLVM passes that use fewer registers, first level",
    "register_pressure2": "LLVM passes that use fewer registers, second level",
    "register_pressure3": "LLVM passes that use fewer registers, third level",
    "rematerialize": "LLVM: compute values again where they are used",
    "shuffle": "warp shuffles instead of loads",
    "sink": "LLVM: compute nothing ahead of the branch that needs it",
    "speculate": "LLVM: compute ahead of branches",
    "straight_line": "LLVM: make addresses and values from earlier ones",
    "swizzle": "layouts of shared memory without bank conflicts",
    "thread_striding": "fewer threads, each of which runs several iterations",
    "unroll": "LLVM: unroll loops",
}
"""What each counter counts, and what each strategy does."""

GROUPS = {"register_pressure": tuple(f"register_pressure{level}" for level in (1, 2, 3))}
"""Names that stand for several strategies."""

PAPER_STRATEGIES = (*STRATEGIES, *GROUPS["register_pressure"])
"""The default strategies of ``--order paper``."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant: one that differs in case only, else a similar one."""
    if len(name) > 200:
        return None  # similarity would take long, and none is meant
    import difflib  # for those who mistype

    names = tuple(known)
    same = next((other for other in names if other.lower() == name.lower()), None)
    return same or next(iter(difflib.get_close_matches(name, names, n=1)), None)


class UnknownNameError(ValueError):
    """A name that nothing has; ``suggestion`` is what was ``meant``, else the closest one that exists.

    Without a ``guess`` it is what was meant or nothing.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], meant: str | None = None, *, guess: bool = True
    ) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.suggestion = meant or (closest(name, self.known) if guess else None)
        known_names = f"known: {', '.join(self.known) or 'none'}"
        hint = known_names if self.suggestion is None else f"did you mean {self.suggestion!r}?"
        super().__init__(f"there is no {kind} {name[:60]!r}; {hint}")


def counters(names: Sequence[str] | None = None, plugins: Sequence[Plugin] = ()) -> tuple[Counter, ...]:
    """Return the counters of these names in this order, the default ones for ``None``.

    Those of ``plugins`` take part when they are named.  Raises ``UnknownNameError`` and ``PluginError``.
    """
    tables = {**COUNTERS, **OPTIONAL_COUNTERS}
    wanted = _wanted("counter", names, COUNTERS)
    foreign = _foreign("counter", tables, wanted, plugins, lambda plugin: plugin.counters)
    return tuple(foreign[name] if name in foreign else _counter(tables[name]) for name in wanted)


def strategies(
    names: Sequence[str] | None = None, plugins: Sequence[Plugin] = (), order: str = "cost"
) -> tuple[Strategy, ...]:
    """Return the strategies of these names in this order, for ``None`` the default ones of the ``order`` of leaves.

    A name may have options in braces.  Those of ``plugins`` take part when they are named.  Raises
    ``UnknownNameError``, ``OptionError`` and ``PluginError``.
    """
    tables = {**STRATEGIES, **OPTIONAL_STRATEGIES}
    wanted = _wanted("strategy", names, PAPER_STRATEGIES if order == "paper" else STRATEGIES)
    foreign = _foreign("strategy", tables, wanted, plugins, lambda plugin: plugin.strategies)
    found = []
    for name, options in wanted.items():
        strategy = foreign[name] if name in foreign else _strategy(tables[name], name)
        found.append(strategy if options is None else with_options(strategy, options))
    return tuple(found)


def _wanted(kind: str, names: Sequence[str] | None, default: Iterable[str]) -> dict[str, str | None]:
    """Return the names asked for, in order, each with the text of its options."""
    if names is None:
        return dict.fromkeys(default)
    split = [name_and_options(name) for name in names]
    wanted: dict[str, str | None] = {}
    if split and all(name.startswith("+") for name, _ in split):
        wanted = dict.fromkeys(default)
        split = [(name.removeprefix("+"), options) for name, options in split]
    elif any(name.startswith("+") for name, _ in split):
        raise OptionError(_mixed(kind, names))
    for name, options in split:
        if options is not None and kind == "counter":
            raise OptionError(f"counter {name} has no options")
        if options is not None and wanted.get(name) not in (None, options):
            raise OptionError(f"{kind} {name} is named twice, with different options")
        for one in GROUPS.get(name, (name,)):
            wanted[one] = wanted.get(one) if options is None else options
    return wanted


def _mixed(kind: str, names: Sequence[str]) -> str:
    """Say what may be meant by names of which some have a ``+``."""
    without = [name.removeprefix("+") for name in names]
    option = "--counters" if kind == "counter" else "--strategies"
    return (
        f"{option} {','.join(names)} mixes two forms\n"
        f"  to add to the defaults, put + in front of each name: {','.join(f'+{name}' for name in without)}\n"
        f"  to use these alone, leave + out: {','.join(without)}"
    )


def _foreign(
    kind: str,
    tables: Mapping[str, str],
    wanted: Iterable[str],
    plugins: Sequence[Plugin],
    members: Callable[[Plugin], Sequence[Named]],
) -> dict[str, Named]:
    """Return what plugins have, by name; installed ones are looked at where a name is in nothing else."""
    found: dict[str, Named] = {}
    owners = dict.fromkeys(tables, "metafork itself")

    def take(plugin: Plugin) -> None:
        for one in members(plugin):
            if owners.get(one.name, plugin.name) != plugin.name:
                raise PluginError(f"plugin {plugin.name} has a {kind} {one.name!r}, and so has {owners[one.name]}")
            owners[one.name] = plugin.name
            found[one.name] = one

    for plugin in plugins:
        take(plugin)
    if any(name not in owners for name in wanted):
        for plugin in installed():
            take(plugin)
    for name in wanted:
        if name not in owners:
            raise UnknownNameError(kind, name, owners)
    return found


def _counter(module: str) -> Counter:
    counter: Counter = importlib.import_module(module).COUNTER
    return counter


def _strategy(place: str, name: str) -> Strategy:
    module = importlib.import_module(place)
    candidates: tuple[Strategy, ...] = getattr(module, "STRATEGIES", ()) or (module.STRATEGY,)
    return next(strategy for strategy in candidates if strategy.name == name)
