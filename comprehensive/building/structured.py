"""Structures in NumPy: the members of a structured type must lie where C lays them.

struct { int id; double mass; } p[n]    numpy.dtype([("id", np.int32), ("mass", np.float64)], align=True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

Place = tuple["np.dtype[Any]", int]
"""The type of a scalar, and the byte of its structure at which it begins."""


class Layout(Struct, frozen=True):
    """The scalars of a structure, by what C calls them (``v[0].x``), and its size in bytes."""

    places: Mapping[str, Place]
    size: int

    def fault(self, dtype: np.dtype[Any]) -> str:
        """Return the first thing in which a structured type differs; empty where it is laid out alike."""
        found = dict(_places(dtype))
        for name in (*self.places, *found):
            if name not in found:
                return f"it has no member {name}"
            if name not in self.places:
                return f"the structure has no member {name}"
            (type_, offset), (own, wanted) = found[name], self.places[name]
            if type_ != own:
                return f"its member {name} is {type_}, not {own}"
            if offset != wanted:
                return f"its member {name} begins at byte {offset}, not {wanted}"
        return "" if dtype.itemsize == self.size else f"it has {dtype.itemsize} bytes, not {self.size}"


def _places(dtype: np.dtype[Any], name: str = "", start: int = 0) -> Iterator[tuple[str, Place]]:
    """Yield the scalars of a type, those of structures and arrays in it too."""
    if dtype.fields is not None:
        for member, (type_, offset, *_) in dtype.fields.items():
            yield from _places(type_, f"{name}.{member}" if name else member, start + offset)
    elif dtype.subdtype is not None:
        type_, shape = dtype.subdtype
        for number, index in enumerate(np.ndindex(shape)):
            suffix = "".join(f"[{one}]" for one in index)
            yield from _places(type_, name + suffix, start + number * type_.itemsize)
    else:
        yield name, (dtype, start)
