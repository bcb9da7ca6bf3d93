"""Elements with too many indices, or too few, as of pointers to rows, and of NumPy's ``x[i, j]``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metafork.frontend.text.other_languages.advice import Advice
from metafork.frontend.text.other_languages.heads import loops_of

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def of_cast(type_: str, pointer: str) -> Advice:
    """Return what is said of an element of another type than its array's: ``*(int *)&x[i]``, ``((float *)p)[i]``."""
    reason = "elements have the type of their array."
    if pointer.startswith("&"):
        way = f"copy them: `{type_} bits; memcpy(&bits, {pointer}, sizeof bits);`."
        return Advice(f"the bits of `{pointer[1:]}` are read through a pointer to `{type_}`", reason, way)
    message = f"`{pointer}` is read as an array of `{type_}`"
    return Advice(
        message, reason, f"declare it as what it leads to, `{type_} *{pointer}`; the caller's memory is the same."
    )


def of_dimensions(declared: str, had: int, indices: Sequence[Sequence[str]], before: str) -> Advice:
    """Return what is said of an element with a wrong number of indices.

    ``declared`` is the array with its type, ``indices`` are texts, several where one has commas, and ``before`` is the
    text in front.
    """
    name = declared.split()[-1]
    given = len(indices)
    message = f"`{name}` has {_count(had, 'dimension', 'dimensions')} and gets {_count(given, 'index', 'indices')}"
    cause = f"dimensions of {name}"
    comma = next((parts for parts in indices if len(parts) > 1), None)
    if comma is not None:
        reason = f"in C, `{name}[{', '.join(comma)}]` means `{name}[{comma[-1]}]`: the comma drops the others."
        shown = "".join(f"[{part}]" for parts in indices for part in parts)
        return Advice(message, reason, f"write `{name}{shown}`.", cause)
    reason = "only whole elements are read and written."
    if had == 1 and given == 2 and (limits := _limits([parts[0] for parts in indices], before)) is not None:
        (row,), (column,) = indices
        way = (
            f"declare the rows, `{declared}[{limits[0]}][{limits[1]}]`, or compute the place: "
            f"`{name}[{row} * {limits[1]} + {column}]`."
        )
        return Advice(message, reason, way, cause)
    return Advice(message, reason, f"give as many indices as `{name}` has dimensions.", cause)


def _count(number: int, one: str, several: str) -> str:
    return f"{_NUMBERS[number] if number < len(_NUMBERS) else number} {one if number == 1 else several}"


def _limits(indices: Sequence[str], before: str) -> list[str] | None:
    """Return the ends of the loops of these variables, names or numbers; ``None`` where one is no such variable."""
    ends = dict(loops_of(before[before.rfind("meta_schedule") :], serial=True))
    found = [ends.get(index, "") for index in indices]
    return found if all(re.fullmatch(r"[0-9A-Za-z_]+", one) for one in found) else None
