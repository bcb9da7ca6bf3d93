"""What a pointer of a function may lead to: arrays that are known by a name, what it was given, or the heap.

A copy on the device is known by the host's addresses, whatever pointer leads to them.  It must not outlive what it is a
copy of: arrays of the function are announced where they begin (``residency``), memory of the heap where it is freed.
That leaves other variables, of which a pointer may have the address too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from metafork.frontend.host.variables import Variable
from metafork.frontend.text import syntax


def lead_to_arrays(pointers: Iterable[Variable]) -> bool:
    """Say whether pointers only ever lead to arrays of scalars, or to memory that no variable is."""
    asked = list(pointers)
    for pointer in asked:  # grows while it is walked
        if pointer.is_parameter:
            continue
        if pointer.escapes < math.inf:
            return False
        for write in pointer.writes:
            others = None if write.value is None else _pointers_in(write.value, write.scope)
            if others is None:
                return False
            asked += (one for one in others if one not in asked)
    return True


def _pointers_in(value: syntax.Expression, scope: Mapping[str, Variable]) -> set[Variable] | None:
    """Return the pointers that an address is computed from; ``None`` where it may be that of another variable."""
    found: set[Variable] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        match part:
            case syntax.Prefix(op="sizeof"):
                continue
            case syntax.Name(uncertain=True):
                return None
            case syntax.Name(name=name):
                variable = scope.get(name)
                if variable is None or variable.type is not None or variable.element is not None:
                    continue
                if variable.fault == "MF0201":
                    found.add(variable)
                elif variable.fault != "MF0206":
                    return None
            case syntax.Prefix(op="&", operand=operand) if not isinstance(operand, syntax.Subscript):
                return None
            case syntax.Prefix(op="*") | syntax.Member() | syntax.Unsupported() | syntax.Literal():
                return None
            case _:
                pass
        pending += syntax.operands(part)
    return found
