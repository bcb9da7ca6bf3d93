"""Fresh names for generated code."""

from __future__ import annotations


def fresh(base: str, taken: set[str]) -> str:
    """Return ``base``, or ``base_2`` and so on where it is taken, and take the result."""
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
