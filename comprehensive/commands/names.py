"""Names that options take: the lists that ``--machine help`` prints, their completion, what an unknown one meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from metafork.comprehensive.registry import UnknownNameError

OPTIONS = {"machine": "--machine", "counter": "--counters", "strategy": "--strategies", "back end": "--backend"}
"""The option of ``metafork optimize`` that takes a kind of names."""
_SHARED_LETTERS = 3
"""Letters that the beginnings of related words share."""
_MOST_RELATED = 4


def listed(kind: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the callback of an option that takes names of a kind: ``help`` prints all of them and ends the run."""

    def callback(context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
        if text == "help":
            click.echo(_LISTS[kind]())
            context.exit(0)
        return text

    return callback


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what shells ask for the rest of a name of a kind, the last one of several."""

    def callback(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
        before, comma, last = text.rpartition(",")
        plus = "+" if last.startswith("+") else ""
        return [f"{before}{comma}{plus}{name}" for name in _names(kind) if name.startswith(last.removeprefix("+"))]

    return callback


def _names(kind: str) -> tuple[str, ...]:
    if kind == "machine":
        from metafork.runtime.machine import PRESETS

        return (*PRESETS, "all")
    if kind == "back end":
        from metafork.comprehensive.emit.targets.table import known_targets

        return tuple(known_targets())
    from metafork.comprehensive import registry

    if kind == "counter":
        return (*registry.COUNTERS, *registry.OPTIONAL_COUNTERS)
    return (*registry.STRATEGIES, *registry.OPTIONAL_STRATEGIES)


def told(error: UnknownNameError) -> str:
    """Return what a command says about an unknown name: what was perhaps meant, and where all names are listed."""
    option = OPTIONS.get(error.kind)
    if option is None:
        return str(error)
    lines = [f"there is no {error.kind} {error.name[:60]!r}"]
    if error.kind == "machine":
        lines += _machine_meant(error.name, error.suggestion)
    elif meant := [error.suggestion] if error.suggestion else _related(error.name, error.known):
        lines.append(f"  did you mean: {', '.join(meant)}?")
    return "\n".join([*lines, f"  all {_PLURAL[error.kind]}: metafork optimize {option} help"])


_PLURAL = {"machine": "machines", "counter": "counters", "strategy": "strategies", "back end": "back ends"}


def _machine_meant(name: str, suggestion: str | None) -> list[str]:
    """Return a line that names the preset of a number (``compute_80``, ``8.0``), or the newest one that is older."""
    from metafork.runtime.machine import PRESETS, compute_capability, gpus_of

    line = "  did you mean: {}?"
    found = re.fullmatch(r"(?:sm|compute|cc|arch)?[_ ]?(\d{1,3}|\d{1,2}\.\d)[af]?", name.strip().lower())
    if suggestion is None and found is not None:
        capability = int(found[1].replace(".", ""))
        older = [preset for preset in PRESETS if 0 < compute_capability(preset) <= capability]
        suggestion = max(older, key=compute_capability, default=None)
        if suggestion is not None and compute_capability(suggestion) != capability:
            line = "  the next older machine: {}"
    if suggestion is None:
        return []
    gpus = ", ".join(gpus_of(suggestion)[:2])
    return [line.format(f"{suggestion} ({gpus})" if gpus else suggestion)]


def _related(name: str, known: Iterable[str]) -> list[str]:
    """Return the names of which a word has the beginning, else those of which it is an abbreviation."""
    asked, names = name.lower().removeprefix("+"), tuple(known)
    words = [word for word in re.split(r"[^a-z0-9]+", asked) if len(word) >= _SHARED_LETTERS]
    starts = {word[:_SHARED_LETTERS] for word in words}
    found = [one for one in names if any(part[:_SHARED_LETTERS] in starts for part in one.split("_"))]
    abbreviated = re.compile(".*".join(map(re.escape, asked[:20])) + ".*") if asked else None
    return (found or [one for one in names if abbreviated and abbreviated.fullmatch(one)])[:_MOST_RELATED]


def _machines() -> str:
    from metafork.runtime.machine import PRESETS, gpus_of

    lines = ["machines (Z: shared memory per block in words of 4 bytes, R: registers per thread, RB: registers per"]
    lines += ["block, T: threads per block):"]
    gpus = {name: ", ".join(gpus_of(name)[:3]) for name in PRESETS}
    width = max(map(len, gpus.values()))
    for name, one in PRESETS.items():
        numbers = f"Z={one.shared_words:<6} R={one.registers_per_thread:<4} RB={one.registers_per_block:<7}"
        lines.append(f"  {name:<8} {gpus[name]:<{width}}  {numbers} T={one.threads_per_block}")
    return "\n".join([*lines, "a range: sm_75..sm_120   values: Z=12288,T=1024 (alone or after a machine)   any: all"])


def _counters() -> str:
    from metafork.comprehensive.registry import COUNTERS, OPTIONAL_COUNTERS

    return _two_lists("counters", COUNTERS, OPTIONAL_COUNTERS)


def _strategies() -> str:
    from metafork.comprehensive.registry import OPTIONAL_STRATEGIES, STRATEGIES

    return _two_lists("strategies", STRATEGIES, OPTIONAL_STRATEGIES)


def _backends() -> str:
    from metafork.comprehensive.emit.targets.table import known_targets

    return "\n".join(["back ends:", *(f"  {name}" for name in known_targets())])


def _two_lists(plural: str, default: Iterable[str], optional: Iterable[str]) -> str:
    from metafork.comprehensive.registry import DESCRIPTIONS

    first, others = tuple(default), tuple(optional)
    width = max(map(len, (*first, *others)))
    heads = (f"{plural} that are used by default, in this order:", f"others, to add: --{plural} +{others[0]}")
    lines: list[str] = []
    for head, names in zip(heads, (first, others), strict=True):
        lines += [head, *(f"  {name:<{width}}  {DESCRIPTIONS.get(name, '')}" for name in names)]
    return "\n".join(lines)


_LISTS: dict[str, Callable[[], str]] = {
    "machine": _machines,
    "counter": _counters,
    "strategy": _strategies,
    "back end": _backends,
}
