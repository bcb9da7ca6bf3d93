"""Integers at a schedule: are they what the function was given, and what they were at the schedule before?"""

from __future__ import annotations

from collections.abc import Collection

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Site, Variable
from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span

_LEAVING = {"{", "}", "if", "else", "for", "while", "do", "switch", "case", "default", "return", "goto", "break"}
"""Words of code that is not understood, which may leave a block."""


def given_integers(host: HostFunction) -> list[Variable]:
    """Return the integers that a function is given."""
    return [one for one in host.outer.values() if one.is_parameter and one.type is not None and one.type.integer]


def changed_before(host: HostFunction, site: Site) -> tuple[dict[str, Span | None], tuple[str, ...]]:
    """Return the integers that a function is given and changes before a schedule, and where; and which ones it may.

    Those without a place have names that mean other variables there.
    """
    changed: dict[str, Span | None] = {}
    doubted: list[str] = []
    for one in given_integers(host):
        change = host.stable(one, one.since, site)
        if site.visible.get(one.name) is not one or (change is not None and not change.unknown):
            changed[one.name] = None if change is None else change.span
        elif change is not None:
            doubted.append(one.name)
    return changed, tuple(doubted)


def side_by_side(host: HostFunction, first: Site, second: Site, names: Collection[str]) -> bool:
    """Say whether a schedule runs whenever the one before it does; ``names`` are the parameters of both.

    They stand in one block, and nothing between them may leave that block or give these values.
    """
    blocks = (one for one in syntax.walk_statements(host.body) if isinstance(one, syntax.Block))
    for block in blocks:
        places = [at for at, item in enumerate(block.items) if item is first.statement or item is second.statement]
        if len(places) == 2 and all(map(_goes_on, block.items[places[0] + 1 : places[1]])):
            kept = ((first.visible.get(name), second.visible.get(name)) for name in names)
            return all(
                old is new and (new is None or host.stable(new, first.order, second) is None) for old, new in kept
            )
    return False


def _goes_on(statement: syntax.Statement) -> bool:
    match statement:
        case syntax.Opaque(tokens=tokens):
            return _LEAVING.isdisjoint(one.text for one in tokens)
        case _:
            return isinstance(statement, syntax.Declaration | syntax.ExpressionStatement | syntax.Empty)
