"""Strategies with options: ``granularity{most_loops=1}`` is the strategy with that field changed.

A strategy's own fields that have a default are its options.  They are integers, truth values (``true``, ``false``) or
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import get_type_hints

from msgspec import structs

from metafork.strategies.strategy import Strategy

_NAME = r"(\+?)([^{},]*)(?:\{([^{}]*)\})?"


class OptionError(ValueError):
    """An option that a strategy does not have, or a value that it cannot have; the message lists the right ones."""


def split_names(text: str) -> list[str]:
    """Split ``cse1, granularity{a=1,b=2}`` at the commas outside of braces."""
    parts = re.split(r",(?![^{}]*\})", text)
    return [part.strip() for part in parts if part.strip()]


def name_and_options(spelled: str) -> tuple[str, str | None]:
    """Return the name (with its ``+``) and the text between the braces, ``None`` where there are none.

    Raises ``OptionError`` where braces do not match.
    """
    match = re.fullmatch(_NAME, spelled.strip())
    if match is None:
        raise OptionError(f"{spelled!r} is neither NAME nor NAME{{OPTION=VALUE,...}}")
    return match[1] + match[2].strip(), match[3]


def with_options(strategy: Strategy, text: str) -> Strategy:
    """Return the strategy with the options of ``text`` (``most_loops=1``); its name then has them too.

    Raises ``OptionError``.
    """
    known = _options(strategy)
    values: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals:
            what = f"no option {name!r}" if equals else f"an option without a value: {part!r}"
            raise OptionError(f"{strategy.name} has {what}; {_listed(strategy, known)}")
        if name in values:
            raise OptionError(f"{strategy.name} is given {name} twice")
        try:
            values[name] = known[name](number)
        except ValueError as error:
            raise OptionError(f"{strategy.name}: {name}: {error}; {_listed(strategy, known)}") from error
    changed = {name: value for name, value in values.items() if value != getattr(strategy, name)}
    if not changed:
        return strategy
    shown = ",".join(f"{name}={_spelled(value)}" for name, value in changed.items())
    try:
        return structs.replace(strategy, name=f"{strategy.name}{{{shown}}}", **changed)
    except ValueError as error:
        raise OptionError(f"{strategy.name}: {error}; {_listed(strategy, known)}") from error


def _options(strategy: Strategy) -> Mapping[str, Callable[[str], object]]:
    """Return the reader of each option's values."""
    types = get_type_hints(type(strategy))
    own = [one for one in structs.fields(strategy) if one.name not in Strategy.__struct_fields__]
    return {one.name: _READERS[types[one.name]] for one in own if not one.required and types[one.name] in _READERS}


def _listed(strategy: Strategy, known: Mapping[str, object]) -> str:
    shown = (f"{name} (by default {_spelled(getattr(strategy, name))})" for name in known)
    return f"its options are {', '.join(shown)}" if known else "it has no options"


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError(f"{text[:40]!r} is no integer of at most 18 digits")
    return int(text)


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{text[:40]!r} is neither true nor false")
    return text == "true"


_READERS: Mapping[object, Callable[[str], object]] = {int: _integer, bool: _truth, str: str}
