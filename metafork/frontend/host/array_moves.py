"""Array parameters are pointers, and C lets a function move them: where does one point when a schedule comes?

``x = y`` and an exchange through a pointer of the function's own (``t = x; x = y; y = t``) are followed: each of the
names then stands for one of several whole arrays of one shape.  What else is seen to move one (``x += 2``, ``x++``,
``x = y + 1``, ``f(&x)``) leaves its extent unknown, and is for a diagnostic.  What may move one without being seen is
checked when the program runs.
"""

from __future__ import annotations

from msgspec import Struct

from metafork.frontend.host.host import HostFunction
from metafork.frontend.host.variables import Change, Site, Variable, Write, key_of
from metafork.frontend.text import syntax


class Moves(Struct, frozen=True):
    """What becomes of an array parameter: a change that is not followed, or whether something unknown may move it.

    It may change places with ``others``, arrays too.
    """

    refused: Change | None
    doubtful: bool
    others: tuple[str, ...] = ()


def moves(host: HostFunction, site: Site, array: Variable) -> Moves:
    """Return what may have moved an array parameter between the beginning of its function and a schedule."""
    doubtful = False
    followed = [array]
    for variable in followed:  # grows while it is walked
        for change in host.changes(variable, variable.since, site):
            if change.unknown or (change.write is not None and change.write.supposed):
                doubtful = True
                continue
            if change.write is None or change.write.value is None:
                return Moves(change, doubtful)
            if _is_null(change.write.value):
                continue
            source = _source(change.write)
            if source is None or not (source.fault == "MF0201" or _one_shape(host, site, array, source)):
                return Moves(change, doubtful)
            if source not in followed and (source.is_parameter or source.element is None):
                followed.append(source)
    return Moves(None, doubtful, tuple(one.name for one in followed[1:] if one.element is not None))


def _source(write: Write) -> Variable | None:
    return write.scope.get(write.value.name) if isinstance(write.value, syntax.Name) else None


def _is_null(value: syntax.Expression) -> bool:
    return (isinstance(value, syntax.Constant) and value.text == "0") or (
        isinstance(value, syntax.Name) and value.name == "NULL"
    )


def _one_shape(host: HostFunction, site: Site, array: Variable, other: Variable) -> bool:
    """Return whether two arrays have one element type and the same extents, in variables that keep their values."""
    if array.element is None or array.element is not other.element or len(array.extents) != len(other.extents):
        return False
    for ours, theirs in zip(array.extents, other.extents, strict=True):
        if key_of(ours, array) != key_of(theirs, other):
            return False
        for node in syntax.walk(theirs):
            if isinstance(node, syntax.Name) and node.name in other.scope:
                size = other.scope[node.name]
                if any(not change.unknown for change in host.changes(size, other.since, site)):
                    return False
    return True
